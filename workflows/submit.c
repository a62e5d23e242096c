/*
 * Submitted runs: one payment in steps, none of which the service's thread waits for.
 *
 *     submit       the service's thread; book_prepare; the ask is submitted
 *     asked        the client's thread; granted: the service is told that it may send
 *     send_begin   the service's thread, directly before it sends
 *     send_end     the service's thread; book_success or book_failure; the ending is submitted
 *     ended        the client's thread; the service is told the answer
 *
 * An ask that has to be tried again, after a pause, is tried by the thread of later.c; the ending
 * likewise (ending.c).  No callback runs on a thread of the library.
 *
 * A run has one owner at a time: the service while it is GRANTED or SENDING, the library else.  The
 * owner changes by a submission or by a completion, after which the one that gave it away touches
 * nothing of it.  Between the commit of P and send_end the process may die, or the service may
 * never come again: the row is P under its session then, as when execute() is interrupted.
 */
#include "run.h"

#include "ending.h"
#include "memory.h"
#include "schedule.h"

#include <tradelock/callback.h>
#include <tradelock/layer.h>
#include <tradelock/submit.h>
#include <tradelock/test_hooks.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum stage {
    SUBMISSION_NEW, /* nothing was submitted, or it is completed */
    ASKING,
    GRANTED, /* the service may send */
    SENDING,
    ENDING
};

struct submission {
    later_item later; /* first; of the ask */
    ending_later ending;
    struct tl_run *run;
    tl_answer *answer;           /* the library's until it is completed */
    tl_posting *granted, *ended; /* or NULL: put */
    atomic_int stage;            /* of enum stage */
    int64_t until_ms, delay_ms;  /* of the ask's tries */
    int64_t send_us;             /* when send_begin was called */
    char log_no[TL_UUID_TEXT];   /* of the piece of work */
    char sentence[ENDING_SENTENCE_MAX];
};

int submission_is_under_way(const struct submission *s)
{
    return s != NULL && atomic_load(&s->stage) != SUBMISSION_NEW;
}

void submission_free(struct submission *s)
{
    if (s == NULL)
        return;
    tl_posting_free(s->granted);
    tl_posting_free(s->ended);
    free(s);
}

static void keep_sentence(struct submission *s)
{
    const char *sentence = tl_error_message();
    size_t size = strnlen(sentence, sizeof s->sentence - 1);

    memcpy(s->sentence, sentence, size);
    s->sentence[size] = '\0';
}

void submission_said(struct submission *s)
{
    if (s != NULL)
        keep_sentence(s);
}

static later *later_of(const struct submission *s)
{
    return &s->run->workflows->later;
}

/* ------------------------------------------------------------------- what is next -- */

/* The answer is the service's from here on. */
static void complete(void *context, tl_status status)
{
    struct submission *s = context;
    tl_posting *last = s->ended;
    later *all = later_of(s);

    if (status != TL_UNKNOWN)
        s->run->phase = RUN_OVER;
    status = run_answer(s->answer, s->run, status);
    keep_sentence(s);
    s->ended = NULL;
    atomic_store(&s->stage, SUBMISSION_NEW);
    later_leave(all);
    tl_posting_complete(last, status);
}

/* --------------------------------------------------------------------------- the ask -- */

static void ask_again(later_item *item);

static void asked(void *context, tl_lock *lock, tl_status status)
{
    struct submission *s = context;
    tl_posting *granted = s->granted;

    (void)lock;
    if (status == TL_UNKNOWN && schedule_now_ms() < s->until_ms) {
        s->later.run = ask_again;
        s->later.due_ms =
            schedule_now_ms() + schedule_backoff_ms(&s->delay_ms, ENDING_AGAIN_MOST_MS);
        later_put(later_of(s), &s->later);
    } else if (status != TL_GRANTED) {
        complete(s, status);
    } else {
        run_granted(s->run);
        s->granted = NULL;
        atomic_store(&s->stage, GRANTED);
        tl_posting_complete(granted, TL_GRANTED);
    }
}

static tl_status submit_ask(struct submission *s)
{
    struct tl_run *run = s->run;

    tl_lock_submit_within(run->lock, schedule_left_ms(s->until_ms));
    if (run->workflow->given.book_prepare != NULL)
        return tl_lock_ask_book_submit(run->lock, run->attempt.book, asked, s);
    return tl_lock_ask_submit(run->lock, asked, s);
}

/* With the lines that book_prepare wrote.  If this cannot be submitted, the ask before it is still
 * unknown. */
static void ask_again(later_item *item)
{
    struct submission *s = (struct submission *)item;
    RUN_WORK work = work_new();

    work.began = tl_work_adopt(s->log_no) == TL_OK;
    if (submit_ask(s) != TL_OK)
        asked(s, s->run->lock, TL_UNKNOWN);
}

/* ----------------------------------------------------------------------- submitting -- */

static tl_status check_workflow(const tl_workflow *w)
{
    if (w->sql_prepare != NULL || w->sql_success != NULL || w->sql_failure != NULL)
        return tl_error_report(TL_INVALID,
                               "%s writes business rows through a connection, which a submitted "
                               "run has not: declare its statements, or call tl_workflow_run()",
                               w->op_code);
    return TL_OK;
}

static tl_status check(tl_workflows *workflows, const tl_request *request, tl_answer *answer)
{
    tl_status status = run_check(workflows, request, answer);

    if (status != TL_OK)
        return status;
    if (request->wait_ms != 0)
        return tl_error_report(TL_INVALID, "wait_ms is not 0: a submitted run does not wait for "
                                           "another attempt");
    if (request->reclaim_epoch != 0)
        return tl_error_report(TL_INVALID,
                               "reclaim_epoch is not 0: a failure is tried anew by "
                               "tl_workflow_run(), which may have to ask the channel first");
    return check_workflow(&workflows_find(workflows, request->key.op_code)->given);
}

static tl_status make(struct tl_run *run, tl_answer *answer, void *context)
{
    struct submission *s = workflow_memory(sizeof *s);
    tl_status status;

    if (s == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a submitted run");
    run->submitted = s;
    s->run = run;
    s->answer = answer;
    status = tl_posting_new(&s->granted, run->workflows->client, context);
    if (status == TL_OK)
        status = tl_posting_new(&s->ended, run->workflows->client, context);
    return status;
}

static tl_status begin(struct submission *s)
{
    struct tl_run *run = s->run;
    tl_status status = run_show_next_epoch(run, 1);

    if (status == TL_OK && run->workflow->given.book_prepare != NULL)
        attempt_book_prepare(&run->attempt);
    if (status == TL_OK)
        status = later_enter(later_of(s));
    if (status != TL_OK)
        return status;
    run->phase = RUN_ASKING;
    memcpy(s->log_no, tl_log_uuid(), sizeof s->log_no);
    s->delay_ms = 0;
    s->until_ms = schedule_now_ms() + run->workflow->given.policy.commit_ms;
    atomic_store(&s->stage, ASKING);
    status = submit_ask(s);
    if (status == TL_OK)
        return TL_OK;
    atomic_store(&s->stage, SUBMISSION_NEW);
    later_leave(later_of(s));
    return status;
}

tl_status tl_workflow_submit(tl_workflows *workflows, const tl_request *request, tl_answer *answer,
                             void *context)
{
    RUN_WORK work = work_new();
    struct tl_run *run = NULL;
    tl_status status;

    workflow_call_begins();
    status = check(workflows, request, answer);
    if (status == TL_OK)
        status = later_check(&workflows->later);
    if (status == TL_OK)
        status = run_new(&run, workflows, request);
    if (status != TL_OK)
        return status;
    work.began = tl_work_begin();
    tl_log_context_set(&run->attempt.said);
    answer->run = run;
    status = make(run, answer, context);
    if (status == TL_OK)
        status = begin(run->submitted);
    if (status == TL_OK)
        return TL_OK;
    answer->run = NULL;
    run_free(run);
    return status;
}

/* -------------------------------------------------------------------------- sending -- */

static tl_status check_stage(tl_workflows *workflows, const tl_answer *answer, enum stage stage,
                             const char *sentence)
{
    if (workflows == NULL || answer == NULL)
        return tl_error_report(TL_INVALID, "a submitted run needs a registry and an answer");
    if (later_check(&workflows->later) != TL_OK)
        return TL_WRONG_PROCESS;
    if (answer->run == NULL || answer->run->submitted == NULL ||
        atomic_load(&answer->run->submitted->stage) != (int)stage)
        return tl_error_report(TL_WRONG_STATE, "%s", sentence);
    return TL_OK;
}

static void end(struct submission *s, tl_execute_result executed)
{
    tl_status status;

    run_choose_ending(s->run, executed);
    ending_book(&s->run->ending);
    s->ending.all = later_of(s);
    s->ending.ending = &s->run->ending;
    memcpy(s->ending.log_no, s->log_no, sizeof s->log_no);
    s->ending.over = complete;
    s->ending.context = s;
    atomic_store(&s->stage, ENDING);
    status = ending_later_submit(&s->ending);
    if (status != TL_OK)
        ending_later_again(&s->ending, status);
}

tl_status tl_workflow_send_begin(tl_workflows *workflows, tl_answer *answer,
                                 const tl_attempt **seen, tl_reply **reply)
{
    RUN_WORK work = work_new();
    struct submission *s;
    struct tl_run *run;
    int64_t execute_ms, until_ms;
    tl_status status;

    workflow_call_begins();
    if (seen == NULL || reply == NULL)
        return tl_error_report(TL_INVALID, "sending needs the attempt and a reply");
    status = check_stage(workflows, answer, GRANTED,
                         "this answer's run was not granted, or is being sent already");
    if (status != TL_OK)
        return status;
    run = answer->run;
    s = run->submitted;
    work.began = tl_log_uuid()[0] == '\0' && tl_work_adopt(s->log_no) == TL_OK;
    tl_log_context_set(&run->attempt.said);
    execute_ms = run->workflow->given.policy.execute_ms;
    s->send_us = schedule_now_us();
    /* Computed before tl_may_send() is asked, as in execute_and_finish(). */
    until_ms = schedule_now_ms() + execute_ms;
    if (!tl_may_send(run->lock, execute_ms)) {
        tl_reply_remark(&run->attempt.reply, "not sent: too little was left of the lock");
        end(s, TL_EXECUTE_NOT_SENT);
        return tl_error_report(TL_TIMEOUT, "too little is left of the hold: nothing is sent");
    }
    if (!attempt_send_begin(&run->attempt, until_ms)) {
        end(s, TL_EXECUTE_NOT_SENT);
        return tl_error_report(TL_TIMEOUT, "the time to send is over: nothing is sent");
    }
    atomic_store(&s->stage, SENDING);
    *seen = &run->attempt.seen;
    *reply = &run->attempt.reply;
    return TL_OK;
}

tl_status tl_workflow_send_end(tl_workflows *workflows, tl_answer *answer,
                               tl_execute_result executed)
{
    RUN_WORK work = work_new();
    struct submission *s;
    tl_status status;

    workflow_call_begins();
    status = check_stage(workflows, answer, SENDING, "nothing is being sent with this answer");
    if (status != TL_OK)
        return status;
    s = answer->run->submitted;
    work.began = tl_log_uuid()[0] == '\0' && tl_work_adopt(s->log_no) == TL_OK;
    tl_log_context_set(&answer->run->attempt.said);
    end(s, attempt_send_end(&answer->run->attempt, executed, s->send_us));
    workflow_call_begins(); /* what its ending came to is said with the completion */
    return TL_OK;
}

const char *tl_answer_sentence(const tl_answer *answer)
{
    if (answer == NULL || answer->run == NULL || answer->run->submitted == NULL ||
        submission_is_under_way(answer->run->submitted))
        return "";
    return answer->run->submitted->sentence;
}
