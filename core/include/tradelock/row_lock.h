/*
 * row_lock.h - a named resource locked in the caller's own transaction.
 *
 * A row of `row_lock` is locked by SELECT ... FOR UPDATE on the caller's connection.  The lock
 * begins inside the caller's transaction and ends with it: by commit, by rollback, or by the end of
 * the connection.  There is no lease, no fence and nothing to unlock, and the lock cannot part from
 * what the transaction wrote.  It fits work of milliseconds inside this database.  Work that lasts,
 * or that leaves this database, wants a tl_mutex or a tl_rw.
 *
 * The library makes the row first, on a connection of its own, and commits it.  A locking read of a
 * row that is not there would lock a gap, and two first users would deadlock in it.  The row stays.
 *
 * Take several row locks of one transaction in one order everywhere.  Else two transactions may
 * cross, and the server ends one of them (TL_ROLL_BACK).
 *
 * A host that vanishes inside its transaction keeps the row until the server notices.  Therefore a
 * connection without an idle_transaction_timeout is refused.
 *
 * The names of row locks are their own, as those of read-write locks are.
 */
#ifndef TRADELOCK_ROW_LOCK_H
#define TRADELOCK_ROW_LOCK_H

#include <tradelock/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How long tl_row_lock() waits. */
#define TL_ROW_LOCK_BLOCK (-1) /* as long as the connection's innodb_lock_wait_timeout */
#define TL_ROW_LOCK_NOWAIT 0
#define TL_ROW_LOCK_WAIT_MAX_S 86400

/*
 * Locks the resource's row in the transaction that is open on the caller's connection, which is
 * never committed, rolled back or SET.  wait_s: TL_ROW_LOCK_BLOCK, TL_ROW_LOCK_NOWAIT, or how many
 * whole seconds, as the server counts them; a silent server is awaited for pool_wait_ms more.  flags:
 * 0 or TL_GUARD_ANY_IDLE.
 *
 *     TL_GRANTED          It is locked until the transaction ends; also when it was locked already.
 *     TL_ROLL_BACK        Somebody else has it and the wait is over (error 1205, with NOWAIT too,
 *                         which may have undone one statement only), or there was a deadlock or a
 *                         lost answer; the message says which.  Roll back, then begin anew or give
 *                         up.
 *     TL_NO_TRANSACTION   No transaction is open.
 *
 * With any other answer nothing was done on the caller's connection.
 */
TL_EXPORT tl_status tl_row_lock(tl_client *client, const char *resource,
                                struct st_mysql *connection, int64_t wait_s, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
