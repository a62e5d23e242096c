/*
 * Many steps in one execution of one prepared statement.  The order of the values is that of
 * sql/query/group.sql and group_mutex.sql.
 */
#include "store/group.h"

#include "base/memory.h"
#include "sql_text.h"
#include "store/mutation.h"
#include "store/many.h"

#include <string.h>

#define ROW_VALUES 24
/* The last of them, which the plain form of group.sql leaves out. */
#define ROW_TOLD 9

store_group_kind store_group_of(const step *s)
{
    switch (s->kind) {
    case STEP_ASK:
        return s->exclusive ? STORE_NO_GROUP : STORE_GROUP_ROWS;
    case STEP_ASK_REPEATABLE:
        return s->held_fence == 0 ? STORE_GROUP_ROWS : STORE_NO_GROUP;
    case STEP_FINISH_SYNC:
        return STORE_GROUP_ROWS;
    case STEP_FINISH_RETRY:
        return s->proof == TL_PROOF_OPERATORS ? STORE_NO_GROUP : STORE_GROUP_ENDINGS;
    case STEP_OPEN:
        return s->findings.not_counted ? STORE_NO_GROUP : STORE_GROUP_OPENINGS;
    case STEP_CLAIM:
        return s->claim_as == CLAIM_OVERRIDE ? STORE_NO_GROUP : STORE_GROUP_CLAIMS;
    case STEP_RECLAIM:
        return s->exclusive ? STORE_NO_GROUP : STORE_GROUP_RECLAIMS;
    default:
        return STORE_NO_GROUP;
    }
}

static const char *group_word(step_kind kind)
{
    switch (kind) {
    case STEP_ASK:
        return "ask";
    case STEP_ASK_REPEATABLE:
        return "reask";
    default:
        return "end";
    }
}

/* Where one-letter words and the bytes of UUIDs live while the values are used. */
struct words {
    char lane[2], status[2], proof[2];
    unsigned char thread[DB_UUID], log[DB_UUID], session[DB_UUID];
};

static void row_values(const step *s, db_value *values, size_t columns, struct words *words)
{
    int ends = s->kind == STEP_FINISH_SYNC;
    db_value *v = values;

    *words =
        (struct words){.lane = {s->lane}, .status = {ends ? s->status : 'P'}, .proof = {s->proof}};
    *v++ = db_ascii(s->cust_no);
    *v++ = db_ascii(s->serial_no);
    *v++ = db_ascii(s->op_code);
    *v++ = db_ascii(words->lane);
    *v++ = db_ascii(words->status);
    *v++ = db_ascii(group_word(s->kind));
    *v++ = db_uuid(s->thread_no, words->thread);
    *v++ = db_uuid(s->log_no, words->log);
    *v++ = ends ? db_null() : db_uuid(s->session_id, words->session);
    *v++ = db_bytes(s->token, STEP_TOKEN);
    *v++ = ends ? db_uint(s->held_fence) : db_null();
    *v++ = db_uint(ends ? 0 : s->kind == STEP_ASK ? s->sends : 1);
    *v++ = ends ? db_null() : db_int(s->max_hold_ms);
    *v++ = ends ? db_null() : db_bytes(s->fingerprint, TL_FINGERPRINT);
    *v++ = ends ? db_bytes(s->held_token, STEP_TOKEN) : db_bytes(s->payload, s->payload_size);
    if (columns < ROW_VALUES)
        return;
    *v++ = s->kind == STEP_ASK && s->deadline_ms >= 0 ? db_int(s->deadline_ms) : db_null();
    *v++ = db_ascii(s->channel);
    *v++ = db_ascii(s->channel_key);
    *v++ = db_text(s->channel_ref);
    *v++ = ends ? db_bytes(s->result, s->result_size) : db_null();
    *v++ = db_ascii(words->proof);
    *v++ = db_int(s->retryable);
    *v++ = db_text(s->remark);
    *v = db_text(s->actor);
}

size_t store_group_size(const step *s)
{
    switch (s->kind) {
    case STEP_FINISH_RETRY:
        return 1024 + 2 * s->result_size; /* as text, two digits for each byte */
    case STEP_CLAIM:
    case STEP_RECLAIM:
        return 1024 + TL_PAYLOAD_MAX / 4; /* the row that is read, and most are small */
    default:
        return 1024 + s->payload_size + s->result_size;
    }
}

static void take_verdicts(step **steps, size_t count, const db_result *result)
{
    /* One row came back for each row that went in, in the same order. */
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
    const struct sql_text *statement = &sql_group_plain;

    for (size_t i = 0; i < count; i++)
        if (steps[i]->kind == STEP_ASK_REPEATABLE)
            return &sql_group_mutex;
        else if (!step_is_plain(steps[i]))
            statement = &sql_group;
    return statement;
}

static db_answer run_rows(db *connection, step **steps, size_t count)
{
    struct words *words = memory_new_array(count, sizeof *words);
    db_value *values = memory_new_array(count * ROW_VALUES, sizeof *values);
    db_result result = DB_RESULT_INIT;
    const struct sql_text *statement = statement_for(steps, count);
    const size_t columns = ROW_VALUES - (statement == &sql_group_plain ? ROW_TOLD : 0);
    db_answer answer = DB_NO_MEMORY;

    if (words != NULL && values != NULL) {
        for (size_t i = 0; i < count; i++)
            row_values(steps[i], values + i * columns, columns, &words[i]);
        answer = db_run_rows(connection, store_mutated(statement), values, count, columns, &result);
    }
    if (answer == DB_DONE && result.rows != count) {
        /* Which row is whose is not known: each is settled by its token. */
        db_spoil(connection);
        answer = DB_UNANSWERED;
    }
    if (answer == DB_DONE)
        take_verdicts(steps, count, &result);
    db_result_free(&result);
    memory_free(values);
    memory_free(words);
    return answer;
}

/* What was granted is committed then: without the rows nobody could go on from it. */
static db_answer read_granted(db *connection, step *const *steps, size_t count)
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
    /* Who has lost it since is told as one who came too late, by reading the row. */
    for (size_t i = 0; i < kept; i++)
        wanted[i]->changed = wanted[i]->fence != 0;
    return DB_DONE;
}

db_answer store_group(db *connection, step **steps, size_t count)
{
    db_answer answer;

    switch (store_group_of(steps[0])) {
    case STORE_GROUP_ENDINGS:
        return store_endings(connection, steps, count);
    case STORE_GROUP_OPENINGS:
        return store_openings(connection, steps, count);
    case STORE_GROUP_CLAIMS:
        answer = store_claims(connection, steps, count, 0);
        break;
    case STORE_GROUP_RECLAIMS:
        answer = store_reclaims(connection, steps, count);
        break;
    default:
        return run_rows(connection, steps, count);
    }
    return answer == DB_DONE ? read_granted(connection, steps, count) : answer;
}
