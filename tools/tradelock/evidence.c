/* tradelock evidence: lists what was filed about a trade, and files what a person or a statement
 * knows. */
#include "bulk.h"
#include "command.h"
#include "fields.h"
#include "filing.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"
#include "statement_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files each payment of a bank's statement as evidence: shown first, then one by one. */

struct asked {
    struct statement *statement;
    const char *path;
    struct statement_rules rules;
    const char *source, *reason, *actor;
    int has_yes;
    uint64_t yes;
};

struct preview {
    const struct asked *asked;
    struct filing filing;
    struct listing examples;
    size_t *first;      /* payment of each shard */
    uint64_t *of_shard; /* rows that would be filed */
    int is_ready;       /* it is known which payment is whose */
};

static tl_status file_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct preview *p = context;

    return filing_one(&p->filing.rows[row], client, act_no, row + 1, p->asked->source);
}

static void name_row(const void *context, uint64_t row, tl_key *key)
{
    const struct filing_row *at = &((const struct preview *)context)->filing.rows[row];

    *key = (tl_key){at->serial_no, at->cust_no, at->op_code};
}

static json_t *apart_json(const struct filing *filing)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "made", (json_int_t)filing->made,
                     "contradicting", (json_int_t)filing->contradicting, "known",
                     (json_int_t)filing->known, "unknown", (json_int_t)filing->unknown, "repeated",
                     (json_int_t)filing->repeated, "standing", (json_int_t)filing->standing);
}

static int look(tl_client *client, void *context)
{
    struct preview *p = context;
    const size_t *first = &p->first[fleet_at()];
    const size_t before = p->filing.count;
    const tl_status status = filing_look(
        &p->filing, client, p->asked->statement->payments + first[0], first[1] - first[0]);

    for (size_t i = before; i < p->filing.count && i < BULK_EXAMPLES; i++)
        listing_add(&p->examples, &p->filing.rows[i]);
    p->of_shard[fleet_at()] += p->filing.count - before;
    return fleet_told(status);
}

/* Which payment is whose.  What is of no shard that can be asked has no trade that could be seen. */
static tl_status split(struct preview *p, int *code)
{
    struct statement *statement = p->asked->statement;
    struct fleet_map map = {.count = 0};
    tl_status status;

    p->first[1] = statement->count;
    if (!fleet_is())
        return TL_OK;
    *code = fleet_map_read(&map);
    status = fleet_payments(&map, statement, p->first);
    p->filing.unknown += p->first[fleet_size() + 1] - p->first[fleet_size()];
    fleet_map_free(&map);
    return status;
}

/* The exit code. */
static int look_at_all(struct preview *p)
{
    int code = EXIT_DONE;
    tl_status status = TL_OK;

    p->first = calloc(fleet_size() + 2, sizeof *p->first);
    p->of_shard = calloc(fleet_size() + 1, sizeof *p->of_shard);
    if (p->filing.rows == NULL || p->first == NULL || p->of_shard == NULL)
        status = tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    if (status == TL_OK)
        status = split(p, &code);
    if (status != TL_OK)
        return fleet_code(report(status), EXIT_DONE);
    p->is_ready = 1;
    return fleet_code(code, fleet_each(0, look, p));
}

/* After fleet_begin() it shows what it would file, and files it once that is agreed, each payment at
 * the shard that has its customer; returns the exit code. */
static int evidence_statement(const struct asked *asked)
{
    char said[1024], apart[FILING_APART];
    struct preview preview = {.asked = asked};
    const struct filing *filing = &preview.filing;
    struct bulk bulk = {.run = {.act = {.what = "evidence add",
                                        .said = said,
                                        .actor = asked->actor,
                                        .reason = asked->reason},
                                .each = file_one,
                                .is_of_row = filing_is_of_row,
                                .context = &preview},
                        .verb = "file success of",
                        .apart = apart,
                        .name = name_row,
                        .has_yes = asked->has_yes,
                        .yes = asked->yes};
    struct statement *statement = asked->statement;
    int code = statement_find(statement, 1, asked->path);

    listing_begin(&preview.examples, &record_filing, NULL);
    snprintf(said, sizeof said, "--statement %.500s --source %s", asked->path, asked->source);
    (void)filing_begin(&preview.filing, statement); /* without memory there are no rows */
    if (code == EXIT_DONE || (fleet_is() && code != EXIT_USAGE))
        code = fleet_code(code, look_at_all(&preview));
    filing_apart(apart, filing);
    bulk.apart_json = apart_json(filing);
    if (preview.is_ready && common.json)
        json_object_set_new(
            bulk.apart_json, "statement",
            statement_json(statement, statement->payments, statement->count, &filing->trades));
    else if (preview.is_ready)
        statement_print(statement, statement->payments, statement->count, &filing->trades);
    bulk.count = filing->count;
    bulk.money = filing->money;
    bulk.of_shard = preview.of_shard;
    bulk.examples = preview.examples.table;
    bulk.examples_json = preview.examples.rows;
    /* What the shards that answered have is filed: the same again files the rest. */
    if (code == EXIT_DONE || (fleet_is() && preview.is_ready))
        code = bulk_run(&bulk);
    if (code == EXIT_DONE &&
        filing->contradicting + filing->standing + filing->unknown + filing->repeated > 0)
        code = EXIT_REFUSED;
    listing_free(&preview.examples);
    json_decref(bulk.apart_json);
    json_decref(bulk.left_out);
    filing_free(&preview.filing);
    free(preview.first);
    free(preview.of_shard);
    return code;
}

static struct request {
    tl_evidence evidence;
    const char *amount; /* as it was typed */
    struct asked asked; /* of a statement; its actor is that of one payment, too */
} request = {.evidence = {.version = TL_EVIDENCE_VERSION}};

static int add_one(tl_client *client)
{
    const tl_evidence *evidence = &request.evidence;
    const tl_key *key = &evidence->key;
    const tl_status status = tl_evidence_file(client, evidence, request.asked.actor);

    if (status != TL_OK && (status != TL_IN_CONFLICT || !common.json))
        return report(status);
    return print_answer(json_pack("{s:s, s:s, s:s, s:s}", "serial_no", key->serial_no, "cust_no",
                                  key->cust_no, "op_code", key->op_code, "status",
                                  tl_status_name(status)),
                        exit_code_of(status), "%s is on record for %s %s %s.\n", evidence->outcome,
                        key->serial_no, key->cust_no, key->op_code);
}

static int add_row(void *context, const tl_evidence_row *row)
{
    return listing_add_as(context, row, json_evidence(row));
}

static int read_filed(tl_client *client, void *context)
{
    return fleet_told(tl_evidence_list(client, &request.evidence.key, add_row, context));
}

static int adds;
static struct statement statement;

static int check_statement(void)
{
    struct asked *asked = &request.asked;
    char problem[640];

    asked->statement = &statement;
    asked->rules.is_filed = 1;
    asked->rules.currency = request.evidence.amount.currency;
    if (asked->rules.profile != NULL && (asked->rules.config_file = command_config()) == NULL)
        return EXIT_USAGE;
    asked->source = request.evidence.source;
    if (asked->source == NULL)
        return usage_error("--source is missing: it says who knows it");
    if (needs_reason(asked->reason) != EXIT_DONE)
        return EXIT_USAGE;
    if (statement_read(&statement, asked->path, &asked->rules, problem, sizeof problem) != 0)
        return usage_error("%s", problem);
    return EXIT_DONE;
}

/* EXIT_DONE, or what is wrong with the amount was said. */
static int check_amount(void)
{
    static char currency[TL_CURRENCY + 1];
    tl_payment_amount *amount = &request.evidence.amount;
    tl_status status;

    if (request.amount == NULL)
        return EXIT_DONE;
    status = tl_amount_read(request.amount, amount->currency, &amount->amount_minor, currency);
    if (status != TL_OK)
        return usage_error("--%s", tl_error_message());
    amount->is_told = 1;
    amount->currency = currency;
    return EXIT_DONE;
}

static int check(int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";
    const tl_evidence *evidence = &request.evidence;

    adds = strcmp(verb, "add") == 0;
    if (!adds && strcmp(verb, "ls") != 0)
        return usage_error("evidence is for `add` and `ls`, not '%s'", verb);
    if (request.asked.path != NULL && (!adds || argc > 1))
        return usage_error("--statement goes with `add` and without a trade");
    if (request.asked.path != NULL)
        return check_statement();
    if (read_key(&request.evidence.key, argc - 1, argv + 1) != EXIT_DONE)
        return EXIT_USAGE;
    if (request.asked.reason != NULL || request.asked.has_yes)
        return usage_error("--reason and --yes go with --statement; --remark is for one payment");
    if (adds && evidence->outcome == NULL)
        return usage_error("--outcome is missing");
    if (adds && evidence->source == NULL)
        return usage_error("--source is missing: it says who knows it");
    return check_amount();
}

static int work(tl_client *client)
{
    int code;

    if (request.asked.path != NULL) {
        code = evidence_statement(&request.asked);
        statement_free(&statement);
        return code;
    }
    code = fleet_owner(&client, request.evidence.key.cust_no);
    if (code != EXIT_DONE)
        return code;
    return adds ? add_one(client)
                : listing_run(client, &record_evidence, NULL, "evidence",
                              "nothing was filed about this trade", read_filed);
}

static const struct command_option options[] = {
    {"outcome OUTCOME", "SUCCEEDED FAILED DECLINED ACCEPTED PENDING UNKNOWN NOT_SENT", OPTION_TEXT,
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
     OPTION_TEXT, .to = &request.asked.path},
    {"op OP", "the operation of its payments that name none", OPTION_TEXT,
     .to = &request.asked.rules.op_code},
    {"channel NAME",
     "the channel that paid; a line wants it that names\n"
     "neither a channel key nor a customer",
     OPTION_TEXT, .to = &request.asked.rules.channel},
    STATEMENT_OPTIONS(request.asked.rules),
    {"amount MONEY", "how much was paid: '1,250.00 EUR'", OPTION_TEXT, .to = &request.amount},
    {"currency CUR", "of amounts that name none", OPTION_TEXT,
     .to = &request.evidence.amount.currency},
    OPTION_REASON_OF(&request.asked.reason, "why the statement is filed, for the record"),
    {"yes N", "file it, if it is N payments", OPTION_NUMBER, .to = &request.asked.yes,
     .given = &request.asked.has_yes, .is = "the number of payments"},
    OPTION_ACTOR_OF(&request.asked.actor, "who files it (the login name)"),
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
            "meanwhile is left alone, and what stands in the file twice is filed once: the\n"
            "channel may have paid twice (exit code 1).  Ctrl-C stops it between two payments,\n"
            "and the same again goes on.  `tradelock acts` tells what was done.\n",
    .examples = "  tradelock evidence add W1 C1 WITHDRAW --outcome SUCCEEDED --source bank\n"
                "  tradelock evidence add --statement 3-march.csv --source bank --reason daily\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
    .takes_operands = 1,
};
