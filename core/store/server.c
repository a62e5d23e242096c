/* The statements about the server itself, bound to their parameters; each is one round trip.
 * Touches only the connection. */
#include "store/server.h"

#include "store/bind.h"

db_answer store_fleet_of(db *connection, db_result *result)
{
    return db_run(connection, &sql_fleet_of, NULL, 0, result);
}

db_answer store_slots(db *connection, db_result *result)
{
    return db_run(connection, &sql_slots, NULL, 0, result);
}

db_answer store_right(db *connection, store_right_of right)
{
    static const struct sql_text *const tries[STORE_RIGHTS] = {
        [STORE_RIGHT_ASK] = &sql_right_ask,
        [STORE_RIGHT_READ_RESOLUTION] = &sql_right_read_resolution,
        [STORE_RIGHT_READ_CHANNEL] = &sql_right_read_channel,
        [STORE_RIGHT_WRITE_AMOUNT] = &sql_right_write_amount,
        [STORE_RIGHT_WRITE_LOG] = &sql_right_write_log,
        [STORE_RIGHT_WRITE_FIRST] = &sql_right_write_first,
        [STORE_RIGHT_DELETE_LOG] = &sql_right_delete_log,
        [STORE_RIGHT_DELETE_LOCK] = &sql_right_delete_lock,
        [STORE_RIGHT_CHANGE_EVIDENCE] = &sql_right_change_evidence,
        [STORE_RIGHT_FORGE] = &sql_right_forge,
    };

    return db_run(connection, tries[right], NULL, 0, NULL);
}
