/*
 * Runs a text of several statements, such as a migration.  The server itself finds where each one
 * ends, so bodies of triggers may hold semicolons.  Touches one connection.
 */
#include "db/db_internal.h"

#include <string.h>

struct script {
    const char *text;
    unsigned done; /* statements that were carried out */
};

static int read_results(db *connection, struct script *script)
{
    MYSQL *mysql = connection->mysql;
    int next;

    do {
        MYSQL_RES *result = mysql_store_result(mysql);

        if (!result && mysql_field_count(mysql) > 0)
            return 1;
        mysql_free_result(result);
        script->done++;
        next = mysql_next_result(mysql);
    } while (next == 0);
    return next > 0;
}

static int run_script(db *connection, void *what)
{
    struct script *script = what;
    MYSQL *mysql = connection->mysql;
    int failed = mysql_set_server_option(mysql, MYSQL_OPTION_MULTI_STATEMENTS_ON) ||
                 mysql_real_query(mysql, script->text, (unsigned long)strlen(script->text)) ||
                 read_results(connection, script);

    if (failed) {
        unsigned number = mysql_errno(mysql);

        if (db_error_is_client(number))
            db_keep_error(connection, number, mysql_error(mysql));
        else
            db_set_error(connection, number, "statement %u: %s", script->done + 1,
                         mysql_error(mysql));
    }
    /* Only scripts may send several statements; elsewhere they would help somebody to smuggle one
     * in. */
    if (mysql_set_server_option(mysql, MYSQL_OPTION_MULTI_STATEMENTS_OFF) && !failed) {
        db_keep_error(connection, mysql_errno(mysql), mysql_error(mysql));
        failed = 1;
    }
    return failed;
}

db_answer db_run_script(db *connection, const char *name, const char *text)
{
    struct script script = {text, 0};

    return db_round_trip(connection, FAULT_STATEMENT, name, run_script, &script);
}
