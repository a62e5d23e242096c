/*
 * Group commit of transitions, as the write group of a log-structured store does it.
 *
 * A thread that finds a free place leads: it tries its own step on its own thread, with
 * nothing added, and leaves the place before it tries again.  One that does not joins a
 * group of the queue and sleeps.  A leader that is back hands its place to the first
 * group of the queue, which one of its own threads then leads: one statement, one commit, a
 * verdict for each, and one call that wakes them all.  So a group grows as large as the time
 * of one commit makes it; there is no dispatcher, no timer, and a lone caller waits for
 * nobody.
 *
 * A group takes no more than its share of all who are there: where one took all that waits,
 * the other places were left with crumbs, a group of fifty and then many of five, each of
 * which costs a commit.
 */
#include "transition/inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "store/store_group.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Groups under way at once: while one waits for the disk the others can be worked on.  A
 * third one is worth what its statement costs as long as the groups are short. */
#define LEADERS 2
#define LEADERS_OF_FEW 3
#define FEW_STEPS 96
/* Members of a lost group that settle for themselves at once: each opens a connection. */
#define SETTLERS 4
/* What one statement takes at most, besides GROUP_ROWS. */
#define GROUP_BYTES (1024 * 1024)

/* What a group's word says, in this order. */
enum group_state {
    GROUP_QUEUED,    /* more may join, and leave */
    GROUP_CALLED,    /* there is a place for it; the first thread to see it leads */
    GROUP_UNDER_WAY, /* only the leader's word ends the wait */
    GROUP_SERVED     /* each has its verdict */
};

/* A step in a group; lives on its thread's stack until the group was served. */
struct member {
    transition *t;
    struct member *next;
};

/* Freed by the last of those who have it in hand. */
struct group {
    atomic_int state; /* left QUEUED under the queue's mutex; its threads sleep on it */
    atomic_uint holders;
    /* Under the queue's mutex while it is QUEUED, its leader's then. */
    struct member *first, *last;
    size_t rows, bytes;
    struct group *next;
};

struct group_queue {
    unsigned connections; /* more groups than these cannot be under way */
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct group *first, *last;
    unsigned leaders;
    size_t waiting, under_way; /* steps in the queue, and in groups or with leaders */
    sem_t settlers;            /* free places of SETTLERS */
};

tl_status group_queue_new(group_queue **out, unsigned connections)
{
    group_queue *queue = memory_new(sizeof *queue);

    if (queue == NULL)
        return TL_NO_MEMORY;
    queue->connections = connections;
    pthread_mutex_init(&queue->mutex, NULL);
    sem_init(&queue->settlers, 0, SETTLERS);
    *out = queue;
    return TL_OK;
}

void group_queue_free(group_queue *queue)
{
    if (queue == NULL)
        return;
    sem_destroy(&queue->settlers);
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

static unsigned places(const group_queue *queue)
{
    unsigned wanted =
        queue->waiting + queue->under_way < FEW_STEPS ? LEADERS_OF_FEW : LEADERS;

    return wanted < queue->connections ? wanted : queue->connections;
}

/* As many for each group under way as are left to wait. */
static size_t share_of(const group_queue *queue)
{
    size_t share = (queue->waiting + queue->under_way) / (places(queue) + 1) + 1;

    return share < GROUP_ROWS ? share : GROUP_ROWS;
}

/* The group that takes another member now; NULL when out of memory. */
static struct group *open_group(group_queue *queue, size_t bytes)
{
    struct group *group;

    /* The share grows with those who come: what was full for few has room again. */
    for (group = queue->first; group != NULL; group = group->next)
        if (group->rows < share_of(queue) && group->bytes + bytes <= GROUP_BYTES)
            return group;
    group = memory_new(sizeof *group);
    if (group == NULL)
        return NULL;
    if (queue->last != NULL)
        queue->last->next = group;
    else
        queue->first = group;
    queue->last = group;
    return group;
}

static struct group *add(group_queue *queue, struct member *me)
{
    size_t bytes = store_group_size(&me->t->step);
    struct group *group = open_group(queue, bytes);

    if (group == NULL)
        return NULL;
    if (group->last != NULL)
        group->last->next = me;
    else
        group->first = me;
    group->last = me;
    group->rows++;
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

/* Gives a place to the first group, if there is one; the caller wakes it with call(). */
static struct group *take_first(group_queue *queue)
{
    struct group *group = queue->first;

    if (group == NULL)
        return NULL;
    take_out_group(queue, group);
    queue->leaders++;
    queue->waiting -= group->rows;
    queue->under_way += group->rows;
    hold(group); /* before its own threads may serve and leave it */
    atomic_store_explicit(&group->state, GROUP_CALLED, memory_order_release);
    return group;
}

/* ---------------------------------------------------------------------- its threads -- */

static void call(struct group *group)
{
    if (group == NULL)
        return;
    futex_wake(&group->state, 1);
    release(group);
}

/* A place is free, `done` steps are: the first of the queue is next, or the place stays
 * empty.  With fewer steps there may be a place more, which the next to come fills. */
static void hand_over(group_queue *queue, size_t done)
{
    struct group *next = NULL;

    pthread_mutex_lock(&queue->mutex);
    queue->under_way -= done;
    queue->leaders--;
    if (queue->leaders < places(queue))
        next = take_first(queue);
    pthread_mutex_unlock(&queue->mutex);
    call(next);
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
 * Of several asks for one key in a group one is written.  Where it was refused, so are the
 * others: the row was there when the statement ran, after all of them had asked.  Where it
 * was granted, the others meet a living holder.  Anything else goes on alone.
 */
static void follow(const transition *written, transition *t)
{
    int same_asks =
        written->step.kind == t->step.kind && t->step.kind != STEP_FINISH_SYNC;

    if (same_asks &&
        (written->verdict == VERDICT_APPLIED || written->verdict == VERDICT_REFUSED)) {
        t->verdict = VERDICT_REFUSED;
        return;
    }
    t->verdict = VERDICT_FAILED;
    t->status = TL_TRY_AGAIN;
}

static void run_batch(transition_engine *engine, transition **items, size_t count,
                      int64_t deadline_ms)
{
    transition *unique[GROUP_ROWS];
    size_t kept = 0, at = 0;

    qsort(items, count, sizeof(void *), by_key);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || by_key(&items[i], &unique[kept - 1]) != 0)
            unique[kept++] = items[i];
    batch_run(engine, unique, kept, deadline_ms);
    for (size_t i = 0; i < count; i++) {
        if (by_key(&items[i], &unique[at]) != 0)
            at++;
        if (items[i] != unique[at])
            follow(unique[at], items[i]);
    }
    atomic_fetch_add_explicit(&engine->counters.groups, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&engine->counters.grouped, count, memory_order_relaxed);
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

/* The leader's time was over before the group was settled, and this thread has time left. */
static void settle_alone(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    sem_t *settlers = &engine->groups->settlers;
    struct timespec at = until(deadline_ms);

    while (sem_clockwait(settlers, CLOCK_MONOTONIC, &at) != 0)
        if (errno != EINTR)
            return;
    transition_run_one(engine, t, deadline_ms);
    sem_post(settlers);
}

/* What a group could not decide is carried out alone: a lost answer was settled and did
 * not happen, or the statement was undone; or it could not be settled yet. */
static void run_leftover(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    if (t->verdict == VERDICT_FAILED && t->status == TL_TRY_AGAIN)
        transition_run_one(engine, t, deadline_ms);
    else if (t->verdict == VERDICT_UNKNOWN && t->lost_connection[0] != '\0' &&
             clock_left_ms(deadline_ms) > 0)
        settle_alone(engine, t, deadline_ms);
}

void group_run_batch(transition_engine *engine, transition **items, size_t count,
                     int64_t deadline_ms)
{
    run_batch(engine, items, count, deadline_ms);
    for (size_t i = 0; i < count; i++)
        run_leftover(engine, items[i], deadline_ms);
}

/* The place is handed over before the verdicts are, so that the next group is on its way
 * while this one's threads wake up. */
static void lead(transition_engine *engine, struct group *group, int64_t deadline_ms)
{
    transition *items[GROUP_ROWS];
    size_t count = 0;

    for (struct member *m = group->first; m != NULL; m = m->next)
        items[count++] = m->t;
    run_batch(engine, items, count, deadline_ms);
    hand_over(engine->groups, count);
    atomic_store_explicit(&group->state, GROUP_SERVED, memory_order_release);
    futex_wake(&group->state, FUTEX_ALL);
}

/* Leaves the queue; 0 when the group has its place already. */
static int leave(group_queue *queue, struct group *group, struct member *me)
{
    struct member **link = &group->first, *previous = NULL;
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
        group->bytes -= store_group_size(&me->t->step);
        queue->waiting--;
        if (group->rows == 0)
            take_out_group(queue, group);
        left = 1;
    }
    pthread_mutex_unlock(&queue->mutex);
    return left;
}

/* Sleeps until the group was served, and leads it when it is called and nobody else does;
 * 0 when the deadline came before either. */
static int await(transition_engine *engine, struct group *group, struct member *me,
                 int64_t deadline_ms)
{
    int patient = 0; /* it cannot be left any more */

    for (;;) {
        int state = atomic_load_explicit(&group->state, memory_order_acquire);

        if (state == GROUP_SERVED)
            return 1;
        if (state == GROUP_CALLED) {
            if (atomic_compare_exchange_strong(&group->state, &state, GROUP_UNDER_WAY)) {
                lead(engine, group, deadline_ms);
                return 1;
            }
            continue;
        }
        if (patient)
            futex_wait(&group->state, state);
        else if (!futex_wait_until(&group->state, state, deadline_ms)) {
            if (leave(engine->groups, group, me))
                return 0;
            patient = 1;
        }
    }
}

/* Joins a group, or leads alone where a place is free; NULL: alone, *leads says whether with
 * a place. */
static struct group *join(group_queue *queue, struct member *me, int *leads)
{
    struct group *group = NULL, *next = NULL;

    *leads = 0;
    pthread_mutex_lock(&queue->mutex);
    if (queue->leaders < places(queue) && queue->first == NULL) {
        queue->leaders++;
        queue->under_way++;
        *leads = 1;
    } else {
        group = add(queue, me);
        if (queue->leaders < places(queue))
            next = take_first(queue);
    }
    pthread_mutex_unlock(&queue->mutex);
    call(next);
    return group;
}

void group_run(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    struct member me = {.t = t};
    int leads;
    struct group *group = join(engine->groups, &me, &leads);

    if (leads) {
        /* An ending may wait for somebody's row lock until its budget is over; nobody
         * else shall wait with it. */
        int over = transition_attempt(engine, t, deadline_ms);

        hand_over(engine->groups, 1);
        if (!over)
            transition_run_one(engine, t, deadline_ms);
    } else if (group == NULL) {
        transition_run_one(engine, t, deadline_ms);
    } else if (!await(engine, group, &me, deadline_ms)) {
        t->verdict = VERDICT_FAILED;
        t->status =
            error_set(TL_OVERLOADED, "no transition group took this step in time");
    } else {
        run_leftover(engine, t, deadline_ms);
    }
    if (group != NULL)
        release(group);
}
