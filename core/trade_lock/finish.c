/* Ending a hold: alone, with business rows, or by putting it back. */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread_context.h"

#include <tradelock/lane.h>

tl_status finish_verdict(tl_lock *lock, const tl_ending *ending, const transition *t)
{
    switch (t->verdict) {
    case VERDICT_APPLIED:
        if (t->rows == ROWS_NOT_SENT)
            return lock_went_alone(lock, LOCK_LOST, t);
        return ending_applied(lock);
    case VERDICT_REFUSED:
    case VERDICT_LOST:
        return ending_refused(lock, ending, t);
    case VERDICT_UNKNOWN:
        return lock_unknown(lock, LOCK_END_UNKNOWN, t);
    case VERDICT_DECIDING:
        lock_not_done(lock, LOCK_HELD, t);
        return error_set(TL_TRY_AGAIN, "another transaction holds the row; end again");
    case VERDICT_CUSTOMER_BUSY:
    case VERDICT_FAILED:
        break;
    }
    lock_not_done(lock, LOCK_HELD, t);
    return t->status == TL_LOST ? ending_too_late(lock, ending) : lock_failed(t);
}

static tl_status finish(tl_lock *lock, const tl_ending *ending, const tl_findings *findings)
{
    transition t, *one = &t;
    tl_status status = lock_check_ending(lock);

    if (status == TL_OK)
        status = ending_check(lock, ending);
    if (status == TL_OK && thread_context_in_callback())
        status = error_set(TL_IN_CALLBACK, "a hold was ended inside a database callback");
    if (status != TL_OK)
        return status;
    ending_to_step(lock, ending, findings, &t);
    transition_run(lock->base.client->transitions, &one, 1, lock->base.client->config.commit_ms);
    return finish_verdict(lock, ending, &t);
}

tl_status tl_lock_finish(tl_lock *lock, const tl_ending *ending)
{
    error_clear();
    return finish(lock, ending, NULL);
}

tl_status tl_lock_put_back(tl_lock *lock, const tl_ending *ending, const tl_findings *findings)
{
    tl_status status;

    error_clear();
    status = lock_check_held(lock);
    if (status == TL_OK)
        status = ending_check(lock, ending);
    if (status == TL_OK && ending_is_final(lock, ending))
        status = error_set(TL_INVALID, "a final ending does not put the trade back");
    return status == TL_OK ? finish(lock, ending, findings) : status;
}
