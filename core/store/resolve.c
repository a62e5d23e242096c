/* The statements of two operators' decisions, bound to their parameters. */
#include "store/operator.h"

#include "sql_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result)
{
    const db_value values[] = {db_text(retry_op), db_text(key->cust_no), db_text(key->serial_no),
                               db_text(key->op_code)};

    return db_run(connection, &sql_resolve_lock, values, COUNT(values), result);
}

db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result)
{
    const db_value values[] = {db_text(key->cust_no), db_text(key->serial_no),
                               db_text(key->op_code)};

    return db_run(connection, &sql_resolve_list, values, COUNT(values), result);
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

db_answer store_resolve_refuse(db *connection, const store_resolution *r)
{
    const db_value values[] = {
        db_text(r->key->cust_no), db_text(r->key->serial_no), db_text(r->key->op_code),
        db_uint(r->rev),          db_text(r->reason),         db_text(r->thread_no),
        db_text(r->log_no),
    };

    return db_run(connection, &sql_resolve_refuse, values, COUNT(values), NULL);
}
