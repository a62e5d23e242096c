/*
 * Tasks in batches: one statement for all of them.  After an error that the server answered,
 * nothing of it happened; the batch is split, so that one bad row does not fail its neighbours.
 * After a lost answer the statement is never run again: every task is settled by its own token.
 *
 * It uses connections of the pool, alone.c for a task that goes on alone, and settle.c for tasks
 * that were lost together.
 */
#include "transition/batch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread_context.h"
#include "transition/alone.h"
#include "transition/settle.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* A statement of many is given so long at least: one of them may have come late in its own wait. */
#define SHARED_MS 1000

const batch_kind *batch_kind_of(const task *t)
{
    return t->doubt.is_open || t->kind->batch == NULL ? NULL : t->kind->batch(t);
}

void task_send_back(task *t)
{
    assert(!t->doubt.is_open);
    t->stage = TASK_NEW;
    t->verdict = VERDICT_FAILED;
    t->status = TL_TRY_AGAIN;
}

static void send_back(task **tasks, size_t count)
{
    error_clear(); /* each thread finds its own words, within its own deadline */
    for (size_t i = 0; i < count; i++)
        task_send_back(tasks[i]);
}

/* ------------------------------------------------------------------- the statement -- */

/* Whether a server answered that this process has left meanwhile. */
static int is_too_late(task_engine *engine, const db *connection, task **tasks, size_t count,
                       uint64_t began)
{
    const task *applied[BATCH_ROWS];
    size_t done = 0;

    for (size_t i = 0; i < count; i++)
        if (tasks[i]->verdict == VERDICT_APPLIED)
            applied[done++] = tasks[i];
    return !settle_note(engine, applied, done, db_server_of(connection), began);
}

/* Leaves the tasks UNKNOWN if the statement was not answered with DB_DONE, or too late. */
static db_answer run_statement(task_engine *engine, const batch_kind *kind, db *connection,
                               task **tasks, size_t count)
{
    const uint64_t began = marks_begin(engine->noted);
    db_answer answer;

    for (size_t i = 0; i < count; i++) {
        tasks[i]->stage = TASK_OVER;
        tasks[i]->verdict = VERDICT_APPLIED;
    }
    answer = kind->run(tasks, count, connection);
    if (db_lost_in_transaction(connection, answer))
        answer = DB_UNANSWERED; /* the rows are locked until the server has ended it */
    if (answer == DB_DONE && is_too_late(engine, connection, tasks, count, began))
        answer = DB_UNANSWERED;
    for (size_t i = 0; i < count && answer != DB_DONE; i++)
        tasks[i]->verdict = VERDICT_UNKNOWN;
    return answer;
}

/* Whether the halves may succeed on this connection after the server undid the whole.  They would
 * not against a lock of the whole table, which keeps any statement waiting. */
static int may_split(const db *connection, db_answer answer, int64_t deadline_ms)
{
    return answer == DB_ERROR && db_usable(connection) &&
           (db_errno(connection) != ERROR_LOCK_WAIT || db_row_is_taken(connection)) &&
           clock_left_ms(deadline_ms) > 0;
}

/* Runs the statement, and its halves if the server undid it, while the connection is usable. */
static db_answer run_split(task_engine *engine, const batch_kind *kind, db *connection,
                           task **tasks, size_t count, int64_t deadline_ms)
{
    const size_t half = count / 2;
    db_answer answer;

    if (count == 1) {
        /* A single task goes on alone, with its own error and its own repeats. */
        send_back(tasks, 1);
        return DB_DONE;
    }
    answer = run_statement(engine, kind, connection, tasks, count);
    if (!may_split(connection, answer, deadline_ms))
        return answer;
    engine_count(&engine->counters.repeats, 1);
    answer = run_split(engine, kind, connection, tasks, half, deadline_ms);
    if (answer != DB_DONE) {
        send_back(tasks + half, count - half); /* not sent in this form */
        return answer;
    }
    return run_split(engine, kind, connection, tasks + half, count - half, deadline_ms);
}

/* Which tasks have no verdict yet after a statement that went wrong. */
static size_t undecided(task **tasks, size_t count, task **left)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (tasks[i]->verdict == VERDICT_UNKNOWN)
            left[kept++] = tasks[i];
    return kept;
}

/* Ends the connection once for all of them.  A task that provably did not happen may be run again
 * now; each thread settles for itself a task that is still unknown. */
static void settle_lost(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms)
{
    if (count == 0)
        return;
    (void)settle_tasks(engine, tasks, count, deadline_ms);
    for (size_t i = 0; i < count; i++)
        if (tasks[i]->verdict == VERDICT_REFUSED)
            send_back(&tasks[i], 1);
}

static int may_begin(task_engine *engine, task *const *tasks, size_t count, db *connection)
{
    for (size_t i = 0; i < count; i++)
        if (settle_check_wait(engine, tasks[i], connection) != TL_OK ||
            alone_check(tasks[i], connection) != TL_OK)
            return 0;
    return 1;
}

/* One try with the batch's permit.  The task's own thread settles and repeats it, without a permit;
 * it also finds out again what went wrong, so that it has the words for it. */
static void run_single(task_engine *engine, task *t, int64_t deadline_ms)
{
    t->permitted = 1;
    alone_try(engine, t, deadline_ms);
    t->permitted = 0;
    if (!t->doubt.is_open && (t->stage != TASK_OVER || t->verdict == VERDICT_FAILED))
        send_back(&t, 1);
}

/* Needs: more than one task, sorted by key. */
static void run_sorted(task_engine *engine, const batch_kind *kind, task **tasks, size_t count,
                       int64_t deadline_ms)
{
    task *left[BATCH_ROWS];
    db *connection;
    db_answer answer = DB_NOT_SENT;
    size_t lost = 0;

    if (pool_get(engine->connections, kind->pool, clock_left_ms(deadline_ms), &connection) !=
        TL_OK) {
        send_back(tasks, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        tasks[i]->verdict = VERDICT_UNKNOWN;
    if (may_begin(engine, tasks, count, connection))
        answer = run_split(engine, kind, connection, tasks, count, deadline_ms);
    count = undecided(tasks, count, left);
    for (; answer == DB_UNANSWERED && lost < count; lost++)
        task_doubt(left[lost], connection);
    if (lost == 0 && count > 0)
        send_back(left, count);
    pool_put(engine->connections, connection);
    settle_lost(engine, left, lost, deadline_ms);
}

/* ------------------------------------------------------------------------ the batch -- */

static int in_order(const void *left, const void *right)
{
    const task *a = *(task *const *)left, *b = *(task *const *)right;

    return a->kind->batch(a)->order(a, b);
}

/* Finds the first task of each key, and for each task which one that is. */
static size_t take_first_of_keys(const batch_kind *kind, task **tasks, size_t count, task **first,
                                 task **first_of)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (kind->follow == NULL || i == 0 || kind->order(tasks[i - 1], tasks[i]) != 0)
            first[kept++] = tasks[i];
        first_of[i] = first[kept - 1];
    }
    return kept;
}

static void follow(const batch_kind *kind, const task *written, task *t)
{
    t->stage = TASK_OVER;
    if (!alone_is_over(written) || !kind->follow(written, t))
        task_send_back(t);
}

/* Until when the answer for all of them is awaited: none of them waits for another's. */
static int64_t soonest(task *const *tasks, size_t count)
{
    const int64_t least_ms = clock_deadline(SHARED_MS);
    int64_t until_ms = 0;

    for (size_t i = 0; i < count; i++)
        if (tasks[i]->until_ms != 0 && (until_ms == 0 || tasks[i]->until_ms < until_ms))
            until_ms = tasks[i]->until_ms;
    return until_ms != 0 && until_ms < least_ms ? least_ms : until_ms;
}

void batch_run(task_engine *engine, const batch_kind *kind, task **tasks, size_t count,
               int64_t deadline_ms)
{
    const int64_t own_ms = thread_context_await_until(soonest(tasks, count));
    task *first[BATCH_ROWS], *first_of[BATCH_ROWS];
    size_t kept;

    assert(count > 0 && count <= BATCH_ROWS);
    qsort(tasks, count, sizeof(void *), in_order);
    kept = take_first_of_keys(kind, tasks, count, first, first_of);
    if (kept == 1)
        run_single(engine, first[0], deadline_ms);
    else
        run_sorted(engine, kind, first, kept, deadline_ms);
    for (size_t i = 0; i < count; i++)
        if (tasks[i] != first_of[i])
            follow(kind, first_of[i], tasks[i]);
    (void)thread_context_await_until(own_ms);
}

/* --------------------------------------------------------------- what it left open -- */

static struct timespec until(int64_t deadline_ms)
{
    struct timespec at;
    int64_t left_ms = clock_left_ms(deadline_ms);

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += left_ms / 1000;
    at.tv_nsec += (left_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Waits for a turn among the threads that settle for themselves; 0: the deadline came first. */
static int enter(task_engine *engine, int64_t deadline_ms)
{
    struct timespec at = until(deadline_ms);

    if (clock_left_ms(deadline_ms) == 0)
        return 0;
    while (sem_clockwait(&engine->settlers, CLOCK_MONOTONIC, &at) != 0)
        if (errno != EINTR)
            return 0;
    return 1;
}

/* Few threads settle at a time, since each opens a connection. */
int batch_settle(task_engine *engine, task *t, int64_t deadline_ms)
{
    if (!alone_is_lost(t))
        return t->stage == TASK_OVER;
    if (enter(engine, deadline_ms)) {
        alone_settle(engine, t, deadline_ms);
        sem_post(&engine->settlers);
    } else if (t->doubt.is_open) {
        t->stage = TASK_OVER;
        settle_not_knowable(t);
    }
    return t->stage == TASK_OVER;
}
