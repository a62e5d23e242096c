/* tradelock evidence: lists what was filed about a trade, and files what a person or a statement
 * knows. */
#include "bulk.h"
#include "command.h"
#include "fields.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"
#include "statement_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files each payment of a bank's statement as evidence: shown first, then one by one. */

struct filing {
    struct statement *statement;
    const char *path;
    struct statement_rules rules;
    const char *source, *reason, *actor;
    int has_yes;
    uint64_t yes;
};

/* A payment that would be filed, as its trade was seen. */
struct seen {
    size_t payment;
    tl_payment_view paid;
};

struct preview {
    const struct filing *filing;
    struct bulk *bulk;
    struct seen *rows;
    int restored;       /* a trade that is not there is made */
    int is_ready;       /* it is known which payment is whose */
    size_t *first;      /* payment of each shard */
    uint64_t *of_shard; /* rows that would be filed */
    uint64_t known, unknown, contradicting, made;
    uint64_t standing;      /* known, and in conflict with the trade all the same */
    tl_list_end trades;     /* the money of those that it pays, each once */
    const tl_payment *last; /* that was told of */
    const tl_payment *paid; /* the first of its trade with a reference, which contradicts nothing */
};

static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static int compare(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "");
}

static int compare_payments(const void *left, const void *right)
{
    const tl_payment *a = left, *b = right;
    int order = compare(a->serial_no, b->serial_no);

    if (order == 0)
        order = compare(a->cust_no, b->cust_no);
    if (order == 0)
        order = compare(a->op_code, b->op_code);
    if (order == 0)
        order = compare(a->channel_key, b->channel_key);
    if (order == 0)
        order = compare(a->channel_ref, b->channel_ref);
    if (order == 0)
        order = compare(a->amount.currency, b->amount.currency);
    return order != 0 ? order
                      : (a->amount.amount_minor > b->amount.amount_minor) -
                            (a->amount.amount_minor < b->amount.amount_minor);
}

/* Whoever tells the same payment twice tells it once; how often that was. */
static uint64_t drop_repeated(struct statement *statement)
{
    const size_t before = statement->count;
    size_t kept = 0;

    if (before > 1)
        qsort(statement->payments, before, sizeof *statement->payments, compare_payments);
    for (size_t i = 0; i < before; i++)
        if (kept == 0 ||
            compare_payments(&statement->payments[kept - 1], &statement->payments[i]) != 0)
            statement->payments[kept++] = statement->payments[i];
    statement->count = kept;
    return before - kept;
}

static int is_of_same_trade(const tl_payment *a, const tl_payment *b)
{
    return compare(a->serial_no, b->serial_no) == 0 && compare(a->cust_no, b->cust_no) == 0 &&
           compare(a->op_code, b->op_code) == 0;
}

/* As the database compares references: all but blanks counts. */
static int is_same_reference(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " ");
        b += strspn(b, " ");
        if (*a != *b || *a == '\0')
            return *a == *b;
    }
}

/* Whether the file itself tells of another payment of the trade, which is filed before this one.
 * Payments of one trade stand together. */
static int is_second(struct preview *p, const tl_payment *payment)
{
    const char *ref = text_or_null(payment->channel_ref);

    if (ref == NULL || payment->amount.amount_minor < 0)
        return 0;
    if (p->paid != NULL && is_of_same_trade(p->paid, payment))
        return !is_same_reference(p->paid->channel_ref, ref);
    p->paid = payment;
    return 0;
}

static const char *effect(const tl_payment_view *paid)
{
    if (paid->contradicts)
        return "contradicts the trade: a conflict";
    if (paid->fence == 0)
        return "makes the trade, lost in a restore";
    return paid->status == 'P' ? "in process: is paid" : "is paid";
}

static void add_example(struct bulk *bulk, const tl_payment *payment, const tl_payment_view *paid)
{
    const tl_payment_amount *amount = &payment->amount;
    const char *currency = amount->currency != NULL ? amount->currency : "";
    char trade[TL_AMOUNT_TEXT], told[TL_AMOUNT_TEXT];

    tl_amount_text(trade, paid->amount_minor, paid->currency);
    tl_amount_text(told, amount->amount_minor, amount->currency);
    table_add(bulk->examples, payment->serial_no, payment->cust_no, payment->op_code, trade,
              amount->is_told ? told : currency,
              payment->channel_ref != NULL ? payment->channel_ref : "", effect(paid));
    json_array_append_new(
        bulk->examples_json,
        fleet_row(json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s}", "serial_no",
                            payment->serial_no, "cust_no", payment->cust_no, "op_code",
                            payment->op_code, "channel_ref", json_text(payment->channel_ref),
                            "paid_minor",
                            amount->is_told ? json_integer(amount->amount_minor) : json_null(),
                            "paid_currency", json_text(amount->currency), "fence",
                            json_unsigned(paid->fence), "effect", effect(paid))));
}

static void sum_trade(struct preview *p, const tl_payment *payment, const tl_payment_view *paid)
{
    if (paid->fence == 0 || payment->amount.amount_minor < 0)
        return;
    if (p->last == NULL || !is_of_same_trade(p->last, payment))
        tl_list_end_add(&p->trades, paid->currency, paid->amount_minor);
    p->last = payment;
}

static int take(void *context, const tl_payment_view *of)
{
    struct preview *p = context;
    const size_t number = p->first[fleet_at()] + of->number;
    const tl_payment *payment = &p->filing->statement->payments[number];
    tl_payment_view paid = *of;

    sum_trade(p, payment, &paid);
    if (paid.known) {
        p->known++;
        p->standing += paid.contradicts != 0;
        return 0;
    }
    if (paid.fence == 0 && (!p->restored || payment->amount.amount_minor < 0)) {
        p->unknown++;
        return 0;
    }
    paid.contradicts |= !paid.contradicts && is_second(p, payment);
    p->made += paid.fence == 0 && !paid.contradicts;
    p->contradicting += paid.contradicts != 0;
    /* The money that is taken for paid. */
    tl_list_end_add(&p->bulk->money, paid.contradicts ? "" : paid.currency, paid.amount_minor);
    if (p->bulk->count < BULK_EXAMPLES)
        add_example(p->bulk, payment, &paid);
    paid.currency = ""; /* not valid later */
    p->rows[p->bulk->count++] = (struct seen){number, paid};
    p->of_shard[fleet_at()]++;
    return 0;
}

static tl_status file_one(void *context, tl_client *client, uint64_t act_no, uint64_t row)
{
    const struct preview *p = context;
    const tl_payment *payment = &p->filing->statement->payments[p->rows[row].payment];
    const tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                                  .key = {payment->serial_no, payment->cust_no, payment->op_code},
                                  .outcome = "SUCCEEDED",
                                  .source = p->filing->source,
                                  .channel_key = text_or_null(payment->channel_key),
                                  .channel_ref = text_or_null(payment->channel_ref),
                                  .amount = payment->amount};

    return tl_act_evidence(client, act_no, row + 1, &evidence, &p->rows[row].paid);
}

static void name_row(const void *context, uint64_t row, tl_key *key)
{
    const struct preview *p = context;
    const tl_payment *payment = &p->filing->statement->payments[p->rows[row].payment];

    *key = (tl_key){payment->serial_no, payment->cust_no, payment->op_code};
}

static int is_of_row(tl_status status)
{
    return status == TL_LOST || status == TL_NOT_FOUND;
}

static void say_apart(char *to, size_t space, const struct preview *p, uint64_t repeated)
{
    p->bulk->apart_json =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "made", (json_int_t)p->made, "contradicting",
                  (json_int_t)p->contradicting, "known", (json_int_t)p->known, "unknown",
                  (json_int_t)p->unknown, "repeated", (json_int_t)repeated, "standing",
                  (json_int_t)p->standing);
    snprintf(
        to, space,
        "Of them %s contradict the row, and become conflicts for two operators; %s make\na "
        "trade that was lost.  Left alone: %s known already (%s as contradicting),\n%s without "
        "a trade, %s told twice.",
        COUNT_TEXT(p->contradicting), COUNT_TEXT(p->made), COUNT_TEXT(p->known),
        COUNT_TEXT(p->standing), COUNT_TEXT(p->unknown), COUNT_TEXT(repeated));
}

/* The rows of trades that are not there are made while a restore is open. */
static int look(tl_client *client, void *context)
{
    struct preview *p = context;
    const size_t *first = &p->first[fleet_at()];
    tl_restore restore = TL_RESTORE_INIT;
    tl_status status = tl_restore_status(client, &restore, NULL, NULL);

    p->restored = restore.open;
    if (status == TL_OK)
        status = tl_paid_list(client, p->filing->statement->payments + first[0],
                              first[1] - first[0], take, p);
    return fleet_told(status);
}

static tl_status make_room(struct preview *p)
{
    p->rows = calloc(p->filing->statement->count + 1, sizeof *p->rows);
    p->first = calloc(fleet_size() + 2, sizeof *p->first);
    p->of_shard = calloc(fleet_size() + 1, sizeof *p->of_shard);
    if (p->rows == NULL || p->first == NULL || p->of_shard == NULL)
        return tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    return TL_OK;
}

/* Which payment is whose.  What is of no shard that can be asked has no trade that could be seen. */
static tl_status split(struct preview *p, int *code)
{
    struct statement *statement = p->filing->statement;
    struct fleet_map map = {.count = 0};
    tl_status status;

    p->first[1] = statement->count;
    if (!fleet_is())
        return TL_OK;
    *code = fleet_map_read(&map);
    status = fleet_payments(&map, statement, p->first);
    p->unknown += p->first[fleet_size() + 1] - p->first[fleet_size()];
    fleet_map_free(&map);
    return status;
}

/* The exit code. */
static int look_at_all(struct preview *p)
{
    int code = EXIT_DONE;
    tl_status status = make_room(p);

    if (status == TL_OK)
        status = split(p, &code);
    if (status != TL_OK)
        return fleet_code(report(status), EXIT_DONE);
    p->is_ready = 1;
    return fleet_code(code, fleet_each(0, look, p));
}

/* After fleet_begin() it shows what it would file, and files it once that is agreed, each payment at
 * the shard that has its customer; returns the exit code. */
static int evidence_statement(const struct filing *filing)
{
    char said[1024], apart[256];
    struct bulk bulk = {.act = {.what = "evidence add",
                                .said = said,
                                .actor = filing->actor,
                                .reason = filing->reason},
                        .verb = "file success of",
                        .apart = apart,
                        .examples = table_new("SERIAL", "CUSTOMER", "OPERATION", "AMOUNT", "PAID",
                                              "REFERENCE", "EFFECT", NULL),
                        .examples_json = json_array(),
                        .each = file_one,
                        .name = name_row,
                        .is_of_row = is_of_row,
                        .has_yes = filing->has_yes,
                        .yes = filing->yes};
    struct statement *statement = filing->statement;
    struct preview preview = {.filing = filing, .bulk = &bulk, .trades = TL_LIST_END_INIT};
    uint64_t repeated;
    int code = statement_find(statement, 1, filing->path);

    bulk.context = &preview;
    preview.unknown = statement->unfound;
    repeated = drop_repeated(statement);
    snprintf(said, sizeof said, "--statement %.500s --source %s", filing->path, filing->source);
    if (code == EXIT_DONE || (fleet_is() && code != EXIT_USAGE))
        code = fleet_code(code, look_at_all(&preview));
    say_apart(apart, sizeof apart, &preview, repeated);
    if (preview.is_ready && common.json)
        json_object_set_new(
            bulk.apart_json, "statement",
            statement_json(statement, statement->payments, statement->count, &preview.trades));
    else if (preview.is_ready)
        statement_print(statement, statement->payments, statement->count, &preview.trades);
    bulk.of_shard = preview.of_shard;
    /* What the shards that answered have is filed: the same again files the rest. */
    if (code == EXIT_DONE || (fleet_is() && preview.is_ready))
        code = bulk_run(&bulk);
    if (code == EXIT_DONE &&
        preview.contradicting + preview.standing + preview.unknown + repeated > 0)
        code = EXIT_REFUSED;
    table_free(bulk.examples);
    json_decref(bulk.examples_json);
    json_decref(bulk.apart_json);
    json_decref(bulk.left_out);
    free(preview.rows);
    free(preview.first);
    free(preview.of_shard);
    return code;
}

static struct request {
    tl_evidence evidence;
    struct filing filing; /* of a statement; its actor is that of one payment, too */
} request = {.evidence = {.version = TL_EVIDENCE_VERSION}};

static int add_one(tl_client *client)
{
    const tl_evidence *evidence = &request.evidence;
    const tl_key *key = &evidence->key;
    const tl_status status = tl_evidence_file(client, evidence, request.filing.actor);

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
    struct filing *filing = &request.filing;
    char problem[640];

    filing->statement = &statement;
    filing->rules.is_filed = 1;
    filing->rules.currency = request.evidence.amount.currency;
    if (filing->rules.profile != NULL && (filing->rules.config_file = command_config()) == NULL)
        return EXIT_USAGE;
    filing->source = request.evidence.source;
    if (filing->source == NULL)
        return usage_error("--source is missing: it says who knows it");
    if (needs_reason(filing->reason) != EXIT_DONE)
        return EXIT_USAGE;
    if (statement_read(&statement, filing->path, &filing->rules, problem, sizeof problem) != 0)
        return usage_error("%s", problem);
    return EXIT_DONE;
}

static int check(int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";
    const tl_evidence *evidence = &request.evidence;

    adds = strcmp(verb, "add") == 0;
    if (!adds && strcmp(verb, "ls") != 0)
        return usage_error("evidence is for `add` and `ls`, not '%s'", verb);
    if (request.filing.path != NULL && (!adds || argc > 1))
        return usage_error("--statement goes with `add` and without a trade");
    if (request.filing.path != NULL)
        return check_statement();
    if (read_key(&request.evidence.key, argc - 1, argv + 1) != EXIT_DONE)
        return EXIT_USAGE;
    if (request.filing.reason != NULL || request.filing.has_yes)
        return usage_error("--reason and --yes go with --statement; --remark is for one payment");
    if (adds && evidence->outcome == NULL)
        return usage_error("--outcome is missing");
    if (adds && evidence->source == NULL)
        return usage_error("--source is missing: it says who knows it");
    return EXIT_DONE;
}

static int work(tl_client *client)
{
    int code;

    if (request.filing.path != NULL) {
        code = evidence_statement(&request.filing);
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
     OPTION_TEXT, .to = &request.filing.path},
    {"op OP", "the operation of its payments that name none", OPTION_TEXT,
     .to = &request.filing.rules.op_code},
    {"channel NAME",
     "the channel that paid; a line wants it that names\n"
     "neither a channel key nor a customer",
     OPTION_TEXT, .to = &request.filing.rules.channel},
    STATEMENT_OPTIONS(request.filing.rules),
    {"amount N", "how much was paid, in minor units", OPTION_NUMBER,
     .to = &request.evidence.amount.amount_minor, .given = &request.evidence.amount.is_told,
     .is = "a number of minor units"},
    {"currency CUR", "of this currency; so are its amounts that name none", OPTION_TEXT,
     .to = &request.evidence.amount.currency},
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
