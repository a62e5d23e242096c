/* How the checks of rows, history and statements report what they found. */
#ifndef TL_ADMIN_AUDIT_REPORT_H
#define TL_ADMIN_AUDIT_REPORT_H

#include "admin/audit_pages.h"

#include <tradelock/admin/audit.h>

typedef struct audit {
    db *connection;
    tl_violation_fn each;
    void *context;
    tl_audit_counts *counts;
    int stopped;
    tl_status closings; /* why reading audit_closing failed; TL_OK: it did not */
    db_result back;     /* the jumps back of the server's clock */
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

#endif
