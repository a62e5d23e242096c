/* The columns of what operators set of channels. */
#ifndef TL_STORE_CHANNEL_H
#define TL_STORE_CHANNEL_H

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

#endif
