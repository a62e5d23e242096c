/*
 * Group commit, as the write group of a log-structured store does it.
 *
 * While tasks are few, a thread that finds a free permit leads: it tries its own task on its own
 * thread, with nothing added, and gives the permit up before it tries again.  Any other joins a
 * group of the queue and sleeps.  A leader that is done hands its permit to the first group of the
 * queue, and one of that group's threads leads: one statement, one commit, a verdict for each
 * task, and one call that wakes them all.  So a group grows while the commit before it takes its
 * time.  There is no dispatcher, and a lone caller waits for nobody, once the crowd before it is
 * forgotten.
 *
 * A group takes its share of all tasks: half of the peak.  If one took all, the other permits would
 * be left with crumbs.  And it waits for its share, GATHER_US at most, though a permit is free:
 * those whose verdict has just come need a moment to be back, and the first of them would go alone.
 * A group holds tasks of one batch kind; all kinds share the permits.
 *
 * This file runs no statement: batch.c and alone.c do.  It touches its queue only.
 */
#include "transition/group.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "transition/alone.h"
#include "transition/batch.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

/* Groups under way at once: while one waits for the disk the others can be worked on.  A third one
 * is worth what it costs as long as the groups are short and of one statement: with 16 callers it
 * makes a tenth more cycles.  The dozen statements of a group with books cost more than it
 * gives. */
#define LEADERS 2
#define LEADERS_OF_FEW 3
#define FEW_TASKS 96
/* While the queue beside it is used too: together they have as many as one queue.  More groups
 * would only be smaller, and those of the one queue change the same rows. */
#define LEADERS_BESIDE 1
/* But one that takes so long is stuck, in a row that somebody holds or with a connection that is
 * dead, and nobody should wait for it. */
#define STUCK_MS 500

/* While the peak is at most GROUP_ALONE, each task runs alone: the server lets their commits share
 * a sync, and a group of two saves less than its waiting costs.  The peak is the most
 * tasks at once in this span of tasks or in the one before it, since at any one moment some threads
 * are between two tasks. */
#define SPAN_TASKS 64
/* So long a group waits for its share at most, from its first task on.  The first to come back
 * would go alone, and half of all commits would be for one task: 16 callers make 1.4 times as many
 * cycles with this, of books as of bare locks, and use a third less CPU. */
#define GATHER_US 1000
/* Connections reserved for what takes no permit: reads, the janitor's rounds, leases. */
#define SPARE 4

/* What a group's word says, in this order. */
enum group_state {
    GROUP_QUEUED,    /* more may join, and leave */
    GROUP_CALLED,    /* there is a permit for it; the first thread to see it leads */
    GROUP_UNDER_WAY, /* only the leader's word ends the wait */
    GROUP_SERVED     /* each has its verdict */
};

/* A task in a group; lives on its thread's stack until the group was served. */
struct member {
    task *task;
    struct member *next;
    int opened; /* the first of its group, until it has seen to it that this waits no longer */
};

/* Freed by the last of those who have it in hand. */
struct group {
    const batch_kind *kind;
    atomic_int state; /* left QUEUED under the queue's mutex; its threads sleep on it */
    atomic_uint holders;
    /* Under the queue's mutex while it is QUEUED, its leader's then. */
    struct member *first, *last;
    size_t rows, bytes;
    int64_t opened_us; /* fixed */
    struct group *next;
};

struct group_queue {
    unsigned connections;      /* at most so many groups can be under way */
    unsigned alone;            /* the highest peak at which each task runs alone */
    const group_queue *beside; /* or NULL */
    /* Atomic: tasks that came; changed under the mutex, and read by the queue beside this one. */
    atomic_uint came;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct group *first, *last;
    unsigned leaders, groups;  /* permits that are taken; those that several tasks share */
    int64_t taken_ms;          /* when the last one was taken */
    size_t waiting, under_way; /* tasks in the queue, and in groups or with leaders */
    size_t most, most_before;  /* the peak of both together, in this span and in the one before */
    unsigned seen;             /* tasks, in this span */
    unsigned came_beside;      /* `came` of the queue beside, when this span began */
    int shares;                /* that queue was used in the span before */
};

tl_status group_queue_new(group_queue **out, unsigned connections, unsigned alone)
{
    group_queue *queue = memory_new(sizeof *queue);

    if (queue == NULL)
        return TL_NO_MEMORY;
    queue->connections = connections;
    queue->alone = alone;
    pthread_mutex_init(&queue->mutex, NULL);
    *out = queue;
    return TL_OK;
}

void group_queue_pair(group_queue *one, group_queue *other)
{
    one->beside = other;
    other->beside = one;
}

void group_queue_free(group_queue *queue)
{
    if (queue == NULL)
        return;
    pthread_mutex_destroy(&queue->mutex);
    memory_free(queue);
}

static struct group *hold(struct group *group)
{
    atomic_fetch_add_explicit(&group->holders, 1, memory_order_relaxed);
    return group;
}

static void release(struct group *group)
{
    if (atomic_fetch_sub_explicit(&group->holders, 1, memory_order_acq_rel) == 1)
        memory_free(group);
}

/* -------------------------------------------------------- the queue, under its mutex -- */

static void begin_span(group_queue *queue)
{
    const unsigned came_beside = queue->beside != NULL ? atomic_load(&queue->beside->came) : 0;

    queue->shares = came_beside - queue->came_beside > SPAN_TASKS / 4;
    queue->came_beside = came_beside;
    queue->seen = 1;
    queue->most_before = queue->most;
    queue->most = 0;
}

static void count_in(group_queue *queue)
{
    const size_t all = queue->waiting + queue->under_way + 1;

    atomic_fetch_add(&queue->came, 1);
    if (++queue->seen > SPAN_TASKS)
        begin_span(queue);
    if (all > queue->most)
        queue->most = all;
}

static size_t peak_of(const group_queue *queue)
{
    return queue->most > queue->most_before ? queue->most : queue->most_before;
}

static int are_few(const group_queue *queue)
{
    return peak_of(queue) <= GROUP_ALONE;
}

/* How many tasks may run alone at once. */
static unsigned most_alone(const group_queue *queue)
{
    const unsigned able = queue->connections > SPARE ? queue->connections - SPARE : 0;

    return queue->alone < able ? queue->alone : able;
}

static unsigned most_groups(const group_queue *queue)
{
    const int few = queue->waiting + queue->under_way < FEW_TASKS && queue->beside == NULL;

    if (queue->shares && clock_boottime_ms() - queue->taken_ms < STUCK_MS)
        return LEADERS_BESIDE;
    return few ? LEADERS_OF_FEW : LEADERS;
}

static unsigned permits(const group_queue *queue)
{
    const unsigned alone = most_alone(queue), wanted = most_groups(queue);

    if (peak_of(queue) <= alone && alone > wanted)
        return alone;
    return wanted < queue->connections ? wanted : queue->connections;
}

/* How many tasks a group takes, and waits for where they are not few. */
static size_t share_of(const group_queue *queue)
{
    const size_t share = (peak_of(queue) + 1) / 2;

    return share < BATCH_ROWS ? share : BATCH_ROWS;
}

/* The group that takes the next member; NULL when out of memory. */
static struct group *open_group(group_queue *queue, const batch_kind *kind, size_t bytes)
{
    struct group *group;

    /* The share may have grown, so that a group that was full has room again. */
    for (group = queue->first; group != NULL; group = group->next)
        if (group->kind == kind && group->rows < share_of(queue) &&
            group->bytes + bytes <= BATCH_BYTES)
            return group;
    group = memory_new(sizeof *group);
    if (group == NULL)
        return NULL;
    group->kind = kind;
    group->opened_us = clock_boottime_us();
    if (queue->last != NULL)
        queue->last->next = group;
    else
        queue->first = group;
    queue->last = group;
    return group;
}

static struct group *add(group_queue *queue, const batch_kind *kind, struct member *me)
{
    size_t bytes = kind->size(me->task);
    struct group *group = open_group(queue, kind, bytes);

    if (group == NULL)
        return NULL;
    if (group->last != NULL)
        group->last->next = me;
    else
        group->first = me;
    group->last = me;
    me->opened = group->rows++ == 0;
    group->bytes += bytes;
    queue->waiting++;
    return hold(group);
}

static void take_out_group(group_queue *queue, const struct group *group)
{
    struct group **link = &queue->first, *previous = NULL;

    while (*link != group) {
        previous = *link;
        link = &previous->next;
    }
    *link = group->next;
    if (queue->last == group)
        queue->last = previous;
}

static void take_permit(group_queue *queue)
{
    queue->leaders++;
    if (queue->shares)
        queue->taken_ms = clock_boottime_ms();
}

/* A task that found no other to go with has its permit for itself. */
static unsigned is_shared(size_t rows)
{
    return rows > 1;
}

/* Takes the first group out of the queue and gives it a permit. */
static struct group *take_first(group_queue *queue)
{
    struct group *group = queue->first;

    assert(atomic_load_explicit(&group->state, memory_order_relaxed) == GROUP_QUEUED);
    assert(group->rows > 0 && group->rows <= queue->waiting);
    take_out_group(queue, group);
    take_permit(queue);
    queue->groups += is_shared(group->rows);
    queue->waiting -= group->rows;
    queue->under_way += group->rows;
    group->next = NULL;
    hold(group); /* before its own threads may serve and leave it */
    atomic_store_explicit(&group->state, GROUP_CALLED, memory_order_release);
    return group;
}

/* More permits may be taken than there are now, by tasks that run alone.  One group may go beside
 * them: some of them may be stuck, and nobody should wait for most of them. */
static int group_may_go(const group_queue *queue)
{
    return queue->leaders < permits(queue) ||
           (queue->groups == 0 && queue->leaders < most_alone(queue));
}

/* How long the group still waits for its share. */
static int64_t gather_left_us(const struct group *group)
{
    const int64_t left_us = group->opened_us + GATHER_US - clock_boottime_us();

    return left_us > 0 ? left_us : 0;
}

/* The first group need not wait for more.  Tasks of another kind count too, or groups of two kinds
 * would wait for each other's tasks. */
static int is_gathered(const group_queue *queue)
{
    return are_few(queue) || queue->waiting >= share_of(queue) || gather_left_us(queue->first) == 0;
}

/* All groups for which there is a permit; the caller wakes them with call(). */
static struct group *take_due(group_queue *queue)
{
    struct group *due = NULL, **end = &due;

    while (queue->first != NULL && group_may_go(queue) && is_gathered(queue)) {
        *end = take_first(queue);
        end = &(*end)->next;
    }
    return due;
}

/* ---------------------------------------------------------------------- its threads -- */

static void call(struct group *due)
{
    while (due != NULL) {
        struct group *group = due;

        due = group->next;
        futex_wake(&group->state, 1);
        release(group);
    }
}

/* A permit is given back, after `done` tasks.  The next groups of the queue get it, and others that
 * are free now that there are fewer tasks. */
static void hand_over(group_queue *queue, size_t done, unsigned groups)
{
    struct group *due;

    pthread_mutex_lock(&queue->mutex);
    assert(queue->leaders > 0 && queue->groups >= groups && queue->under_way >= done);
    queue->under_way -= done;
    queue->leaders--;
    queue->groups -= groups;
    due = take_due(queue);
    pthread_mutex_unlock(&queue->mutex);
    call(due);
}

void group_count(task_engine *engine, size_t count)
{
    if (count < 2)
        return;
    engine_count(&engine->counters.groups, 1);
    engine_count(&engine->counters.grouped, count);
    histogram_add(&engine->counters.group_tasks, &histogram_of_tasks, count);
}

/* The permit is handed over before the verdicts, so that the next group runs while the threads of
 * this one wake up. */
static void lead(task_engine *engine, group_queue *queue, struct group *group, int64_t deadline_ms)
{
    task *tasks[BATCH_ROWS];
    size_t count = 0;

    for (struct member *m = group->first; m != NULL; m = m->next)
        tasks[count++] = m->task;
    assert(count == group->rows);
    batch_run(engine, group->kind, tasks, count, deadline_ms);
    group_count(engine, count);
    hand_over(queue, count, is_shared(count));
    atomic_store_explicit(&group->state, GROUP_SERVED, memory_order_release);
    futex_wake(&group->state, FUTEX_ALL);
}

/* Takes the task out of the queue; 0 when its group has a permit already. */
static int leave(group_queue *queue, struct group *group, struct member *me)
{
    struct member **link = &group->first, *previous = NULL;
    struct group *due = NULL;
    int left = 0;

    pthread_mutex_lock(&queue->mutex);
    if (atomic_load_explicit(&group->state, memory_order_relaxed) == GROUP_QUEUED) {
        while (*link != me) {
            previous = *link;
            link = &previous->next;
        }
        *link = me->next;
        if (group->last == me)
            group->last = previous;
        group->rows--;
        group->bytes -= group->kind->size(me->task);
        queue->waiting--;
        if (group->rows == 0)
            take_out_group(queue, group);
        due = take_due(queue); /* with fewer tasks there may be one permit more */
        left = 1;
    }
    pthread_mutex_unlock(&queue->mutex);
    call(due);
    return left;
}

/* Sleeps while the group may wait for its share.  1: its time is over, and it was called if there
 * is a permit. */
static int gather(group_queue *queue, struct group *group)
{
    const int64_t left_us = gather_left_us(group);
    struct group *due;

    if (left_us > 0) {
        futex_wait_for(&group->state, GROUP_QUEUED, left_us);
        return 0;
    }
    pthread_mutex_lock(&queue->mutex);
    due = take_due(queue);
    pthread_mutex_unlock(&queue->mutex);
    call(due);
    return 1;
}

/* Sleeps until the group was served; leads it if it is called and no other thread does.  0: the
 * deadline came first, and the task has left. */
static int await(task_engine *engine, group_queue *queue, struct group *group, struct member *me,
                 int64_t deadline_ms)
{
    int patient = 0; /* it cannot be left any more */

    for (;;) {
        int state = atomic_load_explicit(&group->state, memory_order_acquire);

        if (state == GROUP_SERVED)
            return 1;
        if (state == GROUP_CALLED) {
            if (atomic_compare_exchange_strong(&group->state, &state, GROUP_UNDER_WAY)) {
                lead(engine, queue, group, deadline_ms);
                return 1;
            }
            continue;
        }
        if (me->opened && state == GROUP_QUEUED)
            me->opened = !gather(queue, group);
        else if (patient)
            futex_wait(&group->state, state);
        else if (!futex_wait_until(&group->state, state, deadline_ms)) {
            if (leave(queue, group, me))
                return 0;
            patient = 1;
        }
    }
}

/* Takes a free permit where tasks are few, then NULL and *leads; else joins a group.  NULL without
 * *leads: out of memory, the task goes alone. */
static struct group *join(group_queue *queue, const batch_kind *kind, struct member *me, int *leads)
{
    struct group *group = NULL, *due = NULL;

    *leads = 0;
    pthread_mutex_lock(&queue->mutex);
    count_in(queue);
    if (queue->leaders < permits(queue) && queue->first == NULL && are_few(queue)) {
        take_permit(queue);
        queue->under_way++;
        *leads = 1;
    } else {
        group = add(queue, kind, me);
        due = take_due(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
    call(due);
    return group;
}

static void too_late(task *t)
{
    t->stage = TASK_OVER;
    t->verdict = VERDICT_FAILED;
    t->status = error_set(TL_OVERLOADED, "no transition group took '%s' in time", t->name);
}

int group_try(task_engine *engine, const batch_kind *kind, task *t, int64_t deadline_ms)
{
    group_queue *queue = t->groups != NULL ? t->groups : engine->groups;
    struct member me = {.task = t};
    int leads;
    struct group *group = join(queue, kind, &me, &leads);

    if (leads) {
        /* One try only: an ending may wait for a row lock until its budget is over, and nobody else
         * shall wait with it. */
        t->permitted = 1;
        alone_try(engine, t, deadline_ms);
        t->permitted = 0;
        hand_over(queue, 1, 0);
    } else if (group != NULL && !await(engine, queue, group, &me, deadline_ms)) {
        too_late(t);
    }
    if (group == NULL)
        return 0;
    release(group);
    return 1;
}
