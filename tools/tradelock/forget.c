/* tradelock forget: one operator proposes to forget a customer, another confirms it. */
#include "command.h"

#include "fleet.h"
#include "fleet_map.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <string.h>

static const char *cust_no, *actor, *reason;
static int confirms;

static int work(tl_client *client)
{
    tl_forgotten done = {.trades = 0};
    const int code = fleet_owner(&client, cust_no);
    tl_status status;

    if (code != EXIT_DONE)
        return code;
    status = confirms ? tl_forget_confirm(client, cust_no, actor, reason, &done)
                      : tl_forget_propose(client, cust_no, actor, reason, &done);
    if (status != TL_OK)
        return report(status);
    return print_answer(
        json_pack("{s:s, s:s, s:b, s:I, s:I}", "cust_no", cust_no, "name", done.name, "confirmed",
                  confirms, "trades", (json_int_t)done.trades, "blanked", (json_int_t)done.blanked),
        EXIT_DONE,
        confirms && done.blanked < done.trades
            ? "Forgotten: the contents of %s trades of customer %s, who is %s in acts.\n"
              "Others keep theirs: they ended after the proposal, or were in use; propose anew.\n"
        : confirms ? "Forgotten: the contents of %s trades of customer %s, "
                     "who is %s in acts.\n"
                   : "Proposed to forget %s trades of customer %s, who is %s "
                     "in acts; another operator confirms\nit within seven days with "
                     "`tradelock forget confirm`, or nothing happens.\n",
        COUNT_TEXT(confirms ? done.blanked : done.trades), cust_no, done.name);
}

static int check(int argc, char **argv)
{
    const char *verb = argc == 1 ? argv[0] : "";

    confirms = strcmp(verb, "confirm") == 0;
    if (!confirms && strcmp(verb, "propose") != 0)
        return usage_error("forget is for `propose` and `confirm`, not '%s'",
                           argc > 0 ? argv[argc - 1] : "");
    if (cust_no == NULL)
        return usage_error("--cust is missing: it says whom");
    return needs_reason(reason);
}

static const struct command_option options[] = {
    {"cust C", "the customer", OPTION_TEXT, .to = &cust_no},
    OPTION_REASON_OF(&reason, "why, for the record, without a name or number of the customer"),
    OPTION_ACTOR_OF(&actor, WHO),
    {.name = NULL}};

const struct command command_forget = {
    .name = "forget",
    .summary = "blank what a customer's trades hold of a person, as two operators",
    .arguments = "propose|confirm --cust C --reason TEXT",
    .text = "One operator proposes, another confirms within seven days, each with a database\n"
            "account of their own.  What had ended when it was proposed loses payload, result,\n"
            "label, trace context, remarks and reasons.  Money, references, fingerprints,\n"
            "moments and accounts stay, and a repeated request is answered as before.  Nothing\n"
            "happens while a trade of the customer is in process, parked or in conflict, or may\n"
            "be tried anew.  The acts name the customer by a hash.  Archives and backups are\n"
            "not reached: tools/PRIVACY.md says where personal data stands.\n",
    .examples = "  tradelock forget propose --cust C1001 --reason letter\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
