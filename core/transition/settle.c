/*
 * Finds out what became of a task whose answer was lost.  The request may still be travelling, the
 * server may still work on it, or the commit happened and only its answer is gone.  So, in this
 * order:
 *
 *   1. The connection is ended by its GET_LOCK name, and that name becoming free is awaited: only
 *      then can nothing of it happen later.  A caller's connection has no name; its transaction
 *      holds the row from the ending on, so getting the row's lock proves that it has ended.
 *   2. The task's kind reads by the task's token whether it was committed, and whether it is still
 *      worth anything.
 *   3. If the token is nowhere, the task did not happen.
 *   4. If it is there, it counts once a later commit of this process is answered.  An administrator
 *      may have ended the wait of that commit for a replica, and with AFTER_COMMIT nobody has to: a
 *      primary that is cut off shows it then, and its successor will not have it.
 *
 * Only the server to which the request was sent knows of it; for a caller's transaction that is the
 * server of the session under which the lock is held.  Another one does once it was accepted as
 * that one's successor.  And what is nowhere on a server that was restored since may have been
 * committed.  Until then the task stays in doubt.
 *
 * The lowest file of this room: it uses connections and the kinds' `read`, and runs no task.
 */
#include "transition/settle.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ERROR_NO_SUCH_THREAD 1094
#define LOOK_AGAIN_MS 5
#define LOOK_SELDOM_MS 100
#define RECONNECT_MS 50
/* A server whose replica has not acknowledged a commit for so long is not worth another one. */
#define AWAITED_MS 3000
/* So many connections may lead to a server that cannot tell.  Another one is not to be expected
 * within the time of one call, and whoever waits has other work. */
#define UNTOLD_TRIES 3

/* What one look tells of a connection whose answer was lost. */
enum gone { GONE, STILL_THERE, NOT_PROVABLE, NO_ANSWER };

/* What one connection tells of what was lost.  UNTOLD: it leads to a server that cannot tell. */
enum told { TOLD, NOT_TOLD_YET, UNTOLD };

/* A lost connection, ours by its name or a caller's, and the tasks that are in doubt with it. */
struct lost {
    const char *name; /* "": it is gone already */
    /* If key is not NULL, a caller's connection. */
    const tl_key *key;
    uint64_t thread_id;
    const char *witness;
    const db_server *server; /* NULL: not known */
    int was_whole;
    task **tasks;
    size_t count;
};

static commit_mark mark_of(const task *t)
{
    commit_mark m = {.kind = MARK_UNTOLD};

    text_copy(m.name, sizeof m.name, t->name);
    if (t->kind->mark != NULL)
        t->kind->mark(t, &m);
    return m;
}

/* Any of them stands for all, so the one that can be looked up. */
int settle_note(task_engine *engine, const task *const *tasks, size_t count,
                const db_server *server, uint64_t began)
{
    commit_mark best = {.kind = MARK_NONE};
    int is_believed;

    for (size_t i = 0; i < count && best.kind <= MARK_NONE; i++) {
        const commit_mark m = mark_of(tasks[i]);

        if (m.kind != MARK_NONE)
            best = m;
    }
    best.of_many = count > 1;
    is_believed = marks_note(engine->noted, &best, server, began);
    for (size_t i = 0; i < count && atomic_load(&engine->noted->lasting) > 0; i++) {
        const commit_mark m = mark_of(tasks[i]);

        marks_follow(engine->noted, &m);
    }
    return is_believed;
}

/* ------------------------------------------------------------- ending a connection -- */

/* SOFT ends no commit's wait for a replica, which may have begun since somebody looked.  Whatever is
 * ended so waits until a replica has it, and the server's own end waits for it. */
static enum gone kill_thread(task_engine *engine, db *connection, uint64_t id)
{
    char sql[64];
    int size = snprintf(sql, sizeof sql, "KILL SOFT CONNECTION %llu", (unsigned long long)id);
    db_answer answer = db_run_text(connection, "kill", sql, (size_t)size, NULL);

    if (answer == DB_DONE) {
        engine_count(&engine->counters.killed, 1);
        return STILL_THERE;
    }
    if (answer != DB_ERROR)
        return NO_ANSWER;
    if (db_errno(connection) == ERROR_NO_SUCH_THREAD)
        return GONE;
    return NOT_PROVABLE;
}

/* The id of the connection that holds this name, 0: nobody; and whether it waits for a replica. */
static db_answer find_named(db *connection, const char *name, uint64_t *id, int *waits)
{
    char lock_name[RANDOM_UUID + 4];
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    snprintf(lock_name, sizeof lock_name, "tl:%s", name);
    answer = SQL_RUN(connection, &result, connection_used, .name = db_text(lock_name));
    if (answer == DB_DONE) {
        *id = db_get_uint(&result, 0, 0);
        *waits = db_get_int(&result, 0, 1) != 0;
    }
    return answer;
}

static tl_status check_wait(task_engine *engine, db *connection)
{
    int is_awaited = 0;
    db_answer answer;

    if (!atomic_load(&engine->is_waiting))
        return TL_OK;
    answer = store_replica_awaited(connection, AWAITED_MS, &is_awaited);
    if (is_awaited)
        return error_set(TL_UNREACHABLE,
                         "the server answers no commit before a replica has it, and "
                         "one has waited for long; nothing more is begun");
    if (answer == DB_DONE)
        atomic_store(&engine->is_waiting, 0);
    return answer == DB_DONE || answer == DB_ERROR
               ? TL_OK
               : db_read_status(connection, answer, "looking whether commits wait for a replica");
}

tl_status settle_check_wait(task_engine *engine, const task *t, db *connection)
{
    return t->kind->reads || t->presses_on ? TL_OK : check_wait(engine, connection);
}

/* One look at the connection of this name. */
static enum gone end_named(task_engine *engine, db *connection, const char *name)
{
    uint64_t id = 0;
    int waits = 0;
    enum gone gone;

    if (name[0] == '\0')
        return GONE;
    if (find_named(connection, name, &id, &waits) != DB_DONE)
        return NO_ANSWER;
    if (id == 0)
        return GONE;
    if (waits) {
        atomic_store(&engine->is_waiting, 1);
        return STILL_THERE;
    }
    gone = kill_thread(engine, connection, id);
    /* The thread may end between the look and the kill; look again. */
    return gone == GONE ? STILL_THERE : gone;
}

/* DB_DONE if nobody has the row's lock now, DB_ERROR if somebody has. */
static db_answer row_is_free(db *connection, const tl_key *key)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = db_begin(connection);

    if (answer == DB_DONE)
        answer = store_evidence_lock(connection, key, &result);
    if (answer == DB_DONE)
        return db_rollback(connection);
    if (answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT)
        return db_rollback(connection) == DB_DONE ? DB_ERROR : DB_UNANSWERED;
    return DB_UNANSWERED;
}

/*
 * One look at a caller's transaction.  Connection ids start again when the server restarts, so
 * somebody else may have the caller's id now.  The connection is therefore killed only while the
 * witness is held, a name that was held before the caller's ending: then the server has not
 * restarted.  Otherwise the end of the transaction is awaited.
 */
static enum gone end_caller(task_engine *engine, db *connection, const struct lost *lost)
{
    uint64_t witness = 0;
    int waits;

    switch (row_is_free(connection, lost->key)) {
    case DB_DONE:
        return GONE;
    case DB_ERROR:
        break;
    default:
        return NO_ANSWER;
    }
    if (lost->witness[0] != '\0' &&
        find_named(connection, lost->witness, &witness, &waits) != DB_DONE)
        return NO_ANSWER;
    if (witness != 0 && kill_thread(engine, connection, lost->thread_id) == NO_ANSWER)
        return NO_ANSWER;
    return STILL_THERE;
}

/* ----------------------------------------------------------------- reading its fate -- */

static db_answer read_task(task *t, db *connection)
{
    assert(t->kind->read != NULL && t->doubt.is_open);
    t->verdict = VERDICT_REFUSED;
    TRY(t->kind->read(t, connection));
    assert(t->verdict == VERDICT_APPLIED || t->verdict == VERDICT_LOST ||
           t->verdict == VERDICT_REFUSED);
    t->settled = t->verdict != VERDICT_REFUSED;
    return DB_DONE;
}

static db_answer read_each(const struct lost *lost, db *connection)
{
    db_answer answer = DB_DONE;

    for (size_t i = 0; i < lost->count && answer == DB_DONE; i++)
        answer = read_task(lost->tasks[i], connection);
    return answer;
}

/* A commit of this session.  The heartbeat, and whoever else settles, hold its row for a moment. */
static db_answer commit_as(const char *session_id, db *connection, int64_t deadline_ms,
                           int *committed)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    while ((answer = SQL_RUN(connection, &result, session_acknowledge,
                             .session_id = db_text(session_id))) == DB_ERROR &&
           db_errno(connection) == ERROR_LOCK_WAIT && clock_left_ms(deadline_ms) > 0)
        clock_sleep_until_ms(clock_deadline(LOOK_AGAIN_MS));
    *committed = answer == DB_DONE && result.affected == 1;
    return answer;
}

/* A commit that comes after all that was read.  Only sessions send money: what others did may be
 * read, and so may what was done under sessions whose rows are purged since. */
static db_answer acknowledge(task_engine *engine, const struct lost *lost, db *connection,
                             int64_t deadline_ms)
{
    db_answer answer = DB_DONE;
    int committed = 0;

    for (size_t i = 0; i < lost->count && answer == DB_DONE && !committed; i++)
        if (lost->tasks[i]->settled && lost->tasks[i]->life != NULL)
            answer = check_wait(engine, connection) == TL_OK
                         ? commit_as(life_session_id(lost->tasks[i]->life), connection, deadline_ms,
                                     &committed)
                         : DB_NOT_SENT;
    if (answer == DB_UNANSWERED)
        atomic_store(&engine->is_waiting, 1);
    return answer;
}

/* Whether this server tells what became of a request. */
static int tells(const struct lost *lost, const db_server *here)
{
    if (db_state_of(here) == DB_SERVER_REPLICA)
        return 0;
    if (here == NULL || lost->server == NULL || lost->server == here)
        return 1;
    return db_state_of(lost->server) == DB_SERVER_LEFT && db_state_of(here) == DB_SERVER_WHOLE;
}

/* Whether what was read may be believed: where a restore was found since, "it is nowhere" does not
 * say that it did not happen. */
static int is_believed(const struct lost *lost, const db_server *here)
{
    for (size_t i = 0; i < lost->count; i++)
        if (lost->tasks[i]->verdict == VERDICT_REFUSED && lost->was_whole && here != NULL &&
            db_state_of(here) != DB_SERVER_WHOLE)
            return 0;
    return 1;
}

/* What was found counts as answered now.  When it was committed is not known, so it covers
 * nothing. */
static int note_all(task_engine *engine, const struct lost *lost, const db *connection)
{
    int noted = 1;

    for (size_t i = 0; i < lost->count && noted; i++) {
        const task *t = lost->tasks[i];

        if (t->settled)
            noted = settle_note(engine, &t, 1, db_server_of(connection), 0);
    }
    return noted;
}

static int read_all(task_engine *engine, const struct lost *lost, db *connection,
                    int64_t deadline_ms)
{
    const int known = read_each(lost, connection) == DB_DONE &&
                      is_believed(lost, db_server_of(connection)) &&
                      acknowledge(engine, lost, connection, deadline_ms) == DB_DONE &&
                      note_all(engine, lost, connection);

    for (size_t i = 0; i < lost->count; i++) {
        task *t = lost->tasks[i];

        if (known) {
            t->doubt.is_open = 0;
            t->doubt.connection[0] = '\0';
        } else {
            t->verdict = VERDICT_UNKNOWN;
            t->settled = 0;
        }
    }
    return known;
}

/* One attempt on one connection; 1 when everything is known. */
static int settle_on(task_engine *engine, db *connection, const struct lost *lost,
                     int64_t deadline_ms)
{
    int64_t pause_ms = LOOK_AGAIN_MS;

    for (;;) {
        enum gone gone = lost->key == NULL ? end_named(engine, connection, lost->name)
                                           : end_caller(engine, connection, lost);

        if (gone == GONE)
            return read_all(engine, lost, connection, deadline_ms);
        if (gone == NO_ANSWER || clock_left_ms(deadline_ms) == 0)
            return 0;
        clock_sleep_until_ms(clock_deadline(pause_ms));
        pause_ms = pause_ms * 2 < LOOK_SELDOM_MS ? pause_ms * 2 : LOOK_SELDOM_MS;
    }
}

/* A task that only has to be read waits for a connection of the pool.  To end a connection an extra
 * one is opened, since the lost one may block those who have all of the pool's. */
static enum told settle_once(task_engine *engine, const struct lost *lost, int64_t deadline_ms)
{
    const int reads = lost->key == NULL && lost->name[0] == '\0';
    pool *connections = engine->connections;
    db *connection;
    int settled = 0, is_told;

    if (reads) {
        if (pool_get(connections, POOL_QUICK, clock_left_ms(deadline_ms), &connection) != TL_OK)
            return NOT_TOLD_YET;
    } else {
        if (pool_open_extra(connections, POOL_QUICK, &connection) != TL_OK)
            return NOT_TOLD_YET;
    }
    is_told = tells(lost, db_server_of(connection));
    if (!is_told)
        db_spoil(connection); /* the next one may lead to the right server */
    else if (reads)
        settled = read_all(engine, lost, connection, deadline_ms);
    else
        settled = settle_on(engine, connection, lost, deadline_ms);
    if (reads)
        pool_put(connections, connection);
    else
        pool_close_extra(connections, connection);
    if (settled)
        return TOLD;
    return is_told ? NOT_TOLD_YET : UNTOLD;
}

static enum told settle(task_engine *engine, const struct lost *lost, int64_t deadline_ms)
{
    int64_t pause_ms = RECONNECT_MS;
    int untold = 0;
    enum told told;

    for (;;) {
        told = settle_once(engine, lost, deadline_ms);
        untold = told == UNTOLD ? untold + 1 : 0;
        if (told == TOLD || untold == UNTOLD_TRIES)
            return told;
        clock_sleep_until_ms(clock_deadline(pause_ms));
        if (clock_left_ms(deadline_ms) == 0)
            return told;
        pause_ms = untold > 0 ? pause_ms * 2 : RECONNECT_MS;
    }
}

static atomic_uint_fast64_t *counter_of(transition_counters *counters, verdict found)
{
    switch (found) {
    case VERDICT_APPLIED:
        return &counters->lost_applied;
    case VERDICT_LOST:
        return &counters->lost_superseded;
    case VERDICT_REFUSED:
        return &counters->lost_not_done;
    default:
        return &counters->lost_unknown;
    }
}

static int settle_and_count(task_engine *engine, const struct lost *lost, int64_t deadline_ms)
{
    const int was_lost = lost->key != NULL || lost->name[0] != '\0';
    enum told told;

    for (size_t i = 0; i < lost->count; i++) {
        assert(lost->tasks[i]->doubt.is_open);
        lost->tasks[i]->verdict = VERDICT_UNKNOWN;
        lost->tasks[i]->status = TL_UNKNOWN;
    }
    told = settle(engine, lost, deadline_ms);
    for (size_t i = 0; i < lost->count; i++)
        lost->tasks[i]->untold = told == UNTOLD;
    for (size_t i = 0; i < lost->count && was_lost; i++)
        engine_count(counter_of(&engine->counters, lost->tasks[i]->verdict), 1);
    if (told == TOLD && was_lost)
        engine_count(&engine->counters.settled, lost->count);
    return told == TOLD;
}

int settle_tasks(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms)
{
    char name[RANDOM_UUID];
    struct lost lost = {.name = name,
                        .server = tasks[0]->doubt.server,
                        .was_whole = tasks[0]->doubt.was_whole,
                        .tasks = tasks,
                        .count = count};

    memcpy(name, tasks[0]->doubt.connection, sizeof name); /* reading clears it */
    return settle_and_count(engine, &lost, deadline_ms);
}

void settle_not_knowable(task *t)
{
    t->verdict = VERDICT_UNKNOWN;
    t->status = error_set(TL_UNKNOWN,
                          "the answer to '%s' was lost and the server cannot tell yet what became "
                          "of it; call again with the same handle",
                          t->name);
}

void task_settle(task_engine *engine, task *t, int64_t budget_ms)
{
    if (!settle_tasks(engine, &t, 1, clock_deadline(budget_ms)))
        settle_not_knowable(t);
}

void task_settle_caller(task_engine *engine, task *t, const tl_key *key, uint64_t thread_id,
                        const char *witness, const db_server *server, int64_t budget_ms)
{
    struct lost lost = {.name = "",
                        .key = key,
                        .thread_id = thread_id,
                        .witness = witness,
                        .server = server,
                        .was_whole = 1,
                        .tasks = &t,
                        .count = 1};

    t->doubt.is_open = 1;
    if (!settle_and_count(engine, &lost, clock_deadline(budget_ms)))
        settle_not_knowable(t);
}

/* When it was sent is not known, so it covers nothing. */
int task_note_caller(task_engine *engine, const task *t, const db_server *server)
{
    return settle_note(engine, &t, 1, server, 0);
}

int task_end(task_engine *engine, doubt *d, int64_t budget_ms)
{
    struct lost lost = {.name = d->connection, .server = d->server, .was_whole = d->was_whole};

    if (d->connection[0] == '\0')
        return 1;
    if (settle(engine, &lost, clock_deadline(budget_ms)) != TOLD)
        return 0;
    d->connection[0] = '\0';
    return 1;
}

/* -------------------------------------------------------------------- what is in doubt -- */

void doubt_row(doubt *d)
{
    d->is_open = 1;
    d->connection[0] = '\0';
    d->server = NULL;
    d->was_whole = 0;
}

void doubt_at(doubt *d, const db *connection)
{
    text_copy(d->connection, sizeof d->connection, db_name(connection));
    d->server = db_server_of(connection);
    d->was_whole = db_state_of(d->server) == DB_SERVER_WHOLE;
}

void task_doubt(task *t, db *connection)
{
    doubt *d = &t->doubt;

    d->is_open = 1;
    doubt_at(d, connection);
    text_copy(d->words, sizeof d->words, db_error(connection));
    d->failed_with = db_failed_with(connection);
    t->verdict = VERDICT_UNKNOWN;
    t->status = TL_UNKNOWN;
    db_spoil(connection);
}
