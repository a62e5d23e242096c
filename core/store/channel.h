/* Which channels are known, and which of them operators have paused; each is one round trip. */
#ifndef TL_STORE_CHANNEL_H
#define TL_STORE_CHANNEL_H

#include "db/db.h"

/* Declares what a session promises of it (sql/object/contract.sql), in two round trips; the result
 * is one text, the verdict. */
typedef struct store_contract {
    const char *channel, *op_code, *session_id;
    const char *was, *says; /* was: NULL: nothing was compared yet */
    int more;
} store_contract;
db_answer store_channel_declare(db *connection, const store_contract *what, db_result *result);
/* Says the site of a session; the result is that of the installation. */
db_answer store_site_is(db *connection, const char *site, db_result *result);

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

/* What limits there are; a number that is NULL is none. */
enum store_channel_limits_column { LIMITS_CHANNEL, LIMITS_OP, LIMITS_SENDS, LIMITS_PER_SECOND };

/* Takes a share of one limit (sql/object/channel.sql), in two round trips; the result is one
 * text. */
typedef struct store_share {
    const char *channel, *op_code, *session_id;
    uint64_t used, wanted, claims;
    int64_t hold_ms, latest_us;
} store_share;
db_answer store_channel_share(db *connection, const store_share *share, db_result *result);

/* The breakers of channels and how they stand; op_code '' is one of all operations together. */
enum store_channel_breakers_column {
    BREAKERS_CHANNEL,
    BREAKERS_OP,
    BREAKERS_UNKNOWNS,
    BREAKERS_SHARE, /* NULL: none */
    BREAKERS_PROBE_S,
    BREAKERS_ERA,
    BREAKERS_IS_OPEN,
    BREAKERS_IN_A_ROW,
    BREAKERS_AGAIN_MS
};

/* Tells what was counted, or asks for the probe (sql/object/channel.sql), in two round trips; the
 * result is one text. */
typedef struct store_breaker {
    const char *channel, *op_code;
    int tells;      /* else it asks for the probe */
    uint64_t probe; /* its number; 0: none */
    int64_t hold_ms, latest_us;
    uint64_t era;
    int answered;
    uint64_t tail, unknowns, sends;
} store_breaker;
db_answer store_channel_breaker(db *connection, const store_breaker *what, db_result *result);

#endif
