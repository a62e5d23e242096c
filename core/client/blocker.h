/* Who holds rows or tables for long: whoever may read may lock what is read, and then asks and
 * heartbeats wait. */
#ifndef TL_CLIENT_BLOCKER_H
#define TL_CLIENT_BLOCKER_H

#include "db/db.h"

#include <tradelock/tradelock.h>

#include <stdint.h>

typedef struct blocker {
    uint64_t connection; /* 0: there is none, or who locked tables is not seen */
    int64_t age_us;
    int waits_for_replica, tables;
    char account[200];
    char text[1024]; /* a sentence without its end, with a KILL for each that it may be */
} blocker;

/* DB_ERROR: the account that migrated may not see it, since it lacks the right PROCESS. */
db_answer blocker_read(db *connection, blocker *found);

/* Whether it is one that should be ended.  A commit that waits for a replica is not. */
int blocker_is_long(const blocker *found);

/* The status of a statement that was just answered.  If it waited in vain for a row or a table, its
 * sentence says who is in the way. */
tl_status blocker_add(db *connection, tl_status status);

#endif
