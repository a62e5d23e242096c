/* Many steps in one statement and one commit. */
#ifndef TL_STORE_STORE_GROUP_H
#define TL_STORE_STORE_GROUP_H

#include "db/db.h"
#include "store/step.h"

/* Whether a step may share a statement: asks that are not exclusive, and endings of one
 * row. */
int store_group_takes(const step *s);

/* About how many bytes its row takes in the statement. */
size_t store_group_size(const step *s);

/* Runs them, sorted by key and each key once.  After DB_DONE each step's changed, fence
 * and epoch are set.  DB_ERROR: the server undid all of them.  DB_UNANSWERED: what
 * became of each is not known. */
db_answer store_group(db *connection, step **steps, size_t count);

#endif
