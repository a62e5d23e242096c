/* tradelock purge: removes what has been finished for long enough. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>

enum { OPTION_OLDER = OPTION_OWN };

static int work(tl_client *client, const struct common *common, int64_t older_ms)
{
    tl_purged purged = {.trades = 0};
    tl_status status = tl_purge(client, older_ms, &purged);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:I, s:I, s:I, s:I}", "trades", (json_int_t)purged.trades,
                                    "resources", (json_int_t)purged.resources, "sessions",
                                    (json_int_t)purged.sessions, "looked_at",
                                    (json_int_t)purged.looked_at),
                          EXIT_DONE);
    printf("%" PRIu64 " trades purged, %" PRIu64 " resources purged, %" PRIu64
           " sessions purged, %" PRIu64 " rows looked at\n",
           purged.trades, purged.resources, purged.sessions, purged.looked_at);
    return finish_output(EXIT_DONE);
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {
        {"older", required_argument, NULL, OPTION_OLDER}, COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    struct common common = {0};
    tl_client *client = NULL;
    int64_t older_ms = -1;
    int option, code = EXIT_DONE;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        if (!read_duration_ms(optarg, &older_ms))
            return usage_error(self, "--older is a duration such as 90d, not %s", optarg);
    if (option == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "purge takes no operand: %s", argv[optind]);
    if (older_ms < 0)
        return usage_error(self, "--older is missing: it says what is old enough to go");
    code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = work(client, &common, older_ms);
    tl_client_close(client);
    return code;
}

const struct command command_purge = {
    .name = "purge",
    .summary = "remove finished trades and idle locks that are old enough",
    .arguments = "--older AGE [--json]",
    .text = "Removes trades that ended and have not changed for AGE: both rows, their "
            "history\n"
            "and evidence, in small batches.  Never one in process or in conflict, and "
            "never\n"
            "one younger than the setting retention_ms, since a purged key can be paid "
            "again.\n"
            "Likewise mutexes and read-write locks of resources that nobody held or "
            "asked for\n"
            "in that time, and sessions that were over by then.\n"
            "It may be stopped and started again at any time.\n",
    .options = "  --older AGE     such as 90d or 2160h; at least retention_ms\n",
    .run = run,
};
