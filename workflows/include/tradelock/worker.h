/*
 * worker.h - the threads that end what a service could not decide: the retry lane of its workflows.
 */
#ifndef TRADELOCK_WORKER_H
#define TRADELOCK_WORKER_H

#include <tradelock/workflow.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a worker works. */
typedef struct tl_worker_options {
    unsigned version;     /* TL_WORKER_OPTIONS_VERSION */
    unsigned threads;     /* compensating attempts at once, 1 to 64; 0: 4 */
    int64_t idle_max_ms;  /* look for due work at least so often; 0: 1000 */
    int64_t unclaimed_ms; /* alarm for work that is overdue by this; 0: 60000 */
} tl_worker_options;

#define TL_WORKER_OPTIONS_VERSION 1u
#define TL_WORKER_OPTIONS_INIT TL_INITIAL(tl_worker_options, TL_WORKER_OPTIONS_VERSION)

/* The threads that bring due work to an end. */
typedef struct tl_worker tl_worker;

/*
 * Starts the threads that claim due work of the registered operations and bring it to an end.  It
 * claims no more than it has free threads for, now or in the next 50 ms.  A thread has an attempt
 * until its ending is chosen: endings, but those that callbacks with a connection write, are
 * written by the threads of submitted runs, about TL_CLAIM_MAX of them at a time.  A trade during
 * which a worker died is run with nothing else in flight; after `poison` more deaths alone with
 * that trade, it is parked.  While operators keep a channel paused, nothing of it is claimed:
 * what is due waits, no attempt is used up, and it goes on within a beat and idle_max_ms of the
 * resume.
 *
 *     TL_OK                  It runs.  tl_worker_free() stops and frees it.
 *     TL_UNKNOWN_OPERATION   No workflow is registered.
 *     TL_NO_MEMORY           Its threads could not be started.
 */
TL_EXPORT tl_status tl_worker_start(tl_worker **out, tl_workflows *workflows,
                                    const tl_worker_options *options);

/* The worker claims nothing from now on, and finishes what it holds.  Returns at once. */
TL_EXPORT void tl_worker_stop(tl_worker *worker);

/*
 * Waits until the worker has stopped.
 *
 *     TL_OK          It was told to stop, and everything it held is finished.
 *     TL_TIMEOUT     wait_ms is over, and it goes on.
 *
 * A session that is lost does not stop it: what it held is lost, and it claims under the client's
 * next session.
 */
TL_EXPORT tl_status tl_worker_wait(tl_worker *worker, int64_t wait_ms);

/*
 * Whether the worker works, for a watchdog and for whoever asks after its health.  No round trip.
 *
 *     TL_OK            The client's session is certain, and a round of claiming ended lately, also
 *                      one that found nothing due.
 *     TL_UNREACHABLE   Heartbeats are not confirmed, or claims fail.
 *     TL_TIMEOUT       No round ended for twice the longest hold and ten seconds: the thread that
 *                      claims hangs, or so many others do that nothing can be claimed.
 *     TL_WRONG_STATE   It was told to stop, or has stopped.
 *
 * The sentence says since when.
 */
TL_EXPORT tl_status tl_worker_check(tl_worker *worker);

/* Stops the worker, waits until it has finished what it holds, and frees it. */
TL_EXPORT void tl_worker_free(tl_worker *worker);

/* The counters of a worker, since its start. */
typedef struct tl_worker_counts {
    unsigned version; /* TL_WORKER_COUNTS_VERSION, set by the caller */
    uint64_t claimed, succeeded, failed, waiting, parked, lost, unknown;
    uint64_t queries, cancels, sends;
    unsigned in_flight; /* claimed, and not yet ended or put back */
} tl_worker_counts;

#define TL_WORKER_COUNTS_VERSION 1u
#define TL_WORKER_COUNTS_INIT TL_INITIAL(tl_worker_counts, TL_WORKER_COUNTS_VERSION)

/* Copies the counters.  TL_OK, or TL_INVALID when counts->version is not set. */
TL_EXPORT tl_status tl_worker_count(tl_worker *worker, tl_worker_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
