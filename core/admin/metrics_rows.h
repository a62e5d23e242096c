/* What the metrics of the database are made of, read before anything of it is written. */
#ifndef TL_ADMIN_METRICS_ROWS_H
#define TL_ADMIN_METRICS_ROWS_H

#include "client/client.h"
#include "store/store.h"

#include <tradelock/admin/overview.h>

/* Of one operation, at most so many rows are looked at for each metric. */
#define METRICS_ROWS 100000
#define METRICS_OVERDUE_ROWS 10000

enum metrics_trade_column {
    METRICS_STATE,
    METRICS_CHANNEL,
    METRICS_CURRENCY,
    METRICS_AGE,
    METRICS_COUNT,
    METRICS_MINOR,
    METRICS_OLDEST_S,
    METRICS_DEADLINE_US,
    METRICS_LATE
};
enum metrics_conflict_column {
    CONFLICT_OP,
    CONFLICT_CHANNEL,
    CONFLICT_CURRENCY,
    CONFLICT_COUNT,
    CONFLICT_MINOR
};

/* One business operation, with both of its lanes. */
typedef struct metrics_operation {
    char op_code[TL_OP_MAX + 1];
    int64_t low_water_us, now_us;
    db_result unheld, working;   /* enum metrics_trade_column */
    db_result due;               /* lanes that are due: channel, how many, how late the oldest is */
    int64_t overdue, overdue_us; /* holds whose time is over */
    int64_t is_cut;              /* 1: there is more than was looked at */
    int64_t lag_us; /* of the mark; one that was never moved, or is missing, has none */
} metrics_operation;

typedef struct metrics_rows {
    int is_fit; /* the server's settings are safe for money */
    metrics_operation *operations;
    size_t count;
    db_result conflicts; /* enum metrics_conflict_column */
    db_result sessions;  /* program, state, how many */
    db_result paused; /* of each that is known: channel, operation, for how long; 0: it is open */
    db_result proposals; /* how many, and how old the oldest is */
    db_result limited;   /* enum store_channel_use_column */
    db_result breakers;  /* channel, operation, open for so long, how often it has opened */
    db_result server;    /* restored, restores, jumps, jumps that rows are not adjusted to */
    db_result tables;    /* name, rows, bytes */
    db_result audits;    /* of audit_noted */
} metrics_rows;

/* Whether the channel is paused for the operation, or the installation drains. */
int metrics_is_paused(const metrics_rows *rows, const char *channel, const char *op_code);
/* The row of the channel and operation in a result that begins with them; NULL op_code: with the
 * channel alone.  SIZE_MAX: there is none. */
size_t metrics_row_of(const db_result *r, const char *channel, const char *op_code);

tl_status metrics_read(metrics_rows *rows, db *connection);
void metrics_free(metrics_rows *rows);
/* The last audit that is on record, and the last one with a statement. */
void metrics_audits(const metrics_rows *rows, tl_audited *audit, tl_audited *statement);

#endif
