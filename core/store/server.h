/* What a client asks the server at which it was opened: its schema, whether it was restored, and
 * what the account may do. */
#ifndef TL_STORE_SERVER_H
#define TL_STORE_SERVER_H

#include "db/db.h"

/* The columns of what a database says of itself: the first two are NULL, if it is of no fleet. */
enum store_fleet_column { FLEET_OF_NAME, FLEET_OF_SHARD, FLEET_OF_INSTALLATION };
db_answer store_fleet_of(db *connection, db_result *result);
/* (slot, state, version, other): each slot that is or was here. */
db_answer store_slots(db *connection, db_result *result);
/* The columns of a look for a restore.  session_id is the session that may bear witness, NULL for
 * none; age_ms is the time since its last confirmed beat. */
enum store_restored_column {
    RESTORED_NOW,
    RESTORED_ON_RECORD,
    RESTORED_ACCEPTED,
    RESTORED_ACCEPTED_US,
    RESTORED_BEAT,
    RESTORED_ACCEPTED_SINCE,
    RESTORED_IDENTITY,
    RESTORED_READ_ONLY,
    RESTORED_PROMOTED,
    RESTORED_PROVED,
    RESTORED_LOG
};
/* What RESTORED_LOG says of the binary log. */
enum { RESTORED_NO_LOG, RESTORED_HAS_LOG, RESTORED_LOG_SEMI_SYNC };

/* Asks whether this account has a right: DB_DONE if it has.  Touches no row. */
typedef enum store_right_of {
    STORE_RIGHT_ASK,
    STORE_RIGHT_READ_RESOLUTION,
    STORE_RIGHT_READ_CHANNEL,
    STORE_RIGHT_WRITE_AMOUNT,
    STORE_RIGHT_WRITE_LOG,
    STORE_RIGHT_WRITE_FIRST,
    STORE_RIGHT_DELETE_LOG,
    STORE_RIGHT_DELETE_LOCK,
    STORE_RIGHT_CHANGE_EVIDENCE,
    STORE_RIGHT_FORGE,
    STORE_RIGHTS
} store_right_of;
db_answer store_right(db *connection, store_right_of right);

#endif
