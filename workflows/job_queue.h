/*
 * The claimed trades of a worker, each with its state; and how many to claim ahead.
 *
 *     state     the trade                                            leaves it
 *     FREE      none: the place is free                              claimed: QUEUED
 *     QUEUED    waits for a thread, first in, first out              taken, or stuck: BEGUN
 *     BEGUN     a thread makes its attempt, or gives it back, or     over: FREE
 *               its ending was handed over and is being written      given up: RETURNED
 *     RETURNED  its ending was given up, as when the books refused   taken: BEGUN
 *               it; waits for a thread, before all that is queued
 *
 * Threads are counted for themselves: one that handed its trade over is busy until it is back,
 * though the trade may be over by then.
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

#include "compensate.h"

#include <tradelock/lane.h>

#define JOB_AHEAD_MS 50
#define JOB_AHEAD_MOST 16
/* A trade that has waited for so long will not be run soon: its threads are stuck. */
#define JOB_STUCK_MS 200

typedef enum job_state { JOB_FREE, JOB_QUEUED, JOB_BEGUN, JOB_RETURNED } job_state;

typedef struct job {
    job_state state;
    struct job *next; /* of those that are free, or of those that wait for a thread */
    struct tl_worker *worker;
    const workflow *of;
    tl_lock *lock;
    int64_t since_ms; /* when it was queued */
    int hangs;        /* it was in flight when the last wait for all was given up */
    later_item *item; /* RETURNED, and while that is run */
    compensate_calls calls;
} job;

/* How long the attempts of one operation take. */
typedef struct job_kind {
    const workflow *of;
    int64_t mean_us;  /* the last eight count most */
    unsigned running; /* threads */
    unsigned claimed; /* trades in any state */
} job_kind;
typedef struct job_kinds {
    job_kind of[WORKFLOWS_MAX];
    unsigned count;
} job_kinds;

/* What waits, what threads run, and what was handed over. */
#define JOBS_MAX (5 * TL_CLAIM_MAX)

typedef struct job_queue {
    job places[JOBS_MAX];
    job *free, *waiting;
    unsigned in_flight; /* trades in any state */
    unsigned hung;      /* of these */
    unsigned busy;      /* threads, and trades that wait for one */
    job_kinds kinds;
} job_queue;

/* How long what is claimed may be held: its max_hold, and as long again once a send was armed.  0:
 * nothing is claimed. */
int64_t job_queue_longest_ms(const job_queue *queue);
void job_queue_init(job_queue *queue);
/* Needs: no more jobs than job_queue_room() allowed. */
job *job_queue_add(job_queue *queue, const workflow *of, tl_lock *lock, int64_t now_ms);
/* The worker serves this operation, though nothing of it was claimed yet. */
void job_queue_know(job_queue *queue, const workflow *of);
/* The first one whose operation may have one more of so many threads.  NULL: there is none.  Else a
 * thread runs it now, and says job_queue_ran() when it is over. */
job *job_queue_take(job_queue *queue, unsigned threads);
/* NULL: there is none that waits for a thread in vain.  Else it is begun, and no thread runs it.  Of
 * the operations that keep the threads busy nothing is claimed ahead then, until many of their jobs
 * were short again. */
job *job_queue_take_stuck(job_queue *queue, int64_t now_ms);
/* A thread is to go on with it. */
void job_queue_return(job_queue *queue, job *returned, later_item *item);
/* A thread is done with a job of this operation, after took_us. */
void job_queue_ran(job_queue *queue, const workflow *of, int64_t took_us);
/* The trade is no more; after job_queue_ran() or before. */
void job_queue_over(job_queue *queue, job *over);
/* All that is in flight hangs: how many those are. */
unsigned job_queue_hang(job_queue *queue);

/* Whether the threads are likely to end a job of this operation soon, so that others may be claimed
 * ahead. */
int job_queue_is_quick(job_queue *queue, const workflow *of, unsigned threads);
/* How many trades of this operation may be claimed now: one for each free thread, and those
 * ahead. */
unsigned job_queue_room(job_queue *queue, const workflow *of, unsigned threads);
/* Whether threads are idle, but for other operations only. */
int job_queue_is_held_back(job_queue *queue, const workflow *of, unsigned threads);
/* Whether a trade of this operation is claimed. */
int job_queue_has(job_queue *queue, const workflow *of);

#endif
