/* tradelock ls: lists lock rows by filter. Only reads. */
#include "command.h"

#include "list_print.h"
#include "moment.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

enum {
    OPTION_OUTPUT = 'o',
    OPTION_STATUS = OPTION_OWN,
    OPTION_LANE,
    OPTION_OP,
    OPTION_CUST,
    OPTION_SERIAL,
    OPTION_PREFIX,
    OPTION_LOG,
    OPTION_OLDER,
    OPTION_IDLE,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_AS_OF,
    OPTION_CHANNEL,
    OPTION_AMOUNT,
    OPTION_PARKED,
    OPTION_IN_DOUBT,
    OPTION_CONFLICT,
    OPTION_LIMIT,
    OPTION_AFTER,
    OPTION_COLUMNS
};

#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000000000

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

static int set_age(const struct command *self, const char *option, int64_t *age_ms)
{
    if (read_duration_ms(optarg, age_ms))
        return EXIT_DONE;
    return usage_error(self, "%s is a duration as 90s, 10m, 2h or 7d, not %s", option, optarg);
}

static int set_moment(const struct command *self, const char *option, int64_t *us)
{
    if (read_moment_us(optarg, us))
        return EXIT_DONE;
    return usage_error(self,
                       "%s is a moment as 2026-03-01T09:30, in UTC, or how long ago, as 2h, not %s",
                       option, optarg);
}

static int set_limit(const struct command *self, tl_filter *filter)
{
    uint64_t limit;

    if (!read_number(optarg, LIMIT_MOST, &limit) || limit == 0)
        return usage_error(self, "--limit is a number from 1 to %d, not %s", LIMIT_MOST, optarg);
    filter->limit = (unsigned)limit;
    return EXIT_DONE;
}

static int set_amount(const struct command *self, tl_filter *filter)
{
    uint64_t amount;

    if (!read_number(optarg, INT64_MAX, &amount) || amount == 0)
        return usage_error(self, "--amount-over is a number of minor units from 1 on, not %s",
                           optarg);
    filter->amount_over = (int64_t)amount;
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

/* What needs no look at the value. */
static int set_text(tl_filter *filter, int option)
{
    const char **field = option == OPTION_OP        ? &filter->op
                         : option == OPTION_CUST    ? &filter->cust
                         : option == OPTION_SERIAL  ? &filter->serial
                         : option == OPTION_PREFIX  ? &filter->serial_prefix
                         : option == OPTION_LOG     ? &filter->log_uuid
                         : option == OPTION_CHANNEL ? &filter->channel
                                                    : &filter->after;

    *field = optarg;
    return EXIT_DONE;
}

static int set_flag(tl_filter *filter, int option)
{
    int *field = option == OPTION_PARKED     ? &filter->parked
                 : option == OPTION_IN_DOUBT ? &filter->in_doubt
                                             : &filter->conflict;

    *field = 1;
    return EXIT_DONE;
}

static int set_option(const struct command *self, struct wanted *wanted, int option)
{
    tl_filter *filter = &wanted->filter;

    switch (option) {
    case OPTION_STATUS:
        return set_status(self, filter);
    case OPTION_LANE:
        return set_lane(self, filter);
    case OPTION_OLDER:
        return set_age(self, "--older", &filter->older_ms);
    case OPTION_IDLE:
        return set_age(self, "--idle", &filter->idle_ms);
    case OPTION_SINCE:
        return set_moment(self, "--since", &filter->since_us);
    case OPTION_UNTIL:
        return set_moment(self, "--until", &filter->until_us);
    case OPTION_AS_OF:
        return set_moment(self, "--as-of", &filter->as_of_us);
    case OPTION_AMOUNT:
        return set_amount(self, filter);
    case OPTION_LIMIT:
        return set_limit(self, filter);
    case OPTION_OUTPUT:
        return set_form(self, &wanted->form);
    case OPTION_COLUMNS:
        return set_columns(self, &wanted->form);
    case OPTION_PARKED:
    case OPTION_IN_DOUBT:
    case OPTION_CONFLICT:
        return set_flag(filter, option);
    default:
        return set_text(filter, option);
    }
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {{"status", required_argument, NULL, OPTION_STATUS},
                                            {"lane", required_argument, NULL, OPTION_LANE},
                                            {"op", required_argument, NULL, OPTION_OP},
                                            {"cust", required_argument, NULL, OPTION_CUST},
                                            {"serial", required_argument, NULL, OPTION_SERIAL},
                                            {"prefix", required_argument, NULL, OPTION_PREFIX},
                                            {"log", required_argument, NULL, OPTION_LOG},
                                            {"older", required_argument, NULL, OPTION_OLDER},
                                            {"idle", required_argument, NULL, OPTION_IDLE},
                                            {"since", required_argument, NULL, OPTION_SINCE},
                                            {"until", required_argument, NULL, OPTION_UNTIL},
                                            {"as-of", required_argument, NULL, OPTION_AS_OF},
                                            {"channel", required_argument, NULL, OPTION_CHANNEL},
                                            {"amount-over", required_argument, NULL, OPTION_AMOUNT},
                                            {"parked", no_argument, NULL, OPTION_PARKED},
                                            {"in-doubt", no_argument, NULL, OPTION_IN_DOUBT},
                                            {"conflict", no_argument, NULL, OPTION_CONFLICT},
                                            {"limit", required_argument, NULL, OPTION_LIMIT},
                                            {"after", required_argument, NULL, OPTION_AFTER},
                                            {"output", required_argument, NULL, OPTION_OUTPUT},
                                            {"columns", required_argument, NULL, OPTION_COLUMNS},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    struct wanted wanted = {
        .filter = {.version = TL_FILTER_VERSION, .limit = LIMIT_DEFAULT},
    };
    struct common common = {0};
    tl_client *client = NULL;
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
    code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = list_print(client, &wanted.filter, &wanted.form);
    tl_client_close(client);
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
            "in UTC, or a TIME, for so long ago.\n",
    .options = "  --status P|F|Y  only rows in process, failed or succeeded\n"
               "  --lane LANE     only the trade-sync (sync) or retry-compensation rows\n"
               "                  (retry)\n"
               "  --op OP         only this business operation, both lanes\n"
               "  --cust CUST     only this customer\n"
               "  --serial SERIAL only this serial number\n"
               "  --prefix TEXT   only serial numbers that begin so\n"
               "  --log UUID      only rows with a step under this log UUID\n"
               "  --channel NAME  only trades of this channel\n"
               "  --amount-over N only trades of more than N minor units\n"
               "  --older TIME    only rows made that long ago, or longer\n"
               "  --idle TIME     only rows not changed for that long\n"
               "  --since MOMENT  only rows made at this moment or later\n"
               "  --until MOMENT  only rows made before it\n"
               "  --parked        only trades that wait for a person\n"
               "  --in-doubt      only trades of which money may have moved\n"
               "  --conflict      only trades that evidence contradicts\n"
               "  --as-of MOMENT  the rows as they were then, by their history\n"
               "  --limit N       at most N rows (100)\n"
               "  --after PLACE   go on where a list stopped, which told the place\n"
               "  -o, --output FORM  wide: more columns; csv; json: as --json\n"
               "  --columns NAMES these columns, with commas between: -o csv shows names\n",
    .run = run,
};
