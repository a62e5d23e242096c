/* tradelock retry: makes a waiting or parked trade due now. */
#include "command.h"

#include "explain.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>

enum { OPTION_FENCE = OPTION_OWN, OPTION_REASON, OPTION_ACTOR };

struct decision {
    uint64_t fence;
    int has_fence;
    const char *reason, *actor;
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
        tl_retry_now(client, key, decision->fence, decision->actor, decision->reason);

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

static int read_options(const struct command *self, struct common *common,
                        struct decision *decision, int argc, char **argv, int *code)
{
    static const struct option options[] = {{"fence", required_argument, NULL, OPTION_FENCE},
                                            {"reason", required_argument, NULL, OPTION_REASON},
                                            {"actor", required_argument, NULL, OPTION_ACTOR},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, common, argc, argv, options, code)) >= 0) {
        if (option == OPTION_REASON) {
            decision->reason = optarg;
        } else if (option == OPTION_ACTOR) {
            decision->actor = optarg;
        } else if (read_number(optarg, INT64_MAX, &decision->fence)) {
            decision->has_fence = 1;
        } else {
            *code = usage_error(self,
                                "--fence is a number as `tradelock show` prints it, "
                                "not %s",
                                optarg);
            return 0;
        }
    }
    return option != COMMON_STOP;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct decision decision = {.actor = person()};
    struct common common = {0};
    tl_client *client = NULL;
    tl_key key;
    int code = EXIT_DONE;

    if (!read_options(self, &common, &decision, argc, argv, &code) ||
        !read_key(self, &key, argc, argv, &code))
        return code;
    if (!decision.has_fence)
        return usage_error(self, "--fence is missing: it says which state of the trade you "
                                 "saw, and `tradelock show` prints it");
    if (decision.reason == NULL || decision.reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
    code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = work(client, &common, &key, &decision);
    tl_client_close(client);
    return code;
}

const struct command command_retry = {
    .name = "retry",
    .summary = "make a waiting or parked trade due now",
    .arguments = "SERIAL CUST OP --fence N --reason TEXT [--actor NAME] [--json]",
    .text = "Lets the retry lane of a trade run now; a parked one is unparked.  It sends\n"
            "nothing by itself, and the worker asks the channel first.  The decision is "
            "bound\n"
            "to the fence that you saw: when the trade has moved on since, nothing "
            "happens.\n",
    .options = "  --fence N       the fence of the row as `tradelock show` printed it\n"
               "  --reason TEXT   why, for the record\n"
               "  --actor NAME    who decided (the login name)\n",
    .run = run,
};
