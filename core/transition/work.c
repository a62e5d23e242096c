#include "transition/work.h"

#include "base/clock.h"
#include "base/error.h"
#include "transition/inside.h"

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

static enum tried try_on(transition_engine *engine, work *w, db *connection)
{
    db_answer answer;

    /* The connection may be the one that has shown it. */
    if (w->asks && w->verdict != VERDICT_UNKNOWN && atomic_load(engine->restored)) {
        w->verdict = VERDICT_FAILED;
        w->status = error_set(TL_ASK_CHANNEL,
                              "the server was restored or replaced, and who holds what "
                              "may be missing in it: nothing is locked");
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
    tl_status status = pool_get(engine->connections, POOL_QUICK,
                                clock_left_ms(deadline_ms), &connection);

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

/* Whether it happened is not asked, only that it cannot happen any more: what is run next
 * must not be undone by it. */
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
        w->verdict = VERDICT_APPLIED;
        return OVER;
    }
    w->settled = 0;
    w->verdict = VERDICT_FAILED;
    w->status = TL_TRY_AGAIN;
    return AGAIN;
}

void work_run(transition_engine *engine, work *w, int64_t budget_ms)
{
    int64_t deadline_ms = clock_deadline(budget_ms), pause_ms = REPEAT_MIN_MS;

    w->verdict = w->doubtful ? VERDICT_UNKNOWN : VERDICT_FAILED;
    w->status = TL_UNKNOWN;
    w->settled = 0;
    for (;;) {
        enum tried tried = AGAIN;

        if (w->lost_connection[0] == '\0')
            tried = try_once(engine, w, deadline_ms);
        if (w->lost_connection[0] != '\0')
            tried = settle_lost(engine, w, deadline_ms);
        if (tried == OVER || clock_left_ms(deadline_ms) == 0)
            return;
        clock_sleep_until_ms(clock_deadline(random_jitter_ms(pause_ms, 100)));
        pause_ms = pause_ms * 2 < REPEAT_MAX_MS ? pause_ms * 2 : REPEAT_MAX_MS;
    }
}

void work_run_again(transition_engine *engine, work *w, work_doubt *doubt,
                    int64_t budget_ms)
{
    w->doubtful = doubt->doubtful;
    memcpy(w->lost_connection, doubt->lost_connection, sizeof w->lost_connection);
    work_run(engine, w, budget_ms);
    doubt->doubtful = w->verdict == VERDICT_UNKNOWN;
    memcpy(doubt->lost_connection, w->lost_connection, sizeof doubt->lost_connection);
}
