/* A run in progress, kept in the answer so that it can be settled. */
#ifndef TL_WORKFLOWS_RUN_H
#define TL_WORKFLOWS_RUN_H

#include "ending.h"

typedef enum run_phase {
    RUN_ASKING, /* not granted yet, or not known */
    RUN_ENDING, /* granted; the outcome is known and must be recorded */
    RUN_OVER
} run_phase;

struct tl_run {
    run_phase phase;
    tl_workflows *workflows;
    const workflow *workflow;
    tl_lock *lock;
    attempt attempt;
    ending ending;
    int64_t wait_ms;
    int paid; /* granted: this call was the attempt */
};

/*
 * Before a failure that rests on "there is no such payment" or "it never left" is tried anew, the
 * channel is asked for every earlier key: a new key beside an old payment would pay twice.  view:
 * the failed row.  TL_OK: none was paid.  TL_IN_CONFLICT: one was, or may be yet; filed.
 * TL_UNKNOWN: the channel did not say.
 */
tl_status reclaim_check(tl_client *client, attempt *a, const tl_view *view);

#endif
