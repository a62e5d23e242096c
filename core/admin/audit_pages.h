/* Pages of history and rows for an audit; each is one round trip. */
#ifndef TL_ADMIN_AUDIT_PAGES_H
#define TL_ADMIN_AUDIT_PAGES_H

#include "db/db.h"

#include <tradelock/tradelock.h>

/* The last row of the page before; all empty for the first page. */
#define STORE_ACCOUNT 385
typedef struct store_audit_place {
    char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1], op_code[TL_OP_MAX + 1];
    uint64_t rev;
    /* What was done there: the row's revision if rev is 0, who and when. */
    uint64_t row_rev;
    char account[STORE_ACCOUNT];
    int64_t logged_us;
} store_audit_place;

/* A step of a row; both pages begin with these columns. */
enum store_audit_log_column {
    AUDIT_LOG_CUST,
    AUDIT_LOG_SERIAL,
    AUDIT_LOG_OP,
    AUDIT_LOG_REV,
    AUDIT_LOG_STEP,
    AUDIT_LOG_STATUS,
    AUDIT_LOG_TOKEN,
    AUDIT_LOG_FENCE,
    AUDIT_LOG_EPOCH,
    AUDIT_LOG_PROOF,
    AUDIT_LOG_SESSION,
    AUDIT_LOG_LOGGED_US,
    AUDIT_LOG_MAX_HOLD_US,
    AUDIT_LOG_ENDED_US,
    AUDIT_LOG_OPERATORS, /* of a decision: how many accounts made it; of other steps 0 */
    AUDIT_LOG_ACCOUNT,
    AUDIT_LOG_MADE_REV, /* the first revision of the row that is there now; NULL: none is */
    AUDIT_LOG_COLUMNS
};
/* At least `limit` steps, unless it is the last page.  Behind the kept steps of a row comes the row
 * itself, as a step.  Rows without steps in trade_lock_past are not in it. */
db_answer store_audit_log(db *connection, const store_audit_place *place, unsigned limit,
                          db_result *result);

/* A row as a step, in the columns above; behind those: */
enum store_audit_row_column {
    AUDIT_ROW_CHANNEL_KEY = AUDIT_LOG_COLUMNS,
    AUDIT_ROW_CONFLICT,
    AUDIT_ROW_SUCCESS_FILED,
    AUDIT_ROW_LANE,
    AUDIT_ROW_CHANNEL,
    AUDIT_ROW_HAS_PAST,   /* trade_lock_past has steps of it */
    AUDIT_ROW_UNSEEN,     /* in process before the low-water mark */
    AUDIT_ROW_UNATTENDED, /* in process without a holder, and its lane is neither due nor parked */
    AUDIT_ROW_IS_FIRST,   /* not the row but its first step, kept by the row; before it */
    AUDIT_ROW_REPEATABLE,
    AUDIT_ROW_AMOUNT,
    AUDIT_ROW_CURRENCY
};
/* At least `limit` entries unless it is the last page. */
db_answer store_audit_rows(db *connection, const store_audit_place *place, unsigned limit,
                           db_result *result);

#define STORE_FINDING 32
/* At most one row. */
db_answer store_audit_closing(db *connection, const uint8_t finding[STORE_FINDING],
                              db_result *result);

/* One half of closing a finding. */
typedef struct store_closing {
    uint8_t finding[STORE_FINDING];
    int which; /* a store_half */
    const char *rule, *actor, *reason, *thread_no;
    const tl_key *key;
    uint64_t rev;
} store_closing;

#endif
