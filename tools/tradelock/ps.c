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
    return fleet_told(tl_session_list(client, add_row, context));
}

static int work(tl_client *client)
{
    return listing_run(client, &record_session,
                       "state,program,pid,host,started,silent,permits,obeys,operations", "sessions",
                       "no process has a session: no service and no worker is running", list_one);
}

const struct command command_ps = {
    .name = "ps",
    .summary = "list the processes that hold and compensate trades",
    .arguments = "[--json]",
    .text = "Lists sessions, oldest first: alive; silent for longer than their time-out; or\n"
            "ended, while what they held is not all opened yet.  PERMITS: so many sends each may\n"
            "have under way through channels that operators limit.\n",
    .examples = "  tradelock ps\n",
    .of = OF_SHARDS,
    .work = work,
};
