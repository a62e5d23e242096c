/*
 * Every row of the resolver's table.  The rows are data: the facts that differ from a plain trade
 * in doubt, and the action that must follow.
 */
#include "resolver.h"

#include "support/theme.h"

#include <tradelock/lane.h>

#define SECOND_US INT64_C(1000000)
#define NOW_US (INT64_C(1700000000) * SECOND_US)
#define BEFORE_US (NOW_US - SECOND_US)
#define AFTER_US (NOW_US + SECOND_US)
#define GRACE_MS 60000
#define LONG_AGO_US (NOW_US - 2 * GRACE_MS * INT64_C(1000))

/* A channel that pays a key once, can be asked, and promises nothing else. */
#define CHANNEL .channel = {.name = "c", .idempotent = 1, .can_query = 1}
#define PLAIN .channel = {.name = "c", .can_query = 1}
#define MUTE .channel = {.name = "c", .idempotent = 1}
#define FINAL .channel = {.name = "c", .idempotent = 1, .can_query = 1, .not_found_final = 1}
#define CANCELS                                                                                    \
    .channel = {.name = "c", .idempotent = 1, .can_query = 1, .cancel_final = 1}, .has_cancel = 1
#define CANCELS_LOOSELY CHANNEL, .has_cancel = 1
#define REPLAYS .channel = {.name = "c", .idempotent = 1, .can_query = 1, .replays_first_answer = 1}

/* Two operators said that it failed. */
#define DECIDED .decided = TL_DECISION_FAILED
/* Nobody can send any more, the first "not found" is older than the grace. */
#define COUNTS                                                                                     \
    .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = LONG_AGO_US,                       \
    .not_found_since_us = LONG_AGO_US

/* Somebody can still send. */
#define EARLY .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = AFTER_US

/* What must follow. */
#define DOES(what) .step = what
#define FAILS(by) .step = RESOLVE_FAIL, .proof = by
#define PARKS(because) .step = RESOLVE_PARK, .reason = because
#define WAITS(sent, until_us) .step = RESOLVE_WAIT, .outcome = sent, .not_before_us = until_us

typedef struct row {
    const char *name;
    resolver_facts facts;
    resolver_step step;
    tl_proof proof;                 /* FAIL */
    const char *reason;             /* PARK */
    tl_outcome outcome;             /* WAIT, PARK */
    int64_t not_before_us;          /* WAIT */
    int first, reset, seen, cancel; /* findings */
    int refused;                    /* PARK: the operators' decision is over */
} row;

static const row rows[] = {
    /* 1: evidence ends it, before anything is asked. */
    {"success evidence", {CHANNEL, .sends = 1, .success_evidence = 1}, DOES(RESOLVE_SUCCEED)},
    {"success evidence, nothing sent as far as we know",
     {CHANNEL, .sends = 0, .success_evidence = 1},
     DOES(RESOLVE_SUCCEED)},
    {"success evidence beats failure evidence",
     {CHANNEL, .sends = 1, .success_evidence = 1, .failure_evidence = 1, .decline_evidence = 1},
     DOES(RESOLVE_SUCCEED)},
    {"success evidence ends a parked trade",
     {CHANNEL, .sends = 1, .success_evidence = 1, .parked = 1},
     DOES(RESOLVE_SUCCEED)},
    {"final failure evidence, of a channel that cannot be asked",
     {MUTE, .sends = 2, .failure_evidence = 1},
     FAILS(TL_PROOF_DECLINED)},
    {"final failure evidence: asked whether that is denied",
     {CHANNEL, .sends = 2, .failure_evidence = 1},
     DOES(RESOLVE_QUERY)},
    {"final failure evidence, and it says so too",
     {CHANNEL, .sends = 2, .failure_evidence = 1, .queried = 1, .query = TL_QUERY_FAILED},
     FAILS(TL_PROOF_DECLINED)},
    {"final failure evidence, and it does not know it yet",
     {CHANNEL, .sends = 2, .failure_evidence = 1, EARLY},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"final failure evidence, and it does not know it",
     {CHANNEL, .sends = 2, .failure_evidence = 1, COUNTS},
     FAILS(TL_PROOF_DECLINED)},
    {"final failure evidence of what was paid",
     {CHANNEL, .sends = 2, .failure_evidence = 1, .queried = 1, .query = TL_QUERY_SUCCEEDED},
     DOES(RESOLVE_SUCCEED)},
    {"final failure evidence of what is pending",
     {CHANNEL, .sends = 2, .failure_evidence = 1, .queried = 1, .query = TL_QUERY_PENDING},
     WAITS(TL_OUTCOME_PENDING, 0),
     .reset = 1,
     .seen = 1},
    {"final failure evidence, and no answer",
     {CHANNEL, .sends = 2, .failure_evidence = 1, .queried = 1, .query = TL_QUERY_UNREACHABLE},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"a decline on file counts for a single send",
     {MUTE, .sends = 1, .decline_evidence = 1},
     FAILS(TL_PROOF_DECLINED)},
    {"a decline on file says nothing of two sends",
     {CHANNEL, .sends = 2, .decline_evidence = 1},
     DOES(RESOLVE_QUERY)},

    /* 2: nothing was sent. */
    {"nothing sent: send", {PLAIN, .sends = 0}, DOES(RESOLVE_SEND)},
    {"nothing sent, before the deadline",
     {PLAIN, .sends = 0, .deadline_us = AFTER_US},
     DOES(RESOLVE_SEND)},
    {"nothing sent, after the deadline",
     {PLAIN, .sends = 0, .deadline_us = BEFORE_US},
     FAILS(TL_PROOF_NEVER_LEFT)},
    {"nothing sent, at the deadline",
     {PLAIN, .sends = 0, .deadline_us = NOW_US},
     FAILS(TL_PROOF_NEVER_LEFT)},
    {"nothing sent, but parked: never sent for", {PLAIN, .sends = 0, .parked = 1}, PARKS(NULL)},
    {"nothing sent, parked, after the deadline: may be ended",
     {PLAIN, .sends = 0, .parked = 1, .deadline_us = BEFORE_US},
     FAILS(TL_PROOF_NEVER_LEFT)},
    {"nothing sent, but an older epoch was paid",
     {PLAIN, .sends = 0, .conflict = 1},
     PARKS(PARK_CONFLICT)},
    {"two operators: failed, and the channel cannot be asked",
     {MUTE, .sends = 1, DECIDED},
     FAILS(TL_PROOF_OPERATORS)},
    {"two operators: failed: the channel is asked",
     {PLAIN, .sends = 1, DECIDED},
     DOES(RESOLVE_QUERY)},
    {"two operators: failed, nothing sent as far as we know: asked all the same",
     {PLAIN, .sends = 0, DECIDED},
     DOES(RESOLVE_QUERY)},
    {"two operators: failed, and a restore since: a send may be under way",
     {PLAIN, .sends = 1, DECIDED, .send_until_us = AFTER_US},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"decided failed: it was paid",
     {PLAIN, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_SUCCEEDED},
     DOES(RESOLVE_SUCCEED)},
    {"decided failed, and it did",
     {CANCELS, .sends = 2, DECIDED, .queried = 1, .query = TL_QUERY_FAILED},
     FAILS(TL_PROOF_OPERATORS)},
    {"decided failed: not found",
     {PLAIN, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_NOT_FOUND},
     FAILS(TL_PROOF_OPERATORS)},
    {"decided failed: no answer",
     {PLAIN, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_UNREACHABLE},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"decided failed: pending",
     {PLAIN, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_PENDING},
     PARKS(PARK_PENDING),
     .outcome = TL_OUTCOME_PENDING,
     .seen = 1,
     .reset = 1,
     .refused = 1},
    {"decided failed, parked for another reason meanwhile: pending",
     {PLAIN, .sends = 1, DECIDED, .parked = 1, .queried = 1, .query = TL_QUERY_PENDING},
     PARKS(PARK_PENDING),
     .outcome = TL_OUTCOME_PENDING,
     .seen = 1,
     .reset = 1,
     .refused = 1},
    {"decided failed although pending",
     {PLAIN, .sends = 1, DECIDED, .although_pending = 1, .queried = 1, .query = TL_QUERY_PENDING},
     FAILS(TL_PROOF_OPERATORS)},
    {"decided failed although pending: cancelled first",
     {CANCELS, .sends = 1, DECIDED, .although_pending = 1, .queried = 1, .query = TL_QUERY_PENDING},
     DOES(RESOLVE_CANCEL)},
    {"decided failed, not found: cancelled first",
     {CANCELS, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_NOT_FOUND},
     DOES(RESOLVE_CANCEL)},
    {"decided failed, and cancelled",
     {CANCELS, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_NOT_FOUND, .cancelled = 1,
      .cancel = TL_CANCEL_CANCELLED},
     FAILS(TL_PROOF_OPERATORS)},
    {"decided failed, and the cancel has no answer",
     {CANCELS, .sends = 1, DECIDED, .queried = 1, .query = TL_QUERY_NOT_FOUND, .cancelled = 1,
      .cancel = TL_CANCEL_UNKNOWN},
     FAILS(TL_PROOF_OPERATORS)},
    {"decided failed, and too late to cancel: paid, whatever was said of pending",
     {CANCELS, .sends = 1, DECIDED, .although_pending = 1, .queried = 1,
      .query = TL_QUERY_NOT_FOUND, .cancelled = 1, .cancel = TL_CANCEL_ALREADY_DONE},
     PARKS(PARK_PAID),
     .outcome = TL_OUTCOME_PENDING,
     .cancel = 1,
     .seen = 1,
     .reset = 1,
     .refused = 1},
    {"two operators: paid",
     {PLAIN, .sends = 1, .decided = TL_DECISION_PAID},
     DOES(RESOLVE_SUCCEED)},
    {"two operators: failed, and evidence of success",
     {PLAIN, .sends = 1, DECIDED, .success_evidence = 1},
     DOES(RESOLVE_SUCCEED)},
    {"nothing is sent after a cancel", {PLAIN, .sends = 0, .cancel_tried = 1}, PARKS(PARK_NO_WAY)},

    /* 3: the channel is asked first. */
    {"in doubt: ask", {CHANNEL, .sends = 1}, DOES(RESOLVE_QUERY)},
    {"in doubt on a plain channel: ask", {PLAIN, .sends = 1}, DOES(RESOLVE_QUERY)},
    {"in doubt, parked: may be asked", {PLAIN, .sends = 1, .parked = 1}, DOES(RESOLVE_QUERY)},
    {"in doubt, conflict: may be asked", {PLAIN, .sends = 1, .conflict = 1}, DOES(RESOLVE_QUERY)},
    {"in doubt after the deadline: ask",
     {CHANNEL, .sends = 1, .deadline_us = BEFORE_US},
     DOES(RESOLVE_QUERY)},
    {"succeeded",
     {PLAIN, .sends = 1, .queried = 1, .query = TL_QUERY_SUCCEEDED},
     DOES(RESOLVE_SUCCEED)},
    {"succeeded, whatever the number of sends",
     {CHANNEL, .sends = 3, .queried = 1, .query = TL_QUERY_SUCCEEDED},
     DOES(RESOLVE_SUCCEED)},
    {"failed",
     {PLAIN, .sends = 1, .queried = 1, .query = TL_QUERY_FAILED},
     FAILS(TL_PROOF_DECLINED)},
    {"pending",
     {PLAIN, .sends = 1, .queried = 1, .query = TL_QUERY_PENDING},
     WAITS(TL_OUTCOME_PENDING, 0),
     .reset = 1,
     .seen = 1},
    {"unreachable",
     {PLAIN, .sends = 1, .queried = 1, .query = TL_QUERY_UNREACHABLE},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"unreachable, long after: still in doubt",
     {FINAL, .sends = 1, .queried = 1, .query = TL_QUERY_UNREACHABLE, .send_until_us = LONG_AGO_US,
      .not_found_since_us = LONG_AGO_US},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"an answer out of range is none",
     {FINAL, .sends = 1, .queried = 1, .query = 77},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"not found while somebody could still send",
     {FINAL, .sends = 1, .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = AFTER_US,
      .not_found_since_us = LONG_AGO_US},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"not found for the first time",
     {FINAL, .sends = 1, .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = BEFORE_US},
     WAITS(TL_OUTCOME_UNKNOWN, NOW_US + GRACE_MS * INT64_C(1000)),
     .first = 1},
    {"not found within the grace",
     {FINAL, .sends = 1, .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = LONG_AGO_US,
      .not_found_since_us = BEFORE_US},
     WAITS(TL_OUTCOME_UNKNOWN, BEFORE_US + GRACE_MS * INT64_C(1000))},
    /* The same key again needs no absence that counts, where that would prove nothing. */
    {"not found, idempotent: the same key again, though somebody could still send",
     {CHANNEL, .sends = 1, EARLY},
     DOES(RESOLVE_SEND)},
    {"not found, idempotent, for the first time",
     {CHANNEL, .sends = 2, .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = BEFORE_US,
      .deadline_us = AFTER_US},
     DOES(RESOLVE_SEND)},
    {"not found, idempotent, at the last attempt: as where nobody can be asked",
     {CHANNEL, .sends = 1, EARLY, .attempts = 5},
     DOES(RESOLVE_SEND)},
    {"not found, idempotent, after the deadline: it may be paid yet",
     {CHANNEL, .sends = 1, EARLY, .deadline_us = BEFORE_US},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"not found, idempotent, after the deadline, for the first time",
     {CHANNEL, .sends = 1, .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = BEFORE_US,
      .deadline_us = BEFORE_US},
     WAITS(TL_OUTCOME_UNKNOWN, NOW_US + GRACE_MS * INT64_C(1000)),
     .first = 1},
    {"not found, idempotent, conflict: never sent for",
     {CHANNEL, .sends = 1, EARLY, .conflict = 1},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"not found, idempotent, parked: never sent for",
     {CHANNEL, .sends = 1, EARLY, .parked = 1},
     PARKS(NULL)},
    {"not found, idempotent, after a cancel: never sent for",
     {CHANNEL, .sends = 1, EARLY, .cancel_tried = 1},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"not found, idempotent, though the channel has known it",
     {CHANNEL, .sends = 1, EARLY, .seen_by_channel = 1},
     PARKS(PARK_CONTRADICTION)},
    {"not found, idempotent, but an absence that counts is cancelled",
     {CANCELS, .sends = 1, EARLY},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"not found, not idempotent: too early",
     {PLAIN, .sends = 1, EARLY},
     WAITS(TL_OUTCOME_UNKNOWN, AFTER_US)},
    {"not found, though the channel has known it",
     {FINAL, .sends = 1, COUNTS, .seen_by_channel = 1},
     PARKS(PARK_CONTRADICTION)},
    {"not found too early, though the channel has known it",
     {FINAL, .sends = 1, .queried = 1, .query = TL_QUERY_NOT_FOUND, .send_until_us = AFTER_US,
      .seen_by_channel = 1},
     PARKS(PARK_CONTRADICTION)},

    /* 4: a "not found" that counts. */
    {"counts, final", {FINAL, .sends = 1, COUNTS}, FAILS(TL_PROOF_NOT_FOUND)},
    {"counts, final, parked", {FINAL, .sends = 1, COUNTS, .parked = 1}, FAILS(TL_PROOF_NOT_FOUND)},
    {"counts: cancel", {CANCELS, .sends = 1, COUNTS}, DOES(RESOLVE_CANCEL)},
    {"counts: a cancel tried before is tried again",
     {CANCELS, .sends = 1, COUNTS, .cancel_tried = 1},
     DOES(RESOLVE_CANCEL)},
    {"cancelled for good",
     {CANCELS, .sends = 1, COUNTS, .cancelled = 1, .cancel = TL_CANCEL_CANCELLED},
     FAILS(TL_PROOF_CANCELLED)},
    {"cancelled, but that is not final",
     {CANCELS_LOOSELY, .sends = 1, COUNTS, .cancelled = 1, .cancel = TL_CANCEL_CANCELLED},
     WAITS(TL_OUTCOME_UNKNOWN, 0),
     .cancel = 1},
    {"cancel: already done",
     {CANCELS, .sends = 1, COUNTS, .cancelled = 1, .cancel = TL_CANCEL_ALREADY_DONE},
     WAITS(TL_OUTCOME_UNKNOWN, 0),
     .cancel = 1,
     .seen = 1,
     .reset = 1},
    {"cancel: no answer",
     {CANCELS, .sends = 1, COUNTS, .cancelled = 1, .cancel = TL_CANCEL_UNKNOWN},
     WAITS(TL_OUTCOME_UNKNOWN, 0),
     .cancel = 1},
    {"cancel: no answer, attempts used up",
     {CANCELS, .sends = 1, COUNTS, .cancelled = 1, .cancel = TL_CANCEL_UNKNOWN, .attempts = 5},
     PARKS(PARK_ATTEMPTS),
     .cancel = 1},
    {"no cancel any more, but one was tried: never send",
     {CHANNEL, .sends = 1, COUNTS, .cancel_tried = 1},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"counts, idempotent: the same key again", {CHANNEL, .sends = 1, COUNTS}, DOES(RESOLVE_SEND)},
    {"counts, idempotent, before the deadline",
     {CHANNEL, .sends = 1, COUNTS, .deadline_us = AFTER_US},
     DOES(RESOLVE_SEND)},
    {"counts, idempotent, after the deadline",
     {CHANNEL, .sends = 1, COUNTS, .deadline_us = BEFORE_US},
     PARKS(PARK_DEADLINE)},
    {"counts, idempotent, parked: never sent for",
     {CHANNEL, .sends = 1, COUNTS, .parked = 1},
     PARKS(NULL)},
    {"counts, idempotent, conflict: never sent for",
     {CHANNEL, .sends = 1, COUNTS, .conflict = 1},
     PARKS(PARK_CONFLICT)},
    {"counts, not idempotent: a person", {PLAIN, .sends = 1, COUNTS}, PARKS(PARK_NO_WAY)},

    /* 5: a channel that cannot be asked. */
    {"no query, idempotent: the same key again", {MUTE, .sends = 1}, DOES(RESOLVE_SEND)},
    {"no query, idempotent, before the deadline",
     {MUTE, .sends = 4, .deadline_us = AFTER_US},
     DOES(RESOLVE_SEND)},
    {"no query, idempotent, after the deadline",
     {MUTE, .sends = 1, .deadline_us = BEFORE_US},
     PARKS(PARK_DEADLINE)},
    {"no query, parked", {MUTE, .sends = 1, .parked = 1}, PARKS(NULL)},
    {"no query, conflict", {MUTE, .sends = 1, .conflict = 1}, PARKS(PARK_CONFLICT)},

    /* After a send. */
    {"sent: succeeded",
     {CHANNEL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_SUCCEEDED},
     DOES(RESOLVE_SUCCEED)},
    {"sent once: declined",
     {CHANNEL, .sends = 1, .sent = 1, .execute = TL_EXECUTE_DECLINED},
     FAILS(TL_PROOF_DECLINED)},
    {"sent twice: a decline must be confirmed",
     {CHANNEL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED},
     DOES(RESOLVE_QUERY)},
    {"sent twice: a decline that was asked for before the send must be confirmed anew",
     {CHANNEL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED, COUNTS},
     DOES(RESOLVE_QUERY)},
    {"sent twice: declined and confirmed, but sent just now",
     {CHANNEL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED, .declined = 1, .queried = 1,
      .query = TL_QUERY_FAILED, .send_until_us = LONG_AGO_US},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"sent twice: failed, while a send may be on its way",
     {CHANNEL, .sends = 2, .queried = 1, .query = TL_QUERY_FAILED, .send_until_us = BEFORE_US},
     WAITS(TL_OUTCOME_UNKNOWN, BEFORE_US + GRACE_MS * INT64_C(1000))},
    {"sent twice: failed, late enough",
     {CHANNEL, .sends = 2, .queried = 1, .query = TL_QUERY_FAILED, .send_until_us = LONG_AGO_US},
     FAILS(TL_PROOF_DECLINED)},
    {"sent once: failed",
     {CHANNEL, .sends = 1, .queried = 1, .query = TL_QUERY_FAILED, .send_until_us = BEFORE_US},
     FAILS(TL_PROOF_DECLINED)},
    {"sent twice: declined, but an earlier send paid",
     {CHANNEL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED, .declined = 1, .queried = 1,
      .query = TL_QUERY_SUCCEEDED},
     DOES(RESOLVE_SUCCEED)},
    {"sent twice: declined and not found is in doubt",
     {FINAL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED, .declined = 1, COUNTS},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"sent twice: declined and unreachable is in doubt",
     {CHANNEL, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED, .declined = 1, .queried = 1,
      .query = TL_QUERY_UNREACHABLE},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"sent twice: a replayed decline is the first one",
     {REPLAYS, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED},
     FAILS(TL_PROOF_DECLINED)},
    {"sent twice: a decline that nobody can confirm",
     {MUTE, .sends = 2, .sent = 1, .execute = TL_EXECUTE_DECLINED},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"sent: no answer",
     {CHANNEL, .sends = 1, .sent = 1, .execute = TL_EXECUTE_UNKNOWN},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"sent: an answer out of range is none",
     {CHANNEL, .sends = 1, .sent = 1, .execute = 99},
     WAITS(TL_OUTCOME_UNKNOWN, 0)},
    {"sent: later",
     {CHANNEL, .sends = 1, .sent = 1, .execute = TL_EXECUTE_RETRY_LATER},
     WAITS(TL_OUTCOME_RETRY_LATER, 0)},
    {"not sent after all",
     {CHANNEL, .sends = 1, .sent = 1, .execute = TL_EXECUTE_NOT_SENT},
     WAITS(TL_OUTCOME_NOT_SENT, 0)},
    {"sent: accepted",
     {CHANNEL, .sends = 1, .sent = 1, .execute = TL_EXECUTE_ACCEPTED},
     WAITS(TL_OUTCOME_ACCEPTED, 0),
     .seen = 1,
     .reset = 1},

    /* Attempts used up: parked, and the outcome of the last send is not forgotten. */
    {"used up",
     {CHANNEL, .sends = 1, .queried = 1, .query = TL_QUERY_UNREACHABLE, .attempts = 5},
     PARKS(PARK_ATTEMPTS)},
    {"used up, but it succeeded",
     {CHANNEL, .sends = 1, .queried = 1, .query = TL_QUERY_SUCCEEDED, .attempts = 9},
     DOES(RESOLVE_SUCCEED)},
    {"used up, not sent",
     {CHANNEL, .sends = 1, .sent = 1, .execute = TL_EXECUTE_NOT_SENT, .attempts = 5},
     PARKS(PARK_ATTEMPTS),
     .outcome = TL_OUTCOME_NOT_SENT},
    {"used up while pending",
     {CHANNEL, .sends = 1, .queried = 1, .query = TL_QUERY_PENDING, .attempts = 5},
     PARKS(PARK_ATTEMPTS),
     .outcome = TL_OUTCOME_PENDING,
     .seen = 1,
     .reset = 1},
    {"parked and asked in vain: stays parked for its first reason",
     {CHANNEL, .sends = 1, .queried = 1, .query = TL_QUERY_PENDING, .parked = 1},
     PARKS(NULL),
     .outcome = TL_OUTCOME_PENDING,
     .seen = 1,
     .reset = 1},
};

static int same_reason(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

/* 0 when the row holds; else says what is wrong. */
static int check_row(const row *r)
{
    resolver_facts facts = r->facts;
    resolver_action action;
    int wrong;

    facts.now_us = NOW_US;
    facts.grace_ms = GRACE_MS;
    facts.attempts_max = 5;
    action = resolver_decide(&facts);
    wrong = action.step != r->step;
    if (r->step == RESOLVE_FAIL)
        wrong |= action.proof != r->proof;
    if (r->step == RESOLVE_PARK)
        wrong |= !same_reason(action.reason, r->reason);
    if (r->step == RESOLVE_WAIT)
        wrong |= action.not_before_us != r->not_before_us;
    if (r->step == RESOLVE_WAIT || (r->step == RESOLVE_PARK && r->outcome != 0))
        wrong |= action.outcome != r->outcome;
    if (r->step == RESOLVE_WAIT || r->step == RESOLVE_PARK)
        wrong |= action.findings.not_found_first != r->first ||
                 action.findings.not_found_reset != r->reset ||
                 action.findings.seen_by_channel != r->seen ||
                 action.findings.cancel_tried != r->cancel || action.refused != r->refused;
    if (wrong)
        print_error("%s: step %d proof %c reason %s outcome %d not before %lld findings "
                    "%d %d %d %d\n",
                    r->name, (int)action.step, (char)action.proof,
                    action.reason != NULL ? action.reason : "(none)", (int)action.outcome,
                    (long long)action.not_before_us, action.findings.not_found_first,
                    action.findings.not_found_reset, action.findings.seen_by_channel,
                    action.findings.cancel_tried);
    return wrong;
}

TEST(every_row)
{
    int wrong = 0;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        wrong += check_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

/*
 * The laws behind the rows, over every combination of the facts that are yes or no: nothing is ever
 * sent a second time on a channel that pays twice; nothing is sent for a parked trade, in conflict,
 * or after a cancel; no failure without evidence, an answer, or an absence that counts.
 */
enum { BITS = 15 };

static void fill(resolver_facts *facts, unsigned bits, tl_query_result query,
                 tl_execute_result execute)
{
    memset(facts, 0, sizeof *facts);
    facts->now_us = NOW_US;
    facts->grace_ms = GRACE_MS;
    facts->attempts_max = 5;
    facts->attempts = 1;
    facts->query = query;
    facts->execute = execute;
    facts->channel.idempotent = bits & 1;
    facts->channel.can_query = bits >> 1 & 1;
    facts->channel.not_found_final = bits >> 2 & 1;
    facts->has_cancel = bits >> 3 & 1;
    facts->channel.cancel_final = bits >> 3 & bits >> 4 & 1;
    facts->channel.replays_first_answer = bits >> 5 & 1;
    facts->sends = bits >> 6 & 3;
    facts->parked = bits >> 8 & 1;
    facts->conflict = bits >> 9 & 1;
    facts->seen_by_channel = bits >> 10 & 1;
    facts->cancel_tried = bits >> 11 & 1;
    facts->queried = bits >> 12 & 1;
    facts->deadline_us = bits >> 13 & 1 ? BEFORE_US : AFTER_US;
    facts->send_until_us = bits >> 14 & 1 ? LONG_AGO_US : AFTER_US;
    facts->not_found_since_us = bits >> 14 & 1 ? LONG_AGO_US : 0;
}

static void check_laws(const resolver_facts *facts)
{
    resolver_action action = resolver_decide(facts);

    if (action.step == RESOLVE_SEND) {
        assert_false(facts->parked || facts->conflict || facts->cancel_tried);
        assert_true(facts->deadline_us > facts->now_us);
        assert_true(facts->sends == 0 || facts->channel.idempotent);
        /* A channel that can be asked was asked, and said so late enough where that would prove
         * something. */
        if (facts->sends > 0 && facts->channel.can_query)
            assert_true(facts->queried && facts->query == TL_QUERY_NOT_FOUND &&
                        !facts->seen_by_channel && !facts->channel.not_found_final &&
                        !facts->has_cancel);
    }
    if (facts->conflict) /* but by operators, which are not here */
        assert_int_not_equal(action.step, RESOLVE_FAIL);
    if (action.step == RESOLVE_SUCCEED)
        assert_true(facts->queried && facts->query == TL_QUERY_SUCCEEDED);
    if (action.step == RESOLVE_FAIL && action.proof == TL_PROOF_NOT_FOUND)
        assert_true(facts->channel.not_found_final && !facts->seen_by_channel &&
                    facts->send_until_us == LONG_AGO_US);
    if (action.step == RESOLVE_FAIL && action.proof == TL_PROOF_NEVER_LEFT)
        assert_int_equal(facts->sends, 0);
    if (action.step == RESOLVE_FAIL && action.proof == TL_PROOF_DECLINED)
        assert_true(facts->queried && facts->query == TL_QUERY_FAILED &&
                    (facts->sends <= 1 || facts->channel.replays_first_answer ||
                     facts->send_until_us == LONG_AGO_US));
}

TEST(the_laws)
{
    for (unsigned bits = 0; bits < 1u << BITS; bits++)
        for (int query = TL_QUERY_UNREACHABLE; query <= TL_QUERY_NOT_FOUND; query++) {
            resolver_facts facts;

            fill(&facts, bits, (tl_query_result)query, TL_EXECUTE_UNKNOWN);
            check_laws(&facts);
        }
}

TESTS_OF(resolver, NULL, NULL)
