/*
 * The guard: proves possession within the caller's transaction.  It locks the resource's row until
 * that transaction ends; whoever takes the lock over must change that row first.
 */
#include "lease_mutex/mutex.h"

#include "base/error.h"
#include "client/caller.h"
#include "store/bind.h"

static tl_status guard_rows(lock_handle *handle, db *borrowed)
{
    const hold *h = ((const tl_mutex *)handle)->hold;
    db_result result = DB_RESULT_INIT;
    tl_status status = TL_OK;

    for (size_t i = 0; i < h->grant.count && status == TL_OK; i++) {
        db_answer answer = SQL_RUN(
            borrowed, &result, resource_guard, .token = db_bytes(h->grant.token, RESOURCE_TOKEN),
            .fence = db_uint(h->fences[i]), .resource = db_text(h->grant.names[i]));

        if (answer != DB_DONE)
            status = caller_must_roll_back(borrowed, answer, "guarding the transaction");
        else if (result.rows != 1 || !db_get_int(&result, 0, 0))
            status =
                error_set(TL_ROLL_BACK, "roll back: the lock of %s is lost", h->grant.names[i]);
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
    if (m->base.state == LOCK_OVER)
        return error_set(TL_RELEASED, "this handle has released its lock already");
    if (m->base.state == LOCK_LOST)
        return error_set(TL_ROLL_BACK, "roll back: the lock is lost");
    if (m->base.state != LOCK_HELD)
        return error_set(TL_NOT_HELD, "the lock is not held by this handle");
    if (m->hold->by_thread && m->hold->owner != mutex_thread())
        return error_set(TL_NOT_HELD, "the lock is held by another thread");
    return TL_OK;
}

tl_status tl_mutex_guard(tl_mutex *m, struct st_mysql *connection, unsigned flags)
{
    tl_status status;

    error_clear();
    status = check_holding(m, flags);
    return status == TL_OK ? resource_prove(&m->base, connection, flags, guard_rows) : status;
}
