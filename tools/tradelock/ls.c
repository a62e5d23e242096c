/* tradelock ls: lists lock rows by filter. Only reads. */
#include "command.h"

#include "filter.h"
#include "fleet.h"
#include "list_print.h"
#include "moment.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

enum {
    OPTION_OUTPUT = 'o',
    OPTION_STATUS = OPTION_OWN,
    OPTION_LANE,
    OPTION_AS_OF,
    OPTION_AFTER,
    OPTION_COLUMNS
};

#define LIMIT_DEFAULT 100

struct wanted {
    tl_filter filter;
    struct list_form_options form;
};

static int set_lane(const struct command *self, tl_filter *filter)
{
    if (strcmp(optarg, "sync") == 0)
        filter->lane = 'S';
    else if (strcmp(optarg, "retry") == 0)
        filter->lane = 'R';
    else
        return usage_error(self, "--lane is sync or retry, not %s", optarg);
    return EXIT_DONE;
}

static int set_status(const struct command *self, tl_filter *filter)
{
    if (strlen(optarg) != 1 || strchr("PFY", optarg[0]) == NULL)
        return usage_error(self, "--status is P, F or Y, not %s", optarg);
    filter->status = optarg[0];
    return EXIT_DONE;
}

static int set_form(const struct command *self, struct list_form_options *form)
{
    if (strcmp(optarg, "wide") == 0)
        form->form = LIST_WIDE;
    else if (strcmp(optarg, "csv") == 0)
        form->form = LIST_CSV;
    else if (strcmp(optarg, "json") == 0)
        form->form = LIST_JSON;
    else
        return usage_error(self, "-o is wide, csv or json, not %s", optarg);
    return EXIT_DONE;
}

static int set_columns(const struct command *self, struct list_form_options *form)
{
    const char *wrong;
    int size;

    if (!list_columns_check(optarg, &wrong, &size))
        return usage_error(self, "--columns knows no column %.*s: it knows %s", size, wrong,
                           list_column_names());
    form->columns = optarg;
    return EXIT_DONE;
}

static int set_moment_of_list(const struct command *self, tl_filter *filter)
{
    if (read_moment_us(optarg, &filter->as_of_us))
        return EXIT_DONE;
    return usage_error(self,
                       "--as-of is a moment as 2026-03-01T09:30, in UTC, or how long ago, as 2h, "
                       "not %s",
                       optarg);
}

static int set_option(const struct command *self, struct wanted *wanted, int option)
{
    tl_filter *filter = &wanted->filter;

    if (filter_has(option))
        return filter_set(self, filter, option);
    switch (option) {
    case OPTION_STATUS:
        return set_status(self, filter);
    case OPTION_LANE:
        return set_lane(self, filter);
    case OPTION_AS_OF:
        return set_moment_of_list(self, filter);
    case OPTION_OUTPUT:
        return set_form(self, &wanted->form);
    case OPTION_COLUMNS:
        return set_columns(self, &wanted->form);
    default:
        filter->after = optarg;
        return EXIT_DONE;
    }
}

static int warn(tl_client *client, void *context)
{
    (void)context;
    drain_warn(client);
    return EXIT_DONE;
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {{"status", required_argument, NULL, OPTION_STATUS},
                                            {"lane", required_argument, NULL, OPTION_LANE},
                                            {"as-of", required_argument, NULL, OPTION_AS_OF},
                                            {"after", required_argument, NULL, OPTION_AFTER},
                                            {"output", required_argument, NULL, OPTION_OUTPUT},
                                            {"columns", required_argument, NULL, OPTION_COLUMNS},
                                            FILTER_OPTIONS,
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    struct wanted wanted = {
        .filter = {.version = TL_FILTER_VERSION, .limit = LIMIT_DEFAULT},
    };
    struct common common = {0};
    int code = EXIT_DONE, option;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        if ((code = set_option(self, &wanted, option)) != EXIT_DONE)
            return code;
    if (option == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "ls takes no operand: %s", argv[optind]);
    if (common.json)
        wanted.form.form = LIST_JSON;
    if (wanted.form.form == LIST_JSON && wanted.form.columns != NULL)
        return usage_error(self, "--columns is for tables and CSV; JSON has every field");
    code = fleet_begin(&common);
    if (code == EXIT_DONE && fleet_is() && wanted.filter.after != NULL)
        code = usage_error(self, "a place is of one shard's list: --after wants --shard");
    if (code == EXIT_DONE)
        code = list_print(&wanted.filter, &wanted.form);
    if (code == EXIT_DONE && wanted.form.form != LIST_JSON)
        code = fleet_each(0, warn, NULL);
    fleet_end();
    return code;
}

const struct command command_ls = {
    .name = "ls",
    .summary = "list locks, those in process first",
    .arguments = "[--status P|F|Y] [--op OP] [--cust CUST] ... [--json]",
    .text = "Lists lock rows that pass every filter: those in conflict and parked ones,\n"
            "what else is in process, then what is finished, the latest first.  Below\n"
            "stands how many, and how much money by currency.  A TIME is a duration: 90s,\n"
            "10m, 2h, 7d.  A MOMENT is 2026-03-01, 2026-03-01T09:30 or 2026-03-01T09:30:00Z,\n"
            "in UTC, or a TIME, for so long ago.  Of a fleet the shards come one after the\n"
            "other, each up to the limit.\n",
    .options = "  --status P|F|Y  only rows in process, failed or succeeded\n"
               "  --lane LANE     only the trade-sync (sync) or retry-compensation rows\n"
               "                  (retry)\n" FILTER_HELP
               "  --as-of MOMENT  the rows as they were then, by their history\n"
               "  --limit N       at most N rows (100)\n"
               "  --after PLACE   go on where a list stopped, which told the place\n"
               "  -o, --output FORM  wide: more columns; csv; json: as --json\n"
               "  --columns NAMES these columns, with commas between: -o csv shows names\n",
    .run = run,
};
