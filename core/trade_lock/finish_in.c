/*
 * Ends a trade within the caller's own transaction.  The compare-and-set runs on the caller's
 * connection, which is checked, but never committed, rolled back or SET.
 */
#include "trade_lock/lock.h"

#include "base/error.h"
#include "client/caller.h"
#include "base/thread_context.h"
#include "store/store.h"

static tl_status run_in(tl_lock *lock, db *borrowed, const tl_ending *ending)
{
    /* The session may move while the caller commits. */
    const struct db_server *server = life_server(lock->base.life);
    step_task t;
    db_answer answer;

    ending_to_step(lock, ending, NULL, &t);
    t.step.in_caller = 1;
    if (step_check_life(&t.step) != TL_OK)
        return error_prefix(TL_ROLL_BACK, "roll back");
    session_witness(lock->base.client->session, lock->caller_witness);
    answer = store_step(borrowed, &t.step, STORE_PLAIN);
    if (answer != DB_DONE)
        return caller_must_roll_back(borrowed, answer, "the ending in the caller's transaction");
    if (!t.step.changed)
        return error_set(TL_ROLL_BACK, "roll back: the lock was taken over, evidence "
                                       "forbids this failure, or the server has rolled "
                                       "the transaction back already");
    lock->caller_thread_id = db_thread_id(borrowed);
    lock->caller_server = server;
    handle_become(&lock->base, LOCK_IN_CALLER);
    return TL_OK;
}

tl_status tl_lock_finish_in(tl_lock *lock, struct st_mysql *connection, const tl_ending *ending,
                            unsigned flags)
{
    db *borrowed = NULL;
    tl_status status;

    error_clear();
    TRY(lock_check_ending(lock));
    if (lock->base.state != LOCK_HELD)
        return error_set(TL_WRONG_STATE, "settle the ending that is not known first");
    TRY(ending_check(lock, ending));
    if (!ending_is_final(lock, ending))
        return error_set(TL_INVALID, "only success or a proven failure can be a part of "
                                     "the caller's transaction");
    TRY(caller_open_begun(&borrowed, connection, flags, lock->base.life));
    status = run_in(lock, borrowed, ending);
    db_close(borrowed);
    return status;
}

/* The ending that this handle tried last. */
static task *last_ending(tl_lock *lock, step_task *t)
{
    const int both_rows = lock->options.lane == TL_LANE_RETRY && !lock_is_standalone(lock);

    lock_begin_step(lock, t, both_rows ? STEP_FINISH_RETRY : STEP_FINISH_SYNC, 0);
    return step_task_of(t);
}

static void settle_ending(tl_lock *lock, step_task *t)
{
    task_engine *engine = lock->base.client->engine;
    int64_t budget_ms = lock->base.client->config.commit_ms;
    tl_key key = {lock->serial_no, lock->cust_no, lock_row_op(lock)};
    task *ending = last_ending(lock, t);

    if (lock->base.state == LOCK_IN_CALLER)
        task_settle_caller(engine, ending, &key, lock->caller_thread_id, lock->caller_witness,
                           lock->caller_server, budget_ms);
    else
        task_settle(engine, ending, budget_ms);
}

tl_status tl_lock_settle(tl_lock *lock)
{
    step_task t;

    error_clear();
    TRY(lock_check_call(lock));
    if (thread_context_in_callback())
        return error_set(TL_IN_CALLBACK, "a step was settled inside a database callback");
    if (lock->base.state != LOCK_IN_CALLER && lock->base.state != LOCK_END_UNKNOWN)
        return error_set(TL_WRONG_STATE, "no step of this handle waits to be settled");
    settle_ending(lock, &t);
    switch (t.task.verdict) {
    case VERDICT_APPLIED:
        if (t.task.doubt.rows == ROWS_NOT_SENT)
            return lock_went_alone(lock, LOCK_LOST, &t);
        return ending_applied(lock);
    case VERDICT_REFUSED:
        return settled_not_done(lock);
    default:
        return TL_UNKNOWN;
    }
}

/* 0: it was committed on a server that this process has left meanwhile. */
static int is_noted(tl_lock *lock)
{
    step_task t;

    return task_note_caller(lock->base.client->engine, last_ending(lock, &t), lock->caller_server);
}

tl_status tl_lock_committed(tl_lock *lock, tl_commit commit)
{
    error_clear();
    TRY(lock_check_call(lock));
    if (lock->base.state != LOCK_IN_CALLER)
        return error_set(TL_WRONG_STATE, "no transaction of the caller's is under way "
                                         "with this lock");
    switch (commit) {
    case TL_COMMIT_OK:
        return is_noted(lock) ? ending_applied(lock) : tl_lock_settle(lock);
    case TL_COMMIT_ROLLED_BACK:
        handle_become(&lock->base, LOCK_HELD);
        return TL_OK;
    default:
        return tl_lock_settle(lock);
    }
}
