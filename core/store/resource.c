/* The statements of lease mutexes, bound to their values.  Decides nothing, and touches only the
 * connection. */
#include "store/resource.h"

#include "base/memory.h"
#include "base/text.h"
#include "store/bind.h"
#include "store/record.h"
#include "store/rows.h"

#include "sql_text.h"

#include <string.h>

static db_value milliseconds_or_null(int64_t number)
{
    return number < 0 ? db_null() : db_int(number);
}

db_answer store_resource_ask(db *connection, const resource_step *s, db_result *result)
{
    struct sql_resource_ask_row values[TL_RESOURCES_MAX];
    const store_rows rows = {
        .outside = SQL_VALUES(resource_ask, .dead = db_text(s->dead != NULL ? s->dead : "")),
        .rows = (const db_value *)values,
        .count = s->count};

    for (size_t i = 0; i < s->count; i++)
        values[i] = SQL_ROW(
            resource_ask, .resource = db_text(s->resources[i]), .thread_no = db_text(s->thread_no),
            .log_no = db_text(s->log_no), .session_id = db_text(s->session_id),
            .token = db_bytes(s->token, RESOURCE_TOKEN),
            .lease_ms = milliseconds_or_null(s->lease_ms), .max_hold_ms = db_int(s->max_hold_ms),
            .min_hold_ms = milliseconds_or_null(s->min_hold_ms),
            .payload = db_bytes(s->payload, s->payload_size), .remark = db_text(s->remark),
            .actor = db_text(s->actor));
    return store_run_rows(connection, &sql_resource_ask, &rows, result);
}

/* NULL for an unlock, which leaves this column as it is. */
static db_value of_lock(const resource_row *row, db_value value)
{
    return row->unlocks ? db_null() : value;
}

static struct sql_resource_group_values group_values(const resource_row *row)
{
    const resource_step *s = row->step;
    const char *status = row->unlocks ? "U" : "L", *word = row->unlocks ? "release" : "lock";
    const db_value payload = row->unlocks ? db_bytes(s->held_token, RESOURCE_TOKEN)
                                          : db_bytes(s->payload, s->payload_size);

    return SQL_STRUCT(
        resource_group, .resource = db_ascii(s->resources[0]), .status = db_ascii(status),
        .step = db_ascii(word), .thread_no = db_text(s->thread_no), .log_no = db_text(s->log_no),
        .session_id = of_lock(row, db_text(s->session_id)),
        .token = db_bytes(s->token, RESOURCE_TOKEN),
        .lease_ms = of_lock(row, milliseconds_or_null(s->lease_ms)),
        .max_hold_ms = of_lock(row, db_int(s->max_hold_ms)),
        .min_hold_ms = of_lock(row, milliseconds_or_null(s->min_hold_ms)), .payload = payload,
        .remark = of_lock(row, db_text(s->remark)), .actor = of_lock(row, db_text(s->actor)));
}

size_t store_resource_row_size(const resource_row *row)
{
    return 1024 + row->step->payload_size;
}

/* One row came back for each row that went in, in the same order. */
static void take_verdicts(resource_row *const *rows, size_t count, const db_result *result)
{
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        const void *token = db_get_bytes(result, i, 0, &size);

        rows[i]->changed =
            size == RESOURCE_TOKEN && memcmp(token, rows[i]->step->token, RESOURCE_TOKEN) == 0;
        rows[i]->fence = db_get_uint(result, i, 1);
    }
}

db_answer store_resource_group(db *connection, resource_row *const *rows, size_t count)
{
    struct sql_resource_group_values *values = memory_new_array(count, sizeof *values);
    db_result result = DB_RESULT_INIT;
    db_answer answer;

    if (values == NULL)
        return DB_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = group_values(rows[i]);
    answer = db_run_rows(connection, &sql_resource_group,
                         &(db_rows){(const db_value *)values, count,
                                    sql_resource_group_values_count, DB_WAIT_AS_SET},
                         &result);
    if (answer == DB_DONE && result.rows != count) {
        /* Nobody knows which row is whose, so each step is settled by its token. */
        db_spoil(connection);
        answer = DB_UNANSWERED;
    }
    if (answer == DB_DONE)
        take_verdicts(rows, count, &result);
    db_result_free(&result);
    memory_free(values);
    return answer;
}

/* Runs a statement that ends with a list of resources. */
static db_answer run_on_held(db *connection, const struct sql_text *statement,
                             const resource_step *s, const db_value *outside, db_result *result)
{
    db_value names[TL_RESOURCES_MAX];
    const store_rows rows = {.outside = outside, .rows = names, .count = s->count};

    for (size_t i = 0; i < s->count; i++)
        names[i] = db_text(s->resources[i]);
    return store_run_rows(connection, statement, &rows, result);
}

db_answer store_resource_unlock(db *connection, const resource_step *s, db_result *result)
{
    return run_on_held(connection, &sql_resource_unlock, s,
                       SQL_VALUES(resource_unlock, .thread_no = db_text(s->thread_no),
                                  .log_no = db_text(s->log_no),
                                  .token = db_bytes(s->token, RESOURCE_TOKEN),
                                  .held_token = db_bytes(s->held_token, RESOURCE_TOKEN)),
                       result);
}

db_answer store_resource_renew(db *connection, const resource_step *s, db_result *result)
{
    return run_on_held(connection, &sql_resource_renew, s,
                       SQL_VALUES(resource_renew, .thread_no = db_text(s->thread_no),
                                  .log_no = db_text(s->log_no), .lease_ms = db_int(s->lease_ms),
                                  .held_token = db_bytes(s->held_token, RESOURCE_TOKEN)),
                       result);
}

db_answer store_resource_now(db *connection, const char *resource, const uint8_t *token,
                             db_result *result)
{
    return SQL_RUN(connection, result, resource_now, .token = db_bytes(token, RESOURCE_TOKEN),
                   .resource = db_text(resource));
}

db_answer store_resource_token_seen(db *connection, const char *resource, const uint8_t *token,
                                    db_result *result)
{
    return SQL_RUN(connection, result, resource_token_seen, .resource = db_text(resource),
                   .token = db_bytes(token, RESOURCE_TOKEN));
}

db_answer store_caller_transaction(db *connection, db_result *result)
{
    return db_run(connection, &sql_caller_transaction, NULL, 0, result);
}

db_answer store_resource_show(db *connection, const char *resource, db_result *result)
{
    return SQL_RUN(connection, result, resource_show, .resource = db_text(resource));
}

#define AT(member) COLUMN_resource_columns_##member

static tl_resource_state state_of(const char *name)
{
    for (int state = TL_RESOURCE_FREE; state <= TL_RESOURCE_EXPIRED; state++)
        if (strcmp(tl_resource_state_name((tl_resource_state)state), name) == 0)
            return (tl_resource_state)state;
    return TL_RESOURCE_FREE;
}

void resource_view_read(tl_resource_view *to, const db_result *result, size_t row)
{
    memset(to, 0, sizeof *to);
    to->version = TL_RESOURCE_VIEW_VERSION;
    TL_RESOURCE_MAP(RECORD_READ)
}
