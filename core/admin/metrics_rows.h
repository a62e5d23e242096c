/* What the metrics of the database are made of, read before anything of it is written. */
#ifndef TL_ADMIN_METRICS_ROWS_H
#define TL_ADMIN_METRICS_ROWS_H

#include "client/client.h"
#include "store/channel.h"
#include "store/store.h"

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
    METRICS_OLDEST_S
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
    int64_t due, due_us;         /* lanes that are due, and how late the oldest is */
    int64_t overdue, overdue_us; /* holds whose time is over */
    int is_cut;                  /* there is more than was looked at */
} metrics_operation;

typedef struct metrics_rows {
    int is_fit; /* the server's settings are safe for money */
    metrics_operation *operations;
    size_t count, space;
    db_result conflicts; /* enum metrics_conflict_column */
    db_result sessions;  /* program, state, how many */
    db_result paused;    /* enum store_channel_paused_column */
    db_result limited;   /* enum store_channel_use_column */
    db_result breakers;  /* channel, operation, open for so long, how often it has opened */
    db_result server;    /* restored, restores, jumps, jumps that rows are not adjusted to */
    db_result tables;    /* name, rows, bytes */
} metrics_rows;

/* Whether some channel is paused for the operation. */
int metrics_is_paused(const metrics_rows *rows, const char *op_code);

tl_status metrics_read(metrics_rows *rows, db *connection);
void metrics_free(metrics_rows *rows);

#endif
