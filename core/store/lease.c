/* The statements of mutexes, read-write locks and row locks, bound to their values.  Decides
 * nothing, and touches only the connection. */
#include "store/lease.h"

#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/rows.h"

#include "sql_text.h"

#include <string.h>

/* Runs a statement of which only the number of rows, or of changed rows, is wanted. */
static db_answer run_counting(db *connection, const struct sql_text *statement,
                              const db_value *values, size_t count, uint64_t *number)
{
    RESULT result = DB_RESULT_INIT;
    db_answer answer = db_run(connection, statement, values, count, &result);

    if (answer == DB_DONE && number != NULL)
        *number = result.columns > 0 ? result.rows : result.affected;
    return answer;
}

#define RUN_COUNTING(connection, number, statement, ...)                                           \
    run_counting(connection, &sql_##statement, SQL_VALUES(statement, __VA_ARGS__),                 \
                 sql_##statement##_values_count, number)

/* Who makes a step, and on which row of a holder. */
#define BY(s) .thread_no = db_text((s)->thread_no), .log_no = db_text((s)->log_no)
#define HOLDER(s)                                                                                  \
    .resource = db_text((s)->names[0]), .slot = db_uint((s)->slot),                                \
    .held_token = db_bytes((s)->held_token, LEASE_TOKEN)

static db_answer is_seen(db_answer answer, db_result *result, int *seen)
{
    *seen = answer == DB_DONE && result->rows == 1 && db_get_int(result, 0, 0) != 0;
    db_result_free(result);
    return answer;
}

/* ---------------------------------------------------------------------- mutexes -- */

static db_value lease_of(const lease_step *s)
{
    return s->by_session ? db_null() : db_int(s->over_ms);
}

static db_value min_hold_of(const lease_step *s)
{
    return s->min_hold_ms > 0 ? db_int(s->min_hold_ms) : db_null();
}

db_answer store_resource_ask(db *connection, const lease_step *s, db_result *result)
{
    struct sql_resource_ask_row values[TL_RESOURCES_MAX];
    const store_rows rows = {
        .outside = SQL_VALUES(resource_ask, .dead = db_text(s->dead != NULL ? s->dead : "")),
        .rows = (const db_value *)values,
        .count = s->count};

    for (size_t i = 0; i < s->count; i++)
        values[i] =
            SQL_ROW(resource_ask, .resource = db_text(s->names[i]), BY(s),
                    .session_id = db_text(s->session_id), .token = db_bytes(s->token, LEASE_TOKEN),
                    .lease_ms = lease_of(s), .max_hold_ms = db_int(s->max_hold_ms),
                    .min_hold_ms = min_hold_of(s), .payload = db_bytes(s->payload, s->payload_size),
                    .remark = db_text(s->remark), .actor = db_text(s->actor));
    return store_run_rows(connection, &sql_resource_ask, &rows, result);
}

/* NULL for an unlock, which leaves this column as it is. */
static db_value of_lock(const resource_row *row, db_value value)
{
    return row->unlocks ? db_null() : value;
}

static struct sql_resource_group_values group_values(const resource_row *row)
{
    const lease_step *s = row->step;
    const char *status = row->unlocks ? "U" : "L", *word = row->unlocks ? "release" : "lock";
    const db_value payload =
        row->unlocks ? db_bytes(s->held_token, LEASE_TOKEN) : db_bytes(s->payload, s->payload_size);

    return SQL_STRUCT(
        resource_group, .resource = db_ascii(s->names[0]), .status = db_ascii(status),
        .step = db_ascii(word), BY(s), .session_id = of_lock(row, db_text(s->session_id)),
        .token = db_bytes(s->token, LEASE_TOKEN), .lease_ms = of_lock(row, lease_of(s)),
        .max_hold_ms = of_lock(row, db_int(s->max_hold_ms)),
        .min_hold_ms = of_lock(row, min_hold_of(s)), .payload = payload,
        .remark = of_lock(row, db_text(s->remark)), .actor = of_lock(row, db_text(s->actor)));
}

size_t store_resource_row_size(const resource_row *row)
{
    return 1024 + row->step->payload_size;
}

db_answer store_resource_group(db *connection, resource_row *const *rows, size_t count)
{
    struct sql_resource_group_values *values = memory_new_array(count, sizeof *values);
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    for (size_t i = 0; i < count && values != NULL; i++)
        values[i] = group_values(rows[i]);
    answer =
        store_run_each(connection, &sql_resource_group, (const db_value *)values, count, &result);
    for (size_t i = 0; i < count && answer == DB_DONE; i++) {
        rows[i]->changed = db_is_bytes(&result, i, 0, rows[i]->step->token, LEASE_TOKEN);
        rows[i]->fence = db_get_uint(&result, i, 1);
    }
    memory_free(values);
    return answer;
}

/* Runs a statement that ends with a list of names. */
static db_answer run_on_held(db *connection, const struct sql_text *statement, const lease_step *s,
                             const db_value *outside, uint64_t *changed)
{
    db_value names[TL_RESOURCES_MAX];
    const store_rows rows = {.outside = outside, .rows = names, .count = s->count};
    RESULT result = DB_RESULT_INIT;
    db_answer answer;

    for (size_t i = 0; i < s->count; i++)
        names[i] = db_text(s->names[i]);
    answer = store_run_rows(connection, statement, &rows, &result);
    if (answer == DB_DONE)
        *changed = result.affected;
    return answer;
}

static db_answer resource_unlock(db *connection, const lease_step *s, uint64_t *changed)
{
    return run_on_held(connection, &sql_resource_unlock, s,
                       SQL_VALUES(resource_unlock, BY(s), .token = db_bytes(s->token, LEASE_TOKEN),
                                  .held_token = db_bytes(s->held_token, LEASE_TOKEN)),
                       changed);
}

static db_answer resource_renew(db *connection, const lease_step *s, uint64_t *changed)
{
    return run_on_held(connection, &sql_resource_renew, s,
                       SQL_VALUES(resource_renew, BY(s), .lease_ms = db_int(s->over_ms),
                                  .held_token = db_bytes(s->held_token, LEASE_TOKEN)),
                       changed);
}

static db_answer resource_guard(db *connection, const lease_step *s, size_t i, uint64_t *changed)
{
    db_result result = DB_RESULT_INIT;
    int held;
    db_answer answer = is_seen(
        SQL_RUN(connection, &result, resource_guard, .token = db_bytes(s->held_token, LEASE_TOKEN),
                .fence = db_uint(s->fences[i]), .resource = db_text(s->names[i])),
        &result, &held);

    *changed = held ? 1 : 0;
    return answer;
}

static db_answer resource_now(db *connection, const char *name, unsigned slot, const uint8_t *token,
                              db_result *result)
{
    (void)slot;
    return SQL_RUN(connection, result, resource_now, .token = db_bytes(token, LEASE_TOKEN),
                   .resource = db_text(name));
}

static db_answer resource_seen(db *connection, const char *name, unsigned slot,
                               const uint8_t *token, int *seen)
{
    db_result result = DB_RESULT_INIT;

    (void)slot;
    return is_seen(SQL_RUN(connection, &result, resource_token_seen, .resource = db_text(name),
                           .token = db_bytes(token, LEASE_TOKEN)),
                   &result, seen);
}

const lease_statements store_mutexes = {.now = resource_now,
                                        .seen = resource_seen,
                                        .release = resource_unlock,
                                        .renew = resource_renew,
                                        .guard = resource_guard};

static tl_resource_state resource_state_of(const char *name)
{
    for (int state = TL_RESOURCE_FREE; state <= TL_RESOURCE_EXPIRED; state++)
        if (strcmp(tl_resource_state_name((tl_resource_state)state), name) == 0)
            return (tl_resource_state)state;
    return TL_RESOURCE_FREE;
}

#define AT(member) COLUMN_resource_columns_##member
void resource_view_read(tl_resource_view *to, const db_result *result, size_t row)
{
    memset(to, 0, sizeof *to);
    to->version = TL_RESOURCE_VIEW_VERSION;
    TL_RESOURCE_MAP(RECORD_READ)
}
#undef AT

/* -------------------------------------------------------------- read-write locks -- */

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
    RESULT result = DB_RESULT_INIT;
    db_answer answer =
        SQL_RUN(connection, &result, rw_look, .intent = db_bytes(intent, LEASE_TOKEN),
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
    return answer;
}

static db_value letter(const char *c)
{
    db_value value = {DB_TEXT, 0, c, 1};

    return value;
}

db_answer store_rw_claim(db *connection, const lease_step *s)
{
    return RUN_COUNTING(connection, NULL, rw_claim, .resource = db_text(s->names[0]),
                        .slot = db_uint(s->slot), .kind = letter(&s->kind),
                        .status = letter(&s->status), .step = db_text(s->word), BY(s),
                        .session_id = db_text(s->session_id), .by_session = db_int(s->by_session),
                        .token = db_bytes(s->token, LEASE_TOKEN), .fence = db_uint(s->fence),
                        .over_ms = db_int(s->over_ms), .max_hold_ms = db_int(s->max_hold_ms),
                        .remark = db_text(s->remark), .actor = db_text(s->actor));
}

db_answer store_rw_free(db *connection, const char *resource, int readers_too, const uint8_t *token,
                        const char *thread_no, const char *actor, int64_t latest_us,
                        uint64_t *freed)
{
    return RUN_COUNTING(connection, freed, rw_free, .thread_no = db_text(thread_no),
                        .token = db_bytes(token, LEASE_TOKEN), .actor = db_text(actor),
                        .resource = db_text(resource), .readers_too = db_int(readers_too),
                        .latest_us = db_int(latest_us));
}

static db_answer rw_release(db *connection, const lease_step *s, uint64_t *changed)
{
    return RUN_COUNTING(connection, changed, rw_release, BY(s), HOLDER(s), .step = db_text(s->word),
                        .token = db_bytes(s->token, LEASE_TOKEN));
}

db_answer store_rw_downgrade(db *connection, const lease_step *s, uint64_t *changed)
{
    return RUN_COUNTING(connection, changed, rw_downgrade, BY(s), HOLDER(s));
}

static db_answer rw_renew(db *connection, const lease_step *s, uint64_t *changed)
{
    return RUN_COUNTING(connection, changed, rw_renew, BY(s), HOLDER(s),
                        .over_ms = db_int(s->over_ms));
}

db_answer store_rw_done(db *connection, const lease_step *s, size_t i, uint64_t *changed)
{
    return RUN_COUNTING(connection, changed, rw_done, BY(s), HOLDER(s),
                        .fence = db_uint(s->fences[i]));
}

static db_answer rw_guard(db *connection, const lease_step *s, size_t i, uint64_t *changed)
{
    db_result result = DB_RESULT_INIT;
    int held;
    db_answer answer =
        is_seen(SQL_RUN(connection, &result, rw_guard, HOLDER(s), .fence = db_uint(s->fences[i])),
                &result, &held);

    *changed = held ? 1 : 0;
    return answer;
}

static db_answer rw_now(db *connection, const char *name, unsigned slot, const uint8_t *token,
                        db_result *result)
{
    return SQL_RUN(connection, result, rw_now, .token = db_bytes(token, LEASE_TOKEN),
                   .resource = db_text(name), .slot = db_uint(slot));
}

static db_answer rw_seen(db *connection, const char *name, unsigned slot, const uint8_t *token,
                         int *seen)
{
    db_result result = DB_RESULT_INIT;

    return is_seen(SQL_RUN(connection, &result, rw_token_seen, .resource = db_text(name),
                           .slot = db_uint(slot), .token = db_bytes(token, LEASE_TOKEN)),
                   &result, seen);
}

const lease_statements store_holders = {
    .now = rw_now, .seen = rw_seen, .release = rw_release, .renew = rw_renew, .guard = rw_guard};

db_answer store_rw_list(db *connection, const char *resource, unsigned slot, int all,
                        unsigned limit, db_result *result)
{
    if (all)
        return SQL_RUN(connection, result, rw_list, .resource = db_text(resource),
                       .slot = db_uint(slot), .most = db_uint(limit));
    return SQL_RUN(connection, result, rw_show, .resource = db_text(resource),
                   .slot = db_uint(slot), .most = db_uint(limit));
}

static tl_holder_state holder_state_of(const char *name)
{
    for (int state = TL_HOLDER_FREE; state <= TL_HOLDER_DEAD; state++)
        if (strcmp(tl_holder_state_name((tl_holder_state)state), name) == 0)
            return (tl_holder_state)state;
    return TL_HOLDER_FREE;
}

#define AT(member) COLUMN_rw_columns_##member
void holder_view_read(tl_holder_view *to, const db_result *result, size_t row)
{
    memset(to, 0, sizeof *to);
    to->version = TL_HOLDER_VIEW_VERSION;
    TL_HOLDER_MAP(RECORD_READ)
}

#undef AT

/* ---------------------------------------------------------------------- row locks -- */

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
    RESULT result = DB_RESULT_INIT;
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
    return answer;
}
