/* Pages of history and rows for an audit; each is one round trip. */
#ifndef TL_STORE_STORE_AUDIT_H
#define TL_STORE_STORE_AUDIT_H

#include "db/db.h"

#include <tradelock/engine.h>

/* The last row of the page before; all empty for the first page. */
typedef struct store_audit_place {
    char cust_no[TL_CUST_MAX + 1], serial_no[TL_SERIAL_MAX + 1], op_code[TL_OP_MAX + 1];
    uint64_t rev;
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
    AUDIT_LOG_OPERATORS, /* of a decision: how many accounts made it; else 0 */
    AUDIT_LOG_MADE_REV,  /* the first of the row that is there now; NULL: there is none */
    AUDIT_LOG_COLUMNS
};
/* At least `limit` steps unless it is the last page: a row itself comes as the step behind
 * its history.  Rows of which nothing is kept apart are not in it. */
db_answer store_audit_log(db *connection, const store_audit_place *place, unsigned limit,
                          db_result *result);

/* The row as a step, and behind that: */
enum store_audit_row_column {
    AUDIT_ROW_CHANNEL_KEY = AUDIT_LOG_COLUMNS,
    AUDIT_ROW_CONFLICT,
    AUDIT_ROW_SUCCESS_FILED,
    AUDIT_ROW_LANE,
    AUDIT_ROW_HAS_CHANNEL,
    AUDIT_ROW_HAS_PAST, /* steps of it are kept apart */
    AUDIT_ROW_UNSEEN,
    AUDIT_ROW_IS_FIRST /* not the row: the first step that it tells besides, before it */
};
/* At least `limit` entries unless it is the last page. */
db_answer store_audit_rows(db *connection, const store_audit_place *place, unsigned limit,
                           db_result *result);

#endif
