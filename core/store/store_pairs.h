/* Many steps that write both rows of a trade, in one statement.  They are sorted by key, each
 * key once; afterwards each step's changed tells. */
#ifndef TL_STORE_STORE_PAIRS_H
#define TL_STORE_STORE_PAIRS_H

#include "db/db.h"
#include "store/step.h"

/* Claims by key or of a worker, not overrides.  DB_UNANSWERED also when it was done and
 * nobody could tell what of it. */
db_answer store_claims(db *connection, step *const *steps, size_t count, int nowait);
/* Endings whose proof is not that operators decided; on a connection of ours.  The same. */
db_answer store_endings(db *connection, step *const *steps, size_t count);

/* The rows of these steps as they are, for view_read(), where they still carry the step's
 * token: into step.row, and fence and epoch with it.  Else row stays empty and fence 0. */
db_answer store_claimed_rows(db *connection, step *const *steps, size_t count);

#endif
