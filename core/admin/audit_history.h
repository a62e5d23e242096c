/* Checks the history of rows step by step. */
#ifndef TL_ADMIN_AUDIT_HISTORY_H
#define TL_ADMIN_AUDIT_HISTORY_H

#include "admin/audit_report.h"

/* Checks every row that has steps in trade_lock_past. */
tl_status audit_history(audit *self);
/* Checks a row that has none there: these entries of a page of rows are all of its history. */
void audit_row_steps(audit *self, const db_result *page, size_t first, size_t last);

#endif
