/* tradelock ps: the processes that have a session, and when each was heard of last. */
#include "command.h"

#include "fields.h"
#include "fleet.h"

#include <tradelock/admin.h>

static int add_row(void *context, const tl_session_row *one)
{
    return listing_add(context, one);
}

static int list_one(tl_client *client, void *context)
{
    const tl_status status = tl_session_list(client, add_row, context);

    return status == TL_OK ? EXIT_DONE : fleet_missed(status);
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    int code = fleet_begin(common);

    (void)self;
    (void)argc;
    (void)argv;
    if (code == EXIT_DONE) {
        struct listing listing;

        listing_begin(&listing, &record_session,
                      "state,program,pid,host,started,silent,permits,obeys,operations");
        code = fleet_each(0, list_one, &listing);
        code = listing_end_fleet(&listing, code, common->json, "sessions",
                                 "no process has a session: no service and no worker is running");
    }
    fleet_end();
    return code;
}

const struct command command_ps = {
    .name = "ps",
    .summary = "list the processes that hold and compensate trades",
    .arguments = "[--json]",
    .text = "Lists sessions, oldest first: alive; silent for longer than their time-out; or\n"
            "ended, while what they held is not all opened yet.  PERMITS: so many sends each may\n"
            "have under way through channels that operators limit.\n",
    .run = run,
};
