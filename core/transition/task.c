/*
 * The engine's front: makes an engine, and takes tasks.  A task that may share a statement goes to
 * the queue (group.c); any other is carried out alone (alone.c).  Touches no row itself.
 *
 * The files of this room stand in one line, and each knows only those after it: task -> group ->
 * batch -> alone -> settle -> engine.h.
 */
#include "transition/task.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/thread_context.h"
#include "transition/alone.h"
#include "transition/batch.h"
#include "transition/group.h"

#include <assert.h>
#include <stdlib.h>

/* How many members of lost batches may settle at once: each opens a connection. */
#define SETTLERS 4

tl_status task_engine_new(task_engine **out, pool *connections, const struct logger *logger,
                          commit_marks *noted)
{
    task_engine *engine = memory_new(sizeof *engine);

    if (engine == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the transition engine");
    engine->connections = connections;
    engine->logger = logger;
    engine->noted = noted;
    if (group_queue_new(&engine->groups, pool_size(connections, POOL_QUICK), GROUP_ALONE) !=
        TL_OK) {
        memory_free(engine);
        return error_set(TL_NO_MEMORY, "out of memory for the transition engine");
    }
    sem_init(&engine->settlers, 0, SETTLERS);
    *out = engine;
    return TL_OK;
}

void task_engine_free(task_engine *engine)
{
    if (engine == NULL)
        return;
    sem_destroy(&engine->settlers);
    group_queue_free(engine->groups);
    memory_free(engine);
}

transition_counters *transition_count(task_engine *engine)
{
    return &engine->counters;
}

pool *transition_pool(const task_engine *engine)
{
    return engine->connections;
}

static void begin(task *t)
{
    assert(t->kind != NULL && t->kind->run != NULL && t->name != NULL);
    t->stage = TASK_NEW;
    t->verdict = t->doubt.is_open ? VERDICT_UNKNOWN : VERDICT_FAILED;
    t->status = TL_UNKNOWN;
    t->settled = 0;
    t->until_ms = thread_context_awaits_until();
}

/* Asserts that a task with a known verdict is not in doubt. */
static void check_end(const task *t)
{
    assert((t->verdict == VERDICT_UNKNOWN) == (t->doubt.is_open != 0));
    (void)t;
}

void task_run(task_engine *engine, task *t, int64_t budget_ms)
{
    int64_t deadline_ms = clock_deadline(budget_ms);
    const batch_kind *kind = batch_kind_of(t);

    begin(t);
    if (t->until_ms != 0 && t->until_ms < deadline_ms)
        deadline_ms = t->until_ms;
    if (kind == NULL || !group_try(engine, kind, t, deadline_ms) ||
        !batch_settle(engine, t, deadline_ms))
        alone_finish(engine, t, deadline_ms);
    check_end(t);
}

/* ----------------------------------------------------------------------- many at once -- */

static int compare(const void *left, const void *right)
{
    return ((uintptr_t)left > (uintptr_t)right) - ((uintptr_t)left < (uintptr_t)right);
}

static int by_kind(const void *left, const void *right)
{
    const task *a = *(task *const *)left, *b = *(task *const *)right;
    const int order = compare(batch_kind_of(a), batch_kind_of(b));

    return order != 0 ? order : compare(a->groups, b->groups);
}

/* How many of the tasks, from the first on, share a statement: of one kind and of one queue, since
 * those of two never meet elsewhere either. */
static size_t count_together(const batch_kind *kind, task *const *tasks, size_t count)
{
    size_t taken = 1, bytes = 0;

    while (kind != NULL && taken < count && taken < BATCH_ROWS &&
           batch_kind_of(tasks[taken]) == kind && tasks[taken]->groups == tasks[0]->groups) {
        bytes += kind->size(tasks[taken - 1]);
        if (bytes + kind->size(tasks[taken]) > BATCH_BYTES)
            break;
        taken++;
    }
    return taken;
}

/* Tries each task once before waiting for any. */
static void give_turns(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms)
{
    for (size_t at = 0, taken; at < count; at += taken) {
        const batch_kind *kind = batch_kind_of(tasks[at]);

        taken = count_together(kind, tasks + at, count - at);
        if (kind != NULL) {
            batch_run(engine, kind, tasks + at, taken, deadline_ms);
            group_count(engine, taken);
        } else if (!tasks[at]->doubt.is_open) {
            alone_try(engine, tasks[at], deadline_ms);
        }
    }
    /* A batch sent these back, beside a task that waits. */
    for (size_t i = 0; i < count; i++)
        if (tasks[i]->stage == TASK_NEW && batch_kind_of(tasks[i]) != NULL)
            alone_try(engine, tasks[i], deadline_ms);
}

void task_try_all(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms)
{
    for (size_t i = 0; i < count; i++)
        begin(tasks[i]);
    /* One that came alone may meet those of other threads (task_go_on()).  Tasks that came
     * together go together, whatever other callers' threads do. */
    if (count == 1)
        return;
    qsort(tasks, count, sizeof(void *), by_kind);
    give_turns(engine, tasks, count, deadline_ms);
}

int task_is_over(const task *t)
{
    return alone_is_over(t);
}

int64_t task_go_on(task_engine *engine, task *t, int64_t *pause_ms, int64_t deadline_ms)
{
    const batch_kind *kind = t->stage == TASK_NEW ? batch_kind_of(t) : NULL;
    int64_t wait_ms = 0;

    if (kind != NULL)
        (void)group_try(engine, kind, t, deadline_ms);
    if (!batch_settle(engine, t, deadline_ms))
        wait_ms = alone_go_on(engine, t, pause_ms, deadline_ms);
    if (wait_ms == 0)
        check_end(t);
    return wait_ms;
}
