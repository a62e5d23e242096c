/* The statements of read-write locks and row locks, bound to their values.  Decides nothing, and
 * touches only the connection. */
#include "store/rw.h"

#include "base/text.h"
#include "store/bind.h"
#include "store/record.h"

#include "sql_text.h"

#include <string.h>

/* Runs a statement of which only the number of rows, or of changed rows, is wanted. */
static db_answer run_counting(db *connection, const struct sql_text *statement,
                              const db_value *values, size_t count, uint64_t *number)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = db_run(connection, statement, values, count, &result);

    if (answer == DB_DONE && number != NULL)
        *number = result.columns > 0 ? result.rows : result.affected;
    db_result_free(&result);
    return answer;
}

#define RUN_COUNTING(connection, number, statement, ...)                                           \
    run_counting(connection, &sql_##statement, SQL_VALUES(statement, __VA_ARGS__),                 \
                 sql_##statement##_values_count, number)

db_answer store_rw_make(db *connection, const char *resource)
{
    return RUN_COUNTING(connection, NULL, rw_make, .resource = db_text(resource));
}

db_answer store_rw_gate(db *connection, const char *resource, int *there)
{
    uint64_t rows = 0;
    db_answer answer = RUN_COUNTING(connection, &rows, rw_gate, .resource = db_text(resource));

    *there = rows == 1;
    return answer;
}

db_answer store_rw_look(db *connection, const char *resource, const uint8_t *intent,
                        int64_t latest_us, rw_look *look)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(connection, &result, rw_look, .intent = db_bytes(intent, RW_TOKEN),
                               .latest_us = db_int(latest_us), .resource = db_text(resource));

    memset(look, 0, sizeof *look);
    if (answer == DB_DONE && result.rows == 1) {
        look->fence = db_get_uint(&result, 0, 0);
        look->new_slot = (unsigned)db_get_uint(&result, 0, 1);
        look->free_slot = (unsigned)db_get_uint(&result, 0, 2);
        look->my_intent = (unsigned)db_get_uint(&result, 0, 3);
        look->writers = (unsigned)db_get_uint(&result, 0, 4);
        look->readers = (unsigned)db_get_uint(&result, 0, 5);
        look->intents = (unsigned)db_get_uint(&result, 0, 6);
        look->dead_writers = (unsigned)db_get_uint(&result, 0, 7);
        look->dead_readers = (unsigned)db_get_uint(&result, 0, 8);
    }
    db_result_free(&result);
    return answer;
}

static db_value letter(const char *c)
{
    db_value value = {DB_TEXT, 0, c, 1};

    return value;
}

db_answer store_rw_claim(db *connection, const rw_step *s)
{
    return RUN_COUNTING(connection, NULL, rw_claim, .resource = db_text(s->resource),
                        .slot = db_uint(s->slot), .kind = letter(&s->kind),
                        .status = letter(&s->status), .step = db_text(s->step),
                        .thread_no = db_text(s->thread_no), .log_no = db_text(s->log_no),
                        .session_id = db_text(s->session_id), .by_session = db_int(s->by_session),
                        .token = db_bytes(s->token, RW_TOKEN), .fence = db_uint(s->fence),
                        .over_ms = db_int(s->over_ms), .max_hold_ms = db_int(s->max_hold_ms),
                        .remark = db_text(s->remark), .actor = db_text(s->actor));
}

db_answer store_rw_free(db *connection, const char *resource, int readers_too, const uint8_t *token,
                        const char *thread_no, const char *actor, int64_t latest_us,
                        uint64_t *freed)
{
    return RUN_COUNTING(connection, freed, rw_free, .thread_no = db_text(thread_no),
                        .token = db_bytes(token, RW_TOKEN), .actor = db_text(actor),
                        .resource = db_text(resource), .readers_too = db_int(readers_too),
                        .latest_us = db_int(latest_us));
}

db_answer store_rw_release(db *connection, const rw_step *s, uint64_t *affected)
{
    return RUN_COUNTING(connection, affected, rw_release, .step = db_text(s->step),
                        .thread_no = db_text(s->thread_no), .log_no = db_text(s->log_no),
                        .token = db_bytes(s->token, RW_TOKEN), .resource = db_text(s->resource),
                        .slot = db_uint(s->slot), .held_token = db_bytes(s->held_token, RW_TOKEN));
}

db_answer store_rw_downgrade(db *connection, const rw_step *s, uint64_t *affected)
{
    return RUN_COUNTING(connection, affected, rw_downgrade, .thread_no = db_text(s->thread_no),
                        .log_no = db_text(s->log_no), .resource = db_text(s->resource),
                        .slot = db_uint(s->slot), .held_token = db_bytes(s->held_token, RW_TOKEN));
}

db_answer store_rw_renew(db *connection, const rw_step *s, uint64_t *affected)
{
    return RUN_COUNTING(connection, affected, rw_renew, .thread_no = db_text(s->thread_no),
                        .log_no = db_text(s->log_no), .over_ms = db_int(s->over_ms),
                        .resource = db_text(s->resource), .slot = db_uint(s->slot),
                        .held_token = db_bytes(s->held_token, RW_TOKEN));
}

db_answer store_rw_force(db *connection, const rw_step *s, uint64_t seen_fence, uint64_t *affected)
{
    return RUN_COUNTING(connection, affected, rw_force, .thread_no = db_text(s->thread_no),
                        .log_no = db_text(s->log_no), .token = db_bytes(s->token, RW_TOKEN),
                        .remark = db_text(s->remark), .actor = db_text(s->actor),
                        .resource = db_text(s->resource), .slot = db_uint(s->slot),
                        .seen_fence = db_uint(seen_fence));
}

db_answer store_rw_done(db *connection, const rw_step *s, uint64_t *affected)
{
    return RUN_COUNTING(connection, affected, rw_done, .thread_no = db_text(s->thread_no),
                        .log_no = db_text(s->log_no), .resource = db_text(s->resource),
                        .slot = db_uint(s->slot), .held_token = db_bytes(s->held_token, RW_TOKEN),
                        .fence = db_uint(s->fence));
}

db_answer store_rw_guard(db *connection, const rw_step *s, int *held)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(
        connection, &result, rw_guard, .held_token = db_bytes(s->held_token, RW_TOKEN),
        .fence = db_uint(s->fence), .resource = db_text(s->resource), .slot = db_uint(s->slot));

    *held = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    db_result_free(&result);
    return answer;
}

db_answer store_rw_now(db *connection, const char *resource, unsigned slot, const uint8_t *token,
                       db_result *result)
{
    return SQL_RUN(connection, result, rw_now, .token = db_bytes(token, RW_TOKEN),
                   .resource = db_text(resource), .slot = db_uint(slot));
}

db_answer store_rw_token_seen(db *connection, const char *resource, unsigned slot,
                              const uint8_t *token, int *seen)
{
    db_result result = DB_RESULT_INIT;
    db_answer answer = SQL_RUN(connection, &result, rw_token_seen, .resource = db_text(resource),
                               .slot = db_uint(slot), .token = db_bytes(token, RW_TOKEN));

    *seen = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    db_result_free(&result);
    return answer;
}

/* ------------------------------------------------------------------------- views -- */

db_answer store_rw_list(db *connection, const char *resource, unsigned slot, int all,
                        unsigned limit, db_result *result)
{
    if (all)
        return SQL_RUN(connection, result, rw_list, .resource = db_text(resource),
                       .slot = db_uint(slot), .most = db_uint(limit));
    return SQL_RUN(connection, result, rw_show, .resource = db_text(resource),
                   .slot = db_uint(slot), .most = db_uint(limit));
}

#define AT(member) COLUMN_rw_columns_##member

static tl_holder_state state_of(const char *name)
{
    for (int state = TL_HOLDER_FREE; state <= TL_HOLDER_DEAD; state++)
        if (strcmp(tl_holder_state_name((tl_holder_state)state), name) == 0)
            return (tl_holder_state)state;
    return TL_HOLDER_FREE;
}

void holder_view_read(tl_holder_view *to, const db_result *result, size_t row)
{
    memset(to, 0, sizeof *to);
    to->version = TL_HOLDER_VIEW_VERSION;
    TL_HOLDER_MAP(RECORD_READ)
}

/* ---------------------------------------------------------------------- row lock -- */

db_answer store_row_lock_there(db *connection, const char *resource, int *there)
{
    uint64_t rows = 0;
    db_answer answer =
        RUN_COUNTING(connection, &rows, row_lock_there, .resource = db_text(resource));

    *there = rows == 1;
    return answer;
}

db_answer store_row_lock_make(db *connection, const char *resource)
{
    return RUN_COUNTING(connection, NULL, row_lock_make, .resource = db_text(resource));
}

/* The grammar allows no parameter after WAIT, so the statement is written out.  The name goes as
 * hexadecimal, which every sql_mode of a caller reads alike.  It goes with its character set, or it
 * would be compared outside the index. */
static void write_row_lock(struct text_buffer *to, const char *resource, int64_t wait_s)
{
    const char *text = sql_row_lock.text, *mark = strchr(text, '?');
    size_t size = strlen(resource);
    char *name;

    text_buffer_append(to, text, (size_t)(mark - text));
    text_buffer_append_text(to, "_ascii x'");
    name = text_buffer_room(to, size * 2 + 1);
    if (name == NULL)
        return;
    text_hex(name, resource, size);
    text_buffer_grew(to, name + size * 2);
    text_buffer_append_text(to, "'");
    text_buffer_append_text(to, mark + 1);
    if (wait_s == TL_ROW_LOCK_NOWAIT)
        text_buffer_append_text(to, " NOWAIT");
    else
        text_buffer_append_format(to, " WAIT %lld", (long long)wait_s);
}

static db_answer lock_row(db *connection, const char *resource, int *locked)
{
    uint64_t rows = 0;
    db_answer answer = RUN_COUNTING(connection, &rows, row_lock, .resource = db_text(resource));

    *locked = rows == 1;
    return answer;
}

db_answer store_row_lock(db *connection, const char *resource, int64_t wait_s, int *locked)
{
    db_result result = DB_RESULT_INIT;
    struct text_buffer text;
    db_answer answer = DB_NO_MEMORY;

    if (wait_s == TL_ROW_LOCK_BLOCK)
        return lock_row(connection, resource, locked);
    text_buffer_init(&text);
    write_row_lock(&text, resource, wait_s);
    if (!text.failed)
        answer = db_run_text(connection, sql_row_lock.name, text.data, text.size, &result);
    *locked = answer == DB_DONE && result.rows == 1;
    text_buffer_free(&text);
    db_result_free(&result);
    return answer;
}
