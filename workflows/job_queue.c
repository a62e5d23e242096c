/* The queue of a worker's claimed trades.  Touches nothing else. */
#include "job_queue.h"

#include <assert.h>
#include <string.h>

/* Before anything is known, and when threads were stuck. */
#define MEAN_LONG_US (INT64_C(10) * 1000 * 1000)
#define MEAN_OF 8

void job_queue_init(job_queue *queue)
{
    queue->count = 0;
    queue->mean_us = MEAN_LONG_US;
}

void job_queue_add(job_queue *queue, const job *added)
{
    assert(queue->count < sizeof queue->jobs / sizeof *queue->jobs);
    queue->jobs[queue->count++] = *added;
}

int job_queue_take(job_queue *queue, job *taken)
{
    if (queue->count == 0)
        return 0;
    *taken = queue->jobs[0];
    memmove(queue->jobs, queue->jobs + 1, --queue->count * sizeof *queue->jobs);
    return 1;
}

int job_queue_take_stuck(job_queue *queue, int64_t now_ms, job *taken)
{
    if (queue->count == 0 || now_ms - queue->jobs[0].since_ms < JOB_STUCK_MS)
        return 0;
    queue->mean_us = MEAN_LONG_US;
    return job_queue_take(queue, taken);
}

void job_queue_ran(job_queue *queue, int64_t took_us)
{
    queue->mean_us += (took_us - queue->mean_us) / MEAN_OF;
}

unsigned job_queue_ahead(const job_queue *queue, unsigned threads)
{
    const int64_t mean_us = queue->mean_us > 0 ? queue->mean_us : 1;
    const int64_t ended = (int64_t)threads * JOB_AHEAD_MS * 1000 / mean_us;

    return ended < JOB_AHEAD_MOST ? (unsigned)ended : JOB_AHEAD_MOST;
}
