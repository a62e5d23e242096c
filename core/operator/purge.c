/* Purging, page by page; what may go is decided in the database (sql/schema/0004). */
#include "operator/read.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "store/store_operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Small enough to be over before anybody waits for a row of it. */
#define PAGE 200
/* Pages that met a row lock or a deadlock are run again. */
#define REPEATS 20
#define REPEAT_MS 50

static tl_status read_result(db *connection, tl_purged *purged, store_list_start *after,
                             unsigned *seen)
{
    db_result result = DB_RESULT_INIT;
    tl_status status = read_status(connection, store_purge_result(connection, &result),
                                   "reading what was purged");
    unsigned removed = 0;

    *seen = 0;
    /* Names have no blanks and fit: they were rows. */
    if (status == TL_OK && result.rows == 1 &&
        sscanf(db_get_text(&result, 0, 0), "%u %u %32s %64s %32s", &removed, seen,
               after->cust_no, after->serial_no, after->op_code) < 2)
        status = error_set(TL_INTERNAL, "the purge did not say what it did");
    purged->trades += removed;
    purged->looked_at += *seen;
    db_result_free(&result);
    return status;
}

static tl_status purge_page(db *connection, int64_t older_ms, store_list_start *after,
                            tl_purged *purged, unsigned *seen)
{
    tl_status status = TL_TRY_AGAIN;

    for (unsigned i = 0; i < REPEATS && status == TL_TRY_AGAIN; i++) {
        if (i > 0)
            clock_sleep_until_ms(clock_deadline(random_jitter_ms(REPEAT_MS, 100)));
        status = read_status(connection, store_purge(connection, older_ms, PAGE, after),
                             "purging");
    }
    return status == TL_OK ? read_result(connection, purged, after, seen) : status;
}

tl_status tl_purge(tl_client *client, int64_t older_ms, tl_purged *purged)
{
    tl_purged done = {0, 0};
    store_list_start after = {.skip = 0};
    db *connection = NULL;
    unsigned seen = PAGE;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK && older_ms < client->config.retention_ms)
        return error_set(TL_INVALID,
                         "trades are kept for %" PRId64
                         " days at least (retention_ms): a "
                         "purged key can be paid again",
                         client->config.retention_ms / 86400000);
    if (status == TL_OK)
        /* Its statements step over locked rows: not with a lock wait of 0 (claim.c). */
        status = pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms,
                          &connection);
    if (status != TL_OK)
        return status;
    while (status == TL_OK && seen == PAGE)
        status = purge_page(connection, older_ms, &after, &done, &seen);
    read_end(client, connection);
    if (purged != NULL)
        *purged = done;
    return status;
}
