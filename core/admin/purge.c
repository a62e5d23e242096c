/* Purges old rows, page by page.  A procedure of the schema decides what may go
 * (sql/object/purge.sql), and removes it. */
#include "admin/purge.h"

#include "admin/act.h"

#include "client/read.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CLOCKS_APART_S (5 * 60)
/* How often a page that met a row lock or a deadlock is run again, and after which pause. */
#define REPEATS 20
#define REPEAT_MS 50

/* One kind of rows. */
struct kind {
    const char *what, *table;
    db_answer (*page)(const struct purge *p, const struct place *after);
    /* Takes what "removed seen place ..." says; 0: it does not say that. */
    int (*take)(struct purge *p, const char *text, struct place *after, unsigned *seen);
};

static db_answer page_trades(const struct purge *p, const struct place *after)
{
    return SQL_RUN(p->connection, NULL, purge, .only_counts = db_int(p->only_counts),
                   .older_ms = db_int(p->older_ms), .most = db_uint(PURGE_PAGE),
                   .cust_no = db_text(after->trade.cust_no),
                   .serial_no = db_text(after->trade.serial_no),
                   .op_code = db_text(after->trade.op_code));
}

static db_answer page_mutexes(const struct purge *p, const struct place *after)
{
    return SQL_RUN(p->connection, NULL, purge_resources, .only_counts = db_int(p->only_counts),
                   .older_ms = db_int(p->older_ms), .most = db_uint(PURGE_PAGE),
                   .after = db_text(after->name));
}

static db_answer page_rw(const struct purge *p, const struct place *after)
{
    return SQL_RUN(p->connection, NULL, purge_rw, .only_counts = db_int(p->only_counts),
                   .older_ms = db_int(p->older_ms), .most = db_uint(PURGE_PAGE),
                   .after = db_text(after->name));
}

int purge_take_trades(struct purge *p, const char *text, struct place *after, unsigned *seen)
{
    unsigned removed = 0, rows = 0, steps = 0, evidence = 0, decisions = 0;
    const int words =
        sscanf(text, "%u %u %32s %64s %32s %u %u %u %u", &removed, seen, after->trade.cust_no,
               after->trade.serial_no, after->trade.op_code, &rows, &steps, &evidence, &decisions);

    p->done.trades += removed;
    p->done.looked_at += *seen;
    p->done.lock_rows += rows;
    p->done.steps += steps;
    p->done.evidence += evidence;
    p->done.decisions += decisions;
    return words >= 2;
}

static int take_locks(struct purge *p, const char *text, struct place *after, unsigned *seen)
{
    unsigned removed = 0, steps = 0;
    const int words = sscanf(text, "%u %u %128s %u", &removed, seen, after->name, &steps);

    p->done.resources += removed;
    p->done.looked_at += *seen;
    p->done.resource_steps += steps;
    return words >= 2;
}

static int take_rw(struct purge *p, const char *text, struct place *after, unsigned *seen)
{
    const uint64_t before = p->done.resources;
    const int said = take_locks(p, text, after, seen);

    p->done.rw_locks += p->done.resources - before;
    return said;
}

tl_status purge_tell(const struct purge *p, const char *what, const char *table, uint64_t done,
                     uint64_t found)
{
    const tl_progress progress = {
        .what = what, .done = done, .of = table_rows(&p->tables, table), .found = found};

    if (p->options->progress == NULL || p->options->progress(p->options->context, &progress) == 0)
        return TL_OK;
    return error_set(TL_REFUSED, "it was stopped");
}

static tl_status read_result(struct purge *p, const struct kind *kind, struct place *after,
                             unsigned *seen)
{
    RESULT result = DB_RESULT_INIT;

    TRY(read_run(p->connection, &sql_purge_result, &result, "reading what was purged"));
    *seen = 0;
    if (result.rows == 1 && !kind->take(p, db_get_text(&result, 0, 0), after, seen))
        return error_set(TL_INTERNAL, "the purge did not say what it did");
    return TL_OK;
}

int purge_may_repeat(tl_status status, unsigned *repeats)
{
    if (status != TL_TRY_AGAIN || ++*repeats >= REPEATS)
        return 0;
    clock_sleep_until_ms(clock_deadline(random_jitter_ms(REPEAT_MS, 100)));
    return 1;
}

static tl_status purge_page(struct purge *p, const struct kind *kind, struct place *after,
                            unsigned *seen)
{
    unsigned repeats = 0;
    tl_status status;

    do
        status = read_status(p->connection, kind->page(p, after), "purging");
    while (purge_may_repeat(status, &repeats));
    return status == TL_OK ? read_result(p, kind, after, seen) : status;
}

static tl_status purge_kind(struct purge *p, const struct kind *kind)
{
    const uint64_t before = p->done.trades + p->done.resources;
    struct place after = {.trade = {.us = 0}};
    uint64_t looked_at = 0;
    unsigned seen = PURGE_PAGE;

    while (seen == PURGE_PAGE) {
        TRY(purge_page(p, kind, &after, &seen));
        looked_at += seen;
        TRY(purge_tell(p, kind->what, kind->table, looked_at,
                       p->done.trades + p->done.resources - before));
    }
    return TL_OK;
}

static tl_status purge_session_page(struct purge *p, uint64_t *removed)
{
    const db_value older_ms = db_int(p->older_ms);
    RESULT result = DB_RESULT_INIT;
    unsigned repeats = 0;
    tl_status status;

    do
        status =
            read_status(p->connection,
                        p->only_counts ? SQL_RUN(p->connection, NULL, purge_sessions_count,
                                                 .older_ms = older_ms)
                                       : SQL_RUN(p->connection, NULL, purge_sessions,
                                                 .older_ms = older_ms, .most = db_uint(PURGE_PAGE)),
                        "purging sessions");
    while (purge_may_repeat(status, &repeats));
    TRY(status);
    TRY(read_run(p->connection, &sql_purge_sessions_result, &result, "reading what was purged"));
    *removed = db_get_uint(&result, 0, 0);
    return TL_OK;
}

static tl_status purge_sessions(struct purge *p)
{
    uint64_t removed = PURGE_PAGE;
    int goes_on = 1;

    while (goes_on) {
        TRY(purge_session_page(p, &removed));
        goes_on = removed == PURGE_PAGE && !p->only_counts;
        p->done.sessions += removed;
        TRY(purge_tell(p, "sessions", "", p->done.sessions, p->done.sessions));
    }
    return TL_OK;
}

/* Whether a trade may be old enough.  Where none is, their table is not walked.  The sync
 * row tells of its trade; closed retry rows have no moment in the index, and would all be read. */
static tl_status look_for_old(struct purge *p, int *found)
{
    store_operation operation = {.op_code = ""};
    RESULT rows = DB_RESULT_INIT;

    do {
        TRY(read_status(p->connection, store_operation_next(p->connection, &operation),
                        "reading the operations"));
        if (operation.op_code[0] != '\0' && !text_is_retry_op(operation.op_code))
            TRY(read_status(p->connection,
                            SQL_RUN(p->connection, &rows, purge_any,
                                    .op_code = db_text(operation.op_code),
                                    .older_ms = db_int(p->older_ms)),
                            "looking for old trades"));
    } while (rows.rows == 0 && operation.op_code[0] != '\0');
    *found = rows.rows > 0;
    return TL_OK;
}

/* A purge from cron is too short to see a clock jump, so it compares the server's clock with that
 * of its own machine. */
static tl_status compare_clocks(db *connection)
{
    store_clock found;
    struct timespec now;
    int64_t ahead_s;

    TRY(read_status(connection, store_clock_look(connection, &found),
                    "looking at the server's clock"));
    if (found.unsettled > 0)
        return error_set(TL_TRY_AGAIN,
                         "the server's clock was set, and the trades in process are not "
                         "looked through yet: nothing is purged");
    clock_gettime(CLOCK_REALTIME, &now);
    ahead_s = found.now_us / 1000000 - now.tv_sec;
    if (ahead_s > CLOCKS_APART_S || ahead_s < -CLOCKS_APART_S)
        return error_set(TL_SERVER_UNSAFE,
                         "the server's clock is %" PRId64 " s %s of this machine's, so it "
                         "is not certain what is old enough: nothing is purged",
                         ahead_s < 0 ? -ahead_s : ahead_s, ahead_s < 0 ? "behind that" : "ahead");
    return TL_OK;
}

static tl_status purge_kinds(struct purge *p)
{
    static const struct kind kinds[] = {
        {"lock rows", "trade_lock", page_trades, purge_take_trades},
        {"mutexes", "", page_mutexes, take_locks},
        {"read-write locks", "", page_rw, take_rw},
    };
    uint64_t act_no = 0;
    int has_old = 0;

    TRY(compare_clocks(p->connection));
    if (p->archives)
        TRY(archive_check_server(&p->archive, p->connection, &p->server));
    if (!p->only_counts)
        TRY(act_purge_begin(p->connection, p->older_ms, p->archives, &act_no));
    if (p->options->progress != NULL)
        TRY(read_run(p->connection, &sql_metrics_tables, &p->tables,
                     "asking how large the tables are"));
    TRY(look_for_old(p, &has_old));
    for (size_t i = has_old ? 0 : 1; i < sizeof kinds / sizeof kinds[0]; i++)
        TRY(i == 0 && p->archives ? purge_to_archive(p) : purge_kind(p, &kinds[i]));
    TRY(purge_sessions(p));
    return p->only_counts ? TL_OK
                          : act_purge_end(p->connection, p->older_ms,
                                          p->archives ? &p->archive : NULL, act_no, &p->done);
}

static int purge_all(void *context)
{
    return (int)purge_kinds(context);
}

tl_status tl_purge(tl_client *client, const tl_purge_options *options, tl_purged *purged)
{
    struct purge p = {.client = client,
                      .options = options,
                      .tables = DB_RESULT_INIT,
                      .archive = {.fd = -1, .lock_fd = -1}};
    READING at = {.client = client};
    tl_status status = TL_OK;

    error_clear();
    TRY(client_check(client));
    if (options == NULL || options->version != TL_PURGE_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or its version is not set");
    if (options->older_ms < client->config.retention_ms)
        return error_set(TL_INVALID,
                         "trades are kept for %" PRId64 " days at least (retention_ms): a "
                         "purged key can be paid again",
                         client->config.retention_ms / 86400000);
    p.archives = options->archive != NULL && options->only_counts == 0;
    if (p.archives)
        status = archive_open(&p.archive, options->archive, 1);
    if (status == TL_OK)
        /* Not a QUICK connection: its lock wait of 0 does not go with skipping locked rows
         * (claim.c). */
        status = pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms,
                          &at.connection);
    if (status != TL_OK) {
        archive_close(&p.archive);
        return status;
    }
    p.connection = at.connection;
    p.only_counts = options->only_counts != 0;
    p.older_ms = options->older_ms < PURGE_OLDEST_MS ? options->older_ms : PURGE_OLDEST_MS;
    status = read_and_show(purge_all, &p);
    db_result_free(&p.tables);
    archive_close(&p.archive);
    if (purged != NULL)
        *purged = p.done;
    if (p.archives && options->archived != NULL)
        *options->archived = p.archived;
    return status;
}
