/* The statements of two operators' decisions, bound to their parameters. */
#include "store/operator.h"

#include "store/bind.h"

db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result)
{
    return SQL_RUN(connection, result, resolve_lock, .retry_op = db_text(retry_op),
                   .cust_no = db_text(key->cust_no), .serial_no = db_text(key->serial_no),
                   .op_code = db_text(key->op_code));
}

db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result)
{
    return SQL_RUN(connection, result, resolve_list, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code));
}

db_answer store_resolve_insert(db *connection, const store_resolution *r)
{
    const char verdict[2] = {r->verdict, '\0'};

    return SQL_RUN(connection, NULL, resolve_insert, .cust_no = db_text(r->key->cust_no),
                   .serial_no = db_text(r->key->serial_no), .op_code = db_text(r->key->op_code),
                   .rev = db_uint(r->rev), .verdict = db_text(verdict), .part = db_int(r->part),
                   .fence = db_uint(r->fence), .epoch = db_uint(r->epoch),
                   .reason = db_text(r->reason), .actor = db_text(r->actor),
                   .thread_no = db_text(r->thread_no), .log_no = db_text(r->log_no),
                   .although_pending = db_int(r->although_pending));
}

db_answer store_resolve_refuse(db *connection, const store_resolution *r)
{
    return SQL_RUN(connection, NULL, resolve_refuse, .cust_no = db_text(r->key->cust_no),
                   .serial_no = db_text(r->key->serial_no), .op_code = db_text(r->key->op_code),
                   .rev = db_uint(r->rev), .reason = db_text(r->reason),
                   .thread_no = db_text(r->thread_no), .log_no = db_text(r->log_no));
}
