/* Files each payment of a bank's statement as evidence: shown first, then one by one. */
#include "evidence_statement.h"

#include "bulk.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    uint64_t standing; /* known, and in conflict with the trade all the same */
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

/* Whoever tells the same payment twice tells it once. */
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

static const char *effect(const tl_payment_view *paid)
{
    if (paid->fence == 0)
        return "makes the trade, lost in a restore";
    if (paid->contradicts)
        return "contradicts the trade: a conflict";
    return paid->status == 'P' ? "in process: is paid" : "is paid";
}

static void add_example(struct bulk *bulk, const tl_payment *payment, const tl_payment_view *paid)
{
    const tl_payment_amount *amount = &payment->amount;
    const char *currency = amount->currency != NULL ? amount->currency : "";
    char trade[AMOUNT_TEXT], told[AMOUNT_TEXT];

    amount_text(trade, paid->amount_minor, paid->currency);
    amount_text(told, amount->amount_minor, amount->currency);
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

static int take(void *context, const tl_payment_view *paid)
{
    struct preview *p = context;
    const size_t number = p->first[fleet_at()] + paid->number;
    const tl_payment *payment = &p->filing->statement->payments[number];

    if (paid->known) {
        p->known++;
        p->standing += paid->contradicts != 0;
        return 0;
    }
    if (paid->fence == 0 && (!p->restored || payment->amount.amount_minor < 0)) {
        p->unknown++;
        return 0;
    }
    p->made += paid->fence == 0;
    p->contradicting += paid->fence != 0 && paid->contradicts;
    p->rows[p->bulk->count] = (struct seen){number, *paid};
    p->rows[p->bulk->count++].paid.currency = ""; /* not valid later */
    p->of_shard[fleet_at()]++;
    /* The money that is taken for paid. */
    tl_list_end_add(&p->bulk->money, paid->contradicts ? "" : paid->currency, paid->amount_minor);
    if (p->bulk->count <= BULK_EXAMPLES)
        add_example(p->bulk, payment, paid);
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
    snprintf(to, space,
             "Of them %" PRIu64
             " contradict the row, and become conflicts for two operators; %" PRIu64
             " make\na trade that was lost.  Left alone: %" PRIu64 " known already (%" PRIu64
             " as contradicting),\n%" PRIu64 " without a trade, %" PRIu64 " told twice.",
             p->contradicting, p->made, p->known, p->standing, p->unknown, repeated);
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
    return status == TL_OK ? EXIT_DONE : fleet_missed(status);
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

int evidence_statement(const struct common *common, const struct filing *filing)
{
    char said[1024], apart[256];
    struct bulk bulk = {.act = {.what = "evidence add",
                                .said = said,
                                .actor = filing->actor,
                                .reason = filing->reason},
                        .verb = "file success of",
                        .apart = apart,
                        .examples = table_new("SERIAL", "CUSTOMER", "OPERATION", "MINOR", "PAID",
                                              "REFERENCE", "EFFECT", NULL),
                        .examples_json = json_array(),
                        .each = file_one,
                        .is_of_row = is_of_row,
                        .has_yes = filing->has_yes,
                        .yes = filing->yes};
    struct preview preview = {.filing = filing, .bulk = &bulk};
    uint64_t repeated;
    int code;

    bulk.context = &preview;
    repeated = drop_repeated(filing->statement);
    snprintf(said, sizeof said, "--statement %.500s --source %s", filing->path, filing->source);
    code = look_at_all(&preview);
    say_apart(apart, sizeof apart, &preview, repeated);
    bulk.of_shard = preview.of_shard;
    /* What the shards that answered have is filed: the same again files the rest. */
    if (code == EXIT_DONE || (fleet_is() && preview.is_ready))
        code = bulk_run(&bulk, common);
    if (code == EXIT_DONE && preview.contradicting + preview.standing + preview.unknown > 0)
        code = EXIT_REFUSED;
    table_free(bulk.examples);
    json_decref(bulk.examples_json);
    json_decref(bulk.apart_json);
    free(preview.rows);
    free(preview.first);
    free(preview.of_shard);
    return code;
}
