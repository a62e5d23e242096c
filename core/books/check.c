/* Asks the server whether a declared statement can be run: it prepares both of its texts, and looks
 * at its table.  Changes nothing. */
#include "books/check.h"

#include "base/error.h"
#include "base/memory.h"
#include "client/client.h"
#include "store/bind.h"

#include <string.h>

/* ------------------------------------------------------------------------------- preparing -- */

/* By SQL: a statement that the connection keeps prepared belongs to books that are there. */
#define PREPARED "tl_declared"
#define RELEASE "DEALLOCATE PREPARE " PREPARED

static char *prepare_text(const struct sql_text *text, size_t *size)
{
    static const char before[] = "PREPARE " PREPARED " FROM ";
    const db_value value = db_text(text->text);
    char *made = memory_new(sizeof before + db_literal_size(&value));

    if (made == NULL)
        return NULL;
    memcpy(made, before, sizeof before - 1);
    *size = (size_t)(db_literal(made + sizeof before - 1, &value) - made);
    return made;
}

/* An answer of the server's about the statement; any other status stays what it is. */
static tl_status cannot_prepare(const db *connection, db_answer answer)
{
    const tl_status status = db_read_status(connection, answer, "preparing a declared statement");

    if (answer != DB_ERROR || tl_status_class(status) == TL_CLASS_RETRY ||
        db_error_kind_of(db_errno(connection)) == DB_KIND_GONE)
        return status;
    return error_set(TL_INVALID, "the server does not prepare it: %s", db_error(connection));
}

static tl_status check_prepares(db *connection, const struct sql_text *text)
{
    size_t size = 0;
    char *prepare = prepare_text(text, &size);
    db_answer answer;

    if (prepare == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the statement");
    answer = db_run_text(connection, text->name, prepare, size, NULL);
    memory_free(prepare);
    if (answer == DB_DONE)
        answer = db_run_text(connection, RELEASE, RELEASE, strlen(RELEASE), NULL);
    return answer == DB_DONE ? TL_OK : cannot_prepare(connection, answer);
}

/* ------------------------------------------------------------------------------- its table -- */

/* Of MariaDB's names, which have 64 characters. */
#define NAME_BYTES 257

struct table {
    char schema[NAME_BYTES], name[NAME_BYTES];
    const char *schema_name; /* NULL: that of the connection */
};

/* The columns of declared_table. */
enum { TABLE_IS_ONE, TABLE_ENGINE, TABLE_COMMITS, TABLE_IS_OURS };

static int name_table(struct table *to, const book_text *text)
{
    to->schema_name = text->database != NULL ? to->schema : NULL;
    return token_name(text->table, to->name, sizeof to->name) &&
           (text->database == NULL || token_name(text->database, to->schema, sizeof to->schema));
}

static tl_status judge_table(const char *name, const db_result *found)
{
    if (found->rows == 0)
        return error_set(TL_INVALID,
                         "\"%s\" is not in information_schema, as if it was a temporary table",
                         name);
    if (!db_get_int(found, 0, TABLE_IS_ONE))
        return error_set(TL_INVALID, "\"%s\" is a view, or something else that is no table", name);
    if (db_get_int(found, 0, TABLE_IS_OURS))
        return error_set(TL_INVALID, "\"%s\" is a table of tradelock's own", name);
    if (!db_get_int(found, 0, TABLE_COMMITS))
        return error_set(TL_INVALID,
                         "\"%s\" is of the engine %s, whose rows are not committed and rolled "
                         "back together with InnoDB's",
                         name, db_get_text(found, 0, TABLE_ENGINE));
    return TL_OK;
}

static tl_status check_table(db *connection, const struct table *table, db_result *result)
{
    db_answer answer =
        SQL_RUN(connection, result, declared_table, .schema_name = db_text(table->schema_name),
                .table_name = db_text(table->name));

    if (answer != DB_DONE)
        return db_read_status(connection, answer, "looking at its table");
    return judge_table(table->name, result);
}

static tl_status check_types(db *connection, const struct table *table,
                             const book_statement *statement, db_result *result)
{
    db_answer answer =
        SQL_RUN(connection, result, declared_types, .schema_name = db_text(table->schema_name),
                .table_name = db_text(table->name));

    if (answer != DB_DONE)
        return db_read_status(connection, answer, "looking at the columns of its table");
    return book_check_columns(statement, result);
}

static tl_status compare_with_schema(db *connection, const book_statement *statement)
{
    RESULT result = DB_RESULT_INIT;
    struct table table;

    if (!name_table(&table, &statement->text))
        return error_set(TL_INVALID, "the name of its table is too long");
    TRY(check_table(connection, &table, &result));
    return check_types(connection, &table, statement, &result);
}

/* ------------------------------------------------------------------------------- all of it -- */

static tl_status check(db *connection, const book_statement *statement)
{
    TRY(check_prepares(connection, &statement->one));
    if (statement->notes_lines)
        TRY(check_prepares(connection, &statement->many));
    return compare_with_schema(connection, statement);
}

tl_status book_check_schema(struct tl_client *client, const book_statement *statement)
{
    db *connection = NULL;
    tl_status status;

    TRY(pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection));
    status = check(connection, statement);
    pool_put(client->connections, connection);
    return status == TL_OK ? TL_OK : error_prefix(status, "statement \"%s\"", statement->name);
}
