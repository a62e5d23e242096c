/* The table of a worker's claimed trades.  Touches nothing else. */
#include "job_queue.h"

#include <assert.h>
#include <string.h>

/* Before anything is known, and when threads were stuck. */
#define MEAN_LONG_US (INT64_C(10) * 1000 * 1000)
#define MEAN_OF 8
#define AHEAD_US (INT64_C(1000) * JOB_AHEAD_MS)

void job_queue_init(job_queue *queue)
{
    memset(queue, 0, sizeof *queue);
    for (size_t i = JOBS_MAX; i > 0; i--) {
        queue->places[i - 1].next = queue->free;
        queue->free = &queue->places[i - 1];
    }
}

static job_kind *kind_of(job_kinds *kinds, const workflow *of)
{
    job_kind *kind = kinds->of;

    while (kind < kinds->of + kinds->count && kind->of != of)
        kind++;
    if (kind == kinds->of + kinds->count) {
        assert(kinds->count < WORKFLOWS_MAX);
        kinds->count++;
        *kind = (job_kind){.of = of, .mean_us = MEAN_LONG_US};
    }
    return kind;
}

void job_queue_know(job_queue *queue, const workflow *of)
{
    (void)kind_of(&queue->kinds, of);
}

/* ------------------------------------------------------------------- the states -- */

static int waits(job_state state)
{
    return state == JOB_QUEUED || state == JOB_RETURNED;
}

/* The only function that changes a state.  link: its place among those that wait, if it does. */
static void become(job_queue *queue, job *one, job_state state, job **link)
{
    static const unsigned next[] = {[JOB_FREE] = 1u << JOB_QUEUED,
                                    [JOB_QUEUED] = 1u << JOB_BEGUN,
                                    [JOB_BEGUN] = 1u << JOB_FREE | 1u << JOB_RETURNED,
                                    [JOB_RETURNED] = 1u << JOB_BEGUN};

    assert(next[one->state] & 1u << state);
    assert(link != NULL || (!waits(one->state) && !waits(state)));
    if (waits(one->state)) {
        *link = one->next;
        queue->busy--;
    } else if (waits(state)) {
        one->next = *link;
        *link = one;
        queue->busy++;
    }
    one->state = state;
}

job *job_queue_add(job_queue *queue, const workflow *of, tl_lock *lock, int64_t now_ms)
{
    job *added = queue->free, **last = &queue->waiting;

    assert(added != NULL);
    queue->free = added->next;
    *added = (job){.of = of, .lock = lock, .since_ms = now_ms};
    while (*last != NULL)
        last = &(*last)->next;
    become(queue, added, JOB_QUEUED, last);
    queue->in_flight++;
    kind_of(&queue->kinds, of)->claimed++;
    return added;
}

void job_queue_return(job_queue *queue, job *returned, later_item *item)
{
    job **last = &queue->waiting;

    while (*last != NULL && (*last)->state == JOB_RETURNED)
        last = &(*last)->next;
    returned->item = item;
    become(queue, returned, JOB_RETURNED, last);
}

void job_queue_over(job_queue *queue, job *over)
{
    job_kind *kind = kind_of(&queue->kinds, over->of);

    assert(kind->claimed > 0);
    kind->claimed--;
    queue->in_flight--;
    queue->hung -= (unsigned)over->hangs;
    become(queue, over, JOB_FREE, NULL);
    over->next = queue->free;
    queue->free = over;
}

unsigned job_queue_hang(job_queue *queue)
{
    for (size_t i = 0; i < JOBS_MAX; i++)
        queue->places[i].hangs = queue->places[i].state != JOB_FREE;
    return queue->hung = queue->in_flight;
}

/* ------------------------------------------------------------------ the threads -- */

/* Threads that run nothing; queued jobs go to these first. */
static unsigned idle_threads(const job_kinds *kinds, unsigned threads)
{
    unsigned running = 0;

    for (unsigned i = 0; i < kinds->count; i++)
        running += kinds->of[i].running;
    return running < threads ? threads - running : 0;
}

/* How many threads stay idle for other operations: one for each that has none.  If there are more
 * operations than threads, half of the threads. */
static unsigned kept_for_others(const job_kinds *kinds, const job_kind *kind, unsigned threads)
{
    const unsigned most = kinds->count <= threads ? threads - 1 : threads / 2;
    unsigned without = 0;

    for (unsigned i = 0; i < kinds->count; i++)
        without += &kinds->of[i] != kind && kinds->of[i].running == 0;
    return without < most ? without : most;
}

/* How many of the idle threads the operation may take now. */
static unsigned threads_for(const job_kinds *kinds, const job_kind *kind, unsigned threads)
{
    const unsigned idle = idle_threads(kinds, threads);
    const unsigned kept = idle > 0 ? kept_for_others(kinds, kind, threads) : 0;

    if (idle > kept)
        return idle - kept;
    return idle > 0 && kind->running == 0;
}

job *job_queue_take(job_queue *queue, unsigned threads)
{
    for (job **link = &queue->waiting; *link != NULL; link = &(*link)->next) {
        job *taken = *link;
        job_kind *kind = kind_of(&queue->kinds, taken->of);

        if (threads_for(&queue->kinds, kind, threads) == 0)
            continue;
        become(queue, taken, JOB_BEGUN, link);
        kind->running++;
        queue->busy++;
        return taken;
    }
    return NULL;
}

job *job_queue_take_stuck(job_queue *queue, int64_t now_ms)
{
    job **link = &queue->waiting, *stuck;

    while (*link != NULL && (*link)->state != JOB_QUEUED)
        link = &(*link)->next;
    stuck = *link;
    if (stuck == NULL || now_ms - stuck->since_ms < JOB_STUCK_MS)
        return NULL;
    for (unsigned i = 0; i < queue->kinds.count; i++)
        if (queue->kinds.of[i].running > 0)
            queue->kinds.of[i].mean_us = MEAN_LONG_US;
    become(queue, stuck, JOB_BEGUN, link);
    return stuck;
}

void job_queue_ran(job_queue *queue, const workflow *of, int64_t took_us)
{
    job_kind *kind = kind_of(&queue->kinds, of);

    assert(kind->running > 0);
    kind->running--;
    queue->busy--;
    kind->mean_us += (took_us - kind->mean_us) / MEAN_OF;
}

/* ------------------------------------------------------------- how many to claim -- */

int64_t job_queue_longest_ms(const job_queue *queue)
{
    int64_t longest_ms = 0;

    for (unsigned i = 0; i < queue->kinds.count; i++) {
        const job_kind *kind = &queue->kinds.of[i];

        if (kind->claimed > 0 && kind->of->given.policy.max_hold_ms > longest_ms)
            longest_ms = kind->of->given.policy.max_hold_ms;
    }
    return 2 * longest_ms;
}

/* What a job takes away from those that wait, on a thread: all that the thread has of the next
 * moment if it is long, nothing if it is not. */
static int64_t taken_us(const job_kind *kind)
{
    return kind->mean_us >= AHEAD_US ? AHEAD_US : 0;
}

/* What the threads have of the next moment, together. */
static int64_t offer_us(const job_kinds *kinds, unsigned threads)
{
    int64_t offered_us = AHEAD_US * threads;

    for (unsigned i = 0; i < kinds->count; i++)
        offered_us -= taken_us(&kinds->of[i]) * kinds->of[i].running;
    return offered_us;
}

int job_queue_is_quick(job_queue *queue, const workflow *of, unsigned threads)
{
    return kind_of(&queue->kinds, of)->mean_us <= offer_us(&queue->kinds, threads);
}

unsigned job_queue_room(job_queue *queue, const workflow *of, unsigned threads)
{
    job_kind *kind = kind_of(&queue->kinds, of);
    job_kinds then = queue->kinds; /* when the threads have what waits for them */
    unsigned waiting = 0, idle;
    int64_t left_us = offer_us(&queue->kinds, threads), ahead;

    for (const job *one = queue->waiting; one != NULL; one = one->next) {
        job_kind *queued = kind_of(&then, one->of);
        const int stays = threads_for(&then, queued, threads) == 0;

        left_us -= stays ? queued->mean_us : taken_us(queued);
        waiting += (unsigned)stays;
        queued->running += !stays;
    }
    idle = threads_for(&then, &then.of[kind - queue->kinds.of], threads);
    /* A thread that is kept for another operation is no offer. */
    left_us -= AHEAD_US * (idle_threads(&then, threads) - idle) + taken_us(kind) * idle;
    ahead = left_us > 0 ? left_us / (kind->mean_us > 0 ? kind->mean_us : 1) : 0;
    if (ahead > JOB_AHEAD_MOST - (int64_t)waiting)
        ahead = JOB_AHEAD_MOST - (int64_t)waiting;
    return idle + (ahead > 0 ? (unsigned)ahead : 0);
}

int job_queue_is_held_back(job_queue *queue, const workflow *of, unsigned threads)
{
    return idle_threads(&queue->kinds, threads) > 0 &&
           threads_for(&queue->kinds, kind_of(&queue->kinds, of), threads) == 0;
}

int job_queue_has(job_queue *queue, const workflow *of)
{
    return kind_of(&queue->kinds, of)->claimed > 0;
}
