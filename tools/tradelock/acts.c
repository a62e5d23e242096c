/* tradelock acts: what operators did, the latest first. Only reads. */
#include "command.h"

#include "moment.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct request {
    tl_act_filter filter;
    uint64_t act_no, after_row; /* the rows of one act; 0: acts */
} request = {.filter = TL_ACT_FILTER_INIT};

/* -------------------------------------------------------------------- acts -- */

/* "filed=3 left=1" as an object; what is no number is a string. */
static json_t *json_counts(const char *counts)
{
    json_t *object = json_object();
    char name[64], value[128];
    int size;

    while (sscanf(counts, " %63[^= ]=%127[^ ]%n", name, value, &size) == 2) {
        char *end;
        const long long number = strtoll(value, &end, 10);

        json_object_set_new(object, name, *end == '\0' ? json_integer(number) : json_string(value));
        counts += size;
    }
    return object;
}

static json_t *json_number(uint64_t number)
{
    return number != 0 ? json_unsigned(number) : json_null();
}

static json_t *json_act(const tl_act_view *act)
{
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:I, "
                     "s:o}",
                     "act", json_number(act->act_no), "begun_at", json_time(act->begun_us),
                     "ended_at", json_time(act->ended_us), "what", act->what, "said",
                     json_text(act->said), "serial_no", json_text(act->key.serial_no), "cust_no",
                     json_text(act->key.cust_no), "op_code", json_text(act->key.op_code), "fence",
                     json_number(act->fence), "account", act->account, "actor",
                     json_text(act->actor), "reason", json_text(act->reason), "planned",
                     (json_int_t)act->planned, "done", (json_int_t)act->done, "skipped",
                     (json_int_t)act->skipped, "counts", json_counts(act->counts));
}

/* "retry parked channel=bank: 11 of 12, 1 left alone (the bank is back)" */
static void say_what(char *to, size_t space, const tl_act_view *act)
{
    size_t size = (size_t)snprintf(to, space, "%s%s%s%s%s%s%s%s%s", act->what,
                                   act->key.serial_no[0] != '\0' ? " " : "", act->key.serial_no,
                                   act->key.cust_no[0] != '\0' ? " " : "", act->key.cust_no,
                                   act->key.op_code[0] != '\0' ? " " : "", act->key.op_code,
                                   act->said[0] != '\0' ? " " : "", act->said);

    if (act->planned > 1 && size < space)
        size += (size_t)snprintf(to + size, space - size, ": %" PRIu64 " of %" PRIu64, act->done,
                                 act->planned);
    if (act->planned > 1 && act->skipped > 0 && size < space)
        size += (size_t)snprintf(to + size, space - size, ", %" PRIu64 " left alone", act->skipped);
    if (act->planned == 0 && act->counts[0] != '\0' && size < space)
        size += (size_t)snprintf(to + size, space - size, ": %s", act->counts);
    if (act->ended_us == 0 && size < space)
        size += (size_t)snprintf(to + size, space - size, ", under way or stopped");
    if (act->reason[0] != '\0' && size < space)
        snprintf(to + size, space - size, " (%s)", act->reason);
}

static int add_act(void *context, const tl_act_view *act)
{
    struct listing *listing = context;
    char when[TIME_TEXT], number[24] = "", what[3400], by[400], *host;

    if (act->act_no != 0)
        snprintf(number, sizeof number, "%" PRIu64, act->act_no);
    say_what(what, sizeof what, act);
    json_array_append_new(listing->rows, json_act(act));
    snprintf(by, sizeof by, "%s", act->account);
    host = strrchr(by, '@');
    if (host != NULL)
        *host = '\0';
    table_add(listing->table, number, time_text(when, act->begun_us), by, what);
    return 0;
}

static int end_acts(struct listing *listing, tl_status status, const struct common *common,
                    const char *next)
{
    int code;

    if (status != TL_OK || !common->json) {
        code = listing_end(listing, status, 0, "acts", "nobody did anything of that kind");
        if (status == TL_OK && next[0] != '\0')
            fprintf(stderr, "tradelock: there are more: the same with --after %s\n", next);
        return code;
    }
    code = print_json(json_pack("{s:O, s:b, s:o}", "acts", listing->rows, "more", next[0] != '\0',
                                "next", json_text(next)),
                      EXIT_DONE);
    table_free(listing->table);
    json_decref(listing->rows);
    return code;
}

static int work_acts(tl_client *client, const struct common *common)
{
    struct listing listing = {table_new("ACT", "WHEN", "BY", "WHAT", NULL), json_array()};
    char next[TL_NEXT_TEXT] = "";
    const tl_status status = tl_act_list(client, &request.filter, add_act, &listing, next);

    return end_acts(&listing, status, common, next);
}

/* -------------------------------------------------------------------- rows -- */

static int add_row(void *context, const tl_act_row *row)
{
    struct listing *listing = context;
    char when[TIME_TEXT], number[24], fence[24];

    snprintf(number, sizeof number, "%" PRIu64, row->row_no);
    snprintf(fence, sizeof fence, "%" PRIu64, row->fence);
    json_array_append_new(listing->rows,
                          json_pack("{s:I, s:o, s:s, s:s, s:s, s:o, s:s}", "row",
                                    (json_int_t)row->row_no, "acted_at", json_time(row->acted_us),
                                    "serial_no", row->key.serial_no, "cust_no", row->key.cust_no,
                                    "op_code", row->key.op_code, "fence", json_unsigned(row->fence),
                                    "result", row->result));
    table_add(listing->table, number, time_text(when, row->acted_us), row->key.serial_no,
              row->key.cust_no, row->key.op_code, fence, row->result);
    return 0;
}

static int work_rows(tl_client *client, const struct common *common)
{
    struct listing listing = {
        table_new("ROW", "WHEN", "SERIAL", "CUSTOMER", "OPERATION", "FENCE", "RESULT", NULL),
        json_array()};
    const tl_status status = tl_act_row_list(client, request.act_no, request.after_row,
                                             request.filter.limit, add_row, &listing);

    return listing_end(&listing, status, common->json, "rows", "no such act has rows");
}

/* ----------------------------------------------------------------- command -- */

static int read_operand(const struct command *self, int argc, char **argv)
{
    const tl_act_filter *filter = &request.filter;

    if (argc == 0)
        return EXIT_DONE;
    if (argc > 1 || !read_number(argv[0], INT64_MAX, &request.act_no) || request.act_no == 0)
        return usage_error(self, "acts takes the number of one act, or nothing, not %s",
                           argv[argc - 1]);
    if (filter->since_us != 0 || filter->by != NULL)
        return usage_error(self, "--since and --by are for the list of acts");
    if (filter->after != NULL && !read_number(filter->after, INT64_MAX, &request.after_row))
        return usage_error(self, "--after is the number of a row here, not %s", filter->after);
    return EXIT_DONE;
}

static int work(tl_client *client, void *context)
{
    return (request.act_no != 0 ? work_rows : work_acts)(client, context);
}

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    const int code = read_operand(self, argc, argv);

    return code == EXIT_DONE ? with_client(common, 0, work, common) : code;
}

static const struct command_option options[] = {
    {"since MOMENT", "only what was begun at this moment or later", OPTION_MOMENT,
     .to = &request.filter.since_us},
    {"by NAME", "only what this account did, named without its host", OPTION_TEXT,
     .to = &request.filter.by},
    {"limit N", "at most N acts or rows (100)", OPTION_COUNT, .to = &request.filter.limit,
     .least = 1, .most = 1000000000},
    {"after PLACE", "go on where a list stopped, which told the place; of rows, a\nrow's number",
     OPTION_TEXT, .to = &request.filter.after},
    {.name = NULL}};

const struct command command_acts = {
    .name = "acts",
    .summary = "list what operators did, the latest first",
    .arguments = "[ACT] [--since MOMENT] [--by NAME] [--json]",
    .text = "Lists retries, evidence that operators filed, what they proposed, confirmed and\n"
            "closed, restores, resources that they took away, purges and audits: who by the\n"
            "server's word, when, what and why.  With the number of an act, its rows and\n"
            "what became of each.  A MOMENT is as of `tradelock ls`.\n",
    .options = options,
    .run = run,
    .takes_operands = 1,
};
