/* tradelock ls: lists lock rows by filter. Only reads. */
#include "command.h"

#include "print.h"

#include <tradelock/admin.h>

#include <stdio.h>
#include <string.h>

enum {
    OPTION_STATUS = OPTION_OWN,
    OPTION_LANE,
    OPTION_OP,
    OPTION_CUST,
    OPTION_SERIAL,
    OPTION_LOG,
    OPTION_OLDER,
    OPTION_PARKED,
    OPTION_IN_DOUBT,
    OPTION_CONFLICT,
    OPTION_LIMIT
};

#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000000

struct output {
    struct table *table;
    json_t *rows;
    unsigned count;
};

static int add_row(void *context, const tl_view *view)
{
    struct output *output = context;
    const char status[2] = {view->status, '\0'};
    char updated[TIME_TEXT], next[TIME_TEXT], counts[32], fence[24];
    char amount[AMOUNT_TEXT];

    output->count++;
    if (output->rows != NULL) {
        json_array_append_new(output->rows, json_view(view));
        return 0;
    }
    snprintf(counts, sizeof counts, "%u/%u/%u", view->epoch, view->sends, view->attempts);
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)view->fence);
    table_add(output->table, view->serial_no, view->cust_no, view->op_code, status,
              tl_state_name(view->state), view->conflict ? "yes" : "", amount_text(amount, view),
              counts, fence, time_text(updated, view->updated_us),
              time_text(next, view->next_run_us),
              view->parked[0] != '\0' ? view->parked : view->holder);
    return 0;
}

static int print_rows(struct output *output, const struct common *common, unsigned limit)
{
    const int more = output->count == limit;

    if (common->json)
        return print_json(json_pack("{s:O, s:i, s:b}", "rows", output->rows, "count",
                                    (int)output->count, "more", more),
                          EXIT_DONE);
    table_print_or_say(output->table, "no lock passes these filters");
    if (more)
        fprintf(stderr, "tradelock: only the first %u rows; there may be more (--limit)\n", limit);
    return finish_output(EXIT_DONE);
}

static int work(tl_client *client, const struct common *common, const tl_filter *filter)
{
    struct output output = {NULL, NULL, 0};
    tl_status status;
    int code;

    if (common->json)
        output.rows = json_array();
    else
        output.table =
            table_new("SERIAL", "CUSTOMER", "OPERATION", "ST", "STATE", "CONFLICT", "MINOR UNITS",
                      "EPOCH/SENDS/TRIES", "FENCE", "UPDATED", "NEXT", "HOLDER OR REASON", NULL);
    status = tl_list(client, filter, add_row, &output);
    code = status == TL_OK ? print_rows(&output, common, filter->limit) : report(status);
    table_free(output.table);
    json_decref(output.rows);
    return code;
}

static int set_lane(const struct command *self, tl_filter *filter, const char *text)
{
    if (strcmp(text, "sync") == 0)
        filter->lane = 'S';
    else if (strcmp(text, "retry") == 0)
        filter->lane = 'R';
    else
        return usage_error(self, "--lane is sync or retry, not %s", text);
    return EXIT_DONE;
}

static int set_value(const struct command *self, tl_filter *filter, int option)
{
    uint64_t limit;

    switch (option) {
    case OPTION_STATUS:
        if (strlen(optarg) != 1 || strchr("PFY", optarg[0]) == NULL)
            return usage_error(self, "--status is P, F or Y, not %s", optarg);
        filter->status = optarg[0];
        break;
    case OPTION_LANE:
        return set_lane(self, filter, optarg);
    case OPTION_OP:
        filter->op = optarg;
        break;
    case OPTION_CUST:
        filter->cust = optarg;
        break;
    case OPTION_SERIAL:
        filter->serial = optarg;
        break;
    case OPTION_LOG:
        filter->log_uuid = optarg;
        break;
    case OPTION_OLDER:
        if (!read_duration_ms(optarg, &filter->older_ms))
            return usage_error(self, "--older is a duration as 90s, 10m, 2h or 7d, not %s", optarg);
        break;
    case OPTION_LIMIT:
        if (!read_number(optarg, LIMIT_MOST, &limit) || limit == 0)
            return usage_error(self, "--limit is a number from 1 to %d, not %s", LIMIT_MOST,
                               optarg);
        filter->limit = (unsigned)limit;
        break;
    default:
        break;
    }
    return EXIT_DONE;
}

static int set_option(const struct command *self, tl_filter *filter, int option)
{
    switch (option) {
    case OPTION_PARKED:
        filter->parked = 1;
        return EXIT_DONE;
    case OPTION_IN_DOUBT:
        filter->in_doubt = 1;
        return EXIT_DONE;
    case OPTION_CONFLICT:
        filter->conflict = 1;
        return EXIT_DONE;
    default:
        return set_value(self, filter, option);
    }
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {{"status", required_argument, NULL, OPTION_STATUS},
                                            {"lane", required_argument, NULL, OPTION_LANE},
                                            {"op", required_argument, NULL, OPTION_OP},
                                            {"cust", required_argument, NULL, OPTION_CUST},
                                            {"serial", required_argument, NULL, OPTION_SERIAL},
                                            {"log", required_argument, NULL, OPTION_LOG},
                                            {"older", required_argument, NULL, OPTION_OLDER},
                                            {"parked", no_argument, NULL, OPTION_PARKED},
                                            {"in-doubt", no_argument, NULL, OPTION_IN_DOUBT},
                                            {"conflict", no_argument, NULL, OPTION_CONFLICT},
                                            {"limit", required_argument, NULL, OPTION_LIMIT},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    tl_filter filter = {.version = TL_FILTER_VERSION, .limit = LIMIT_DEFAULT};
    struct common common = {0};
    tl_client *client = NULL;
    int code = EXIT_DONE, option;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        if ((code = set_option(self, &filter, option)) != EXIT_DONE)
            return code;
    if (option == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "ls takes no operand: %s", argv[optind]);
    code = open_client(&client, &common, 0);
    if (code == EXIT_DONE)
        code = work(client, &common, &filter);
    tl_client_close(client);
    return code;
}

const struct command command_ls = {
    .name = "ls",
    .summary = "list locks, those in process first",
    .arguments = "[--status P|F|Y] [--op OP] [--cust CUST] ... [--json]",
    .text = "Lists lock rows that pass every filter.  Rows of a customer, of an "
            "operation and\n"
            "rows in process are found by an index; other filters walk the rows page by\n"
            "page.\n",
    .options = "  --status P|F|Y  only rows in process, failed or succeeded\n"
               "  --lane LANE     only the trade-sync (sync) or retry-compensation rows "
               "(retry)\n"
               "  --op OP         only this business operation, both lanes\n"
               "  --cust CUST     only this customer\n"
               "  --serial SERIAL only this serial number\n"
               "  --log UUID      only rows with a step under this log UUID\n"
               "  --older TIME    only rows not changed for that long: 90s, 10m, 2h, 7d\n"
               "  --parked        only trades that wait for a person\n"
               "  --in-doubt      only trades of which money may have moved\n"
               "  --conflict      only trades that evidence contradicts\n"
               "  --limit N       at most N rows (100)\n",
    .run = run,
};
