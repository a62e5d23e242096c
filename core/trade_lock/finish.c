/* Ending a hold: alone, with business rows, or by putting it back. */
#include "trade_lock/lock.h"

#include "base/error.h"
#include "base/thread_context.h"

#include <tradelock/lane.h>

static tl_status finish(tl_lock *lock, const tl_ending *ending, const tl_findings *findings)
{
    step_task t;

    TRY(lock_check_ending(lock));
    TRY(ending_check(lock, ending));
    if (thread_context_in_callback())
        return error_set(TL_IN_CALLBACK, "a hold was ended inside a database callback");
    ending_to_step(lock, ending, findings, &t);
    task_run(lock->base.client->engine, step_task_of(&t), lock->base.client->config.commit_ms);
    return finish_verdict(lock, ending, &t);
}

tl_status tl_lock_finish(tl_lock *lock, const tl_ending *ending)
{
    error_clear();
    return finish(lock, ending, NULL);
}

tl_status tl_lock_put_back(tl_lock *lock, const tl_ending *ending, const tl_findings *findings)
{
    error_clear();
    TRY(lock_check_held(lock));
    TRY(ending_check(lock, ending));
    if (ending_is_final(lock, ending))
        return error_set(TL_INVALID, "a final ending does not put the trade back");
    return finish(lock, ending, findings);
}
