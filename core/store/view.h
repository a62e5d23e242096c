/* Reads a result row of view_by_key as a tl_view. */
#ifndef TL_STORE_VIEW_H
#define TL_STORE_VIEW_H

#include "db/db.h"

#include <tradelock/layer.h>

/* What the library needs of a row and a caller is not shown. */
typedef struct view_inside {
    int alive;
    uint32_t retry_epoch, success_epoch; /* 0: none */
    int has_fingerprint;
    int nothing_filed; /* 1: neither evidence nor a decision is on file; 0: not known */
    unsigned char token[16];
} view_inside;

/* A row of a statement that selects view_columns first; views_by_key has one more, for
 * nothing_filed.  Payload and result point into the result. */
void view_read(tl_view *to, view_inside *inside, const db_result *result, size_t row);

/* The columns from this one on are said_columns. */
void view_said(tl_said *to, const db_result *result, size_t row, size_t column);

/* The state that the view's column names. */
tl_state view_state(const char *name);

/* Makes it a view of nothing. */
void view_clear(tl_view *view, view_inside *inside);

#endif
