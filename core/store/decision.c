/* The statements about two operators' decisions that a worker runs, bound to their parameters. */
#include "store/decision.h"

#include "sql_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result)
{
    const db_value values[] = {db_text(key->cust_no), db_text(key->serial_no),
                               db_text(key->op_code)};

    return db_run(connection, &sql_resolve_list, values, COUNT(values), result);
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
