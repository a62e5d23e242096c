/* tradelock purge: removes what has been finished for long enough. */
#include "command.h"

#include "fleet.h"
#include "print.h"
#include "progress.h"

#include <tradelock/admin.h>

#include <stdio.h>

static struct request {
    int64_t older_ms, every_ms;
    int only_counts;
    const char *archive; /* NULL: none is written */
    unsigned archive_trades;
} request = {.older_ms = -1, .every_ms = PROGRESS_EVERY_MS};

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

    printf(
        "%s trades %s: %s lock rows, %s steps of history, %s pieces\nof evidence, %s decisions\n",
        COUNT_TEXT(p->trades), word, COUNT_TEXT(p->lock_rows), COUNT_TEXT(p->steps),
        COUNT_TEXT(p->evidence), COUNT_TEXT(p->decisions));
    printf("%s resources %s: %s mutexes, %s read-write locks; %s steps\n", COUNT_TEXT(p->resources),
           word, COUNT_TEXT(p->resources - p->rw_locks), COUNT_TEXT(p->rw_locks),
           COUNT_TEXT(p->resource_steps));
    printf("%s sessions %s\n%s rows looked at%s\n", COUNT_TEXT(p->sessions), word,
           COUNT_TEXT(p->looked_at), only_counts ? "; nothing was changed" : "");
}

static int purge(tl_client *client, void *context)
{
    tl_purge_options options = TL_PURGE_OPTIONS_INIT;
    tl_purged purged = {.trades = 0};
    tl_archived archived = {.sets = 0};
    const int archives = request.archive != NULL && !request.only_counts;
    struct progress progress;
    tl_status status;

    (void)context;
    progress_begin(&progress, common.json, request.every_ms,
                   request.only_counts ? "to be removed" : "removed");
    options.older_ms = request.older_ms;
    options.only_counts = request.only_counts;
    options.progress = tell;
    options.context = &progress;
    options.archive = request.archive;
    options.archive_trades = request.archive_trades;
    options.archived = &archived;
    status = tl_purge(client, &options, &purged);
    progress_end(&progress);
    if (status != TL_OK)
        return fleet_told(status);
    if (common.json)
        return fleet_page(json_purged(&purged, request.only_counts,
                                      archives ? json_archived(&archived) : json_null()),
                          EXIT_DONE);
    fleet_heading();
    print_purged(&purged, request.only_counts);
    if (archives) {
        printf("%s trades, %s rows, %s bytes written to %s in %s sets\n",
               COUNT_TEXT(archived.trades), COUNT_TEXT(archived.rows), COUNT_TEXT(archived.bytes),
               request.archive, COUNT_TEXT(archived.sets));
        if (archived.stayed > 0)
            printf("%s trades changed meanwhile and stay; a later set has them anew\n",
                   COUNT_TEXT(archived.stayed));
    }
    return finish_output(EXIT_DONE);
}

static int check(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return request.older_ms >= 0
               ? EXIT_DONE
               : usage_error("--older is missing: it says what is old enough to go");
}

static int work(tl_client *client)
{
    int code;

    (void)client;
    if (fleet_is() && request.archive != NULL)
        return usage_error("an archive is of one database: --archive wants --shard");
    code = fleet_each(0, purge, NULL);
    return common.json ? fleet_print_pages(NULL, code) : code;
}

static const struct command_option options[] = {
    {"older AGE", "such as 90d or 2160h; at least retention_ms", OPTION_DURATION,
     .to = &request.older_ms},
    {"archive DIR", "write trades there before they are removed", OPTION_TEXT,
     .to = &request.archive},
    {"set N", "about so many trades a set of files (50000)", OPTION_COUNT,
     .to = &request.archive_trades, .least = 1, .most = 10000000, .is = "a number of trades"},
    {"dry-run", "count what would go, by the same rule; change nothing", OPTION_FLAG,
     .to = &request.only_counts},
    {"every TIME", "how often a log is told (10s)", OPTION_DURATION, .to = &request.every_ms,
     .is = "a duration such as 10s"},
    {.name = NULL}};

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
    .examples = "  tradelock purge --older 400d --dry-run\n",
    .options = options,
    .check = check,
    .of = OF_PAGES,
    .work = work,
};
