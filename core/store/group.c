/*
 * Runs many steps in one execution of one prepared statement: the three `group` ones of
 * sql/step/ask.sql.  Touches the connection and the steps only.
 */
#include "store/group.h"

#include "base/memory.h"
#include "store/bind.h"
#include "store/many.h"
#include "store/mutation.h"

#include <string.h>

size_t store_group_size(const step *s)
{
    switch (s->kind) {
    case STEP_FINISH_RETRY:
        return 1024 + 2 * s->result_size; /* the result goes as text, two digits for each byte */
    case STEP_CLAIM:
    case STEP_RECLAIM:
        return 1024 + TL_PAYLOAD_MAX / 4; /* for the row that is read; most are small */
    default:
        return 1024 + s->payload_size + s->result_size;
    }
}

static void take_verdicts(step **steps, size_t count, const db_result *result)
{
    /* One row came back for each step, in the same order. */
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        const void *token = db_get_bytes(result, i, 0, &size);

        steps[i]->changed = size == STEP_TOKEN && memcmp(token, steps[i]->token, STEP_TOKEN) == 0;
        if (!steps[i]->changed)
            continue;
        steps[i]->fence = db_get_uint(result, i, 1);
        steps[i]->epoch = (uint32_t)db_get_uint(result, i, 2);
    }
}

static const struct sql_text *statement_for(step *const *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i]->kind == STEP_ASK_REPEATABLE)
            return &sql_group_repeatable;
    return &sql_group;
}

static db_answer run_rows(db *connection, step **steps, size_t count)
{
    const struct sql_text *statement = store_mutated(statement_for(steps, count));
    step_uuids *uuids = memory_new_array(count, sizeof *uuids);
    db_value *values = memory_new_array(count * statement->values, sizeof *values);
    RESULT result = DB_RESULT_INIT;
    db_answer answer = DB_NO_MEMORY;

    if (uuids != NULL && values != NULL) {
        for (size_t i = 0; i < count; i++)
            step_bind(statement, steps[i], values + i * statement->values, uuids[i]);
        answer = db_run_rows(connection, statement,
                             &(db_rows){values, count, statement->values, DB_WAIT_AS_SET}, &result);
    }
    if (answer == DB_DONE && result.rows != count) {
        /* Nobody knows which row is whose, so each step is settled by its token. */
        db_spoil(connection);
        answer = DB_UNANSWERED;
    }
    if (answer == DB_DONE)
        take_verdicts(steps, count, &result);
    memory_free(values);
    memory_free(uuids);
    return answer;
}

db_answer store_group(db *connection, step **steps, size_t count)
{
    db_answer answer;

    switch (step_shares(steps[0])) {
    case SHARE_ENDINGS:
        return store_endings(connection, steps, count);
    case SHARE_OPENINGS:
        return store_openings(connection, steps, count);
    case SHARE_CLAIMS:
        answer = store_claims(connection, steps, count, 0);
        break;
    case SHARE_RECLAIMS:
        answer = store_reclaims(connection, steps, count);
        break;
    default:
        return run_rows(connection, steps, count);
    }
    return answer == DB_DONE ? store_read_granted(connection, steps, count) : answer;
}
