/* The history of rows, looked through step by step. */
#ifndef TL_ADMIN_AUDIT_HISTORY_H
#define TL_ADMIN_AUDIT_HISTORY_H

#include "admin/audit_report.h"

/* The history of every row of which steps are kept apart. */
tl_status audit_history(audit *self);
/* The same of another row: all of its history are these entries of a page of rows. */
void audit_row_steps(audit *self, const db_result *page, size_t first, size_t last);

#endif
