/* Reads who holds rows for long.  Touches no state. */
#include "admin/blocker.h"

#include "store/bind.h"

#include <stdio.h>

/* A step is over long before; a callback with business rows may not be. */
#define LONG_US INT64_C(5000000)

db_answer blocker_read(db *connection, blocker *found)
{
    enum { CONNECTION, USER, HOST, AGE_US, WAITS };
    db_result r = DB_RESULT_INIT;
    const db_answer answer = db_run(connection, &sql_open_transactions, NULL, 0, &r);

    *found = (blocker){.connection = 0};
    if (answer == DB_DONE && r.rows == 1) {
        found->connection = db_get_uint(&r, 0, CONNECTION);
        found->age_us = db_get_int(&r, 0, AGE_US);
        found->waits_for_replica = db_get_int(&r, 0, WAITS) != 0;
        snprintf(found->account, sizeof found->account, "%s@%s", db_get_text(&r, 0, USER),
                 db_get_text(&r, 0, HOST));
    }
    db_result_free(&r);
    return answer;
}

int blocker_is_long(const blocker *found)
{
    return found->connection != 0 && found->age_us >= LONG_US && !found->waits_for_replica;
}
