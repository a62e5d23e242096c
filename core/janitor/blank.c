/* The janitor's other task: takes contents out of trades that ended long ago.  A procedure of the schema
 * decides which (sql/object/blank.sql), and keeps the place. */
#include "janitor/janitor.h"

#include "base/clock.h"
#include "base/error.h"
#include "store/bind.h"

#include "sql_text.h"

#include <inttypes.h>
#include <stdio.h>

/* A page is small, so nobody waits long for a row of it. */
#define PAGE 200
#define WAIT_MS 50

static db_answer blank_page(db *connection, int anew, uint64_t *blanked, int *goes_on)
{
    RESULT told = DB_RESULT_INIT;
    uint64_t done = 0;
    db_answer answer =
        SQL_RUN(connection, NULL, blank_page, .most = db_uint(PAGE), .anew = db_int(anew));

    *goes_on = -1;
    if (answer == DB_DONE)
        answer = db_run(connection, &sql_blank_page_result, NULL, 0, &told);
    if (answer == DB_DONE && told.rows == 1)
        (void)sscanf(db_get_text(&told, 0, 0), "%" SCNu64 " %d", &done, goes_on);
    *blanked += done;
    return answer;
}

tl_status janitor_blank(task_engine *engine, int64_t budget_ms, int anew, uint64_t *blanked)
{
    const int64_t deadline_ms = clock_deadline(budget_ms);
    pool *connections = transition_pool(engine);
    db *connection;
    db_answer answer;
    int goes_on;
    tl_status status;

    /* Not a QUICK connection: its lock wait of 0 does not go with skipping locked rows. */
    TRY(pool_get(connections, POOL_BUSINESS, WAIT_MS, &connection));
    do {
        answer = blank_page(connection, anew, blanked, &goes_on);
        anew = 0;
    } while (answer == DB_DONE && goes_on > 0 && clock_left_ms(deadline_ms) > 0);
    status = db_error_status(connection, answer, "blanking contents");
    pool_put(connections, connection);
    if (status == TL_OK && goes_on < 0)
        status = error_set(TL_REFUSED, "no contents are blanked: `tradelock migrate` has not yet "
                                       "written payload_keep_ms into the schema");
    return status;
}
