#include "admin/statements.h"

#include "sql_text.h"
#include "store/rows.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_SESSION "00000000-0000-0000-0000-000000000000"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

db_answer store_log_seen(db *connection, const db_value *keys, size_t count, const char *log_uuid,
                         db_result *result)
{
    const db_value uuid[] = {db_text(log_uuid), db_text(log_uuid), db_text(log_uuid)};
    const store_rows rows = {
        .rows = keys, .row_values = 3, .count = count, .tail = uuid, .tail_count = COUNT(uuid)};

    return store_run_rows(connection, &sql_log_seen, &rows, result);
}

db_answer store_list_customer(db *connection, const store_list_start *start, unsigned limit,
                              db_result *result)
{
    const db_value values[] = {
        db_text(start->cust_no),
        db_text(start->serial_no),
        db_text(start->serial_no),
        db_text(start->op_code),
        db_uint(limit),
    };

    return db_run(connection, &sql_list_customer, values, COUNT(values), result);
}

db_answer store_list_due(db *connection, const char *op_code, const store_list_start *start,
                         unsigned limit, db_result *result)
{
    const db_value values[] = {
        db_text(op_code),      db_int(strtoll(start->place, NULL, 10)),
        db_int(start->end_us), db_int(start->finished),
        db_int(start->open),   db_uint(limit),
        db_uint(start->skip),
    };

    return db_run(connection, &sql_list_due, values, COUNT(values), result);
}

db_answer store_list_held(db *connection, const char *op_code, const store_list_start *start,
                          unsigned limit, db_result *result)
{
    const db_value values[] = {
        db_text(op_code),
        db_text(start->place[0] != '\0' ? start->place : FIRST_SESSION),
        db_uint(limit),
        db_uint(start->skip),
    };

    return db_run(connection, &sql_list_held, values, COUNT(values), result);
}

db_answer store_list_idle(db *connection, const char *op_code, const store_list_start *start,
                          unsigned limit, db_result *result)
{
    const db_value values[] = {
        db_text(op_code),          db_text(start->cust_no), db_text(start->cust_no),
        db_text(start->serial_no), db_uint(limit),
    };

    return db_run(connection, &sql_list_idle, values, COUNT(values), result);
}

db_answer store_timeline(db *connection, const tl_key *key, db_result *result)
{
    char retry_op[TL_OP_MAX + sizeof TL_RETRY_SUFFIX];
    db_value values[] = {db_text(key->cust_no), db_text(key->serial_no), db_text(key->op_code),
                         db_null()};

    snprintf(retry_op, sizeof retry_op, "%s%s", key->op_code, TL_RETRY_SUFFIX);
    values[3] = db_text(retry_op);
    return db_run(connection, &sql_timeline, values, COUNT(values), result);
}

db_answer store_schema_identity(db *connection)
{
    return db_run(connection, &sql_schema_identity, NULL, 0, NULL);
}

db_answer store_migrate_wait(db *connection, unsigned wait_s)
{
    const db_value values[] = {db_uint(wait_s)};

    return db_run(connection, &sql_migrate_wait, values, COUNT(values), NULL);
}

db_answer store_migrate_turn(db *connection, unsigned wait_s, db_result *result)
{
    const db_value values[] = {db_uint(wait_s)};

    return db_run(connection, &sql_migrate_turn, values, COUNT(values), result);
}

db_answer store_doctor_sessions(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_sessions, NULL, 0, result);
}

db_answer store_doctor_overdue(db *connection, const char *op_code, const store_stretch *stretch,
                               db_result *result)
{
    const db_value values[] = {db_text(op_code), db_int(stretch->from_us), db_int(stretch->to_us)};

    return db_run(connection, &sql_doctor_overdue, values, COUNT(values), result);
}

db_answer store_doctor_conflicts(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_conflicts, NULL, 0, result);
}

db_answer store_doctor_parts(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_parts, NULL, 0, result);
}

db_answer store_migrate_parts(db *connection, db_result *result)
{
    return db_run(connection, &sql_migrate_parts, NULL, 0, result);
}

db_answer store_doctor_server(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_server, NULL, 0, result);
}

db_answer store_doctor_variables(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_variables, NULL, 0, result);
}

db_answer store_doctor_grants(db *connection, db_result *result)
{
    return db_run(connection, &sql_doctor_grants, NULL, 0, result);
}

db_answer store_purge(db *connection, int64_t older_ms, unsigned most,
                      const store_list_start *after)
{
    const db_value values[] = {db_int(older_ms), db_uint(most), db_text(after->cust_no),
                               db_text(after->serial_no), db_text(after->op_code)};

    return db_run(connection, &sql_purge, values, COUNT(values), NULL);
}

db_answer store_purge_result(db *connection, db_result *result)
{
    return db_run(connection, &sql_purge_result, NULL, 0, result);
}

static db_answer purge_names(db *connection, const struct sql_text *statement, int64_t older_ms,
                             unsigned most, const char *after)
{
    const db_value values[] = {db_int(older_ms), db_uint(most), db_text(after)};

    return db_run(connection, statement, values, sizeof values / sizeof values[0], NULL);
}

db_answer store_purge_resources(db *connection, int64_t older_ms, unsigned most, const char *after)
{
    return purge_names(connection, &sql_purge_resources, older_ms, most, after);
}

db_answer store_purge_rw(db *connection, int64_t older_ms, unsigned most, const char *after)
{
    return purge_names(connection, &sql_purge_rw, older_ms, most, after);
}

db_answer store_purge_sessions(db *connection, int64_t older_ms, unsigned most)
{
    const db_value values[] = {db_int(older_ms), db_uint(most)};

    return db_run(connection, &sql_purge_sessions, values, COUNT(values), NULL);
}

db_answer store_purge_sessions_result(db *connection, db_result *result)
{
    return db_run(connection, &sql_purge_sessions_result, NULL, 0, result);
}

db_answer store_restore_declare(db *connection, const char *actor, const char *reason)
{
    const db_value values[] = {db_text(reason), db_text(actor)};

    return db_run(connection, &sql_restore_declare, values, COUNT(values), NULL);
}

db_answer store_restore_half(db *connection, const store_restore_half_of *half)
{
    const db_value values[] = {db_uint(half->number),
                               db_text(half->confirms ? "confirmed" : "proposed"),
                               db_text(half->reason), db_text(half->actor)};

    return db_run(connection, &sql_restore_half, values, COUNT(values), NULL);
}

db_answer store_restore_carry_out(db *connection, int64_t max_hold_ms, const char *thread_no)
{
    const db_value values[] = {db_int(max_hold_ms), db_text(thread_no)};

    return db_run(connection, &sql_restore_carry_out, values, COUNT(values), NULL);
}

db_answer store_restore_status(db *connection, db_result *result)
{
    return db_run(connection, &sql_restore_status, NULL, 0, result);
}

db_answer store_restore_trades(db *connection, db_result *result)
{
    return db_run(connection, &sql_restore_trades, NULL, 0, result);
}

db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result)
{
    const db_value values[] = {db_text(retry_op), db_text(key->cust_no), db_text(key->serial_no),
                               db_text(key->op_code)};

    return db_run(connection, &sql_resolve_lock, values, COUNT(values), result);
}

db_answer store_resolve_insert(db *connection, const store_resolution *r)
{
    const char verdict[2] = {r->verdict, '\0'};
    const db_value values[] = {
        db_text(r->key->cust_no),
        db_text(r->key->serial_no),
        db_text(r->key->op_code),
        db_uint(r->rev),
        db_text(verdict),
        db_int(r->part),
        db_uint(r->fence),
        db_uint(r->epoch),
        db_text(r->reason),
        db_text(r->actor),
        db_text(r->thread_no),
        db_text(r->log_no),
        db_int(r->although_pending),
    };

    return db_run(connection, &sql_resolve_insert, values, COUNT(values), NULL);
}
