/* tradelock retry: makes a waiting or parked trade due now, or all that pass a filter. */
#include "bulk.h"
#include "command.h"
#include "explain.h"
#include "fields.h"
#include "filter.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes all trades due that pass a filter and wait or are parked, each under the fence seen. */

struct retry_all {
    tl_filter filter;
    const char *reason, *actor, *said; /* said: the filter in words */
    int has_yes;
    uint64_t yes;
};

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
    char amount[TL_AMOUNT_TEXT], fence[24];

    snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
    table_add(bulk->examples, view->serial_no, view->cust_no, view->op_code,
              tl_state_name(view->state),
              tl_amount_text(amount, view->amount_minor, view->currency), view->channel, fence);
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

static int retry_all(tl_client *client, struct retry_all *all)
{
    char apart[128];
    struct bulk bulk = {
        .act = {.what = "retry", .said = all->said, .actor = all->actor, .reason = all->reason},
        .verb = "retry",
        .apart = apart,
        .examples = table_new("SERIAL", "CUSTOMER", "OPERATION", "STATE", "AMOUNT", "CHANNEL",
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
    code = status == TL_OK ? bulk_run(&bulk) : report(status);
    table_free(bulk.examples);
    json_decref(bulk.examples_json);
    json_decref(bulk.apart_json);
    free(preview.rows);
    return code;
}

static struct decision {
    uint64_t fence;
    int has_fence;
    struct retry_all all; /* its reason and actor are those of one trade, too */
    int is_all, filters;
    char *where;
} decision = {.all = {.filter = {.version = TL_FILTER_VERSION}}};

/* What the worker will do: no send is promised that cannot come. */
static int see_what_follows(void *context, const tl_view *view)
{
    const char **follows = context;

    if (is_past_deadline(view) && view->sends == 0)
        *follows = "its deadline is over and nothing was sent, so a retry worker ends it as "
                   "failed";
    else if (is_past_deadline(view))
        *follows = "a retry worker asks the channel; its deadline is over, so nothing is "
                   "sent any more";
    return 0;
}

static tl_key key;

static int retry_key(tl_client *client)
{
    const char *follows = "a retry worker asks the channel before it sends";
    tl_status status =
        tl_retry_now(client, &key, decision.fence, decision.all.actor, decision.all.reason);

    if (status != TL_OK)
        return report(status);
    if (!common.json)
        (void)tl_show(client, &key, TL_LANE_SYNC, see_what_follows, &follows);
    return print_answer(
        json_pack("{s:s, s:s, s:s, s:s}", "serial_no", key.serial_no, "cust_no", key.cust_no,
                  "op_code", key.op_code, "status", tl_status_name(status)),
        EXIT_DONE, "%s %s %s is due now; %s.\n", key.serial_no, key.cust_no, key.op_code, follows);
}

static int check(int argc, char **argv)
{
    int code = EXIT_DONE;

    if (decision.where != NULL) {
        decision.is_all = 1;
        code = filter_where(decision.where);
    }
    if (code == EXIT_DONE && !decision.is_all && (argc > 0 || !decision.filters))
        code = read_key(&key, argc, argv);
    if (code != EXIT_DONE)
        return code;
    if (decision.is_all && decision.has_fence)
        return usage_error("--fence is for one trade; of many each has the fence that was seen");
    if (decision.is_all && argc > 0)
        return usage_error("--all and --where take no operand: %s", argv[0]);
    if (!decision.is_all && (decision.filters || decision.all.has_yes))
        return usage_error("filters and --yes are for many trades: say --all");
    if (!decision.is_all && !decision.has_fence)
        return usage_error("--fence is missing: it says which state of the trade you saw, and "
                           "`tradelock show` prints it");
    return needs_reason(decision.all.reason);
}

/* Many trades are changed in one database, under one act. */
static int work(tl_client *client)
{
    char said[1024];
    int code;

    if (!decision.is_all) {
        code = fleet_owner(&client, key.cust_no);
        return code == EXIT_DONE ? retry_key(client) : code;
    }
    if (fleet_is())
        return usage_error("these settings are of a fleet: --all and --where want --shard");
    client = fleet_client(0, 0);
    if (client == NULL)
        return fleet_code(EXIT_DONE, EXIT_DONE);
    filter_say(said, sizeof said);
    decision.all.said = said;
    return retry_all(client, &decision.all);
}

static const struct command_option options[] = {
    {"fence N", "the fence of the row as `tradelock show` printed it", OPTION_NUMBER,
     .to = &decision.fence, .given = &decision.has_fence,
     .is = "a number as `tradelock show` prints it"},
    OPTION_REASON_OF(&decision.all.reason, WHY),
    OPTION_ACTOR_OF(&decision.all.actor, WHO),
    {"all", "all trades that wait or are parked, and pass these filters:", OPTION_FLAG,
     .to = &decision.is_all},
    FILTER_OPTIONS(decision.all.filter, &decision.filters),
    FILTER_LIMIT(decision.all.filter, &decision.filters, "at most N of them (all)"),
    {"where TEXT", "--all, with filters as words: 'parked channel=bank'", OPTION_TEXT,
     .to = &decision.where},
    {"yes N", "do it, if it is N trades", OPTION_NUMBER, .to = &decision.all.yes,
     .given = &decision.all.has_yes, .is = "the number of trades"},
    {.name = NULL}};

const struct command command_retry = {
    .name = "retry",
    .summary = "make a waiting or parked trade due now",
    .arguments = "SERIAL CUST OP --fence N | --all FILTER...  --reason TEXT",
    .text = "Lets the retry lane of a trade run now; a parked one is unparked.  It sends\n"
            "nothing by itself, and the worker asks the channel first.  The decision is\n"
            "bound to the fence that you saw: when the trade has moved on since, nothing\n"
            "happens.\n"
            "\n"
            "With --all, that is done to each trade that passes the filters and waits or is\n"
            "parked, under the fence that was seen.  First it shows how many, how much\n"
            "money, and ten of them; then it takes the number, typed on the terminal or by\n"
            "--yes.  A trade that moves on meanwhile is left alone (exit code 1).  Ctrl-C\n"
            "stops it between two trades, and the same again goes on.  `tradelock acts`\n"
            "tells what was done.\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
