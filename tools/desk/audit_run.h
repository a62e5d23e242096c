/* Audits run one at a time, on a thread of their own, since they read every row.  The last one's
 * report stays until the next. */
#ifndef DESK_AUDIT_RUN_H
#define DESK_AUDIT_RUN_H

#include "sessions.h"

#include <tradelock/admin.h>

#define VIOLATIONS_MOST 200u

/* What is kept of a violation. */
struct violation {
    char rule[64], serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1];
    char op_code[TL_OP_MAX + 1], account[385], sentence[512], finding[17], proposed_by[385];
};

struct audit_report {
    int is_running, has_run;
    tl_status status; /* of the last one; not TL_OK: it proves nothing, and problem says why */
    char problem[512];
    int64_t took_ms;
    tl_audit_counts counts;
    struct violation violations[VIOLATIONS_MOST];
    unsigned violation_count;
    int cut;
};

struct audit_keeper;

struct audit_keeper *audit_keeper_new(struct sessions *sessions); /* NULL: out of memory */
/* Waits for the audit that runs. */
void audit_keeper_free(struct audit_keeper *keeper);
/* 0: one runs already, or no thread can be made. */
int audit_start(struct audit_keeper *keeper, struct session *session);
void audit_look(struct audit_keeper *keeper, struct audit_report *report);

#endif
