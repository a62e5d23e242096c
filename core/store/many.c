/*
 * Runs many steps in one statement that joins the table with a list of their values: the many forms
 * of sql/step, for steps that are no INSERT, or write both rows of a trade.  Touches the connection
 * and the steps only.
 */
#include "store/many.h"

#include "base/error.h"
#include "base/memory.h"
#include "store/bind.h"
#include "store/group.h"
#include "store/mutation.h"
#include "store/rows.h"
#include "store/view.h"

#include <string.h>

static db_answer run(db *connection, const struct sql_text *many, step *const *steps, size_t count,
                     int nowait, db_result *result)
{
    const struct sql_text *statement = store_mutated(many);
    db_value *values = step_bind_all(statement, steps, count);
    const store_rows rows = {.rows = values, .count = count, .nowait = nowait};
    db_answer answer =
        values != NULL ? store_run_rows(connection, statement, &rows, result) : DB_NO_MEMORY;

    memory_free(values);
    return answer;
}

/* The step with this token; NULL for none. */
static step *find_token(step *const *steps, size_t count, const void *token, size_t size)
{
    for (size_t i = 0; i < count && size == STEP_TOKEN; i++)
        if (memcmp(steps[i]->token, token, STEP_TOKEN) == 0)
            return steps[i];
    return NULL;
}

static db_answer read_tokens(db *connection, step *const *steps, size_t count)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = run(connection, &sql_tokens_seen, steps, count, 0, &result);

    for (size_t row = 0; answer == DB_DONE && row < result.rows; row++) {
        size_t size;
        const void *token = db_get_bytes(&result, row, 0, &size);
        step *s = find_token(steps, count, token, size);

        if (s != NULL)
            s->changed = 1;
    }
    return answer;
}

/* Runs the statement.  It changes rows_each rows of each step that it carries out, and no other
 * row. */
static db_answer change(db *connection, const struct sql_text *many, unsigned rows_each,
                        step *const *steps, size_t count, int nowait)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = run(connection, many, steps, count, nowait, &result);
    const uint64_t affected = result.affected, all = rows_each * count;

    for (size_t i = 0; i < count; i++)
        steps[i]->changed = answer == DB_DONE && affected == all;
    if (answer != DB_DONE || affected == 0 || affected == all)
        return answer;
    if (read_tokens(connection, steps, count) == DB_DONE)
        return DB_DONE;
    /* Some steps were carried out, and nobody knows which. */
    db_spoil(connection);
    return DB_UNANSWERED;
}

db_answer store_claims(db *connection, step *const *steps, size_t count, int nowait)
{
    return change(connection, &sql_claim_many, 2, steps, count, nowait);
}

db_answer store_reclaims(db *connection, step *const *steps, size_t count)
{
    db_answer answer = change(connection, &sql_reclaim_many, 1, steps, count, 0);

    for (size_t i = 0; i < count && answer == DB_DONE; i++)
        step_know_reclaim(steps[i]);
    return answer;
}

db_answer store_endings(db *connection, step *const *steps, size_t count)
{
    const struct sql_text *many = &sql_finish_retry_many_short;

    for (size_t i = 0; i < count; i++)
        if (!step_is_plain_success(steps[i]))
            many = &sql_finish_retry_many;
    return change(connection, many, 2, steps, count, 0);
}

static db_answer open_all(db *connection, step *const *steps, size_t count)
{
    TRY(db_begin(connection));
    TRY(change(connection, &sql_open_many, 1, steps, count, 0));
    TRY(run(connection, &sql_open_lane_many, steps, count, 0, NULL));
    return db_commit(connection);
}

db_answer store_openings(db *connection, step *const *steps, size_t count)
{
    db_answer answer = open_all(connection, steps, count);

    return answer == DB_ERROR ? db_undo(connection) : answer;
}

db_answer store_granted_rows(db *connection, step *const *steps, size_t count)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = run(connection, &sql_views_by_key, steps, count, 0, &result);

    for (size_t i = 0; i < count; i++)
        steps[i]->fence = 0;
    for (size_t row = 0; answer == DB_DONE && row < result.rows; row++) {
        tl_view view;
        view_inside inside;
        step *s;

        view_read(&view, &inside, &result, row);
        s = find_token(steps, count, inside.token, STEP_TOKEN);
        if (s == NULL)
            continue;
        if (s->row != NULL)
            answer = db_result_copy_row(s->row, &result, row);
        if (answer != DB_DONE)
            break; /* without its row the step is read anew */
        s->fence = view.fence;
        s->epoch = view.epoch;
    }
    return answer;
}

/* Reads the rows of steps that are committed; a grant without its row would be of no use. */
db_answer store_read_granted(db *connection, step *const *steps, size_t count)
{
    step *wanted[STORE_GROUP_MAX];
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (steps[i]->changed && steps[i]->row != NULL)
            wanted[kept++] = steps[i];
    if (kept == 0)
        return DB_DONE;
    if (store_granted_rows(connection, wanted, kept) != DB_DONE) {
        db_spoil(connection);
        return DB_UNANSWERED;
    }
    /* A step that was superseded since has no fence now, and counts as not changed. */
    for (size_t i = 0; i < kept; i++)
        wanted[i]->changed = wanted[i]->fence != 0;
    return DB_DONE;
}
