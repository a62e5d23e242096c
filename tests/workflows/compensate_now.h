/* One compensating attempt on this thread, as a worker makes it. */
#ifndef TESTS_WORKFLOWS_COMPENSATE_NOW_H
#define TESTS_WORKFLOWS_COMPENSATE_NOW_H

#include "compensate.h"

static inline void compensate_now_over(void *context, tl_status status)
{
    *(tl_status *)context = status;
}

/* The caller frees the lock. */
static inline tl_status compensate_now(tl_client *client, const workflow *of, tl_lock *lock,
                                       compensate_calls *calls)
{
    tl_status status = TL_UNKNOWN;

    compensate(&(compensate_call){.client = client,
                                  .lock = lock,
                                  .of = of,
                                  .calls = calls,
                                  .over = compensate_now_over,
                                  .context = &status});
    return status;
}

#endif
