/* The statements about the server itself, bound to their parameters; each is one round trip.
 * Touches only the connection. */
#include "store/server.h"

#include "store/bind.h"

db_answer store_schema_version(db *connection, db_result *result)
{
    return db_run(connection, &sql_schema_version, NULL, 0, result);
}

db_answer store_fleet_of(db *connection, db_result *result)
{
    return db_run(connection, &sql_fleet_of, NULL, 0, result);
}

db_answer store_slots(db *connection, db_result *result)
{
    return db_run(connection, &sql_slots, NULL, 0, result);
}

db_answer store_slot_version(db *connection, unsigned slot, db_result *result)
{
    return SQL_RUN(connection, result, slot_version, .slot = db_uint(slot));
}

db_answer store_server_restored(db *connection, const char *session_id, int64_t age_ms,
                                db_result *result)
{
    return SQL_RUN(connection, result, server_restored, .session_id = db_text(session_id),
                   .age_ms = db_int(age_ms));
}

db_answer store_server_kin(db *connection, db_result *result)
{
    return db_run(connection, &sql_server_kin, NULL, 0, result);
}

db_answer store_server_cluster(db *connection, db_result *result)
{
    return db_run(connection, &sql_server_cluster, NULL, 0, result);
}

db_answer store_restore_found(db *connection, uint64_t accepted, const char *why)
{
    return SQL_RUN(connection, NULL, restore_found, .accepted = db_uint(accepted),
                   .why = db_text(why));
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
