/*
 * The guard: a part of the caller's transaction that proves possession.  It locks the resource's
 * row until that transaction ends; everybody who takes the lock over must change that row first.
 */
#include "lease_mutex/mutex.h"

#include "base/error.h"
#include "client/caller.h"

static tl_status guard_rows(const hold *h, db *borrowed)
{
    db_result result = DB_RESULT_INIT;
    tl_status status = TL_OK;

    for (size_t i = 0; i < h->count && status == TL_OK; i++) {
        db_answer answer =
            store_resource_guard(borrowed, h->resources[i], h->token, h->fences[i], &result);

        if (answer != DB_DONE)
            status = caller_must_roll_back(borrowed, answer, "guarding the transaction");
        else if (result.rows != 1 || !db_get_int(&result, 0, 0))
            status = error_set(TL_ROLL_BACK, "roll back: the lock of %s is lost", h->resources[i]);
    }
    db_result_free(&result);
    return status;
}

static tl_status check_holding(const tl_mutex *m, unsigned flags)
{
    tl_status status = mutex_check(m);

    if (status != TL_OK)
        return status;
    if (flags & ~TL_GUARD_ANY_IDLE)
        return error_set(TL_INVALID, "flags has bits that this version does not know");
    if (m->state == MUTEX_RELEASED)
        return error_set(TL_RELEASED, "this handle has released its lock already");
    if (m->state == MUTEX_LOST)
        return error_set(TL_ROLL_BACK, "roll back: the lock is lost");
    if (m->state != MUTEX_HELD)
        return error_set(TL_NOT_HELD, "the lock is not held by this handle");
    if (m->hold->by_thread && m->hold->owner != mutex_thread())
        return error_set(TL_NOT_HELD, "the lock is held by another thread");
    return TL_OK;
}

tl_status tl_mutex_guard(tl_mutex *m, struct st_mysql *connection, unsigned flags)
{
    db *borrowed = NULL;
    tl_status status;

    error_clear();
    status = check_holding(m, flags);
    if (status == TL_OK)
        status = caller_open(&borrowed, connection, (flags & TL_GUARD_ANY_IDLE) != 0);
    /* The session's row is not read on the caller's connection: its life is known here. */
    if (status == TL_OK && hold_remaining_ms(m->hold) == 0)
        status = error_set(TL_ROLL_BACK,
                           "roll back: the lock of %s is not certain any "
                           "more",
                           m->hold->resources[0]);
    if (status == TL_OK)
        status = guard_rows(m->hold, borrowed);
    db_close(borrowed);
    return status;
}
