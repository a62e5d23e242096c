/*
 * The steps of a trade: what each kind is, and each bound to its statement.  The order of the
 * values is the order of the question marks in the named file of sql/query.
 */
#include "store/store.h"

#include "sql_text.h"
#include "store/mutation.h"
#include "store/view.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The question marks of statements that are a part of a block. */
#define VIEW_KEY 3        /* view_by_key */
#define HELD_VALUES 18    /* open_held */
#define DEAD_VALUES 6     /* open_dead */
#define OPENING_VALUES 10 /* open_retry */
#define ASK_VALUES 11     /* ask_insert, in both of its forms */

int step_is_grant(step_kind kind)
{
    return kind == STEP_ASK || kind == STEP_ASK_REPEATABLE || kind == STEP_RECLAIM ||
           kind == STEP_CLAIM || kind == STEP_ARM;
}

int step_is_holders(step_kind kind)
{
    return kind == STEP_FINISH_SYNC || kind == STEP_FINISH_RETRY || kind == STEP_OPEN ||
           kind == STEP_RELEASE || kind == STEP_ARM;
}

int step_is_plain(const step *s)
{
    if (s->channel != NULL || s->channel_key != NULL || s->channel_ref != NULL ||
        s->remark != NULL || s->actor != NULL)
        return 0;
    if (s->kind == STEP_ASK)
        return s->deadline_ms < 0 && !s->exclusive && s->sends > 0;
    return s->kind == STEP_FINISH_SYNC && s->once && s->status == 'Y' && s->proof == '-' &&
           !s->retryable && s->result == NULL && !s->in_caller;
}

int step_not_found(const step *s)
{
    if (s->findings.not_found_reset)
        return 2;
    return s->findings.not_found_first ? 1 : 0;
}

const char *step_name(step_kind kind)
{
    static const char *const names[STEP_KINDS] = {
        [STEP_ASK] = "ask",          [STEP_ASK_REPEATABLE] = "ask",
        [STEP_RECLAIM] = "reclaim",  [STEP_FINISH_SYNC] = "end",
        [STEP_FINISH_RETRY] = "end", [STEP_OPEN] = "open",
        [STEP_RELEASE] = "release",  [STEP_REAP] = "reap",
        [STEP_CLAIM] = "claim",      [STEP_ARM] = "arm",
        [STEP_CLOSE] = "close",      [STEP_OPERATOR_RETRY] = "operator",
    };

    return names[kind];
}

static db_answer run(db *connection, const struct sql_text *statement, const db_value *values,
                     size_t count, db_result *result, store_way way)
{
    const struct sql_text *as_ruled = store_mutated(statement);

    switch (way) {
    case STORE_NOWAIT:
        return db_run_nowait(connection, as_ruled, values, count, result);
    case STORE_GUARDED:
    case STORE_GUARDED_NOWAIT:
        return db_run_guarded(connection, as_ruled, values, count, way == STORE_GUARDED_NOWAIT,
                              result);
    default:
        return db_run(connection, as_ruled, values, count, result);
    }
}

static db_value milliseconds_or_null(int64_t number)
{
    return number < 0 ? db_null() : db_int(number);
}

/* The row that RETURNING gave is ours when it carries our token. */
static void read_returned(step *s, const db_result *result)
{
    size_t size;
    const void *token;

    s->changed = 0;
    if (result->rows != 1)
        return;
    token = db_get_bytes(result, 0, 0, &size);
    if (size != STEP_TOKEN || memcmp(token, s->token, STEP_TOKEN) != 0)
        return;
    s->changed = 1;
    s->fence = db_get_uint(result, 0, 1);
    s->epoch = (uint32_t)db_get_uint(result, 0, 2);
}

static db_answer run_returning(db *connection, const struct sql_text *statement,
                               const db_value *values, size_t count, step *s, store_way way)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, statement, values, count, &result, way);

    if (answer == DB_DONE)
        read_returned(s, &result);
    db_result_free(&result);
    return answer;
}

static db_answer run_changing(db *connection, const struct sql_text *statement,
                              const db_value *values, size_t count, step *s, store_way way)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, statement, values, count, &result, way);

    if (answer == DB_DONE)
        s->changed = result.affected > 0;
    db_result_free(&result);
    return answer;
}

/* A block that grants and then reads the row, which is ours when it carries our token. */
static db_answer run_granting(db *connection, const struct sql_text *block, const db_value *values,
                              size_t count, step *s)
{
    db_answer answer = run(connection, block, values, count, s->row, STORE_PLAIN);
    tl_view view;
    view_inside inside;

    if (answer != DB_DONE || s->row->rows != 1)
        return answer;
    view_read(&view, &inside, s->row, 0);
    if (memcmp(inside.token, s->token, STEP_TOKEN) != 0)
        return answer;
    s->changed = 1;
    s->fence = view.fence;
    s->epoch = view.epoch;
    return answer;
}

static db_answer ask(db *connection, step *s, store_way way)
{
    unsigned char thread[DB_UUID], log[DB_UUID], session[DB_UUID];
    const db_value values[] = {
        db_ascii(s->cust_no),
        db_ascii(s->serial_no),
        db_ascii(s->op_code),
        db_uuid(s->thread_no, thread),
        db_uuid(s->log_no, log),
        db_uuid(s->session_id, session),
        db_bytes(s->token, STEP_TOKEN),
        db_uint(s->sends),
        db_int(s->max_hold_ms),
        db_bytes(s->fingerprint, TL_FINGERPRINT),
        db_bytes(s->payload, s->payload_size),
        milliseconds_or_null(s->deadline_ms),
        db_int(s->exclusive),
        db_ascii(s->channel),
        db_ascii(s->channel_key),
        db_text(s->remark),
        db_text(s->actor),
    };
    const int plain = step_is_plain(s);
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, plain ? &sql_ask_insert_plain : &sql_ask_insert, values,
                           plain ? ASK_VALUES : COUNT(values), &result, way);

    /* It inserts or fails: the row is ours, in its first epoch. */
    if (answer == DB_DONE && result.rows == 1) {
        s->changed = 1;
        s->fence = db_get_uint(&result, 0, 0);
        s->epoch = 1;
    }
    db_result_free(&result);
    return answer;
}

static db_answer ask_repeatable(db *connection, step *s, store_way way)
{
    const char lane[2] = {s->lane, '\0'};
    const db_value values[] = {
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_text(lane),
        db_text(s->thread_no),
        db_text(s->log_no),
        db_text(s->session_id),
        db_bytes(s->token, STEP_TOKEN),
        db_int(s->max_hold_ms),
        db_bytes(s->fingerprint, TL_FINGERPRINT),
        db_bytes(s->payload, s->payload_size),
        db_text(s->remark),
        db_text(s->actor),
        db_uint(s->held_fence),
    };

    return run_returning(connection, &sql_ask_repeatable, values, COUNT(values), s, way);
}

static db_answer reclaim(db *connection, step *s, store_way way)
{
    const db_value values[] = {
        db_text(s->thread_no),
        db_text(s->log_no),
        db_text(s->session_id),
        db_bytes(s->token, STEP_TOKEN),
        db_uint(s->sends),
        db_int(s->max_hold_ms),
        milliseconds_or_null(s->deadline_ms),
        db_int(s->exclusive),
        db_text(s->channel_key),
        db_text(s->remark),
        db_text(s->actor),
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_uint(s->reclaim_epoch),
        db_uint(s->reclaim_fence),
        db_uint(s->reclaim_fence),
        db_bytes(s->fingerprint, TL_FINGERPRINT),
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
    };
    db_answer answer;

    if (s->row != NULL)
        return run_granting(connection, &sql_reclaim_now, values, COUNT(values), s);
    answer = run_changing(connection, &sql_ask_reclaim, values, COUNT(values) - VIEW_KEY, s, way);
    /* Whoever named the fence knows the one that was written. */
    if (answer == DB_DONE && s->changed && s->reclaim_fence != 0) {
        s->fence = s->reclaim_fence + 1;
        s->epoch = s->reclaim_epoch + 1;
    }
    return answer;
}

static db_answer finish_plain(db *connection, step *s, store_way way)
{
    unsigned char thread[DB_UUID], log[DB_UUID];
    const db_value values[] = {
        db_uuid(s->thread_no, thread),  db_uuid(s->log_no, log),
        db_bytes(s->token, STEP_TOKEN), db_ascii(s->cust_no),
        db_ascii(s->serial_no),         db_ascii(s->op_code),
        db_uint(s->held_fence),         db_bytes(s->held_token, STEP_TOKEN),
    };

    return run_changing(connection, &sql_finish_sync_plain, values, COUNT(values), s, way);
}

static db_answer finish_sync(db *connection, step *s, store_way way)
{
    const char status[2] = {s->status, '\0'}, proof[2] = {s->proof, '\0'};
    unsigned char thread[DB_UUID], log[DB_UUID];
    const db_value values[] = {
        db_text(status),
        db_uuid(s->thread_no, thread),
        db_uuid(s->log_no, log),
        db_bytes(s->token, STEP_TOKEN),
        db_text(proof),
        db_int(s->retryable),
        db_text(s->channel_ref),
        db_text(s->remark),
        db_bytes(s->result, s->result_size),
        db_text(s->actor),
        db_ascii(s->cust_no),
        db_ascii(s->serial_no),
        db_ascii(s->op_code),
        db_uint(s->held_fence),
        db_bytes(s->held_token, STEP_TOKEN),
        db_text(status),
        db_int(s->in_caller),
    };

    if (step_is_plain(s))
        return finish_plain(connection, s, way);
    return run_changing(connection, &sql_finish_sync, values, COUNT(values), s, way);
}

static db_answer finish_retry(db *connection, step *s, store_way way)
{
    const char status[2] = {s->status, '\0'}, proof[2] = {s->proof, '\0'};
    const db_value token = db_bytes(s->token, STEP_TOKEN);
    const db_value values[] = {
        db_text(s->retry_op),
        db_text(status),
        db_text(s->thread_no),
        db_text(s->log_no),
        token,
        db_text(proof),
        db_int(s->retryable),
        db_text(s->channel_ref),
        db_bytes(s->result, s->result_size),
        db_text(s->remark),
        db_text(status),
        db_text(s->actor),
        db_text(status),
        db_text(s->thread_no),
        db_text(s->log_no),
        token,
        db_text(status),
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_uint(s->held_fence),
        db_bytes(s->held_token, STEP_TOKEN),
        db_text(status),
        db_int(s->in_caller),
        db_text(proof),
    };

    return run_changing(connection, &sql_finish_retry, values, COUNT(values), s, way);
}

/* The second half of an opening. */
static void add_opening(db_value *to, const step *s)
{
    const db_value values[OPENING_VALUES] = {
        db_int(s->findings.apply_failed),
        milliseconds_or_null(s->next_run_ms),
        db_text(s->park_reason),
        db_text(s->remark),
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_bytes(s->token, STEP_TOKEN),
        db_int(s->findings.not_counted),
        db_int(!s->keep_claims),
    };

    memcpy(to, values, sizeof values);
}

static db_answer open_held(db *connection, step *s, store_way way)
{
    db_value values[HELD_VALUES + OPENING_VALUES] = {
        db_text(s->name),
        db_text(s->thread_no),
        db_text(s->log_no),
        db_bytes(s->token, STEP_TOKEN),
        s->known_sends > 0 ? db_uint(s->known_sends) : db_null(),
        db_uint(s->send_before_us),
        db_int(s->unsend),
        db_int(s->findings.seen_by_channel),
        db_int(s->findings.cancel_tried),
        db_int(step_not_found(s)),
        db_text(s->channel_ref),
        db_text(s->remark),
        db_text(s->actor),
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_uint(s->held_fence),
        db_bytes(s->held_token, STEP_TOKEN),
    };

    if (s->kind == STEP_RELEASE)
        return run_changing(connection, &sql_open_held, values, HELD_VALUES, s, way);
    add_opening(values + HELD_VALUES, s);
    return run_changing(connection, &sql_open_now, values, COUNT(values), s, STORE_PLAIN);
}

static db_answer open_dead(db *connection, step *s, store_way way)
{
    db_value values[DEAD_VALUES + OPENING_VALUES] = {
        db_bytes(s->token, STEP_TOKEN), db_text(s->actor),   db_text(s->cust_no),
        db_text(s->serial_no),          db_text(s->op_code), db_uint(s->held_fence),
    };

    (void)way;
    add_opening(values + DEAD_VALUES, s);
    return run_changing(connection, &sql_reap_now, values, COUNT(values), s, STORE_PLAIN);
}

static db_answer claim(db *connection, step *s, store_way way)
{
    const db_value token = db_bytes(s->token, STEP_TOKEN);
    const db_value values[] = {
        db_text(s->retry_op),
        db_text(s->thread_no),
        db_text(s->log_no),
        db_text(s->new_log_no),
        db_text(s->session_id),
        token,
        db_int(s->max_hold_ms),
        db_int(s->max_hold_ms),
        db_text(s->thread_no),
        db_text(s->log_no),
        db_text(s->new_log_no),
        db_text(s->session_id),
        token,
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_int(s->claim_as),
        db_int(s->claim_as),
        db_uint(s->claim_as == CLAIM_OVERRIDE ? s->override_fence : 0),
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
    };

    if (s->row != NULL)
        return run_granting(connection, &sql_claim_now, values, COUNT(values), s);
    return run_changing(connection, &sql_claim, values, COUNT(values) - VIEW_KEY, s, way);
}

static db_answer arm(db *connection, step *s, store_way way)
{
    const db_value values[] = {
        db_text(s->thread_no),  db_text(s->log_no),     db_bytes(s->token, STEP_TOKEN),
        db_int(s->max_hold_ms), db_text(s->cust_no),    db_text(s->serial_no),
        db_text(s->op_code),    db_uint(s->held_fence), db_bytes(s->held_token, STEP_TOKEN),
        db_int(s->least_us),    db_int(s->most_us),
    };

    s->fence = s->held_fence + 1; /* the compare-and-set proves what it was */
    return run_changing(connection, &sql_arm, values, COUNT(values), s, way);
}

static db_answer close_retry(db *connection, step *s, store_way way)
{
    const db_value values[] = {
        db_text(s->retry_op), db_text(s->thread_no), db_bytes(s->token, STEP_TOKEN),
        db_text(s->cust_no),  db_text(s->serial_no), db_text(s->op_code),
    };

    return run_changing(connection, &sql_close_retry, values, COUNT(values), s, way);
}

static db_answer operator_retry(db *connection, step *s, store_way way)
{
    const db_value values[] = {
        db_text(s->cust_no),
        db_text(s->serial_no),
        db_text(s->op_code),
        db_uint(s->held_fence),
        db_text(s->thread_no),
        db_text(s->log_no),
        db_bytes(s->token, STEP_TOKEN),
        db_text(s->actor),
        db_text(s->remark),
    };

    return run_changing(connection, &sql_operator_retry, values, COUNT(values), s, way);
}

db_answer store_step(db *connection, step *s, store_way way)
{
    static db_answer (*const run_kind[STEP_KINDS])(db *, step *, store_way) = {
        [STEP_ASK] = ask,
        [STEP_ASK_REPEATABLE] = ask_repeatable,
        [STEP_RECLAIM] = reclaim,
        [STEP_FINISH_SYNC] = finish_sync,
        [STEP_FINISH_RETRY] = finish_retry,
        [STEP_OPEN] = open_held,
        [STEP_RELEASE] = open_held,
        [STEP_REAP] = open_dead,
        [STEP_CLAIM] = claim,
        [STEP_ARM] = arm,
        [STEP_CLOSE] = close_retry,
        [STEP_OPERATOR_RETRY] = operator_retry,
    };

    s->changed = 0;
    return run_kind[s->kind](connection, s, way);
}
