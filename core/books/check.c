/* Asks the server whether a declared statement can be run: it prepares both of its texts, and looks
 * at its table.  Changes nothing. */
#include "books/books.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/client.h"

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

/* ------------------------------------------------------------------------------- all of it -- */

static tl_status check(db *connection, const book_statement *statement)
{
    tl_status status = check_prepares(connection, &statement->one);

    if (status == TL_OK && statement->notes_lines)
        status = check_prepares(connection, &statement->many);
    return status;
}

tl_status book_check_schema(struct tl_client *client, const book_statement *statement)
{
    db *connection = NULL;
    tl_status status =
        pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection);

    if (status != TL_OK)
        return status;
    status = check(connection, statement);
    pool_put(client->connections, connection);
    return status == TL_OK ? TL_OK : error_prefix(status, "statement \"%s\"", statement->name);
}
