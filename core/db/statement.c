/*
 * Prepares, keeps and runs the statements of one connection.  Touches that connection.
 *
 * The first use of a statement costs one round trip more, to prepare it.  libmariadb could send
 * both requests at once.  But if the server refuses the first for want of room
 * (max_prepared_stmt_count), it applies the second to the statement that was prepared last on the
 * connection, and runs that.
 */
#include "db/db_internal.h"

#include "base/memory.h"
#include "base/text.h"
#include "sql_text.h"

#include <errmsg.h>
#include <stdio.h>
#include <string.h>

struct execution {
    struct db_prepared *prepared;
    const struct sql_text *text;
    char *fresh;   /* text to prepare; NULL when it is prepared already */
    size_t count;  /* of question marks */
    unsigned rows; /* in one execution; 0 for a statement without array binding */
    enum db_wait wait;
    int begins, commits; /* a callback transaction */
    db_result *result;
};

/* ------------------------------------------------------------ parameters -- */

static int has_high_bytes(const char *data, size_t size)
{
    size_t i;

    for (i = 0; i < size; i++)
        if ((unsigned char)data[i] >= 0x80)
            return 1;
    return 0;
}

static void bind_value(MYSQL_BIND *bind, const db_value *value, int borrowed)
{
    union {
        const void *from;
        void *to;
    } data = {value->data};

    memset(bind, 0, sizeof(*bind));
    switch (value->type) {
    case DB_NULL:
        bind->buffer_type = MYSQL_TYPE_NULL;
        return;
    case DB_INT:
    case DB_UINT:
        data.from = &value->int_value;
        bind->buffer_type = MYSQL_TYPE_LONGLONG;
        bind->is_unsigned = value->type == DB_UINT;
        bind->buffer_length = sizeof(value->int_value);
        break;
    case DB_TEXT:
        /* A caller's connection may have another character set.  So UTF-8 goes as bytes there,
         * which the server stores as they are. */
        bind->buffer_type = borrowed && has_high_bytes(value->data, value->size)
                                ? MYSQL_TYPE_BLOB
                                : MYSQL_TYPE_STRING;
        bind->buffer_length = value->size;
        break;
    case DB_BYTES:
        bind->buffer_type = MYSQL_TYPE_BLOB;
        bind->buffer_length = value->size;
        break;
    }
    bind->buffer = data.to;
}

int db_bind_room(db *connection, size_t count)
{
    MYSQL_BIND *grown;

    if (count <= connection->bind_space)
        return 0;
    grown = memory_resize(connection->binds, count * sizeof(*grown));
    if (!grown)
        return 1;
    connection->binds = grown;
    connection->bind_space = count;
    return 0;
}

static int bind_values(db *connection, const struct sql_text *text, const db_value *values,
                       size_t count)
{
    size_t i;

    if (db_bind_room(connection, count))
        return 1;
    for (i = 0; i < count; i++)
        bind_value(&connection->binds[i], &values[text->marks ? text->marks[i] : i],
                   connection->borrowed);
    return 0;
}

/* --------------------------------------------------------------- results -- */

static void keep_statement_error(db *connection, MYSQL_STMT *stmt)
{
    if (mysql_stmt_errno(stmt))
        db_keep_error(connection, mysql_stmt_errno(stmt), mysql_stmt_error(stmt));
    else if (mysql_errno(connection->mysql))
        db_keep_error(connection, mysql_errno(connection->mysql), mysql_error(connection->mysql));
    else
        db_set_error(connection, CR_MALFORMED_PACKET, "the answer could not be read");
}

static int bind_columns(db *connection, MYSQL_STMT *stmt, unsigned columns)
{
    MYSQL_BIND binds[64];
    MYSQL_BIND *bind = binds;
    MYSQL_FIELD *fields = mariadb_stmt_fetch_fields(stmt);
    unsigned i;
    int failed = 1;

    if (columns > connection->column_space) {
        struct db_column *grown = memory_resize(connection->columns, columns * sizeof(*grown));

        if (!grown)
            return 1;
        connection->columns = grown;
        connection->column_space = columns;
    }
    if (columns > sizeof(binds) / sizeof(binds[0]))
        bind = memory_new_array(columns, sizeof(*bind));
    if (!bind || !fields)
        goto out;
    memset(bind, 0, columns * sizeof(*bind));
    for (i = 0; i < columns; i++) {
        struct db_column *column = &connection->columns[i];

        bind[i].length = &column->length;
        bind[i].is_null = &column->is_null;
        bind[i].error = &column->cut;
        if (db_type_is_number(fields[i].type)) {
            bind[i].buffer_type = MYSQL_TYPE_LONGLONG;
            bind[i].is_unsigned = (fields[i].flags & UNSIGNED_FLAG) != 0;
            bind[i].buffer = &column->number;
            bind[i].buffer_length = sizeof(column->number);
        } else {
            bind[i].buffer_type = MYSQL_TYPE_STRING;
            bind[i].buffer = column->text;
            bind[i].buffer_length = sizeof(column->text);
        }
    }
    failed = mysql_stmt_bind_result(stmt, bind) != 0;
out:
    if (bind != binds)
        memory_free(bind);
    return failed;
}

static int fetch_long(db *connection, MYSQL_STMT *stmt, db_result *result, size_t row,
                      unsigned column)
{
    unsigned long length = connection->columns[column].length;
    my_bool is_null = 0, cut = 0;
    MYSQL_BIND bind;
    char *to = db_result_room(result, row, column, length);

    if (!to)
        return 1;
    memset(&bind, 0, sizeof(bind));
    bind.buffer_type = MYSQL_TYPE_STRING;
    bind.buffer = to;
    bind.buffer_length = length;
    bind.length = &length;
    bind.is_null = &is_null;
    bind.error = &cut;
    if (mysql_stmt_fetch_column(stmt, &bind, column, 0))
        return 1;
    to[connection->columns[column].length] = '\0';
    return 0;
}

static int take_cell(db *connection, MYSQL_STMT *stmt, db_result *result, size_t row,
                     unsigned column, const MYSQL_FIELD *field)
{
    const struct db_column *from = &connection->columns[column];

    if (from->is_null) {
        db_result_put_null(result, row, column);
        return 0;
    }
    if (db_type_is_number(field->type))
        return db_result_put_number(result, row, column, from->number,
                                    (field->flags & UNSIGNED_FLAG) != 0);
    if (from->length > sizeof(from->text))
        return fetch_long(connection, stmt, result, row, column);
    return db_result_put(result, row, column, from->text, from->length, 0);
}

/* The rows are in memory already, so this fails only for want of memory. */
static int take_rows(db *connection, MYSQL_STMT *stmt, db_result *result)
{
    unsigned columns = mysql_stmt_field_count(stmt);
    const MYSQL_FIELD *fields = mariadb_stmt_fetch_fields(stmt);
    const size_t heading = result->has_heading != 0;
    size_t rows = (size_t)mysql_stmt_num_rows(stmt);
    size_t row;
    unsigned column;
    int fetched;

    if (db_result_shape(result, heading + rows, columns))
        return 1;
    for (column = 0; heading && column < columns; column++)
        if (db_result_put(result, 0, column, fields[column].name, fields[column].name_length, 0))
            return 1;
    for (row = heading; row < heading + rows; row++) {
        fetched = mysql_stmt_fetch(stmt);
        if (fetched && fetched != MYSQL_DATA_TRUNCATED)
            return 1;
        for (column = 0; column < columns; column++)
            if (take_cell(connection, stmt, result, row, column, &fields[column]))
                return 1;
    }
    result->affected = rows;
    return 0;
}

static int rows_are_whole(MYSQL_STMT *stmt)
{
    const MYSQL_FIELD *fields = mariadb_stmt_fetch_fields(stmt);
    const unsigned columns = mysql_stmt_field_count(stmt);

    for (const MYSQL_ROWS *row = mysql_stmt_row_tell(stmt); row != NULL; row = row->next)
        if (!db_row_is_whole(row, fields, columns))
            return 0;
    return 1;
}

/* A result counts only once its last packet was read: rows of RETURNING arrive before the commit,
 * which can still fail. */
static int read_answer(db *connection, MYSQL_STMT *stmt, db_result *result)
{
    unsigned columns = mysql_stmt_field_count(stmt);
    int failed = 0;

    if (!columns) {
        if (result) {
            result->affected = mysql_stmt_affected_rows(stmt);
            result->insert_id = mysql_stmt_insert_id(stmt);
        }
        return 0;
    }
    if (result && bind_columns(connection, stmt, columns)) {
        db_set_error(connection, CR_OUT_OF_MEMORY, "out of memory for the answer");
        failed = 1;
    }
    if (mysql_stmt_store_result(stmt)) {
        keep_statement_error(connection, stmt);
        return 1;
    }
    if (!failed && result && !rows_are_whole(stmt)) {
        db_set_error(connection, CR_MALFORMED_PACKET, "a cell is longer than what was answered");
        failed = 1;
    }
    if (!failed && result && take_rows(connection, stmt, result)) {
        db_set_error(connection, CR_OUT_OF_MEMORY, "out of memory for the answer");
        failed = 1;
    }
    mysql_stmt_free_result(stmt);
    return failed;
}

/* A procedure sends the result of each SELECT in it, and then a last packet, which says that it
 * came to its end. */
static int read_answers(db *connection, MYSQL_STMT *stmt, db_result *result)
{
    int failed = read_answer(connection, stmt, result);

    while (!failed && mysql_stmt_more_results(stmt)) {
        if (mysql_stmt_next_result(stmt)) {
            keep_statement_error(connection, stmt);
            return 1;
        }
        if (mysql_stmt_field_count(stmt))
            failed = read_answer(connection, stmt, result);
    }
    return failed;
}

static int bind_parameters(db *connection, struct execution *execution)
{
    MYSQL_STMT *stmt = execution->prepared->stmt;

    mysql_stmt_attr_set(stmt, STMT_ATTR_ARRAY_SIZE, &execution->rows);
    if (execution->count == 0 || !mysql_stmt_bind_param(stmt, connection->binds))
        return 0;
    db_set_error(connection, CR_OUT_OF_MEMORY, "out of memory for the parameters");
    return 1;
}

static int check_count(db *connection, const struct execution *execution)
{
    unsigned long takes = mysql_stmt_param_count(execution->prepared->stmt);

    if (takes == execution->count)
        return 0;
    db_set_error(connection, 1210, "statement %s takes %lu parameters, not %zu",
                 execution->text->name, takes, execution->count);
    return 1;
}

static int prepare(db *connection, struct execution *execution)
{
    MYSQL_STMT *stmt = execution->prepared->stmt;

    if (mysql_stmt_prepare(stmt, execution->fresh, strlen(execution->fresh))) {
        keep_statement_error(connection, stmt);
        return 1;
    }
    return check_count(connection, execution) || bind_parameters(connection, execution);
}

static int execute(db *connection, void *what)
{
    struct execution *execution = what;
    MYSQL_STMT *stmt = execution->prepared->stmt;

    connection->preparing = execution->fresh != NULL;
    if (connection->preparing && prepare(connection, execution))
        return 1;
    connection->preparing = 0;
    if (mysql_stmt_execute(stmt)) {
        keep_statement_error(connection, stmt);
        return 1;
    }
    return read_answers(connection, stmt, execution->result);
}

/* ------------------------------------------------------------- the cache -- */

static struct db_prepared *find(db *connection, const struct sql_text *text, enum db_wait wait)
{
    size_t i;

    for (i = 0; i < connection->prepared_count; i++)
        if (connection->prepared[i].text == text && connection->prepared[i].wait == wait)
            return &connection->prepared[i];
    return NULL;
}

static void keep(db *connection, const struct db_prepared *fresh)
{
    if (connection->prepared_count == connection->prepared_space) {
        size_t space = connection->prepared_space ? connection->prepared_space * 2 : 16;
        struct db_prepared *grown = memory_resize(connection->prepared, space * sizeof(*grown));

        if (!grown) { /* Without room the statement is prepared again next time. */
            mysql_stmt_close(fresh->stmt);
            return;
        }
        connection->prepared = grown;
        connection->prepared_space = space;
    }
    connection->prepared[connection->prepared_count++] = *fresh;
}

void db_statements_free(db *connection)
{
    size_t i;

    for (i = 0; i < connection->prepared_count; i++)
        mysql_stmt_close(connection->prepared[i].stmt);
    connection->prepared_count = 0;
    memory_free(connection->prepared);
    connection->prepared = NULL;
    connection->prepared_space = 0;
}

static char *statement_text(const db *connection, const struct sql_text *text, enum db_wait wait)
{
    char prefix[80] = "";
    size_t prefix_size, size = strlen(text->text) + 1;
    char *whole;

    if (wait == DB_WAIT_NEVER)
        text_copy(prefix, sizeof prefix, DB_NEVER_PREFIX);
    else if (wait != DB_WAIT_AS_SET)
        snprintf(prefix, sizeof prefix, DB_WAIT_PREFIX("%u"),
                 wait == DB_WAIT_LONG ? connection->books_lock_wait_s : 0);
    prefix_size = strlen(prefix);
    whole = memory_new(prefix_size + size);
    if (!whole)
        return NULL;
    memcpy(whole, prefix, prefix_size);
    memcpy(whole + prefix_size, text->text, size);
    return whole;
}

db_answer db_undo(db *connection)
{
    db_answer answer = DB_ERROR;
    unsigned number = connection->error_number;
    int64_t trip_ms = connection->trip_ms;
    char text[DB_ERROR_SIZE];

    memcpy(text, connection->error_text, sizeof text);
    if (db_rollback(connection) != DB_DONE) {
        db_spoil(connection);
        answer = DB_UNANSWERED;
    }
    /* trip_ms and the error are the statement's, not the rollback's. */
    connection->trip_ms = trip_ms;
    db_keep_error(connection, number, text);
    return answer;
}

/* Whether the error comes of the row or of the moment, so that the connection is still good.  Any
 * other error may come of the session: a callback may have left it read-only, or in another
 * database. */
static int may_come_again(const db *connection)
{
    const db_error_kind kind = db_error_kind_of(connection->error_number);

    return kind == DB_KIND_REPEAT || kind == DB_KIND_DUPLICATE || kind == DB_KIND_MOVES ||
           connection->error_number == ERROR_MISDIRECTED;
}

/*
 * No prepared statement leaves a transaction open, except the first one of a callback transaction.
 * If the answer of any other says that the connection is in a transaction, an earlier statement
 * left it open, and this one is not committed.  It never will be: the connection is not used again.
 */
static db_answer trip(db *connection, struct execution *execution)
{
    int outside = !connection->borrowed && !db_in_transaction(connection);
    int begins = execution->begins;
    db_answer answer;

    connection->in_block = execution->text->block;
    connection->begins = begins;
    answer = db_round_trip(connection, execution->commits ? FAULT_COMMIT : FAULT_STATEMENT,
                           execution->text->name, execute, execution);
    connection->in_block = connection->begins = connection->preparing = 0;
    if (begins && answer != DB_NOT_SENT && answer != DB_NO_MEMORY)
        connection->callback_tx = CALLBACK_TX_BEGUN;
    if (answer == DB_ERROR && outside &&
        (begins || execution->text->calls || execution->text->block))
        answer = db_undo(connection);
    if (answer == DB_ERROR && begins && !may_come_again(connection))
        db_spoil(connection);
    if (answer != DB_DONE || !outside || db_server_in_transaction(connection) == begins)
        return answer;
    db_spoil(connection);
    db_set_error(connection, CR_SERVER_LOST,
                 begins ? "the transaction was not left open" : "a transaction had been left open");
    return DB_UNANSWERED;
}

/* The first use of the statement on this connection, or any use on a caller's connection. */
static db_answer run_first(db *connection, struct execution *execution)
{
    struct db_prepared fresh = {execution->text, execution->wait, NULL};
    db_answer answer = DB_NO_MEMORY;

    execution->fresh = statement_text(connection, execution->text, execution->wait);
    if (!execution->fresh)
        return DB_NO_MEMORY;
    execution->prepared = &fresh;
    fresh.stmt = mysql_stmt_init(connection->mysql);
    if (!fresh.stmt)
        goto out;
    answer = trip(connection, execution);
    /* After an error of the execution the statement is still prepared. */
    if (!connection->borrowed && !connection->broken && fresh.stmt->state >= MYSQL_STMT_PREPARED) {
        keep(connection, &fresh);
        fresh.stmt = NULL;
    }
out:
    execution->prepared = NULL;
    if (fresh.stmt)
        mysql_stmt_close(fresh.stmt);
    memory_free(execution->fresh);
    execution->fresh = NULL;
    return answer;
}

static db_answer run_again(db *connection, struct execution *execution)
{
    /* A callback that had the connection has reset it: its settings and its name are gone. */
    if (!execution->prepared->stmt->mysql) {
        db_spoil(connection);
        db_set_error(connection, CR_SERVER_GONE_ERROR, "the connection was reset");
        return DB_NOT_SENT;
    }
    if (check_count(connection, execution))
        return DB_ERROR;
    if (bind_parameters(connection, execution))
        return DB_NO_MEMORY;
    return trip(connection, execution);
}

static void forget(db *connection, struct db_prepared *prepared)
{
    mysql_stmt_close(prepared->stmt);
    *prepared = connection->prepared[--connection->prepared_count];
}

/* A statement never finds tables that its triggers need only since it was prepared, or that were not
 * read when a kill broke a trigger.  So it is prepared anew the next time. */
static int lacks_tables(const db *connection)
{
    return db_error_kind_of(connection->error_number) == DB_KIND_SCHEMA ||
           db_met_broken_trigger(connection);
}

/* Needs: the parameters bound. */
static db_answer run_bound(db *connection, struct execution *execution)
{
    db_answer answer;

    if (!connection->borrowed)
        execution->prepared = find(connection, execution->text, execution->wait);
    if (!execution->prepared)
        return run_first(connection, execution);
    answer = run_again(connection, execution);
    /* The server has forgotten the statement, and says so before it does anything. */
    if (answer == DB_ERROR && connection->error_number == ERROR_NOT_PREPARED) {
        forget(connection, execution->prepared);
        answer = run_first(connection, execution);
    } else if (answer == DB_ERROR && lacks_tables(connection)) {
        forget(connection, execution->prepared);
    }
    return answer;
}

/* Values are given by name; a name may stand for several question marks. */
static int check_values(db *connection, struct execution *execution)
{
    const struct sql_text *text = execution->text;

    if (text->marks == NULL)
        return 0;
    if (execution->count != text->values) {
        db_set_error(connection, 1210, "statement %s takes %u values, not %zu", text->name,
                     text->values, execution->count);
        return 1;
    }
    execution->count = text->mark_count;
    return 0;
}

static db_answer run(db *connection, struct execution *execution, const db_value *values)
{
    if (execution->result)
        db_result_clear(execution->result);
    if (!db_ready(connection))
        return DB_NOT_SENT;
    /* The block's own transaction would commit the one that is open. */
    if (execution->text->block && db_in_transaction(connection)) {
        db_set_error(connection, 1568, "%s is not for a transaction", execution->text->name);
        return DB_ERROR;
    }
    if (check_values(connection, execution))
        return DB_ERROR;
    if (bind_values(connection, execution->text, values, execution->count))
        return DB_NO_MEMORY;
    return run_bound(connection, execution);
}

db_answer db_run_rows(db *connection, const struct sql_text *statement, const db_rows *rows,
                      db_result *result)
{
    struct execution execution = {.text = statement,
                                  .count = rows->columns,
                                  .rows = (unsigned)rows->rows,
                                  .wait = rows->wait,
                                  .result = result};
    db_answer answer;
    void *arrays;

    if (result)
        db_result_clear(result);
    if (!db_ready(connection))
        return DB_NOT_SENT;
    if (check_values(connection, &execution))
        return DB_ERROR;
    if (db_bind_room(connection, execution.count))
        return DB_NO_MEMORY;
    arrays = db_bind_arrays(connection->binds, rows->values, rows->rows, rows->columns,
                            statement->marks, execution.count);
    if (!arrays)
        return DB_NO_MEMORY;
    answer = run_bound(connection, &execution);
    memory_free(arrays);
    return answer;
}

db_answer db_run(db *connection, const struct sql_text *statement, const db_value *values,
                 size_t count, db_result *result)
{
    struct execution execution = {.text = statement, .count = count, .result = result};

    return run(connection, &execution, values);
}

db_answer db_run_nowait(db *connection, const struct sql_text *statement, const db_value *values,
                        size_t count, db_result *result)
{
    struct execution execution = {
        .text = statement, .count = count, .wait = DB_WAIT_NOT, .result = result};

    return run(connection, &execution, values);
}

db_answer db_run_with_wait(db *connection, enum db_wait wait, const struct sql_text *statement,
                           const db_value *values, size_t count, db_result *result)
{
    struct execution execution = {
        .text = statement, .count = count, .wait = wait, .result = result};

    return run(connection, &execution, values);
}

/* ------------------------------------------------------- several in one round trip -- */

/* libmariadb leaves the answers to whoever set MARIADB_OPT_SKIP_READ_RESPONSE. */
struct flight {
    struct execution executions[DB_AHEAD_MAX];
    db_request *requests;
    size_t count, done;
};

static void skip_answers(db *connection, my_bool skip)
{
    mysql_optionsv(connection->mysql, MARIADB_OPT_SKIP_READ_RESPONSE, &skip);
}

static int send_all(db *connection, const struct flight *flight)
{
    int failed = 0;

    skip_answers(connection, 1);
    for (size_t i = 0; i < flight->count && !failed; i++) {
        if (i > 0)
            fault_point(FAULT_STATEMENT, flight->requests[i].statement->name, "before");
        failed = mysql_stmt_execute(flight->executions[i].prepared->stmt) != 0;
        if (failed)
            keep_statement_error(connection, flight->executions[i].prepared->stmt);
    }
    skip_answers(connection, 0);
    return failed;
}

static int read_one(db *connection, MYSQL_STMT *stmt, db_request *request)
{
    db_result own = DB_RESULT_INIT, *result = request->result != NULL ? request->result : &own;
    int failed = connection->mysql->methods->db_read_execute_response(stmt) != 0;

    if (failed)
        keep_statement_error(connection, stmt);
    else
        failed = read_answers(connection, stmt, result);
    request->affected = result->affected;
    db_result_free(&own);
    return failed;
}

/* Reads on after an error of the server, since the other answers come all the same; the first one
 * counts. */
static int fly(db *connection, void *what)
{
    struct flight *flight = what;
    unsigned number = 0;
    char text[DB_ERROR_SIZE];

    if (send_all(connection, flight))
        return 1;
    for (size_t i = 0; i < flight->count; i++) {
        const int failed =
            read_one(connection, flight->executions[i].prepared->stmt, &flight->requests[i]);

        if (failed && db_error_is_client(connection->error_number))
            return 1;
        if (failed && number == 0) {
            number = connection->error_number;
            memcpy(text, connection->error_text, sizeof text);
        }
        flight->done += number == 0;
        if (i > 0) {
            fault_point(FAULT_STATEMENT, flight->requests[i].statement->name, "after");
            db_counter_add(&connection->counters.statements, 1);
        }
    }
    if (number != 0)
        db_keep_error(connection, number, text);
    return number != 0;
}

/* Binds them all before the first is sent.  0: one of them has to be waited for. */
static int board(db *connection, struct flight *flight, db_answer *answer)
{
    *answer = DB_DONE;
    for (size_t i = 0; i < flight->count && *answer == DB_DONE; i++) {
        const db_request *r = &flight->requests[i];
        struct execution *e = &flight->executions[i];

        *e = (struct execution){.text = r->statement, .count = r->count, .wait = r->wait};
        e->prepared = find(connection, r->statement, r->wait);
        if (e->prepared == NULL || e->prepared->stmt->mysql == NULL)
            return 0;
        if (check_values(connection, e) || check_count(connection, e))
            *answer = DB_ERROR;
        else if (bind_values(connection, e->text, r->values, e->count) ||
                 bind_parameters(connection, e))
            *answer = DB_NO_MEMORY;
    }
    return 1;
}

static db_answer run_one_by_one(db *connection, db_request *requests, size_t count, size_t *done)
{
    RESULT own = DB_RESULT_INIT;
    db_answer answer = DB_DONE;

    for (size_t i = 0; i < count && answer == DB_DONE; i++) {
        db_request *r = &requests[i];
        db_result *result = r->result != NULL ? r->result : &own;

        answer = db_run_with_wait(connection, r->wait, r->statement, r->values, r->count, result);
        r->affected = result->affected;
        *done += answer == DB_DONE;
    }
    return answer;
}

/* 0: they cannot go together now. */
static int fly_if_ready(db *connection, struct flight *flight, int begins, db_answer *answer)
{
    if (flight->count < 2 || flight->count > DB_AHEAD_MAX || connection->borrowed ||
        !board(connection, flight, answer))
        return 0;
    if (*answer != DB_DONE)
        return 1;
    connection->begins = begins;
    *answer = db_round_trip(connection, FAULT_STATEMENT, flight->requests[0].statement->name, fly,
                            flight);
    connection->begins = 0;
    if (*answer == DB_ERROR && flight->done < flight->count &&
        (connection->error_number == ERROR_NOT_PREPARED || lacks_tables(connection)))
        forget(connection, flight->executions[flight->done].prepared);
    return 1;
}

db_answer db_run_ahead(db *connection, db_request *requests, size_t count, size_t *done)
{
    struct flight flight = {.requests = requests, .count = count};
    db_answer answer;

    *done = 0;
    if (!db_ready(connection))
        return DB_NOT_SENT;
    if (!db_in_transaction(connection) || !fly_if_ready(connection, &flight, 0, &answer))
        return run_one_by_one(connection, requests, count, done);
    *done = flight.done;
    return answer;
}

db_answer db_run_first(db *connection, const struct sql_text *statement, const db_value *values,
                       size_t count, int nowait, db_result *result)
{
    struct execution execution = {.text = statement,
                                  .count = count,
                                  .wait = nowait ? DB_WAIT_NOT : DB_WAIT_AS_SET,
                                  .begins = 1,
                                  .result = result};

    return run(connection, &execution, values);
}

/* The first one alone; the others follow if it changed something. */
static db_answer run_first_apart(db *connection, db_request *requests, size_t count, size_t *done)
{
    db_answer answer = db_run_first(connection, requests->statement, requests->values,
                                    requests->count, 0, requests->result);

    *done = answer == DB_DONE;
    if (answer != DB_DONE || requests->result->affected == 0)
        return answer;
    answer = db_run_ahead(connection, requests + 1, count - 1, done);
    *done += 1;
    return answer;
}

db_answer db_run_first_ahead(db *connection, db_request *requests, size_t count, size_t *done)
{
    struct flight flight = {.requests = requests, .count = count};
    db_answer answer;

    *done = 0;
    if (!db_ready(connection))
        return DB_NOT_SENT;
    if (!fly_if_ready(connection, &flight, 1, &answer))
        return run_first_apart(connection, requests, count, done);
    *done = flight.done;
    /* After an error too: it is to be rolled back. */
    if (answer != DB_NOT_SENT && answer != DB_NO_MEMORY)
        connection->callback_tx = CALLBACK_TX_BEGUN;
    if (answer != DB_DONE || db_server_in_transaction(connection))
        return answer;
    db_spoil(connection);
    db_set_error(connection, CR_SERVER_LOST, "the transaction was not left open");
    return DB_UNANSWERED;
}

db_answer db_run_commit(db *connection, const struct sql_text *statement, const db_value *values,
                        size_t count)
{
    struct execution execution = {.text = statement, .count = count, .commits = 1};

    return run(connection, &execution, values);
}

int db_prepare(db *connection, const struct sql_text *statement)
{
    struct db_prepared fresh = {statement, DB_WAIT_AS_SET, NULL};

    if (find(connection, statement, DB_WAIT_AS_SET))
        return 0;
    fresh.stmt = mysql_stmt_init(connection->mysql);
    if (!fresh.stmt) {
        db_set_error(connection, CR_OUT_OF_MEMORY, "out of memory for a statement");
        return 1;
    }
    if (mysql_stmt_prepare(fresh.stmt, statement->text, strlen(statement->text))) {
        keep_statement_error(connection, fresh.stmt);
        mysql_stmt_close(fresh.stmt);
        return 1;
    }
    keep(connection, &fresh);
    return 0;
}

int db_was_reset(db *connection, const struct sql_text *statement)
{
    const struct db_prepared *prepared = find(connection, statement, DB_WAIT_AS_SET);

    return prepared != NULL && prepared->stmt->mysql == NULL;
}
