/* tradelock retry: makes a waiting or parked trade due now, or all that pass a filter. */
#include "command.h"

#include "explain.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"
#include "retry_all.h"

#include <tradelock/admin.h>

#include <stdio.h>

enum {
    OPTION_FENCE = OPTION_OWN,
    OPTION_REASON,
    OPTION_ACTOR,
    OPTION_ALL,
    OPTION_WHERE,
    OPTION_YES
};

struct decision {
    uint64_t fence;
    int has_fence;
    struct retry_all all; /* its reason and actor are those of one trade, too */
    int is_all, filters;
    char *where;
};

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

static int work(tl_client *client, const struct common *common, const tl_key *key,
                const struct decision *decision)
{
    const char *follows = "a retry worker asks the channel before it sends";
    tl_status status =
        tl_retry_now(client, key, decision->fence, decision->all.actor, decision->all.reason);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s, s:s, s:s, s:s}", "serial_no", key->serial_no, "cust_no",
                                    key->cust_no, "op_code", key->op_code, "status",
                                    tl_status_name(status)),
                          EXIT_DONE);
    (void)tl_show(client, key, TL_LANE_SYNC, see_what_follows, &follows);
    printf("%s %s %s is due now; %s.\n", key->serial_no, key->cust_no, key->op_code, follows);
    return finish_output(EXIT_DONE);
}

static int take_option(const struct command *self, struct decision *decision, int option)
{
    struct retry_all *all = &decision->all;

    if (filter_has(option)) {
        decision->filters = 1;
        return filter_set(self, &all->filter, option);
    }
    switch (option) {
    case OPTION_REASON:
        all->reason = optarg;
        break;
    case OPTION_ACTOR:
        all->actor = optarg;
        break;
    case OPTION_ALL:
        decision->is_all = 1;
        break;
    case OPTION_WHERE:
        decision->is_all = 1;
        decision->where = optarg;
        break;
    case OPTION_YES:
        all->has_yes = 1;
        if (!read_number(optarg, UINT64_MAX, &all->yes))
            return usage_error(self, "--yes is the number of trades, not %s", optarg);
        break;
    default:
        decision->has_fence = 1;
        if (!read_number(optarg, INT64_MAX, &decision->fence))
            return usage_error(self, "--fence is a number as `tradelock show` prints it, not %s",
                               optarg);
    }
    return EXIT_DONE;
}

static int read_options(const struct command *self, struct common *common,
                        struct decision *decision, int argc, char **argv, int *code)
{
    static const struct option options[] = {{"fence", required_argument, NULL, OPTION_FENCE},
                                            {"reason", required_argument, NULL, OPTION_REASON},
                                            {"actor", required_argument, NULL, OPTION_ACTOR},
                                            {"all", no_argument, NULL, OPTION_ALL},
                                            {"where", required_argument, NULL, OPTION_WHERE},
                                            {"yes", required_argument, NULL, OPTION_YES},
                                            FILTER_OPTIONS,
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, common, argc, argv, options, code)) >= 0)
        if ((*code = take_option(self, decision, option)) != EXIT_DONE)
            return 0;
    if (option != COMMON_STOP && decision->where != NULL)
        *code = filter_where(self, &decision->all.filter, decision->where);
    return option != COMMON_STOP && *code == EXIT_DONE;
}

static int check_all(const struct command *self, const struct decision *decision, int argc,
                     char **argv)
{
    if (decision->has_fence)
        return usage_error(self, "--fence is for one trade; of many each has the fence that was "
                                 "seen");
    if (optind < argc)
        return usage_error(self, "--all and --where take no operand: %s", argv[optind]);
    return EXIT_DONE;
}

static int check_one(const struct command *self, const struct decision *decision)
{
    if (decision->filters || decision->all.has_yes)
        return usage_error(self, "filters and --yes are for many trades: say --all");
    if (!decision->has_fence)
        return usage_error(self, "--fence is missing: it says which state of the trade you "
                                 "saw, and `tradelock show` prints it");
    return EXIT_DONE;
}

/* Many trades are changed in one database, under one act. */
static int open_for(tl_client **client, const struct command *self, const struct decision *decision,
                    const tl_key *key)
{
    if (!decision->is_all)
        return fleet_owner(client, key->cust_no);
    if (fleet_is())
        return usage_error(self, "these settings are of a fleet: --all and --where want --shard");
    *client = fleet_client(0, 0);
    return fleet_code(EXIT_DONE, EXIT_DONE);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct decision decision = {
        .all = {.actor = person(), .filter = {.version = TL_FILTER_VERSION}}};
    struct common common = {0};
    tl_client *client = NULL;
    tl_key key = {0};
    int code = EXIT_DONE;

    if (!read_options(self, &common, &decision, argc, argv, &code))
        return code;
    if (decision.is_all)
        code = check_all(self, &decision, argc, argv);
    else if (decision.filters && optind == argc)
        code = check_one(self, &decision);
    else if (read_key(self, &key, argc, argv, &code))
        code = check_one(self, &decision);
    if (code != EXIT_DONE)
        return code;
    if (decision.all.reason == NULL || decision.all.reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
    code = fleet_begin(&common);
    if (code == EXIT_DONE)
        code = open_for(&client, self, &decision, &key);
    if (code == EXIT_DONE)
        code = decision.is_all ? retry_all(client, &common, &decision.all)
                               : work(client, &common, &key, &decision);
    fleet_end();
    return code;
}

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
    .options = "  --fence N       the fence of the row as `tradelock show` printed it\n"
               "  --reason TEXT   why, for the record\n"
               "  --actor NAME    who decided (the login name)\n"
               "  --all           all trades that wait or are parked, and pass these "
               "filters:\n" FILTER_HELP "  --limit N       at most N of them (all)\n"
               "  --where TEXT    --all, with filters as words: 'parked channel=bank'\n"
               "  --yes N         do it, if it is N trades\n",
    .run = run,
};
