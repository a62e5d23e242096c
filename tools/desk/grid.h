/* Tables of rows that tradelock/record.h describes: one leaf for each type of field. */
#ifndef DESK_GRID_H
#define DESK_GRID_H

#include "desk.h"

#include "fields.h"

/* What stands in a column in the place of its field; those of a table end with a NULL. */
struct drawn {
    const char *column;
    void (*cell)(struct visit *visit, const void *row);
};

struct grid {
    struct visit *visit;
    const struct record *record;
    const struct drawn *drawn;
    struct columns columns;
    int of_shards; /* the first column is the shard */
    size_t rows;
};

/* Columns as in record_columns(); drawn NULL: none.  Nothing is written before the first row. */
void grid_begin(struct grid *grid, struct visit *visit, const struct record *record,
                const char *columns, const struct drawn *drawn);
void grid_row(struct grid *grid, const void *row);
/* The same in a table of a fleet's shards.  Of one database there is no such column. */
void grid_row_at(struct grid *grid, const char *shard, const void *row);
/* Without a row it writes the sentence. */
void grid_end(struct grid *grid, const char *nothing);

/* A column's value: "3 min 10 s ago" where the row says when it was read, money in its currency. */
void grid_value(struct visit *visit, const struct record *record, const struct field *field,
                const void *row);

#endif
