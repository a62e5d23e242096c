/*
 * Runs many steps in one execution of one prepared statement: the three `group` ones of
 * sql/step/ask.sql.  Touches the connection and the steps only.
 */
#include "store/group.h"

#include "base/memory.h"
#include "store/bind.h"
#include "store/many.h"
#include "store/mutation.h"
#include "store/rows.h"

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
    db_value *values = step_bind_all(statement, steps, count);
    RESULT result = DB_RESULT_INIT;
    db_answer answer = store_run_each(connection, statement, values, count, &result);

    for (size_t i = 0; i < count && answer == DB_DONE; i++)
        step_read_row(steps[i], &result, i);
    memory_free(values);
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
