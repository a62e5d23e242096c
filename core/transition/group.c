/*
 * Group commit of transitions, as the write group of a log-structured store does it.
 *
 * A thread that finds a free place leads: it tries its own step on its own thread, with
 * nothing added, and leaves the place before it tries again.  One that does not queues and sleeps.  A leader that is back hands its
 * place to the first of the queue, which takes its share of what queued meanwhile as one
 * statement and one commit, gives each its own verdict and wakes them.  So a group grows
 * exactly as large as the time of one commit makes it; there is no dispatcher, no timer,
 * and a lone caller waits for nobody.
 *
 * A share, since whoever takes all that is there leaves the other places with crumbs: one
 * group of fifty and then many of five, each of which costs a commit, for as long as the
 * callers are the same.
 */
#include "transition/inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "store/store_group.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Groups under way at once: while one waits for the disk another can be worked on. */
#define LEADERS 2
/* Members of a lost group that settle for themselves at once: each opens a connection. */
#define SETTLERS 4
/* What one statement takes at most, besides GROUP_ROWS. */
#define GROUP_BYTES (1024 * 1024)

/* A thread in the queue; lives on its stack until it was woken. */
struct member {
    transition *t;
    struct member *next;
    sem_t woken;
    /* Set before each post and read after each wait: it carries what was written from one
     * thread to the other in the language's own terms, which race detectors understand. */
    atomic_int handed;
    /* Under the queue's mutex until woken. */
    struct member *batch; /* not NULL: lead these, yourself first */
    int taken;            /* a leader has it; only the leader's word ends the wait */
};

struct group_queue {
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct member *first, *last;
    unsigned leaders;
    size_t waiting, under_way; /* steps in the queue, and in groups or with leaders */
    sem_t settlers;            /* free places of SETTLERS */
};

tl_status group_queue_new(group_queue **out)
{
    group_queue *queue = memory_new(sizeof *queue);

    if (queue == NULL)
        return TL_NO_MEMORY;
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

/* As many for each group under way as are left to wait. */
static size_t share_of(const group_queue *queue)
{
    size_t share = (queue->waiting + queue->under_way) / (LEADERS + 1) + 1;

    return share < GROUP_ROWS ? share : GROUP_ROWS;
}

/* Takes the front of the queue as one batch.  Needs: queue->mutex held, queue not empty. */
static struct member *take_batch(group_queue *queue)
{
    struct member *batch = queue->first, *end = batch;
    size_t rows = 1, share = share_of(queue), bytes = store_group_size(&batch->t->step);

    batch->taken = 1;
    while (end->next != NULL && rows < share) {
        bytes += store_group_size(&end->next->t->step);
        if (bytes > GROUP_BYTES)
            break;
        end = end->next;
        end->taken = 1;
        rows++;
    }
    queue->first = end->next;
    if (queue->first == NULL)
        queue->last = NULL;
    end->next = NULL;
    queue->waiting -= rows;
    queue->under_way += rows;
    return batch;
}

static void wake(struct member *m)
{
    atomic_store_explicit(&m->handed, 1, memory_order_release);
    sem_post(&m->woken);
}

/* A place is free, `done` steps are: the first of the queue leads next, or the place stays
 * empty. */
static void hand_over(group_queue *queue, size_t done)
{
    struct member *next = NULL;

    pthread_mutex_lock(&queue->mutex);
    queue->under_way -= done;
    if (queue->first != NULL) {
        next = take_batch(queue);
        next->batch = next;
    } else {
        queue->leaders--;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (next != NULL)
        wake(next);
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

/* Leads a batch: the place is handed over before the verdicts are, so that the next group
 * is on its way while this one's threads wake up. */
static void lead(transition_engine *engine, struct member *batch, int64_t deadline_ms)
{
    transition *items[GROUP_ROWS];
    size_t count = 0;

    for (struct member *m = batch; m != NULL; m = m->next)
        items[count++] = m->t;
    run_batch(engine, items, count, deadline_ms);
    hand_over(engine->groups, count);
    for (struct member *m = batch->next, *next; m != NULL; m = next) {
        next = m->next; /* a woken member's stack is gone */
        wake(m);
    }
}

/* Leaves the queue; 0 when a leader has taken the member already. */
static int leave(group_queue *queue, struct member *me)
{
    struct member **link = &queue->first, *previous = NULL;
    int left = 0;

    pthread_mutex_lock(&queue->mutex);
    if (!me->taken) {
        while (*link != me) {
            previous = *link;
            link = &previous->next;
        }
        *link = me->next;
        if (queue->last == me)
            queue->last = previous;
        queue->waiting--;
        left = 1;
    }
    pthread_mutex_unlock(&queue->mutex);
    return left;
}

static void await(struct member *me)
{
    while (sem_wait(&me->woken) != 0)
        ;
}

/* Waits to be served or to lead; 0 when the deadline came before either. */
static int await_until(group_queue *queue, struct member *me, int64_t deadline_ms)
{
    struct timespec at = until(deadline_ms);

    while (sem_clockwait(&me->woken, CLOCK_MONOTONIC, &at) != 0) {
        if (errno == EINTR)
            continue;
        if (leave(queue, me))
            return 0;
        await(me);
        break;
    }
    (void)atomic_load_explicit(&me->handed, memory_order_acquire);
    return 1;
}

/* Joins: 1 when there is a free place to lead at once. */
static int join(group_queue *queue, struct member *me)
{
    int leads = 0;

    pthread_mutex_lock(&queue->mutex);
    if (queue->leaders < LEADERS && queue->first == NULL) {
        queue->leaders++;
        queue->under_way++;
        leads = 1;
    } else {
        *(queue->last != NULL ? &queue->last->next : &queue->first) = me;
        queue->last = me;
        queue->waiting++;
    }
    pthread_mutex_unlock(&queue->mutex);
    return leads;
}

void group_run(transition_engine *engine, transition *t, int64_t deadline_ms)
{
    struct member me = {.t = t};
    group_queue *queue = engine->groups;

    sem_init(&me.woken, 0, 0);
    if (join(queue, &me)) {
        /* An ending may wait for somebody's row lock until its budget is over; nobody
         * else shall wait with it. */
        int over = transition_attempt(engine, t, deadline_ms);

        hand_over(queue, 1);
        if (!over)
            transition_run_one(engine, t, deadline_ms);
    } else if (!await_until(queue, &me, deadline_ms)) {
        t->verdict = VERDICT_FAILED;
        t->status =
            error_set(TL_OVERLOADED, "no transition group took this step in time");
    } else {
        if (me.batch != NULL)
            lead(engine, me.batch, deadline_ms);
        run_leftover(engine, t, deadline_ms);
    }
    sem_destroy(&me.woken);
}
