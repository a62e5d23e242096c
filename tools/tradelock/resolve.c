/* tradelock resolve: one operator proposes a decision, another confirms it. */
#include "command.h"

#include "fields.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"
#include "said.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

static tl_resolution resolution = {.version = TL_RESOLUTION_VERSION};
static int has_fence, confirms, lists;

static int take_verdict(const char *value, void *to)
{
    static const tl_decision decisions[] = {TL_DECISION_CLEAR, TL_DECISION_PAID,
                                            TL_DECISION_FAILED};

    for (size_t i = 0; i < sizeof decisions / sizeof decisions[0]; i++)
        if (strcmp(value, tl_decision_name(decisions[i])) == 0) {
            *(tl_decision *)to = decisions[i];
            return EXIT_DONE;
        }
    return usage_error("--as is clear, paid or failed, not %s", value);
}

static int decide(tl_client *client)
{
    static const char *const next[] = {
        "another operator confirms it with `tradelock resolve confirm`, or nothing happens",
        "a worker that has the operation registered asks the channel, where that can be, and "
        "carries it out, with its books"};
    const tl_key *key = &resolution.key;
    const char *verdict = tl_decision_name(resolution.decision);
    struct said said = {.when_us = 0};
    char sentence[SAID_SENTENCE];
    /* Without the right to read the log nothing is known of it. */
    tl_status status = said_read(client, key, &said);

    if (status == TL_OK || status == TL_ACCESS_DENIED)
        status = confirms ? tl_resolution_confirm(client, &resolution)
                          : tl_resolution_propose(client, &resolution);
    if (status != TL_OK)
        return report(status);
    return print_answer(
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:o, s:o}", "serial_no", key->serial_no,
                  "cust_no", key->cust_no, "op_code", key->op_code, "verdict", verdict, "confirmed",
                  confirms, "status", tl_status_name(status), "channel_said", json_text(said.text),
                  "channel_said_at", json_time(said.when_us)),
        EXIT_DONE, "%s for %s %s %s: %s; %s.\nThe channel last said: %s.\n",
        confirms ? "Decided" : "Proposed", key->serial_no, key->cust_no, key->op_code, verdict,
        confirms && resolution.decision == TL_DECISION_CLEAR
            ? "nothing contradicts the row any more"
            : next[confirms],
        said_text(sentence, &said));
}

static int add_row(void *context, const tl_resolution_row *row)
{
    return listing_add(context, row);
}

static int read_decisions(tl_client *client, void *context)
{
    return fleet_told(tl_resolution_list(client, &resolution.key, add_row, context));
}

static int check(int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";

    lists = strcmp(verb, "ls") == 0;
    confirms = strcmp(verb, "confirm") == 0;
    if (!confirms && !lists && strcmp(verb, "propose") != 0)
        return usage_error("resolve is for `propose`, `confirm` and `ls`, not '%s'", verb);
    if (read_key(&resolution.key, argc - 1, argv + 1) != EXIT_DONE)
        return EXIT_USAGE;
    if (lists)
        return EXIT_DONE;
    if (tl_decision_name(resolution.decision)[0] == '\0')
        return usage_error("--as is missing: clear, paid or failed");
    if (!has_fence)
        return usage_error("--fence is missing: it says which state of the trade you saw, and "
                           "`tradelock show` prints it");
    if (needs_reason(resolution.reason) != EXIT_DONE)
        return EXIT_USAGE;
    if (resolution.although_pending && (!confirms || resolution.decision != TL_DECISION_FAILED))
        return usage_error("--although-pending is said by whoever confirms that a trade failed");
    return EXIT_DONE;
}

static int work(tl_client *client)
{
    const int code = fleet_owner(&client, resolution.key.cust_no);

    if (code != EXIT_DONE)
        return code;
    return lists ? listing_run(client, &record_resolution, NULL, "resolutions",
                               "no operator decided anything about this trade", read_decisions)
                 : decide(client);
}

static const struct command_option options[] = {
    {"as clear", "the conflict is cleared: the evidence was wrong", OPTION_OTHER,
     .to = &resolution.decision, .take = take_verdict},
    {"as paid", "a failure in conflict was paid after all", OPTION_OTHER,
     .to = &resolution.decision, .take = take_verdict},
    {"as failed", "a trade in doubt, or parked, failed: no money moved or will", OPTION_OTHER,
     .to = &resolution.decision, .take = take_verdict},
    {"fence N", "the fence of the row as `tradelock show` printed it", OPTION_NUMBER,
     .to = &resolution.fence, .given = &has_fence, .is = "a number as `tradelock show` prints it"},
    OPTION_REASON_OF(&resolution.reason, WHY),
    OPTION_ACTOR_OF(&resolution.actor, WHO),
    {"although-pending", "confirm: book `failed` although the channel says pending", OPTION_FLAG,
     .to = &resolution.although_pending},
    {.name = NULL}};

const struct command command_resolve = {
    .name = "resolve",
    .summary = "decide a trade that no rule can, as two operators",
    .arguments = "propose|confirm|ls SERIAL CUST OP [OPTION...]",
    .text = "One operator proposes, another confirms, each with a database account of their "
            "own;\n"
            "the server tells them apart.  Both are bound to the fence that they saw: when "
            "the\n"
            "trade has moved on in between, nothing happens.  A proposal alone changes "
            "nothing.\n"
            "`failed` and `paid` are carried out by a worker that has the operation "
            "registered,\n"
            "with the business rows in the same transaction; nothing is sent any more.  A "
            "trade\n"
            "that succeeded stays so.  Before `failed` is booked a channel that can be asked "
            "is\n"
            "asked: what it paid becomes paid, what it calls pending is not carried out, and "
            "the\n"
            "trade is parked.  `ls` prints who proposed and who confirmed what, and what was "
            "not\n"
            "carried out.\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
