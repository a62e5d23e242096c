/*
 * row_lock.h - a named resource locked in the caller's own transaction.
 *
 * The plainest lock there is: a row of `row_lock`, locked by SELECT ... FOR UPDATE on the caller's
 * connection.  It begins inside the caller's transaction and ends with it, by commit, by rollback,
 * or by the end of the connection; there is no lease, no fence and nothing to unlock, and what the
 * transaction wrote and the lock cannot part.  It fits work of milliseconds inside this database.
 * Work that lasts, or that leaves this database, wants a tl_mutex or a tl_rw.
 *
 * The row is made first, by the library on a connection of its own, and committed: a locking read
 * of a row that is not there would lock a gap, and two first users would deadlock in it.  The row
 * stays.
 *
 * Several row locks in one transaction: take them in one order everywhere, or the server ends one
 * of two transactions that cross (TL_ROLL_BACK).
 *
 * A host that vanishes inside its transaction keeps the row until the server notices. Therefore a
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

#define TL_ROW_LOCK_BLOCK (-1) /* as long as the connection's innodb_lock_wait_timeout */
#define TL_ROW_LOCK_NOWAIT 0
#define TL_ROW_LOCK_WAIT_MAX_S 86400

/*
 * Locks the resource's row in the transaction that is open on the caller's connection. wait_s:
 * TL_ROW_LOCK_BLOCK, TL_ROW_LOCK_NOWAIT, or how many whole seconds, as the server counts them.
 * flags: 0 or TL_GUARD_ANY_IDLE.  The connection is never committed, rolled back or SET.
 *
 * TL_GRANTED: locked until the transaction ends; also when it was locked already. TL_ROLL_BACK:
 * somebody else has it and the wait is over (the server's error 1205, with NOWAIT too, which may
 * have undone one statement only), or a deadlock or a lost answer: roll back, then begin anew or
 * give up.  The message says which. Anything else: nothing was done on the caller's connection.
 * TL_NO_TRANSACTION, TL_INVALID: the call is wrong.
 */
TL_EXPORT tl_status tl_row_lock(tl_client *client, const char *resource,
                                struct st_mysql *connection, int64_t wait_s, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
