/*
 * callback.h - business rows written in the transaction that asks for a lock, or ends it.
 */
#ifndef TRADELOCK_CALLBACK_H
#define TRADELOCK_CALLBACK_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Database work of the caller's inside the library's transaction, on the library's connection,
 * where autocommit is off.  It may run again (deadlock, lock wait), and may wait for row locks no
 * longer than the settings allow.  TL_OK goes on; TL_REFUSED (ask only) leaves no row behind;
 * TL_TRY_AGAIN says that the last statement met 1213, 1205 or 1020, and needs nothing done before
 * it; anything else fails the transaction.  Asking for a lock inside is refused with
 * TL_IN_CALLBACK.
 *
 * It must not commit, roll back, switch autocommit on or RELEASE_ALL_LOCKS() (a callback that ended
 * the transaction, or took the connection's name away, is noticed and refused); must not name the
 * savepoint `tl_callback` (what was rolled back to it goes without the lock's row, and nobody
 * notices); and must give back what would outlive the transaction with the connection: GET_LOCK(),
 * HANDLER ... OPEN, statements that it prepared.
 *
 * What it changes of the session (SET, USE, SET ROLE, temporary tables) governs nobody else: the
 * connection is closed after the transaction, which costs the next one a connection to make, and
 * the log a warning.
 *
 * It is to return.  Where it does not - an exception passes through the library, its thread ends, a
 * longjmp goes past - its connection is closed, which undoes what it did, and the handle settles
 * its step with the next call, as after TL_UNKNOWN.  That is at once, but after a longjmp when the
 * thread next calls the library or ends.  The same holds for what a list calls.
 */
typedef tl_status (*tl_tx_fn)(void *context, struct st_mysql *connection);

/* tl_lock_ask() with rows written in the transaction that makes P, and with the same wait. Sync
 * lane.  `prepare` may be NULL.  TL_REFUSED, TL_CALLBACK_FAILED: nothing was written, unless
 * `prepare` itself committed, which it must not, or an ask without business rows had been left
 * unknown before: the trade is opened to the retry lane then when its max_hold is over, or the
 * session.  Where that is found out later, tl_lock_ask() answers it too. */
TL_EXPORT tl_status tl_lock_ask_with(tl_lock *lock, tl_tx_fn prepare, void *context,
                                     int64_t wait_ms);

/*
 * tl_lock_finish() with rows written in the transaction that ends the hold; the compare-and-set is
 * its first statement.  1213, 1205 and 1020 repeat the transaction within commit_ms.
 * TL_CALLBACK_FAILED: rolled back, the lock is still held, the caller decides what to do with what
 * it knows; unless `apply` itself ended the transaction, which it must not: the ending may be
 * committed then, and the next one answers TL_LOST.  Where that is found out later,
 * tl_lock_finish() and tl_lock_settle() answer TL_CALLBACK_FAILED too.  SUCCESS and FAILURE only.
 */
TL_EXPORT tl_status tl_lock_finish_with(tl_lock *lock, const tl_ending *ending, tl_tx_fn apply,
                                        void *context, int64_t commit_ms);

#ifdef __cplusplus
}
#endif
#endif
