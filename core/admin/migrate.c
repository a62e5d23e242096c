/*
 * Bringing the schema up to this library's version.
 *
 * DDL commits by itself, so a migration can stop half way.  Each one is therefore written
 * so that it can be run again from its start, and it names its version in its last
 * statement.  Then everything that a migration makes anew (triggers, functions, views) and
 * that somebody dropped since is made again.  A named lock of the server lets one migrating
 * process in at a time; it ends with its connection.
 */
#include "base/error.h"
#include "client/client.h"
#include "client/schema.h"
#include "client/server.h"
#include "admin/parts.h"
#include "admin/statements.h"

#include "sql_text.h"

#include <tradelock/admin/server.h>

/* How long to wait for another process that migrates, and for those who use a table. Both are
 * shorter than the time after which a silent server counts as lost. */
#define TURN_WAIT_S 25
#define TABLE_WAIT_S 20

static tl_status wait_for_turn(db *connection)
{
    db_result result = DB_RESULT_INIT;
    tl_status status = TL_OK;
    db_answer answer = store_migrate_wait(connection, TABLE_WAIT_S);

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
    return status;
}

/* On a connection of its own, whose closing ends the turn.  On a server that no client would trust
 * nothing is made: who migrates first would hear of it last. */
static tl_status take_turn(tl_client *client, db **out)
{
    db *connection = NULL;
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK)
        status = pool_open_extra(client->connections, POOL_BUSINESS, &connection);
    if (status == TL_OK)
        status = server_check_settings(connection);
    if (status == TL_OK)
        status = wait_for_turn(connection);
    if (status == TL_OK)
        *out = connection;
    else if (connection != NULL)
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

static int is_there(const db_result *there, const struct sql_part *part)
{
    for (size_t row = 0; row < there->rows; row++)
        if (parts_has(db_get_text(there, row, 0), part->kind, part->name))
            return 1;
    return 0;
}

/* What somebody dropped is made anew; what is there is left alone, since replacing a trigger waits
 * for everybody who uses its table. */
static tl_status mend(db *connection, unsigned *mended)
{
    db_result there = DB_RESULT_INIT;
    db_answer answer = store_migrate_parts(connection, &there);

    *mended = 0;
    for (size_t i = 0; i < sql_parts_count && answer == DB_DONE; i++) {
        const struct sql_part *part = &sql_parts[i];

        if (is_there(&there, part))
            continue;
        answer = db_run_script(connection, part->name, part->text);
        ++*mended;
    }
    db_result_free(&there);
    return answer == DB_DONE ? TL_OK
                             : db_error_status(connection, answer, "making anew what was dropped");
}

static tl_status note_identity(db *connection)
{
    const db_answer answer = store_schema_identity(connection);

    return answer == DB_DONE ? TL_OK
                             : db_error_status(connection, answer, "noting which server this is");
}

static tl_status apply_missing(db *connection, unsigned *from, unsigned *to, unsigned *mended)
{
    schema_found found;
    tl_status status = schema_read(connection, &found);

    if (status != TL_OK)
        return status;
    *from = found.version;
    for (size_t i = 0; i < sql_migrations_count && status == TL_OK; i++)
        if (sql_migrations[i].number > found.version)
            status = apply(connection, &sql_migrations[i]);
    if (status == TL_OK)
        status = note_identity(connection);
    if (status == TL_OK)
        status = schema_read(connection, &found);
    if (status == TL_OK)
        status = schema_judge(&found);
    /* Of a newer schema the parts are not known here. */
    *mended = 0;
    if (status == TL_OK && found.version == schema_newest())
        status = mend(connection, mended);
    *to = found.version;
    return status;
}

tl_status tl_migrate(tl_client *client, tl_migrated *migrated)
{
    tl_migrated done = {0, 0, 0};
    db *connection = NULL;
    tl_status status = take_turn(client, &connection);

    if (status != TL_OK)
        return status;
    status = apply_missing(connection, &done.from, &done.to, &done.mended);
    pool_close_extra(client->connections, connection);
    if (status == TL_OK && migrated != NULL)
        *migrated = done;
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
