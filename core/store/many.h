/* Many steps of one kind in one statement, which joins the table with a list of their values. They
 * are sorted by key, each key once; afterwards each step's changed tells.  DB_ERROR: the server
 * undid all of them.  DB_UNANSWERED also when it was done, and nobody could tell what of it. */
#ifndef TL_STORE_MANY_H
#define TL_STORE_MANY_H

#include "db/db.h"
#include "store/step.h"

/* By key or of a worker, not overrides.  nowait: without waiting for rows, on a connection whose
 * statements wait; then in any order. */
db_answer store_claims(db *connection, step *const *steps, size_t count, int nowait);
/* Not exclusive ones. */
db_answer store_reclaims(db *connection, step *const *steps, size_t count);
/* Of compensating attempts, and not as two operators decided; on a connection of ours. */
db_answer store_endings(db *connection, step *const *steps, size_t count);
/* STEP_OPEN, in a transaction of its own. */
db_answer store_openings(db *connection, step *const *steps, size_t count);

/* The rows of claims and reclaims as they are, for view_read(), where they still carry the step's
 * token: into step.row, and fence and epoch with it.  Else row stays empty and fence is 0. */
db_answer store_granted_rows(db *connection, step *const *steps, size_t count);
/* The same after they were committed, of those that were changed and want their row; who has lost
 * his row since counts as not changed.  DB_UNANSWERED: a row could not be read, so that what became
 * of each is not known. */
db_answer store_read_granted(db *connection, step *const *steps, size_t count);

#endif
