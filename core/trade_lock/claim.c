/*
 * Asking for the retry-compensation lock by key.
 *
 * By key the claim itself is tried first: one statement, which takes effect only when the lane
 * waits and is due.  Refused, the row is read and explained; a P row whose holder is dead is opened
 * first, exactly as the janitor would, and then claimed.
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"

#include <string.h>

/* Open once, claim once more; a third round means that others are at it. */
#define CLAIM_TRIES 3

static void fill_claim(const tl_lock *lock, step *s)
{
    s->claim_as = lock->options.flags & TL_ASK_OVERRIDE ? CLAIM_OVERRIDE : CLAIM_BY_KEY;
    s->override_fence = lock->options.override_fence;
}

static void run_step(tl_lock *lock, step_task *t)
{
    task_run(lock->base.client->engine, step_task_of(t), lock->base.client->config.pool_wait_ms);
}

/* A P row without a living holder whose retry row is not waiting. */
static tl_status open_dead(tl_lock *lock)
{
    step_task t;

    lock_begin_step(lock, &t, STEP_REAP, 1);
    t.step.held_fence = lock->view.fence;
    t.step.keep_claims = CLAIMS_KEEP;
    run_step(lock, &t);
    if (t.task.verdict == VERDICT_APPLIED) {
        client_add(&lock->base.client->counters.opened, 1);
        return TL_OK;
    }
    if (t.task.verdict == VERDICT_REFUSED || t.task.verdict == VERDICT_LOST)
        return TL_OK; /* somebody else was faster; look again */
    if (t.task.verdict == VERDICT_DECIDING)
        return error_set(TL_BUSY, "an open transaction is deciding this trade");
    if (t.task.verdict != VERDICT_UNKNOWN)
        return lock_failed(&t);
    lock->opening = t.task.doubt;
    return error_set(TL_UNREACHABLE, "the server does not answer");
}

/* What is left of an earlier opening would hold the rows against this claim. */
static void end_opening(tl_lock *lock)
{
    (void)task_end(lock->base.client->engine, &lock->opening,
                   lock->base.client->config.pool_wait_ms);
}

/* A retry row left open beside a finished trade is closed by whoever meets it. */
static void close_leftover(tl_lock *lock)
{
    step_task t;

    if (!lock->view.has_retry_row ||
        (lock->view.parked[0] == '\0' && lock->view.retry_status != 'P' &&
         lock->view.next_run_us == 0))
        return;
    lock_begin_step(lock, &t, STEP_CLOSE, 1);
    run_step(lock, &t);
}

static int is_waiting(const tl_lock *lock)
{
    const tl_view *v = &lock->view;

    return v->has_retry_row && v->retry_status == 'F' && lock->inside.retry_epoch == v->epoch &&
           (v->next_run_us != 0 || v->parked[0] != '\0') && v->session_id[0] == '\0';
}

/* Explains a refused claim; *open becomes 1 when the lane must be opened first. */
static tl_status classify(tl_lock *lock, int *open)
{
    const tl_view *v = &lock->view;

    if (v->repeatable)
        return error_set(TL_MISMATCH, "this key is a repeatable trade, which has no retry lane");
    switch (v->status) {
    case ' ':
        return error_set(TL_NO_TRADE, "there is no such trade to compensate");
    case 'Y':
        close_leftover(lock);
        return TL_ALREADY_DONE;
    case 'F':
        close_leftover(lock);
        return v->conflict ? error_set(TL_IN_CONFLICT, "evidence contradicts the failure")
                           : error_set(TL_FAILED, "the trade failed: %s",
                                       tl_proof_text((tl_proof)v->proof));
    default:
        break;
    }
    if (lock->inside.alive)
        return error_set(TL_BUSY, "in process by %s", v->holder);
    if (!is_waiting(lock)) {
        *open = 1;
        return TL_BUSY;
    }
    if (v->parked[0] != '\0')
        return error_set(TL_PARKED, "parked: %s", v->parked);
    if (v->next_run_us > v->now_us)
        return error_set(TL_NOT_DUE, "the next attempt is due in %lld ms",
                         (long long)((v->next_run_us - v->now_us) / 1000));
    return error_set(TL_BUSY, "another compensating attempt was faster");
}

tl_status ask_retry_once(tl_lock *lock)
{
    /* A claim whose answer was lost goes on: it may have been granted before the drain. */
    tl_status status = lock->base.state == LOCK_ASK_UNKNOWN
                           ? TL_OK
                           : gate_enter(lock->base.client, &lock->pass, "", "");

    end_opening(lock);
    TRY(status);
    for (int try = 0; try < CLAIM_TRIES; try++) {
        step_task t;
        int64_t before_ms = clock_boottime_ms();
        int open = 0;

        lock_begin_step(lock, &t, STEP_CLAIM, lock->base.state != LOCK_ASK_UNKNOWN || try > 0);
        fill_claim(lock, &t.step);
        TRY(lock_read_with(lock, &t));
        run_step(lock, &t);
        if (t.task.verdict == VERDICT_APPLIED) {
            client_add(&lock->base.client->counters.claimed, 1);
            return ask_granted(lock, &t, before_ms);
        }
        if (t.task.verdict == VERDICT_UNKNOWN)
            return lock_unknown(lock, LOCK_ASK_UNKNOWN, &t);
        if (t.task.verdict == VERDICT_FAILED) {
            lock_not_done(lock, LOCK_NEW, &t);
            return lock_failed(&t);
        }
        TRY(lock_read(lock));
        if (ask_is_mine(lock))
            return ask_granted(lock, &t, before_ms);
        /* Whatever became of an earlier ask, it holds nothing now. */
        handle_become(&lock->base, LOCK_NEW);
        if (t.task.verdict == VERDICT_DECIDING) {
            lock->view.being_decided = 1;
            return error_set(TL_BUSY, "an open transaction is deciding this trade");
        }
        status = classify(lock, &open);
        if (!open)
            return status;
        TRY(open_dead(lock));
    }
    return error_set(TL_BUSY, "other compensating attempts were faster");
}
