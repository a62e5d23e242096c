/* tradelock resource: lists and shows lease mutexes and read-write locks, and takes one away. */
#include "command.h"
#include "fields.h"
#include "print.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Readers and writers, as a part of what `tradelock resource` shows. */

struct holders_wanted {
    const char *resource, *prefix; /* NULL: all */
    int all;                       /* rows without a holder too */
    unsigned limit;
};

struct holders {
    const char *prefix;
    struct listing *listing;
    unsigned count;
};

static int add_holder(void *context, const tl_holder_view *view)
{
    struct holders *h = context;

    if (h->prefix != NULL && strncmp(view->resource, h->prefix, strlen(h->prefix)) != 0)
        return 0;
    h->count++;
    return listing_add(h->listing, view);
}

/* Begins the listing, which the caller frees, also on failure, and reads into it.  *count: how
 * many. */
static tl_status holders_read(tl_client *client, const struct holders_wanted *w,
                              struct listing *listing, unsigned *count)
{
    struct holders h = {.prefix = w->prefix, .listing = listing};
    tl_status status;

    listing_begin(listing, &record_holder,
                  "resource,slot,mode,state,fence,acquired,until,renewed,holder");
    status = tl_holder_list(client, w->resource, w->all, w->limit, add_holder, &h);
    *count = h.count;
    return status;
}

#define LIMIT_MOST 1000000

static struct wanted {
    tl_resource_filter filter;
    const char *name;
    uint64_t fence, slot; /* slot 0: a mutex */
    int has_fence;
    const char *reason, *actor;
} wanted = {.filter = {.version = TL_RESOURCE_FILTER_VERSION, .limit = 100}};

/* ------------------------------------------------------------------- printing -- */

struct output {
    struct listing rows;
    unsigned count;
};

static int add_row(void *context, const tl_resource_view *view)
{
    struct output *output = context;

    output->count++;
    return listing_add(&output->rows, view);
}

static int list(tl_client *client)
{
    const struct holders_wanted want = {NULL, wanted.filter.prefix, wanted.filter.all,
                                        wanted.filter.limit};
    struct output output = {.count = 0};
    struct listing holders = {.table = NULL};
    unsigned readers = 0;
    tl_status status;
    int code, more;

    listing_begin(&output.rows, &record_resource,
                  "resource,state,fence,locked,until,renewed,holder");
    status = tl_resource_list(client, &wanted.filter, add_row, &output);
    if (status == TL_OK)
        status = holders_read(client, &want, &holders, &readers);
    more = output.count == wanted.filter.limit || readers == wanted.filter.limit;
    if (status != TL_OK) {
        code = report(status);
    } else if (common.json) {
        code = print_json(json_pack("{s:O, s:i, s:O, s:b}", "rows", output.rows.rows, "count",
                                    (int)output.count, "holders", holders.rows, "more", more),
                          EXIT_DONE);
    } else {
        table_print(output.rows.table);
        table_print(holders.table);
        if (output.count == 0 && readers == 0)
            fputs("tradelock: no resource passes these filters\n", stderr);
        if (more)
            fprintf(stderr,
                    "tradelock: only the first %u resources; there may be more "
                    "(--limit)\n",
                    wanted.filter.limit);
        code = finish_output(EXIT_DONE);
    }
    listing_free(&output.rows);
    listing_free(&holders);
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
    *(json_t **)context = record_json(&record_resource, view);
    return 0;
}

static int print_holders(json_t *document, const struct listing *holders)
{
    if (document == NULL) {
        tl_resource_view none = {.version = TL_RESOURCE_VIEW_VERSION};

        snprintf(none.resource, sizeof none.resource, "%s", wanted.name);
        document = record_json(&record_resource, &none);
    }
    json_object_set(document, "holders", holders->rows);
    return print_json(document, EXIT_DONE);
}

/* A name may be that of a mutex, of a read-write lock, or of both. */
static int show(tl_client *client)
{
    const struct holders_wanted want = {wanted.name, NULL, 1, LIMIT_MOST};
    struct listing holders = {.table = NULL};
    json_t *document = NULL;
    unsigned count = 0;
    int code;
    tl_status mutex = common.json ? tl_resource_show(client, wanted.name, keep_json, &document)
                                  : tl_resource_show(client, wanted.name, print_one, NULL);
    tl_status status = mutex == TL_OK || mutex == TL_NOT_FOUND ? TL_OK : mutex;

    if (status == TL_OK)
        status = holders_read(client, &want, &holders, &count);
    if (status == TL_OK && mutex == TL_NOT_FOUND && count == 0)
        status = tl_resource_show(client, wanted.name, keep_json, &document);
    if (status != TL_OK) {
        json_decref(document);
        code = report(status);
    } else if (common.json) {
        code = print_holders(document, &holders);
    } else {
        table_print(holders.table);
        code = finish_output(EXIT_DONE);
    }
    listing_free(&holders);
    return code;
}

static int unlock(tl_client *client)
{
    const json_int_t slot = (json_int_t)wanted.slot;
    tl_status status = slot != 0 ? tl_holder_unlock(client, wanted.name, (unsigned)slot,
                                                    wanted.fence, wanted.actor, wanted.reason)
                                 : tl_resource_unlock(client, wanted.name, wanted.fence,
                                                      wanted.actor, wanted.reason);
    char whose[64] = "free; its holder";

    if (status != TL_OK)
        return report(status);
    if (slot != 0)
        snprintf(whose, sizeof whose, "taken from its reader or writer number %lld, which", slot);
    return print_answer(
        json_pack("{s:s, s:o, s:s}", "resource", wanted.name, "slot",
                  slot != 0 ? json_integer(slot) : json_null(), "status", tl_status_name(status)),
        EXIT_DONE, "%s is %s cannot commit under this lock any more.\n", wanted.name, whose);
}

static const struct verb {
    const char *name;
    int (*work)(tl_client *client);
} verbs[] = {{"ls", list}, {"show", show}, {"unlock", unlock}};

static const struct verb *verb;

static int check(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0] && argc > 0; i++)
        if (strcmp(verbs[i].name, argv[0]) == 0)
            verb = &verbs[i];
    if (verb == NULL)
        return usage_error("after resource comes ls, show or unlock");
    if (argc != (verb->work == list ? 1 : 2))
        return usage_error("resource %s takes %s", verb->name,
                           verb->work == list ? "no operand" : "one name");
    wanted.name = argv[argc - 1];
    if (verb->work != unlock)
        return EXIT_DONE;
    if (!wanted.has_fence)
        return usage_error("--fence is missing: it says which holder you mean, and "
                           "`tradelock resource show` prints it");
    return needs_reason(wanted.reason);
}

static int work(tl_client *client)
{
    return verb->work(client);
}

static const struct command_option options[] = {
    {"prefix TEXT", "ls: names that begin so", OPTION_TEXT, .to = &wanted.filter.prefix},
    {"all", "ls: free ones too", OPTION_FLAG, .to = &wanted.filter.all},
    {"limit N", "ls: at most so many (100)", OPTION_COUNT, .to = &wanted.filter.limit, .least = 1,
     .most = LIMIT_MOST},
    {"fence N", "unlock: the fence as `show` printed it", OPTION_NUMBER, .to = &wanted.fence,
     .given = &wanted.has_fence, .is = "a number as `tradelock resource show` prints it"},
    {"slot N", "unlock: the reader or writer of this number, as `show` prints it", OPTION_NUMBER,
     .to = &wanted.slot, .least = 1, .most = UINT16_MAX,
     .is = "a reader's or writer's number as `tradelock resource show` prints it"},
    OPTION_REASON_OF(&wanted.reason, "unlock: why, for the record"),
    OPTION_ACTOR_OF(&wanted.actor, "unlock: who decided (the login name)"),
    {.name = NULL}};

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
    .examples = "  tradelock resource ls\n"
                "  tradelock resource show nightly/interest\n",
    .options = options,
    .check = check,
    .of = OF_DATABASE,
    .work = work,
    .takes_operands = 1,
};
