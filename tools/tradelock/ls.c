/* tradelock ls: lists lock rows by filter. Only reads. */
#include "command.h"

#include "filter.h"
#include "fleet.h"
#include "list_print.h"

#include <tradelock/admin.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

static tl_filter filter = {.version = TL_FILTER_VERSION, .limit = 100, .lane = 'S'};
static struct list_form_options form;

/* Where few amounts of many pass, a page ends when so many were looked at for each that it may show: at
 * 30,000, which the server reads in 0.2 s. */
#define LOOK_FOR_EACH 300

/* Which of the words it is, from 0; -1: none. */
static int word_of(const char *value, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(words[i], value) == 0)
            return i;
    return -1;
}

static int take_lane(const char *value, void *to)
{
    static const char *const words[] = {"sync", "retry", "all"};
    const int lane = word_of(value, words, 3);

    *(char *)to = lane == 0 ? 'S' : lane == 1 ? 'R' : 0;
    return lane >= 0 ? EXIT_DONE : usage_error("--lane is sync, retry or all, not %s", value);
}

static int take_status(const char *value, void *to)
{
    *(char *)to = value[0];
    return strlen(value) == 1 && strchr("PFY", value[0]) != NULL
               ? EXIT_DONE
               : usage_error("--status is P, F or Y, not %s", value);
}

static int take_form(const char *value, void *to)
{
    static const char *const words[] = {"wide", "csv", "json"};
    static const enum list_form forms[] = {LIST_WIDE, LIST_CSV, LIST_JSON};
    const int place = word_of(value, words, 3);

    if (place < 0)
        return usage_error("-o is wide, csv or json, not %s", value);
    *(enum list_form *)to = forms[place];
    return EXIT_DONE;
}

static int take_columns(const char *value, void *to)
{
    const char *wrong;
    int size;

    if (!list_columns_check(value, &wrong, &size))
        return usage_error("--columns knows no column %.*s: it knows %s", size, wrong,
                           list_column_names());
    *(const char **)to = value;
    return EXIT_DONE;
}

static int check(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (common.json)
        form.form = LIST_JSON;
    if (form.form == LIST_JSON && form.columns != NULL)
        return usage_error("--columns is for tables and CSV; JSON has every field");
    return EXIT_DONE;
}

static int warn(tl_client *client, void *context)
{
    (void)context;
    drain_warn(client);
    return EXIT_DONE;
}

static int work(tl_client *client)
{
    int code;

    (void)client;
    if (fleet_is() && filter.after != NULL)
        return usage_error("a place is of one shard's list: --after wants --shard");
    if (filter.amount_over != NULL)
        filter.look_most =
            filter.limit < UINT_MAX / LOOK_FOR_EACH ? filter.limit * LOOK_FOR_EACH : UINT_MAX;
    code = list_print(&filter, &form);
    if (code == EXIT_DONE && form.form != LIST_JSON)
        code = fleet_each(0, warn, NULL);
    return code;
}

static const struct command_option options[] = {
    {"status P|F|Y", "only rows in process, failed or succeeded", OPTION_OTHER,
     .to = &filter.status, .take = take_status},
    {"lane sync|retry|all", "one line a trade (sync), its retry rows, or both", OPTION_OTHER,
     .to = &filter.lane, .take = take_lane},
    {"find TEXT",
     "what a customer or a bank calls it: a serial\n"
     "number or its beginning, a customer, channel reference,\n"
     "batch, label, trace id, or an amount ('1,250.00 EUR'),\n"
     "also with a day behind it",
     OPTION_TEXT, .to = &filter.find},
    FILTER_OPTIONS(filter, NULL),
    {"as-of MOMENT", "the rows as they were then, by their history", OPTION_MOMENT,
     .to = &filter.as_of_us},
    FILTER_LIMIT(filter, NULL, "at most N rows (100)"),
    {"after PLACE", "go on where a list stopped, which told the place", OPTION_TEXT,
     .to = &filter.after},
    {"output wide|csv|json", "more columns, CSV, or as --json", OPTION_OTHER, .to = &form.form,
     .take = take_form, .letter = 'o'},
    {"columns COLUMNS", "these columns, with commas between: -o csv shows names", OPTION_OTHER,
     .to = &form.columns, .take = take_columns},
    {.name = NULL}};

const struct command command_ls = {
    .name = "ls",
    .summary = "list locks, those in process first",
    .arguments = "[--status P|F|Y] [--op OP] [--cust CUST] ... [--json]",
    .text = "Lists trades that pass every filter: those in conflict and parked ones, what\n"
            "else is in process, then what is finished, the latest first.  Below\n"
            "stands how many, and how much money by currency.  A TIME is a duration: 90s,\n"
            "10m, 2h, 7d.  A MOMENT is 2026-03-01, 2026-03-01T09:30 or 2026-03-01T09:30:00Z,\n"
            "in UTC, or a TIME, for so long ago.  Of a fleet the shards come one after the\n"
            "other, each up to the limit.\n",
    .examples = "  tradelock ls --parked --channel bankA\n"
                "  tradelock ls --in-doubt --older 10m -o csv >doubt.csv\n",
    .options = options,
    .check = check,
    .of = OF_SHARDS,
    .work = work,
};
