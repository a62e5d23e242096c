/* The table of workflows/README.md as code: from what is known of a trade in doubt it computes what
 * is done next.  Touches no state. */
#include "resolver.h"

#include <tradelock/lane.h>

#include <stddef.h>

static resolver_action take_step(resolver_step step)
{
    resolver_action action = {.step = step, .outcome = TL_OUTCOME_UNKNOWN};

    return action;
}

static resolver_action fail(tl_proof proof)
{
    resolver_action action = take_step(RESOLVE_FAIL);

    action.proof = proof;
    return action;
}

/* Notes what every put-back writes, whatever its reason: that a cancel was tried, and that the
 * channel knows the payment. */
static void note_findings(const resolver_facts *facts, resolver_action *action)
{
    int seen = (facts->queried && (facts->query == TL_QUERY_PENDING)) ||
               (facts->cancelled && facts->cancel == TL_CANCEL_ALREADY_DONE) ||
               (facts->sent && facts->execute == TL_EXECUTE_ACCEPTED);

    action->findings.seen_by_channel = seen;
    action->findings.not_found_reset = seen;
    action->findings.cancel_tried = facts->cancelled;
}

static resolver_action park(const resolver_facts *facts, const char *reason)
{
    resolver_action action = take_step(RESOLVE_PARK);

    /* A parked trade keeps its first reason, with which a person has to deal. */
    action.reason = facts->parked ? NULL : reason;
    note_findings(facts, &action);
    return action;
}

/* Puts back by schedule.  But a parked trade stays parked, and used-up attempts park it. */
static resolver_action wait_for(const resolver_facts *facts, tl_outcome outcome,
                                int64_t not_before_us)
{
    resolver_action action;

    if (facts->parked || facts->attempts >= facts->attempts_max) {
        action = park(facts, PARK_ATTEMPTS);
        action.outcome = outcome;
        return action;
    }
    action = take_step(RESOLVE_WAIT);
    action.outcome = outcome;
    action.not_before_us = not_before_us;
    note_findings(facts, &action);
    return action;
}

static int before_deadline(const resolver_facts *facts)
{
    return facts->deadline_us == 0 || facts->now_us < facts->deadline_us;
}

/* Sends the same key, perhaps again, unless something forbids every send. */
static resolver_action send_or_park(const resolver_facts *facts)
{
    if (facts->conflict)
        return park(facts, PARK_CONFLICT);
    if (facts->parked || facts->cancel_tried)
        return park(facts, PARK_NO_WAY);
    return take_step(RESOLVE_SEND);
}

/* Last part of rules 4 and 5: sends again only if the channel pays a key once. */
static resolver_action send_again_or_park(const resolver_facts *facts)
{
    if (!facts->channel.idempotent)
        return park(facts, PARK_NO_WAY);
    if (!before_deadline(facts))
        return park(facts, PARK_DEADLINE);
    return send_or_park(facts);
}

/* Rule 4: the channel did not know the payment twice, late enough. */
static resolver_action after_counted_not_found(const resolver_facts *facts)
{
    if (facts->channel.not_found_final)
        return fail(TL_PROOF_NOT_FOUND);
    if (facts->has_cancel && !facts->cancelled)
        return take_step(RESOLVE_CANCEL);
    if (facts->has_cancel) {
        if (facts->cancel == TL_CANCEL_CANCELLED && facts->channel.cancel_final)
            return fail(TL_PROOF_CANCELLED);
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    }
    if (facts->cancel_tried)
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    return send_again_or_park(facts);
}

/* Whether there is nothing to wait for.  That is so if "no such payment" would prove nothing and
 * lead to the same key again: the key pays once, even if another send of it is on its way. */
static int may_send_at_once(const resolver_facts *facts)
{
    return facts->channel.idempotent && !facts->channel.not_found_final && !facts->has_cancel &&
           before_deadline(facts) && !facts->conflict && !facts->parked && !facts->cancel_tried;
}

/* Rule 3, "no such payment": send the same key at once, or the answer comes too early, or is the
 * first, or lies within the grace, or counts. */
static resolver_action after_not_found(const resolver_facts *facts)
{
    int64_t grace_us = facts->grace_ms * 1000;
    resolver_action action;

    if (facts->seen_by_channel)
        return park(facts, PARK_CONTRADICTION);
    if (may_send_at_once(facts))
        return take_step(RESOLVE_SEND);
    if (facts->now_us < facts->send_until_us)
        return wait_for(facts, TL_OUTCOME_UNKNOWN, facts->send_until_us);
    if (facts->not_found_since_us == 0) {
        action = wait_for(facts, TL_OUTCOME_UNKNOWN, facts->now_us + grace_us);
        action.findings.not_found_first = 1;
        return action;
    }
    if (facts->now_us < facts->not_found_since_us + grace_us)
        return wait_for(facts, TL_OUTCOME_UNKNOWN, facts->not_found_since_us + grace_us);
    return after_counted_not_found(facts);
}

/* "Failed" speaks for every send of a key only if the channel binds its first answer to the key, or
 * if there was one send.  Else another send may still be on its way and be paid.  Then "failed"
 * counts as "no such payment" does: after send_until and the grace. */
static resolver_action after_failed(const resolver_facts *facts)
{
    int64_t counts_us = facts->send_until_us + facts->grace_ms * 1000;

    if (facts->sends <= 1 || facts->channel.replays_first_answer)
        return fail(TL_PROOF_DECLINED);
    if (facts->declined)
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0); /* it was sent just now */
    if (facts->now_us < counts_us)
        return wait_for(facts, TL_OUTCOME_UNKNOWN, counts_us);
    return fail(TL_PROOF_DECLINED);
}

static resolver_action after_query(const resolver_facts *facts)
{
    switch (facts->query) {
    case TL_QUERY_SUCCEEDED:
        return take_step(RESOLVE_SUCCEED);
    case TL_QUERY_FAILED:
        return after_failed(facts);
    case TL_QUERY_PENDING:
        return wait_for(facts, TL_OUTCOME_PENDING, 0);
    case TL_QUERY_NOT_FOUND:
        /* The query was only to confirm a decline; the payment was sent just now. */
        if (facts->declined)
            return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
        return after_not_found(facts);
    case TL_QUERY_UNREACHABLE:
    default:
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    }
}

/* After a decline.  A decline of one of several sends says nothing of the others. */
static resolver_action after_decline(const resolver_facts *facts)
{
    if (facts->sends <= 1 || facts->channel.replays_first_answer)
        return fail(TL_PROOF_DECLINED);
    if (!facts->channel.can_query)
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    return facts->declined ? after_query(facts) : take_step(RESOLVE_QUERY);
}

static resolver_action after_send(const resolver_facts *facts)
{
    switch (facts->execute) {
    case TL_EXECUTE_SUCCEEDED:
        return take_step(RESOLVE_SUCCEED);
    case TL_EXECUTE_DECLINED:
        return after_decline(facts);
    case TL_EXECUTE_RETRY_LATER:
        return wait_for(facts, TL_OUTCOME_RETRY_LATER, 0);
    case TL_EXECUTE_NOT_SENT:
        return wait_for(facts, TL_OUTCOME_NOT_SENT, 0);
    case TL_EXECUTE_ACCEPTED:
        return wait_for(facts, TL_OUTCOME_ACCEPTED, 0);
    case TL_EXECUTE_UNKNOWN:
    default:
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    }
}

/* Refuses what two operators decided, and parks: a person has to look at the trade again. */
static resolver_action refuse(const resolver_facts *facts, const char *reason)
{
    resolver_action action = park(facts, reason);

    action.reason = reason;
    action.refused = 1;
    action.outcome = TL_OUTCOME_PENDING;
    return action;
}

static resolver_action fail_by_operators(void)
{
    resolver_action action = fail(TL_PROOF_OPERATORS);

    action.by_evidence = 1;
    return action;
}

/* Two operators said that it failed.  A channel that can be asked is asked once before that is
 * booked.  A payment that it does not call failed is cancelled, if that is possible, so that a late
 * request is not paid.  A cancel without an answer does not stop the failure. */
static resolver_action after_decided_failed(const resolver_facts *facts)
{
    if (facts->now_us < facts->send_until_us)
        /* A restore put the trade in doubt again, and its send may be under way. */
        return wait_for(facts, TL_OUTCOME_UNKNOWN, facts->send_until_us);
    if (!facts->channel.can_query)
        return fail_by_operators();
    if (!facts->queried)
        return take_step(RESOLVE_QUERY);
    switch (facts->query) {
    case TL_QUERY_SUCCEEDED:
        return take_step(RESOLVE_SUCCEED);
    case TL_QUERY_FAILED:
        return fail_by_operators();
    case TL_QUERY_PENDING:
        if (!facts->although_pending)
            return refuse(facts, PARK_PENDING);
        break;
    case TL_QUERY_NOT_FOUND:
        break;
    case TL_QUERY_UNREACHABLE:
    default:
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    }
    if (facts->has_cancel && !facts->cancelled)
        return take_step(RESOLVE_CANCEL);
    if (facts->cancelled && facts->cancel == TL_CANCEL_ALREADY_DONE)
        return refuse(facts, PARK_PAID);
    return fail_by_operators();
}

/* One person may have filed this evidence of a failure.  So a channel that can be asked is asked
 * whether it contradicts. */
static resolver_action after_failure_evidence(const resolver_facts *facts)
{
    resolver_action action = fail(TL_PROOF_DECLINED);

    action.by_evidence = 1;
    if (!facts->channel.can_query)
        return action;
    if (!facts->queried)
        return take_step(RESOLVE_QUERY);
    switch (facts->query) {
    case TL_QUERY_SUCCEEDED:
        return take_step(RESOLVE_SUCCEED);
    case TL_QUERY_PENDING:
        return wait_for(facts, TL_OUTCOME_PENDING, 0);
    case TL_QUERY_NOT_FOUND:
        if (facts->now_us < facts->send_until_us)
            return wait_for(facts, TL_OUTCOME_UNKNOWN, facts->send_until_us);
        return action;
    case TL_QUERY_FAILED:
        return action;
    case TL_QUERY_UNREACHABLE:
    default:
        return wait_for(facts, TL_OUTCOME_UNKNOWN, 0);
    }
}

/* Rule 1.  Evidence of success is stronger than anybody who says that it failed. */
static int evidence_ends_it(const resolver_facts *facts, resolver_action *action)
{
    if (facts->success_evidence || facts->decided == TL_DECISION_PAID) {
        *action = take_step(RESOLVE_SUCCEED);
    } else if (facts->decided == TL_DECISION_FAILED) {
        *action = after_decided_failed(facts);
        return 1;
    } else if (facts->failure_evidence || (facts->decline_evidence && facts->sends == 1)) {
        *action = after_failure_evidence(facts);
        return 1;
    } else {
        return 0;
    }
    action->by_evidence = 1;
    return 1;
}

/* The row names a channel that is not registered: what can be decided without it is, and all else
 * waits, which is no attempt. */
static resolver_action without_channel(const resolver_facts *facts)
{
    resolver_action action = take_step(RESOLVE_SUCCEED);

    action.by_evidence = 1;
    if (facts->success_evidence || facts->decided == TL_DECISION_PAID)
        return action;
    if (facts->decided == TL_DECISION_FAILED && facts->now_us >= facts->send_until_us)
        return fail_by_operators();
    if (facts->sends == 0 && !before_deadline(facts))
        return fail(TL_PROOF_NEVER_LEFT);
    action = take_step(facts->parked ? RESOLVE_PARK : RESOLVE_WAIT);
    action.findings.not_counted = 1;
    return action;
}

static resolver_action decide(const resolver_facts *facts)
{
    resolver_action action;

    if (facts->nobody)
        return without_channel(facts);
    if (facts->sent)
        return after_send(facts);
    if (evidence_ends_it(facts, &action))
        return action;
    if (facts->sends == 0)
        return before_deadline(facts) && !facts->only_asked ? send_or_park(facts)
                                                            : fail(TL_PROOF_NEVER_LEFT);
    if (!facts->channel.can_query)
        return send_again_or_park(facts);
    return facts->queried ? after_query(facts) : take_step(RESOLVE_QUERY);
}

/* Money may have moved, in another amount or epoch: only operators fail it. */
resolver_action resolver_decide(const resolver_facts *facts)
{
    const resolver_action action = decide(facts);

    return action.step == RESOLVE_FAIL && facts->conflict && action.proof != TL_PROOF_OPERATORS
               ? park(facts, PARK_CONFLICT)
               : action;
}
