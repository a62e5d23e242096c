/*
 * Runs one payment on the first lane: ask, execute, finish.  The tables of workflows/README.md say
 * what follows from each answer.  It calls the workflow's callbacks, and touches the trade through
 * its lock.
 */
#include "run.h"

#include "memory.h"
#include "schedule.h"

#include <tradelock/callback.h>
#include <tradelock/layer.h>
#include <tradelock/test_hooks.h>

#include <stdlib.h>
#include <string.h>

#define ASK_MOST_MS 200

/* ---------------------------------------------------------------- the answer -- */

/* Another caller asked for this key with other contents: what its channel said is not shown here. */
static void hide_contents(tl_view *view)
{
    view->channel_key[0] = view->channel_ref[0] = view->remark[0] = view->parked[0] = '\0';
    view->proof = TL_PROOF_NONE;
    view->retryable = 0;
    view->next_run_us = 0;
    view->payload = view->result = NULL;
    view->payload_size = view->result_size = 0;
}

/* What this call learned is newer than the row, and stays where its ending is not known. */
static void show_reply(tl_view *view, const tl_reply *reply, tl_status status)
{
    if (reply->channel_ref[0] != '\0')
        memcpy(view->channel_ref, reply->channel_ref, sizeof view->channel_ref);
    if (reply->remark[0] != '\0')
        memcpy(view->remark, reply->remark, sizeof view->remark);
    if (status != TL_SUCCEEDED)
        return;
    view->result = reply->result;
    view->result_size = reply->result_size;
}

/* prepare remarked it; or a statement refused, and the sentence is its reason. */
static void say_why_refused(tl_view *view, tl_reply *reply)
{
    if (reply->remark[0] == '\0')
        tl_reply_remark(reply, "%s", tl_error_message());
    memcpy(view->remark, reply->remark, sizeof view->remark);
}

static int64_t next_look_ms(const struct tl_run *run, const tl_view *view, tl_status status)
{
    if (status == TL_OVERLOADED)
        return tl_lock_come_again_ms(run->lock);
    if (run->paid)
        return run->ending.what.next_run_ms;
    return view->next_run_us > view->now_us ? (view->next_run_us - view->now_us) / 1000 : 0;
}

tl_status run_answer(tl_answer *answer, struct tl_run *run, tl_status status)
{
    tl_view *view = &answer->view;

    answer->status = status;
    answer->run = run;
    answer->own = run->paid;
    *view = *tl_lock_view(run->lock);
    if (strcmp(view->channel, run->workflow->channel) != 0)
        view->retryable = 0; /* it stays with its channel */
    if (status == TL_MISMATCH)
        hide_contents(view);
    if (run->paid)
        show_reply(view, &run->attempt.reply, status);
    if (status == TL_SUCCEEDED)
        workflow_call_begins(); /* clears the sentence of an earlier try */
    if (status == TL_REFUSED)
        say_why_refused(view, &run->attempt.reply);
    answer->next_look_ms = next_look_ms(run, view, status);
    return status;
}

void run_free(struct tl_run *run)
{
    if (run == NULL)
        return;
    submission_free(run->submitted);
    tl_lock_free(run->lock);
    attempt_free(&run->attempt);
    free(run);
}

void tl_answer_clear(tl_answer *answer)
{
    const tl_answer empty = TL_ANSWER_INIT;

    if (answer == NULL)
        return;
    if (answer->run != NULL && submission_is_under_way(answer->run->submitted)) {
        tl_client_log(answer->run->workflows->client, TL_ALARM, &answer->run->attempt.seen.key, 0,
                      "the answer is not cleared: what was submitted with it is not completed yet");
        return;
    }
    run_free(answer->run);
    *answer = empty;
}

/* ---------------------------------------------------------------- the attempt -- */

/* What an answer of execute means on the first lane, where at most one send has left. */
static void choose_ending(ending *e, tl_execute_result executed, const tl_policy *policy)
{
    int64_t next_ms = schedule_next_ms(policy, 0, attempt_come_again_ms(e->attempt));

    switch (executed) {
    case TL_EXECUTE_SUCCEEDED:
        ending_success(e);
        break;
    case TL_EXECUTE_DECLINED:
        ending_failure(e, TL_PROOF_DECLINED);
        break;
    case TL_EXECUTE_RETRY_LATER:
        ending_put_back(e, TL_OUTCOME_RETRY_LATER, next_ms);
        break;
    case TL_EXECUTE_NOT_SENT:
        ending_put_back(e, TL_OUTCOME_NOT_SENT, next_ms);
        break;
    case TL_EXECUTE_ACCEPTED:
        ending_put_back(e, TL_OUTCOME_ACCEPTED, next_ms);
        e->findings.seen_by_channel = 1;
        break;
    case TL_EXECUTE_UNKNOWN:
    default:
        ending_put_back(e, TL_OUTCOME_UNKNOWN, next_ms);
    }
}

void run_choose_ending(struct tl_run *run, tl_execute_result executed)
{
    choose_ending(&run->ending, executed, &run->workflow->given.policy);
}

static tl_status finish(struct tl_run *run)
{
    tl_status status = ending_run(&run->ending);

    if (status != TL_UNKNOWN)
        run->phase = RUN_OVER;
    return status;
}

void run_granted(struct tl_run *run)
{
    attempt *a = &run->attempt;
    int64_t since_ms = attempt_since_ms(run->workflow, run->lock);

    run->paid = 1;
    attempt_show(a, tl_lock_view(run->lock), since_ms);
    a->seen.number = 0;
    /* The deadline counts from the beginning of the hold. */
    a->deadline_at_ms = since_ms + run->workflow->given.policy.deadline_ms;
    run->phase = RUN_ENDING;
    tl_test_point('C', "granted", "after");
}

/* The lock is held: pays once, and writes the outcome. */
static tl_status execute_and_finish(struct tl_run *run)
{
    const tl_policy *policy = &run->workflow->given.policy;
    attempt *a = &run->attempt;
    tl_execute_result executed = TL_EXECUTE_NOT_SENT;
    int64_t until_ms;

    run_granted(run);
    /* Computed before tl_may_send() is asked.  However long this process is stopped from here on, a
     * send that is over by until_ms was allowed. */
    until_ms = schedule_now_ms() + policy->execute_ms;
    if (tl_may_send(run->lock, policy->execute_ms))
        executed = attempt_execute(a, until_ms);
    else
        tl_reply_remark(&a->reply, "not sent: too little was left of the lock");
    run_choose_ending(run, executed);
    return finish(run);
}

/* --------------------------------------------------------------------- asking -- */

static tl_status ask_for(struct tl_run *run, int64_t wait_ms)
{
    const tl_workflow *w = &run->workflow->given;

    if (w->book_prepare != NULL) {
        attempt_book_prepare(&run->attempt);
        return tl_lock_ask_book(run->lock, run->attempt.book, wait_ms);
    }
    if (w->sql_prepare != NULL)
        return tl_lock_ask_with(run->lock, attempt_sql_prepare, &run->attempt, wait_ms);
    return tl_lock_ask(run->lock, wait_ms);
}

/* Asks, and waits as long as the caller said for what may pass.  After a lost answer it asks again
 * within the commit budget, which is safe with the same handle. */
static tl_status ask(struct tl_run *run)
{
    int64_t start_ms = schedule_now_ms(), delay_ms = 0;
    int64_t budget_ms = run->workflow->given.policy.commit_ms;

    for (;;) {
        int64_t wait_ms = start_ms + run->wait_ms - schedule_now_ms();
        tl_status status = ask_for(run, wait_ms > 0 ? wait_ms : 0);
        int64_t left_ms = start_ms + budget_ms - schedule_now_ms();

        /* Another caller of this process asked for all who waited, so one ask tells who is in the
         * way. */
        if (status == TL_TIMEOUT)
            status = ask_for(run, 0);
        if (status != TL_UNKNOWN || left_ms <= 0)
            return status;
        delay_ms = schedule_backoff_ms(&delay_ms, ASK_MOST_MS);
        schedule_sleep_ms(delay_ms < left_ms ? delay_ms : left_ms);
    }
}

/* Test builds only: pays as a service without locks does. */
static tl_status pay_without_lock(struct tl_run *run)
{
    int64_t until_ms = schedule_now_ms() + run->workflow->given.policy.execute_ms;

    run->phase = RUN_OVER;
    run->paid = 1;
    return attempt_execute(&run->attempt, until_ms) == TL_EXECUTE_SUCCEEDED ? TL_SUCCEEDED
                                                                            : TL_UNKNOWN;
}

static tl_status ask_and_pay(struct tl_run *run)
{
    tl_status status;

    if (tl_test_mutated("lock"))
        return pay_without_lock(run);
    status = ask(run);
    return status == TL_GRANTED ? execute_and_finish(run) : status;
}

static void pass_said(tl_lock_options *to, const tl_request *from)
{
    TL_SAID_MAP(TL_PASS)
}

/* checked_fence: the fence of the failure that is tried anew; 0: none is, whatever the request
 * says. */
static tl_status make_lock(struct tl_run *run, const tl_request *request, uint64_t checked_fence)
{
    const tl_workflow *w = &run->workflow->given;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.flags = w->exclusive ? TL_ASK_EXCLUSIVE : 0;
    if (checked_fence != 0)
        options.flags |= TL_ASK_RECLAIM;
    options.reclaim_epoch = request->reclaim_epoch;
    options.reclaim_fence = checked_fence;
    options.max_hold_ms = w->policy.max_hold_ms;
    options.deadline_ms = w->policy.deadline_ms;
    options.payload = request->payload;
    options.payload_size = request->payload_size;
    options.fingerprint = request->fingerprint;
    options.channel = w->channel.name;
    options.channel_key_chars = w->channel.key_chars;
    pass_said(&options, request);
    options.remark = request->remark;
    options.actor = request->actor;
    return tl_lock_new(&run->lock, run->workflows->client, &request->key, &options);
}

/* ------------------------------------------------------------- trying it anew -- */

struct reclaim {
    struct tl_run *run;
    uint32_t epoch;
    uint64_t fence; /* the fence of the failure that was checked; 0: there was none */
    tl_status status;
};

static int look_at_failure(void *context, const tl_view *view)
{
    struct reclaim *reclaim = context;

    if (view->status != 'F' || view->epoch != reclaim->epoch || view->conflict || !view->retryable)
        return 0;
    /* The ask answers that a trade stays with its channel. */
    if (strcmp(view->channel, reclaim->run->workflow->channel) != 0)
        return 0;
    reclaim->fence = view->fence;
    reclaim->run->attempt.seen.created_us = view->created_us;
    attempt_show_row(&reclaim->run->attempt, view);
    tl_log_context_set(&reclaim->run->attempt.said);
    /* A channel that is paused is not asked either. */
    reclaim->status = workflow_check_paused(reclaim->run->workflow);
    if (reclaim->status != TL_OK)
        return 0;
    reclaim->status = reclaim_check(reclaim->run->workflows->client, &reclaim->run->attempt, view);
    return 0;
}

static void ask_as_said(tl_request *to, const tl_said *from)
{
    TL_SAID_MAP(TL_POINT)
}

/*
 * Reads the row, and checks a failure that the request wants tried anew; the ask answers all else.
 * An ask that may try the failure anew names its fence, which every decision about the row raises.
 * The epoch alone would not do: the row may have been P or in conflict when it was read, and may by
 * now be a failure of the same epoch, about which nobody asked the channel.  If no failure was
 * read, the ask is an ordinary one, and a failure is its answer.  *epoch: that of the grant.
 */
static tl_status check_reclaim(struct tl_run *run, const tl_request *request, uint32_t *epoch)
{
    struct reclaim reclaim = {run, request->reclaim_epoch, 0, TL_OK};
    tl_request of_row = *request;
    tl_status status =
        tl_show(run->workflows->client, &request->key, TL_LANE_SYNC, look_at_failure, &reclaim);

    if (status == TL_NOT_FOUND)
        return TL_OK;
    if (status == TL_OK)
        status = reclaim.status;
    if (status != TL_OK || reclaim.fence == 0)
        return status;
    tl_lock_free(run->lock);
    run->lock = NULL;
    *epoch = reclaim.epoch + 1;
    /* The trade keeps what its first request said of itself; its books say the same. */
    ask_as_said(&of_row, &run->attempt.said);
    status = make_lock(run, &of_row, reclaim.fence);
    if (status == TL_INVALID) {
        /* SQL typed by hand says there what no request may.  The row keeps it, unread. */
        ask_as_said(&of_row, &(tl_said){0});
        status = make_lock(run, &of_row, reclaim.fence);
    }
    run->ending.lock = run->lock;
    return status;
}

tl_status run_show_next_epoch(struct tl_run *run, uint32_t epoch)
{
    const tl_workflow *w = &run->workflow->given;
    attempt *a = &run->attempt;

    a->seen.epoch = epoch;
    a->seen.sends = 1;
    a->channel_ref[0] = '\0';
    return tl_channel_key(a->channel_key, w->channel.key_chars,
                          tl_client_site(run->workflows->client), w->channel.name, &a->seen.key,
                          epoch);
}

/* -------------------------------------------------------------------- the call -- */

tl_status run_check(tl_workflows *workflows, const tl_request *request, tl_answer *answer)
{
    if (workflows == NULL || request == NULL || answer == NULL)
        return tl_error_report(TL_INVALID, "a run needs a registry, a request and an answer");
    if (request->version != TL_REQUEST_VERSION)
        return tl_error_report(TL_INVALID, "request was not made with TL_REQUEST_INIT");
    if (answer->version != TL_ANSWER_VERSION || answer->run != NULL)
        return tl_error_report(TL_INVALID, "answer was not made with TL_ANSWER_INIT, or "
                                           "not cleared since its last use");
    if (request->key.serial_no == NULL || request->key.cust_no == NULL ||
        request->key.op_code == NULL)
        return tl_error_report(TL_INVALID, "the key of the request has a part missing");
    if (request->payload == NULL)
        return tl_error_report(TL_INVALID, "the request has no payload: a later attempt "
                                           "would not know what to pay");
    if (request->wait_ms < 0)
        return tl_error_report(TL_INVALID, "wait_ms is negative");
    if (workflows_find(workflows, request->key.op_code) == NULL)
        return tl_error_report(TL_UNKNOWN_OPERATION, "operation %.32s is not registered",
                               request->key.op_code);
    return TL_OK;
}

tl_status run_new(struct tl_run **out, tl_workflows *workflows, const tl_request *request)
{
    struct tl_run *run = workflow_memory(sizeof *run);
    tl_status status;

    if (run == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a run");
    run->workflows = workflows;
    run->workflow = workflows_find(workflows, request->key.op_code);
    run->wait_ms = request->wait_ms;
    /* Checks key, payload and names before anything is copied. */
    status = make_lock(run, request, 0);
    if (status == TL_OK)
        status = attempt_init(&run->attempt, run->workflow, &request->key, request->payload,
                              request->payload_size);
    if (status != TL_OK) {
        run_free(run);
        return status;
    }
    attempt_show_said(&run->attempt, tl_lock_said(run->lock));
    run->ending.client = workflows->client;
    run->ending.lock = run->lock;
    run->ending.attempt = &run->attempt;
    *out = run;
    return TL_OK;
}

static tl_status run_request(tl_workflows *workflows, const tl_request *request, tl_answer *answer)
{
    struct tl_run *run = NULL;
    uint32_t epoch = 1;
    tl_status status = run_new(&run, workflows, request);

    if (status != TL_OK)
        return answer->status = status;
    tl_log_context_set(&run->attempt.said);
    if (request->reclaim_epoch != 0)
        status = check_reclaim(run, request, &epoch);
    if (status == TL_OK)
        status = run_show_next_epoch(run, epoch);
    if (status == TL_OK)
        status = ask_and_pay(run);
    else
        run->phase = RUN_OVER; /* nothing was asked, so there is nothing to settle */
    return run_answer(answer, run, status);
}

struct work work_new(void)
{
    return (struct work){.said = *tl_log_context()};
}

void work_over(const struct work *work)
{
    if (work->began)
        tl_work_end(0);
    tl_log_context_set(&work->said);
}

tl_status tl_workflow_run(tl_workflows *workflows, const tl_request *request, tl_answer *answer)
{
    RUN_WORK work = work_new();
    tl_status status;

    workflow_call_begins();
    status = run_check(workflows, request, answer);
    if (status != TL_OK)
        return status;
    work.began = tl_work_begin();
    return run_request(workflows, request, answer);
}

tl_status tl_workflow_settle(tl_workflows *workflows, tl_answer *answer)
{
    RUN_WORK work = work_new();
    struct tl_run *run;
    tl_status status;

    workflow_call_begins();
    if (workflows == NULL || answer == NULL)
        return tl_error_report(TL_INVALID, "settling needs a registry and an answer");
    if (answer->run != NULL && submission_is_under_way(answer->run->submitted))
        return tl_error_report(TL_WRONG_STATE, "what was submitted with this answer is not "
                                               "completed yet");
    if (answer->run == NULL || answer->status != TL_UNKNOWN || answer->run->phase == RUN_OVER)
        return tl_error_report(TL_WRONG_STATE, "this answer has nothing left to settle");
    run = answer->run;
    work.began = tl_work_begin();
    tl_log_context_set(&run->attempt.said);
    status = run_answer(answer, run, run->phase == RUN_ASKING ? ask_and_pay(run) : finish(run));
    submission_said(run->submitted);
    return status;
}
