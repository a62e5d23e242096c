#include "transition/transition.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "store/store.h"
#include "transition/inside.h"

#include <stdlib.h>
#include <string.h>

/* Between two tries of work that the server undid. */
#define REPEAT_MIN_MS 2
#define REPEAT_MAX_MS 100
/* Members of a lost group that settle for themselves at once: each opens a connection. */
#define SETTLERS 4

tl_status transition_engine_new(transition_engine **out, pool *connections,
                                const struct logger *logger, const atomic_int *restored)
{
    transition_engine *engine = memory_new(sizeof *engine);

    if (engine == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the transition engine");
    engine->connections = connections;
    engine->logger = logger;
    engine->restored = restored;
    if (group_queue_new(&engine->groups, pool_size(connections, POOL_QUICK)) != TL_OK) {
        memory_free(engine);
        return error_set(TL_NO_MEMORY, "out of memory for the transition engine");
    }
    sem_init(&engine->settlers, 0, SETTLERS);
    *out = engine;
    return TL_OK;
}

void transition_engine_free(transition_engine *engine)
{
    if (engine == NULL)
        return;
    sem_destroy(&engine->settlers);
    group_queue_free(engine->groups);
    memory_free(engine);
}

transition_counters *transition_count(transition_engine *engine)
{
    return &engine->counters;
}

pool *transition_pool(transition_engine *engine)
{
    return engine->connections;
}

/* A failure rests on what is known to have been sent, and steps of that may be missing. */
static int is_failure(const step *s)
{
    return s->status == 'F' &&
           (s->kind == STEP_FINISH_RETRY || (s->kind == STEP_FINISH_SYNC && s->once));
}

int transition_is_forbidden(const transition_engine *engine, const step *s)
{
    return (s->kind == STEP_ASK || s->kind == STEP_RECLAIM || s->kind == STEP_ARM ||
            is_failure(s)) &&
           atomic_load(engine->restored);
}

tl_status transition_check_restored(const transition_engine *engine, const step *s)
{
    if (!transition_is_forbidden(engine, s))
        return TL_OK;
    return error_set(TL_ASK_CHANNEL,
                     "'%s': the server was restored or replaced, and payments may be "
                     "missing in it: ask the channel first%s",
                     step_name(s->kind),
                     is_failure(s) ? "; nothing fails before it is accepted" : "");
}

tl_status transition_check_life(const step *s)
{
    if (s->life == NULL)
        return TL_OK;
    if (step_is_holders(s->kind) && life_is_over(s->life))
        return error_set(TL_LOST, "the session that held the lock was declared dead");
    return step_is_grant(s->kind) ? life_check(s->life) : TL_OK;
}

/* What an error of the server means for a step that wrote nothing.  1062 names the key that
 * refused; the server's sentence also quotes the values, which may look like names. */
static void fail(transition *t, const db *connection, db_answer answer)
{
    if (answer == DB_ERROR && db_error_classify(db_errno(connection)) == DB_CLASS_DUPLICATE &&
        (t->step.kind == STEP_ASK || t->step.kind == STEP_RECLAIM)) {
        t->verdict = strcmp(db_duplicate_key(connection), KEY_ONE_PER_CUSTOMER) == 0
                         ? VERDICT_CUSTOMER_BUSY
                         : VERDICT_REFUSED;
        return;
    }
    t->verdict = VERDICT_FAILED;
    t->status = db_error_status(connection, answer, step_name(t->step.kind));
}

/* A row that is taken means on asking that somebody is deciding; endings come back. */
static int may_repeat(const transition *t, const db *connection, db_answer answer)
{
    if (answer != DB_ERROR || db_error_classify(db_errno(connection)) != DB_CLASS_REPEAT)
        return 0;
    return !db_row_is_taken(connection) || !step_is_grant(t->step.kind) || t->step.kind == STEP_ARM;
}

enum try_result { TRY_OVER, TRY_AGAIN };

/* The connection goes on its way with an answer that may still come. */
static enum try_result leave_behind(transition *t, const db *connection)
{
    memcpy(t->lost_connection, db_name(connection), sizeof t->lost_connection);
    t->failed_with = db_failed_with(connection);
    text_copy(t->lost_because, sizeof t->lost_because, db_error(connection));
    t->verdict = VERDICT_UNKNOWN;
    t->status = TL_UNKNOWN;
    return TRY_OVER;
}

/* The server undid the step; what it said is judged before the rollback says something else. */
static enum try_result judge_error(transition_engine *engine, transition *t, db *connection,
                                   db_answer answer)
{
    enum try_result result = TRY_OVER;

    if (may_repeat(t, connection, answer)) {
        atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
        fail(t, connection, answer);
        result = TRY_AGAIN;
    } else if (answer == DB_ERROR && db_row_is_taken(connection)) {
        t->verdict = VERDICT_DECIDING;
    } else {
        fail(t, connection, answer);
    }
    return result;
}

/* One try on one connection. */
static enum try_result try_once(transition_engine *engine, transition *t, db *connection)
{
    db_answer answer;

    t->rows = ROWS_NONE;
    answer = store_step(connection, &t->step, STORE_PLAIN);
    switch (answer) {
    case DB_DONE:
        t->verdict = t->step.changed ? VERDICT_APPLIED : VERDICT_REFUSED;
        return TRY_OVER;
    case DB_UNANSWERED:
        return leave_behind(t, connection);
    case DB_NOT_SENT:
        fail(t, connection, answer);
        return TRY_AGAIN;
    case DB_ERROR:
    case DB_NO_MEMORY:
        break;
    }
    return judge_error(engine, t, connection, answer);
}

/* A step whose answer was lost: over when its fate is known and it happened, or is not knowable;
 * when it provably did not happen the same token may be written now. */
static enum try_result settle_lost(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    transition_settle(engine, t, t->lost_connection, clock_left_ms(deadline_ms));
    if (t->verdict == VERDICT_UNKNOWN)
        return TRY_OVER;
    t->lost_connection[0] = '\0';
    if (t->verdict != VERDICT_REFUSED)
        return TRY_OVER;
    t->verdict = VERDICT_FAILED;
    if (t->failed_with != 0) {
        t->status = error_set(TL_SERVER_ERROR, "%s: the server says: %s (error %u)",
                              step_name(t->step.kind), t->lost_because, t->failed_with);
        return TRY_OVER;
    }
    t->status = error_set(TL_TRY_AGAIN, "'%s' was not done; its answer was lost: %s",
                          step_name(t->step.kind),
                          t->lost_because[0] != '\0' ? t->lost_because : "earlier");
    return TRY_AGAIN;
}

static enum try_result try_on_pool(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    db *connection;
    enum try_result tried;
    tl_status status =
        pool_get(engine->connections, POOL_QUICK, clock_left_ms(deadline_ms), &connection);

    if (status != TL_OK) {
        t->verdict = VERDICT_FAILED;
        t->status = status;
        /* "Too many connections" may pass within the time too. */
        if (status != TL_UNREACHABLE && status != TL_OVERLOADED)
            return TRY_OVER;
        atomic_fetch_add_explicit(&engine->counters.repeats, 1, memory_order_relaxed);
        return TRY_AGAIN;
    }
    status = transition_check_restored(engine, &t->step);
    if (status == TL_OK)
        status = transition_check_life(&t->step);
    if (status == TL_OK) {
        tried = try_once(engine, t, connection);
    } else {
        t->verdict = VERDICT_FAILED;
        t->status = status;
        tried = TRY_OVER;
    }
    pool_put(engine->connections, connection);
    return tried;
}

int transition_attempt(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    return try_on_pool(engine, t, deadline_ms) == TRY_OVER && t->lost_connection[0] == '\0';
}

void transition_run_one(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    int64_t pause_ms = REPEAT_MIN_MS, again_ms;

    for (;;) {
        enum try_result tried = TRY_AGAIN;

        if (t->lost_connection[0] == '\0')
            tried = try_on_pool(engine, t, deadline_ms);
        if (t->lost_connection[0] != '\0')
            tried = settle_lost(engine, t, deadline_ms);
        if (tried == TRY_OVER)
            break;
        again_ms = clock_deadline(random_jitter_ms(pause_ms, 100));
        /* With no time left the next try could only say so, and not what went wrong. */
        if (again_ms >= deadline_ms)
            return;
        clock_sleep_until_ms(again_ms);
        pause_ms = pause_ms * 2 < REPEAT_MAX_MS ? pause_ms * 2 : REPEAT_MAX_MS;
    }
    if (t->verdict == VERDICT_APPLIED)
        error_clear(); /* what an earlier try said */
}

/* The class of the group that it may join, or NULL. */
static const group_class *class_of(const transition *t)
{
    return t->lost_connection[0] == '\0' ? batch_class(&t->step) : NULL;
}

static int by_class(const void *left, const void *right)
{
    const uintptr_t a = (uintptr_t)class_of(*(transition *const *)left);
    const uintptr_t b = (uintptr_t)class_of(*(transition *const *)right);

    return (a > b) - (a < b);
}

/* Steps that came together go together, whatever the threads of other callers do; and each has had
 * its turn before any is waited for. */
static void run_array(transition_engine *engine, transition **items, size_t count,
                      int64_t deadline_ms)
{
    size_t at = 0;

    qsort(items, count, sizeof(void *), by_class);
    while (at < count) {
        const group_class *class = class_of(items[at]);
        size_t taken = 1, bytes = 0;

        while (class != NULL && at + taken < count && taken < GROUP_ROWS &&
               class_of(items[at + taken]) == class) {
            bytes += class->size(items[at + taken - 1]);
            if (bytes + class->size(items[at + taken]) > GROUP_BYTES)
                break;
            taken++;
        }
        if (class != NULL)
            batch_run_array(engine, items + at, taken, deadline_ms);
        else
            batch_run_single(engine, items[at], deadline_ms);
        at += taken;
    }
    /* Of those that shared a statement with one that waits. */
    for (size_t i = 0; i < count; i++)
        if (class_of(items[i]) != NULL && batch_is_open(items[i]))
            batch_run_single(engine, items[i], deadline_ms);
    for (size_t i = 0; i < count; i++)
        batch_rest(engine, items[i], deadline_ms);
}

void transition_run(transition_engine *engine, transition **items, size_t count, int64_t budget_ms)
{
    int64_t deadline_ms = clock_deadline(budget_ms);
    const group_class *class = count == 1 ? class_of(items[0]) : NULL;

    if (count > 1)
        run_array(engine, items, count, deadline_ms);
    else if (class != NULL)
        group_run(engine, class, items[0], deadline_ms);
    else if (count == 1)
        transition_run_one(engine, items[0], deadline_ms);
}
