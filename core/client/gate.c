/* Reads what operators set of the channels, keeps it for the process, and lets sends begin.  Touches
 * trade_channel, trade_channel_limit and trade_channel_breaker, which it only reads. */
#include "client/gate_inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "store/bind.h"

#include <tradelock/layer.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gates_init(channel_gates *all)
{
    pthread_mutex_init(&all->mutex, NULL);
    (void)clock_condition_init(&all->changed);
}

void gates_end(channel_gates *all, int here)
{
    struct gate *one;

    while ((one = all->list) != NULL) {
        all->list = one->next;
        memory_free(one);
    }
    if (!here) /* it would wait for threads that only the parent has */
        return;
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->mutex);
}

/* ------------------------------------------------------------------------- the look -- */

struct gate *gate_find(const channel_gates *all, const char *channel, const char *op_code,
                       unsigned i)
{
    struct gate *one = all->list;

    while (one != NULL &&
           (strcmp(one->channel, channel) != 0 || strcmp(one->op_code, i == 0 ? op_code : "") != 0))
        one = one->next;
    return one;
}

static tl_status add(channel_gates *all, const char *channel, const char *op_code)
{
    struct gate *one;

    if (gate_find(all, channel, op_code, 0) != NULL)
        return TL_OK;
    one = memory_new(sizeof *one);
    if (one == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for what operators set of channels");
    text_copy(one->channel, sizeof one->channel, channel);
    text_copy(one->op_code, sizeof one->op_code, op_code);
    one->next = all->list;
    all->list = one;
    return TL_OK;
}

#define TEXT(column) db_get_text(r, row, COLUMN_channel_gates_##column)
#define INT(column) db_get_int(r, row, COLUMN_channel_gates_##column)
#define UINT(column) db_get_uint(r, row, COLUMN_channel_gates_##column)
#define IS_SAID(column) (!db_is_null(r, row, COLUMN_channel_gates_##column))

enum { READ_PAUSE = 1, READ_LIMIT = 2, READ_BREAKER = 4 };

/* A channel that is paused as a whole has a row of its own, and one for each operation that is
 * known.  Only these are logged. */
static void log_pause(struct tl_client *client, const struct gate *one, const char *account,
                      const char *reason)
{
    if (one->op_code[0] == '\0')
        return;
    if (one->is_paused)
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "channel %s is paused for %s by %s, and nothing new is sent: %s", one->channel,
                 one->op_code, account, reason);
    else
        log_line(&client->logger, TL_WARNING, NULL, 0, "channel %s goes on for %s", one->channel,
                 one->op_code);
}

static void take_row(struct tl_client *client, struct gate *one, const db_result *r, size_t row)
{
    if (IS_SAID(paused_us)) {
        one->read |= READ_PAUSE;
        if (!one->is_paused) {
            one->is_paused = 1;
            log_pause(client, one, TEXT(account), TEXT(reason));
        }
    }
    if (IS_SAID(sends) || IS_SAID(per_second)) {
        one->read |= READ_LIMIT;
        gate_set_limit(client, one, UINT(sends), UINT(per_second));
    }
    if (IS_SAID(unknowns)) {
        one->read |= READ_BREAKER;
        one->unknowns = UINT(unknowns);
        one->share = UINT(share);
        one->probe_ms = INT(probe_s) * 1000;
        gate_set_standing(client, one, INT(is_open) != 0, UINT(era), UINT(in_a_row), INT(again_ms));
    }
}

static void take_what_is_over(struct tl_client *client, struct gate *one)
{
    if (one->is_paused && !(one->read & READ_PAUSE)) {
        one->is_paused = 0;
        log_pause(client, one, NULL, NULL);
    }
    if (!(one->read & READ_LIMIT))
        gate_set_limit(client, one, 0, 0);
    if (!(one->read & READ_BREAKER))
        gate_end_breaker(client, one);
}

/* What was read of a drain first stays: no clock that is set back makes it hold later. */
static void take_drain(struct tl_client *client, const db_result *r, size_t row, int64_t notice_ms)
{
    channel_gates *all = &client->gates;
    /* What is left of the notice that a drain gives. */
    const int64_t for_ms = INT(paused_for_us) / 1000;
    const int64_t from_ms =
        clock_deadline(for_ms < 0 || for_ms > notice_ms ? 0 : notice_ms - for_ms);

    if (all->drain.since_us == 0) {
        all->drain.read_ms = clock_boottime_ms();
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "operators drain the installation (%s), and in a moment nothing new is begun: %s",
                 TEXT(account), TEXT(reason));
    }
    if (all->drain.since_us != INT(paused_us)) {
        all->drain.since_us = INT(paused_us);
        all->drain.from_ms = from_ms;
        all->drain.holds = all->drain.is_obeyed = 0;
    } else if (from_ms < all->drain.from_ms) {
        all->drain.from_ms = from_ms;
    }
}

static int is_drain(const db_result *r, size_t row)
{
    return IS_SAID(paused_us) && strcmp(TEXT(channel), TL_CHANNEL_ALL) == 0;
}

/* All of it, or nothing.  Needs: the mutex held. */
static tl_status take_rows(struct tl_client *client, const db_result *r, int64_t notice_ms)
{
    channel_gates *all = &client->gates;
    int drains = 0;

    for (size_t row = 0; row < r->rows; row++)
        if (!is_drain(r, row))
            TRY(add(all, TEXT(channel), TEXT(op_code)));
    for (struct gate *one = all->list; one != NULL; one = one->next)
        one->read = 0;
    for (size_t row = 0; row < r->rows; row++)
        if (is_drain(r, row)) {
            drains = 1;
            take_drain(client, r, row, notice_ms);
        } else {
            take_row(client, gate_find(all, TEXT(channel), TEXT(op_code), 0), r, row);
        }
    for (struct gate *one = all->list; one != NULL; one = one->next)
        take_what_is_over(client, one);
    if (!drains && all->drain.since_us != 0) {
        memset(&all->drain, 0, sizeof all->drain);
        log_line(&client->logger, TL_WARNING, NULL, 0, "the drain is over");
    }
    atomic_store(&all->any, r->rows > 0);
    pthread_cond_broadcast(&all->changed);
    return TL_OK;
}

#undef TEXT
#undef INT
#undef UINT
#undef IS_SAID

/* Says once that what was read last holds, and once that it does not any more.  Needs: the mutex
 * held. */
static void note_look(struct tl_client *client, tl_status status)
{
    channel_gates *all = &client->gates;

    if (status != TL_OK && !all->fails)
        log_line(&client->logger, TL_ALARM, NULL, 0,
                 "which channels are paused, limited or broken cannot be read, so what was read "
                 "last holds: %s",
                 tl_error_message());
    else if (status == TL_OK && all->fails)
        log_line(&client->logger, TL_WARNING, NULL, 0,
                 "paused, limited and broken channels are seen again");
    all->fails = status != TL_OK;
}

/* status: of the connection. */
static tl_status look(struct tl_client *client, tl_status status, db *connection, int64_t notice_ms)
{
    channel_gates *all = &client->gates;
    RESULT r = DB_RESULT_INIT;

    if (status == TL_OK)
        status = db_read_status(connection, db_run(connection, &sql_channel_gates, NULL, 0, &r),
                                "reading which channels are paused, limited or broken");
    pthread_mutex_lock(&all->mutex);
    if (status == TL_OK)
        status = take_rows(client, &r, notice_ms);
    note_look(client, status);
    pthread_mutex_unlock(&all->mutex);
    return status;
}

tl_status gates_look(struct tl_client *client, db *connection)
{
    return look(client, TL_OK, connection, 0);
}

/* The list only grows at its front, so a walk may go on after the mutex was let go of. */
void gates_round(struct tl_client *client)
{
    channel_gates *all = &client->gates;
    const int64_t beat_ms = client->config.beat_ms;
    db *connection = NULL;
    tl_status status;

    pthread_mutex_lock(&all->mutex);
    for (struct gate *one = all->list; one != NULL; one = one->next)
        gate_tell(client, one);
    pthread_mutex_unlock(&all->mutex);
    status = pool_get(client->connections, POOL_QUICK, beat_ms, &connection);
    (void)look(client, status, connection, beat_ms); /* what was read last holds */
    pool_put(client->connections, connection);
    pthread_mutex_lock(&all->mutex);
    for (struct gate *one = all->list; one != NULL; one = one->next)
        gate_keep_share(client, one);
    pthread_mutex_unlock(&all->mutex);
}

void gates_leave(struct tl_client *client)
{
    channel_gates *all = &client->gates;
    const int64_t until_ms = clock_boottime_ms() + client->config.session_ms;

    pthread_mutex_lock(&all->mutex);
    for (struct gate *one = all->list; one != NULL; one = one->next)
        gate_leave_share(client, one, until_ms);
    for (struct gate *one = all->list; one != NULL; one = one->next)
        gate_tell(client, one);
    pthread_mutex_unlock(&all->mutex);
}

tl_status gate_called(struct tl_client *client, db *connection, db_answer answer, const char *what,
                      char text[GATE_TEXT])
{
    RESULT r = DB_RESULT_INIT;
    const tl_status status =
        db_read_status(connection, store_called(connection, answer, &sql_channel_called, &r), what);

    text_copy(text, GATE_TEXT, status == TL_OK && r.rows == 1 ? db_get_text(&r, 0, 0) : "none");
    pool_put(client->connections, connection);
    return status;
}

/* ------------------------------------------------------------------------ may it begin -- */

tl_status gate_refuse(gate_pass *pass, int64_t again_ms, const char *format, ...)
{
    char sentence[ERROR_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (pass != NULL)
        pass->again_ms = again_ms;
    return error_set(TL_OVERLOADED, "%s", sentence);
}

/* Decided under the mutex and never taken back: whoever looked before is counted already.  Needs:
 * the mutex held. */
static int drain_holds(channel_gates *all)
{
    if (all->drain.since_us != 0 && clock_left_ms(all->drain.from_ms) == 0)
        all->drain.holds = 1;
    return all->drain.holds;
}

static int fits(const struct gate *one, const char *channel, const char *op_code)
{
    return (channel == NULL || strcmp(one->channel, channel) == 0) &&
           (one->op_code[0] == '\0' || strcmp(one->op_code, op_code) == 0);
}

/* No customer hears an operator's reason.  Of a channel that is paused as a whole each operation
 * has a row.  Needs: the mutex held. */
static tl_status check_paused(channel_gates *all, const char *channel, const char *op_code)
{
    if (drain_holds(all))
        return gate_refuse(NULL, 0,
                           "operators drain the installation: nothing was written; try again "
                           "later");
    for (const struct gate *one = all->list; one != NULL; one = one->next)
        if (one->is_paused && fits(one, channel, op_code) &&
            (channel != NULL || strcmp(one->op_code, op_code) == 0))
            return gate_refuse(
                NULL, 0,
                "operators have paused channel %s for %s: nothing was written; try again later",
                one->channel, op_code);
    return TL_OK;
}

tl_status gate_check(struct tl_client *client, const char *channel, const char *op_code,
                     int pauses_only)
{
    channel_gates *all = &client->gates;
    tl_status status;

    /* Not of class RETRY: the trade may be paid at the other one. */
    if (atomic_load(&all->is_copy))
        return error_set(TL_BAD_CONFIG, "another shard of the settings leads to this database, or "
                                        "to a copy of it: nothing was written");
    if (!atomic_load(&all->any))
        return TL_OK;
    pthread_mutex_lock(&all->mutex);
    status = check_paused(all, channel, op_code);
    for (const struct gate *one = all->list; !pauses_only && one != NULL && status == TL_OK;
         one = one->next)
        if (gate_is_broken(one) && fits(one, channel, op_code))
            status = gate_refuse_broken(client, NULL, one);
    pthread_mutex_unlock(&all->mutex);
    return status;
}

int gate_is_limited(struct tl_client *client, const char *channel)
{
    channel_gates *all = &client->gates;
    int is = 0;

    if (!atomic_load(&all->any))
        return 0;
    pthread_mutex_lock(&all->mutex);
    for (const struct gate *one = all->list; one != NULL; one = one->next)
        is |= (one->sends > 0 || one->per_second > 0) && strcmp(one->channel, channel) == 0;
    pthread_mutex_unlock(&all->mutex);
    return is;
}

/* Who is refused is not counted, so that the count comes to 0 while callers try again and again.
 * Counted first and looked at then, in one order for all threads: an ask that the count did not
 * have sees the drain. */
tl_status gate_enter(struct tl_client *client, gate_pass *pass, const char *channel,
                     const char *op_code)
{
    const int was_entered = pass->is_entered;
    tl_status status = gate_check(client, channel, op_code, 1);

    if (status != TL_OK || was_entered)
        return status;
    gate_stay(client, pass);
    status = gate_check(client, channel, op_code, 1);
    if (status != TL_OK)
        gate_leave(client, pass);
    return status;
}

void gate_stay(struct tl_client *client, gate_pass *pass)
{
    if (!pass->is_entered)
        atomic_fetch_add(&client->gates.under_way, 1);
    pass->is_entered = 1;
}

void gate_leave(struct tl_client *client, gate_pass *pass)
{
    if (pass->is_entered) {
        const unsigned before = atomic_fetch_sub(&client->gates.under_way, 1);

        assert(before > 0);
        (void)before;
    }
    pass->is_entered = 0;
}

tl_status gate_begin(struct tl_client *client, gate_pass *pass, const gate_send *send)
{
    channel_gates *all = &client->gates;
    int64_t at_us = 0;
    tl_status status = TL_OK;

    pass->again_ms = 0;
    if (send->kind == GATE_ASK)
        status = gate_enter(client, pass, send->channel, send->op_code);
    else if (send->kind == GATE_ARM)
        status = gate_check(client, send->channel, send->op_code, 1);
    if (status != TL_OK || !atomic_load(&all->any))
        return status;
    pthread_mutex_lock(&all->mutex);
    status = gate_pass_breakers(client, pass, send);
    if (status == TL_OK && send->kind != GATE_QUERY)
        status = gate_take_permits(client, pass, send, &at_us);
    pthread_mutex_unlock(&all->mutex);
    if (status != TL_OK || send->kind == GATE_QUERY)
        return status;
    if (at_us > clock_boottime_us())
        clock_sleep_until_ms(at_us / 1000 + 1);
    /* It may have waited: for a probe, a permit or its moment. */
    status = gate_check(client, send->channel, send->op_code, 1);
    if (status != TL_OK)
        gate_give_back(client, pass);
    return status;
}

/* ----------------------------------------------------------------------- it is over -- */

int gate_has_permit(const gate_pass *pass)
{
    return pass->permit[0] != NULL || pass->permit[1] != NULL;
}

int gate_has_probe(const gate_pass *pass)
{
    return pass->probe[0] != NULL || pass->probe[1] != NULL;
}

/* A handle may outlive its client, and a child has its parent's handles: then nothing is held. */
static int is_ours(const struct tl_client *client, gate_pass *pass)
{
    if (!atomic_load(&client->closed) && client->generation == process_generation())
        return 1;
    memset(pass->permit, 0, sizeof pass->permit);
    memset(pass->probe, 0, sizeof pass->probe);
    return 0;
}

void gate_give_back(struct tl_client *client, gate_pass *pass)
{
    channel_gates *all = &client->gates;

    if (!gate_has_permit(pass) || !is_ours(client, pass))
        return;
    pthread_mutex_lock(&all->mutex);
    gate_free_permits(pass);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
}

/* Whoever got no further had its turn: else it might take each.  Needs: the mutex held. */
static void end_probes(gate_pass *pass, gate_heard heard)
{
    gate_end_probes(pass, heard != GATE_NOTHING ? heard : GATE_UNKNOWN);
}

void gate_over(struct tl_client *client, gate_pass *pass, const char *channel, const char *op_code,
               gate_heard heard)
{
    channel_gates *all = &client->gates;

    gate_give_back(client, pass);
    if (pass->is_counted || (!atomic_load(&all->any) && !gate_has_probe(pass)) ||
        !is_ours(client, pass))
        return;
    pass->is_counted = 1;
    /* A trade may stay in doubt though the channel answered: its send was declined, and nobody knows
     * of an earlier one. */
    if (pass->heard == GATE_ANSWER && heard == GATE_UNKNOWN)
        heard = GATE_ANSWER;
    pthread_mutex_lock(&all->mutex);
    if (gate_has_probe(pass))
        end_probes(pass, heard != GATE_NOTHING ? heard : pass->heard);
    else
        for (unsigned i = 0; i < GATES_OF_ONE && heard != GATE_NOTHING; i++)
            gate_count(gate_find(all, channel, op_code, i), heard);
    pthread_mutex_unlock(&all->mutex);
}

void gate_drop(struct tl_client *client, gate_pass *pass)
{
    gate_leave(client, pass);
    gate_give_back(client, pass);
    if (!gate_has_probe(pass) || !is_ours(client, pass))
        return;
    pthread_mutex_lock(&client->gates.mutex);
    end_probes(pass, GATE_NOTHING);
    pthread_mutex_unlock(&client->gates.mutex);
}

/* ----------------------------------------------------------------- drains, metrics -- */

int64_t gates_obeyed(struct tl_client *client)
{
    channel_gates *all = &client->gates;
    int64_t since_us;

    if (!atomic_load(&all->any))
        return 0;
    pthread_mutex_lock(&all->mutex);
    if (drain_holds(all) && atomic_load(&all->under_way) == 0)
        all->drain.is_obeyed = 1;
    since_us = all->drain.is_obeyed ? all->drain.since_us : 0;
    pthread_mutex_unlock(&all->mutex);
    return since_us;
}

int64_t gates_drained_ms(struct tl_client *client)
{
    channel_gates *all = &client->gates;
    int64_t for_ms = -1;

    if (!atomic_load(&all->any))
        return -1;
    pthread_mutex_lock(&all->mutex);
    if (all->drain.since_us != 0)
        for_ms = clock_boottime_ms() - all->drain.read_ms;
    pthread_mutex_unlock(&all->mutex);
    return for_ms;
}

const struct gate *gates_next(channel_gates *all, const struct gate *after, gate_counts *counts)
{
    const struct gate *one;

    pthread_mutex_lock(&all->mutex);
    one = after != NULL ? after->next : all->list;
    if (one != NULL) {
        *counts = (gate_counts){.channel = one->channel,
                                .op_code = one->op_code,
                                .was_limited = one->was_limited,
                                .has_breaker = one->unknowns > 0,
                                .is_open = one->is_open,
                                .used = one->used};
        memcpy(counts->refused, one->refused, sizeof counts->refused);
    }
    pthread_mutex_unlock(&all->mutex);
    return one;
}

/* ------------------------------------------------------------------- for layers above -- */

tl_status tl_channel_check(tl_client *client, const char *channel, const char *op_code)
{
    error_clear();
    TRY(client_check(client));
    if (op_code == NULL)
        return error_set(TL_INVALID, "op_code is NULL");
    return gate_check(client, channel, op_code, 0);
}

int tl_channel_may_probe(tl_client *client, const char *channel, const char *op_code)
{
    int may;

    if (client_check(client) != TL_OK || channel == NULL || op_code == NULL ||
        gate_check(client, channel, op_code, 1) != TL_OK)
        return 0;
    pthread_mutex_lock(&client->gates.mutex);
    may = gate_probe_is_free(client, channel, op_code, 0);
    pthread_mutex_unlock(&client->gates.mutex);
    return may;
}
