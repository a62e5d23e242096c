#include "store/rows.h"

#include "base/text.h"
#include "sql_text.h"

#include <string.h>

/* Enough for every statement there is: a prepared one takes its values in one array. */
#define VALUES_MAX 32

/* Appends a piece of SQL with its question marks replaced by literals of the values.  No statement
 * of sql/query has a question mark inside a string. */
static void append(struct text_buffer *to, const char *piece, const db_value *values)
{
    const char *mark;

    for (; (mark = strchr(piece, '?')) != NULL; piece = mark + 1, values++) {
        char *end;

        text_buffer_append(to, piece, (size_t)(mark - piece));
        end = text_buffer_room(to, db_literal_size(values));
        if (end == NULL)
            return;
        text_buffer_grew(to, db_literal(end, values));
    }
    text_buffer_append_text(to, piece);
}

static db_answer run_text(db *connection, const struct sql_text *statement,
                          const store_rows *values, db_result *result)
{
    struct text_buffer text;
    db_answer answer = DB_NO_MEMORY;

    text_buffer_init(&text);
    if (values->nowait)
        text_buffer_append_text(&text, DB_NOWAIT_PREFIX);
    append(&text, statement->head, values->head);
    for (size_t row = 0; row < values->count; row++) {
        if (row > 0)
            text_buffer_append_text(&text, ",");
        append(&text, statement->row, values->rows + row * values->row_values);
    }
    append(&text, statement->tail, values->tail);
    if (!text.failed)
        answer = db_run_text(connection, statement->name, text.data, text.size, result);
    text_buffer_free(&text);
    return answer;
}

static size_t put(db_value *to, size_t at, const db_value *from, size_t count)
{
    if (count > 0)
        memcpy(to + at, from, count * sizeof *from);
    return at + count;
}

db_answer store_run_rows(db *connection, const struct sql_text *statement, const store_rows *values,
                         db_result *result)
{
    db_value all[VALUES_MAX];
    size_t count = values->head_count + values->row_values + values->tail_count;

    if (values->count != 1 || count > VALUES_MAX)
        return run_text(connection, statement, values, result);
    count = put(all, 0, values->head, values->head_count);
    count = put(all, count, values->rows, values->row_values);
    count = put(all, count, values->tail, values->tail_count);
    return values->nowait ? db_run_nowait(connection, statement, all, count, result)
                          : db_run(connection, statement, all, count, result);
}
