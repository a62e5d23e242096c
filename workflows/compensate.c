/*
 * Carries out what the resolver's table says.  It gathers the facts, does what the table says, and
 * asks the table again, until the trade is ended or put back.  It calls the channel's callbacks,
 * and touches the trade through its lock and its evidence.
 */
#include "compensate.h"

#include "ending.h"
#include "memory.h"
#include "resolver.h"
#include "schedule.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>
#include <tradelock/test_hooks.h>

#include <stdlib.h>
#include <string.h>

typedef struct compensation {
    compensate_call call; /* a copy */
    attempt attempt;
    ending ending;
    resolver_facts facts;
    char parked[64];      /* the reason that the row already has; "": not parked */
    tl_reply filed;       /* reference and remark of the evidence that counts */
    uint64_t decided_rev; /* the revision that operators decided about */
    const char *asked;    /* the channel's last answer in this attempt; NULL: none */
    ending_later later;
} compensation;

int compensate_is_poison(uint32_t claims, unsigned poison)
{
    return claims >= 2 && claims - 2 >= poison;
}

/* ------------------------------------------------------------------- the facts -- */

static void read_channel(compensation *c)
{
    const tl_workflow *w = &c->call.of->given;
    resolver_facts *facts = &c->facts;

    facts->channel = w->channel;
    facts->only_asked = w->execute == NULL;
    facts->channel.idempotent &= !facts->only_asked;
    facts->has_cancel = w->cancel != NULL;
    facts->grace_ms = w->policy.grace_ms;
    facts->attempts_max = w->policy.attempts;
}

static void read_row(compensation *c, const tl_view *view)
{
    resolver_facts *facts = &c->facts;

    facts->now_us = view->now_us;
    facts->send_until_us = view->send_until_us;
    facts->deadline_us = view->deadline_us;
    facts->not_found_since_us = view->not_found_since_us;
    facts->sends = view->sends;
    facts->attempts = view->attempts;
    facts->parked = view->parked[0] != '\0';
    facts->conflict = view->conflict;
    facts->seen_by_channel = view->seen_by_channel || view->channel_ref[0] != '\0';
    facts->cancel_tried = view->cancel_tried;
    memcpy(c->parked, view->parked, sizeof c->parked);
    if (tl_test_mutated("query-first"))
        facts->sends = 0;
    if (tl_test_mutated("grace")) {
        facts->grace_ms = 0;
        facts->send_until_us = 0;
        facts->not_found_since_us = view->now_us;
    }
}

static void keep_filed(compensation *c, const tl_evidence_row *row)
{
    if (row->channel_ref != NULL)
        (void)tl_reply_ref(&c->filed, row->channel_ref);
    tl_reply_remark(&c->filed, "evidence of %s%s%s", row->source,
                    row->remark != NULL && row->remark[0] != '\0' ? ": " : "",
                    row->remark != NULL ? row->remark : "");
}

/* Whether evidence or a decision says that money moved; then evidence of a failure does not
 * count. */
static int money_moved(const resolver_facts *facts)
{
    return facts->success_evidence || facts->decided == TL_DECISION_PAID;
}

/* Evidence counts only for the epoch and the channel key that it names.  But a payment that
 * operators call paid may be of an earlier epoch, so its reference is kept. */
static int read_evidence_row(void *context, const tl_evidence_row *row)
{
    compensation *c = context;
    resolver_facts *facts = &c->facts;
    const char *key = row->channel_key != NULL ? row->channel_key : "";

    if (facts->decided == TL_DECISION_PAID && !facts->success_evidence &&
        strcmp(row->outcome, "SUCCEEDED") == 0)
        keep_filed(c, row);
    if (row->epoch != c->attempt.seen.epoch || strcmp(key, c->attempt.channel_key) != 0)
        return 0;
    if (row->contradicts == 2)
        return 0; /* another payment's */
    if (strcmp(row->outcome, "SUCCEEDED") == 0) {
        facts->success_evidence = 1;
        keep_filed(c, row);
    } else if (strcmp(row->outcome, "FAILED") == 0 && row->final) {
        facts->failure_evidence = 1;
        if (!money_moved(facts))
            keep_filed(c, row);
    } else if (strcmp(row->outcome, "DECLINED") == 0) {
        facts->decline_evidence = 1;
        if (!money_moved(facts) && !facts->failure_evidence)
            keep_filed(c, row);
    }
    return 0;
}

/* Decisions come in the order of the row's revisions.  The last one is in force, unless a worker
 * refused it. */
static int read_decision(void *context, const tl_resolution_row *row)
{
    compensation *c = context;

    if (row->epoch != c->attempt.seen.epoch || row->decision == TL_DECISION_CLEAR)
        return 0;
    if (row->confirms) {
        c->facts.decided = (int)row->decision;
        c->facts.although_pending = row->although_pending;
        c->decided_rev = row->rev;
    } else if (row->refused && row->rev == c->decided_rev &&
               (int)row->decision == c->facts.decided) {
        c->facts.decided = 0;
    }
    return 0;
}

static tl_status read_evidence(compensation *c)
{
    const tl_key *key = &c->attempt.seen.key;
    tl_status status;

    if (!tl_lock_on_file(c->call.lock))
        return TL_OK;
    status = tl_resolution_list(c->call.client, key, read_decision, c);
    c->attempt.seen.after_failure = c->facts.decided == TL_DECISION_PAID;
    return status == TL_OK ? tl_evidence_list(c->call.client, key, read_evidence_row, c) : status;
}

/* ------------------------------------------------------------------- the calls -- */

/* A call gets the execute time-out, but no more than leaves the hold its commit budget. */
static int64_t call_timeout_ms(const compensation *c)
{
    const tl_policy *policy = &c->call.of->given.policy;
    int64_t left_ms = tl_lock_remaining_ms(c->call.lock) - policy->commit_ms;

    return left_ms < policy->execute_ms ? left_ms : policy->execute_ms;
}

static const char *query_name(tl_query_result answer)
{
    switch (answer) {
    case TL_QUERY_SUCCEEDED:
        return "asked: succeeded";
    case TL_QUERY_FAILED:
        return "asked: failed";
    case TL_QUERY_PENDING:
        return "asked: pending";
    case TL_QUERY_NOT_FOUND:
        return "asked: not found";
    default:
        return "asked: no answer";
    }
}

static const char *cancel_name(tl_cancel_result answer)
{
    switch (answer) {
    case TL_CANCEL_CANCELLED:
        return "cancel: cancelled";
    case TL_CANCEL_ALREADY_DONE:
        return "cancel: already done";
    default:
        return "cancel: no answer";
    }
}

/* TL_OK: the channel may be called now; a breaker that is open lets one probe through.  A probe
 * uses up no attempt, so that an outage parks nothing by it. */
static tl_status may_call(compensation *c)
{
    const tl_status status = tl_lock_may_call(c->call.lock);

    if (status == TL_OK && tl_lock_probes(c->call.lock))
        c->facts.attempts_max = UINT32_MAX;
    return status;
}

/* Whether a call was answered.  After a send only that counts: a channel that answers queries alone
 * must not seem to take payments. */
static void note_heard(compensation *c, int answered)
{
    if (!c->facts.sent || c->facts.execute == TL_EXECUTE_NOT_SENT)
        tl_lock_report_call(c->call.lock, answered);
}

static tl_status do_query(compensation *c)
{
    const tl_status status = may_call(c);
    int64_t timeout_ms;

    if (status != TL_OK)
        return status;
    timeout_ms = call_timeout_ms(c);
    c->facts.queried = 1;
    c->facts.declined = c->facts.sent;
    c->facts.query = TL_QUERY_UNREACHABLE;
    if (timeout_ms <= 0)
        return TL_OK;
    c->call.calls->queries++;
    c->facts.query = attempt_query(&c->attempt, timeout_ms);
    c->asked = query_name(c->facts.query);
    note_heard(c, c->facts.query != TL_QUERY_UNREACHABLE);
    return TL_OK;
}

static tl_status do_cancel(compensation *c)
{
    const tl_status status = may_call(c);
    int64_t timeout_ms;

    if (status != TL_OK)
        return status;
    timeout_ms = call_timeout_ms(c);
    c->facts.cancelled = 1;
    c->facts.cancel = TL_CANCEL_UNKNOWN;
    if (timeout_ms <= 0)
        return TL_OK;
    c->call.calls->cancels++;
    c->facts.cancel = attempt_cancel(&c->attempt, timeout_ms);
    c->asked = cancel_name(c->facts.cancel);
    note_heard(c, c->facts.cancel != TL_CANCEL_UNKNOWN);
    return TL_OK;
}

/* TL_OK: it was sent, or certainly not sent; decide again.  Else nothing was armed or sent. */
static tl_status do_send(compensation *c)
{
    const tl_policy *policy = &c->call.of->given.policy;
    const tl_status may = may_call(c);
    const tl_status status = may == TL_OK ? tl_lock_arm(c->call.lock, policy->max_hold_ms) : may;
    int64_t until_ms;

    if (status != TL_OK)
        return status;
    c->facts.sends++;
    c->attempt.seen.sends = c->facts.sends;
    c->facts.sent = 1;
    c->facts.execute = TL_EXECUTE_NOT_SENT;
    until_ms = schedule_now_ms() + policy->execute_ms; /* before tl_may_send() is asked */
    if (!tl_may_send(c->call.lock, policy->execute_ms))
        return TL_OK;
    c->call.calls->sends++;
    c->facts.execute = attempt_execute(&c->attempt, until_ms);
    if (c->facts.execute != TL_EXECUTE_NOT_SENT)
        tl_lock_report_call(c->call.lock, c->facts.execute != TL_EXECUTE_UNKNOWN);
    c->asked = NULL;
    return TL_OK;
}

/* ------------------------------------------------------------------ the ending -- */

/* No longer than a hold and a grace: what says more was written by a clock that was set right
 * since, or by operators.  A wait that is cut short costs no attempt. */
static void put_back(compensation *c, const resolver_action *action)
{
    const tl_policy *policy = &c->call.of->given.policy;
    const int64_t longest_ms = policy->max_hold_ms + policy->grace_ms;
    const int64_t asked_ms = attempt_come_again_ms(&c->attempt);
    const int64_t idle_us = action->not_before_us - c->facts.now_us;
    int64_t least_ms = idle_us > 0 ? idle_us / 1000 + 1 : 0; /* looking again cannot help before */
    int is_cut = least_ms > longest_ms;

    if (is_cut)
        least_ms = longest_ms;
    ending_put_back(
        &c->ending, action->outcome,
        schedule_next_ms(policy, c->facts.attempts, asked_ms > least_ms ? asked_ms : least_ms));
    c->ending.findings = action->findings;
    if (is_cut || tl_lock_probes(c->call.lock))
        c->ending.findings.not_counted = 1;
}

/* Puts the channel's answer in front of the callback's remark, so that operators who have to decide
 * find it on the row (tools/tradelock/said.c). */
static void note_answer(compensation *c)
{
    tl_reply *reply = &c->attempt.reply;
    char remark[TL_REMARK_MAX + 1];

    if (c->asked == NULL)
        return;
    memcpy(remark, reply->remark, sizeof remark);
    tl_reply_remark(reply, "%s%s%s", c->asked, remark[0] != '\0' ? "; " : "", remark);
}

static void finish(compensation *c, const resolver_action *action)
{
    ending *e = &c->ending;

    if (action->by_evidence) {
        c->attempt.reply = c->filed;
        /* Operators' reasons are not for customers. */
        if (action->proof == TL_PROOF_OPERATORS)
            tl_reply_remark(&c->attempt.reply, "decided by two operators");
    } else if (action->step == RESOLVE_PARK || action->step == RESOLVE_WAIT) {
        note_answer(c);
    }
    switch (action->step) {
    case RESOLVE_SUCCEED:
        ending_success(e);
        break;
    case RESOLVE_FAIL:
        ending_failure(e, action->proof);
        break;
    case RESOLVE_PARK:
        ending_park(e, action->outcome, action->reason != NULL ? action->reason : c->parked);
        e->findings = action->findings;
        break;
    case RESOLVE_WAIT:
    default:
        put_back(c, action);
    }
    e->by_evidence = action->by_evidence;
}

/* After an arming that was refused or undone: nothing was sent, and the next attempt finds out why.
 * While its channel is paused nobody claims the trade, so it may be due at once.  TL_OK: it is to
 * be put back; else it cannot be. */
static tl_status put_back_unarmed(compensation *c, tl_status status)
{
    /* What its channel's limit puts off is no attempt, and waits as after the first one. */
    const uint32_t attempts = status == TL_OVERLOADED ? 0 : c->facts.attempts;
    int is_paused;

    if (status == TL_LOST || tl_status_class(status) == TL_CLASS_UNKNOWN)
        return status;
    is_paused = workflow_check_paused(c->call.of) != TL_OK;
    ending_put_back(&c->ending, TL_OUTCOME_UNKNOWN,
                    is_paused ? 0
                              : schedule_next_ms(&c->call.of->given.policy, attempts,
                                                 tl_lock_come_again_ms(c->call.lock)));
    c->ending.findings.not_counted = status == TL_ASK_CHANNEL || status == TL_OVERLOADED;
    return TL_OK;
}

/* Writes first that the decision is over, so that nobody ends the trade by it later. */
static tl_status refuse_decision(compensation *c, const resolver_action *action)
{
    tl_status status =
        tl_resolution_refuse(c->call.client, &c->attempt.seen.key, c->decided_rev, action->reason);

    if (status != TL_OK)
        return put_back_unarmed(c, status);
    finish(c, action);
    return TL_OK;
}

/* TL_OK: the ending is chosen.  Else there is none, and the hold has to be waited for. */
static tl_status resolve(compensation *c)
{
    for (;;) {
        resolver_action action = resolver_decide(&c->facts);
        tl_status status;

        switch (action.step) {
        case RESOLVE_QUERY:
            status = do_query(c);
            break;
        case RESOLVE_CANCEL:
            status = do_cancel(c);
            break;
        case RESOLVE_SEND:
            status = do_send(c);
            break;
        case RESOLVE_SUCCEED:
        case RESOLVE_FAIL:
        case RESOLVE_WAIT:
        case RESOLVE_PARK:
        default:
            if (action.refused)
                return refuse_decision(c, &action);
            finish(c, &action);
            return TL_OK;
        }
        if (status != TL_OK)
            return put_back_unarmed(c, status);
    }
}

static tl_status choose(compensation *c)
{
    tl_status status;

    read_channel(c);
    read_row(c, tl_lock_view(c->call.lock));
    if (compensate_is_poison(tl_lock_view(c->call.lock)->claims, c->call.of->given.policy.poison)) {
        ending_park(&c->ending, TL_OUTCOME_UNKNOWN, c->facts.parked ? c->parked : PARK_POISON);
        return TL_OK;
    }
    status = read_evidence(c);
    /* Nothing may be decided without the evidence, so the lane is due again later. */
    return status == TL_OK ? resolve(c) : put_back_unarmed(c, status);
}

tl_status compensate_give_back(tl_lock *lock)
{
    const tl_findings findings = {.not_counted = 1, .due_as_before = 1};
    tl_ending what = TL_ENDING_INIT;

    what.outcome = TL_OUTCOME_UNKNOWN;
    what.next_run_ms = 0;
    return tl_lock_put_back(lock, &what, &findings);
}

/* Nothing was begun, so this is no attempt.  The lane becomes due again later: at once, it would be
 * claimed and put back without end. */
static tl_status put_back_unbegun(const workflow *of, tl_lock *lock, uint32_t attempts)
{
    const tl_findings findings = {.not_counted = 1, .due_as_before = 1};
    tl_ending what = TL_ENDING_INIT;

    what.outcome = TL_OUTCOME_UNKNOWN;
    what.next_run_ms = schedule_next_ms(&of->given.policy, attempts, 0);
    return tl_lock_put_back(lock, &what, &findings);
}

/* ---------------------------------------------------------------- ending it later -- */

static void compensation_free(compensation *c)
{
    attempt_free(&c->attempt);
    free(c);
}

static void end_with(void *context, tl_status status)
{
    compensation *c = context;
    const compensate_call call = c->call;

    compensation_free(c);
    call.over(call.context, status);
}

static void ended_later(void *context, tl_status status)
{
    const compensation *c = context;

    later_leave(c->later.all);
    end_with(context, status);
}

static void hand_back(void *context, later_item *item)
{
    const compensation *c = context;

    c->call.hand_back(c->call.context, item);
}

/* Whether the ending can be submitted with the lines that its callback wrote. */
static tl_status write_lines(compensation *c)
{
    ending_book(&c->ending);
    return c->attempt.book != NULL && tl_book_check(c->attempt.book) == TL_NO_MEMORY ? TL_NO_MEMORY
                                                                                     : TL_OK;
}

/* TL_OK: the ending has c from here on.  Else this thread writes it, and tries again what failed
 * for want of memory. */
static tl_status submit(compensation *c, const compensate_call *call)
{
    tl_status status = write_lines(c);

    c->later.all = call->all;
    c->later.ending = &c->ending;
    memcpy(c->later.log_no, tl_log_uuid(), sizeof c->later.log_no);
    c->later.over = ended_later;
    c->later.hand_back = hand_back;
    c->later.context = c;
    if (status == TL_OK)
        status = later_enter(call->all);
    if (status != TL_OK)
        return status;
    status = ending_later_submit(&c->later);
    if (status != TL_OK)
        later_leave(call->all);
    return status;
}

/* --------------------------------------------------------------------- the attempt -- */

static tl_status begin(compensation *c, const compensate_call *call)
{
    const tl_view *view = tl_lock_view(call->lock);
    const tl_key key = {view->serial_no, view->cust_no, call->of->op_code};
    const workflow *of = workflow_of_channel(call->of, view->channel);
    tl_status status = TL_OK;

    c->facts.nobody = of == NULL;
    if (of == NULL)
        workflow_tell_strange(of = call->of, view);
    else if (call->of->former_count > 0 && workflow_may_claim_of(of, 1) == 0)
        status = TL_OVERLOADED; /* it was claimed for another channel, which is not paused */
    if (status == TL_OK)
        status = attempt_init(&c->attempt, of, &key, view->payload, view->payload_size);
    if (status != TL_OK)
        return status;
    c->call = *call;
    c->call.of = of;
    attempt_show(&c->attempt, view, attempt_since_ms(c->call.of, c->call.lock));
    c->ending.client = c->call.client;
    c->ending.lock = c->call.lock;
    c->ending.attempt = &c->attempt;
    return TL_OK;
}

/* Makes its calls, and has the ending written. */
static void carry_out(compensation *c, const compensate_call *call)
{
    tl_status status;

    tl_log_context_set(&c->attempt.said);
    status = choose(c);
    if (status == TL_OK && call->all != NULL && !ending_is_callback(&c->ending) &&
        submit(c, call) == TL_OK)
        return;
    if (status == TL_OK)
        status = ending_run(&c->ending);
    end_with(c, status);
}

void compensate(const compensate_call *call)
{
    compensation *c = workflow_memory(sizeof *c);
    tl_status status;

    if (c != NULL && begin(c, call) == TL_OK) {
        carry_out(c, call);
        tl_log_context_set(NULL);
        return;
    }
    if (c != NULL)
        compensation_free(c);
    status = put_back_unbegun(call->of, call->lock, tl_lock_view(call->lock)->attempts);
    call->over(call->context, status);
}
