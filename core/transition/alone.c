/*
 * Carries out one task alone: tries it, tries again while the server undoes it, and settles it when
 * its answer is lost.  Every kind of task goes through this one loop.  It uses connections of the
 * pool and settle.c, and knows no other task.
 */
#include "transition/alone.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "transition/settle.h"

#include <assert.h>

/* Between two tries. */
#define REPEAT_MIN_MS 2
#define REPEAT_MAX_MS 100

void task_fail(task *t, tl_status status)
{
    t->verdict = t->doubt.is_open ? VERDICT_UNKNOWN : VERDICT_FAILED;
    t->status = t->doubt.is_open ? TL_UNKNOWN : status;
}

tl_status task_check_server(const db_server *server, const char *name)
{
    switch (db_state_of(server)) {
    case DB_SERVER_WHOLE:
        return TL_OK;
    case DB_SERVER_STALE:
    case DB_SERVER_LEFT:
        return error_set(TL_UNREACHABLE, "'%s': another server than this one is used now", name);
    case DB_SERVER_REPLICA:
        return error_set(TL_READ_ONLY,
                         "'%s': the server is read-only, and not the one that was accepted: "
                         "perhaps a replica",
                         name);
    case DB_SERVER_RIVAL:
        return error_set(TL_SERVER_UNSAFE,
                         "'%s': two hosts of the list take writes, and neither was accepted after "
                         "the other: make one of them unreachable, accept the other anew with "
                         "`tradelock restore accept`, and start the services again",
                         name);
    case DB_SERVER_MAY_LACK:
        break;
    }
    return error_set(TL_ASK_CHANNEL,
                     "'%s': the server was restored or replaced, and payments and locks may be "
                     "missing in it: ask the channel first; operators accept the server with "
                     "`tradelock restore accept`",
                     name);
}

tl_status task_check_lock(const task *t, const db *connection)
{
    tl_status status = task_check_server(db_server_of(connection), t->name);

    return status == TL_OK && t->life != NULL ? life_check_at(t->life, db_server_of(connection))
                                              : status;
}

tl_status task_check_renewal(const task *t, const db *connection)
{
    return task_check_server(db_server_of(connection), t->name);
}

int task_judge_passing(task *t, const db *connection)
{
    const db_error_kind kind = db_error_kind_of(db_errno(connection));

    if (kind != DB_KIND_GONE && kind != DB_KIND_OVERLOADED && kind != DB_KIND_MOVES)
        return 0;
    task_fail(t, db_error_status(connection, DB_ERROR, t->name));
    t->stage = TASK_AGAIN;
    return 1;
}

/* What an answer other than DB_DONE means. */
static void judge(task *t, db *connection, db_answer answer)
{
    int lost = answer == DB_UNANSWERED || db_lost_in_transaction(connection, answer);
    int repeats =
        answer == DB_ERROR && (db_error_kind_of(db_errno(connection)) == DB_KIND_REPEAT ||
                               db_met_broken_trigger(connection)); /* another copy may be whole */

    if (lost && !t->kind->reads) {
        task_doubt(t, connection);
        t->stage = TASK_AGAIN;
        return;
    }
    if (answer == DB_ERROR && t->kind->judge != NULL && t->kind->judge(t, connection))
        return;
    if (repeats && t->asks && db_row_is_taken(connection)) {
        t->verdict = VERDICT_DECIDING;
        return;
    }
    task_fail(t, db_error_status(connection, answer, t->name));
    if (repeats || lost || answer == DB_NOT_SENT)
        t->stage = TASK_AGAIN;
}

/* A rollback without an answer may still be under way, and its rows are locked until it is over.
 * That is awaited: else the next try, or the next ask of whoever was refused, would meet its own
 * rows.  Before another try it is settled like any lost answer; a verdict stays as it is. */
static void leave_transaction(task *t, db *connection)
{
    if (!db_in_transaction(connection) || db_rollback(connection) == DB_DONE)
        return;
    if (t->kind->reads || t->doubt.is_open)
        return;
    if (t->stage == TASK_AGAIN)
        task_doubt(t, connection);
    else
        text_copy(t->left, sizeof t->left, db_name(connection));
}

/* Whether a commit was answered by a server that this process has left meanwhile. */
static int is_too_late(task_engine *engine, const task *t, const db *connection, uint64_t began)
{
    return t->verdict == VERDICT_APPLIED && !t->kind->reads &&
           !settle_note(engine, &t, 1, db_server_of(connection), began);
}

/* The answer is judged before the rollback overwrites the connection's error. */
static void conclude(task_engine *engine, task *t, db *connection, db_answer answer, uint64_t began)
{
    if (answer != DB_DONE) {
        judge(t, connection, answer);
    } else if (is_too_late(engine, t, connection, began)) {
        task_doubt(t, connection);
        t->stage = TASK_AGAIN;
    } else if (t->verdict == VERDICT_UNKNOWN) {
        t->stage = TASK_AGAIN;
    } else {
        t->doubt.is_open = 0; /* this run was answered, whatever became of an earlier one */
    }
    leave_transaction(t, connection);
    if (t->kind->after != NULL)
        t->kind->after(t, connection);
}

/* Whether it was refused since the connection leads to a server where the process is not, or is no
 * more.  Another connection may lead elsewhere. */
static int is_elsewhere(const task *t, const db *connection)
{
    const db_server *server = db_server_of(connection);

    return t->status == TL_UNREACHABLE &&
           (!db_server_is_used(server) || (t->life != NULL && !life_is_at(t->life, server)));
}

static int is_replica(const db *connection)
{
    return db_state_of(db_server_of(connection)) == DB_SERVER_REPLICA;
}

tl_status alone_check(const task *t, const db *connection)
{
    if (!t->kind->reads && is_replica(connection))
        return task_check_server(db_server_of(connection), t->name);
    return t->kind->check != NULL && !t->doubt.is_open ? t->kind->check(t, connection) : TL_OK;
}

void alone_try(task_engine *engine, task *t, int64_t deadline_ms)
{
    db *connection;
    tl_status status =
        pool_get(engine->connections, t->kind->pool, clock_left_ms(deadline_ms), &connection);
    const uint64_t began = marks_begin(engine->noted);

    assert(t->stage != TASK_OVER && !alone_is_lost(t));
    t->stage = TASK_OVER;
    if (status != TL_OK) {
        task_fail(t, status);
        /* "Too many connections" may pass within the time too. */
        if (status == TL_UNREACHABLE || status == TL_OVERLOADED)
            t->stage = TASK_AGAIN;
        return;
    }
    if (settle_check_wait(engine, t, connection) != TL_OK) {
        task_fail(t, TL_UNREACHABLE);
        t->stage = TASK_AGAIN;
        pool_put(engine->connections, connection);
        return;
    }
    status = alone_check(t, connection);
    if (status == TL_OK) {
        t->verdict = VERDICT_APPLIED;
        conclude(engine, t, connection, t->kind->run(t, connection), began);
    } else {
        task_fail(t, status);
        if (is_elsewhere(t, connection))
            t->stage = TASK_AGAIN;
        if (t->stage == TASK_AGAIN || is_replica(connection))
            db_spoil(connection); /* the next one may lead elsewhere */
    }
    pool_put(engine->connections, connection);
}

int alone_is_lost(const task *t)
{
    return t->left[0] != '\0' ||
           (t->doubt.is_open && (t->kind->read != NULL || t->doubt.connection[0] != '\0'));
}

int alone_is_over(const task *t)
{
    return t->stage == TASK_OVER && !alone_is_lost(t);
}

/* The task provably did not happen, so the same token may be written now. */
static void undone(task *t)
{
    const doubt *d = &t->doubt;

    t->verdict = VERDICT_FAILED;
    if (d->failed_with != 0) {
        t->status = error_set(TL_SERVER_ERROR, "%s: the server says: %s (error %u)", t->name,
                              d->words, d->failed_with);
    } else {
        t->status = error_set(TL_TRY_AGAIN, "'%s' was not done; its answer was lost: %s", t->name,
                              d->words[0] != '\0' ? d->words : "earlier");
        t->stage = TASK_AGAIN;
    }
    if (t->kind->undone != NULL)
        t->kind->undone(t);
}

/* For a task that may simply be run again: only makes sure that the lost run cannot happen later,
 * and undo the next one. */
static void end_lost(task_engine *engine, task *t, int64_t deadline_ms)
{
    if (task_end(engine, &t->doubt, clock_left_ms(deadline_ms)))
        t->stage = TASK_AGAIN;
    else
        settle_not_knowable(t);
}

/* Neither the verdict nor its words depend on it. */
static void await_rollback(task_engine *engine, task *t, int64_t deadline_ms)
{
    doubt rolls_back = {.is_open = 0};
    char sentence[ERROR_MAX];

    text_copy(sentence, sizeof sentence, tl_error_message());
    text_copy(rolls_back.connection, sizeof rolls_back.connection, t->left);
    t->left[0] = '\0';
    (void)task_end(engine, &rolls_back, clock_left_ms(deadline_ms));
    if (sentence[0] != '\0')
        (void)error_set(t->status, "%s", sentence);
    else
        error_clear();
}

void alone_settle(task_engine *engine, task *t, int64_t deadline_ms)
{
    if (t->left[0] != '\0') {
        await_rollback(engine, t, deadline_ms);
        return;
    }
    t->stage = TASK_OVER;
    if (t->kind->read == NULL) {
        end_lost(engine, t, deadline_ms);
        return;
    }
    task_settle(engine, t, clock_left_ms(deadline_ms));
    if (t->verdict == VERDICT_REFUSED)
        undone(t);
    else if (t->verdict != VERDICT_UNKNOWN)
        error_clear(); /* the words about the loss */
}

/* The last pauses are shorter, so that all of the time is used.  0: none is left. */
static int64_t next_pause_ms(task_engine *engine, int64_t *pause_ms, int64_t deadline_ms)
{
    const int64_t left_ms = clock_left_ms(deadline_ms);
    int64_t this_ms;

    if (*pause_ms == 0)
        *pause_ms = REPEAT_MIN_MS;
    this_ms = random_jitter_ms(*pause_ms, 100);
    if (this_ms >= left_ms)
        this_ms = left_ms / 2;
    if (this_ms < REPEAT_MIN_MS)
        return left_ms;
    engine_count(&engine->counters.repeats, 1);
    *pause_ms = *pause_ms * 2 < REPEAT_MAX_MS ? *pause_ms * 2 : REPEAT_MAX_MS;
    return this_ms;
}

/* Once no time is left the last try's words say best what went wrong. */
int64_t alone_go_on(task_engine *engine, task *t, int64_t *pause_ms, int64_t deadline_ms)
{
    if (t->stage == TASK_AGAIN && *pause_ms > 0 && clock_left_ms(deadline_ms) > 0) {
        error_clear();
        alone_try(engine, t, deadline_ms);
    }
    for (;;) {
        if (alone_is_lost(t))
            alone_settle(engine, t, deadline_ms);
        if (t->stage == TASK_OVER)
            return 0;
        if (t->stage == TASK_AGAIN)
            return t->once ? 0 : next_pause_ms(engine, pause_ms, deadline_ms);
        alone_try(engine, t, deadline_ms);
    }
}

void alone_finish(task_engine *engine, task *t, int64_t deadline_ms)
{
    int64_t pause_ms = 0, wait_ms;

    while ((wait_ms = alone_go_on(engine, t, &pause_ms, deadline_ms)) > 0)
        clock_sleep_until_ms(clock_deadline(wait_ms));
}
