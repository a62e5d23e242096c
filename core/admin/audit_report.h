/* What an audit reads, page by page; how it checks the history of a row; and how it reports what it
 * found. */
#ifndef TL_ADMIN_AUDIT_REPORT_H
#define TL_ADMIN_AUDIT_REPORT_H

#include "db/db.h"
#include "store/step.h"

#include <tradelock/admin/audit.h>
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

#define STORE_FINDING 32

/* How the checks of rows, history and statements report what they found. */
typedef struct audit {
    db *connection;
    tl_violation_fn each;
    void *context;
    tl_audit_counts *counts;
    int stopped;
    tl_status closings; /* why reading audit_closing failed; TL_OK: it did not */
    db_result back;     /* the jumps back of the server's clock */
    const char *facts;  /* name the next finding, however its sentence writes them; NULL: it does */
    tl_progress_fn progress;
    db_result tables; /* about how large they are; read if there is a progress() */
} audit;

/* Tells how far it is. */
void audit_tell(audit *self, const char *what, const char *table, uint64_t done);

/* Reports one violation of the row named by the place. */
void audit_report(audit *self, const char *rule, const store_audit_place *at, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* Whether the server's clock was set back, so that the earlier step may have the later moment. */
int audit_clock_went_back(const audit *self, int64_t first_us, int64_t then_us);

/* Copies key, account and moment from a row of a page. */
void audit_take_place(store_audit_place *place, const db_result *page, size_t row);

/* Checks the history of rows step by step. */
typedef struct audit_step {
    store_audit_place at;
    char step[17], status, proof, session_id[TL_UUID_TEXT];
    unsigned char token[STEP_TOKEN];
    uint64_t fence, made_rev;
    uint32_t epoch;
    int64_t logged_us, max_hold_us, ended_us;
    int has_row;
    int operators; /* how many different accounts decided this step */
} audit_step;

/* Where a walk through steps stands; all zero but for the audit. */
typedef struct audit_steps {
    audit *audit;
    audit_step last;
    int has_last;       /* last is a step of the row that is being read */
    uint64_t first_rev; /* of its life */
    int successes;      /* since the row was granted as repeatable, or made */
    int decided_failed; /* by two operators, in this epoch */
} audit_steps;

/* The next step, in the order of rows and revisions; and that there is none more. */
void audit_take_step(audit_steps *steps, const audit_step *step);
void audit_end_steps(audit_steps *steps);

/* Checks every row that has steps in trade_lock_past. */
tl_status audit_history(audit *self);
/* Checks a row that has none there: these entries of a page of rows are all of its history. */
void audit_row_steps(audit *self, const db_result *page, size_t first, size_t last);

#endif
