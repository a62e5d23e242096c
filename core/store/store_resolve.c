/* The statements of two operators' decisions, bound to their parameters. */
#include "store/store_operator.h"

#include "sql_text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TOKEN(resolution) db_bytes((resolution)->token, sizeof(resolution)->token)

db_answer store_resolve_lock(db *connection, const tl_key *key, const char *retry_op,
                             db_result *result)
{
    const db_value values[] = {db_text(retry_op), db_text(key->cust_no),
                               db_text(key->serial_no), db_text(key->op_code)};

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
        db_text(r->key->cust_no), db_text(r->key->serial_no), db_text(r->key->op_code),
        db_uint(r->rev),          db_text(verdict),           db_int(r->part),
        db_uint(r->fence),        db_uint(r->epoch),          db_text(r->reason),
        db_text(r->actor),        db_text(r->thread_no),
    };

    return db_run(connection, &sql_resolve_insert, values, COUNT(values), NULL);
}

static db_answer run_changing(db *connection, const struct sql_text *statement,
                              const db_value *values, size_t count, int *changed)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = db_run(connection, statement, values, count, &result);

    *changed = answer == DB_DONE && result.affected > 0;
    db_result_free(&result);
    return answer;
}

/* Clearing a conflict, and the first half of "paid", change the sync row alone. */
static db_answer apply_to_row(db *connection, const struct sql_text *statement,
                              const store_resolution *r, int *changed)
{
    const db_value values[] = {
        db_text(r->thread_no),      db_text(r->log_no),       TOKEN(r),
        db_text(r->actor),          db_text(r->reason),       db_text(r->key->cust_no),
        db_text(r->key->serial_no), db_text(r->key->op_code), db_uint(r->rev),
    };

    return run_changing(connection, statement, values, COUNT(values), changed);
}

static db_answer apply_failed(db *connection, const store_resolution *r, int *changed)
{
    const db_value thread = db_text(r->thread_no), log = db_text(r->log_no);
    const db_value actor = db_text(r->actor), reason = db_text(r->reason);
    const db_value values[] = {
        db_text(r->retry_op),
        thread,
        log,
        TOKEN(r),
        actor,
        reason,
        thread,
        log,
        TOKEN(r),
        actor,
        reason,
        db_text(r->key->cust_no),
        db_text(r->key->serial_no),
        db_text(r->key->op_code),
        db_uint(r->rev),
    };

    return run_changing(connection, &sql_resolve_failed, values, COUNT(values), changed);
}

static db_answer apply_paid(db *connection, const store_resolution *r, int *changed)
{
    /* Due at once, which the success on the row says; nothing of an earlier lane is left. */
    const db_value values[] = {
        db_int(0),
        db_null(),
        db_null(),
        db_text(r->reason),
        db_text(r->key->cust_no),
        db_text(r->key->serial_no),
        db_text(r->key->op_code),
        TOKEN(r),
        db_int(0),
        db_int(1),
    };
    db_answer answer = apply_to_row(connection, &sql_resolve_paid, r, changed);

    if (answer != DB_DONE || !*changed)
        return answer;
    return db_run(connection, &sql_open_retry, values, COUNT(values), NULL);
}

db_answer store_resolve_apply(db *connection, const store_resolution *r, int *changed)
{
    switch (r->verdict) {
    case TL_VERDICT_FAILED:
        return apply_failed(connection, r, changed);
    case TL_VERDICT_PAID:
        return apply_paid(connection, r, changed);
    default:
        return apply_to_row(connection, &sql_resolve_clear, r, changed);
    }
}
