/* Everything that is not a step: reading, sessions, evidence. */
#include "store/store.h"

#include "base/text.h"
#include "sql_text.h"
#include "store/mutation.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

db_answer store_view(db *connection, const char *cust_no, const char *serial_no,
                     const char *op_code, db_result *result)
{
    const db_value values[] = {db_text(cust_no), db_text(serial_no), db_text(op_code)};

    return db_run(connection, &sql_view_by_key, values, COUNT(values), result);
}

db_answer store_row_held(db *connection, const char *cust_no, const char *serial_no,
                         const char *op_code)
{
    const db_value values[] = {db_text(cust_no), db_text(serial_no), db_text(op_code)};

    return db_run(connection, &sql_row_held, values, COUNT(values), NULL);
}

db_answer store_holder_silent(db *connection, const char *session_id_text, db_result *result)
{
    const db_value values[] = {db_text(session_id_text)};

    return db_run(connection, &sql_holder_silent, values, COUNT(values), result);
}

db_answer store_customer_busy(db *connection, const char *cust_no, const char *op_code,
                              db_result *result)
{
    const db_value values[] = {db_text(cust_no), db_text(op_code)};

    return db_run(connection, &sql_customer_busy, values, COUNT(values), result);
}

db_answer store_token_now(db *connection, const step *s, db_result *result)
{
    const db_value values[] = {
        db_bytes(s->token, STEP_TOKEN), db_text(s->session_id), db_text(s->cust_no),
        db_text(s->serial_no),          db_text(s->op_code),
    };

    return db_run(connection, store_mutated(&sql_token_now), values, COUNT(values), result);
}

db_answer store_token_seen(db *connection, const step *s, db_result *result)
{
    const db_value values[] = {
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_bytes(s->token, STEP_TOKEN),
    };

    return db_run(connection, &sql_token_seen, values, COUNT(values), result);
}

db_answer store_connection_used(db *connection, const char *name, db_result *result)
{
    const db_value values[] = {db_text(name)};

    return db_run(connection, &sql_connection_used, values, COUNT(values), result);
}

db_answer store_claim_candidates(db *connection, const char *retry_op, int suspects, unsigned limit,
                                 db_result *result)
{
    const db_value values[] = {db_text(retry_op), db_uint(limit)};

    return db_run(connection, suspects ? &sql_claim_suspects : &sql_claim_candidates, values,
                  COUNT(values), result);
}

db_answer store_next_due(db *connection, const char *op_code, db_result *result)
{
    const db_value values[] = {db_text(op_code)};

    return db_run(connection, &sql_next_due, values, COUNT(values), result);
}

db_answer store_overdue(db *connection, const char *retry_op, int64_t late_us, unsigned limit,
                        db_result *result)
{
    const db_value values[] = {db_text(retry_op), db_int(late_us), db_uint(limit), db_int(late_us)};

    return db_run(connection, &sql_overdue, values, COUNT(values), result);
}

db_answer store_operation_next(db *connection, store_operation *operation)
{
    db_result found = DB_RESULT_INIT;
    const db_value values[] = {db_text(operation->op_code)};
    db_answer answer = db_run(connection, &sql_operation_next, values, COUNT(values), &found);

    if (answer == DB_DONE) {
        text_copy(operation->op_code, sizeof operation->op_code, db_get_text(&found, 0, 0));
        operation->low_water_us = db_get_int(&found, 0, 1);
    }
    db_result_free(&found);
    return answer;
}

db_answer store_reap_overdue(db *connection, const char *op_code, const store_stretch *stretch,
                             db_result *result)
{
    const db_value values[] = {db_text(op_code), db_int(stretch->from_us), db_int(stretch->to_us)};

    return db_run(connection, &sql_reap_overdue, values, COUNT(values), result);
}

db_answer store_reap_session(db *connection, const char *op_code, const char *session_id,
                             const store_stretch *stretch, db_result *result)
{
    const db_value values[] = {db_text(op_code), db_int(stretch->from_us), db_int(stretch->to_us),
                               db_text(session_id)};

    return db_run(connection, &sql_reap_session, values, COUNT(values), result);
}

db_answer store_low_water_stretch(db *connection, const char *op_code, store_stretch *stretch,
                                  store_part *part)
{
    db_result found = DB_RESULT_INIT;
    db_answer answer;
    const db_value values[] = {
        db_text(op_code), db_int(stretch->from_us), db_int(stretch->to_us),
        db_text(op_code), db_int(stretch->from_us), db_int(stretch->to_us),
    };

    answer = db_run(connection, &sql_low_water_stretch, values, COUNT(values), &found);
    if (answer == DB_DONE) {
        part->empty = db_is_null(&found, 0, 0);
        part->first_us = db_get_int(&found, 0, 0);
        part->now_us = db_get_int(&found, 0, 2);
        if (!db_is_null(&found, 0, 1))
            stretch->to_us = db_get_int(&found, 0, 1);
    }
    db_result_free(&found);
    return answer;
}

db_answer store_low_water_clear(db *connection, const char *op_code, const store_stretch *stretch)
{
    const db_value values[] = {db_text(op_code), db_int(stretch->from_us), db_int(stretch->to_us)};

    return db_run(connection, &sql_low_water_clear, values, COUNT(values), NULL);
}

db_answer store_low_water_move(db *connection, const char *op_code, int64_t from_us, int64_t to_us)
{
    const db_value values[] = {db_text(op_code), db_int(from_us), db_int(to_us), db_int(from_us),
                               db_int(to_us)};

    return db_run(connection, &sql_low_water_move, values, COUNT(values), NULL);
}

db_answer store_low_water_back(db *connection, const char *op_code)
{
    const db_value values[] = {db_text(op_code)};

    return db_run(connection, &sql_low_water_back, values, COUNT(values), NULL);
}

db_answer store_session_insert(db *connection, const store_session *session)
{
    const db_value values[] = {
        db_text(session->session_id), db_text(session->program),
        db_text(session->host),       db_uint(session->pid),
        db_text(session->operations), db_text(session->connection_name),
        db_int(session->timeout_ms),  db_int(session->timeout_ms),
    };

    return db_run(connection, &sql_session_insert, values, COUNT(values), NULL);
}

static db_answer run_for_session(db *connection, const struct sql_text *statement,
                                 const char *session_id, db_result *result)
{
    const db_value values[] = {db_text(session_id)};

    return db_run(connection, statement, values, COUNT(values), result);
}

db_answer store_session_beat(db *connection, const char *session_id, db_result *result)
{
    return run_for_session(connection, &sql_session_beat, session_id, result);
}

db_answer store_session_ended(db *connection, const char *session_id, db_result *result)
{
    return run_for_session(connection, &sql_session_ended, session_id, result);
}

db_answer store_session_end(db *connection, const char *session_id, int settled, db_result *result)
{
    const db_value values[] = {db_int(settled), db_text(session_id)};

    return db_run(connection, &sql_session_end, values, COUNT(values), result);
}

db_answer store_session_others(db *connection, const char *session_id, db_result *result)
{
    return run_for_session(connection, &sql_session_others, session_id, result);
}

db_answer store_session_expire(db *connection, const char *observer, const char *session_id,
                               uint64_t beat, db_result *result)
{
    const db_value values[] = {db_text(observer), db_text(session_id), db_uint(beat)};

    return db_run(connection, &sql_session_expire, values, COUNT(values), result);
}

db_answer store_session_to_sweep(db *connection, db_result *result)
{
    return db_run(connection, &sql_session_to_sweep, NULL, 0, result);
}

db_answer store_session_swept(db *connection, const char *session_id)
{
    return run_for_session(connection, &sql_session_swept, session_id, NULL);
}

db_answer store_evidence_lock(db *connection, const tl_key *key, db_result *result)
{
    const db_value values[] = {db_text(key->cust_no), db_text(key->serial_no),
                               db_text(key->op_code)};

    return db_run(connection, &sql_evidence_lock, values, COUNT(values), result);
}

db_answer store_file_paid(db *connection, const tl_evidence *evidence, const char *thread_no)
{
    const db_value values[] = {
        db_text(evidence->key.cust_no),
        db_text(evidence->key.serial_no),
        db_text(evidence->key.op_code),
        db_uint(evidence->epoch),
        db_text(evidence->channel_key),
        db_text(evidence->channel_ref),
        db_text(thread_no),
    };

    return db_run(connection, &sql_file_paid, values, COUNT(values), NULL);
}

static db_answer open_gone(db *connection, const store_gone *gone)
{
    const tl_key *key = &gone->evidence->key;
    const db_value values[] = {
        db_int(0),
        db_int(0),
        db_null(),
        db_text(gone->evidence->remark),
        db_text(key->cust_no),
        db_text(key->serial_no),
        db_text(key->op_code),
        db_bytes(gone->token, sizeof gone->token),
        db_int(0),
        db_int(1),
    };

    return db_run(connection, &sql_open_retry, values, COUNT(values), NULL);
}

db_answer store_file_gone(db *connection, const store_gone *gone)
{
    const tl_evidence *e = gone->evidence;
    const db_value values[] = {
        db_text(e->key.cust_no),
        db_text(e->key.serial_no),
        db_text(e->key.op_code),
        db_text(gone->thread_no),
        db_text(gone->log_no),
        db_bytes(gone->token, sizeof gone->token),
        db_uint(e->epoch),
        db_uint(gone->sends),
        db_int(gone->hold_ms),
        db_int(gone->seen),
        gone->success ? db_uint(e->epoch) : db_null(),
        db_int(gone->exclusive),
        db_bytes(gone->fingerprint, TL_FINGERPRINT),
        db_text(gone->channel),
        db_text(e->channel_key),
        db_text(e->channel_ref),
        db_bytes(gone->payload, gone->payload_size),
        db_text(e->remark),
    };
    db_answer answer = db_run(connection, &sql_file_gone, values, COUNT(values), NULL);

    return answer == DB_DONE ? open_gone(connection, gone) : answer;
}

db_answer store_evidence_insert(db *connection, const tl_evidence *evidence, const char *thread_no)
{
    const db_value values[] = {
        db_text(evidence->key.cust_no),
        db_text(evidence->key.serial_no),
        db_text(evidence->key.op_code),
        db_uint(evidence->epoch),
        db_text(evidence->channel_key),
        db_text(evidence->outcome),
        db_int(evidence->final),
        db_text(evidence->channel_ref),
        db_text(evidence->source),
        db_text(evidence->remark),
        db_text(thread_no),
    };

    return db_run(connection, &sql_evidence_insert, values, COUNT(values), NULL);
}

db_answer store_evidence_list(db *connection, const tl_key *key, db_result *result)
{
    const db_value values[] = {db_text(key->cust_no), db_text(key->serial_no),
                               db_text(key->op_code)};

    return db_run(connection, &sql_evidence_list, values, COUNT(values), result);
}
