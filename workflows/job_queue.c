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

void job_queue_add(job_queue *queue, const job *added)
{
    assert(queue->count < sizeof queue->jobs / sizeof *queue->jobs);
    queue->jobs[queue->count++] = *added;
}

static int take(job_queue *queue, job *taken)
{
    if (queue->count == 0)
        return 0;
    *taken = queue->jobs[0];
    memmove(queue->jobs, queue->jobs + 1, --queue->count * sizeof *queue->jobs);
    return 1;
}

int job_queue_take(job_queue *queue, job *taken)
{
    if (!take(queue, taken))
        return 0;
    kind_of(queue, taken->of)->running++;
    return 1;
}

int job_queue_take_stuck(job_queue *queue, int64_t now_ms, job *taken)
{
    if (queue->count == 0 || now_ms - queue->jobs[0].since_ms < JOB_STUCK_MS)
        return 0;
    for (unsigned i = 0; i < queue->kind_count; i++)
        if (queue->kinds[i].running > 0)
            queue->kinds[i].mean_us = MEAN_LONG_US;
    return take(queue, taken);
}

void job_queue_ran(job_queue *queue, const workflow *of, int64_t took_us)
{
    job_kind *kind = kind_of(queue, of);

    assert(kind->running > 0);
    kind->running--;
    kind->mean_us += (took_us - kind->mean_us) / MEAN_OF;
}

int64_t job_queue_longest_ms(const job_queue *queue)
{
    int64_t longest_ms = 0;

    for (unsigned i = 0; i < queue->kind_count; i++)
        if (queue->kinds[i].running > 0 &&
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

/* Threads that run nothing; queued jobs go to these first. */
static unsigned idle_threads(const job_queue *queue, unsigned threads)
{
    unsigned running = 0;

    for (unsigned i = 0; i < queue->kind_count; i++)
        running += queue->kinds[i].running;
    return running < threads ? threads - running : 0;
}

int job_queue_is_quick(job_queue *queue, const workflow *of, unsigned threads)
{
    return kind_of(queue, of)->mean_us <= offer_us(queue, threads);
}

unsigned job_queue_room(job_queue *queue, const workflow *of, unsigned threads)
{
    const job_kind *kind = kind_of(queue, of);
    unsigned idle = idle_threads(queue, threads), waiting = 0;
    int64_t left_us = offer_us(queue, threads), ahead;

    for (unsigned i = 0; i < queue->count; i++) {
        const job_kind *queued = kind_of(queue, queue->jobs[i].of);

        if (i < idle)
            left_us -= taken_us(queued);
        else
            left_us -= queued->mean_us;
        waiting += i >= idle;
    }
    idle = queue->count < idle ? idle - queue->count : 0;
    left_us -= taken_us(kind) * idle;
    ahead = left_us > 0 ? left_us / (kind->mean_us > 0 ? kind->mean_us : 1) : 0;
    if (ahead > JOB_AHEAD_MOST - (int64_t)waiting)
        ahead = JOB_AHEAD_MOST - (int64_t)waiting;
    return idle + (ahead > 0 ? (unsigned)ahead : 0);
}
