/*
 * When an answer is lost.  The request may still be travelling, the server may still be at it, or
 * the commit may have happened and only its answer is gone.  So, in this order:
 *
 *   1. the connection is ended, by its GET_LOCK name, and its name becoming free is
 *      awaited: only then nothing of it can happen later.  A connection of a caller's has
 *      no name; its transaction holds the row from the ending on, so that getting the
 *      row's lock proves that it has ended;
 *   2. the row is read by its key: our token there means that the step was committed;
 *   3. else history is asked whether the token was ever written: then it was committed
 *      and somebody has gone on from there;
 *   4. else it did not happen.
 *
 * What was granted counts only while the row is still P under this living session.
 */
#include "transition/inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define LOOK_AGAIN_MS 5
#define RECONNECT_MS 50

/* What is known about a connection that was left behind. */
enum gone { GONE, STILL_THERE, NOT_PROVABLE, NO_ANSWER };

static enum gone kill_thread(transition_engine *engine, db *connection, uint64_t id)
{
    char sql[64];
    int size = snprintf(sql, sizeof sql, "KILL CONNECTION %llu", (unsigned long long)id);
    db_answer answer = db_run_text(connection, "kill", sql, (size_t)size, NULL);

    if (answer == DB_DONE) {
        atomic_fetch_add_explicit(&engine->counters.killed, 1, memory_order_relaxed);
        return STILL_THERE;
    }
    if (answer != DB_ERROR)
        return NO_ANSWER;
    if (db_errno(connection) == ERROR_NO_SUCH_THREAD)
        return GONE;
    return NOT_PROVABLE;
}

/* The id of the connection that holds this name; 0: nobody. */
static db_answer find_named(db *connection, const char *name, uint64_t *id)
{
    char lock_name[RANDOM_UUID + 4];
    db_result result = DB_RESULT_INIT;
    db_answer answer;

    snprintf(lock_name, sizeof lock_name, "tl:%s", name);
    answer = store_connection_used(connection, lock_name, &result);
    if (answer == DB_DONE)
        *id = result.rows == 1 ? db_get_uint(&result, 0, 0) : 0;
    db_result_free(&result);
    return answer;
}

/* One look at the connection of this name. */
static enum gone end_named(transition_engine *engine, db *connection, const char *name)
{
    uint64_t id = 0;
    enum gone gone;

    if (find_named(connection, name, &id) != DB_DONE)
        return NO_ANSWER;
    if (id == 0)
        return GONE;
    gone = kill_thread(engine, connection, id);
    /* The thread may end between the look and the kill; look again. */
    return gone == GONE ? STILL_THERE : gone;
}

/* A caller's transaction that was left behind. */
struct caller {
    const step *step;
    uint64_t thread_id;
    const char *witness;
};

/* Whether nobody has the row's lock now. */
static db_answer row_is_free(db *connection, const step *s)
{
    tl_key key = {s->serial_no, s->cust_no, s->op_code};
    db_result result = DB_RESULT_INIT;
    db_answer answer = db_begin(connection);

    if (answer == DB_DONE)
        answer = store_evidence_lock(connection, &key, &result);
    db_result_free(&result);
    if (answer == DB_DONE)
        return db_rollback(connection);
    if (answer == DB_ERROR && db_errno(connection) == ERROR_LOCK_WAIT)
        return db_rollback(connection) == DB_DONE ? DB_ERROR : DB_UNANSWERED;
    return DB_UNANSWERED;
}

/*
 * One look at a caller's transaction.  Ids of connections begin again when the server does, and
 * somebody else's connection may have the caller's id now: it is ended only while a name that was
 * held before the caller's ending is held still, by which this is the same run of the server.  Else
 * its end is awaited.
 */
static enum gone end_caller(transition_engine *engine, db *connection, const struct caller *caller)
{
    uint64_t witness = 0;

    switch (row_is_free(connection, caller->step)) {
    case DB_DONE:
        return GONE;
    case DB_ERROR:
        break;
    default:
        return NO_ANSWER;
    }
    if (caller->witness[0] != '\0' && find_named(connection, caller->witness, &witness) != DB_DONE)
        return NO_ANSWER;
    if (witness != 0 && kill_thread(engine, connection, caller->thread_id) == NO_ANSWER)
        return NO_ANSWER;
    return STILL_THERE;
}

/* Steps 2 to 4, once the connection is gone. */
static db_answer read_by_token(db *connection, transition *t)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = store_token_now(connection, &t->step, &result);

    if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) != 0) {
        int worth = !step_is_grant(t->step.kind) ||
                    (db_get_text(&result, 0, 1)[0] == 'P' && db_get_int(&result, 0, 4) &&
                     db_get_int(&result, 0, 5));

        t->verdict = worth ? VERDICT_APPLIED : VERDICT_LOST;
        t->step.changed = worth;
        t->step.fence = db_get_uint(&result, 0, 2);
        t->step.epoch = (uint32_t)db_get_uint(&result, 0, 3);
    } else if (answer == DB_DONE) {
        answer = store_token_seen(connection, &t->step, &result);
        if (answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) != 0)
            t->verdict = step_is_grant(t->step.kind) ? VERDICT_LOST : VERDICT_APPLIED;
        else if (answer == DB_DONE)
            t->verdict = VERDICT_REFUSED;
    }
    db_result_free(&result);
    return answer;
}

/* A connection that was left behind, ours by its name or a caller's, and who reads what became of
 * its work. */
struct lost {
    const char *name;
    struct caller caller; /* without a step: ours, by its name */
    settle_read_fn read;
    void *context;
};

/* One attempt to settle on one connection: 1 when it is known. */
static int settle_on(transition_engine *engine, db *connection, const struct lost *lost,
                     int64_t deadline_ms)
{
    for (;;) {
        enum gone gone = lost->caller.step == NULL ? end_named(engine, connection, lost->name)
                                                   : end_caller(engine, connection, &lost->caller);

        if (gone == GONE)
            return lost->read(lost->context, connection) == DB_DONE;
        if (gone == NO_ANSWER || clock_left_ms(deadline_ms) == 0)
            return 0;
        clock_sleep_until_ms(clock_deadline(LOOK_AGAIN_MS));
    }
}

static int settle_lost(transition_engine *engine, const struct lost *lost, int64_t deadline_ms)
{
    do {
        db *connection;
        int settled = 0;

        if (pool_open_extra(engine->connections, POOL_QUICK, &connection) == TL_OK) {
            settled = settle_on(engine, connection, lost, deadline_ms);
            pool_close_extra(engine->connections, connection);
        }
        if (settled)
            return 1;
        clock_sleep_until_ms(clock_deadline(RECONNECT_MS));
    } while (clock_left_ms(deadline_ms) > 0);
    return 0;
}

int settle_connection(transition_engine *engine, const char *connection_name, settle_read_fn read,
                      void *context, int64_t budget_ms)
{
    struct lost lost = {.name = connection_name, .read = read, .context = context};

    if (!settle_lost(engine, &lost, clock_deadline(budget_ms)))
        return 0;
    atomic_fetch_add_explicit(&engine->counters.settled, 1, memory_order_relaxed);
    return 1;
}

/* The transitions of one statement. */
struct items {
    transition **items;
    size_t count;
};

static db_answer read_items(void *context, db *connection)
{
    const struct items *all = context;

    for (size_t i = 0; i < all->count; i++) {
        db_answer answer = all->items[i]->verdict == VERDICT_UNKNOWN
                               ? read_by_token(connection, all->items[i])
                               : DB_DONE;

        if (answer != DB_DONE)
            return answer;
    }
    return DB_DONE;
}

static void settle(transition_engine *engine, transition **items, size_t count, struct lost *lost,
                   int64_t deadline_ms)
{
    struct items all = {items, count};

    lost->read = read_items;
    lost->context = &all;
    for (size_t i = 0; i < count; i++) {
        items[i]->settled = 1;
        items[i]->verdict = VERDICT_UNKNOWN;
        items[i]->status = TL_UNKNOWN;
    }
    if (settle_lost(engine, lost, deadline_ms))
        atomic_fetch_add_explicit(&engine->counters.settled, count, memory_order_relaxed);
    else
        (void)error_set(TL_UNKNOWN,
                        "the answer to '%s' was lost and the server cannot tell yet what "
                        "became of it; ask again with the same handle",
                        step_name(items[0]->step.kind));
}

void transition_settle_many(transition_engine *engine, transition **items, size_t count,
                            const char *connection_name, int64_t deadline_ms)
{
    struct lost lost = {.name = connection_name};

    settle(engine, items, count, &lost, deadline_ms);
}

void transition_settle(transition_engine *engine, transition *t, const char *connection_name,
                       int64_t budget_ms)
{
    struct lost lost = {.name = connection_name};

    settle(engine, &t, 1, &lost, clock_deadline(budget_ms));
}

void transition_settle_caller(transition_engine *engine, transition *t, uint64_t thread_id,
                              const char *witness, int64_t budget_ms)
{
    struct lost lost = {.caller = {&t->step, thread_id, witness}};

    settle(engine, &t, 1, &lost, clock_deadline(budget_ms));
}

void transition_look(transition_engine *engine, transition *t, int64_t budget_ms)
{
    int64_t deadline_ms = clock_deadline(budget_ms);

    t->verdict = VERDICT_UNKNOWN;
    do {
        db *connection;
        tl_status status =
            pool_get(engine->connections, POOL_QUICK, clock_left_ms(deadline_ms), &connection);
        db_answer answer = DB_NOT_SENT;

        if (status == TL_OK) {
            answer = read_by_token(connection, t);
            pool_put(engine->connections, connection);
        }
        if (answer == DB_DONE)
            return;
        clock_sleep_until_ms(clock_deadline(RECONNECT_MS));
    } while (clock_left_ms(deadline_ms) > 0);
}

/* Nothing is to be read: it is enough that nothing more can happen. */
static db_answer read_nothing(void *context, db *connection)
{
    (void)context;
    (void)connection;
    return DB_DONE;
}

int transition_end(transition_engine *engine, const char *connection_name, int64_t budget_ms)
{
    struct lost lost = {.name = connection_name, .read = read_nothing};

    return settle_lost(engine, &lost, clock_deadline(budget_ms));
}
