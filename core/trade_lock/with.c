/*
 * Business rows in the library's own transactions: with the row that becomes P, and with the
 * ending.  The lock's statement begins the transaction; then the callback; then the commit, which
 * shows whether the callback ended the transaction behind our back (db/guard.c).
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "store/store.h"

#include <tradelock/callback.h>

#include <string.h>

#define REPEAT_MIN_MS 2
#define REPEAT_MAX_MS 100

/* What one try of the transaction came to. */
enum with_result {
    WITH_VERDICT, /* t->verdict says it */
    WITH_REFUSED, /* the callback refused */
    WITH_REPEAT,  /* the server undid it; it may be run again */
    WITH_CALLBACK /* the callback failed, or ended the transaction */
};

struct with {
    tl_lock *lock;
    transition *t;
    tl_tx_fn fn;
    void *context;
    db *connection;
    int grants;     /* an ask, which never waits for a row lock */
    int sent;       /* a commit with the callback's rows, in some try */
    int deadlocked; /* an earlier try, as its callback said */
    /* Of a step in doubt: what it comes to, once it proves not to have happened. */
    enum with_result if_undone;
};

/* The connection is done with; the token will say what became of the step. */
static enum with_result leave_in_doubt(struct with *w, enum with_result if_undone)
{
    text_copy(w->t->lost_connection, sizeof w->t->lost_connection, db_name(w->connection));
    w->t->verdict = VERDICT_UNKNOWN;
    w->if_undone = if_undone;
    db_spoil(w->connection);
    return WITH_VERDICT;
}

/* What a step whose answer is lost turns out to be when it did not happen. */
static void lost_before_commit(struct with *w)
{
    w->t->status = error_set(TL_TRY_AGAIN, "the connection was lost before the commit");
    w->if_undone = WITH_REPEAT;
}

static enum with_result server_failed(struct with *w, db_answer answer)
{
    unsigned number = db_errno(w->connection);

    w->t->verdict = VERDICT_FAILED;
    if (answer == DB_UNANSWERED || db_lost_in_transaction(w->connection, answer)) {
        lost_before_commit(w);
        return leave_in_doubt(w, WITH_REPEAT);
    }
    w->t->status = db_error_status(w->connection, answer, step_name(w->t->step.kind));
    if (answer == DB_NOT_SENT)
        return WITH_REPEAT;
    if (answer != DB_ERROR)
        return WITH_VERDICT;
    switch (db_error_classify(number)) {
    case DB_CLASS_REPEAT:
        if (w->grants && db_row_is_taken(w->connection)) {
            w->t->verdict = VERDICT_DECIDING;
            return WITH_VERDICT;
        }
        return WITH_REPEAT;
    case DB_CLASS_DUPLICATE:
        w->t->verdict = strcmp(db_duplicate_key(w->connection), KEY_ONE_PER_CUSTOMER) == 0
                            ? VERDICT_CUSTOMER_BUSY
                            : VERDICT_REFUSED;
        return WITH_VERDICT;
    default:
        return WITH_VERDICT;
    }
}

static int run_callback(void *context)
{
    const struct with *w = context;
    tl_status status;

    fault_point(FAULT_CALLBACK, step_name(w->t->step.kind), "before");
    status = w->fn(w->context, db_lend(w->connection));
    db_take_back(w->connection);
    fault_point(FAULT_CALLBACK, step_name(w->t->step.kind), "after");
    return (int)status;
}

/* A callback may be left by an exception, by the end of its thread or by a longjmp.  Meanwhile the
 * handle says what holds then: the step's fate is not known, and its token tells. */
static tl_status call(struct with *w)
{
    tl_lock *lock = w->lock;
    lock_state before = lock->base.state;
    char lost_before[sizeof lock->base.lost_connection];
    call_out call = {.fn = run_callback,
                     .context = w,
                     .left = client_callback_left,
                     .of = lock->base.client,
                     .what = w->connection,
                     .is_database = 1};
    tl_status status;

    error_clear(); /* what is said from here on is the callback's */
    memcpy(lost_before, lock->base.lost_connection, sizeof lost_before);
    text_copy(lock->base.lost_connection, sizeof lock->base.lost_connection,
              db_name(w->connection));
    lock->rows = ROWS_NOT_SENT;
    handle_become(&lock->base, w->grants ? LOCK_ASK_UNKNOWN : LOCK_END_UNKNOWN);
    status = (tl_status)thread_context_call_out(&call);
    handle_become(&lock->base, before);
    memcpy(lock->base.lost_connection, lost_before, sizeof lost_before);
    return status;
}

/* A sentence that the callback left says more than its status. */
static tl_status callback_failed(tl_status status)
{
    if (tl_error_message()[0] != '\0')
        return error_prefix(TL_CALLBACK_FAILED, "the database callback");
    return error_set(TL_CALLBACK_FAILED, "the database callback answered %s",
                     tl_status_name(status));
}

static enum with_result callback_ended_it(struct with *w)
{
    client_lose_track(w->lock->base.client); /* the lock's statement may be committed */
    w->t->status = error_set(TL_CALLBACK_FAILED,
                             "the database callback of '%s' ended the transaction, or "
                             "released the connection's own GET_LOCK name; it must not "
                             "commit, roll back or RELEASE_ALL_LOCKS()",
                             step_name(w->t->step.kind));
    return WITH_CALLBACK;
}

/*
 * A callback that did not answer TL_OK: refused, failed, or asked to be run again.  Where the
 * savepoint is still there nothing can be committed.  Otherwise it may have committed the lock's
 * statement alone, and the token is asked; of a deadlock, which undoes all, only where the next try
 * shows nothing else (look_back).
 */
static enum with_result callback_stopped(struct with *w, tl_status status)
{
    enum with_result stopped = WITH_CALLBACK;
    db_answer answer;

    if (status == TL_TRY_AGAIN) {
        stopped = WITH_REPEAT;
        w->t->status = error_set(status, "the callback met a deadlock or a lock wait");
        if (db_met_deadlock(w->connection)) {
            w->deadlocked = 1;
            return stopped;
        }
    } else if (status == TL_REFUSED) {
        stopped = WITH_REFUSED;
    } else {
        w->t->status = callback_failed(status);
    }
    answer = db_savepoint_release(w->connection);
    if (answer == DB_DONE)
        return stopped;
    if (status != TL_TRY_AGAIN && answer == DB_ERROR &&
        db_errno(w->connection) == ERROR_NO_SAVEPOINT)
        return callback_ended_it(w);
    if (stopped == WITH_CALLBACK && !db_has_unread(w->connection)) {
        lost_before_commit(w); /* which may be why it failed */
        stopped = WITH_REPEAT;
    }
    return leave_in_doubt(w, stopped);
}

/* Nothing can be sent behind results that nobody read. */
static enum with_result left_unread(struct with *w)
{
    w->t->status =
        error_set(TL_CALLBACK_FAILED, "the database callback of '%s' left results unread",
                  step_name(w->t->step.kind));
    return leave_in_doubt(w, WITH_CALLBACK);
}

static enum with_result try_statements(struct with *w)
{
    tl_status status;
    db_answer answer =
        store_step(w->connection, &w->t->step, w->grants ? STORE_GUARDED_NOWAIT : STORE_GUARDED);

    if (answer != DB_DONE)
        return server_failed(w, answer);
    if (!w->t->step.changed) {
        w->t->verdict = VERDICT_REFUSED;
        return WITH_VERDICT;
    }
    status = w->fn != NULL ? call(w) : TL_OK;
    if (status != TL_OK)
        return callback_stopped(w, status);
    if (db_has_unread(w->connection))
        return left_unread(w);
    answer = db_commit_guarded(w->connection);
    if (answer != DB_NOT_SENT && w->fn != NULL) {
        w->t->rows = ROWS_SENT;
        w->sent = 1;
    }
    if (answer == DB_ERROR && db_errno(w->connection) == ERROR_NO_SAVEPOINT)
        return callback_ended_it(w);
    if (answer != DB_DONE)
        return server_failed(w, answer);
    w->t->verdict = VERDICT_APPLIED;
    return WITH_VERDICT;
}

/* It is closed: what was changed would govern the next trade. */
static void tell_of_changes(const struct with *w)
{
    tl_key key = lock_key(w->lock);

    if (db_changed(w->connection)[0] != '\0')
        log_line(&w->lock->base.client->logger, TL_WARNING, &key, w->lock->grant.fence,
                 "the database callback of '%s' changed the session (%s): its connection "
                 "is closed",
                 step_name(w->t->step.kind), db_changed(w->connection));
}

static enum with_result try_once(struct with *w, int64_t deadline_ms)
{
    tl_client *client = w->lock->base.client;
    enum with_result result;
    tl_status status =
        pool_get(client->connections, POOL_BUSINESS, clock_left_ms(deadline_ms), &w->connection);

    if (status != TL_OK) {
        w->t->verdict = VERDICT_FAILED;
        w->t->status = status;
        return status == TL_UNREACHABLE || status == TL_OVERLOADED ? WITH_REPEAT : WITH_VERDICT;
    }
    status = transition_check_restored(client->transitions, &w->t->step);
    if (status == TL_OK)
        status = transition_check_life(&w->t->step);
    if (status != TL_OK) {
        pool_put(client->connections, w->connection);
        w->t->verdict = VERDICT_FAILED;
        w->t->status = status;
        return WITH_VERDICT;
    }
    w->t->rows = w->fn != NULL ? ROWS_NOT_SENT : ROWS_NONE;
    result = try_statements(w);
    if (db_in_transaction(w->connection))
        (void)db_rollback(w->connection);
    tell_of_changes(w);
    pool_put(client->connections, w->connection);
    return result;
}

/*
 * A step in doubt: settled by the token; when it provably did not happen the whole transaction may
 * be run again.  One thing the token cannot tell: where a callback committed, wrote more and
 * answered TL_OK, and the answer to the library's own commit, which the server refuses then, was
 * lost, the step counts as done with its rows.
 */
static enum with_result settle_lost(struct with *w, int64_t deadline_ms)
{
    transition *t = w->t;
    tl_status if_undone = t->status;
    char sentence[ERROR_MAX];

    text_copy(sentence, sizeof sentence, tl_error_message());
    transition_settle(w->lock->base.client->transitions, t, t->lost_connection,
                      clock_left_ms(deadline_ms));
    if (t->verdict == VERDICT_UNKNOWN)
        return WITH_VERDICT;
    t->lost_connection[0] = '\0';
    if (t->rows == ROWS_NONE && w->fn != NULL)
        t->rows = ROWS_NOT_SENT; /* an earlier call carried none */
    if (t->verdict != VERDICT_REFUSED)
        return WITH_VERDICT;
    t->verdict = VERDICT_FAILED;
    t->status = error_set(if_undone, "%s", sentence);
    return w->if_undone;
}

/*
 * A transaction that was run again after a deadlock, and did not come to a commit of its own.  The
 * callback may have committed before it met the deadlock, and the next try then met that row.
 */
static enum with_result look_back(struct with *w, enum with_result result, int64_t deadline_ms)
{
    verdict seen = w->t->verdict;

    if (!w->deadlocked || seen == VERDICT_UNKNOWN || seen == VERDICT_LOST ||
        (result == WITH_VERDICT && seen == VERDICT_APPLIED))
        return result;
    random_uuid(w->t->lost_connection); /* none is at work any more */
    w->t->rows = ROWS_NOT_SENT;
    w->if_undone = result;
    result = settle_lost(w, deadline_ms);
    if (w->t->verdict == VERDICT_FAILED)
        w->t->verdict = seen;
    return result;
}

static enum with_result run_with(struct with *w, int64_t budget_ms)
{
    int64_t deadline_ms = clock_deadline(budget_ms), pause_ms = REPEAT_MIN_MS;

    if (w->t->lost_connection[0] != '\0')
        lost_before_commit(w);
    for (;;) {
        enum with_result result = WITH_REPEAT;

        if (w->t->lost_connection[0] == '\0')
            result = try_once(w, deadline_ms);
        if (w->t->lost_connection[0] != '\0')
            result = settle_lost(w, deadline_ms);
        if (result == WITH_VERDICT && w->t->verdict == VERDICT_APPLIED)
            error_clear(); /* what an earlier try said */
        if (result != WITH_REPEAT)
            return look_back(w, result, deadline_ms);
        if (clock_left_ms(deadline_ms) == 0) {
            w->t->verdict = VERDICT_FAILED;
            return look_back(w, WITH_VERDICT, deadline_ms);
        }
        atomic_fetch_add_explicit(&transition_count(w->lock->base.client->transitions)->repeats, 1,
                                  memory_order_relaxed);
        clock_sleep_until_ms(clock_deadline(random_jitter_ms(pause_ms, 100)));
        pause_ms = pause_ms * 2 < REPEAT_MAX_MS ? pause_ms * 2 : REPEAT_MAX_MS;
    }
}

static tl_status ask_with_once(tl_lock *lock, struct with *w, step_kind kind, int *again)
{
    int64_t before_ms = clock_boottime_ms();
    tl_status status =
        ask_make_channel_key(lock, kind == STEP_RECLAIM ? lock->options.reclaim_epoch + 1 : 1);

    *again = 0;
    w->deadlocked = 0;
    if (status != TL_OK)
        return status;
    ask_fill(lock, w->t, kind, lock->base.state != LOCK_ASK_UNKNOWN);
    switch (run_with(w, lock->base.client->config.commit_ms)) {
    case WITH_REFUSED:
        lock_not_done(lock, LOCK_NEW, w->t);
        return error_set(TL_REFUSED, "the workflow's prepare refused; no row was left");
    case WITH_CALLBACK:
        lock_not_done(lock, LOCK_NEW, w->t);
        return TL_CALLBACK_FAILED;
    default:
        return ask_verdict(lock, w->t, before_ms, again);
    }
}

struct preparing {
    tl_tx_fn fn;
    void *context;
};

/* A trade that was to be reclaimed and is not there is asked for the first time. */
static tl_status ask_with(tl_lock *lock, void *context)
{
    const struct preparing *prepare = context;
    transition t;
    struct with w = {
        .lock = lock, .t = &t, .fn = prepare->fn, .context = prepare->context, .grants = 1};
    step_kind kind = lock->options.flags & TL_ASK_RECLAIM ? STEP_RECLAIM : STEP_ASK;
    int again = 0;
    tl_status status = ask_with_once(lock, &w, kind, &again);

    if (again)
        status = ask_with_once(lock, &w, STEP_ASK, &again);
    if (again)
        status = error_set(TL_BUSY, "the row was purged just now; ask again");
    return ask_over(lock, status);
}

tl_status tl_lock_ask_with(tl_lock *lock, tl_tx_fn prepare, void *context, int64_t wait_ms)
{
    struct preparing preparing = {prepare, context};
    tl_status status;

    error_clear();
    status = ask_check(lock);
    if (status == TL_OK && (lock->options.lane != TL_LANE_SYNC || lock_is_repeatable(lock)))
        status = error_set(TL_INVALID, "business rows ride along with once-only trades of "
                                       "the sync lane");
    if (status != TL_OK)
        return status;
    client_add(&lock->base.client->counters.asks, 1);
    status =
        wait_ms > 0 ? ask_waiting(lock, wait_ms, ask_with, &preparing) : ask_with(lock, &preparing);
    ask_count(lock, status);
    return status;
}

static tl_status finish_with(tl_lock *lock, const tl_ending *ending, struct with *w,
                             int64_t commit_ms)
{
    switch (run_with(w, commit_ms)) {
    case WITH_CALLBACK:
        lock_not_done(lock, LOCK_HELD, w->t);
        return TL_CALLBACK_FAILED;
    case WITH_REFUSED:
        lock_not_done(lock, LOCK_HELD, w->t);
        return error_set(TL_CALLBACK_FAILED, "a callback of an ending cannot refuse");
    default:
        break;
    }
    /* Where it met what an earlier try of it left behind, that had its rows. */
    if (w->t->verdict == VERDICT_REFUSED && w->sent)
        w->t->rows = ROWS_SENT;
    return finish_verdict(lock, ending, w->t);
}

tl_status tl_lock_finish_with(tl_lock *lock, const tl_ending *ending, tl_tx_fn apply, void *context,
                              int64_t commit_ms)
{
    transition t;
    struct with w = {.lock = lock, .t = &t, .fn = apply, .context = context};
    tl_status status;

    error_clear();
    status = lock_check_ending(lock);
    if (status == TL_OK)
        status = ending_check(lock, ending);
    if (status == TL_OK && !ending_is_final(lock, ending))
        status = error_set(TL_INVALID, "business rows ride along with success or a proven "
                                       "failure only");
    if (status == TL_OK && thread_context_in_callback())
        status = error_set(TL_IN_CALLBACK, "a hold was ended inside a database callback");
    if (status != TL_OK)
        return status;
    w.sent = lock->base.state == LOCK_END_UNKNOWN && lock->rows == ROWS_SENT;
    ending_to_step(lock, ending, NULL, &t);
    return finish_with(lock, ending, &w, commit_ms);
}
