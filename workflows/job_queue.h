/*
 * The claimed trades of a worker that wait for a thread, first in, first out; and how many to claim
 * ahead.
 *
 * A claim costs nearly the same for one trade as for sixteen.  So while attempts are short, a
 * worker claims what its threads are likely to end in the next JOB_AHEAD_MS.  While they are long,
 * as with a slow channel, it claims nothing ahead, since a trade that is claimed and waits wastes
 * its hold. The worker guards its queue with its own mutex.
 */
#ifndef TL_WORKFLOWS_JOB_QUEUE_H
#define TL_WORKFLOWS_JOB_QUEUE_H

#include "registry.h"

#include <tradelock/lane.h>

#define JOB_AHEAD_MS 50
#define JOB_AHEAD_MOST 16
/* A trade that has waited for so long will not be run soon: its threads are stuck. */
#define JOB_STUCK_MS 200

typedef struct job {
    const workflow *of;
    tl_lock *lock;
    int64_t since_ms; /* when it was queued */
} job;

typedef struct job_queue {
    job jobs[TL_CLAIM_MAX + JOB_AHEAD_MOST];
    unsigned count;
    int64_t mean_us; /* how long a job takes; the last eight count most */
} job_queue;

void job_queue_init(job_queue *queue);
/* Needs: fewer jobs in it than it has places. */
void job_queue_add(job_queue *queue, const job *added);
/* 0: there is none. */
int job_queue_take(job_queue *queue, job *taken);
/* As job_queue_take(), but only of a job that waits for a thread in vain.  Nothing is claimed ahead
 * then until many jobs were short again. */
int job_queue_take_stuck(job_queue *queue, int64_t now_ms, job *taken);

/* A job was over after took_us. */
void job_queue_ran(job_queue *queue, int64_t took_us);
/* How many trades may wait for these threads. */
unsigned job_queue_ahead(const job_queue *queue, unsigned threads);

#endif
