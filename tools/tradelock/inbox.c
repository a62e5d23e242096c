/* tradelock inbox: what one operator proposed, and a second one has to confirm. */
#include "command.h"

#include "fleet.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

static void add(struct listing *listing, const tl_proposal *one)
{
    char when[TIME_TEXT], trade[160], fence[24] = "";

    snprintf(trade, sizeof trade, "%s %s %s", one->key.serial_no, one->key.cust_no,
             one->key.op_code);
    if (one->fence != 0)
        snprintf(fence, sizeof fence, "%llu", (unsigned long long)one->fence);
    table_add(listing->table, time_text(when, one->proposed_us), one->what, one->said, trade, fence,
              one->account, one->own ? "no, a second person" : "yes", one->reason);
    json_array_append_new(
        listing->rows,
        fleet_row(json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:b}",
                            "proposed_at", json_time(one->proposed_us), "what", one->what, "said",
                            one->said, "serial_no", json_text(one->key.serial_no), "cust_no",
                            json_text(one->key.cust_no), "op_code", json_text(one->key.op_code),
                            "fence", one->fence != 0 ? json_unsigned(one->fence) : json_null(),
                            "account", one->account, "actor", one->actor, "reason", one->reason,
                            "own", one->own)));
}

static int take_proposal(void *context, const tl_proposal *one)
{
    add(context, one);
    return 0;
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
        add(listing, &one);
    return status;
}

static int list_one(tl_client *client, void *context)
{
    tl_status status = tl_inbox(client, take_proposal, context);

    if (status == TL_OK)
        status = add_restore(client, context);
    return status == TL_OK ? EXIT_DONE : fleet_missed(status);
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    int code = fleet_begin(common);

    (void)self;
    (void)argc;
    (void)argv;
    if (code == EXIT_DONE) {
        struct listing listing = {
            table_new("PROPOSED", "WHAT", "AS", "TRADE", "FENCE", "BY", "YOU MAY", "REASON", NULL),
            json_array()};

        code = fleet_each(0, list_one, &listing);
        code = listing_end_fleet(&listing, code, common->json, "proposals",
                                 "nothing waits for a second person");
    }
    fleet_end();
    return code;
}

const struct command command_inbox = {
    .name = "inbox",
    .summary = "list what waits for a second person",
    .arguments = "[--json]",
    .text = "Lists what one operator proposed and nobody confirmed: decisions about trades that\n"
            "are still as they were seen, findings of an audit to be closed, and a restored\n"
            "server to be accepted.  Whoever proposed it cannot confirm it.\n",
    .run = run,
};
