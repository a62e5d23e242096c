/* tradelock inbox: what one operator proposed, and a second one has to confirm. */
#include "command.h"

#include "fields.h"
#include "fleet.h"
#include "proposals.h"

static int take_proposal(void *context, const tl_proposal *one)
{
    return listing_add(context, one);
}

static int list_one(tl_client *client, void *context)
{
    return fleet_told(proposals_list(client, take_proposal, context));
}

static int work(tl_client *client)
{
    return listing_run(client, &record_proposal,
                       "proposed,what,said,trade,fence,account,may,reason", "proposals",
                       "nothing waits for a second person", list_one);
}

const struct command command_inbox = {
    .name = "inbox",
    .summary = "list what waits for a second person",
    .arguments = "[--json]",
    .text = "Lists what one operator proposed and nobody confirmed: decisions about trades that\n"
            "are still as they were seen, findings of an audit to be closed, and a restored\n"
            "server to be accepted.  Whoever proposed it cannot confirm it.\n",
    .examples = "  tradelock inbox\n",
    .of = OF_SHARDS,
    .work = work,
};
