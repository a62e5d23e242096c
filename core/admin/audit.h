/* What the two halves of an audit share: rows and statement, and the history. */
#ifndef TL_ADMIN_AUDIT_H
#define TL_ADMIN_AUDIT_H

#include "admin/audit_pages.h"

#include <tradelock/admin/audit.h>

typedef struct audit {
    db *connection;
    tl_violation_fn each;
    void *context;
    tl_audit_counts *counts;
    int stopped;
    tl_status closings; /* of reading what was closed */
    db_result back;     /* the steps back of the server's clock */
} audit;

/* Reports one violation of the row named by the place. */
void audit_report(audit *self, const char *rule, const store_audit_place *at, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

/* Whether the server's clock was set back so that what came first may have the later moment. */
int audit_clock_went_back(const audit *self, int64_t first_us, int64_t then_us);

int audit_is_retry_op(const char *op_code);
/* Takes key, account and moment of a page's row. */
void audit_take_place(store_audit_place *place, const db_result *page, size_t row);

/* audit_log.c: the history of every row of which steps are kept apart. */
tl_status audit_history(audit *self);
/* The same of another row: all of its history are these entries of a page of rows. */
void audit_row_steps(audit *self, const db_result *page, size_t first, size_t last);

#endif
