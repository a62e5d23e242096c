/* The statements of an audit, bound to their values: pages of rows, history, closings.  Only
 * store_audit_close() writes, one half of a closing. */
#include "admin/audit_pages.h"

#include "store/bind.h"

db_answer store_audit_log(db *connection, const store_audit_place *place, unsigned limit,
                          db_result *result)
{
    const db_value cust = db_text(place->cust_no), serial = db_text(place->serial_no);
    const db_value op = db_text(place->op_code);

    return SQL_RUN(connection, result, audit_log, .serial_no = serial, .cust_no = cust,
                   .op_code = op, .rev = db_uint(place->rev), .most = db_uint(limit));
}

db_answer store_audit_rows(db *connection, const store_audit_place *place, unsigned limit,
                           db_result *result)
{
    const db_value cust = db_text(place->cust_no), serial = db_text(place->serial_no);

    return SQL_RUN(connection, result, audit_rows, .cust_no = cust, .serial_no = serial,
                   .op_code = db_text(place->op_code), .most = db_uint(limit));
}

db_answer store_audit_closing(db *connection, const uint8_t finding[STORE_FINDING],
                              db_result *result)
{
    return SQL_RUN(connection, result, audit_closing, .finding = db_bytes(finding, STORE_FINDING));
}
