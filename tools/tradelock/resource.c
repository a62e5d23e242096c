/* tradelock resource: lists and shows lease mutexes and read-write locks, and takes one away. */
#include "command.h"

#include "fields.h"
#include "holders.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    OPTION_FENCE = OPTION_OWN,
    OPTION_SLOT,
    OPTION_REASON,
    OPTION_ACTOR,
    OPTION_PREFIX,
    OPTION_ALL,
    OPTION_LIMIT
};

#define LIMIT_DEFAULT 100
#define LIMIT_MOST 1000000

struct wanted {
    struct common common;
    tl_resource_filter filter;
    const char *name;
    uint64_t fence, slot; /* slot 0: a mutex */
    int has_fence;
    const char *reason, *actor;
};

/* ------------------------------------------------------------------- printing -- */

static const char *until_text(char to[TIME_TEXT], const tl_resource_view *view)
{
    int64_t until_us = view->max_hold_until_us;

    if (view->state == TL_RESOURCE_KEPT)
        until_us = view->free_us;
    else if (view->lease_until_us != 0)
        until_us = view->lease_until_us;
    return time_text(to, until_us);
}

struct output {
    struct table *table;
    json_t *rows, *holders;
    unsigned count;
};

static int add_row(void *context, const tl_resource_view *view)
{
    struct output *output = context;
    char since[TIME_TEXT], until[TIME_TEXT], fence[24];

    output->count++;
    if (output->rows != NULL) {
        json_array_append_new(output->rows, json_resource(view));
        return 0;
    }
    snprintf(fence, sizeof fence, "%" PRIu64, view->fence);
    table_add(output->table, view->resource, tl_resource_state_name(view->state), fence,
              time_text(since, view->locked_us), until_text(until, view),
              view->renewed ? "session" : "", view->holder);
    return 0;
}

static int list(tl_client *client, const struct wanted *w)
{
    const struct holders_wanted holders = {NULL, w->filter.prefix, w->filter.all, w->filter.limit};
    struct output output = {NULL, NULL, NULL, 0};
    unsigned readers = 0;
    tl_status status;
    int code, more;

    if (w->common.json)
        output.rows = json_array();
    else
        output.table = table_new("RESOURCE", "STATE", "FENCE", "LOCKED", "AT MOST UNTIL",
                                 "RENEWED BY", "HOLDER", NULL);
    status = tl_resource_list(client, &w->filter, add_row, &output);
    if (status == TL_OK && w->common.json)
        status = holders_json(client, &holders, &output.holders, &readers);
    more = output.count == w->filter.limit || readers == w->filter.limit;
    if (status != TL_OK) {
        code = report(status);
    } else if (w->common.json) {
        code = print_json(json_pack("{s:O, s:i, s:O, s:b}", "rows", output.rows, "count",
                                    (int)output.count, "holders", output.holders, "more", more),
                          EXIT_DONE);
    } else {
        table_print(output.table);
        status = holders_print(client, &holders, &readers);
        if (status == TL_OK && output.count == 0 && readers == 0)
            fputs("tradelock: no resource passes these filters\n", stderr);
        if (more || readers == w->filter.limit)
            fprintf(stderr,
                    "tradelock: only the first %u resources; there may be more "
                    "(--limit)\n",
                    w->filter.limit);
        code = status == TL_OK ? finish_output(EXIT_DONE) : report(status);
    }
    table_free(output.table);
    json_decref(output.rows);
    json_decref(output.holders);
    return code;
}

static void print_moment(const char *name, const tl_resource_view *view, int64_t us)
{
    char when[TIME_TEXT], distance[TIME_TEXT];

    if (us != 0)
        print_pair_format(name, "%s (%s)", time_text(when, us),
                          distance_text(distance, view->now_us, us));
}

static const char *meaning(const tl_resource_view *view)
{
    switch (view->state) {
    case TL_RESOURCE_HELD:
        return view->renewed ? "Its holder lives, and its session renews the lock."
                             : "Its holder's lease is not over.";
    case TL_RESOURCE_KEPT:
        return "Nobody holds it; its minimum hold is not over, so nobody is let in yet.";
    case TL_RESOURCE_EXPIRED:
        return "Its holder is dead, or too late; whoever asks next takes it over.";
    default:
        return "Nobody holds it.";
    }
}

static int print_one(void *context, const tl_resource_view *view)
{
    (void)context;
    printf("%s\n%s\n\n", view->resource, meaning(view));
    print_pair("state", tl_resource_state_name(view->state));
    print_pair("last step", view->step);
    print_pair_format("fence", "%" PRIu64, view->fence);
    print_pair("holder", view->holder);
    print_pair("session", view->session_id);
    print_pair("thread", view->thread_no);
    print_pair("log", view->log_no);
    print_moment("locked", view, view->locked_us);
    print_moment("updated", view, view->updated_us);
    print_moment("lease until", view, view->lease_until_us);
    print_moment("max hold until", view, view->max_hold_until_us);
    print_moment("not before", view, view->free_us);
    print_pair("actor", view->actor);
    print_pair("remark", view->remark);
    print_bytes("payload", view->payload, view->payload_size);
    return 0;
}

static int keep_json(void *context, const tl_resource_view *view)
{
    *(json_t **)context = json_resource(view);
    return 0;
}

/* A name may be that of a mutex, of a read-write lock, or of both. */
static int show_json(tl_client *client, const struct wanted *w,
                     const struct holders_wanted *holders)
{
    tl_resource_view none = {.version = TL_RESOURCE_VIEW_VERSION};
    json_t *document = NULL, *rows = NULL;
    unsigned count = 0;
    tl_status mutex = tl_resource_show(client, w->name, keep_json, &document), status;

    if (mutex != TL_OK && mutex != TL_NOT_FOUND)
        return report(mutex);
    status = holders_json(client, holders, &rows, &count);
    if (status != TL_OK || (mutex == TL_NOT_FOUND && count == 0)) {
        int code = report(
            status != TL_OK ? status : tl_resource_show(client, w->name, keep_json, &document));

        json_decref(document);
        json_decref(rows);
        return code;
    }
    if (document == NULL) {
        snprintf(none.resource, sizeof none.resource, "%s", w->name);
        document = json_resource(&none);
    }
    json_object_set_new(document, "holders", rows);
    return print_json(document, EXIT_DONE);
}

static int show(tl_client *client, struct wanted *w)
{
    const struct holders_wanted holders = {w->name, NULL, 1, LIMIT_MOST};
    unsigned count = 0;
    tl_status mutex, status;

    if (w->common.json)
        return show_json(client, w, &holders);
    mutex = tl_resource_show(client, w->name, print_one, w);
    if (mutex != TL_OK && mutex != TL_NOT_FOUND)
        return report(mutex);
    status = holders_print(client, &holders, &count);
    if (status != TL_OK)
        return report(status);
    if (mutex == TL_NOT_FOUND && count == 0)
        return report(tl_resource_show(client, w->name, print_one, w));
    return finish_output(EXIT_DONE);
}

static int unlock(tl_client *client, const struct wanted *w)
{
    tl_status status =
        w->slot != 0
            ? tl_holder_unlock(client, w->name, (unsigned)w->slot, w->fence, w->actor, w->reason)
            : tl_resource_unlock(client, w->name, w->fence, w->actor, w->reason);

    if (status != TL_OK)
        return report(status);
    if (w->common.json)
        return print_json(json_pack("{s:s, s:o, s:s}", "resource", w->name, "slot",
                                    w->slot != 0 ? json_integer((json_int_t)w->slot) : json_null(),
                                    "status", tl_status_name(status)),
                          EXIT_DONE);
    if (w->slot != 0)
        printf("%s is taken from its reader or writer number %" PRIu64
               ", which cannot commit under this lock any more.\n",
               w->name, w->slot);
    else
        printf("%s is free; its holder cannot commit under this lock any more.\n", w->name);
    return finish_output(EXIT_DONE);
}

/* -------------------------------------------------------------------- reading -- */

static int set_option(const struct command *self, struct wanted *w, int option)
{
    uint64_t limit;

    switch (option) {
    case OPTION_REASON:
        w->reason = optarg;
        break;
    case OPTION_ACTOR:
        w->actor = optarg;
        break;
    case OPTION_PREFIX:
        w->filter.prefix = optarg;
        break;
    case OPTION_ALL:
        w->filter.all = 1;
        break;
    case OPTION_LIMIT:
        if (!read_number(optarg, LIMIT_MOST, &limit) || limit == 0)
            return usage_error(self, "--limit is a number from 1 to %d, not %s", LIMIT_MOST,
                               optarg);
        w->filter.limit = (unsigned)limit;
        break;
    case OPTION_SLOT:
        if (!read_number(optarg, UINT16_MAX, &w->slot) || w->slot == 0)
            return usage_error(self,
                               "--slot is a reader's or writer's number as `tradelock "
                               "resource show` prints it, not %s",
                               optarg);
        break;
    default:
        if (!read_number(optarg, INT64_MAX, &w->fence))
            return usage_error(self,
                               "--fence is a number as `tradelock resource show` prints "
                               "it, not %s",
                               optarg);
        w->has_fence = 1;
        break;
    }
    return EXIT_DONE;
}

static int read_options(const struct command *self, struct wanted *w, int argc, char **argv,
                        int *code)
{
    static const struct option options[] = {{"fence", required_argument, NULL, OPTION_FENCE},
                                            {"slot", required_argument, NULL, OPTION_SLOT},
                                            {"reason", required_argument, NULL, OPTION_REASON},
                                            {"actor", required_argument, NULL, OPTION_ACTOR},
                                            {"prefix", required_argument, NULL, OPTION_PREFIX},
                                            {"all", no_argument, NULL, OPTION_ALL},
                                            {"limit", required_argument, NULL, OPTION_LIMIT},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = common_next(self, &w->common, argc, argv, options, code)) >= 0) {
        *code = set_option(self, w, option);
        if (*code != EXIT_DONE)
            return 0;
    }
    return option != COMMON_STOP;
}

static int check_unlock(const struct command *self, const struct wanted *w)
{
    if (!w->has_fence)
        return usage_error(self, "--fence is missing: it says which holder you mean, and "
                                 "`tradelock resource show` prints it");
    if (w->reason == NULL || w->reason[0] == '\0')
        return usage_error(self, "--reason is missing: it goes on record");
    return EXIT_DONE;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct wanted w = {.filter = {.version = TL_RESOURCE_FILTER_VERSION, .limit = LIMIT_DEFAULT},
                       .actor = person()};
    tl_client *client = NULL;
    const char *word;
    int code = EXIT_DONE, operands;

    if (!read_options(self, &w, argc, argv, &code))
        return code;
    word = optind < argc ? argv[optind] : "";
    operands = strcmp(word, "show") == 0 || strcmp(word, "unlock") == 0 ? 2 : 1;
    if (operands == 1 && strcmp(word, "ls") != 0)
        return usage_error(self, "after resource comes ls, show or unlock");
    if (argc - optind != operands)
        return usage_error(self, "resource %s takes %s", word,
                           operands == 2 ? "one name" : "no operand");
    w.name = operands == 2 ? argv[optind + 1] : NULL;
    if (strcmp(word, "unlock") == 0)
        code = check_unlock(self, &w);
    if (code == EXIT_DONE)
        code = open_client(&client, &w.common, 0);
    if (code == EXIT_DONE)
        code = operands == 1               ? list(client, &w)
               : strcmp(word, "show") == 0 ? show(client, &w)
                                           : unlock(client, &w);
    tl_client_close(client);
    return code;
}

const struct command command_resource = {
    .name = "resource",
    .summary = "who holds which resource, and taking it away",
    .arguments = "ls [--prefix TEXT] [--all] [--limit N] | show NAME |\n"
                 "       unlock NAME [--slot N] --fence N --reason TEXT [--actor NAME]",
    .text = "Looks after the locks of named resources.  `ls` lists those that are not "
            "free,\n"
            "`show` says what there is to know about one, readers and writers too;\n"
            "`unlock` takes it from its\n"
            "holder, who cannot commit under it any more.  An unlock is bound to the "
            "fence\n"
            "that you saw: when the lock has changed hands since, nothing happens.  Of a\n"
            "read-write lock --slot says which reader or writer is meant.\n",
    .options = "  --prefix TEXT   ls: names that begin so\n"
               "  --all           ls: free ones too\n"
               "  --limit N       ls: at most so many (100)\n"
               "  --fence N       unlock: the fence as `show` printed it\n"
               "  --slot N        unlock: the reader or writer of this number, as `show` "
               "prints it\n"
               "  --reason TEXT   unlock: why, for the record\n"
               "  --actor NAME    unlock: who decided (the login name)\n",
    .run = run,
};
