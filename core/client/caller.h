/*
 * The caller's own connection, on which a step of ours joins the caller's transaction.  It is
 * checked, but never committed, rolled back or SET.
 */
#ifndef TL_CLIENT_CALLER_H
#define TL_CLIENT_CALLER_H

#include "base/life.h"
#include "db/db.h"

/*
 * Wraps it, and asks the server three things: whether it is in a transaction (libmariadb still says
 * so after an error has rolled one back); whether the server ends a silent transaction, which
 * TL_GUARD_ANY_IDLE leaves out; and whether it is that of this life, or NULL: an old primary may
 * have the rows of a session that went on elsewhere.  TL_OK and a wrapper for db_close();
 * TL_INVALID, TL_NO_TRANSACTION, TL_ROLL_BACK.
 */
tl_status caller_open(db **out, struct st_mysql *connection, unsigned flags, const life *home);

/* The same for a step that must never be committed without the caller's earlier rows: the caller
 * must have begun the transaction.  With autocommit off the server begins another one by itself
 * after a deadlock, which looks the same: TL_NO_TRANSACTION. */
tl_status caller_open_begun(db **out, struct st_mysql *connection, unsigned flags,
                            const life *home);

/* TL_ROLL_BACK with a sentence about what went wrong on the caller's connection. */
tl_status caller_must_roll_back(const db *connection, db_answer answer, const char *doing);

#endif
