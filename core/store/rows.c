/* Runs statements with a group of rows: prepared for one row, written out as a text for several.
 * Touches only the connection. */
#include "store/rows.h"

#include "base/text.h"
#include "sql_text.h"

#include <string.h>

/* Enough values for every statement; a prepared one takes them in one array. */
#define VALUES_MAX 32

/* A statement that is being written out; it counts the question marks. */
struct writing {
    struct text_buffer text;
    const struct sql_text *statement;
    const db_value *outside;
    unsigned mark;
};

/* Appends a piece of the statement, with literals in place of its question marks.  No statement has
 * a question mark inside a string. */
static void append(struct writing *to, const char *piece, const db_value *row)
{
    const unsigned outside = to->statement->outside;
    const char *mark;

    for (; (mark = strchr(piece, '?')) != NULL; piece = mark + 1) {
        const unsigned number = to->statement->marks[to->mark++];
        const db_value *value = number < outside ? &to->outside[number] : &row[number - outside];
        char *end;

        text_buffer_append(&to->text, piece, (size_t)(mark - piece));
        end = text_buffer_room(&to->text, db_literal_size(value));
        if (end != NULL)
            text_buffer_grew(&to->text, db_literal(end, value));
    }
    text_buffer_append_text(&to->text, piece);
}

static db_answer run_text(db *connection, const struct sql_text *statement,
                          const store_rows *values, db_result *result)
{
    const unsigned row_values = statement->values - statement->outside;
    struct writing to = {.statement = statement, .outside = values->outside};
    db_answer answer = DB_NO_MEMORY;
    unsigned row_mark;

    text_buffer_init(&to.text);
    if (values->nowait)
        text_buffer_append_text(&to.text, DB_NOWAIT_PREFIX);
    append(&to, statement->head, NULL);
    row_mark = to.mark;
    for (size_t row = 0; row < values->count; row++) {
        if (row > 0)
            text_buffer_append_text(&to.text, ",");
        to.mark = row_mark;
        append(&to, statement->row, values->rows + row * row_values);
    }
    append(&to, statement->tail, NULL);
    if (!to.text.failed)
        answer = db_run_text(connection, statement->name, to.text.data, to.text.size, result);
    text_buffer_free(&to.text);
    return answer;
}

db_answer store_run_rows(db *connection, const struct sql_text *statement, const store_rows *values,
                         db_result *result)
{
    const unsigned outside = statement->outside;
    db_value all[VALUES_MAX];

    if (values->count != 1 || statement->values > VALUES_MAX)
        return run_text(connection, statement, values, result);
    if (outside > 0)
        memcpy(all, values->outside, outside * sizeof *all);
    memcpy(all + outside, values->rows, (statement->values - outside) * sizeof *all);
    return values->nowait ? db_run_nowait(connection, statement, all, statement->values, result)
                          : db_run(connection, statement, all, statement->values, result);
}

db_answer store_run_each(db *connection, const struct sql_text *statement, const db_value *values,
                         size_t count, db_result *result)
{
    const db_rows rows = {values, count, statement->values, DB_WAIT_AS_SET};
    db_answer answer =
        values != NULL ? db_run_rows(connection, statement, &rows, result) : DB_NO_MEMORY;

    if (answer == DB_DONE && result->rows != count) {
        /* Nobody knows which row is whose, so each step is settled by its token. */
        db_spoil(connection);
        answer = DB_UNANSWERED;
    }
    return answer;
}
