/* Many steps in one statement and one commit. */
#ifndef TL_STORE_GROUP_H
#define TL_STORE_GROUP_H

#include "db/db.h"
#include "store/step.h"

/* The most steps of one statement. */
#define STORE_GROUP_MAX 256

/* The most bytes of one statement, counted by store_group_size(). */
#define STORE_GROUP_BYTES (1024 * 1024)
/* About how many bytes the step takes in the statement or in the answer. */
size_t store_group_size(const step *s);

/* Runs them, which share one statement, sorted by key and each key once; asks and endings in a transaction
 * that is open too.  After DB_DONE each step's changed, fence and epoch are set.  DB_ERROR: the
 * server undid all of them.  DB_UNANSWERED: what became of each is not known. */
db_answer store_group(db *connection, step **steps, size_t count);

#endif
