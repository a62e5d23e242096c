/* Slots of a shard whose rows are copies now: handed over, or on their way here. */
#ifndef TL_ADMIN_SHARD_COPIES_H
#define TL_ADMIN_SHARD_COPIES_H

#include "db/db.h"

#include <tradelock/admin/fleet.h>

typedef struct shard_copies {
    unsigned char is[TL_FLEET_SLOTS];
    int has; /* any */
} shard_copies;

/* Of no fleet there are none. */
tl_status shard_copies_read(db *connection, shard_copies *copies);
/* Whether the customer's rows are. */
tl_status shard_is_copy(db *connection, const shard_copies *copies, const char *cust_no, int *is);

#endif
