/*
 * Looks at trades: one by its key, a customer's or a batch's in pages, and the sums of a batch.
 * Reads only.  Lists are those of the operators' library, whose indexes and pages they use.
 */
#include "questions.h"

#include <tradelock/admin/trades.h>
#include <tradelock/layer.h>

#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ one trade -- */

tl_status trade_status(tl_state state, int conflict)
{
    switch (state) {
    case TL_STATE_SUCCEEDED:
        return TL_SUCCEEDED;
    case TL_STATE_FAILED:
        return conflict ? TL_IN_CONFLICT : TL_FAILED;
    case TL_STATE_LIVE:
    case TL_STATE_WORKING:
        return TL_BUSY;
    case TL_STATE_QUEUED:
        return TL_QUEUED;
    case TL_STATE_PARKED:
        return TL_PARKED;
    case TL_STATE_ABSENT:
    case TL_STATE_IN_DOUBT:
    case TL_STATE_WAITING:
    case TL_STATE_CLOSED:
    default:
        return TL_IN_DOUBT;
    }
}

static void copy_result(tl_trade *trade, const tl_view *view)
{
    if (trade->status != TL_SUCCEEDED || view->result_size == 0)
        return;
    trade->result_size =
        view->result_size < sizeof trade->result ? view->result_size : sizeof trade->result;
    memcpy(trade->result, view->result, trade->result_size);
}

static void trade_take_said(tl_trade *to, const tl_view *from)
{
    TL_SAID_MAP(TL_KEEP)
}

#define COPY(member) memcpy(trade->member, view->member, sizeof trade->member)

void trade_from_view(tl_trade *trade, const tl_view *view)
{
    const tl_trade empty = TL_TRADE_INIT;

    *trade = empty;
    trade->status = trade_status(view->state, view->conflict);
    COPY(serial_no);
    COPY(cust_no);
    COPY(op_code);
    trade->epoch = view->epoch;
    trade->sends = view->sends;
    trade->attempts = view->attempts;
    if (trade->status == TL_FAILED) {
        trade->proof = (tl_proof)view->proof;
        trade->retryable = view->retryable;
    }
    if ((trade->status == TL_IN_DOUBT || trade->status == TL_QUEUED) &&
        view->next_run_us > view->now_us)
        trade->next_look_ms = (view->next_run_us - view->now_us) / 1000;
    trade->created_us = view->created_us;
    trade->updated_us = view->updated_us;
    /* A statement's moment is that of its beginning, and it may read what was committed since. */
    trade->now_us = view->now_us > view->updated_us ? view->now_us : view->updated_us;
    trade_take_said(trade, view);
    COPY(channel);
    COPY(channel_ref);
    COPY(remark);
    if (trade->status == TL_PARKED)
        COPY(parked);
    copy_result(trade, view);
}

tl_status trade_check(const tl_workflows *workflows, const tl_key *key, const tl_trade *trade)
{
    if (workflows == NULL || key == NULL || trade == NULL)
        return tl_error_report(TL_INVALID, "a question needs a registry, a key and a trade");
    if (trade->version != TL_TRADE_VERSION)
        return tl_error_report(TL_INVALID, "trade was not made with TL_TRADE_INIT");
    return TL_OK;
}

static int take_view(void *context, const tl_view *view)
{
    trade_from_view(context, view);
    return 1;
}

tl_status tl_workflow_look(tl_workflows *workflows, const tl_key *key, tl_trade *trade)
{
    tl_trade seen = TL_TRADE_INIT;
    tl_status status;

    workflow_call_begins();
    status = trade_check(workflows, key, trade);
    if (status == TL_OK)
        status = tl_show_many(workflows->client, key, 1, take_view, &seen);
    if (status != TL_OK)
        return status;
    if (seen.serial_no[0] == '\0')
        return tl_error_report(TL_NOT_FOUND, "there is no trade %.64s %.32s %.32s", key->serial_no,
                               key->cust_no, key->op_code);
    *trade = seen;
    return seen.status;
}

/* ---------------------------------------------------------------------- lists -- */

struct shown {
    tl_trade_fn each;
    void *context;
};

static int show_trade(void *context, const tl_view *view)
{
    const struct shown *shown = context;
    tl_trade trade = TL_TRADE_INIT;

    trade_from_view(&trade, view);
    return shown->each(shown->context, &trade);
}

static tl_status check_trades(const tl_workflows *workflows, const tl_trades *which,
                              const void *next, int is_given)
{
    if (workflows == NULL || which == NULL || next == NULL || !is_given)
        return tl_error_report(TL_INVALID, "a list needs a registry, a filter, each and next");
    if (which->version != TL_TRADES_VERSION)
        return tl_error_report(TL_INVALID, "the filter was not made with TL_TRADES_INIT");
    if (which->cust_no == NULL && which->batch == NULL)
        return tl_error_report(TL_INVALID, "a list is by a customer or by a batch");
    return TL_OK;
}

tl_status tl_workflow_list(tl_workflows *workflows, const tl_trades *which, tl_trade_fn each,
                           void *context, char *next)
{
    struct shown shown = {each, context};
    tl_filter filter = TL_FILTER_INIT;
    tl_list_end *end;
    tl_status status;

    _Static_assert(TL_TRADES_NEXT == TL_NEXT_TEXT, "a place in a list has one size");
    workflow_call_begins();
    status = check_trades(workflows, which, next, each != NULL);
    if (status != TL_OK)
        return status;
    end = workflow_memory(sizeof *end);
    if (end == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a list");
    end->version = TL_LIST_END_VERSION;
    filter.lane = 'S';
    filter.cust = which->cust_no;
    filter.batch = which->batch;
    filter.op = which->op_code;
    filter.limit = which->limit;
    filter.newest_first = which->batch != NULL; /* in one walk: each trade is shown once */
    filter.after = which->after != NULL && which->after[0] != '\0' ? which->after : NULL;
    status = tl_list_page(workflows->client, &filter, show_trade, &shown, end);
    if (status == TL_OK)
        memcpy(next, end->next, TL_TRADES_NEXT);
    free(end);
    return status;
}

/* -------------------------------------------------------------------- a batch -- */

struct summing {
    tl_batch_total total;
    tl_sum_fn each;
    void *context;
    int enough;
};

static int add_part(void *context, const tl_batch_part *part)
{
    struct summing *s = context;
    tl_batch_sum sum = {.status = trade_status(part->state, part->conflict)};

    s->total.trades += part->money.trades;
    if (sum.status == TL_SUCCEEDED)
        s->total.succeeded += part->money.trades;
    else if (sum.status == TL_FAILED)
        s->total.failed += part->money.trades;
    if (tl_batch_part_is_open(part))
        s->total.open += part->money.trades;
    if (s->each == NULL || s->enough)
        return 0;
    sum.trades = part->money.trades;
    memcpy(sum.currency, part->money.currency, sizeof sum.currency);
    memcpy(sum.sum_minor, part->money.sum_minor, sizeof sum.sum_minor);
    s->enough = s->each(s->context, &sum);
    return 0;
}

tl_status tl_workflow_batch(tl_workflows *workflows, const char *batch, tl_batch_total *total,
                            tl_sum_fn each, void *context)
{
    struct summing s = {.total = TL_BATCH_TOTAL_INIT, .each = each, .context = context};
    tl_status status;

    workflow_call_begins();
    if (workflows == NULL || batch == NULL || total == NULL)
        return tl_error_report(TL_INVALID, "a batch's sums need a registry, a batch and a total");
    if (total->version != TL_BATCH_TOTAL_VERSION)
        return tl_error_report(TL_INVALID, "total was not made with TL_BATCH_TOTAL_INIT");
    status = tl_batch(workflows->client, batch, 0, 0, add_part, &s);
    if (status != TL_OK)
        return status;
    s.total.complete = s.total.open == 0;
    *total = s.total;
    return TL_OK;
}
