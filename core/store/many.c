/*
 * Many steps in one statement that joins the table with a list of their values: for what is no
 * INSERT, or writes both rows of a trade.  The order of the values is that of the named file of
 * sql/query.
 */
#include "store/many.h"

#include "base/memory.h"
#include "sql_text.h"
#include "store/mutation.h"
#include "store/rows.h"
#include "store/view.h"

#include <string.h>

#define VALUES_MAX 18 /* of a row of any of them */

/* Where one-letter words live while the values are used. */
struct words {
    char status[2], proof[2], claim_as[2];
};

/* What one kind of statement says of a step; the number of values. */
typedef size_t (*put_values)(const step *s, const struct words *words, db_value *values);

/* A kind of statement, and how many rows it changes of a step that it carries out. */
struct many {
    const struct sql_text *statement;
    put_values put;
    unsigned rows_each;
};

#define PUT(values, ...)                                                                           \
    const db_value row[] = {__VA_ARGS__};                                                          \
    memcpy(values, row, sizeof row);                                                               \
    return sizeof row / sizeof row[0]
#define KEY(s) db_ascii((s)->cust_no), db_ascii((s)->serial_no), db_ascii((s)->op_code)
#define TOKEN(s) db_bytes((s)->token, STEP_TOKEN)
#define HOLD(s) db_uint((s)->held_fence), db_bytes((s)->held_token, STEP_TOKEN)

static db_value milliseconds_or_null(int64_t number)
{
    return number < 0 ? db_null() : db_int(number);
}

static size_t put_key(const step *s, const struct words *words, db_value *values)
{
    (void)words;
    PUT(values, KEY(s));
}

static size_t put_token(const step *s, const struct words *words, db_value *values)
{
    (void)words;
    PUT(values, KEY(s), TOKEN(s));
}

static size_t put_claim(const step *s, const struct words *words, db_value *values)
{
    PUT(values, KEY(s), db_ascii(s->retry_op), db_text(s->thread_no), db_text(s->log_no),
        db_text(s->new_log_no), db_text(s->session_id), TOKEN(s), db_int(s->max_hold_ms),
        db_ascii(words->claim_as));
}

static size_t put_reclaim(const step *s, const struct words *words, db_value *values)
{
    (void)words;
    PUT(values, KEY(s), db_text(s->thread_no), db_text(s->log_no), db_text(s->session_id), TOKEN(s),
        db_uint(s->sends), db_int(s->max_hold_ms), milliseconds_or_null(s->deadline_ms),
        db_text(s->channel_key), db_text(s->remark), db_text(s->actor), db_uint(s->reclaim_epoch),
        db_uint(s->reclaim_fence), db_bytes(s->fingerprint, TL_FINGERPRINT));
}

static size_t put_ending(const step *s, const struct words *words, db_value *values)
{
    PUT(values, KEY(s), db_ascii(s->retry_op), db_ascii(words->status), db_text(s->thread_no),
        db_text(s->log_no), TOKEN(s), db_ascii(words->proof), db_int(s->retryable),
        db_text(s->channel_ref), db_bytes(s->result, s->result_size), db_text(s->remark),
        db_text(s->actor), HOLD(s));
}

static size_t put_opened(const step *s, const struct words *words, db_value *values)
{
    (void)words;
    PUT(values, KEY(s), db_text(s->name), db_text(s->thread_no), db_text(s->log_no), TOKEN(s),
        s->known_sends > 0 ? db_uint(s->known_sends) : db_null(), db_uint(s->send_before_us),
        db_int(s->unsend), db_int(s->findings.seen_by_channel), db_int(s->findings.cancel_tried),
        db_int(step_not_found(s)), db_text(s->channel_ref), db_text(s->remark), db_text(s->actor),
        HOLD(s));
}

static size_t put_opening(const step *s, const struct words *words, db_value *values)
{
    (void)words;
    PUT(values, KEY(s), TOKEN(s), db_int(s->findings.apply_failed),
        milliseconds_or_null(s->next_run_ms), db_text(s->park_reason), db_text(s->remark));
}

static db_answer run(db *connection, const struct many *many, step *const *steps, size_t count,
                     int nowait, db_result *result)
{
    struct words *words = memory_new_array(count, sizeof *words);
    db_value *values = memory_new_array(count * VALUES_MAX, sizeof *values);
    store_rows rows = {.rows = values, .count = count, .nowait = nowait};
    db_answer answer = DB_NO_MEMORY;
    size_t used = 0;

    if (words != NULL && values != NULL) {
        for (size_t i = 0; i < count; i++) {
            words[i] = (struct words){
                {steps[i]->status}, {steps[i]->proof}, {(char)('0' + steps[i]->claim_as)}};
            rows.row_values = many->put(steps[i], &words[i], values + used);
            used += rows.row_values;
        }
        answer = store_run_rows(connection, store_mutated(many->statement), &rows, result);
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
    static const struct many tokens = {&sql_tokens_seen, put_token, 0};
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, &tokens, steps, count, 0, &result);

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

/* The statement changed so many rows of each step that it carried out, and no others. */
static db_answer change(db *connection, const struct many *many, step *const *steps, size_t count,
                        int nowait)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, many, steps, count, nowait, &result);
    const uint64_t affected = result.affected, all = many->rows_each * count;

    db_result_free(&result);
    for (size_t i = 0; i < count; i++)
        steps[i]->changed = answer == DB_DONE && affected == all;
    if (answer != DB_DONE || affected == 0 || affected == all)
        return answer;
    if (read_tokens(connection, steps, count) == DB_DONE)
        return DB_DONE;
    /* Something was done, and nobody can tell for whom. */
    db_spoil(connection);
    return DB_UNANSWERED;
}

db_answer store_claims(db *connection, step *const *steps, size_t count, int nowait)
{
    static const struct many claims = {&sql_claim_group, put_claim, 2};

    return change(connection, &claims, steps, count, nowait);
}

db_answer store_reclaims(db *connection, step *const *steps, size_t count)
{
    static const struct many reclaims = {&sql_reclaim_group, put_reclaim, 1};
    db_answer answer = change(connection, &reclaims, steps, count, 0);

    /* Whoever named the fence knows the one that was written. */
    for (size_t i = 0; i < count && answer == DB_DONE; i++)
        if (steps[i]->changed && steps[i]->reclaim_fence != 0) {
            steps[i]->fence = steps[i]->reclaim_fence + 1;
            steps[i]->epoch = steps[i]->reclaim_epoch + 1;
        }
    return answer;
}

db_answer store_endings(db *connection, step *const *steps, size_t count)
{
    static const struct many endings = {&sql_finish_retry_group, put_ending, 2};

    return change(connection, &endings, steps, count, 0);
}

static db_answer open_all(db *connection, step *const *steps, size_t count)
{
    static const struct many opened = {&sql_open_group, put_opened, 1};
    static const struct many openings = {&sql_open_retry_group, put_opening, 0};
    db_answer answer = db_begin(connection);

    if (answer == DB_DONE)
        answer = change(connection, &opened, steps, count, 0);
    if (answer == DB_DONE)
        answer = run(connection, &openings, steps, count, 0, NULL);
    return answer == DB_DONE ? db_commit(connection) : answer;
}

db_answer store_openings(db *connection, step *const *steps, size_t count)
{
    db_answer answer = open_all(connection, steps, count);

    if (answer == DB_ERROR)
        db_undo(connection);
    return answer;
}

db_answer store_granted_rows(db *connection, step *const *steps, size_t count)
{
    static const struct many views = {&sql_views_by_key, put_key, 0};
    db_result result = DB_RESULT_INIT;
    db_answer answer = run(connection, &views, steps, count, 0, &result);

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
            break; /* without its row it is read anew */
        s->fence = view.fence;
        s->epoch = view.epoch;
    }
    db_result_free(&result);
    return answer;
}
