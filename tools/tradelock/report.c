/* tradelock report: counts and sums of trades, and the trades themselves for accountants.  Reads
 * only. */
#include "report.h"

#include "command.h"
#include "fleet.h"
#include "list_print.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum form { FORM_TABLE, FORM_CSV, FORM_JSON };

static struct request {
    tl_report_scope scope;
    enum form form;
    int trades; /* the trades themselves */
    int begun;  /* the first line of CSV was printed */
} request = {.scope = {.version = TL_REPORT_SCOPE_VERSION,
                       .by = TL_REPORT_DAY | TL_REPORT_CURRENCY | TL_REPORT_STATE}};

static const char *const ats[] = {
    [TL_REPORT_ASKED] = "asked", [TL_REPORT_PAID] = "paid", [TL_REPORT_BOOKED] = "booked"};
/* In the order of their bits. */
static const char *const dimensions[] = {"day", "channel", "operation", "currency", "state"};
#define DIMENSIONS (sizeof dimensions / sizeof dimensions[0])

#define ROW_COLUMNS "day,channel,operation,currency,state,trades,sum_minor"
#define LINE_COLUMNS                                                                               \
    "serial,customer,operation,label,channel,channel_key,channel_ref,amount_minor,currency,state," \
    "batch,asked,paid,booked"

/* --------------------------------------------------------------------- reading -- */

static void add_total(tl_list_end *total, const tl_report_row *row)
{
    tl_money *money = total->money;

    total->trades += row->trades;
    total->rows += row->trades;
    if (row->currency[0] == '\0')
        return;
    while (money < total->money + total->money_count && strcmp(money->currency, row->currency) != 0)
        money++;
    if (money == total->money + TL_MONEY_MAX)
        return;
    if (money == total->money + total->money_count) {
        total->money_count++;
        memcpy(money->currency, row->currency, sizeof money->currency);
    }
    money->trades += row->trades;
    tl_sum_add(money->sum_minor, row->sum_minor);
}

static int take_row(void *context, const tl_report_row *row)
{
    struct report *report = context;

    add_total(&report->total, row);
    return listing_add(&report->rows, row);
}

tl_status report_read(struct report *report, tl_client *client, const tl_report_scope *scope)
{
    char columns[80] = "";

    *report = (struct report){.scope = scope};
    /* The currency stands with the sum. */
    for (size_t i = 0; i < DIMENSIONS; i++)
        if (scope->by & ~TL_REPORT_CURRENCY & 1u << i)
            strcat(strcat(columns, dimensions[i]), ",");
    listing_begin(&report->rows, &record_report, strcat(columns, "trades,sum"));
    return tl_report(client, scope, take_row, report, &report->gaps);
}

void report_free(struct report *report)
{
    listing_free(&report->rows);
}

/* -------------------------------------------------------------------- printing -- */

/* What is missing, for people. */
static void tell_gaps(FILE *to, const char *before, const tl_report_gaps *gaps)
{
    char when[TIME_TEXT];

    if (gaps->purged_us != 0)
        fprintf(to,
                "%strades that ended before %s were purged: those of this range are missing here\n",
                before, time_text(when, gaps->purged_us));
    if (gaps->archived_us != 0)
        fprintf(to,
                "%strades that ended before %s were purged into an archive: those of this range "
                "are missing here\n",
                before, time_text(when, gaps->archived_us));
}

void report_print(const struct report *report)
{
    const tl_report_scope *scope = report->scope;
    char since[TIME_TEXT], until[TIME_TEXT];

    printf("trades %s from %s until %s, in UTC\n",
           scope->at == TL_REPORT_ASKED ? "asked for" : ats[scope->at],
           time_text(since, scope->since_us),
           scope->until_us != 0 ? time_text(until, scope->until_us) : "now");
    tell_gaps(stdout, "", &report->gaps);
    fflush(stdout);
    if (report->total.trades > 0)
        table_print(report->rows.table);
    list_print_totals(&report->total, "trade");
}

json_t *report_json(const struct report *report)
{
    const tl_report_scope *scope = report->scope;
    json_t *by = json_array();

    for (size_t i = 0; i < DIMENSIONS; i++)
        if (scope->by & 1u << i)
            json_array_append_new(by, json_string(dimensions[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:O, s:I, s:o, s:o, s:o}", "at", ats[scope->at], "since",
                     json_time(scope->since_us), "until", json_time(scope->until_us), "by", by,
                     "rows", report->rows.rows, "trades", (json_int_t)report->total.trades, "money",
                     list_json_money(&report->total), "purged_before",
                     json_time(report->gaps.purged_us), "archived_before",
                     json_time(report->gaps.archived_us));
}

/* A line of CSV; row NULL: the names of the columns.  Of a fleet the shard stands first. */
static void print_csv(const struct record *record, const char *names, const void *row)
{
    const size_t of_fleet = fleet_is() != 0;
    struct columns columns;
    char text[LISTING_COLUMNS][CELL];
    const char *cells[LISTING_COLUMNS + 1] = {row != NULL ? fleet_now() : "shard"};

    record_columns(&columns, record, names);
    for (size_t i = 0; i < columns.count; i++) {
        if (row != NULL)
            record_cell(text[i], columns.column[i], row, 1);
        cells[i + of_fleet] = row != NULL ? text[i] : columns.column[i]->column;
    }
    csv_print(stdout, cells, columns.count + of_fleet);
}

static int csv_row(void *context, const tl_report_row *row)
{
    (void)context;
    print_csv(&record_report, ROW_COLUMNS, row);
    return ferror(stdout);
}

static int csv_line(void *context, const tl_report_line *line)
{
    (void)context;
    print_csv(&record_report_line, LINE_COLUMNS, line);
    return ferror(stdout);
}

/* Lines are printed as they are read, however many there are. */
static int csv_one(tl_client *client, void *context)
{
    tl_report_gaps gaps = {.purged_us = 0};
    tl_status status;

    (void)context;
    if (!request.begun && request.trades)
        print_csv(&record_report_line, LINE_COLUMNS, NULL);
    else if (!request.begun)
        print_csv(&record_report, ROW_COLUMNS, NULL);
    request.begun = 1;
    status = request.trades ? tl_report_lines(client, &request.scope, csv_line, NULL, &gaps)
                            : tl_report(client, &request.scope, csv_row, NULL, &gaps);
    fflush(stdout);
    if (status == TL_OK)
        tell_gaps(stderr, fleet_said_by(), &gaps);
    return finish_output(fleet_told(status));
}

static int page_one(tl_client *client, void *context)
{
    struct report report;
    const tl_status status = report_read(&report, client, &request.scope);
    int code = EXIT_DONE;

    (void)context;
    if (status != TL_OK)
        code = fleet_told(status);
    else if (request.form == FORM_JSON)
        code = fleet_page(report_json(&report), code);
    else {
        fleet_heading();
        report_print(&report);
        code = finish_output(code);
    }
    report_free(&report);
    return code;
}

/* -------------------------------------------------------------------- command -- */

/* Which of the words it is, of so many letters; `count`: none. */
static size_t word_of(const char *value, size_t size, const char *const *words, size_t count)
{
    size_t i = 0;

    while (i < count && (strlen(words[i]) != size || strncmp(words[i], value, size) != 0))
        i++;
    return i;
}

int report_take_at(const char *value, void *to)
{
    const size_t at = word_of(value, strlen(value), ats, 3);

    *(tl_report_at *)to = (tl_report_at)at;
    return at < 3 ? EXIT_DONE : usage_error("--at is asked, paid or booked, not %s", value);
}

static int take_by(const char *value, void *to)
{
    unsigned by = 0;

    for (const char *word = value;; word++) {
        const size_t size = strcspn(word, ",");
        const size_t which = word_of(word, size, dimensions, DIMENSIONS);

        if (which == DIMENSIONS)
            return usage_error("--by knows no '%.*s': it knows day, channel, operation, currency "
                               "and state",
                               (int)size, word);
        if (by & 1u << which)
            return usage_error("--by names %s twice", dimensions[which]);
        by |= 1u << which;
        word += size;
        if (*word == '\0')
            break;
    }
    *(unsigned *)to = by;
    return EXIT_DONE;
}

static int take_form(const char *value, void *to)
{
    static const char *const forms[] = {"table", "csv", "json"};
    const size_t form = word_of(value, strlen(value), forms, 3);

    *(enum form *)to = (enum form)form;
    return form < 3 ? EXIT_DONE : usage_error("-o is table, csv or json, not %s", value);
}

int report_check_range(int64_t since_us, int64_t until_us)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (since_us / 1000000 > now.tv_sec)
        return usage_error("--since lies in the future");
    if (until_us != 0 && until_us <= since_us)
        return usage_error("--until is not after --since");
    return EXIT_DONE;
}

static int check(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (common.json)
        request.form = FORM_JSON;
    if (request.scope.since_us == 0)
        return usage_error("--since is missing: it says where the report begins");
    if (request.trades && request.form != FORM_CSV)
        return usage_error("--trades prints CSV: it wants -o csv");
    return report_check_range(request.scope.since_us, request.scope.until_us);
}

static int work(tl_client *client)
{
    int code;

    (void)client;
    code = fleet_each(0, request.form == FORM_CSV ? csv_one : page_one, NULL);
    return request.form == FORM_JSON ? fleet_print_pages(NULL, code) : code;
}

static const struct command_option options[] = {
    {"since T", "from T on: a moment (2026-03-01, 2026-03-01T09:30), or\nhow long ago (2h)",
     OPTION_MOMENT, .to = &request.scope.since_us},
    {"until T", "and before T, likewise (now)", OPTION_MOMENT, .to = &request.scope.until_us},
    {"by NAMES",
     "by which of day, channel, operation, currency and state,\n"
     "with commas between (day,currency,state)",
     OPTION_OTHER, .to = &request.scope.by, .take = take_by},
    {"at WHICH",
     "the moment that counts: at which a trade was asked for\n"
     "(asked), known to be paid, or its end was booked",
     OPTION_OTHER, .to = &request.scope.at, .take = report_take_at},
    {"trades", "the trades themselves, one a line, with -o csv", OPTION_FLAG,
     .to = &request.trades},
    {"output FORM", "table, csv, or json: as --json", OPTION_OTHER, .to = &request.form,
     .take = take_form, .letter = 'o'},
    {.name = NULL}};

const struct command command_report = {
    .name = "report",
    .summary = "count and sum the trades of some days, or export them",
    .arguments = "--since T [--until T] [--by NAMES] [--at asked|paid|booked]\n"
                 "                 [-o table|csv|json] [--trades]",
    .text = "Counts the trades of a range, and sums their money, which is never added over\n"
            "currencies.  Days begin at midnight in UTC.  `tradelock audit` with the same range\n"
            "adds up every trade by itself and has to come to the same sums.  Trades that were\n"
            "purged are missing, and the report says so.\n",
    .examples = "  tradelock report --since 2026-03-01 --until 2026-04-01 -o csv\n",
    .options = options,
    .check = check,
    .of = OF_PAGES,
    .work = work,
};
