/*
 * callback.h - business rows written in the transaction that asks for a lock, or ends it.
 *
 * The lock's row and the rows of the business are committed together, or not at all.  Workflows
 * call their prepare and apply callbacks this way; a service with bare locks may do the same.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_CALLBACK_H
#define TRADELOCK_CALLBACK_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Database work of the caller's, inside the library's transaction and on its connection, where
 * autocommit is off.  It may run again from the start, after a deadlock or a lock wait.  It waits
 * for row locks no longer than the settings allow.
 *
 * What it returns:
 *     TL_OK          Go on, and commit.
 *     TL_TRY_AGAIN   The last statement met 1213, 1205 or 1020.  The callback need not roll back.
 *     TL_REFUSED     Asks only: leave no row behind.
 *     other          Roll back: TL_CALLBACK_FAILED.
 *
 * What it must not do:
 *   - Commit, roll back, switch autocommit on, or RELEASE_ALL_LOCKS().  The library notices, and
 *     refuses the commit.
 *   - Use a savepoint named `tl_callback`.  A rollback to it would undo rows without the lock's
 *     row, and nobody would notice.
 *   - Ask for a lock: TL_IN_CALLBACK.
 *   - Leave behind what outlives the transaction with the connection: GET_LOCK(), HANDLER ... OPEN,
 *     prepared statements.
 *
 * If it changes its session (SET, USE, SET ROLE, temporary tables), the library closes the
 * connection after the transaction, so that the change reaches nobody else.  That costs the next
 * one a new connection, and the log has a warning.
 *
 * It returns.  If it is left by an exception, a longjmp or the end of its thread, the process ends,
 * with one sentence on standard error.  The same holds for the callbacks of lists.
 */
typedef tl_status (*tl_tx_fn)(void *context, struct st_mysql *connection);

/*
 * tl_lock_ask() with rows written in the transaction that makes P, and with the same wait.  Sync
 * lane only.  prepare may be NULL.  Any answer of tl_lock_ask(), and:
 *
 *     TL_REFUSED           prepare refused.  Nothing was written.
 *     TL_CALLBACK_FAILED   prepare failed.  Nothing was written.
 *
 * In two cases a row P is left all the same: prepare committed, which it must not do; or an earlier
 * ask of this handle, without business rows, had been left unknown.  Then the retry lane gets the
 * trade when its max_hold or the session is over.  If that is found out later, tl_lock_ask()
 * answers TL_CALLBACK_FAILED too.
 */
TL_EXPORT tl_status tl_lock_ask_with(tl_lock *lock, tl_tx_fn prepare, void *context,
                                     int64_t wait_ms);

/*
 * tl_lock_finish() with rows written in the transaction that ends the hold.  Outcomes: SUCCESS and
 * FAILURE.  The compare-and-set is the transaction's first statement.  After 1213, 1205 and 1020
 * the transaction is repeated, for commit_ms at most.  Any answer of tl_lock_finish(), and:
 *
 *     TL_CALLBACK_FAILED   apply failed, and all was rolled back.  The lock is still held, and the
 *                          caller decides what to do with what it knows.
 *
 * If apply itself ended the transaction, which it must not do, the ending may be committed, and the
 * next one answers TL_LOST.  If that is found out later, tl_lock_finish() and tl_lock_settle()
 * answer TL_CALLBACK_FAILED too.
 */
TL_EXPORT tl_status tl_lock_finish_with(tl_lock *lock, const tl_ending *ending, tl_tx_fn apply,
                                        void *context, int64_t commit_ms);

#ifdef __cplusplus
}
#endif
#endif
