/* The statements about jumps of the server's clock, bound to their values.  Decides nothing, and
 * touches only the connection. */
#include "store/clock.h"

#include "store/bind.h"

#include <string.h>

static void read_opening(const db_result *result, store_clock *found)
{
    found->behind_us = db_get_int(result, 0, 3);
    found->silent = db_get_int(result, 0, 4) != 0;
    found->has_kept = !db_is_null(result, 0, 5);
    found->kept_at_us = db_get_int(result, 0, 5);
    found->kept_least_us = db_get_int(result, 0, 6);
    found->kept_most_us = db_get_int(result, 0, 7);
    found->kept_jumps = (uint32_t)db_get_uint(result, 0, 8);
}

/* Reads tl_clock, which has one row. */
static db_answer read_clock(db *connection, const struct sql_text *statement,
                            const db_value *values, unsigned count, store_clock *found)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = db_run(connection, statement, values, count, &result);

    memset(found, 0, sizeof *found);
    if (answer == DB_DONE) {
        found->now_us = db_get_int(&result, 0, 0);
        found->jumps = (uint32_t)db_get_uint(&result, 0, 1);
        found->unsettled = (uint32_t)db_get_uint(&result, 0, 2);
    }
    if (answer == DB_DONE && count > 0)
        read_opening(&result, found);
    return answer;
}

db_answer store_clock_look(db *connection, store_clock *found)
{
    return read_clock(connection, &sql_clock_look, NULL, 0, found);
}

db_answer store_clock_open(db *connection, const char *boot_id, store_clock *found)
{
    return read_clock(connection, &sql_clock_open,
                      SQL_VALUES(clock_open, .boot_id = db_text(boot_id)),
                      sql_clock_open_values_count, found);
}

db_answer store_clock_future(db *connection, const char *op_code, int64_t *future_us)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(connection, &result, clock_future, .op_code = db_text(op_code));

    *future_us = answer == DB_DONE ? db_get_int(&result, 0, 0) : 0;
    return answer;
}
