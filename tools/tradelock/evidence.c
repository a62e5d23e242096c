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

enum {
    OPTION_OUTCOME = OPTION_OWN,
    OPTION_FINAL,
    OPTION_REF,
    OPTION_KEY,
    OPTION_EPOCH,
    OPTION_SOURCE,
    OPTION_REMARK,
    OPTION_STATEMENT,
    OPTION_OP,
    OPTION_IGNORE,
    OPTION_AMOUNT,
    OPTION_CURRENCY,
    OPTION_REASON,
    OPTION_ACTOR,
    OPTION_YES
};

struct request {
    tl_evidence evidence;
    struct filing filing; /* of a statement; its actor is that of one payment, too */
};

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

static int take_option(const struct command *self, struct request *request, int option)
{
    tl_evidence *evidence = &request->evidence;
    struct filing *filing = &request->filing;
    uint64_t epoch;

    switch (option) {
    case OPTION_OUTCOME:
        evidence->outcome = optarg;
        break;
    case OPTION_FINAL:
        evidence->final = 1;
        break;
    case OPTION_REF:
        evidence->channel_ref = optarg;
        break;
    case OPTION_KEY:
        evidence->channel_key = optarg;
        break;
    case OPTION_SOURCE:
        evidence->source = optarg;
        break;
    case OPTION_REMARK:
        evidence->remark = optarg;
        break;
    case OPTION_STATEMENT:
        filing->path = optarg;
        break;
    case OPTION_OP:
        filing->rules.op_code = optarg;
        break;
    case OPTION_IGNORE:
        filing->rules.ignored = optarg;
        break;
    case OPTION_AMOUNT:
        evidence->amount.is_told = 1;
        if (!read_number(optarg, INT64_MAX, &epoch))
            return usage_error(self, "--amount is a number of minor units, not %s", optarg);
        evidence->amount.amount_minor = (int64_t)epoch;
        break;
    case OPTION_CURRENCY:
        evidence->amount.currency = optarg;
        break;
    case OPTION_REASON:
        filing->reason = optarg;
        break;
    case OPTION_ACTOR:
        filing->actor = optarg;
        break;
    case OPTION_YES:
        filing->has_yes = 1;
        if (!read_number(optarg, UINT64_MAX, &filing->yes))
            return usage_error(self, "--yes is the number of payments, not %s", optarg);
        break;
    default:
        if (!read_number(optarg, UINT32_MAX, &epoch) || epoch == 0)
            return usage_error(self, "--epoch is a number from 1, not %s", optarg);
        evidence->epoch = (uint32_t)epoch;
    }
    return EXIT_DONE;
}

static int read_options(const struct command *self, struct common *common, struct request *request,
                        int argc, char **argv, int *code)
{
    static const struct option options[] = {
        {"outcome", required_argument, NULL, OPTION_OUTCOME},
        {"final", no_argument, NULL, OPTION_FINAL},
        {"ref", required_argument, NULL, OPTION_REF},
        {"key", required_argument, NULL, OPTION_KEY},
        {"epoch", required_argument, NULL, OPTION_EPOCH},
        {"source", required_argument, NULL, OPTION_SOURCE},
        {"remark", required_argument, NULL, OPTION_REMARK},
        {"statement", required_argument, NULL, OPTION_STATEMENT},
        {"op", required_argument, NULL, OPTION_OP},
        {"ignore", required_argument, NULL, OPTION_IGNORE},
        {"amount", required_argument, NULL, OPTION_AMOUNT},
        {"currency", required_argument, NULL, OPTION_CURRENCY},
        {"reason", required_argument, NULL, OPTION_REASON},
        {"actor", required_argument, NULL, OPTION_ACTOR},
        {"yes", required_argument, NULL, OPTION_YES},
        COMMON_OPTIONS,
        {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, common, argc, argv, options, code)) >= 0) {
        *code = take_option(self, request, option);
        if (*code != EXIT_DONE)
            return 0;
    }
    return option != COMMON_STOP;
}

static int run_add(const struct command *self, tl_client *client, const struct common *common,
                   const struct request *request)
{
    const tl_evidence *evidence = &request->evidence;

    if (evidence->outcome == NULL)
        return usage_error(self, "--outcome is missing");
    if (evidence->source == NULL)
        return usage_error(self, "--source is missing: it says who knows it");
    return work_add(client, common, evidence, request->filing.actor);
}

/* ----------------------------------------------------------------------- ls -- */

static int add_row(void *context, const tl_evidence_row *row)
{
    struct listing *listing = context;
    char when[TIME_TEXT], epoch[16], paid[AMOUNT_TEXT] = "";

    json_array_append_new(listing->rows, json_evidence(row));
    snprintf(epoch, sizeof epoch, "%u", row->epoch);
    if (row->amount.is_told)
        snprintf(paid, sizeof paid, "%" PRId64 " %s", row->amount.amount_minor,
                 row->amount.currency != NULL ? row->amount.currency : "");
    table_add(listing->table, time_text(when, row->filed_us), epoch, row->outcome,
              row->final ? "final" : "", paid, row->channel_ref != NULL ? row->channel_ref : "",
              row->source, row->remark != NULL ? row->remark : "");
    return 0;
}

static int work_ls(tl_client *client, const struct common *common, const tl_key *key)
{
    struct listing listing = {
        table_new("FILED", "EPOCH", "OUTCOME", "FINAL", "PAID", "REF", "SOURCE", "REMARK", NULL),
        json_array()};
    const tl_status status = tl_evidence_list(client, key, add_row, &listing);

    return listing_end(&listing, status, common->json, "evidence",
                       "nothing was filed about this trade");
}

/* ---------------------------------------------------------------- statement -- */

static int run_statement(const struct command *self, const struct common *common,
                         const struct request *request)
{
    struct statement statement = {0};
    struct filing filing = request->filing;
    char problem[512];
    int code;

    filing.statement = &statement;
    filing.rules.is_filed = 1;
    filing.source = request->evidence.source;
    if (filing.source == NULL)
        return usage_error(self, "--source is missing: it says who knows it");
    if (filing.reason == NULL || filing.reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
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

static int run_key(const struct command *self, const struct common *common, struct request *request,
                   int adds, int argc, char **argv)
{
    tl_evidence *evidence = &request->evidence;
    tl_client *client = NULL;
    int code = EXIT_DONE;

    if (!read_key(self, &evidence->key, argc, argv, &code))
        return code;
    if (request->filing.reason != NULL || request->filing.has_yes)
        return usage_error(self, "--reason and --yes go with --statement; --remark is for one "
                                 "payment");
    if (adds && (evidence->outcome == NULL || evidence->source == NULL))
        return run_add(self, NULL, common, request);
    code = fleet_begin(common);
    if (code == EXIT_DONE)
        code = fleet_owner(&client, evidence->key.cust_no);
    if (code == EXIT_DONE)
        code =
            adds ? run_add(self, client, common, request) : work_ls(client, common, &evidence->key);
    fleet_end();
    return code;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct request request = {.evidence = {.version = TL_EVIDENCE_VERSION},
                              .filing = {.actor = person()}};
    struct common common = {0};
    const char *verb;
    int adds, code = EXIT_DONE;

    if (!read_options(self, &common, &request, argc, argv, &code))
        return code;
    verb = optind < argc ? argv[optind++] : "";
    adds = strcmp(verb, "add") == 0;
    if (!adds && strcmp(verb, "ls") != 0)
        return usage_error(self, "evidence is for `add` and `ls`, not '%s'", verb);
    if (request.filing.path == NULL)
        return run_key(self, &common, &request, adds, argc, argv);
    if (!adds || optind < argc)
        return usage_error(self, "--statement goes with `add` and without a trade");
    return run_statement(self, &common, &request);
}

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
    .options = "  --outcome WORD  SUCCEEDED FAILED DECLINED ACCEPTED PENDING UNKNOWN NOT_SENT\n"
               "  --final         FAILED: the channel documents this answer as final\n"
               "  --ref TEXT      the channel's name of the payment\n"
               "  --key KEY       the channel key it is about (the row's)\n"
               "  --epoch N       the epoch it is about (the row's)\n"
               "  --source TEXT   who says so, such as web-hook or statement 2026-03-01\n"
               "  --remark TEXT   for those who read it later\n"
               "  --statement FILE.csv  what the channel paid, as `audit` reads it\n"
               "  --op OP         the operation of its payments that name none\n"
               "  --ignore NAMES  columns that are not compared, with commas between\n"
               "  --amount N      how much was paid, in minor units\n"
               "  --currency CUR  of this currency\n"
               "  --reason TEXT   why the statement is filed, for the record\n"
               "  --yes N         file it, if it is N payments\n"
               "  --actor NAME    who files it (the login name)\n",
    .run = run,
};
