/*
 * One statement for a group.  An error that the server answered undid all of it: the group
 * is split, so that one bad row does not fail its neighbours.  An answer that was lost is
 * never followed by the same statement: every row is settled by its own token.
 */
#include "transition/inside.h"

#include "base/clock.h"
#include "store/store_group.h"

#include <string.h>

static void fail_all(transition **items, size_t count, tl_status status)
{
    for (size_t i = 0; i < count; i++) {
        items[i]->verdict = VERDICT_FAILED;
        items[i]->status = status;
    }
}

static void settle_all(transition_engine *engine, transition **items, size_t count,
                       const char *name, int64_t deadline_ms)
{
    transition_settle_many(engine, items, count, name, deadline_ms);
    for (size_t i = 0; i < count; i++) {
        if (items[i]->verdict == VERDICT_UNKNOWN) {
            memcpy(items[i]->lost_connection, name, sizeof items[i]->lost_connection);
        } else if (items[i]->verdict == VERDICT_REFUSED) {
            /* It provably did not happen; it may be written now. */
            items[i]->verdict = VERDICT_FAILED;
            items[i]->status = TL_TRY_AGAIN;
        }
    }
}

static db_answer run_statement(db *connection, transition **items, size_t count)
{
    step *steps[GROUP_ROWS];
    db_answer answer;

    for (size_t i = 0; i < count; i++)
        steps[i] = &items[i]->step;
    answer = store_group(connection, steps, count);
    if (answer == DB_DONE)
        for (size_t i = 0; i < count; i++)
            items[i]->verdict =
                items[i]->step.changed ? VERDICT_APPLIED : VERDICT_REFUSED;
    return answer;
}

/* Runs on this connection as long as it is usable; halves when the server undid it. */
static db_answer run_split(transition_engine *engine, db *connection, transition **items,
                           size_t count)
{
    db_answer answer;

    if (count == 1) {
        /* Alone it takes the ordinary way, with its own error and its own repeats. */
        fail_all(items, 1, TL_TRY_AGAIN);
        return DB_DONE;
    }
    answer = run_statement(connection, items, count);
    if (answer != DB_ERROR || !db_usable(connection))
        return answer;
    atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
    answer = run_split(engine, connection, items, count / 2);
    if (answer != DB_DONE) {
        /* The second half was not sent in this form; it goes on alone. */
        fail_all(items + count / 2, count - count / 2, TL_TRY_AGAIN);
        return answer;
    }
    return run_split(engine, connection, items + count / 2, count - count / 2);
}

/* Which rows of a broken attempt have no verdict yet. */
static size_t undecided(transition **items, size_t count, transition **left)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (items[i]->verdict == VERDICT_UNKNOWN)
            left[kept++] = items[i];
    return kept;
}

/* Whether some of these may not be begun on the server that this connection leads to. */
static int is_forbidden(const transition_engine *engine, transition *const *items,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (transition_is_forbidden(engine, &items[i]->step))
            return 1;
    return 0;
}

void batch_run(transition_engine *engine, transition **items, size_t count,
               int64_t deadline_ms)
{
    transition *left[GROUP_ROWS];
    char name[RANDOM_UUID];
    db *connection;
    db_answer answer;

    if (count == 1) {
        /* Settling and repeating are done in the thread's own time, not the group's. */
        if (!transition_attempt(engine, items[0], deadline_ms))
            fail_all(items, 1, TL_TRY_AGAIN);
        return;
    }
    if (pool_get(engine->connections, POOL_QUICK, clock_left_ms(deadline_ms),
                 &connection) != TL_OK) {
        /* Each finds out for itself, within its own deadline. */
        fail_all(items, count, TL_TRY_AGAIN);
        return;
    }
    if (is_forbidden(engine, items, count)) {
        pool_put(engine->connections, connection);
        fail_all(items, count, TL_TRY_AGAIN);
        return;
    }
    for (size_t i = 0; i < count; i++)
        items[i]->verdict = VERDICT_UNKNOWN;
    answer = run_split(engine, connection, items, count);
    memcpy(name, db_name(connection), sizeof name);
    count = undecided(items, count, left);
    if (answer != DB_DONE && answer != DB_UNANSWERED)
        fail_all(left, count, TL_TRY_AGAIN);
    pool_put(engine->connections, connection);
    if (answer == DB_UNANSWERED)
        settle_all(engine, left, count, name, deadline_ms);
}
