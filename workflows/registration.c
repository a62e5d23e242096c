/*
 * Checks a registration; touches no state.  TL_INVALID: it is incomplete, or contradicts itself.
 * TL_UNSAFE: by what it declares, it could pay twice or lose a payment.  The library believes all
 * declarations, and never tries one out.
 */
#include "registry.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* 80 bits.  With fewer, two trades could share a key, and one of them would not be paid. */
#define KEY_CHARS_LEAST 20u

static tl_status check_name(const char *what, const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            return tl_error_report(TL_INVALID,
                                   "%s has byte 0x%02x at place %td; printable ASCII "
                                   "without blanks is allowed",
                                   what, (unsigned)(unsigned char)*at, at - name + 1);
    return TL_OK;
}

static tl_status check_operation(const char *op_code)
{
    const size_t size = strlen(op_code), suffix = strlen(TL_RETRY_SUFFIX);
    tl_status status = check_name("the operation code", op_code);

    if (status != TL_OK)
        return status;
    if (tl_business_op_size(op_code) < size)
        return tl_error_report(TL_INVALID,
                               "operation %s ends in %s, which names its own retry lane", op_code,
                               TL_RETRY_SUFFIX);
    if (size + suffix > TL_OP_MAX)
        return tl_error_report(TL_INVALID,
                               "operation %s is too long to take %s: %zu characters at "
                               "most",
                               op_code, TL_RETRY_SUFFIX, TL_OP_MAX - suffix);
    return TL_OK;
}

/* Refuses declarations that contradict the callbacks or each other, as TL_INVALID. */
static tl_status check_consistency(const tl_workflow *w)
{
    const tl_channel *channel = &w->channel;

    if (channel->can_query && w->query == NULL)
        return tl_error_report(TL_INVALID,
                               "operation %s says that channel %s can be queried, but has "
                               "no query callback",
                               w->op_code, channel->name);
    if (!channel->can_query && w->query != NULL)
        return tl_error_report(TL_INVALID,
                               "operation %s has a query callback, but says that channel "
                               "%s cannot be queried",
                               w->op_code, channel->name);
    if (channel->not_found_final && !channel->can_query)
        return tl_error_report(TL_INVALID,
                               "operation %s: \"not found\" can only be final on a channel "
                               "that can be queried",
                               w->op_code);
    if (channel->cancel_final && w->cancel == NULL)
        return tl_error_report(TL_INVALID,
                               "operation %s says that a cancel is final, but has no "
                               "cancel callback",
                               w->op_code);
    if (!channel->idempotent && channel->window_ms != 0)
        return tl_error_report(TL_INVALID,
                               "operation %s gives channel %s a window, but not the "
                               "idempotence that would end with it",
                               w->op_code, channel->name);
    return TL_OK;
}

/* Business rows have two forms; a workflow chooses one for each moment. */
static tl_status check_books(const tl_workflow *w)
{
    const struct {
        const char *book, *other;
        int has_book, has_other;
    } moments[] = {
        {"book_prepare", "sql_prepare", w->book_prepare != NULL, w->sql_prepare != NULL},
        {"book_success", "sql_success", w->book_success != NULL, w->sql_success != NULL},
        {"book_failure", "sql_failure", w->book_failure != NULL, w->sql_failure != NULL},
    };
    const int has_statements = w->statements != NULL && w->statement_count > 0;
    int books = 0;

    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        if (moments[i].has_book && moments[i].has_other)
            return tl_error_report(TL_INVALID,
                                   "operation %s has both %s and %s; choose one of them",
                                   w->op_code, moments[i].book, moments[i].other);
        if (moments[i].has_book && !has_statements)
            return tl_error_report(TL_INVALID, "operation %s has %s, but declares no statements",
                                   w->op_code, moments[i].book);
        books += moments[i].has_book;
    }
    if (books == 0 && (w->statements != NULL || w->statement_count > 0))
        return tl_error_report(TL_INVALID,
                               "operation %s declares statements, but has no callback that writes "
                               "lines of them",
                               w->op_code);
    return TL_OK;
}

static tl_status check_range(const char *op_code, const char *what, int64_t value, int64_t least,
                             int64_t most)
{
    if (value >= least && value <= most)
        return TL_OK;
    return tl_error_report(
        TL_INVALID, "operation %s: %s is %" PRId64 "; it must be from %" PRId64 " to %" PRId64,
        op_code, what, value, least, most);
}

static tl_status check_ranges(const tl_workflow *w)
{
    const tl_policy *policy = &w->policy;
    const int64_t year_ms = INT64_C(366) * 24 * 3600 * 1000;
    const struct {
        const char *what;
        int64_t value, least, most;
    } ranges[] = {
        {"max_hold_ms", policy->max_hold_ms, 1, TL_HOLD_MAX_MS},
        {"execute_ms", policy->execute_ms, 1, TL_HOLD_MAX_MS},
        {"commit_ms", policy->commit_ms, 1, TL_HOLD_MAX_MS},
        {"deadline_ms", policy->deadline_ms, 1, year_ms},
        {"grace_ms", policy->grace_ms, 0, year_ms},
        {"clock_margin_ms", policy->clock_margin_ms, 0, INT64_C(3600000)},
        {"attempts", policy->attempts, 1, 1000},
        {"poison", policy->poison, 1, 100},
        {"the number of schedule entries", policy->schedule_count, 1, TL_SCHEDULE_MAX},
        {"the channel's window_ms", w->channel.window_ms, 0, INT64_MAX},
        {"the channel's latency_ms", w->channel.latency_ms, 0, year_ms},
        {"the channel's key_chars", w->channel.key_chars, 0, TL_CHANNEL_KEY_MAX},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        tl_status status = check_range(w->op_code, ranges[i].what, ranges[i].value, ranges[i].least,
                                       ranges[i].most);
        if (status != TL_OK)
            return status;
    }
    for (unsigned i = 0; i < policy->schedule_count; i++) {
        tl_status status =
            check_range(w->op_code, "a schedule entry", policy->schedule_ms[i], 1, year_ms);
        if (status != TL_OK)
            return status;
    }
    return TL_OK;
}

static tl_status check_safety(const tl_workflow *w)
{
    const tl_channel *channel = &w->channel;
    const tl_policy *policy = &w->policy;
    int64_t call_ms = policy->execute_ms + policy->commit_ms;
    /* How far the server's clock may be off at the deadline although nobody saw a jump: a jump
     * within the margin, and the drift of a clock that is slewed. */
    int64_t drift_ms = policy->clock_margin_ms + policy->deadline_ms / 1000;
    int64_t late_ms = policy->max_hold_ms + channel->latency_ms + drift_ms;

    if (!channel->can_query && (!channel->idempotent || w->execute == NULL))
        return tl_error_report(TL_UNSAFE,
                               "operation %s: channel %s can neither be queried nor is it "
                               "idempotent, so a lost answer could never be cleared up",
                               w->op_code, channel->name);
    if (channel->key_chars < KEY_CHARS_LEAST)
        return tl_error_report(TL_UNSAFE,
                               "operation %s: %u digits of channel key are fewer than 80 "
                               "bits (20 digits), so two trades could share one",
                               w->op_code, channel->key_chars);
    if (policy->max_hold_ms < call_ms)
        return tl_error_report(TL_UNSAFE,
                               "operation %s: max_hold_ms %" PRId64 " is shorter than "
                               "execute_ms and commit_ms together (%" PRId64 "), so an "
                               "answer in time could come too late",
                               w->op_code, policy->max_hold_ms, call_ms);
    /* A send that was armed just before the deadline may leave until its max_hold is over. */
    if (channel->window_ms > 0 && policy->deadline_ms + late_ms > channel->window_ms)
        return tl_error_report(
            TL_UNSAFE,
            "operation %s: deadline_ms, max_hold_ms, the channel's latency_ms and what "
            "the "
            "server's clock may be off (clock_margin_ms and a thousandth of the "
            "deadline) "
            "together (%" PRId64 ") reach beyond the window of channel "
            "%s (%" PRId64 "): a late send could be paid as a new one",
            w->op_code, policy->deadline_ms + late_ms, channel->name, channel->window_ms);
    if (policy->grace_ms < channel->latency_ms + policy->clock_margin_ms)
        return tl_error_report(
            TL_UNSAFE,
            "operation %s: grace_ms %" PRId64 " is shorter than the latency of channel %s "
            "and clock_margin_ms together (%" PRId64 "), so \"not found\" could be "
            "believed too early",
            w->op_code, policy->grace_ms, channel->name,
            channel->latency_ms + policy->clock_margin_ms);
    return TL_OK;
}

tl_status workflow_check(const tl_workflow *given)
{
    tl_status status = check_operation(given->op_code);

    if (status == TL_OK && given->execute == NULL)
        status =
            tl_error_report(TL_INVALID, "operation %s has no execute callback", given->op_code);
    if (status == TL_OK && given->former_count > 0 && given->former == NULL)
        status = tl_error_report(TL_INVALID, "operation %s counts former channels, and names none",
                                 given->op_code);
    if (status == TL_OK)
        status = check_books(given);
    return status == TL_OK ? workflow_check_former(given) : status;
}

tl_status workflow_check_former(const tl_workflow *given)
{
    tl_status status = check_name("the channel name", given->channel.name);

    if (status == TL_OK)
        status = check_consistency(given);
    if (status == TL_OK)
        status = check_ranges(given);
    if (status == TL_OK)
        status = check_safety(given);
    return status;
}
