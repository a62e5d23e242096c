/* tradelock inbox: what one operator proposed, and a second one has to confirm. */
#include "command.h"

#include "fields.h"
#include "fleet.h"

#include <tradelock/admin.h>

static int take_proposal(void *context, const tl_proposal *one)
{
    return listing_add(context, one);
}

/* A restored server is accepted by two, too. */
static tl_status add_restore(tl_client *client, struct listing *listing)
{
    tl_restore restore = TL_RESTORE_INIT;
    tl_status status = tl_restore_status(client, &restore, NULL, NULL);
    const tl_proposal one = {.what = "restore",
                             .key = {"", "", ""},
                             .said = "accept",
                             .reason = restore.proposal,
                             .actor = restore.proposer,
                             .account = restore.proposer_account,
                             .own = restore.own_proposal,
                             .proposed_us = restore.proposed_us};

    if (status == TL_OK && restore.open && restore.proposed_us != 0)
        (void)listing_add(listing, &one);
    return status;
}

static int list_one(tl_client *client, void *context)
{
    tl_status status = tl_inbox(client, take_proposal, context);

    if (status == TL_OK)
        status = add_restore(client, context);
    return fleet_told(status);
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
