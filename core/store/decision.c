/* The worker's statements about decisions of two operators, bound to their parameters.  Touches
 * only the connection. */
#include "store/decision.h"

#include "store/bind.h"

db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result)
{
    return SQL_RUN(connection, result, resolve_list, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code));
}

db_answer store_resolve_refuse(db *connection, const store_resolution *r)
{
    return SQL_RUN(connection, NULL, resolve_refuse, .cust_no = db_text(r->key->cust_no),
                   .serial_no = db_text(r->key->serial_no), .op_code = db_text(r->key->op_code),
                   .rev = db_uint(r->rev), .reason = db_text(r->reason),
                   .thread_no = db_text(r->thread_no), .log_no = db_text(r->log_no));
}
