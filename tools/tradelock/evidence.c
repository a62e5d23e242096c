/* tradelock evidence: lists what was filed about a trade, and files what a person or a statement
 * knows. */
#include "command.h"

#include "evidence_statement.h"
#include "fields.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct request {
    tl_evidence evidence;
    struct filing filing; /* of a statement; its actor is that of one payment, too */
} request = {.evidence = {.version = TL_EVIDENCE_VERSION}};

/* ---------------------------------------------------------------------- add -- */

static int work_add(tl_client *client, const struct common *common, const tl_evidence *evidence,
                    const char *actor)
{
    tl_status status = tl_evidence_file(client, evidence, actor);
    const tl_key *key = &evidence->key;

    if (status != TL_OK && status != TL_IN_CONFLICT)
        return report(status);
    if (common->json)
        return print_json(json_pack("{s:s, s:s, s:s, s:s}", "serial_no", key->serial_no, "cust_no",
                                    key->cust_no, "op_code", key->op_code, "status",
                                    tl_status_name(status)),
                          status == TL_OK ? EXIT_DONE : EXIT_REFUSED);
    if (status == TL_IN_CONFLICT)
        return report(status);
    printf("%s is on record for %s %s %s.\n", evidence->outcome, key->serial_no, key->cust_no,
           key->op_code);
    return finish_output(EXIT_DONE);
}

static int run_add(const struct command *self, tl_client *client, const struct common *common)
{
    const tl_evidence *evidence = &request.evidence;

    if (evidence->outcome == NULL)
        return usage_error(self, "--outcome is missing");
    if (evidence->source == NULL)
        return usage_error(self, "--source is missing: it says who knows it");
    return work_add(client, common, evidence, request.filing.actor);
}

/* ----------------------------------------------------------------------- ls -- */

static int add_row(void *context, const tl_evidence_row *row)
{
    return listing_add_as(context, row, json_evidence(row));
}

static int work_ls(tl_client *client, const struct common *common, const tl_key *key)
{
    struct listing listing;
    tl_status status;

    listing_begin(&listing, &record_evidence, NULL);
    status = tl_evidence_list(client, key, add_row, &listing);
    return listing_end(&listing, status, common->json, "evidence",
                       "nothing was filed about this trade");
}

/* ---------------------------------------------------------------- statement -- */

static int run_statement(const struct command *self, const struct common *common)
{
    struct statement statement = {0};
    struct filing filing = request.filing;
    char problem[512];
    int code;

    filing.statement = &statement;
    filing.rules.is_filed = 1;
    filing.source = request.evidence.source;
    if (filing.source == NULL)
        return usage_error(self, "--source is missing: it says who knows it");
    if (needs_reason(self, filing.reason) != EXIT_DONE)
        return EXIT_USAGE;
    if (statement_read(&statement, filing.path, &filing.rules, problem, sizeof problem) != 0)
        return usage_error(self, "%s", problem);
    code = fleet_begin(common);
    if (code == EXIT_DONE)
        code = evidence_statement(common, &filing);
    fleet_end();
    statement_free(&statement);
    return code;
}

/* -------------------------------------------------------------------- command -- */

static int run_key(const struct command *self, const struct common *common, int adds, int argc,
                   char **argv)
{
    tl_evidence *evidence = &request.evidence;
    tl_client *client = NULL;
    int code = read_key(self, &evidence->key, argc, argv);

    if (code != EXIT_DONE)
        return code;
    if (request.filing.reason != NULL || request.filing.has_yes)
        return usage_error(self, "--reason and --yes go with --statement; --remark is for one "
                                 "payment");
    if (adds && (evidence->outcome == NULL || evidence->source == NULL))
        return run_add(self, NULL, common);
    code = fleet_begin(common);
    if (code == EXIT_DONE)
        code = fleet_owner(&client, evidence->key.cust_no);
    if (code == EXIT_DONE)
        code = adds ? run_add(self, client, common) : work_ls(client, common, &evidence->key);
    fleet_end();
    return code;
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";
    const int adds = strcmp(verb, "add") == 0;

    if (!adds && strcmp(verb, "ls") != 0)
        return usage_error(self, "evidence is for `add` and `ls`, not '%s'", verb);
    if (request.filing.path == NULL)
        return run_key(self, common, adds, argc - 1, argv + 1);
    if (!adds || argc > 1)
        return usage_error(self, "--statement goes with `add` and without a trade");
    return run_statement(self, common);
}

static const struct command_option options[] = {
    {"outcome WORD", "SUCCEEDED FAILED DECLINED ACCEPTED PENDING UNKNOWN NOT_SENT", OPTION_TEXT,
     .to = &request.evidence.outcome},
    {"final", "FAILED: the channel documents this answer as final", OPTION_FLAG,
     .to = &request.evidence.final},
    {"ref TEXT", "the channel's name of the payment", OPTION_TEXT,
     .to = &request.evidence.channel_ref},
    {"key KEY", "the channel key it is about (the row's)", OPTION_TEXT,
     .to = &request.evidence.channel_key},
    {"epoch N", "the epoch it is about (the row's)", OPTION_COUNT, .to = &request.evidence.epoch,
     .least = 1, .most = UINT32_MAX},
    {"source TEXT", "who says so, such as web-hook or statement 2026-03-01", OPTION_TEXT,
     .to = &request.evidence.source},
    {"remark TEXT", "for those who read it later", OPTION_TEXT, .to = &request.evidence.remark},
    {"statement FILE.csv",
     "what the channel paid, as `audit` reads it,\n"
     "with amount_minor and currency",
     OPTION_TEXT, .to = &request.filing.path},
    {"op OP", "the operation of its payments that name none", OPTION_TEXT,
     .to = &request.filing.rules.op_code},
    {"ignore NAMES", "columns that are not compared, with commas between", OPTION_TEXT,
     .to = &request.filing.rules.ignored},
    {"amount N", "how much was paid, in minor units", OPTION_NUMBER,
     .to = &request.evidence.amount.amount_minor, .given = &request.evidence.amount.is_told,
     .is = "a number of minor units"},
    {"currency CUR", "of this currency", OPTION_TEXT, .to = &request.evidence.amount.currency},
    OPTION_REASON_OF(&request.filing.reason, "why the statement is filed, for the record"),
    {"yes N", "file it, if it is N payments", OPTION_NUMBER, .to = &request.filing.yes,
     .given = &request.filing.has_yes, .is = "the number of payments"},
    OPTION_ACTOR_OF(&request.filing.actor, "who files it (the login name)"),
    {.name = NULL}};

const struct command command_evidence = {
    .name = "evidence",
    .summary = "file or list what web-hooks and statements say of a trade",
    .arguments = "add|ls SERIAL CUST OP [OPTION...] | add --statement FILE.csv",
    .text = "`add` appends what somebody else knows; nothing that was filed is ever "
            "changed.\n"
            "A trade in process is looked at at once, and success ends it as paid.  What\n"
            "contradicts the trade sets its conflict: success of one that failed, of an earlier\n"
            "epoch, of another amount, currency or payment, and a failure of one that succeeded.\n"
            "Then the exit code is 1, and nothing is sent or failed until operators have\n"
            "decided.  While a restore is open, success of a trade that was lost makes its row,\n"
            "as one that succeeded.  `ls` prints what was filed.\n"
            "\n"
            "A statement is a file of payments, each filed as SUCCEEDED unless that is known\n"
            "already.  First it shows how many, how much money, and ten of them; then it\n"
            "takes the number, typed on the terminal or by --yes.  A trade that moves on\n"
            "meanwhile is left alone (exit code 1).  Ctrl-C stops it between two payments,\n"
            "and the same again goes on.  `tradelock acts` tells what was done.\n",
    .options = options,
    .run = run,
    .takes_operands = 1,
};
