/* Tells how far a batch is, below a list of its trades. */
#ifndef TRADELOCK_BATCH_PRINT_H
#define TRADELOCK_BATCH_PRINT_H

#include <tradelock/admin.h>

#include <jansson.h>

struct batch_totals {
    tl_batch_part *part;
    size_t count;
    uint64_t trades, open;
};

/* Counts what this database has of the batch that the filter names, at its moment, and adds it to
 * what others had.  TL_OK also when there is none, with a count of 0.  batch_totals_free() frees
 * it, whatever the status. */
tl_status batch_totals_add(struct batch_totals *totals, tl_client *client, const tl_filter *filter);
void batch_totals_free(struct batch_totals *totals);

void batch_totals_print(const struct batch_totals *totals, const char *batch);
/* null: there is no such batch. */
json_t *batch_totals_json(const struct batch_totals *totals, const char *batch);

#endif
