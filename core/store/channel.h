/* Which channels are known, and which of them operators have paused; each is one round trip. */
#ifndef TL_STORE_CHANNEL_H
#define TL_STORE_CHANNEL_H

#include "db/db.h"

/* Makes the channel and its operation known; nothing happens where they are. */
db_answer store_channel_known(db *connection, const char *channel, const char *op_code);

/* The pauses: op_code "" stands for the channel as a whole, and all its operations that are known
 * are told besides. */
enum store_channel_paused_column {
    PAUSED_CHANNEL,
    PAUSED_OP,
    PAUSED_REASON,
    PAUSED_ACCOUNT,
    PAUSED_SINCE_US,
    PAUSED_FOR_US
};
db_answer store_channel_paused(db *connection, db_result *result);

#endif
