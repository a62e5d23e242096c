/* Checks the history of rows step by step. */
#ifndef TL_ADMIN_AUDIT_HISTORY_H
#define TL_ADMIN_AUDIT_HISTORY_H

#include "admin/audit_report.h"

#include "store/step.h"

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
