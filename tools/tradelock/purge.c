/* tradelock purge: removes what has been finished for long enough. */
#include "command.h"

#include "fleet.h"
#include "print.h"
#include "progress.h"

#include <tradelock/admin.h>

#include <inttypes.h>
#include <stdio.h>

enum { OPTION_OLDER = OPTION_OWN, OPTION_DRY_RUN, OPTION_EVERY, OPTION_ARCHIVE, OPTION_SET };

#define SET_MOST 10000000

struct request {
    const struct common *common;
    int64_t older_ms, every_ms;
    int only_counts;
    const char *archive; /* NULL: none is written */
    unsigned archive_trades;
};

static int tell(void *context, const tl_progress *now)
{
    progress_tell(context, now);
    return 0;
}

static json_t *json_archived(const tl_archived *a)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "sets", (json_int_t)a->sets, "trades",
                     (json_int_t)a->trades, "rows", (json_int_t)a->rows, "bytes",
                     (json_int_t)a->bytes, "stayed", (json_int_t)a->stayed);
}

static json_t *json_purged(const tl_purged *p, int only_counts, json_t *archived)
{
    return json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "dry_run", only_counts,
        "trades", (json_int_t)p->trades, "lock_rows", (json_int_t)p->lock_rows, "steps",
        (json_int_t)p->steps, "evidence", (json_int_t)p->evidence, "decisions",
        (json_int_t)p->decisions, "resources", (json_int_t)p->resources, "rw_locks",
        (json_int_t)p->rw_locks, "resource_steps", (json_int_t)p->resource_steps, "sessions",
        (json_int_t)p->sessions, "looked_at", (json_int_t)p->looked_at, "archived", archived);
}

static void print_purged(const tl_purged *p, int only_counts)
{
    const char *word = only_counts ? "would be purged" : "purged";

    printf("%" PRIu64 " trades %s: %" PRIu64 " lock rows, %" PRIu64 " steps of history, %" PRIu64
           " pieces\nof evidence, %" PRIu64 " decisions\n",
           p->trades, word, p->lock_rows, p->steps, p->evidence, p->decisions);
    printf("%" PRIu64 " resources %s: %" PRIu64 " mutexes, %" PRIu64 " read-write locks; %" PRIu64
           " steps\n",
           p->resources, word, p->resources - p->rw_locks, p->rw_locks, p->resource_steps);
    printf("%" PRIu64 " sessions %s\n%" PRIu64 " rows looked at%s\n", p->sessions, word,
           p->looked_at, only_counts ? "; nothing was changed" : "");
}

static void print_archived(const tl_archived *a, const char *path)
{
    printf("%" PRIu64 " trades, %" PRIu64 " rows, %" PRIu64 " bytes written to %s in %" PRIu64
           " sets\n",
           a->trades, a->rows, a->bytes, path, a->sets);
    if (a->stayed > 0)
        printf("%" PRIu64 " trades changed meanwhile and stay; a later set has them anew\n",
               a->stayed);
}

static int work(tl_client *client, void *context)
{
    const struct request *request = context;
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_purged purged = {.trades = 0};
    tl_archived archived = {.sets = 0};
    const int archives = request->archive != NULL && !request->only_counts;
    struct progress progress;
    tl_status status;

    progress_begin(&progress, request->common->json, request->every_ms,
                   request->only_counts ? "to be removed" : "removed");
    options.older_ms = request->older_ms;
    options.only_counts = request->only_counts;
    options.progress = tell;
    options.context = &progress;
    options.archive = request->archive;
    options.archive_trades = request->archive_trades;
    options.archived = &archived;
    status = tl_purge_with(client, &options, &purged);
    progress_end(&progress);
    if (status != TL_OK)
        return fleet_missed(status);
    if (request->common->json)
        return fleet_page(json_purged(&purged, request->only_counts,
                                      archives ? json_archived(&archived) : json_null()),
                          EXIT_DONE);
    fleet_heading();
    print_purged(&purged, request->only_counts);
    if (archives)
        print_archived(&archived, request->archive);
    return finish_output(EXIT_DONE);
}

static int set_option(const struct command *self, struct request *request, int option)
{
    uint64_t number = 0;

    if (option == OPTION_DRY_RUN)
        request->only_counts = 1;
    else if (option == OPTION_ARCHIVE)
        request->archive = optarg;
    else if (option == OPTION_SET && (!read_number(optarg, SET_MOST, &number) || number == 0))
        return usage_error(self, "--set is a number of trades from 1 to %d, not %s", SET_MOST,
                           optarg);
    else if (option == OPTION_SET)
        request->archive_trades = (unsigned)number;
    else if (option == OPTION_EVERY && !read_duration_ms(optarg, &request->every_ms))
        return usage_error(self, "--every is a duration such as 10s, not %s", optarg);
    else if (option == OPTION_OLDER && !read_duration_ms(optarg, &request->older_ms))
        return usage_error(self, "--older is a duration such as 90d, not %s", optarg);
    return EXIT_DONE;
}

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {{"older", required_argument, NULL, OPTION_OLDER},
                                            {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
                                            {"every", required_argument, NULL, OPTION_EVERY},
                                            {"archive", required_argument, NULL, OPTION_ARCHIVE},
                                            {"set", required_argument, NULL, OPTION_SET},
                                            COMMON_OPTIONS,
                                            {NULL, 0, NULL, 0}};
    struct common common = {0};
    struct request request = {.common = &common, .older_ms = -1, .every_ms = PROGRESS_EVERY_MS};
    int option, code = EXIT_DONE;

    while ((option = common_next(self, &common, argc, argv, options, &code)) >= 0)
        if ((code = set_option(self, &request, option)) != EXIT_DONE)
            return code;
    if (option == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "purge takes no operand: %s", argv[optind]);
    if (request.older_ms < 0)
        return usage_error(self, "--older is missing: it says what is old enough to go");
    code = fleet_begin(&common);
    if (code == EXIT_DONE && fleet_is() && request.archive != NULL)
        code = usage_error(self, "an archive is of one database: --archive wants --shard");
    fleet_by_pages();
    if (code == EXIT_DONE) {
        code = fleet_each(0, work, &request);
        code = common.json ? fleet_print_pages(NULL, code) : code;
    }
    fleet_end();
    return code;
}

const struct command command_purge = {
    .name = "purge",
    .summary = "remove finished trades and idle locks that are old enough",
    .arguments = "--older AGE [--archive DIR [--set N]] [--dry-run] [--every TIME]",
    .text = "Removes trades that ended and have not changed for AGE: both rows, their "
            "history\n"
            "and evidence, in small batches.  Never one in process or in conflict, and "
            "never\n"
            "one younger than the setting retention_ms, since a purged key can be paid "
            "again.\n"
            "Likewise mutexes and read-write locks of resources that nobody held or "
            "asked for\n"
            "in that time, and sessions that were over by then.\n"
            "With --archive the rows of a trade are first written to DIR, which must be there and\n"
            "be writable by nobody else: packed CSV files with a manifest and SHA-256 sums, on\n"
            "the disk before anything goes.  `tradelock audit --archive DIR` reads them.\n"
            "Operators' acts then stay; mutexes, read-write locks and sessions are not written.\n"
            "It may be stopped and started again at any time.  stderr tells how far it is:\n"
            "on a terminal one line in place, in a log a line each TIME; nothing with --json.\n",
    .options = "  --older AGE     such as 90d or 2160h; at least retention_ms\n"
               "  --archive DIR   write trades there before they are removed\n"
               "  --set N         about so many trades a set of files (50000)\n"
               "  --dry-run       count what would go, by the same rule; change nothing\n"
               "  --every TIME    how often a log is told (10s)\n",
    .run = run,
};
