/* tradelock acts: what operators did, the latest first. Only reads. */
#include "command.h"

#include "fields.h"
#include "fleet.h"
#include "print.h"

#include <tradelock/admin.h>

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

static int add_act(void *context, const tl_act_view *act)
{
    json_t *object = record_json(&record_act, act);

    json_object_set_new(object, "counts", json_counts(act->counts));
    return listing_add_as(context, act, object);
}

static int add_row(void *context, const tl_act_row *row)
{
    return listing_add(context, row);
}

static int read_rows(tl_client *client, void *context)
{
    return fleet_told(tl_act_row_list(client, request.act_no, request.after_row,
                                      request.filter.limit, add_row, context));
}

static int work(tl_client *client)
{
    struct listing listing;
    char next[TL_NEXT_TEXT] = "";
    tl_status status;
    int code;

    if (request.act_no != 0)
        return listing_run(client, &record_act_row,
                           "row,acted,serial,customer,operation,fence,result", "rows",
                           "no such act has rows", read_rows);
    listing_begin(&listing, &record_act, "act,begun,by,what");
    status = tl_act_list(client, &request.filter, add_act, &listing, next);
    if (status == TL_OK && common.json) {
        code = print_json(json_pack("{s:O, s:b, s:o}", "acts", listing.rows, "more",
                                    next[0] != '\0', "next", json_text(next)),
                          EXIT_DONE);
        listing_free(&listing);
        return code;
    }
    code = listing_end(&listing, fleet_told(status), "acts", "nobody did anything of that kind");
    if (status == TL_OK && next[0] != '\0')
        fprintf(stderr, "tradelock: there are more: the same with --after %s\n", next);
    return code;
}

static int check(int argc, char **argv)
{
    const tl_act_filter *filter = &request.filter;

    if (argc == 0)
        return EXIT_DONE;
    if (argc > 1 || !read_number(argv[0], INT64_MAX, &request.act_no) || request.act_no == 0)
        return usage_error("acts takes the number of one act, or nothing, not %s", argv[argc - 1]);
    if (filter->since_us != 0 || filter->by != NULL)
        return usage_error("--since and --by are for the list of acts");
    if (filter->after != NULL && !read_number(filter->after, INT64_MAX, &request.after_row))
        return usage_error("--after is the number of a row here, not %s", filter->after);
    return EXIT_DONE;
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
    .examples = "  tradelock acts --since 1h\n"
                "  tradelock acts 7\n",
    .options = options,
    .check = check,
    .of = OF_DATABASE,
    .work = work,
    .takes_operands = 1,
};
