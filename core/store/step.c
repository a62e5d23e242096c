/*
 * The steps of a trade: what each kind is, and which statements of sql/step carry it out.  Rooms
 * above decide what an answer means.  Touches only the connection and the step.
 */
#include "store/store.h"

#include "store/bind.h"
#include "store/many.h"
#include "store/mutation.h"

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

int step_is_plain_success(const step *s)
{
    return s->status == 'Y' && s->proof == '-' && !s->retryable && s->result == NULL &&
           !s->in_caller && s->actor == NULL;
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

void step_know_reclaim(step *s)
{
    if (!s->changed || s->reclaim_fence == 0)
        return;
    s->fence = s->reclaim_fence + 1;
    s->epoch = s->reclaim_epoch + 1;
}

static const struct sql_text *statement_of(const step *s)
{
    static const struct sql_text *const of_kind[STEP_KINDS] = {
        [STEP_ASK] = &sql_ask_insert,
        [STEP_ASK_REPEATABLE] = &sql_ask_repeatable,
        [STEP_RECLAIM] = &sql_reclaim,
        [STEP_FINISH_SYNC] = &sql_finish_sync,
        [STEP_FINISH_RETRY] = &sql_finish_retry,
        [STEP_OPEN] = &sql_open_now,
        [STEP_RELEASE] = &sql_open,
        [STEP_REAP] = &sql_reap_now,
        [STEP_CLAIM] = &sql_claim,
        [STEP_ARM] = &sql_arm,
        [STEP_CLOSE] = &sql_close_lane,
        [STEP_OPERATOR_RETRY] = &sql_operator_retry,
    };

    if (s->kind == STEP_FINISH_RETRY && step_is_plain_success(s))
        return &sql_finish_retry_short;
    if (s->kind == STEP_OPERATOR_RETRY && s->act_no != 0)
        return &sql_act_retry;
    return of_kind[s->kind];
}

/* The row that RETURNING gave is ours if it carries our token. */
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

static void take_answer(step *s, const db_result *result)
{
    switch (s->kind) {
    case STEP_ASK: /* an INSERT that did not fail: the row is ours, in its first epoch */
        if (result->rows != 1)
            break;
        s->changed = 1;
        s->fence = db_get_uint(result, 0, 0);
        s->epoch = 1;
        break;
    case STEP_ASK_REPEATABLE:
        read_returned(s, result);
        break;
    case STEP_RECLAIM:
        s->changed = result->affected > 0;
        step_know_reclaim(s);
        break;
    default:
        s->changed = result->affected > 0;
    }
}

db_answer store_step(db *connection, step *s, store_way way)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer;

    s->changed = 0;
    if (s->kind == STEP_ARM)
        s->fence = s->held_fence + 1; /* the compare-and-set proves that the fence was held_fence */
    answer = step_run(connection, statement_of(s), s, way, &result);
    if (answer == DB_DONE)
        take_answer(s, &result);
    db_result_free(&result);
    return answer == DB_DONE ? store_read_granted(connection, &s, 1) : answer;
}

void store_step_ahead(step *s, store_ahead *ahead)
{
    const struct sql_text *statement = store_mutated(statement_of(s));

    s->changed = 0;
    ahead->result = (db_result)DB_RESULT_INIT;
    step_bind(statement, s, ahead->values, ahead->uuids);
    ahead->request = (db_request){.statement = statement,
                                  .values = ahead->values,
                                  .count = statement->values,
                                  .wait = DB_WAIT_AS_SET,
                                  .result = &ahead->result};
}

void store_step_taken(step *s, store_ahead *ahead, int is_done)
{
    if (is_done)
        take_answer(s, &ahead->result);
    db_result_free(&ahead->result);
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
