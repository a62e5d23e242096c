/* The statements that are no steps: reads, sessions, evidence.  Touches only the connection. */
#include "store/store.h"

#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/rows.h"

#include <string.h>

db_answer store_view(db *connection, const char *cust_no, const char *serial_no,
                     const char *op_code, db_result *result)
{
    return SQL_RUN(connection, result, view_by_key, .cust_no = db_text(cust_no),
                   .serial_no = db_text(serial_no), .op_code = db_text(op_code));
}

db_answer store_list_views(db *connection, const tl_key *keys, size_t count, db_result *result)
{
    struct sql_list_views_row *values = memory_new_array(count, sizeof *values);
    const store_rows rows = {.rows = (const db_value *)values, .count = count};
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] =
            SQL_ROW(list_views, .cust_no = db_ascii(keys[i].cust_no),
                    .serial_no = db_ascii(keys[i].serial_no), .op_code = db_ascii(keys[i].op_code));
    answer = store_run_rows(connection, &sql_list_views, &rows, result);
    memory_free(values);
    return answer;
}

db_answer store_replica_awaited(db *connection, int64_t waited_ms, int *is_awaited)
{
    RESULT result = DB_RESULT_INIT;
    const db_answer answer =
        SQL_RUN(connection, &result, replica_awaited, .waited_ms = db_int(waited_ms));

    *is_awaited = answer == DB_DONE && db_get_uint(&result, 0, 0) > 0;
    return answer;
}

db_answer store_next_due(db *connection, const char *op_code, db_result *result)
{
    return SQL_RUN(connection, result, next_due, .op_code = db_text(op_code));
}

db_answer store_overdue(db *connection, const char *retry_op, const char *unpaused_op,
                        int64_t late_us, unsigned limit, db_result *result)
{
    return SQL_RUN(connection, result, overdue, .op_code = db_text(retry_op),
                   .unpaused_op = db_text(unpaused_op), .late_us = db_int(late_us),
                   .most = db_uint(limit));
}

db_answer store_operation_next(db *connection, store_operation *operation)
{
    RESULT found = DB_RESULT_INIT;
    db_answer answer =
        SQL_RUN(connection, &found, operation_next, .op_code = db_text(operation->op_code));

    if (answer == DB_DONE) {
        text_copy(operation->op_code, sizeof operation->op_code, db_get_text(&found, 0, 0));
        operation->low_water_us = db_get_int(&found, 0, 1);
        operation->now_us = db_get_int(&found, 0, 2);
    }
    return answer;
}

db_answer store_low_water_stretch(db *connection, const char *op_code, store_stretch *stretch,
                                  int *empty)
{
    RESULT found = DB_RESULT_INIT;
    db_answer answer;

    answer = SQL_RUN(connection, &found, low_water_stretch, .op_code = db_text(op_code),
                     .from_us = db_int(stretch->from_us), .to_us = db_int(stretch->to_us));
    if (answer == DB_DONE) {
        *empty = !db_get_int(&found, 0, 0);
        if (!db_is_null(&found, 0, 1))
            stretch->to_us = db_get_int(&found, 0, 1);
    }
    return answer;
}

#define KNOWN(clock, value) ((clock)->boot_id != NULL ? (value) : db_null())
#define SESSION_CLOCK(clock)                                                                       \
    .boot_id = db_text((clock)->boot_id), .clock_us = KNOWN(clock, db_int((clock)->at_us)),        \
    .clock_least_us = KNOWN(clock, db_int((clock)->least_us)),                                     \
    .clock_most_us = KNOWN(clock, db_int((clock)->most_us)),                                       \
    .clock_steps = KNOWN(clock, db_uint((clock)->jumps))

db_answer store_session_insert(db *connection, const store_session *session)
{
    return SQL_RUN(connection, NULL, session_insert, .session_id = db_text(session->session_id),
                   .program = db_text(session->program), .host = db_text(session->host),
                   .pid = db_uint(session->pid), .operations = db_text(session->operations),
                   .connection_name = db_text(session->connection_name),
                   .timeout_ms = db_int(session->timeout_ms), SESSION_CLOCK(&session->clock));
}

db_answer store_session_beat(db *connection, const char *session_id, int waits,
                             const store_session_clock *clock, db_result *result)
{
    return SQL_RUN(connection, result, session_beat, .session_id = db_text(session_id),
                   .waits = db_int(waits), SESSION_CLOCK(clock));
}

db_answer store_evidence_lock(db *connection, const tl_key *key, db_result *result)
{
    return SQL_RUN(connection, result, evidence_lock, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code));
}

static db_answer open_gone(db *connection, const store_gone *gone)
{
    const tl_key *key = &gone->evidence->key;
    step s = {.cust_no = key->cust_no,
              .serial_no = key->serial_no,
              .op_code = key->op_code,
              .remark = gone->evidence->remark};

    memcpy(s.token, gone->token, sizeof s.token);
    return store_open_lane(connection, &s);
}

#define GONE_SAID(type, member, ...) , .member = STORE_SAID_##type(&gone->said, member)

db_answer store_file_gone(db *connection, const store_gone *gone)
{
    const tl_evidence *e = gone->evidence;
    db_answer answer = SQL_RUN(
        connection, NULL, file_gone, .cust_no = db_text(e->key.cust_no),
        .serial_no = db_text(e->key.serial_no), .op_code = db_text(e->key.op_code),
        .thread_no = db_text(gone->thread_no), .log_no = db_text(gone->log_no),
        .token = db_bytes(gone->token, sizeof gone->token), .epoch = db_uint(e->epoch),
        .sends = db_uint(gone->sends), .hold_ms = db_int(gone->hold_ms), .seen = db_int(gone->seen),
        .success_epoch = gone->success ? db_uint(e->epoch) : db_null(),
        .exclusive = db_int(gone->exclusive),
        .fingerprint = db_bytes(gone->fingerprint, TL_FINGERPRINT),
        .channel = db_text(gone->channel), .channel_key = db_text(e->channel_key),
        .channel_ref = db_text(e->channel_ref),
        .payload = db_bytes(gone->payload, gone->payload_size),
        .remark = db_text(e->remark) TL_SAID_MAP(GONE_SAID));

    return answer == DB_DONE ? open_gone(connection, gone) : answer;
}

db_answer store_evidence_insert(db *connection, const tl_evidence *evidence, const char *thread_no,
                                uint64_t *evidence_id, int *contradicts)
{
    RESULT result = DB_RESULT_INIT;
    const db_answer answer = SQL_RUN(
        connection, &result, evidence_insert, .cust_no = db_text(evidence->key.cust_no),
        .serial_no = db_text(evidence->key.serial_no), .op_code = db_text(evidence->key.op_code),
        .epoch = db_uint(evidence->epoch), .channel_key = db_text(evidence->channel_key),
        .outcome = db_text(evidence->outcome), .final = db_int(evidence->final),
        .channel_ref = db_text(evidence->channel_ref), .source = db_text(evidence->source),
        .remark = db_text(evidence->remark), .thread_no = db_text(thread_no),
        .amount_minor =
            evidence->amount.is_told ? db_int(evidence->amount.amount_minor) : db_null(),
        .currency = db_text(evidence->amount.currency));

    *evidence_id = answer == DB_DONE ? db_get_uint(&result, 0, 0) : 0;
    *contradicts = answer == DB_DONE && db_get_int(&result, 0, 1) != 0;
    return answer;
}

db_answer store_evidence_list(db *connection, const tl_key *key, db_result *result)
{
    return SQL_RUN(connection, result, evidence_list, .cust_no = db_text(key->cust_no),
                   .serial_no = db_text(key->serial_no), .op_code = db_text(key->op_code));
}
