/* tradelock audit: prints what contradicts the books, compares a bank's statement, and closes
 * findings by two accounts. */
#include "command.h"
#include "fields.h"
#include "fleet.h"
#include "fleet_check.h"
#include "print.h"
#include "progress.h"
#include "report.h"
#include "statement_print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FINDING_LEAST 8

static struct request {
    const char *path; /* of the statement */
    struct statement statement;
    struct statement_rules rules;
    tl_audit_scope scope; /* without payments */
    tl_report_at at;      /* of the control sums */
    int closed;           /* closed findings are listed too */
    int64_t every_ms;
    /* Closing one; finding NULL: no. */
    const char *finding, *reason, *actor;
    int confirms;
    /* Of a fleet: whose slots are whose, where each shard's payments begin, and what no shard can
     * tell alone. */
    struct fleet_map map;
    size_t *first;
    struct table *fleet_table;
    json_t *fleet_findings;
} request = {.scope = TL_AUDIT_SCOPE_INIT, .every_ms = PROGRESS_EVERY_MS};

struct output {
    struct progress progress;
    struct listing found;
};

/* ------------------------------------------------------------------ auditing -- */

static json_t *json_rules(const tl_audit_counts *counts)
{
    json_t *rules = json_array();

    for (unsigned i = 0; i < counts->rule_count; i++)
        json_array_append_new(rules,
                              json_pack("{s:s, s:I, s:I}", "rule", counts->rules[i].rule,
                                        "violations", (json_int_t)counts->rules[i].violations,
                                        "closed", (json_int_t)counts->rules[i].closed));
    return rules;
}

static int tell(void *context, const tl_progress *now)
{
    struct output *output = context;

    progress_tell(&output->progress, now);
    return 0;
}

static int add_violation(void *context, const tl_violation *v)
{
    struct output *output = context;

    return v->closed && !request.closed ? 0 : listing_add(&output->found, v);
}

static json_t *json_archived(const tl_archived *a)
{
    if (request.scope.archive == NULL)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "sets", (json_int_t)a->sets, "trades",
                     (json_int_t)a->trades, "rows", (json_int_t)a->rows, "bytes",
                     (json_int_t)a->bytes, "doubled", (json_int_t)a->doubled, "elsewhere",
                     (json_int_t)a->elsewhere, "elsewhere_trades", (json_int_t)a->elsewhere_trades);
}

static void print_archived(const tl_archived *a)
{
    if (request.scope.archive == NULL)
        return;
    printf("%s: %s sets, %s trades, %s rows, %s bytes, all as they were written\n",
           request.scope.archive, COUNT_TEXT(a->sets), COUNT_TEXT(a->trades), COUNT_TEXT(a->rows),
           COUNT_TEXT(a->bytes));
    if (a->doubled > 0)
        printf("%s rows stand twice, in two sets or in a set and in the database\n",
               COUNT_TEXT(a->doubled));
    if (a->elsewhere > 0)
        printf("%s trades were removed under %s sets that are not in it: another archive has them, "
               "or none\n",
               COUNT_TEXT(a->elsewhere_trades), COUNT_TEXT(a->elsewhere));
}

static tl_audit_scope scope_of(size_t first, size_t count)
{
    tl_audit_scope scope = request.scope;

    if (request.statement.payments != NULL) {
        scope.channel = request.statement.channel;
        scope.payments = request.statement.payments + first;
        scope.payment_count = count;
    }
    return scope;
}

/* Those of the range, by currency and state: NULL for `sums` where none was given. */
static int print_counts(const tl_audit_counts *counts, const tl_archived *archived,
                        const struct output *output, const struct report *sums, int code)
{
    const size_t first = request.first[fleet_at()];
    const tl_audit_scope scope = scope_of(first, request.first[fleet_at() + 1] - first);
    char when[TIME_TEXT];

    if (common.json)
        return fleet_page(
            json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:O}",
                      "account", counts->account, "server", counts->server, "audited_at",
                      json_time(counts->at_us), "rows", (json_int_t)counts->rows, "steps",
                      (json_int_t)counts->steps, "grants", (json_int_t)counts->grants, "payments",
                      (json_int_t)counts->payments, "closed", (json_int_t)counts->closed, "rules",
                      json_rules(counts), "archived", json_archived(archived), "sums",
                      sums != NULL ? report_json(sums) : json_null(), "statement",
                      scope.payments != NULL ? statement_json(&request.statement, scope.payments,
                                                              scope.payment_count, counts->paid)
                                             : json_null(),
                      "violations", output->found.rows),
            code);
    fleet_heading();
    printf("audited by %s on %s at %s\n", counts->account, counts->server,
           time_text(when, counts->at_us));
    fflush(stdout);
    if (json_array_size(output->found.rows) > 0)
        table_print(output->found.table);
    printf("%s rows, %s steps, %s grants, %s payments: %s violations", COUNT_TEXT(counts->rows),
           COUNT_TEXT(counts->steps), COUNT_TEXT(counts->grants), COUNT_TEXT(counts->payments),
           COUNT_TEXT(counts->violations));
    if (counts->closed > 0)
        printf(", %s closed by two operators (--closed lists them)", COUNT_TEXT(counts->closed));
    putchar('\n');
    if (scope.payments != NULL)
        statement_print(&request.statement, scope.payments, scope.payment_count, counts->paid);
    print_archived(archived);
    for (unsigned i = 0; i < counts->rule_count; i++) {
        const tl_audit_rule *r = &counts->rules[i];

        printf("  %-16s %s violations", r->rule, COUNT_TEXT(r->violations));
        if (r->closed > 0)
            printf(", %s closed", COUNT_TEXT(r->closed));
        putchar('\n');
    }
    if (sums != NULL)
        report_print(sums);
    return finish_output(code);
}

/* What a report of the same range counts, added up trade by trade. */
static tl_status read_sums(struct report *sums, tl_client *client)
{
    static tl_report_scope scope = {.version = TL_REPORT_SCOPE_VERSION,
                                    .by = TL_REPORT_CURRENCY | TL_REPORT_STATE,
                                    .one_by_one = 1};

    scope.since_us = request.scope.since_us;
    scope.until_us = request.scope.until_us;
    scope.at = request.at;
    return report_read(sums, client, &scope);
}

static int audit_one(tl_client *client, void *context)
{
    const size_t *first = &request.first[fleet_at()];
    struct output output;
    tl_list_end paid = TL_LIST_END_INIT;
    tl_audit_counts counts = TL_AUDIT_COUNTS_INIT;
    tl_archived archived = {.sets = 0};
    const int has_range = request.scope.since_us != 0;
    struct report sums = {.scope = NULL};
    tl_audit_scope scope;
    tl_status status;
    int code = EXIT_DONE;

    (void)context;
    listing_begin(&output.found, &record_violation,
                  "rule,serial,customer=CUST,operation=OP,rev,account,logged,sentence,finding,"
                  "closing");
    progress_begin(&output.progress, common.json, request.every_ms, "violations");
    scope = scope_of(first[0], first[1] - first[0]);
    scope.actor = person();
    scope.statement = request.path;
    counts.paid = &paid;
    status = tl_audit(client, &scope, add_violation, tell, &output, &counts, &archived);
    progress_end(&output.progress);
    if (status == TL_OK && counts.noted != TL_OK)
        fprintf(stderr, "%sthis audit is not on record: %s\n", fleet_said_by(),
                counts.noted == TL_ACCESS_DENIED ? "an operator's account may write one"
                                                 : tl_error_message());
    if (status == TL_OK && has_range)
        status = read_sums(&sums, client);
    if (status != TL_OK)
        code = fleet_told(status);
    else
        code = print_counts(&counts, &archived, &output, has_range ? &sums : NULL,
                            counts.violations > 0 ? EXIT_REFUSED : EXIT_DONE);
    report_free(&sums);
    listing_free(&output.found);
    return code;
}

/* -------------------------------------------------------------------- a fleet -- */

static void add_fleet_finding(void *context, const struct fleet_finding *f)
{
    const tl_key *key = f->key;
    char slots[32];

    (void)context;
    /* It is no broken promise; the doctor tells it. */
    if (strcmp(f->rule, "slot-moves") == 0)
        return;
    snprintf(slots, sizeof slots, f->first == f->last ? "%u" : "%u-%u", f->first, f->last);
    table_add(request.fleet_table, f->rule, f->shards, slots, key != NULL ? key->serial_no : "",
              key != NULL ? key->cust_no : "", key != NULL ? key->op_code : "", f->sentence);
    json_array_append_new(
        request.fleet_findings,
        json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "rule", f->rule, "shard", f->shards,
                  "slots", slots, "serial_no", json_text(key != NULL ? key->serial_no : NULL),
                  "cust_no", json_text(key != NULL ? key->cust_no : NULL), "op_code",
                  json_text(key != NULL ? key->op_code : NULL), "sentence", f->sentence));
}

/* What no shard can tell alone, after their own pages. */
static int audit_fleet(int code)
{
    const size_t rest =
        request.first[fleet_size() + 1] - request.first[fleet_size()] + request.statement.unfound;

    fleet_check_slots(&request.map, add_fleet_finding, NULL);
    code = fleet_code(code, fleet_check_trades(&request.map, add_fleet_finding, NULL));
    if (json_array_size(request.fleet_findings) > 0)
        code = fleet_code(code, EXIT_REFUSED);
    if (rest > 0)
        fprintf(stderr,
                "tradelock: %s payments of the statement are of no shard that could be asked\n",
                COUNT_TEXT(rest));
    if (common.json)
        return fleet_print_pages(json_pack("{s:O}", "fleet", request.fleet_findings), code);
    printf("\nThe fleet\n\n");
    fflush(stdout);
    table_print(request.fleet_table);
    printf("%s violations: keys on two shards, slots owned twice or by nobody\n",
           COUNT_TEXT(json_array_size(request.fleet_findings)));
    return finish_output(code);
}

static tl_status split_payments(void)
{
    struct statement *statement = &request.statement;

    request.first = calloc(fleet_size() + 2, sizeof *request.first);
    if (request.first == NULL)
        return tl_error_report(TL_NO_MEMORY, "out of memory for the payments");
    if (fleet_is())
        return fleet_payments(&request.map, statement, request.first);
    request.first[1] = statement->count;
    return TL_OK;
}

static int work_audit(int code)
{
    if (fleet_is())
        code = fleet_code(code, fleet_map_read(&request.map));
    const tl_status status = split_payments();

    request.fleet_findings = json_array();
    if (status != TL_OK) {
        code = fleet_code(report(status), EXIT_DONE);
    } else {
        request.fleet_table =
            table_new("RULE", "SHARDS", "SLOTS", "SERIAL", "CUST", "OP", "WHAT", NULL);
        code = fleet_code(code, fleet_each(0, audit_one, &request));
        if (fleet_is())
            code = audit_fleet(code);
    }
    table_free(request.fleet_table);
    json_decref(request.fleet_findings);
    fleet_map_free(&request.map);
    free(request.first);
    return code;
}

/* ------------------------------------------------------------------- closing -- */

/* The finding as the audit has it now: nobody closes one that is not there. */
struct found {
    const char *wanted;
    unsigned count;
    uint64_t rev;
    char finding[80], rule[32], sentence[512];
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1], op_code[TL_OP_MAX + 1];
};

static int take_wanted(void *context, const tl_violation *v)
{
    struct found *found = context;

    if (strncmp(v->finding, found->wanted, strlen(found->wanted)) != 0 ||
        strcmp(v->finding, found->finding) == 0)
        return 0;
    found->count++;
    found->rev = v->rev;
    snprintf(found->finding, sizeof found->finding, "%s", v->finding);
    snprintf(found->rule, sizeof found->rule, "%s", v->rule);
    snprintf(found->sentence, sizeof found->sentence, "%s", v->sentence);
    snprintf(found->serial_no, sizeof found->serial_no, "%s", v->key.serial_no);
    snprintf(found->cust_no, sizeof found->cust_no, "%s", v->key.cust_no);
    snprintf(found->op_code, sizeof found->op_code, "%s", v->key.op_code);
    return 0;
}

static int print_closed(const struct found *found, int confirms)
{
    if (common.json)
        return print_json(json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "finding", found->finding,
                                    "rule", found->rule, "serial_no", found->serial_no, "cust_no",
                                    found->cust_no, "sentence", found->sentence, "confirmed",
                                    confirms),
                          EXIT_DONE);
    printf("%s %s %s: %s; %s.\n", found->rule, found->serial_no, found->cust_no, found->sentence,
           confirms ? "closed, and open again should anything of it change"
                    : "another operator closes it with `tradelock audit close confirm`");
    return finish_output(EXIT_DONE);
}

static int close_one(tl_client *client, void *context)
{
    struct found found = {.wanted = request.finding};
    tl_audit_counts counts = TL_AUDIT_COUNTS_INIT;
    const tl_audit_scope scope = scope_of(0, request.statement.count);
    tl_status status = tl_audit(client, &scope, take_wanted, NULL, &found, &counts, NULL);
    tl_closing closing = {.version = TL_CLOSING_VERSION,
                          .finding = found.finding,
                          .rule = found.rule,
                          .key = {found.serial_no, found.cust_no, found.op_code},
                          .confirms = request.confirms,
                          .actor = request.actor,
                          .reason = request.reason};

    (void)context;
    closing.rev = found.rev;
    if (status == TL_OK && found.count != 1)
        status = tl_error_report(found.count == 0 ? TL_NOT_FOUND : TL_INVALID,
                                 found.count == 0
                                     ? "the audit finds nothing of that name now (with the same "
                                       "--statement and --archive, if there were)"
                                     : "several findings begin so: give more of the name");
    if (status == TL_OK)
        status = tl_audit_close(client, &closing);
    return status == TL_OK ? print_closed(&found, request.confirms) : report(status);
}

/* ------------------------------------------------------------------- command -- */

/* close propose|confirm FINDING; nothing else may follow. */
static int read_operands(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (argc == 0)
        return EXIT_DONE;
    request.confirms = strcmp(verb, "confirm") == 0;
    if (strcmp(argv[0], "close") != 0 || argc != 3 ||
        (!request.confirms && strcmp(verb, "propose") != 0))
        return usage_error("audit takes no operand but `close propose FINDING` and "
                           "`close confirm FINDING`");
    request.finding = argv[2];
    if (strlen(request.finding) < FINDING_LEAST ||
        strspn(request.finding, "0123456789abcdef") != strlen(request.finding))
        return usage_error("a finding is named by the digits that the audit prints, not '%s'",
                           request.finding);
    return needs_reason(request.reason);
}

static int check(int argc, char **argv)
{
    const tl_audit_scope *scope = &request.scope;
    char problem[640];

    if (read_operands(argc, argv) != EXIT_DONE)
        return EXIT_USAGE;
    if (request.path == NULL && (scope->op_code != NULL || request.rules.channel != NULL))
        return usage_error("--op and --channel say what a statement is of: they want --statement");
    if (request.path == NULL && scope->until_us != 0 && scope->since_us == 0)
        return usage_error("--until without a statement wants --since");
    if (request.path == NULL && report_check_range(scope->since_us, scope->until_us) != EXIT_DONE)
        return EXIT_USAGE;
    if (scope->until_us != 0 && scope->until_us <= scope->since_us)
        return usage_error("--until is not after --since");
    if (request.rules.profile != NULL && (request.rules.config_file = command_config()) == NULL)
        return EXIT_USAGE;
    if (request.path != NULL && statement_read(&request.statement, request.path, &request.rules,
                                               problem, sizeof problem) != 0)
        return usage_error("%s", problem);
    return EXIT_DONE;
}

static int work(tl_client *client)
{
    int code;

    (void)client;
    if (fleet_is() && request.scope.archive != NULL)
        code = usage_error("an archive is of one database: --archive wants --shard");
    else if (fleet_is() && request.finding != NULL)
        code = usage_error("a finding is of one database: close wants --shard");
    else
        code = statement_find(&request.statement, 0, request.path);
    if (code == EXIT_DONE || (fleet_is() && code != EXIT_USAGE))
        code = request.finding != NULL ? fleet_each(0, close_one, &request) : work_audit(code);
    statement_free(&request.statement);
    return code;
}

static const struct command_option options[] = {
    {"statement FILE.csv",
     "what the channel paid; columns serial_no, cust_no,\n"
     "and where there are op_code, channel_key, channel_ref,\n"
     "amount_minor, currency",
     OPTION_TEXT, .to = &request.path},
    STATEMENT_OPTIONS(request.rules),
    {"currency CUR", "of its amounts that name none", OPTION_TEXT, .to = &request.rules.currency},
    {"op OP", "it is of this operation alone", OPTION_TEXT, .to = &request.scope.op_code},
    {"channel CHANNEL", "and of this channel", OPTION_TEXT, .to = &request.rules.channel},
    {"since T",
     "and of trades that succeeded from T on: a moment\n"
     "(2026-03-01, 2026-03-01T09:30) or how long ago (2h).\n"
     "Counts and sums as of `tradelock report` follow",
     OPTION_MOMENT, .to = &request.scope.since_us},
    {"until T", "and before T, likewise", OPTION_MOMENT, .to = &request.scope.until_us},
    {"at WHICH", "of these: asked (the default), paid or booked", OPTION_OTHER, .to = &request.at,
     .take = report_take_at},
    {"archive DIR", "what purges have written there, with the database", OPTION_TEXT,
     .to = &request.scope.archive},
    {"closed", "list the closed findings too", OPTION_FLAG, .to = &request.closed},
    {"every TIME", "how often a log is told (10s)", OPTION_DURATION, .to = &request.every_ms,
     .is = "a duration such as 10s"},
    OPTION_REASON_OF(&request.reason, "close: why, for the record"),
    OPTION_ACTOR_OF(&request.actor, "close: who (the login name)"),
    {.name = NULL}};

const struct command command_audit = {
    .name = "audit",
    .summary = "prove from rows, history and statement that every promise was kept",
    .arguments = "[--statement FILE.csv [--op OP] [--channel NAME]] [--since T]\n"
                 "                 [--until T] [--archive DIR]\n"
                 "       tradelock audit close propose|confirm FINDING --reason TEXT",
    .text = "Reads every row and its whole history, and names each trade that breaks a rule:\n"
            "a gap in its history, a fence that did not rise, two holds at once, a success\n"
            "that was repeated, late or followed by anything, a failure without a proof, a\n"
            "change by hand.  With the channel's ledger or statement it also names who was\n"
            "paid twice, another amount, after a failure, or not at all.  Says who wrote what\n"
            "breaks the rule, by the server's word.  Two operators with accounts of their own\n"
            "close a finding that is dealt with: it is counted, and no violation any more,\n"
            "until its facts change.\n"
            "With --archive it also reads what `tradelock purge --archive` has written: that no\n"
            "set is missing or was changed, the history of each trade in it, which rows stand\n"
            "twice, and which key succeeded again after it was purged.\n"
            "Of a fleet it audits each shard, and names trades that are on two of them, and slots\n"
            "that several own, or none.\n"
            "It only reads, so there is no --dry-run.  stderr tells how far it is: on a terminal\n"
            "one line in place, in a log a line each TIME; nothing with --json.\n",
    .examples = "  tradelock audit --statement 3-march.csv --since 2026-03-03 --until 2026-03-04\n",
    .options = options,
    .help_width = 24,
    .check = check,
    .of = OF_PAGES,
    .work = work,
    .takes_operands = 1,
};
