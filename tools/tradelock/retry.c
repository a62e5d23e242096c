/* tradelock retry: makes a waiting or parked trade due now, or all that pass a filter. */
#include "command.h"
#include "explain.h"
#include "filter.h"
#include "fleet.h"
#include "fleet_map.h"
#include "judge.h"
#include "many.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes all trades due that pass a filter and wait or are parked, each under the fence seen. */

static int judge(struct many *self, const tl_view *view)
{
    (void)self;
    return judge_retry(view);
}

static tl_status retry_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct seen *seen = &((const struct many *)context)->rows[row];
    const tl_key key = seen_key(seen);

    return tl_act_retry(client, act_no, row + 1, &key, seen->fence);
}

static struct decision {
    uint64_t fence, yes;
    int has_fence, has_yes;
    const char *reason, *actor;
    tl_filter filter;
    int is_all, filters;
    char *where;
} decision = {.filter = {.version = TL_FILTER_VERSION, .status = 'P'}};

static int retry_all(void)
{
    char said[1024];
    struct many many = {.bulk = {.run.act = {.what = "retry",
                                             .said = said,
                                             .actor = decision.actor,
                                             .reason = decision.reason},
                                 .run.each = retry_one,
                                 .verb = "retry",
                                 .has_yes = decision.has_yes,
                                 .yes = decision.yes},
                        .filter = &decision.filter,
                        .limit = decision.filter.limit,
                        .judge = judge,
                        .reasons = {[RETRY_HELD] = "held", [RETRY_DUE] = "due"},
                        .words = {"held by somebody", "due already"}};

    filter_say(said, sizeof said);
    return many_run(&many);
}

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
    tl_status status = tl_retry_now(client, &key, decision.fence, decision.actor, decision.reason);

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
    if (!decision.is_all && (decision.filters || decision.has_yes))
        return usage_error("filters and --yes are for many trades: say --all");
    if (!decision.is_all && !decision.has_fence)
        return usage_error("--fence is missing: it says which state of the trade you saw, and "
                           "`tradelock show` prints it");
    return needs_reason(decision.reason);
}

static int work(tl_client *client)
{
    int code;

    if (decision.is_all)
        return retry_all();
    code = fleet_owner(&client, key.cust_no);
    return code == EXIT_DONE ? retry_key(client) : code;
}

static const struct command_option options[] = {
    {"fence N", "the fence of the row as `tradelock show` printed it", OPTION_NUMBER,
     .to = &decision.fence, .given = &decision.has_fence,
     .is = "a number as `tradelock show` prints it"},
    OPTION_REASON_OF(&decision.reason, WHY),
    OPTION_ACTOR_OF(&decision.actor, WHO),
    {"all", "all trades that wait or are parked, and pass these filters:", OPTION_FLAG,
     .to = &decision.is_all},
    FILTER_OPTIONS(decision.filter, &decision.filters),
    FILTER_LIMIT(decision.filter, &decision.filters, "at most N of them (all)"),
    {"where TEXT", "--all, with filters as words: 'parked channel=bank'", OPTION_TEXT,
     .to = &decision.where},
    {"yes N", "do it, if it is N trades", OPTION_NUMBER, .to = &decision.yes,
     .given = &decision.has_yes, .is = "the number of trades"},
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
    .examples = "  tradelock retry W1 C1 WITHDRAW --fence 1795175922322971 --reason back\n"
                "  tradelock retry --all --parked --channel bankA --reason \"bankA is back\"\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
