/*
 * The claimed trades of a worker that wait for a thread, first in, first out; and how many to claim
 * ahead.
 *
 * A claim costs nearly the same for one trade as for sixteen.  So while the attempts of an
 * operation are short, a worker claims what its threads are likely to end in the next JOB_AHEAD_MS.
 * Of an operation whose attempts are long, as with a slow channel, it claims nothing ahead, since a
 * trade that is claimed and waits wastes its hold; and a thread that runs such an attempt counts
 * for nothing.  The worker guards its queue with its own mutex.
 *
 * Each operation has its share of the threads: while another one runs nothing, a thread stays idle
 * for it.  So a channel that does not answer holds all threads but those, and the worker's other
 * operations are served.  A worker of one operation keeps no thread back.
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
    unsigned era;     /* of the worker, see there */
} job;

/* How long the attempts of one operation take. */
typedef struct job_kind {
    const workflow *of;
    int64_t mean_us;  /* the last eight count most */
    unsigned running; /* on threads */
    unsigned claimed; /* queued, on threads, and handed over: their endings are being written */
} job_kind;

typedef struct job_queue {
    job jobs[TL_CLAIM_MAX + JOB_AHEAD_MOST];
    unsigned count;
    job_kind kinds[WORKFLOWS_MAX];
    unsigned kind_count;
} job_queue;

/* How long what is claimed may be held: its max_hold, and as long again once a send was armed.  0:
 * nothing is claimed. */
int64_t job_queue_longest_ms(const job_queue *queue);
void job_queue_init(job_queue *queue);
/* Needs: no more jobs than job_queue_room() allowed. */
void job_queue_add(job_queue *queue, const job *added);
/* The worker serves this operation, though nothing of it was claimed yet. */
void job_queue_know(job_queue *queue, const workflow *of);
/* The first one whose operation may have one more of so many threads.  0: there is none.  Else a
 * thread runs it now, and says job_queue_ran() when it is over. */
int job_queue_take(job_queue *queue, unsigned threads, job *taken);
/* 0: there is none that waits for a thread in vain.  Else it is taken out, and nobody runs it.  Of
 * the operations that keep the threads busy nothing is claimed ahead then, until many of their jobs
 * were short again. */
int job_queue_take_stuck(job_queue *queue, int64_t now_ms, job *taken);
/* Whether this operation may have one more of so many threads. */
int job_queue_may_run(job_queue *queue, const workflow *of, unsigned threads);
/* A thread goes on with a job that had left its thread, and says job_queue_ran(). */
void job_queue_resume(job_queue *queue, const workflow *of);
/* The job of this operation left its thread after took_us. */
void job_queue_ran(job_queue *queue, const workflow *of, int64_t took_us);
/* A trade of this operation that was claimed is no more; after job_queue_ran() or before. */
void job_queue_over(job_queue *queue, const workflow *of);

/* Whether the threads are likely to end a job of this operation soon, so that others may be claimed
 * ahead. */
int job_queue_is_quick(job_queue *queue, const workflow *of, unsigned threads);
/* How many trades of this operation may be claimed now: one for each free thread, and those
 * ahead. */
unsigned job_queue_room(job_queue *queue, const workflow *of, unsigned threads);
/* Whether threads are idle, but for other operations only. */
int job_queue_is_held_back(job_queue *queue, const workflow *of, unsigned threads);
/* Whether a trade of this operation is claimed. */
int job_queue_has(const job_queue *queue, const workflow *of);

#endif
