/*
 * Asks and endings with business rows, in a callback transaction (db/callback_tx.c).  The lock's
 * statement begins it, the callback's statements or the book's lines follow, and the commit fails
 * if a callback ended the transaction itself.  All of it is one task, which the engine repeats and
 * settles like any step.  Touches the lock's rows, its handle, and what the callback touches.
 */
#include "trade_lock/with.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "store/store.h"

/* ------------------------------------------------------------------ what a try comes to -- */

static int has_rows(const struct with *w)
{
    return w->fn != NULL || w->book != NULL;
}

db_answer with_stop(struct with *w, tl_status status)
{
    w->t->task.verdict = VERDICT_FAILED;
    w->t->task.status = status;
    text_copy(w->said, sizeof w->said, tl_error_message());
    if (status == TL_TRY_AGAIN)
        w->t->task.stage = TASK_AGAIN;
    return DB_DONE;
}

static void keep_sentence(struct with *w, tl_status if_undone)
{
    w->if_undone = if_undone;
    text_copy(w->sentence, sizeof w->sentence, tl_error_message());
}

/* Ends the try in doubt: the connection is spoilt, and the token will tell what became of the
 * step. */
static db_answer leave_in_doubt(struct with *w, tl_status if_undone)
{
    keep_sentence(w, if_undone);
    task_doubt(&w->t->task, w->connection);
    return DB_DONE;
}

void with_lost_before_commit(struct with *w)
{
    w->if_undone = TL_TRY_AGAIN;
    w->said[0] = '\0';
    text_copy(w->sentence, sizeof w->sentence, "the connection was lost before the commit");
}

/* The step did not happen: the transaction may be run again, unless its callback stopped it. */
static void undone(task *t)
{
    const struct with *w = t->context;

    step_task_undone(t);
    t->status = error_set(w->if_undone, "%s", w->sentence);
    t->stage = w->if_undone == TL_TRY_AGAIN ? TASK_AGAIN : TASK_OVER;
}

/*
 * Reads by the token what became of the step.  One case it cannot tell: a callback committed, wrote
 * more and answered TL_OK; the server then refuses the library's commit, and that answer is lost.
 * The step counts as done with its rows.
 */
static db_answer read_fate(task *t, db *connection)
{
    const struct with *w = t->context;
    db_answer answer = step_task_read(t, connection);

    if (answer == DB_DONE && t->doubt.rows == ROWS_NONE && has_rows(w))
        t->doubt.rows = ROWS_NOT_SENT; /* an earlier call carried none */
    return answer;
}

/* ---------------------------------------------------------------------- the callback -- */

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

/* Calls the callback.  Meanwhile the handle says that the step is in doubt, to whoever calls with
 * it from within. */
static tl_status call(struct with *w)
{
    tl_lock *lock = w->lock;
    const lock_state state_before = lock->base.state;
    tl_status status;

    error_clear(); /* what is said from here on is the callback's */
    handle_become(&lock->base, w->t->task.asks ? LOCK_ASK_UNKNOWN : LOCK_END_UNKNOWN);
    status = (tl_status)thread_context_call_out(run_callback, w, 1);
    handle_become(&lock->base, state_before);
    return status;
}

/* If the callback left a sentence, it is kept: it says more than the status. */
static tl_status callback_failed(tl_status status)
{
    if (tl_error_message()[0] != '\0')
        return error_prefix(TL_CALLBACK_FAILED, "the database callback");
    return error_set(TL_CALLBACK_FAILED, "the database callback answered %s",
                     tl_status_name(status));
}

static db_answer callback_ended_it(struct with *w)
{
    client_lose_track(
        w->lock->base.client); /* the callback may have committed the lock's statement */
    return with_stop(w, error_set(TL_CALLBACK_FAILED,
                                  "the database callback of '%s' ended the transaction, or "
                                  "released the connection's own GET_LOCK name; it must not "
                                  "commit, roll back or RELEASE_ALL_LOCKS()",
                                  step_name(w->t->step.kind)));
}

static tl_status callback_refused(const struct with *w)
{
    return w->t->task.asks
               ? error_set(TL_REFUSED, "the workflow's prepare refused; no row was left")
               : error_set(TL_CALLBACK_FAILED, "a callback of an ending cannot refuse");
}

/* Why a callback did not answer TL_OK: it refused, failed, or asked to be run again. */
static tl_status why_stopped(const struct with *w, tl_status status)
{
    if (status == TL_TRY_AGAIN)
        return error_set(status, "the callback met a deadlock or a lock wait");
    return status == TL_REFUSED ? callback_refused(w) : callback_failed(status);
}

/*
 * The callback did not answer TL_OK.  If the savepoint is still there, nothing is committed.
 * Otherwise the callback may have committed the lock's statement alone, and the token tells.  After
 * a deadlock, which undoes everything, the token is asked only if the next try does not commit
 * either (look_back).
 */
static db_answer callback_stopped(struct with *w, tl_status status)
{
    const tl_status stopped = why_stopped(w, status);
    const int failed = status != TL_TRY_AGAIN && status != TL_REFUSED;
    db_answer answer;

    if (status == TL_TRY_AGAIN && db_met_deadlock(w->connection)) {
        w->deadlocked = 1;
        return with_stop(w, stopped);
    }
    answer = db_savepoint_release(w->connection);
    if (answer == DB_DONE)
        return with_stop(w, stopped);
    if (status != TL_TRY_AGAIN && answer == DB_ERROR &&
        db_errno(w->connection) == ERROR_NO_SAVEPOINT)
        return callback_ended_it(w);
    if (!failed || db_has_unread(w->connection))
        return leave_in_doubt(w, stopped);
    with_lost_before_commit(w); /* the lost connection may be why the callback failed */
    task_doubt(&w->t->task, w->connection);
    return DB_DONE;
}

/* Nothing can be sent while results are unread. */
static db_answer left_unread(struct with *w)
{
    return leave_in_doubt(w, error_set(TL_CALLBACK_FAILED,
                                       "the database callback of '%s' left results unread",
                                       step_name(w->t->step.kind)));
}

/* ----------------------------------------------------------------- the transaction -- */

void with_commit_sent(struct with *w)
{
    w->t->task.doubt.rows = ROWS_SENT;
    w->sent = 1;
}

db_answer with_commit(struct with *w)
{
    db_answer answer = db_callback_tx_commit(w->connection);

    if (answer != DB_NOT_SENT && has_rows(w))
        with_commit_sent(w);
    if (answer == DB_ERROR && db_errno(w->connection) == ERROR_NO_SAVEPOINT)
        return callback_ended_it(w);
    if (answer == DB_DONE)
        error_clear(); /* a sentence that the callback left */
    return answer;
}

static db_answer run(task *t, db *connection)
{
    struct with *w = t->context;
    step *s = &w->t->step;
    tl_status status;

    w->connection = connection;
    with_lost_before_commit(w);
    t->doubt.rows = has_rows(w) ? ROWS_NOT_SENT : ROWS_NONE;
    if (w->book != NULL)
        return with_book(w);
    TRY(store_step(connection, s, t->asks ? STORE_CALLBACK_TX_NOWAIT : STORE_CALLBACK_TX));
    if (!s->changed) {
        t->verdict = VERDICT_REFUSED;
        return DB_DONE;
    }
    status = w->fn != NULL ? call(w) : TL_OK;
    if (status != TL_OK)
        return callback_stopped(w, status);
    return db_has_unread(connection) ? left_unread(w) : with_commit(w);
}

/* The connection is closed, since the changed session would govern the next trade. */
static void tell_of_changes(task *t, db *connection)
{
    const struct with *w = t->context;

    if (db_changed(connection)[0] != '\0')
        lock_log(w->lock, TL_WARNING, w->lock->grant.fence,
                 "the database callback of '%s' changed the session (%s): its connection "
                 "is closed",
                 step_name(w->t->step.kind), db_changed(connection));
}

/*
 * Called when a transaction was run again after a deadlock and came to no commit.  The callback may
 * have committed before it met the deadlock, and the next try then met that very row.
 */
static void look_back(struct with *w, int64_t deadline_ms)
{
    task *t = &w->t->task;
    const verdict seen = t->verdict;

    if (!w->deadlocked || seen == VERDICT_UNKNOWN || seen == VERDICT_LOST ||
        seen == VERDICT_APPLIED)
        return;
    keep_sentence(w, t->status);
    doubt_row(&t->doubt);
    t->doubt.rows = ROWS_NOT_SENT;
    task_settle(w->lock->base.client->engine, t, clock_left_ms(deadline_ms));
    if (t->verdict == VERDICT_REFUSED) {
        t->status = error_set(w->if_undone, "%s", w->sentence);
        t->verdict = seen;
    }
}

/* Makes it a task, &w->t->task, which may be run alone or together with others. */
static void to_task(struct with *w)
{
    static const task_kind callback = {.pool = POOL_BUSINESS,
                                       .check = step_task_check,
                                       .run = run,
                                       .judge = step_task_judge,
                                       .read = read_fate,
                                       .mark = step_task_mark,
                                       .after = tell_of_changes,
                                       .undone = undone};
    static const task_kind book = {.pool = POOL_BOOKS,
                                   .check = step_task_check,
                                   .run = run,
                                   .judge = step_task_judge,
                                   .read = read_fate,
                                   .mark = step_task_mark,
                                   .undone = undone,
                                   .batch = with_book_batch};
    task *t = step_task_of(w->t);

    t->kind = w->book != NULL ? &book : &callback;
    t->context = w;
    if (w->book != NULL)
        t->groups = with_book_queue(w->book);
    with_lost_before_commit(w);
}

static void run_with(struct with *w, int64_t budget_ms)
{
    int64_t deadline_ms = clock_deadline(budget_ms);

    task_run(w->lock->base.client->engine, &w->t->task, budget_ms);
    look_back(w, deadline_ms);
}

static tl_status begin_ask(struct with *w, step_kind kind)
{
    tl_lock *lock = w->lock;
    const unsigned epoch = kind == STEP_RECLAIM ? lock->options.reclaim_epoch + 1 : 1;

    w->deadlocked = 0;
    TRY(ask_check_paused(lock));
    TRY(ask_make_channel_key(lock, epoch));
    ask_fill(lock, w->t, kind, lock->base.state != LOCK_ASK_UNKNOWN);
    TRY(ask_check_permit(lock));
    if (w->book != NULL && kind == STEP_RECLAIM)
        TRY(lock_read(lock)); /* for its amount */
    if (w->book != NULL)
        with_book_own(w, NULL, epoch);
    to_task(w);
    return TL_OK;
}

static tl_status ask_with_once(tl_lock *lock, struct with *w, step_kind kind, int *again)
{
    int64_t before_ms = clock_boottime_ms();

    *again = 0;
    TRY(begin_ask(w, kind));
    (void)thread_context_await_until(0); /* rows that were written are committed, too */
    run_with(w, lock->base.client->config.commit_ms);
    return ask_verdict(lock, w->t, before_ms, again);
}

static step_kind kind_of(const tl_lock *lock)
{
    return lock->options.flags & TL_ASK_RECLAIM ? STEP_RECLAIM : STEP_ASK;
}

struct preparing {
    tl_tx_fn fn;
    tl_book *book;
    void *context;
};

/* Asks once.  If the trade to be reclaimed is not there, it is asked for as a new one. */
static tl_status ask_with(tl_lock *lock, void *context)
{
    const struct preparing *prepare = context;
    step_task t;
    struct with w = {.lock = lock,
                     .t = &t,
                     .fn = prepare->fn,
                     .book = prepare->book,
                     .context = prepare->context};
    int again = 0;
    tl_status status = ask_with_once(lock, &w, kind_of(lock), &again);

    if (again)
        status = ask_with_once(lock, &w, STEP_ASK, &again);
    if (again)
        status = error_set(TL_BUSY, "the row was purged just now; ask again");
    return ask_over(lock, status);
}

static tl_status check_ask(const tl_lock *lock)
{
    TRY(ask_check(lock));
    if (lock->options.lane != TL_LANE_SYNC || lock_is_repeatable(lock))
        return error_set(TL_INVALID, "business rows ride along with once-only trades of "
                                     "the sync lane");
    return TL_OK;
}

static tl_status ask_prepared(tl_lock *lock, struct preparing *preparing, int64_t wait_ms)
{
    const int64_t since_us = clock_boottime_us();
    tl_status status;

    TRY(check_ask(lock));
    client_add(&lock->base.client->counters.asks, 1);
    status =
        wait_ms > 0 ? ask_waiting(lock, wait_ms, ask_with, preparing) : ask_with(lock, preparing);
    ask_count(lock, status, since_us);
    return status;
}

tl_status tl_lock_ask_with(tl_lock *lock, tl_tx_fn prepare, void *context, int64_t wait_ms)
{
    struct preparing preparing = {.fn = prepare, .context = context};

    error_clear();
    return ask_prepared(lock, &preparing, wait_ms);
}

/* Takes the book for this call.  What keeps it from being written is said once the lock is
 * granted. */
static tl_status take_book(const tl_lock *lock, tl_book *book)
{
    if (book == NULL)
        return error_set(TL_INVALID, "book is NULL");
    if (book->books->client != lock->base.client)
        return error_set(TL_INVALID, "the book's statements were declared for another client");
    if (atomic_exchange(&book->used, 1))
        return error_set(TL_WRONG_STATE, "another ask or ending is using the book");
    (void)book_finish(book);
    return TL_OK;
}

static tl_status give_book_back(tl_book *book, tl_status status)
{
    atomic_store(&book->used, 0);
    return status;
}

tl_status tl_lock_ask_book(tl_lock *lock, tl_book *book, int64_t wait_ms)
{
    struct preparing preparing = {.book = book};

    error_clear();
    TRY(ask_check(lock));
    TRY(take_book(lock, book));
    return give_book_back(book, ask_prepared(lock, &preparing, wait_ms));
}

static tl_status check_finish(const tl_lock *lock, const tl_ending *ending)
{
    TRY(ending_check(lock, ending));
    if (!ending_is_final(lock, ending))
        return error_set(TL_INVALID, "business rows ride along with success or a proven "
                                     "failure only");
    if (thread_context_in_callback())
        return error_set(TL_IN_CALLBACK, "a hold was ended inside a database callback");
    return TL_OK;
}

static void begin_finish(struct with *w, const tl_ending *ending)
{
    tl_lock *lock = w->lock;

    w->sent = lock->base.state == LOCK_END_UNKNOWN && lock->base.doubt.rows == ROWS_SENT;
    ending_to_step(lock, ending, NULL, w->t);
    if (w->book != NULL)
        with_book_own(w, ending, lock->epoch);
    to_task(w);
}

static tl_status finish_over(struct with *w, const tl_ending *ending)
{
    /* It met what an earlier try left behind, and that try had its rows. */
    if (w->t->task.verdict == VERDICT_REFUSED && w->sent)
        w->t->task.doubt.rows = ROWS_SENT;
    return finish_verdict(w->lock, ending, w->t);
}

/* Carries out the ending of w, which has its callback or its book. */
static tl_status finish_with(struct with *w, const tl_ending *ending, int64_t commit_ms)
{
    TRY(check_finish(w->lock, ending));
    begin_finish(w, ending);
    run_with(w, commit_ms);
    return finish_over(w, ending);
}

tl_status tl_lock_finish_with(tl_lock *lock, const tl_ending *ending, tl_tx_fn apply, void *context,
                              int64_t commit_ms)
{
    step_task t;
    struct with w = {.lock = lock, .t = &t, .fn = apply, .context = context};

    error_clear();
    TRY(lock_check_ending(lock));
    return finish_with(&w, ending, commit_ms);
}

tl_status tl_lock_finish_book(tl_lock *lock, const tl_ending *ending, tl_book *book,
                              int64_t commit_ms)
{
    step_task t;
    struct with w = {.lock = lock, .t = &t, .book = book};

    error_clear();
    TRY(lock_check_ending(lock));
    TRY(take_book(lock, book));
    return give_book_back(book, finish_with(&w, ending, commit_ms));
}

/* ---------------------------------------------------------- in halves, for async -- */

tl_status with_take_ask(const tl_lock *lock, tl_book *book)
{
    TRY(check_ask(lock));
    return take_book(lock, book);
}

tl_status with_take_finish(const tl_lock *lock, const tl_ending *ending, tl_book *book)
{
    TRY(check_finish(lock, ending));
    return take_book(lock, book);
}

void with_give_back(tl_book *book)
{
    atomic_store(&book->used, 0);
}

tl_status with_ask_begin(struct with *w, tl_lock *lock, step_task *t, tl_book *book)
{
    *w = (struct with){.lock = lock, .t = t, .book = book};
    return begin_ask(w, kind_of(lock));
}

static void say_again(const struct with *w)
{
    if (w->t->task.verdict == VERDICT_FAILED && w->said[0] != '\0')
        (void)error_set(w->t->task.status, "%s", w->said);
}

/* If the trade to be reclaimed is not there, it is asked for alone, as a new one. */
tl_status with_ask_over(struct with *w, int64_t before_ms)
{
    int again = 0;
    tl_status status;

    say_again(w);
    status = ask_verdict(w->lock, w->t, before_ms, &again);
    return again ? with_ask_alone(w->lock, w->book) : ask_over(w->lock, status);
}

tl_status with_ask_alone(tl_lock *lock, tl_book *book)
{
    struct preparing preparing = {.book = book};

    return ask_with(lock, &preparing);
}

void with_finish_begin(struct with *w, tl_lock *lock, const tl_ending *ending, step_task *t,
                       tl_book *book)
{
    *w = (struct with){.lock = lock, .t = t, .book = book};
    begin_finish(w, ending);
}

tl_status with_finish_over(struct with *w, const tl_ending *ending)
{
    say_again(w);
    return finish_over(w, ending);
}
