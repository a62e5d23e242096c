/* Makes every ending of the workflow layer: success, failure with a proof, put back, parked.  An
 * ending whose answer was lost is repeated word for word until its fate is known.  Touches the
 * trade through its lock, and files evidence. */
#include "ending.h"

#include "resolver.h"
#include "run.h"
#include "schedule.h"

#include <tradelock/callback.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <stddef.h>
#include <string.h>

#define REPEAT_MOST_MS 500

static const char *text_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static void start(ending *e, tl_outcome outcome)
{
    const tl_ending empty = TL_ENDING_INIT;
    const tl_findings nothing = {0};

    e->what = empty;
    e->what.outcome = outcome;
    e->what.channel_ref = text_or_null(e->attempt->reply.channel_ref);
    e->what.remark = text_or_null(e->attempt->reply.remark);
    e->findings = nothing;
    e->final = 0;
}

/* Whether a failure with this proof may be tried anew.  A decline may be final.  After a decision
 * of operators the channel must be able to tell, before a new key is sent.  The other proofs say
 * that nothing was tried. */
static int may_be_tried_anew(const attempt *a, tl_proof proof)
{
    if (proof == TL_PROOF_OPERATORS)
        return a->workflow->given.channel.can_query;
    return proof == TL_PROOF_DECLINED ? a->reply.retryable : 1;
}

void ending_success(ending *e)
{
    const tl_reply *reply = &e->attempt->reply;

    start(e, TL_OUTCOME_SUCCESS);
    e->what.result = reply->result_size > 0 ? reply->result : NULL;
    e->what.result_size = reply->result_size;
    e->final = 1;
}

void ending_failure(ending *e, tl_proof proof)
{
    start(e, TL_OUTCOME_FAILURE);
    e->what.proof = proof;
    e->what.retryable = may_be_tried_anew(e->attempt, proof);
    e->final = 1;
}

void ending_put_back(ending *e, tl_outcome outcome, int64_t next_run_ms)
{
    start(e, outcome);
    e->what.next_run_ms = next_run_ms;
}

void ending_park(ending *e, tl_outcome outcome, const char *reason)
{
    start(e, outcome);
    e->what.park_reason = reason;
}

/* ---------------------------------------------------------------- carrying out -- */

static tl_status sql_failure(void *context, struct st_mysql *connection)
{
    ending *e = context;
    attempt *a = e->attempt;
    const tl_workflow *w = &a->workflow->given;

    return w->sql_failure(w->context, &a->seen, &a->reply, e->what.proof, connection);
}

static tl_status succeed(ending *e)
{
    const tl_workflow *w = &e->attempt->workflow->given;
    int64_t commit_ms = w->policy.commit_ms;

    if (w->book_success != NULL) {
        attempt_book_success(e->attempt);
        return tl_lock_finish_book(e->lock, &e->what, e->attempt->book, commit_ms);
    }
    if (w->sql_success != NULL)
        return tl_lock_finish_with(e->lock, &e->what, attempt_sql_success, e->attempt, commit_ms);
    return tl_lock_finish(e->lock, &e->what);
}

static tl_status fail(ending *e)
{
    const tl_workflow *w = &e->attempt->workflow->given;
    int64_t commit_ms = w->policy.commit_ms;

    if (w->book_failure != NULL) {
        attempt_book_failure(e->attempt, e->what.proof);
        return tl_lock_finish_book(e->lock, &e->what, e->attempt->book, commit_ms);
    }
    if (w->sql_failure != NULL)
        return tl_lock_finish_with(e->lock, &e->what, sql_failure, e, commit_ms);
    return tl_lock_finish(e->lock, &e->what);
}

int ending_repeats(tl_status status)
{
    const tl_class class_ = tl_status_class(status);

    /* Memory may be there again in a moment; giving up would forget what the channel said. */
    return class_ == TL_CLASS_UNKNOWN || class_ == TL_CLASS_RETRY || status == TL_NO_MEMORY;
}

/* Only the database's part is ever repeated, never the call of the channel.  Gives the last status
 * when the budget is used up. */
static tl_status run_in_budget(ending *e)
{
    int64_t end_ms = schedule_now_ms() + e->attempt->workflow->given.policy.commit_ms;
    int64_t delay_ms = 0;

    for (;;) {
        const tl_status status = !e->final ? tl_lock_put_back(e->lock, &e->what, &e->findings)
                                 : e->what.outcome == TL_OUTCOME_SUCCESS ? succeed(e)
                                                                         : fail(e);

        if (!ending_repeats(status))
            return status;
        if (schedule_now_ms() >= end_ms)
            return status;
        schedule_sleep_ms(schedule_backoff_ms(&delay_ms, REPEAT_MOST_MS));
    }
}

static const char *evidence_name(const ending *e, int of_all)
{
    if (e->what.outcome == TL_OUTCOME_SUCCESS)
        return "SUCCEEDED";
    return of_all ? "FAILED" : "DECLINED";
}

/* Whether the outcome is the channel's own answer about this payment. */
static int channel_answered(const ending *e)
{
    return e->what.outcome == TL_OUTCOME_SUCCESS || e->what.proof == TL_PROOF_DECLINED;
}

/*
 * Files an outcome that the business rows refused, since the outcome itself is still true.  By the
 * resolver's first rule it ends the trade once the business rows accept it.  Proofs other than a
 * decline need no filing: the next attempt finds them again as this one did.  of_all: the outcome
 * speaks for every send; a decline that a restored server refused may not.
 */
static void file_outcome(ending *e, int of_all)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;
    const attempt *a = e->attempt;
    tl_status status;

    if (e->by_evidence || !channel_answered(e))
        return;
    evidence.key = a->seen.key;
    evidence.epoch = a->seen.epoch;
    evidence.channel_key = a->seen.channel_key;
    evidence.outcome = evidence_name(e, of_all);
    evidence.final = of_all && e->what.outcome == TL_OUTCOME_FAILURE;
    evidence.channel_ref = e->what.channel_ref;
    evidence.source = "holder";
    evidence.remark = e->what.remark;
    status = tl_evidence_add(e->client, &evidence);
    if (status != TL_OK && status != TL_IN_CONFLICT)
        tl_client_log(e->client, TL_WARNING, &a->seen.key, 0,
                      "the outcome %s could not be filed (%s); it will be asked for again",
                      evidence.outcome, tl_status_name(status));
}

/* The books refused a final outcome: it is filed, and the trade is put back or parked. */
static tl_status give_up_final(ending *e)
{
    const tl_policy *policy = &e->attempt->workflow->given.policy;
    uint32_t number = e->attempt->seen.number;
    int known = channel_answered(e);

    tl_client_log(e->client, TL_ALARM, &e->attempt->seen.key, 0,
                  "the books refused the outcome %s: %s", evidence_name(e, 1), tl_error_message());
    file_outcome(e, 1);
    if (number >= policy->attempts)
        ending_park(e, TL_OUTCOME_UNKNOWN, PARK_APPLY);
    else
        ending_put_back(e, TL_OUTCOME_UNKNOWN, schedule_next_ms(policy, number, 0));
    e->findings.apply_failed = 1;
    e->findings.seen_by_channel = known;
    return run_in_budget(e);
}

/* No connection became free within the budget: the books have not refused it, so no attempt is used
 * up. */
static tl_status give_up_crowded(ending *e)
{
    const attempt *a = e->attempt;
    const uint32_t number = a->seen.number;
    const int known = channel_answered(e);

    tl_client_log(e->client, TL_WARNING, &a->seen.key, 0, "the outcome %s is put back: %s",
                  evidence_name(e, 1), tl_error_message());
    if (number == 0) /* which has its answer only once */
        file_outcome(e, 1);
    ending_put_back(e, TL_OUTCOME_UNKNOWN, schedule_next_ms(&a->workflow->given.policy, number, 0));
    e->findings.not_counted = 1;
    e->findings.apply_failed = 1;
    e->findings.seen_by_channel = known;
    return run_in_budget(e);
}

/* Evidence says that money moved.  The trade is due at once, and the next attempt reads it. */
static tl_status give_up_contradicted(ending *e)
{
    tl_client_log(e->client, TL_ALARM, &e->attempt->seen.key, 0,
                  "a failure was refused, since evidence says that money moved");
    ending_put_back(e, TL_OUTCOME_UNKNOWN, 0);
    e->findings.seen_by_channel = 1;
    return run_in_budget(e);
}

/* The failure may not be written now.  Either a restore is open, and a step that was lost may have
 * sent once more; or the failure rests on moments that two clocks told.  What the channel said of
 * this send is kept, and the trade is looked at again by schedule. */
static tl_status give_up_for_now(ending *e)
{
    const tl_policy *policy = &e->attempt->workflow->given.policy;
    const uint32_t number = e->attempt->seen.number;
    const tl_proof proof = e->what.proof;
    tl_reply *reply = &e->attempt->reply;
    const tl_reply said = *reply;

    /* A compensating attempt can ask again; the first attempt has its answer only once. */
    if (number == 0)
        file_outcome(e, 0);
    tl_reply_remark(reply, "%s%snot failed yet (%s): the server was restored, or its clock set",
                    said.remark, said.remark[0] != '\0' ? "; " : "", tl_proof_text(proof));
    ending_put_back(e, TL_OUTCOME_UNKNOWN, schedule_next_ms(policy, number, 0));
    e->findings.not_counted = 1;
    e->findings.apply_failed = number == 0;
    e->findings.cancel_tried = proof == TL_PROOF_CANCELLED;
    return run_in_budget(e);
}

int ending_gives_up(const ending *e, tl_status status)
{
    return e->final &&
           (status == TL_CALLBACK_FAILED || status == TL_TRY_AGAIN || status == TL_OVERLOADED ||
            status == TL_EVIDENCE || status == TL_ASK_CHANNEL);
}

tl_status ending_give_up(ending *e, tl_status status)
{
    if (status == TL_EVIDENCE)
        return give_up_contradicted(e);
    if (status == TL_ASK_CHANNEL)
        return give_up_for_now(e);
    if (status == TL_OVERLOADED)
        return give_up_crowded(e);
    /* A lock wait that outlasts the whole budget also counts as a failure of the business rows. */
    return give_up_final(e);
}

tl_status ending_answer(tl_status status)
{
    /* The outcome is known, but not written yet. */
    if (status == TL_NO_MEMORY || tl_status_class(status) == TL_CLASS_RETRY)
        return TL_UNKNOWN;
    return status;
}

tl_status ending_run(ending *e)
{
    tl_status status = run_in_budget(e);

    if (ending_gives_up(e, status))
        status = ending_give_up(e, status);
    return ending_answer(status);
}

/* ------------------------------------------------------------------- submitting it -- */

static int has_book(const ending *e)
{
    const tl_workflow *w = &e->attempt->workflow->given;

    if (!e->final)
        return 0;
    return e->what.outcome == TL_OUTCOME_SUCCESS ? w->book_success != NULL
                                                 : w->book_failure != NULL;
}

int ending_is_callback(const ending *e)
{
    const tl_workflow *w = &e->attempt->workflow->given;

    if (!e->final || has_book(e))
        return 0;
    return e->what.outcome == TL_OUTCOME_SUCCESS ? w->sql_success != NULL : w->sql_failure != NULL;
}

void ending_book(ending *e)
{
    if (!has_book(e))
        return;
    if (e->what.outcome == TL_OUTCOME_SUCCESS)
        attempt_book_success(e->attempt);
    else
        attempt_book_failure(e->attempt, e->what.proof);
}

tl_status ending_submit(ending *e, tl_done_fn done, void *context)
{
    if (!e->final)
        return tl_lock_put_back_submit(e->lock, &e->what, &e->findings, done, context);
    if (has_book(e))
        return tl_lock_finish_book_submit(e->lock, &e->what, e->attempt->book, done, context);
    return tl_lock_finish_submit(e->lock, &e->what, done, context);
}

/* Submits an ending, tries it again, and gives it up.  Touches the trade through its ending. */

static void give_up(later_item *item)
{
    ending_later *e = (ending_later *)item;
    RUN_WORK work = work_new();

    work.began = tl_work_adopt(e->log_no) == TL_OK;
    tl_log_context_set(&e->ending->attempt->said);
    (void)tl_error_report(e->refused, "%s", e->sentence);
    e->over(e->context, ending_answer(ending_give_up(e->ending, e->refused)));
}

static void end_again(later_item *item);

static void put_again(ending_later *e)
{
    e->later.run = end_again;
    e->later.waits = 0;
    e->later.due_ms = schedule_now_ms() + schedule_backoff_ms(&e->delay_ms, ENDING_AGAIN_MOST_MS);
    later_put(e->all, &e->later);
}

static void put_give_up(ending_later *e)
{
    e->later.run = give_up;
    e->later.waits = 1;
    e->later.due_ms = schedule_now_ms();
    if (e->hand_back != NULL)
        e->hand_back(e->context, &e->later);
    else
        later_put(e->all, &e->later);
}

void ending_later_again(ending_later *e, tl_status status)
{
    const char *sentence = tl_error_message();

    if (ending_repeats(status) && schedule_now_ms() < e->until_ms) {
        put_again(e);
    } else if (ending_gives_up(e->ending, status)) {
        e->refused = status;
        memcpy(e->sentence, sentence, strnlen(sentence, sizeof e->sentence - 1));
        put_give_up(e);
    } else {
        e->over(e->context, ending_answer(status));
    }
}

static void ended(void *context, tl_lock *lock, tl_status status)
{
    (void)lock;
    ending_later_again(context, status);
}

static tl_status try_once(ending_later *e)
{
    tl_lock_submit_within(e->ending->lock, schedule_left_ms(e->until_ms));
    return ending_submit(e->ending, ended, e);
}

static void end_again(later_item *item)
{
    ending_later *e = (ending_later *)item;
    RUN_WORK work = work_new();
    tl_status status;

    work.began = tl_work_adopt(e->log_no) == TL_OK;
    status = try_once(e);
    if (status != TL_OK)
        ending_later_again(e, status);
}

tl_status ending_later_submit(ending_later *e)
{
    e->delay_ms = 0;
    e->until_ms = schedule_now_ms() + e->ending->attempt->workflow->given.policy.commit_ms;
    memset(e->sentence, 0, sizeof e->sentence);
    return try_once(e);
}
