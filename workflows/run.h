/* A run that is under way; the answer keeps it, so that it can be settled. */
#ifndef TL_WORKFLOWS_RUN_H
#define TL_WORKFLOWS_RUN_H

#include "ending.h"

typedef enum run_phase {
    RUN_ASKING, /* not granted yet, or not known whether it was */
    RUN_ENDING, /* granted; the outcome is known and has to be written */
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
 * Asks the channel about every earlier key, before a failure that rests on "no such payment" or "it
 * never left" is tried anew: a new key beside an old payment would pay twice.  view: the failed
 * row. TL_OK: none was paid.  TL_IN_CONFLICT: one was paid, or still may be; that was filed.
 * TL_UNKNOWN: the channel did not say.
 */
tl_status reclaim_check(tl_client *client, attempt *a, const tl_view *view);

#endif
