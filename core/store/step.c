/*
 * The steps of a trade: what each kind is, and which statements of sql/step carry it out.  Rooms
 * above decide what an answer means.  Touches only the connection and the step.
 */
#include "store/store.h"

#include "store/bind.h"
#include "store/many.h"
#include "store/mutation.h"

enum { GRANT = 1, HOLDERS = 2, WHOLE = 4, ENDS = 8 };

#define STEP_KIND_RULE(kind, word, from, to, statement, holds, share)                              \
    {word,                                                                                         \
     &sql_##statement,                                                                             \
     ((holds) & GRANT) != 0,                                                                       \
     ((holds) & HOLDERS) != 0,                                                                     \
     ((holds) & WHOLE) != 0,                                                                       \
     ((holds) & ENDS) != 0,                                                                        \
     SHARE_##share},

const step_rule *step_rule_of(step_kind kind)
{
    static const step_rule rules[STEP_KINDS] = {STEP_KIND_MAP(STEP_KIND_RULE)};

    return &rules[kind];
}

step_share step_shares(const step *s)
{
    const int is_alone = (s->kind == STEP_ASK && s->exclusive) ||
                         (s->kind == STEP_ASK_REPEATABLE && s->held_fence != 0) ||
                         (s->kind == STEP_RECLAIM && s->exclusive) ||
                         (s->kind == STEP_FINISH_RETRY && s->proof == TL_PROOF_OPERATORS) ||
                         (s->kind == STEP_OPEN && s->findings.not_counted) ||
                         (s->kind == STEP_CLAIM && s->claim_as == CLAIM_OVERRIDE);

    return is_alone ? SHARE_NOBODY : step_rule_of(s->kind)->share;
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

void step_know_reclaim(step *s)
{
    if (!s->changed || s->reclaim_fence == 0)
        return;
    s->fence = s->reclaim_fence + 1;
    s->epoch = s->reclaim_epoch + 1;
}

static const struct sql_text *statement_of(const step *s)
{
    if (s->kind == STEP_FINISH_RETRY && step_is_plain_success(s))
        return &sql_finish_retry_short;
    if (s->kind == STEP_OPERATOR_RETRY && s->act_no != 0)
        return &sql_act_retry;
    return step_rule_of(s->kind)->alone;
}

void step_read_row(step *s, const db_result *result, size_t row)
{
    s->changed = row < result->rows && db_is_bytes(result, row, 0, s->token, STEP_TOKEN);
    if (!s->changed)
        return;
    s->fence = db_get_uint(result, row, 1);
    s->epoch = (uint32_t)db_get_uint(result, row, 2);
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
        step_read_row(s, result, 0);
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
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    s->changed = 0;
    if (s->kind == STEP_ARM)
        s->fence = s->held_fence + 1; /* the compare-and-set proves that the fence was held_fence */
    answer = step_run(connection, statement_of(s), s, way, &result);
    if (answer == DB_DONE)
        take_answer(s, &result);
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
