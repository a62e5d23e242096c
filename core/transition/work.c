/*
 * Work alone: tried, tried again while the server undoes it, settled when an answer is
 * lost.  And in groups, where it offers that.  An error that the server answered undid
 * the whole group: it is split, so that one bad row does not fail its neighbours.  A
 * group whose answer was lost is never run again: the work of each row is settled by its
 * own thread.
 */
#include "transition/work.h"

#include "base/clock.h"
#include "base/error.h"
#include "transition/inside.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Between two tries of work that the server undid. */
#define REPEAT_MIN_MS 2
#define REPEAT_MAX_MS 100

enum tried { OVER, AGAIN };

/* What may have happened before stays in doubt, whatever became of this try. */
static void fail(work *w, const db *connection, db_answer answer)
{
    if (w->verdict == VERDICT_UNKNOWN) {
        (void)db_error_status(connection, answer, w->name);
        return;
    }
    w->verdict = VERDICT_FAILED;
    w->status = db_error_status(connection, answer, w->name);
}

static enum tried server_refused(transition_engine *engine, work *w, db *connection,
                                 db_answer answer)
{
    /* Read before the rollback, which has an answer of its own. */
    unsigned number = answer == DB_ERROR ? db_errno(connection) : 0;
    int repeats = db_error_classify(number) == DB_CLASS_REPEAT;
    int taken = answer == DB_ERROR && db_row_is_taken(connection);

    fail(w, connection, answer);
    if (db_in_transaction(connection))
        (void)db_rollback(connection);
    if (!repeats)
        return OVER;
    if (w->asks && taken) {
        w->verdict = VERDICT_DECIDING;
        return OVER;
    }
    atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
    return AGAIN;
}

/* Whether this may be begun on the server that the connection leads to, which may be what has shown
 * that it may not; and under its session. */
static tl_status check_begin(const transition_engine *engine, const work *w)
{
    if (!w->asks || w->verdict == VERDICT_UNKNOWN)
        return TL_OK;
    if (atomic_load(engine->restored))
        return error_set(TL_ASK_CHANNEL,
                         "the server was restored or replaced, and who holds what may be "
                         "missing in it: nothing is locked");
    return w->life != NULL ? life_check(w->life) : TL_OK;
}

static enum tried try_on(transition_engine *engine, work *w, db *connection)
{
    tl_status status = check_begin(engine, w);
    db_answer answer;

    if (status != TL_OK) {
        w->verdict = VERDICT_FAILED;
        w->status = status;
        return OVER;
    }
    answer = w->run(w->context, connection);
    switch (answer) {
    case DB_DONE:
        w->verdict = VERDICT_APPLIED;
        return OVER;
    case DB_NOT_SENT:
        fail(w, connection, answer);
        return AGAIN;
    case DB_UNANSWERED:
        w->verdict = VERDICT_UNKNOWN;
        w->status = db_error_status(connection, answer, w->name);
        memcpy(w->lost_connection, db_name(connection), sizeof w->lost_connection);
        return AGAIN;
    case DB_ERROR:
    case DB_NO_MEMORY:
        break;
    }
    return server_refused(engine, w, connection, answer);
}

static enum tried try_once(transition_engine *engine, work *w, int64_t deadline_ms)
{
    db *connection;
    enum tried tried;
    tl_status status =
        pool_get(engine->connections, POOL_QUICK, clock_left_ms(deadline_ms), &connection);

    w->tried = 1;
    if (status == TL_OK) {
        tried = try_on(engine, w, connection);
        pool_put(engine->connections, connection);
        return tried;
    }
    if (w->verdict != VERDICT_UNKNOWN) {
        w->verdict = VERDICT_FAILED;
        w->status = status;
    }
    /* "Too many connections" may pass within the time too. */
    if (status != TL_UNREACHABLE && status != TL_OVERLOADED)
        return OVER;
    atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
    return AGAIN;
}

struct reading {
    work *w;
    int committed;
};

static db_answer read_work(void *context, db *connection)
{
    struct reading *reading = context;

    return reading->w->read(reading->w->context, connection, &reading->committed);
}

static enum tried not_knowable(work *w)
{
    w->verdict = VERDICT_UNKNOWN;
    w->status = error_set(TL_UNKNOWN,
                          "the answer to '%s' was lost and the server cannot tell yet "
                          "what became of it; call again with the same handle",
                          w->name);
    return OVER;
}

/* Whether it happened is not asked, only that it cannot happen any more: what is run next must not
 * be undone by it. */
static enum tried end_lost(transition_engine *engine, work *w, int64_t deadline_ms)
{
    if (!transition_end(engine, w->lost_connection, clock_left_ms(deadline_ms)))
        return not_knowable(w);
    w->lost_connection[0] = '\0';
    return AGAIN;
}

static enum tried settle_lost(transition_engine *engine, work *w, int64_t deadline_ms)
{
    struct reading reading = {.w = w};

    if (w->read == NULL)
        return end_lost(engine, w, deadline_ms);
    w->settled = 1;
    if (!settle_connection(engine, w->lost_connection, read_work, &reading,
                           clock_left_ms(deadline_ms)))
        return not_knowable(w);
    w->lost_connection[0] = '\0';
    if (reading.committed) {
        error_clear();
        w->verdict = VERDICT_APPLIED;
        return OVER;
    }
    w->settled = 0;
    w->verdict = VERDICT_FAILED;
    w->status = TL_TRY_AGAIN;
    return AGAIN;
}

/* To the end, after a try or before the first. */
static void go_on(transition_engine *engine, work *w, int64_t deadline_ms)
{
    int64_t pause_ms = REPEAT_MIN_MS;
    enum tried tried = AGAIN;

    if (!w->tried && w->lost_connection[0] == '\0')
        tried = try_once(engine, w, deadline_ms);
    for (;;) {
        if (w->lost_connection[0] != '\0')
            tried = settle_lost(engine, w, deadline_ms);
        if (tried == OVER || clock_left_ms(deadline_ms) == 0)
            return;
        clock_sleep_until_ms(clock_deadline(random_jitter_ms(pause_ms, 100)));
        pause_ms = pause_ms * 2 < REPEAT_MAX_MS ? pause_ms * 2 : REPEAT_MAX_MS;
        if (w->lost_connection[0] != '\0')
            continue;
        error_clear(); /* what the last try said */
        tried = try_once(engine, w, deadline_ms);
    }
}

/* ----------------------------------------------------------------------- in groups -- */

/* It goes on alone, on its own thread, which finds words of its own: nothing was written for it, or
 * not by this group. */
static void send_back(work *const *items, size_t count)
{
    error_clear();
    for (size_t i = 0; i < count; i++) {
        items[i]->verdict = VERDICT_FAILED;
        items[i]->status = TL_TRY_AGAIN;
        items[i]->tried = 0;
    }
}

static db_answer run_statement(db *connection, work *const *items, size_t count)
{
    void *rows[GROUP_ROWS];
    db_answer answer;

    for (size_t i = 0; i < count; i++)
        rows[i] = items[i]->row;
    answer = items[0]->group->run(rows, count, connection);
    for (size_t i = 0; i < count && answer == DB_DONE; i++) {
        if (items[i]->take(items[i]->context))
            items[i]->verdict = VERDICT_APPLIED;
        else
            send_back(&items[i], 1);
    }
    return answer;
}

/* Runs on this connection as long as it is usable; halves when the server undid it. */
static db_answer run_split(transition_engine *engine, db *connection, work *const *items,
                           size_t count, int64_t deadline_ms)
{
    db_answer answer;

    if (count == 1) {
        /* Alone it takes the ordinary way, with its own error and its own repeats. */
        send_back(items, 1);
        return DB_DONE;
    }
    answer = run_statement(connection, items, count);
    if (!batch_may_split(connection, answer, deadline_ms))
        return answer;
    atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
    answer = run_split(engine, connection, items, count / 2, deadline_ms);
    if (answer != DB_DONE) {
        /* The second half was not sent in this form; it goes on alone. */
        send_back(items + count / 2, count - count / 2);
        return answer;
    }
    return run_split(engine, connection, items + count / 2, count - count / 2, deadline_ms);
}

static int any_is_forbidden(const transition_engine *engine, work *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (check_begin(engine, items[i]) != TL_OK)
            return 1;
    return 0;
}

/* Those that a statement without an end has left without a verdict. */
static void judge_undecided(db *connection, db_answer answer, work *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (items[i]->verdict != VERDICT_UNKNOWN)
            continue;
        if (answer == DB_UNANSWERED) {
            memcpy(items[i]->lost_connection, db_name(connection),
                   sizeof items[i]->lost_connection);
            items[i]->tried = 1;
        } else {
            send_back(&items[i], 1);
        }
    }
}

/* Of one kind and sorted, and more than one. */
static void run_sorted(transition_engine *engine, work *const *items, size_t count,
                       int64_t deadline_ms)
{
    db *connection;
    db_answer answer;

    if (pool_get(engine->connections, POOL_QUICK, clock_left_ms(deadline_ms), &connection) !=
        TL_OK) {
        /* Each finds out for itself, within its own deadline. */
        send_back(items, count);
        return;
    }
    if (any_is_forbidden(engine, items, count)) {
        send_back(items, count);
    } else {
        for (size_t i = 0; i < count; i++)
            items[i]->verdict = VERDICT_UNKNOWN;
        answer = run_split(engine, connection, items, count, deadline_ms);
        judge_undecided(connection, answer, items, count);
    }
    pool_put(engine->connections, connection);
}

/* By kind, by key, and what gives a row back before what asks for it. */
static int in_order(const void *left, const void *right)
{
    const work *a = *(work *const *)left, *b = *(work *const *)right;
    const uintptr_t kind = (uintptr_t)a->group, other = (uintptr_t)b->group;
    int order;

    if (kind != other)
        return kind < other ? -1 : 1;
    order = strcmp(a->group->key(a->row), b->group->key(b->row));
    return order != 0 ? order : a->asks - b->asks;
}

static size_t work_size(const void *item)
{
    const work *w = item;

    return w->group->size(w->row);
}

static int run_once(transition_engine *engine, void *item, int64_t deadline_ms)
{
    return try_once(engine, item, deadline_ms) == OVER;
}

static void run_alone(transition_engine *engine, void *item, int64_t deadline_ms)
{
    go_on(engine, item, deadline_ms);
}

/* One try, in the group's turn.  What went wrong its own thread finds out for itself, and then has
 * the words for it. */
static void run_single(transition_engine *engine, work *w, int64_t deadline_ms)
{
    (void)try_once(engine, w, deadline_ms);
    if (w->verdict == VERDICT_FAILED)
        send_back(&w, 1);
}

static void run_together(transition_engine *engine, void **items, size_t count, int64_t deadline_ms)
{
    work **all = (work **)items;
    size_t at = 0;

    qsort(all, count, sizeof(void *), in_order);
    while (at < count) {
        size_t taken = 1;

        while (at + taken < count && all[at + taken]->group == all[at]->group)
            taken++;
        if (taken > 1)
            run_sorted(engine, all + at, taken, deadline_ms);
        else
            run_single(engine, all[at], deadline_ms);
        at += taken;
    }
}

/* Few at a time, since each opens a connection. */
static enum tried settle_in_turn(transition_engine *engine, work *w, int64_t deadline_ms)
{
    enum tried tried;

    if (!batch_settler_enter(engine, deadline_ms))
        return not_knowable(w);
    tried = settle_lost(engine, w, deadline_ms);
    batch_settler_leave(engine);
    return tried;
}

/* What the group has left open is brought to its end by the thread whose work it is. */
static void run_rest(transition_engine *engine, void *item, int64_t deadline_ms)
{
    work *w = item;

    if (w->verdict == VERDICT_FAILED ||
        (w->verdict == VERDICT_UNKNOWN && settle_in_turn(engine, w, deadline_ms) == AGAIN))
        go_on(engine, w, deadline_ms);
}

static void run_too_late(void *item)
{
    work *w = item;

    w->verdict = VERDICT_FAILED;
    w->status = error_set(TL_OVERLOADED, "no group took '%s' in time", w->name);
}

void work_run(transition_engine *engine, work *w, int64_t budget_ms)
{
    static const group_class class = {work_size,    run_once, run_alone,
                                      run_together, run_rest, run_too_late};
    int64_t deadline_ms = clock_deadline(budget_ms);

    w->verdict = w->doubtful ? VERDICT_UNKNOWN : VERDICT_FAILED;
    w->status = TL_UNKNOWN;
    w->settled = w->tried = 0;
    if (w->group != NULL && !w->doubtful && w->lost_connection[0] == '\0')
        group_run(engine, &class, w, deadline_ms);
    else
        go_on(engine, w, deadline_ms);
}

void work_run_again(transition_engine *engine, work *w, work_doubt *doubt, int64_t budget_ms)
{
    w->doubtful = doubt->doubtful;
    memcpy(w->lost_connection, doubt->lost_connection, sizeof w->lost_connection);
    work_run(engine, w, budget_ms);
    doubt->doubtful = w->verdict == VERDICT_UNKNOWN;
    memcpy(doubt->lost_connection, w->lost_connection, sizeof doubt->lost_connection);
}
