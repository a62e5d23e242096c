/* Makes all trades due that pass a filter and wait or are parked, each under the fence seen. */
#include "retry_all.h"

#include "bulk.h"
#include "fields.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
    uint64_t fence;
};

struct preview {
    struct bulk *bulk;
    struct seen *rows;
    size_t space;
    uint64_t limit, held, due; /* held by somebody; due already */
    int no_memory;
};

static int make_room(struct preview *p)
{
    struct seen *rows;

    if (p->bulk->count < p->space)
        return 1;
    p->space = p->space > 0 ? 2 * p->space : 256;
    rows = realloc(p->rows, p->space * sizeof *rows);
    p->no_memory = rows == NULL;
    if (rows != NULL)
        p->rows = rows;
    return rows != NULL;
}

static void add_example(struct bulk *bulk, const tl_view *view)
{
    char amount[AMOUNT_TEXT], fence[24];

    snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
    table_add(bulk->examples, view->serial_no, view->cust_no, view->op_code,
              tl_state_name(view->state), amount_text(amount, view->amount_minor, view->currency),
              view->channel, fence);
    json_array_append_new(bulk->examples_json, json_view(view));
}

/* What is due already needs nobody: so the same again goes on with what is left. */
static int take(void *context, const tl_view *view)
{
    struct preview *p = context;
    struct seen *row;

    if (view->state == TL_STATE_LIVE || view->state == TL_STATE_WORKING) {
        p->held++;
        return 0;
    }
    if (view->repeatable || !view->has_retry_row)
        return 0;
    if (view->parked[0] == '\0' && view->next_run_us <= view->now_us) {
        p->due++;
        return 0;
    }
    if (p->bulk->count == p->limit)
        return 1;
    if (!make_room(p))
        return 1;
    row = &p->rows[p->bulk->count++];
    snprintf(row->serial_no, sizeof row->serial_no, "%s", view->serial_no);
    snprintf(row->cust_no, sizeof row->cust_no, "%s", view->cust_no);
    snprintf(row->op_code, sizeof row->op_code, "%s", view->op_code);
    row->fence = view->fence;
    tl_list_end_add(&p->bulk->money, view->currency, view->amount_minor);
    if (p->bulk->count <= BULK_EXAMPLES)
        add_example(p->bulk, view);
    return 0;
}

static tl_status retry_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct seen *seen = &((const struct preview *)context)->rows[row];
    const tl_key key = {seen->serial_no, seen->cust_no, seen->op_code};

    return tl_act_retry(client, act_no, row + 1, &key, seen->fence);
}

static int is_of_row(tl_status status)
{
    return status == TL_LOST || status == TL_BUSY || status == TL_ALREADY_DONE ||
           status == TL_FAILED || status == TL_NO_TRADE || status == TL_NOT_FOUND;
}

static void say_apart(char *to, size_t space, const struct preview *p)
{
    p->bulk->apart_json =
        json_pack("{s:I, s:I}", "held", (json_int_t)p->held, "due", (json_int_t)p->due);
    to[0] = '\0';
    if (p->held + p->due > 0)
        snprintf(to, space, "Left alone: %" PRIu64 " held by somebody, %" PRIu64 " due already.",
                 p->held, p->due);
}

int retry_all(tl_client *client, const struct common *common, struct retry_all *all)
{
    char apart[128];
    struct bulk bulk = {
        .act = {.what = "retry", .said = all->said, .actor = all->actor, .reason = all->reason},
        .verb = "retry",
        .apart = apart,
        .examples = table_new("SERIAL", "CUSTOMER", "OPERATION", "STATE", "MINOR", "CHANNEL",
                              "FENCE", NULL),
        .examples_json = json_array(),
        .each = retry_one,
        .is_of_row = is_of_row,
        .code_of_none = EXIT_REFUSED,
        .has_yes = all->has_yes,
        .yes = all->yes};
    struct preview preview = {.bulk = &bulk,
                              .limit = all->filter.limit > 0 ? all->filter.limit : UINT64_MAX};
    tl_status status;
    int code;

    bulk.context = &preview;
    all->filter.lane = 'S';
    all->filter.status = 'P';
    all->filter.limit = UINT32_MAX;
    status = tl_list(client, &all->filter, take, &preview);
    say_apart(apart, sizeof apart, &preview);
    if (preview.no_memory)
        status = tl_error_report(TL_NO_MEMORY, "out of memory for the trades");
    code = status == TL_OK ? bulk_run(&bulk, common) : report(status);
    table_free(bulk.examples);
    json_decref(bulk.examples_json);
    json_decref(bulk.apart_json);
    free(preview.rows);
    return code;
}
