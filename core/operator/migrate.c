/*
 * Bringing the schema up to this library's version.
 *
 * DDL commits by itself, so a migration can stop half way.  Each one is therefore written
 * so that it can be run again from its start, and it names its version in its last
 * statement.  A named lock of the server lets one migrating process in at a time; it ends
 * with its connection.
 */
#include "base/error.h"
#include "client/client.h"
#include "client/schema.h"
#include "store/store_operator.h"

#include "sql_text.h"

/* How long to wait for another process that migrates, and for those who use a table.
 * Both are shorter than the time after which a silent server counts as lost. */
#define TURN_WAIT_S 25
#define TABLE_WAIT_S 20

/* On a connection of its own, whose closing ends the turn. */
static tl_status take_turn(tl_client *client, db **out)
{
    db_result result = DB_RESULT_INIT;
    db *connection = NULL;
    db_answer answer;
    tl_status status = client_check(client);

    if (status == TL_OK)
        status = pool_open_extra(client->connections, POOL_BUSINESS, &connection);
    if (status != TL_OK)
        return status;
    answer = store_migrate_wait(connection, TABLE_WAIT_S);
    if (answer == DB_DONE)
        answer = store_migrate_turn(connection, TURN_WAIT_S, &result);
    if (answer != DB_DONE)
        status = db_error_status(connection, answer, "waiting for the turn to migrate");
    else if (result.rows != 1 || db_get_int(&result, 0, 0) != 1)
        status = error_set(TL_TIMEOUT,
                           "another process has been migrating this database for %d "
                           "seconds: look whether it still runs, then try again",
                           TURN_WAIT_S);
    db_result_free(&result);
    if (status == TL_OK)
        *out = connection;
    else
        pool_close_extra(client->connections, connection);
    return status;
}

static tl_status apply(db *connection, const struct sql_migration *migration)
{
    db_answer answer = db_run_script(connection, migration->name, migration->text);

    if (answer == DB_DONE)
        return TL_OK;
    if (answer == DB_UNANSWERED)
        return error_set(TL_UNKNOWN,
                         "the server's answer to migration %s was lost: run `tradelock "
                         "migrate` again, which goes on where it stopped",
                         migration->name);
    return error_prefix(db_error_status(connection, answer, "migrating"), "migration %s",
                        migration->name);
}

static tl_status note_identity(db *connection)
{
    const db_answer answer = store_schema_identity(connection);

    return answer == DB_DONE
               ? TL_OK
               : db_error_status(connection, answer, "noting which server this is");
}

static tl_status apply_missing(db *connection, unsigned *from, unsigned *to)
{
    schema_found found;
    tl_status status = schema_read(connection, &found);

    if (status != TL_OK)
        return status;
    *from = found.version;
    for (size_t i = 0; i < sql_migrations_count && status == TL_OK; i++)
        if (sql_migrations[i].number > found.version)
            status = apply(connection, &sql_migrations[i]);
    if (status == TL_OK && found.server_identity[0] == '\0')
        status = note_identity(connection);
    if (status == TL_OK)
        status = schema_read(connection, &found);
    if (status == TL_OK)
        status = schema_judge(&found);
    *to = found.version;
    return status;
}

tl_status tl_migrate(tl_client *client, unsigned *from, unsigned *to)
{
    unsigned before = 0, after = 0;
    db *connection = NULL;
    tl_status status = take_turn(client, &connection);

    if (status != TL_OK)
        return status;
    status = apply_missing(connection, &before, &after);
    pool_close_extra(client->connections, connection);
    if (status == TL_OK) {
        *from = before;
        *to = after;
    }
    return status;
}

tl_status tl_grant_roles(tl_client *client)
{
    db *connection = NULL;
    db_answer answer;
    tl_status status = take_turn(client, &connection);

    if (status != TL_OK)
        return status;
    answer = db_run_script(connection, "grants", sql_grants);
    if (answer != DB_DONE)
        status = db_error_status(connection, answer, "granting the roles");
    pool_close_extra(client->connections, connection);
    return status;
}
