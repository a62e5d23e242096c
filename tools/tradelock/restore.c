/* tradelock restore: declares a restore, shows it, and accepts it by two accounts. */
#include "command.h"

#include "fields.h"
#include "fleet.h"
#include "fleet_map.h"
#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

static const char *reason, *actor;

/* ------------------------------------------------------------------- declare -- */

static int declare(tl_client *client)
{
    tl_status status = tl_restore_declare(client, actor, reason);

    if (status != TL_OK)
        return report(status);
    return print_answer(json_pack("{s:s}", "restore", "declared"), EXIT_DONE,
                        "Declared. Nothing is granted, sent or failed until two operators accept "
                        "it;\nthe retry lane asks the channel, and ends what was paid.\n");
}

/* -------------------------------------------------------------------- status -- */

/* What accepting would do: counts, the money that they told of, and what was filed meanwhile. */
struct preview {
    struct listing counts, money, filed;
    struct listing missing; /* why a promoted server is not accepted by itself */
};

static int add_missing(void *context, const tl_missing *row)
{
    struct preview *preview = context;
    const char *why = !row->attested      ? "has not attested"
                      : row->missing == 0 ? "the old server was not seen to wait for this one"
                                          : row->step;

    json_array_append_new(preview->missing.rows,
                          json_pack("{s:s, s:o, s:b, s:I, s:b, s:o, s:o, s:o, s:o, s:s}", "session",
                                    row->session, "whose", json_text(row->whose), "attested",
                                    row->attested, "missing", (json_int_t)row->missing, "not_kept",
                                    row->not_kept, "step", json_text(row->step), "cust_no",
                                    json_text(row->cust_no), "serial_no", json_text(row->serial_no),
                                    "op_code", json_text(row->op_code), "token", row->token));
    table_add(preview->missing.table, row->whose[0] != '\0' ? row->whose : row->session, why,
              row->cust_no, row->serial_no, row->op_code, row->token);
    return 0;
}

static json_t *json_sum(const char *sum_minor)
{
    return sum_minor != NULL ? json_digits(sum_minor) : json_null();
}

static const char *money_text(char to[TL_AMOUNT_TEXT], const tl_restore_count *row)
{
    return row->currency[0] != '\0' ? tl_sum_text(to, row->sum_minor, row->currency) : "not told";
}

static void add_money(struct listing *money, const tl_restore_count *row, const char *number)
{
    char sum[TL_AMOUNT_TEXT];

    json_array_append_new(
        money->rows, json_pack("{s:o, s:o, s:I}", "currency", json_text(row->currency), "sum_minor",
                               json_sum(row->sum_minor), "count", (json_int_t)row->count));
    table_add(money->table, money_text(sum, row), number);
}

static void add_filed(struct listing *filed, const tl_restore_count *row, const char *number)
{
    char sum[TL_AMOUNT_TEXT];

    json_array_append_new(filed->rows,
                          json_pack("{s:s, s:o, s:o, s:I}", "account", row->state, "currency",
                                    json_text(row->currency), "sum_minor", json_sum(row->sum_minor),
                                    "count", (json_int_t)row->count));
    table_add(filed->table, row->state, money_text(sum, row), number);
}

static int add_count(void *context, const tl_restore_count *row)
{
    struct preview *preview = context;
    char number[TL_AMOUNT_TEXT];

    tl_count_text(number, row->count);
    if (row->currency != NULL) {
        if (row->state[0] != '\0')
            add_filed(&preview->filed, row, number);
        else
            add_money(&preview->money, row, number);
        return 0;
    }
    json_array_append_new(preview->counts.rows,
                          json_pack("{s:o, s:s, s:I}", "op_code", json_text(row->op_code), "state",
                                    row->state, "count", (json_int_t)row->count));
    table_add(preview->counts.table, row->op_code, row->state, number);
    return 0;
}

static json_t *json_restore(const tl_restore *r, const struct preview *preview)
{
    return json_pack(
        "{s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, "
        "s:I, s:O, s:O, s:O, s:O}",
        "open", r->open, "number", (json_int_t)r->number, "accepted", (json_int_t)r->accepted,
        "since", json_time(r->since_us), "accepted_at", json_time(r->accepted_us), "was",
        json_text(r->was), "is", json_text(r->is), "how", json_text(r->how), "reason",
        json_text(r->reason), "actor", json_text(r->actor), "account", json_text(r->account),
        "proposed_at", json_time(r->proposed_us), "proposal", json_text(r->proposal), "proposer",
        json_text(r->proposer), "proposer_account", json_text(r->proposer_account),
        "confirmer_account", json_text(r->confirmer_account), "doubtful", (json_int_t)r->doubtful,
        "counts", preview->counts.rows, "money", preview->money.rows, "filed", preview->filed.rows,
        "missing", preview->missing.rows);
}

static void print_state(const tl_restore *r)
{
    char when[TIME_TEXT];

    if (!r->open) {
        printf("No restore is declared or found.\n");
        if (strcmp(r->how, "promoted") == 0 && r->confirmer_account[0] == '\0')
            printf("This server was promoted by %s (account %s): %s. It was accepted by itself at\n"
                   "%s, since nothing was missing.\n",
                   r->actor, r->account, r->reason, time_text(when, r->accepted_us));
        else if (r->accepted_us != 0)
            printf("The last one was accepted at %s; it put %s trades in doubt.\n",
                   time_text(when, r->accepted_us), COUNT_TEXT(r->doubtful));
        return;
    }
    if (r->how[0] != '\0')
        printf("%s was %s at %s by %s (account %s): %s.\n",
               strcmp(r->how, "promoted") == 0 ? "This server" : "A restore", r->how,
               time_text(when, r->since_us), r->actor[0] != '\0' ? r->actor : "a program",
               r->account, r->reason);
    else
        printf("This is another server than the one that was accepted.\n");
    printf("Accepted was: %s\nThis server:  %s\n", r->was, r->is);
    if (r->proposed_us != 0)
        printf("%s (account %s) proposed at %s to accept it: %s.\n", r->proposer,
               r->proposer_account, time_text(when, r->proposed_us), r->proposal);
    else
        printf("Nobody has proposed to accept it.\n");
    printf("\nAccepting puts these in doubt, and takes these locks away:\n");
}

static void print_missing(const struct preview *preview)
{
    if (json_array_size(preview->missing.rows) == 0)
        return;
    printf("\nIt is not accepted by itself, since:\n");
    table_print(preview->missing.table);
}

static void print_preview(const struct preview *preview)
{
    table_print(preview->counts.table);
    if (json_array_size(preview->money.rows) > 0) {
        printf("\nThe money in doubt, as the trades told it:\n");
        table_print(preview->money.table);
    }
    if (json_array_size(preview->filed.rows) > 0) {
        printf("\nFiled of lost trades, which accepting makes paid, by these accounts:\n");
        table_print(preview->filed.table);
    }
}

static int show(tl_client *client)
{
    struct preview preview = {
        .counts = {.table = table_new("OP", "STATE", "COUNT", NULL), .rows = json_array()},
        .money = {.table = table_new("MONEY", "TRADES", NULL), .rows = json_array()},
        .filed = {.table = table_new("ACCOUNT", "MONEY", "PAYMENTS", NULL), .rows = json_array()},
        .missing = {.table = table_new("SESSION", "MISSING", "CUST", "SERIAL", "OP", "TOKEN", NULL),
                    .rows = json_array()}};
    tl_restore r = TL_RESTORE_INIT;
    tl_status status = tl_restore_status(client, &r, add_count, &preview);
    int code;

    if (status == TL_OK && r.open)
        status = tl_restore_missing(client, r.number, add_missing, &preview);

    if (status != TL_OK) {
        code = report(status);
    } else if (common.json) {
        code = print_json(json_restore(&r, &preview), EXIT_DONE);
    } else {
        print_state(&r);
        if (r.open)
            print_preview(&preview);
        print_missing(&preview);
        code = finish_output(EXIT_DONE);
    }
    listing_free(&preview.counts);
    listing_free(&preview.money);
    listing_free(&preview.filed);
    listing_free(&preview.missing);
    return code;
}

/* -------------------------------------------------------------------- accept -- */

static int accept_server(tl_client *client)
{
    uint64_t doubtful = 0;
    tl_status status = tl_restore_accept(client, actor, reason, &doubtful);

    if (status == TL_PARKED)
        return print_answer(
            json_pack("{s:s}", "restore", "proposed"), EXIT_DONE,
            "Proposed. Nothing has changed: another operator, with an account of their own,\n"
            "looks at `tradelock restore status` and accepts it too.\n");
    if (status != TL_OK)
        return report(status);
    return print_answer(
        json_pack("{s:s, s:I}", "restore", "accepted", "doubtful", (json_int_t)doubtful), EXIT_DONE,
        "Accepted. %s trades are in process, and all of them in doubt now: the channel is\n"
        "asked before anything is sent for them.\n",
        COUNT_TEXT(doubtful));
}

/* ------------------------------------------------------------------- a fleet -- */

/* Where it has to own a slot first: nothing that it paid of that can be filed before, nor once the
 * restore is accepted. */
static int refuse_forgotten(unsigned slot, const char *shard)
{
    fprintf(stderr,
            "tradelock: slot %u was handed over to shard %s, which does not own it, or as before "
            "that: what it paid cannot be filed; first `tradelock fleet move %u --to %s`, then "
            "file it\n",
            slot, shard, slot, shard);
    return EXIT_REFUSED;
}

/* Where it has a slot that is another one's: it would send again what that one has paid or failed. */
static int refuse_stale(const struct fleet_map *map, unsigned slot, const char *shard)
{
    const size_t owner = fleet_map_owner(map, slot);

    if (owner == FLEET_NOBODY)
        fprintf(stderr,
                "tradelock: slot %u is owned by several shards under one version, or by none of "
                "the settings: `tradelock audit` and operators first\n",
                slot);
    else
        fprintf(stderr,
                "tradelock: slot %u is shard %s's by now, and shard %s would pay for it too: first "
                "`tradelock fleet move %u --back`\n",
                slot, fleet_name(owner), shard, slot);
    return EXIT_REFUSED;
}

static int check_slots(const struct fleet_map *map, size_t shard)
{
    for (unsigned slot = 0; slot < TL_FLEET_SLOTS && shard < map->count; slot++) {
        const size_t owner = fleet_map_owner(map, slot);
        const int has = fleet_map_has(map, shard, slot);

        if (owner == shard && (!has || fleet_map_is_behind(map, shard, slot)))
            return refuse_forgotten(slot, fleet_name(shard));
        if (owner != shard && has)
            return refuse_stale(map, slot, fleet_name(shard));
    }
    return EXIT_DONE;
}

/* A database knows nothing of the others: they are asked here, all of them. */
static int check_fleet(void)
{
    struct fleet_map map = {.count = 0};
    int code;

    if (common.shard == NULL)
        return EXIT_DONE;
    code = fleet_begin(NULL);
    if (code == EXIT_DONE && fleet_is()) {
        code = fleet_map_read(&map);
        if (code == EXIT_DONE)
            code = check_slots(&map, fleet_shard_of(common.shard));
    }
    fleet_map_free(&map);
    fleet_end();
    return code;
}

/* ------------------------------------------------------------------- command -- */

static const struct verb {
    const char *name;
    int (*work)(tl_client *client);
} verbs[] = {{"status", show}, {"declare", declare}, {"accept", accept_server}};

static const struct verb *verb;

static int check(int argc, char **argv)
{
    int code = EXIT_DONE;

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (argc == 1 && strcmp(verbs[i].name, argv[0]) == 0)
            verb = &verbs[i];
    if (verb == NULL)
        return usage_error("say what: declare, status or accept");
    if (verb->work != show)
        code = needs_reason(reason);
    return code == EXIT_DONE && verb->work == accept_server ? check_fleet() : code;
}

static int work(tl_client *client)
{
    return verb->work(client);
}

static const struct command_option options[] = {
    OPTION_REASON_OF(&reason, WHY), OPTION_ACTOR_OF(&actor, WHO), {.name = NULL}};

const struct command command_restore = {
    .name = "restore",
    .summary = "declare that the database was restored, or accept it as it is",
    .arguments = "status | declare|accept --reason TEXT [--actor NAME] [--json]",
    .text = "A restored database, or a promoted copy, may lack payments that were made.\n"
            "Declared, or found by a program, nothing is granted, sent or failed any more,\n"
            "and the retry lane only asks the channel.  `status` says since when and why,\n"
            "and what accepting would do.  Accept it once the channel's statements have\n"
            "been compared, two of you with two accounts: the first `accept` proposes, the\n"
            "other one carries it out, and every trade in process is in doubt from then on.\n"
            "Of a shard all others are asked: a slot that went to it has to be moved first,\n"
            "and its claim of one that is another's ended (fleet move).\n"
            "The way through all of it is in tools/RESTORE.md.\n",
    .examples = "  tradelock restore declare --reason \"the backup of 3 March\"\n"
                "  tradelock restore status\n",
    .options = options,
    .check = check,
    .of = OF_DATABASE,
    .work = work,
    .takes_operands = 1,
};
