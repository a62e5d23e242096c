/*
 * The statements, bound to their parameters.  Rooms above decide what an answer means.  Every
 * function is one round trip, except a claim or reclaim whose row is read after it.
 */
#ifndef TL_STORE_STORE_H
#define TL_STORE_STORE_H

#include "db/db.h"
#include "store/step.h"

typedef enum store_way {
    STORE_PLAIN,  /* an opening is a block with a commit in it, and a step with a row is committed
                     before that is read: not for a connection that is in a transaction */
    STORE_NOWAIT, /* on a connection whose statements wait for row locks, this one does not;
                     not for openings */
    /* The first statement of the transaction that business rows go into (db_callback_tx_begin):
     * asks, reclaims and endings.  The second does not wait for a row lock. */
    STORE_CALLBACK_TX,
    STORE_CALLBACK_TX_NOWAIT
} store_way;

/* Runs the step. */
db_answer store_step(db *connection, step *s, store_way way);

/* A trade's row and what belongs to it, for view_read(). */
db_answer store_view(db *connection, const char *cust_no, const char *serial_no,
                     const char *op_code, db_result *result);

/* The same of many rows, in no order. */
db_answer store_list_views(db *connection, const tl_key *keys, size_t count, db_result *result);

/* (mine, status, fence, epoch, session_lives, my_session); no row when the key is absent. */
db_answer store_token_now(db *connection, const step *s, db_result *result);
/* (0 or 1) */
db_answer store_token_seen(db *connection, const step *s, db_result *result);
/* Whether a commit there has waited for a replica for so long. */
db_answer store_replica_awaited(db *connection, int64_t waited_ms, int *is_awaited);

/* The same of those that are no suspects, and since when each is due, in microseconds since 1970;
 * from_us: only what is due since then, or later. */
db_answer store_next_due(db *connection, const char *op_code, db_result *result);
/* (how many, at most `limit`, and how late the oldest is in microseconds).  unpaused_op: those of
 * this operation whose channel is paused are left out; NULL: none is. */
db_answer store_overdue(db *connection, const char *retry_op, const char *unpaused_op,
                        int64_t late_us, unsigned limit, db_result *result);

typedef struct store_operation {
    char op_code[TL_OP_MAX + 1];  /* "": before the first, and behind the last */
    int64_t low_water_us, now_us; /* now_us: the server's clock */
} store_operation;
/* Makes *operation the next one in the order of the names. */
db_answer store_operation_next(db *connection, store_operation *operation);

/* Moments of the server's clock, in microseconds: from the first until before the second. */
typedef struct store_stretch {
    int64_t from_us, to_us;
} store_stretch;
/* After every moment: the end of the year 9998. */
#define STRETCH_END_US (253370764800 * (int64_t)1000000)
/* Shortens the stretch until one statement can look through it, since finished trades stand in
 * it as well.  *empty: no row stands in the whole stretch. */
db_answer store_low_water_stretch(db *connection, const char *op_code, store_stretch *stretch,
                                  int *empty);

/* What a process knows of the server's clock; boot_id NULL: nothing. */
typedef struct store_session_clock {
    const char *boot_id;
    int64_t at_us, least_us, most_us;
    uint32_t jumps;
} store_session_clock;

/* Sessions; result->affected tells whether the row was written. */
typedef struct store_session {
    const char *session_id, *program, *host, *operations, *connection_name;
    uint32_t pid;
    int64_t timeout_ms;
    store_session_clock clock;
} store_session;
db_answer store_session_insert(db *connection, const store_session *session);
/* waits: the session waits on a server that may yet be promoted. */
db_answer store_session_beat(db *connection, const char *session_id, int waits,
                             const store_session_clock *clock, db_result *result);

/* Evidence, in the order in which its transaction calls them. */
/* (status, epoch, channel_key, fence, and said_columns) */
db_answer store_evidence_lock(db *connection, const tl_key *key, db_result *result);
/* What a holder knows whose row is gone.  The row is made anew: P, without a holder, its lane
 * due. */
typedef struct store_gone {
    const tl_evidence *evidence;
    const char *thread_no, *log_no, *channel;
    const unsigned char *fingerprint;
    const void *payload;
    size_t payload_size;
    tl_said said;
    int64_t hold_ms; /* its sender may still send for this long */
    uint32_t sends;
    int success, seen, exclusive;
    uint8_t token[16];
} store_gone;
/* The second half of an opening, for a row that was made anew. */
db_answer store_open_lane(db *connection, const step *s);
db_answer store_file_gone(db *connection, const store_gone *gone);
db_answer store_evidence_insert(db *connection, const tl_evidence *evidence, const char *thread_no,
                                uint64_t *evidence_id, int *contradicts);

db_answer store_evidence_list(db *connection, const tl_key *key, db_result *result);

#endif
