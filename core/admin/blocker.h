/* Who holds rows for long: whoever may read may lock what is read, and then asks and heartbeats
 * wait. */
#ifndef TL_ADMIN_BLOCKER_H
#define TL_ADMIN_BLOCKER_H

#include "db/db.h"

#include <stdint.h>

typedef struct blocker {
    uint64_t connection; /* 0: there is none */
    int64_t age_us;
    int waits_for_replica;
    char account[200];
} blocker;

/* DB_ERROR: the account that migrated may not see it, since it lacks the right PROCESS. */
db_answer blocker_read(db *connection, blocker *found);

/* Whether it is one that should be ended.  A commit that waits for a replica is not. */
int blocker_is_long(const blocker *found);

#endif
