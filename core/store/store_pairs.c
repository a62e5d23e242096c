/*
 * Steps that write both rows of a trade, many in one statement; and what is read of many rows
 * at once.  The order of the values is that of the named file of sql/query.
 */
#include "store/store_pairs.h"

#include "base/memory.h"
#include "sql_text.h"
#include "store/mutation.h"
#include "store/rows.h"
#include "store/view.h"

#include <string.h>

#define CLAIM_VALUES 10  /* claim_group */
#define ENDING_VALUES 16 /* finish_retry_group */
#define TOKEN_VALUES 4   /* tokens_seen */
#define KEY_VALUES 3     /* views_by_key */

/* Where one-letter words live while the values are used. */
struct words {
    char status[2], proof[2], claim_as[2];
};

/* What one kind of statement says of a step. */
typedef void (*put_values)(const step *s, const struct words *words, db_value *values);

static void put_claim(const step *s, const struct words *words, db_value *values)
{
    const db_value row[CLAIM_VALUES] = {
        db_ascii(s->cust_no),      db_ascii(s->serial_no),         db_ascii(s->op_code),
        db_ascii(s->retry_op),     db_text(s->thread_no),          db_text(s->log_no),
        db_text(s->session_id),    db_bytes(s->token, STEP_TOKEN), db_int(s->max_hold_ms),
        db_ascii(words->claim_as),
    };

    memcpy(values, row, sizeof row);
}

static void put_ending(const step *s, const struct words *words, db_value *values)
{
    const db_value row[ENDING_VALUES] = {
        db_ascii(s->cust_no),    db_ascii(s->serial_no),
        db_ascii(s->op_code),    db_ascii(s->retry_op),
        db_ascii(words->status), db_text(s->thread_no),
        db_text(s->log_no),      db_bytes(s->token, STEP_TOKEN),
        db_ascii(words->proof),  db_int(s->retryable),
        db_text(s->channel_ref), db_bytes(s->result, s->result_size),
        db_text(s->remark),      db_text(s->actor),
        db_uint(s->held_fence),  db_bytes(s->held_token, STEP_TOKEN),
    };

    memcpy(values, row, sizeof row);
}

static void put_token(const step *s, const struct words *words, db_value *values)
{
    const db_value row[TOKEN_VALUES] = {db_ascii(s->cust_no), db_ascii(s->serial_no),
                                        db_ascii(s->op_code),
                                        db_bytes(s->token, STEP_TOKEN)};

    (void)words;
    memcpy(values, row, sizeof row);
}

static void put_key(const step *s, const struct words *words, db_value *values)
{
    const db_value row[KEY_VALUES] = {db_ascii(s->cust_no), db_ascii(s->serial_no),
                                      db_ascii(s->op_code)};

    (void)words;
    memcpy(values, row, sizeof row);
}

static db_answer run(db *connection, const struct sql_text *statement, step *const *steps,
                     size_t count, put_values put, size_t columns, int nowait,
                     db_result *result)
{
    struct words *words = memory_new_array(count, sizeof *words);
    db_value *values = memory_new_array(count * columns, sizeof *values);
    const store_rows rows = {
        .rows = values, .row_values = columns, .count = count, .nowait = nowait};
    db_answer answer = DB_NO_MEMORY;

    if (words != NULL && values != NULL) {
        for (size_t i = 0; i < count; i++) {
            words[i] = (struct words){{steps[i]->status},
                                      {steps[i]->proof},
                                      {(char)('0' + steps[i]->claim_as)}};
            put(steps[i], &words[i], values + i * columns);
        }
        answer = store_run_rows(connection, store_mutated(statement), &rows, result);
    }
    memory_free(values);
    memory_free(words);
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
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, &sql_tokens_seen, steps, count, put_token,
                           TOKEN_VALUES, 0, &result);

    for (size_t row = 0; answer == DB_DONE && row < result.rows; row++) {
        size_t size;
        const void *token = db_get_bytes(&result, row, 0, &size);
        step *s = find_token(steps, count, token, size);

        if (s != NULL)
            s->changed = 1;
    }
    db_result_free(&result);
    return answer;
}

/* The statement changed both rows of each step that it carried out, and no others. */
static db_answer change(db *connection, const struct sql_text *statement,
                        step *const *steps, size_t count, put_values put, size_t columns,
                        int nowait)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer =
        run(connection, statement, steps, count, put, columns, nowait, &result);
    const uint64_t affected = result.affected;

    db_result_free(&result);
    for (size_t i = 0; i < count; i++)
        steps[i]->changed = answer == DB_DONE && affected == 2 * count;
    if (answer != DB_DONE || affected == 0 || affected == 2 * count)
        return answer;
    if (read_tokens(connection, steps, count) == DB_DONE)
        return DB_DONE;
    /* Something was done, and nobody can tell for whom. */
    db_spoil(connection);
    return DB_UNANSWERED;
}

db_answer store_claims(db *connection, step *const *steps, size_t count, int nowait)
{
    return change(connection, &sql_claim_group, steps, count, put_claim, CLAIM_VALUES,
                  nowait);
}

db_answer store_endings(db *connection, step *const *steps, size_t count)
{
    return change(connection, &sql_finish_retry_group, steps, count, put_ending,
                  ENDING_VALUES, 0);
}

db_answer store_claimed_rows(db *connection, step *const *steps, size_t count)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer =
        run(connection, &sql_views_by_key, steps, count, put_key, KEY_VALUES, 0, &result);

    for (size_t i = 0; i < count; i++)
        steps[i]->fence = 0;
    for (size_t row = 0; answer == DB_DONE && row < result.rows; row++) {
        tl_view view;
        view_inside inside;
        step *s;

        view_read(&view, &inside, &result, row);
        s = find_token(steps, count, inside.token, STEP_TOKEN);
        if (s == NULL || s->row == NULL)
            continue;
        answer = db_result_copy_row(s->row, &result, row);
        s->fence = view.fence;
        s->epoch = view.epoch;
    }
    db_result_free(&result);
    return answer;
}
