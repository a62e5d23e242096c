/* Purges old rows, page by page.  A procedure of the schema decides what may go
 * (sql/object/purge.sql), and removes it. */
#include "client/read.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/clock.h"
#include "admin/statements.h"

#include <tradelock/admin/server.h>
#include <tradelock/resource.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define OLDEST_MS INT64_C(3155760000000) /* 36525 days, as in the settings */
/* A page is small, so nobody waits long for a row of it. */
#define PAGE 200
#define CLOCKS_APART_S (5 * 60)
/* How often a page that met a row lock or a deadlock is run again, and after which pause. */
#define REPEATS 20
#define REPEAT_MS 50

/* Where the last page ended. */
struct place {
    store_list_place trade;
    char name[TL_RESOURCE_MAX + 1];
};

/* One kind of rows, and which field of tl_purged counts them. */
struct purging {
    db_answer (*page)(db *connection, int64_t older_ms, const struct place *after);
    /* Reads "removed seen place" from the text; returns how many of them it found. */
    int (*read)(const char *text, unsigned *removed, unsigned *seen, struct place *after);
    uint64_t *removed;
};

static db_answer page_trades(db *connection, int64_t older_ms, const struct place *after)
{
    return store_purge(connection, older_ms, PAGE, &after->trade);
}

static db_answer page_resources(db *connection, int64_t older_ms, const struct place *after)
{
    return store_purge_resources(connection, older_ms, PAGE, after->name);
}

static db_answer page_rw(db *connection, int64_t older_ms, const struct place *after)
{
    return store_purge_rw(connection, older_ms, PAGE, after->name);
}

/* The names come from rows, so they have no blanks, and fit. */
static int read_trades(const char *text, unsigned *removed, unsigned *seen, struct place *after)
{
    return sscanf(text, "%u %u %32s %64s %32s", removed, seen, after->trade.cust_no,
                  after->trade.serial_no, after->trade.op_code);
}

static int read_names(const char *text, unsigned *removed, unsigned *seen, struct place *after)
{
    return sscanf(text, "%u %u %128s", removed, seen, after->name);
}

static tl_status read_result(db *connection, const struct purging *p, tl_purged *purged,
                             struct place *after, unsigned *seen)
{
    db_result result = DB_RESULT_INIT;
    tl_status status =
        read_status(connection, store_purge_result(connection, &result), "reading what was purged");
    unsigned removed = 0;

    *seen = 0;
    if (status == TL_OK && result.rows == 1 &&
        p->read(db_get_text(&result, 0, 0), &removed, seen, after) < 2)
        status = error_set(TL_INTERNAL, "the purge did not say what it did");
    *p->removed += removed;
    purged->looked_at += *seen;
    db_result_free(&result);
    return status;
}

static tl_status purge_page(db *connection, const struct purging *p, int64_t older_ms,
                            struct place *after, tl_purged *purged, unsigned *seen)
{
    tl_status status = TL_TRY_AGAIN;

    for (unsigned i = 0; i < REPEATS && status == TL_TRY_AGAIN; i++) {
        if (i > 0)
            clock_sleep_until_ms(clock_deadline(random_jitter_ms(REPEAT_MS, 100)));
        status = read_status(connection, p->page(connection, older_ms, after), "purging");
    }
    return status == TL_OK ? read_result(connection, p, purged, after, seen) : status;
}

static tl_status purge_kind(db *connection, const struct purging *p, int64_t older_ms,
                            tl_purged *purged)
{
    struct place after = {.trade = {.us = 0}};
    unsigned seen = PAGE;
    tl_status status = TL_OK;

    while (status == TL_OK && seen == PAGE)
        status = purge_page(connection, p, older_ms, &after, purged, &seen);
    return status;
}

static tl_status purge_session_page(db *connection, int64_t older_ms, uint64_t *removed)
{
    db_result result = DB_RESULT_INIT;
    tl_status status = TL_TRY_AGAIN;

    for (unsigned i = 0; i < REPEATS && status == TL_TRY_AGAIN; i++) {
        if (i > 0)
            clock_sleep_until_ms(clock_deadline(random_jitter_ms(REPEAT_MS, 100)));
        status = read_status(connection, store_purge_sessions(connection, older_ms, PAGE),
                             "purging sessions");
    }
    if (status == TL_OK)
        status = read_status(connection, store_purge_sessions_result(connection, &result),
                             "reading what was purged");
    if (status == TL_OK)
        *removed = db_get_uint(&result, 0, 0);
    db_result_free(&result);
    return status;
}

static tl_status purge_sessions(db *connection, int64_t older_ms, tl_purged *purged)
{
    uint64_t removed = PAGE;
    tl_status status = TL_OK;

    while (status == TL_OK && removed == PAGE) {
        status = purge_session_page(connection, older_ms, &removed);
        if (status == TL_OK)
            purged->sessions += removed;
    }
    return status;
}

/* A purge from cron is too short to see a clock jump, so it compares the server's clock with that
 * of its own machine. */
static tl_status compare_clocks(db *connection)
{
    store_clock found;
    struct timespec now;
    int64_t ahead_s;
    tl_status status = read_status(connection, store_clock_look(connection, &found),
                                   "looking at the server's clock");

    if (status != TL_OK)
        return status;
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

tl_status tl_purge(tl_client *client, int64_t older_ms, tl_purged *purged)
{
    tl_purged done = {.trades = 0};
    const struct purging kinds[] = {{page_trades, read_trades, &done.trades},
                                    {page_resources, read_names, &done.resources},
                                    {page_rw, read_names, &done.resources}};
    db *connection = NULL;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK && older_ms < client->config.retention_ms)
        return error_set(TL_INVALID,
                         "trades are kept for %" PRId64 " days at least (retention_ms): a "
                         "purged key can be paid again",
                         client->config.retention_ms / 86400000);
    if (older_ms > OLDEST_MS)
        older_ms = OLDEST_MS;
    if (status == TL_OK)
        /* Not a QUICK connection: its lock wait of 0 does not go with skipping locked rows
         * (claim.c). */
        status =
            pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms, &connection);
    if (status != TL_OK)
        return status;
    status = compare_clocks(connection);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && status == TL_OK; i++)
        status = purge_kind(connection, &kinds[i], older_ms, &done);
    if (status == TL_OK)
        status = purge_sessions(connection, older_ms, &done);
    read_end(client, connection);
    if (purged != NULL)
        *purged = done;
    return status;
}
