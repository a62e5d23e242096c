#include "admin/audit_pages.h"

#include "sql_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

db_answer store_audit_log(db *connection, const store_audit_place *place, unsigned limit,
                          db_result *result)
{
    const db_value cust = db_text(place->cust_no), serial = db_text(place->serial_no);
    const db_value op = db_text(place->op_code);
    const db_value values[] = {
        serial, serial, serial, cust, cust, op, op, db_uint(place->rev), db_uint(limit)};

    return db_run(connection, &sql_audit_log, values, COUNT(values), result);
}

db_answer store_audit_rows(db *connection, const store_audit_place *place, unsigned limit,
                           db_result *result)
{
    const db_value cust = db_text(place->cust_no), serial = db_text(place->serial_no);
    const db_value values[] = {cust,          cust, cust, serial, serial, db_text(place->op_code),
                               db_uint(limit)};

    return db_run(connection, &sql_audit_rows, values, COUNT(values), result);
}

db_answer store_audit_run(db *connection, db_result *result)
{
    return db_run(connection, &sql_audit_run, NULL, 0, result);
}

db_answer store_audit_closing(db *connection, const uint8_t finding[STORE_FINDING],
                              db_result *result)
{
    const db_value values[] = {db_bytes(finding, STORE_FINDING)};

    return db_run(connection, &sql_audit_closing, values, COUNT(values), result);
}

db_answer store_audit_close(db *connection, const store_closing *c)
{
    const db_value values[] = {
        db_bytes(c->finding, STORE_FINDING),
        db_int(c->part),
        db_text(c->rule),
        db_text(c->key->cust_no),
        db_text(c->key->serial_no),
        db_text(c->key->op_code != NULL ? c->key->op_code : ""),
        db_uint(c->rev),
        db_text(c->reason),
        db_text(c->actor),
        db_text(c->thread_no),
    };

    return db_run(connection, &sql_audit_close, values, COUNT(values), NULL);
}
