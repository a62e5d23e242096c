/* How far a batch is: its trades and their money, by state, conflict and currency.  Reads only, by
 * the list of its trades. */
#include "admin/list.h"

#include "base/error.h"
#include "base/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define STATES (TL_STATE_CLOSED + 1)

/* The money of each state, without and with a conflict; NULL: no trade is in it. */
struct batch {
    tl_list_end *of[STATES][2];
    int failed;
};

static int add_trade(void *context, const tl_view *view)
{
    struct batch *batch = context;
    tl_list_end **of = &batch->of[view->state][view->conflict != 0];

    if (*of == NULL)
        *of = memory_new(sizeof **of);
    if (*of == NULL)
        return batch->failed = 1;
    tl_list_end_add(*of, view->currency, view->amount_minor);
    return 0;
}

static int by_currency(const void *a, const void *b)
{
    return strcmp(((const tl_money *)a)->currency, ((const tl_money *)b)->currency);
}

/* The parts of one state, those without an amount last.  Not 0: each() wants no more. */
static int tell_state(tl_batch_part *part, tl_list_end *end, tl_batch_fn each, void *context)
{
    uint64_t told = 0;
    int enough = 0;

    qsort(end->money, end->money_count, sizeof end->money[0], by_currency);
    for (unsigned i = 0; i < end->money_count && !enough; i++) {
        part->money = end->money[i];
        told += part->money.trades;
        enough = each(context, part);
    }
    part->money = (tl_money){.currency = "", .trades = end->trades - told, .sum_minor = "0"};
    return enough || part->money.trades == 0 ? enough : each(context, part);
}

static tl_status tell(const struct batch *batch, tl_batch_fn each, void *context)
{
    tl_status status = TL_NOT_FOUND;
    int enough = 0;

    for (int i = 0; i < STATES * 2 && !enough; i++) {
        tl_batch_part part = {.state = (tl_state)(i / 2), .conflict = i % 2};
        tl_list_end *end = batch->of[part.state][part.conflict];

        if (end == NULL)
            continue;
        status = TL_OK;
        enough = tell_state(&part, end, each, context);
    }
    return status;
}

int tl_batch_part_is_open(const tl_batch_part *part)
{
    return part != NULL && (part->conflict ||
                            (part->state != TL_STATE_SUCCEEDED && part->state != TL_STATE_FAILED));
}

static tl_status count(struct batch *batch, tl_client *client, const tl_filter *filter)
{
    tl_list_end *end = memory_new(sizeof *end);
    tl_status status = TL_OK;

    if (end == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a batch");
    end->version = TL_LIST_END_VERSION;
    status = list_page_own(client, filter, add_trade, batch, end);

    if (status == TL_OK && batch->failed)
        status = error_set(TL_NO_MEMORY, "out of memory for the sums of a batch");
    if (status == TL_OK && end->more)
        status = error_set(TL_OVERLOADED, "more than %u trades are of this batch",
                           filter->look_most - 1);
    memory_free(end);
    return status;
}

tl_status tl_batch(tl_client *client, const char *name, int64_t as_of_us, unsigned most,
                   tl_batch_fn each, void *context)
{
    tl_filter filter = TL_FILTER_INIT;
    struct batch batch = {0};
    tl_status status;

    filter.batch = name;
    filter.as_of_us = as_of_us;
    filter.newest_first = 1; /* in one walk, so that a trade that moves on is counted once */
    filter.limit = UINT_MAX;
    filter.look_most = most > 0 && most < UINT_MAX ? most + 1 : 0;
    error_clear();
    if (name == NULL || each == NULL)
        return error_set(TL_INVALID, "tl_batch: batch or each is NULL");
    status = count(&batch, client, &filter);
    if (status == TL_OK)
        status = tell(&batch, each, context);
    if (status == TL_NOT_FOUND)
        status = error_set(TL_NOT_FOUND, "no trade is of this batch");
    for (int i = 0; i < STATES * 2; i++)
        memory_free(batch.of[i / 2][i % 2]);
    return status;
}
