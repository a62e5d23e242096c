/* Reads the server's settings, and refuses one that is not fit for money.  Changes nothing. */
#include "client/server.h"

#include "base/error.h"
#include "client/schema.h"
#include "sql_text.h"

#include <stdio.h>
#include <string.h>

#define OLDEST_MAJOR 10
#define OLDEST_MINOR 11

int server_version_serves(const char *version)
{
    unsigned major = 0, minor = 0;

    return sscanf(version, "%u.%u", &major, &minor) == 2 && strstr(version, "MariaDB") != NULL &&
           (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR));
}

static tl_status judge_settings(const db_result *r)
{
    const char *version = db_get_text(r, 0, 0);

    if (!server_version_serves(version))
        return error_set(TL_SERVER_UNSAFE,
                         "the server is version %s; tradelock needs " SERVER_OLDEST " or newer",
                         version);
    if (db_get_int(r, 0, 1) != 1)
        return error_set(TL_SERVER_UNSAFE,
                         "innodb_flush_log_at_trx_commit is %s: a crash of the server "
                         "would forget commits; set it to 1",
                         db_get_text(r, 0, 1));
    if (db_get_int(r, 0, 2) != 0 && db_get_int(r, 0, 3) != 1)
        return error_set(TL_SERVER_UNSAFE,
                         "sync_binlog is %s while the binary log is on: a crash of the "
                         "server could forget commits; set it to 1",
                         db_get_text(r, 0, 3));
    if (db_get_int(r, 0, 2) != 0 && strcmp(db_get_text(r, 0, 5), "STATEMENT") == 0)
        return error_set(TL_SERVER_UNSAFE,
                         "binlog_format is STATEMENT: the server refuses the library's "
                         "transactions; set it to ROW or MIXED");
    if (db_get_int(r, 0, 6) != 0)
        return error_set(TL_SERVER_UNSAFE,
                         "innodb_rollback_on_timeout is ON: whoever meets a locked row would lose "
                         "the whole transaction; set it to OFF");
    if (db_get_int(r, 0, 4) != 0)
        return error_set(TL_READ_ONLY, "the server is read-only, perhaps a replica");
    return TL_OK;
}

tl_status server_check_settings(db *connection)
{
    RESULT result = DB_RESULT_INIT;
    const db_answer answer = db_run(connection, &sql_server_settings, NULL, 0, &result);

    return answer == DB_DONE ? judge_settings(&result)
                             : db_read_status(connection, answer, "asking the server");
}

tl_status server_check(pool *connections, int64_t wait_ms)
{
    db *connection = NULL;
    schema_found found;
    tl_status status;

    TRY(pool_get(connections, POOL_QUICK, wait_ms, &connection));
    status = server_check_settings(connection);
    if (status == TL_OK)
        status = schema_read(connection, &found);
    if (status == TL_OK)
        status = schema_judge(&found);
    pool_put(connections, connection);
    return status;
}
