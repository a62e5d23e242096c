/*
 * Writes "business done", or proves possession, within the caller's transaction.  The holder's row
 * is locked until that transaction ends; whoever frees the dead must change that row first.
 */
#include "rw_lock/rw.h"

#include "base/error.h"
#include "client/caller.h"

static tl_status lost(const tl_rw *rw)
{
    return error_set(TL_ROLL_BACK, "roll back: the lock of %s is lost", rw->resource);
}

static tl_status write_done(lock_handle *h, db *borrowed)
{
    tl_rw *rw = (tl_rw *)h;
    uint64_t changed = 0;
    rw_step s;
    db_answer answer;

    handle_begin(h, 0);
    rw_fill_step(rw, &s);
    answer = store_rw_done(borrowed, &s, &changed);
    if (answer != DB_DONE)
        return caller_must_roll_back(borrowed, answer, "writing that business is done");
    return changed == 1 ? TL_OK : lost(rw);
}

static tl_status look(lock_handle *h, db *borrowed)
{
    tl_rw *rw = (tl_rw *)h;
    rw_step s;
    int held;
    db_answer answer;

    handle_begin(h, 0);
    rw_fill_step(rw, &s);
    answer = store_rw_guard(borrowed, &s, &held);
    if (answer != DB_DONE)
        return caller_must_roll_back(borrowed, answer, "guarding the transaction");
    return held ? TL_OK : lost(rw);
}

static tl_status check(const tl_rw *rw, unsigned flags)
{
    tl_status status = rw_check(rw);

    if (status == TL_OK && (flags & ~TL_GUARD_ANY_IDLE))
        status = error_set(TL_INVALID, "flags has bits that this version does not know");
    if (status == TL_OK && rw->base.state == LOCK_LOST)
        status = lost(rw);
    if (status == TL_OK)
        status = handle_check_held(&rw->base);
    if (status == TL_OK && rw->base.state != LOCK_HELD)
        status = error_set(TL_NOT_HELD, "the lock is being unlocked");
    if (status == TL_OK && rw->downgrading.is_open)
        status = error_set(TL_WRONG_STATE,
                           "whether %s is still held for writing is not known: the "
                           "answer to the downgrade was lost; downgrade again first",
                           rw->resource);
    return status;
}

tl_status tl_rw_done(tl_rw *rw, struct st_mysql *connection, unsigned flags)
{
    tl_status status;

    error_clear();
    status = check(rw, flags);
    return status == TL_OK ? resource_prove(&rw->base, connection, flags, write_done) : status;
}

tl_status tl_rw_guard(tl_rw *rw, struct st_mysql *connection, unsigned flags)
{
    tl_status status;

    error_clear();
    status = check(rw, flags);
    return status == TL_OK ? resource_prove(&rw->base, connection, flags, look) : status;
}
