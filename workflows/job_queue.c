/* The queue of a worker's claimed trades.  Touches nothing else. */
#include "job_queue.h"

#include <assert.h>
#include <string.h>

/* Before anything is known, and when threads were stuck. */
#define MEAN_LONG_US (INT64_C(10) * 1000 * 1000)
#define MEAN_OF 8
#define AHEAD_US (INT64_C(1000) * JOB_AHEAD_MS)

void job_queue_init(job_queue *queue)
{
    queue->count = 0;
    queue->kind_count = 0;
}

static job_kind *kind_of(job_queue *queue, const workflow *of)
{
    job_kind *kind = queue->kinds;

    while (kind < queue->kinds + queue->kind_count && kind->of != of)
        kind++;
    if (kind == queue->kinds + queue->kind_count) {
        assert(queue->kind_count < WORKFLOWS_MAX);
        queue->kind_count++;
        *kind = (job_kind){.of = of, .mean_us = MEAN_LONG_US};
    }
    return kind;
}

void job_queue_know(job_queue *queue, const workflow *of)
{
    (void)kind_of(queue, of);
}

void job_queue_add(job_queue *queue, const job *added)
{
    assert(queue->count < sizeof queue->jobs / sizeof *queue->jobs);
    queue->jobs[queue->count++] = *added;
    kind_of(queue, added->of)->claimed++;
}

/* Threads that run nothing; queued jobs go to these first. */
static unsigned idle_threads(const job_queue *queue, unsigned threads)
{
    unsigned running = 0;

    for (unsigned i = 0; i < queue->kind_count; i++)
        running += queue->kinds[i].running;
    return running < threads ? threads - running : 0;
}

/* How many threads stay idle for other operations: one for each that has none.  If there are more
 * operations than threads, half of the threads. */
static unsigned kept_for_others(const job_queue *queue, const job_kind *kind, unsigned threads)
{
    const unsigned most = queue->kind_count <= threads ? threads - 1 : threads / 2;
    unsigned without = 0;

    for (unsigned i = 0; i < queue->kind_count; i++)
        without += &queue->kinds[i] != kind && queue->kinds[i].running == 0;
    return without < most ? without : most;
}

/* How many of the idle threads the operation may take now. */
static unsigned threads_for(const job_queue *queue, const job_kind *kind, unsigned threads)
{
    const unsigned idle = idle_threads(queue, threads);
    const unsigned kept = idle > 0 ? kept_for_others(queue, kind, threads) : 0;

    if (idle > kept)
        return idle - kept;
    return idle > 0 && kind->running == 0;
}

static void take(job_queue *queue, unsigned i, job *taken)
{
    *taken = queue->jobs[i];
    memmove(&queue->jobs[i], &queue->jobs[i + 1], (--queue->count - i) * sizeof *queue->jobs);
}

int job_queue_take(job_queue *queue, unsigned threads, job *taken)
{
    for (unsigned i = 0; i < queue->count; i++) {
        job_kind *kind = kind_of(queue, queue->jobs[i].of);

        if (threads_for(queue, kind, threads) == 0)
            continue;
        take(queue, i, taken);
        kind->running++;
        return 1;
    }
    return 0;
}

int job_queue_take_stuck(job_queue *queue, int64_t now_ms, job *taken)
{
    if (queue->count == 0 || now_ms - queue->jobs[0].since_ms < JOB_STUCK_MS)
        return 0;
    for (unsigned i = 0; i < queue->kind_count; i++)
        if (queue->kinds[i].running > 0)
            queue->kinds[i].mean_us = MEAN_LONG_US;
    take(queue, 0, taken);
    return 1;
}

void job_queue_ran(job_queue *queue, const workflow *of, int64_t took_us)
{
    job_kind *kind = kind_of(queue, of);

    assert(kind->running > 0);
    kind->running--;
    kind->mean_us += (took_us - kind->mean_us) / MEAN_OF;
}

int job_queue_may_run(job_queue *queue, const workflow *of, unsigned threads)
{
    return threads_for(queue, kind_of(queue, of), threads) > 0;
}

void job_queue_resume(job_queue *queue, const workflow *of)
{
    kind_of(queue, of)->running++;
}

void job_queue_over(job_queue *queue, const workflow *of)
{
    job_kind *kind = kind_of(queue, of);

    assert(kind->claimed > 0);
    kind->claimed--;
}

int64_t job_queue_longest_ms(const job_queue *queue)
{
    int64_t longest_ms = 0;

    for (unsigned i = 0; i < queue->kind_count; i++)
        if (queue->kinds[i].claimed > 0 &&
            queue->kinds[i].of->given.policy.max_hold_ms > longest_ms)
            longest_ms = queue->kinds[i].of->given.policy.max_hold_ms;
    return 2 * longest_ms;
}

/* What a job takes away from those that wait, on a thread: all that the thread has of the next
 * moment if it is long, nothing if it is not. */
static int64_t taken_us(const job_kind *kind)
{
    return kind->mean_us >= AHEAD_US ? AHEAD_US : 0;
}

/* What the threads have of the next moment, together. */
static int64_t offer_us(const job_queue *queue, unsigned threads)
{
    int64_t offered_us = AHEAD_US * threads;

    for (unsigned i = 0; i < queue->kind_count; i++)
        offered_us -= taken_us(&queue->kinds[i]) * queue->kinds[i].running;
    return offered_us;
}

int job_queue_is_quick(job_queue *queue, const workflow *of, unsigned threads)
{
    return kind_of(queue, of)->mean_us <= offer_us(queue, threads);
}

unsigned job_queue_room(job_queue *queue, const workflow *of, unsigned threads)
{
    const job_kind *kind = kind_of(queue, of);
    job_queue then = *queue; /* when the threads have what waits for them */
    unsigned waiting = 0, idle;
    int64_t left_us = offer_us(queue, threads), ahead;

    for (unsigned i = 0; i < queue->count; i++) {
        job_kind *queued = kind_of(&then, queue->jobs[i].of);
        const int waits = threads_for(&then, queued, threads) == 0;

        left_us -= waits ? queued->mean_us : taken_us(queued);
        waiting += (unsigned)waits;
        queued->running += !waits;
    }
    idle = threads_for(&then, &then.kinds[kind - queue->kinds], threads);
    /* A thread that is kept for another operation is no offer. */
    left_us -= AHEAD_US * (idle_threads(&then, threads) - idle) + taken_us(kind) * idle;
    ahead = left_us > 0 ? left_us / (kind->mean_us > 0 ? kind->mean_us : 1) : 0;
    if (ahead > JOB_AHEAD_MOST - (int64_t)waiting)
        ahead = JOB_AHEAD_MOST - (int64_t)waiting;
    return idle + (ahead > 0 ? (unsigned)ahead : 0);
}

int job_queue_is_held_back(job_queue *queue, const workflow *of, unsigned threads)
{
    return idle_threads(queue, threads) > 0 && threads_for(queue, kind_of(queue, of), threads) == 0;
}

int job_queue_has(const job_queue *queue, const workflow *of)
{
    for (unsigned i = 0; i < queue->kind_count; i++)
        if (queue->kinds[i].of == of)
            return queue->kinds[i].claimed > 0;
    return 0;
}
