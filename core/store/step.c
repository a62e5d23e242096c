/*
 * The steps of a trade: what each kind is, and which statements of sql/step carry it out.  What a
 * verdict means is decided above; nothing but the connection is touched.
 */
#include "store/store.h"

#include "store/bind.h"
#include "store/many.h"

#include <string.h>

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

int step_is_short(const step *s)
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

/* The row that RETURNING gave is ours when it carries our token. */
static void read_returned(step *s, const db_result *result)
{
    size_t size;
    const void *token;

    if (result->rows != 1)
        return;
    token = db_get_bytes(result, 0, 0, &size);
    if (size != STEP_TOKEN || memcmp(token, s->token, STEP_TOKEN) != 0)
        return;
    s->changed = 1;
    s->fence = db_get_uint(result, 0, 1);
    s->epoch = (uint32_t)db_get_uint(result, 0, 2);
}

static db_answer run_changing(db *connection, const struct sql_text *statement, step *s,
                              store_way way)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = step_run(connection, statement, s, way, &result);

    if (answer == DB_DONE)
        s->changed = result.affected > 0;
    db_result_free(&result);
    return answer;
}

static db_answer ask(db *connection, step *s, store_way way)
{
    const struct sql_text *statement = step_is_short(s) ? &sql_ask_insert_short : &sql_ask_insert;
    db_result result = DB_RESULT_INIT;
    db_answer answer = step_run(connection, statement, s, way, &result);

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
    db_result result = DB_RESULT_INIT;
    db_answer answer = step_run(connection, &sql_ask_repeatable, s, way, &result);

    if (answer == DB_DONE)
        read_returned(s, &result);
    db_result_free(&result);
    return answer;
}

static db_answer reclaim(db *connection, step *s, store_way way)
{
    db_answer answer = run_changing(connection, &sql_reclaim, s, way);

    /* Whoever named the fence knows the one that was written. */
    if (answer == DB_DONE && s->changed && s->reclaim_fence != 0) {
        s->fence = s->reclaim_fence + 1;
        s->epoch = s->reclaim_epoch + 1;
    }
    return answer == DB_DONE ? store_read_granted(connection, &s, 1) : answer;
}

static db_answer finish_sync(db *connection, step *s, store_way way)
{
    return run_changing(connection, step_is_short(s) ? &sql_finish_sync_short : &sql_finish_sync, s,
                        way);
}

static db_answer finish_retry(db *connection, step *s, store_way way)
{
    return run_changing(connection, &sql_finish_retry, s, way);
}

static db_answer open_both(db *connection, const struct sql_text *sync, step *s)
{
    db_answer answer = db_begin(connection);

    if (answer == DB_DONE)
        answer = run_changing(connection, sync, s, STORE_PLAIN);
    if (answer == DB_DONE && !s->changed)
        return db_rollback(connection);
    if (answer == DB_DONE)
        answer = step_run(connection, &sql_open_lane, s, STORE_PLAIN, NULL);
    if (answer == DB_DONE)
        return db_commit(connection);
    if (answer == DB_ERROR)
        db_undo(connection);
    return answer;
}

static db_answer open_held(db *connection, step *s, store_way way)
{
    (void)way;
    return open_both(connection, &sql_open, s);
}

static db_answer release(db *connection, step *s, store_way way)
{
    return run_changing(connection, &sql_open, s, way);
}

static db_answer open_dead(db *connection, step *s, store_way way)
{
    (void)way;
    return open_both(connection, &sql_reap, s);
}

static db_answer claim(db *connection, step *s, store_way way)
{
    db_answer answer = run_changing(connection, &sql_claim, s, way);

    return answer == DB_DONE ? store_read_granted(connection, &s, 1) : answer;
}

static db_answer arm(db *connection, step *s, store_way way)
{
    s->fence = s->held_fence + 1; /* the compare-and-set proves what it was */
    return run_changing(connection, &sql_arm, s, way);
}

static db_answer close_lane(db *connection, step *s, store_way way)
{
    return run_changing(connection, &sql_close_lane, s, way);
}

static db_answer operator_retry(db *connection, step *s, store_way way)
{
    return run_changing(connection, &sql_operator_retry, s, way);
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
        [STEP_RELEASE] = release,
        [STEP_REAP] = open_dead,
        [STEP_CLAIM] = claim,
        [STEP_ARM] = arm,
        [STEP_CLOSE] = close_lane,
        [STEP_OPERATOR_RETRY] = operator_retry,
    };

    s->changed = 0;
    return run_kind[s->kind](connection, s, way);
}

db_answer store_open_lane(db *connection, const step *s)
{
    return step_run(connection, &sql_open_lane, s, STORE_PLAIN, NULL);
}

db_answer store_token_now(db *connection, const step *s, db_result *result)
{
    return step_run(connection, &sql_token_now, s, STORE_PLAIN, result);
}

db_answer store_token_seen(db *connection, const step *s, db_result *result)
{
    return step_run(connection, &sql_token_seen, s, STORE_PLAIN, result);
}
