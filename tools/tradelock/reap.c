/* tradelock reap: the janitor's round, once. */
#include "command.h"

#include "print.h"

#include <tradelock/lane.h>

#include <inttypes.h>
#include <stdio.h>

static int work(tl_client *client, void *context)
{
    const struct common *common = context;
    tl_reaped reaped = {0, 0, 0};
    tl_status status = tl_reap(client, &reaped);

    if (status != TL_OK)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:I, s:I, s:I}", "sessions", (json_int_t)reaped.sessions,
                                    "opened", (json_int_t)reaped.opened, "freed",
                                    (json_int_t)reaped.freed),
                          EXIT_DONE);
    printf("%" PRIu64 " sessions ended, %" PRIu64 " trades opened, %" PRIu64 " holders freed\n",
           reaped.sessions, reaped.opened, reaped.freed);
    return finish_output(EXIT_DONE);
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    (void)self;
    (void)argc;
    (void)argv;
    return with_client(common, 0, work, common);
}

const struct command command_reap = {
    .name = "reap",
    .summary = "open the retry lane of trades, and free locks, whose holder is dead",
    .arguments = "[--json]",
    .text = "Does once what every service does all the time: ends sessions that show no\n"
            "heartbeat for a whole time-out (session_ms; it takes as long), and opens the\n"
            "lanes of trades whose session is over or whose max_hold has passed.  Dead\n"
            "holders of read-write locks are freed.  Any number may run at once, and the\n"
            "living are not touched.  Needs an account with the role "
            "DATABASE_application.\n",
    .run = run,
};
