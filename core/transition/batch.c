/*
 * Steps in groups: one statement for all of them.  An error that the server answered undid all of
 * it: the group is split, so that one bad row does not fail its neighbours.  An answer that was
 * lost is never followed by the same statement: every row is settled by its own token.
 */
#include "transition/inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "store/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
            items[i]->verdict = items[i]->step.changed ? VERDICT_APPLIED : VERDICT_REFUSED;
    return answer;
}

int batch_may_split(const db *connection, db_answer answer, int64_t deadline_ms)
{
    return answer == DB_ERROR && db_usable(connection) &&
           (db_errno(connection) != ERROR_LOCK_WAIT || db_row_is_taken(connection)) &&
           clock_left_ms(deadline_ms) > 0;
}

/* Runs on this connection as long as it is usable; halves when the server undid it. */
static db_answer run_split(transition_engine *engine, db *connection, transition **items,
                           size_t count, int64_t deadline_ms)
{
    db_answer answer;

    if (count == 1) {
        /* Alone it takes the ordinary way, with its own error and its own repeats. */
        fail_all(items, 1, TL_TRY_AGAIN);
        return DB_DONE;
    }
    answer = run_statement(connection, items, count);
    if (!batch_may_split(connection, answer, deadline_ms))
        return answer;
    atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
    answer = run_split(engine, connection, items, count / 2, deadline_ms);
    if (answer != DB_DONE) {
        /* The second half was not sent in this form; it goes on alone. */
        fail_all(items + count / 2, count - count / 2, TL_TRY_AGAIN);
        return answer;
    }
    return run_split(engine, connection, items + count / 2, count - count / 2, deadline_ms);
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

/* Whether some of these may not be begun on the server that this connection leads to, or under
 * their session. */
static int is_forbidden(const transition_engine *engine, transition *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (transition_is_forbidden(engine, &items[i]->step) ||
            transition_check_life(&items[i]->step) != TL_OK)
            return 1;
    return 0;
}

/* Sorted by key, each key once.  A transition that has to go on alone has VERDICT_FAILED with
 * TL_TRY_AGAIN. */
static void run_unique(transition_engine *engine, transition **items, size_t count,
                       int64_t deadline_ms)
{
    transition *left[GROUP_ROWS];
    char name[RANDOM_UUID];
    db *connection;
    db_answer answer;

    if (count == 1) {
        /* Settling and repeating are done in the thread's own time, not the group's; and what went
         * wrong its own thread finds out for itself, and then has the words for it. */
        if (!transition_attempt(engine, items[0], deadline_ms) ||
            items[0]->verdict == VERDICT_FAILED)
            fail_all(items, 1, TL_TRY_AGAIN);
        return;
    }
    if (pool_get(engine->connections, POOL_QUICK, clock_left_ms(deadline_ms), &connection) !=
        TL_OK) {
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
    answer = run_split(engine, connection, items, count, deadline_ms);
    memcpy(name, db_name(connection), sizeof name);
    count = undecided(items, count, left);
    if (answer != DB_DONE && answer != DB_UNANSWERED)
        fail_all(left, count, TL_TRY_AGAIN);
    pool_put(engine->connections, connection);
    if (answer == DB_UNANSWERED)
        settle_all(engine, left, count, name, deadline_ms);
}

static int by_key(const void *left, const void *right)
{
    const step *a = &(*(transition *const *)left)->step;
    const step *b = &(*(transition *const *)right)->step;
    int order = strcmp(a->cust_no, b->cust_no);

    if (order == 0)
        order = strcmp(a->serial_no, b->serial_no);
    return order != 0 ? order : strcmp(a->op_code, b->op_code);
}

/*
 * Of several asks for one key in a group one is written.  Where it was granted, the others meet a
 * living holder.  Where it was refused, so are the others, which had all asked before: but for
 * reclaims, each of which names what it saw.  Anything else goes on alone.
 */
static void follow(const transition *written, transition *t)
{
    const int same_asks = written->step.kind == t->step.kind && step_is_grant(t->step.kind);

    if (same_asks && (written->verdict == VERDICT_APPLIED ||
                      (written->verdict == VERDICT_REFUSED && t->step.kind != STEP_RECLAIM))) {
        t->verdict = VERDICT_REFUSED;
        return;
    }
    t->verdict = VERDICT_FAILED;
    t->status = TL_TRY_AGAIN;
}

static void run_all(transition_engine *engine, transition **items, size_t count,
                    int64_t deadline_ms)
{
    transition *unique[GROUP_ROWS], *written[GROUP_ROWS];
    size_t kept = 0;

    qsort(items, count, sizeof(void *), by_key);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || by_key(&items[i], &items[i - 1]) != 0)
            unique[kept++] = items[i];
        written[i] = unique[kept - 1];
    }
    run_unique(engine, unique, kept, deadline_ms);
    for (size_t i = 0; i < count; i++)
        if (items[i] != written[i])
            follow(written[i], items[i]);
}

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

int batch_settler_enter(transition_engine *engine, int64_t deadline_ms)
{
    struct timespec at = until(deadline_ms);

    while (sem_clockwait(&engine->settlers, CLOCK_MONOTONIC, &at) != 0)
        if (errno != EINTR)
            return 0;
    return 1;
}

void batch_settler_leave(transition_engine *engine)
{
    sem_post(&engine->settlers);
}

int batch_is_open(const transition *t)
{
    return t->verdict == VERDICT_FAILED && t->status == TL_TRY_AGAIN &&
           t->lost_connection[0] == '\0';
}

void batch_rest(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    if (t->verdict == VERDICT_FAILED && t->status == TL_TRY_AGAIN) {
        transition_run_one(engine, t, deadline_ms);
    } else if (t->verdict == VERDICT_UNKNOWN && t->lost_connection[0] != '\0' &&
               clock_left_ms(deadline_ms) > 0 && batch_settler_enter(engine, deadline_ms)) {
        transition_run_one(engine, t, deadline_ms);
        batch_settler_leave(engine);
    }
}

/* ------------------------------------------------------------------ as a class of group -- */

static size_t step_size(const void *item)
{
    const transition *t = item;

    return store_group_size(&t->step);
}

static int run_once(transition_engine *engine, void *item, int64_t deadline_ms)
{
    return transition_attempt(engine, item, deadline_ms);
}

static void run_alone(transition_engine *engine, void *item, int64_t deadline_ms)
{
    transition_run_one(engine, item, deadline_ms);
}

static void run_together(transition_engine *engine, void **items, size_t count, int64_t deadline_ms)
{
    run_all(engine, (transition **)items, count, deadline_ms);
}

static void run_rest(transition_engine *engine, void *item, int64_t deadline_ms)
{
    batch_rest(engine, item, deadline_ms);
}

static void run_too_late(void *item)
{
    transition *t = item;

    t->verdict = VERDICT_FAILED;
    t->status = error_set(TL_OVERLOADED, "no transition group took this step in time");
}

#define CLASS                                                                                      \
    {                                                                                              \
        step_size, run_once, run_alone, run_together, run_rest, run_too_late                       \
    }

const group_class *batch_class(const step *s)
{
    static const group_class classes[STORE_GROUPS] = {CLASS, CLASS, CLASS, CLASS, CLASS};
    const store_group_kind kind = store_group_of(s);

    return kind == STORE_NO_GROUP ? NULL : &classes[kind];
}

void batch_run_array(transition_engine *engine, transition **items, size_t count,
                     int64_t deadline_ms)
{
    run_all(engine, items, count, deadline_ms);
    group_count(engine, count);
}

void batch_run_single(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    /* What has a lost answer is settled before anything is written. */
    if (t->lost_connection[0] != '\0' || !transition_attempt(engine, t, deadline_ms))
        fail_all(&t, 1, TL_TRY_AGAIN);
}
