/* Many steps of one kind in one statement, which joins the table with a list of their values.  The
 * steps are sorted by key, each key once.  DB_DONE: each step's `changed` tells whether it was
 * carried out.  DB_ERROR: the server undid all of them.  DB_UNANSWERED: the answer was lost, or
 * some steps were carried out and nobody can tell which. */
#ifndef TL_STORE_MANY_H
#define TL_STORE_MANY_H

#include "db/db.h"
#include "store/step.h"

/* Claims by key or of a worker, no overrides.  nowait: on a connection whose statements wait for
 * rows, this one does not; the steps may then be in any order. */
db_answer store_claims(db *connection, step *const *steps, size_t count, int nowait);
/* Reclaims that are not exclusive. */
db_answer store_reclaims(db *connection, step *const *steps, size_t count);
/* Endings of compensating attempts, except those that two operators decided.  Needs: a connection
 * of ours. */
db_answer store_endings(db *connection, step *const *steps, size_t count);
/* Openings (STEP_OPEN), in a transaction of their own. */
db_answer store_openings(db *connection, step *const *steps, size_t count);

/* Reads the rows of claims and reclaims into step.row, for view_read(), and sets fence and epoch.
 * If a row does not carry the step's token any more, step.row stays empty and fence is 0. */
db_answer store_granted_rows(db *connection, step *const *steps, size_t count);
/* The same after the commit, for the steps that were changed and want their row.  A step whose row
 * was taken over since counts as not changed.  DB_UNANSWERED: a row could not be read, so what
 * became of each is not known. */
db_answer store_read_granted(db *connection, step *const *steps, size_t count);

#endif
