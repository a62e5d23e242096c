/* Runs one prepared statement on the library's connection, and tells how many rows it changed.
 * Touches that connection only. */
#include "statement.h"

#include <tradelock/test_hooks.h>

#include <mysql.h>
#include <string.h>

/* After these errors the same transaction may succeed. */
#define ERROR_LOCK_WAIT 1205
#define ERROR_DEADLOCK 1213
#define ERROR_SNAPSHOT 1020

static tl_status failed(MYSQL_STMT *statement, const char *name)
{
    unsigned number = mysql_stmt_errno(statement);

    if (number == ERROR_LOCK_WAIT || number == ERROR_DEADLOCK || number == ERROR_SNAPSHOT)
        return tl_error_report(TL_TRY_AGAIN, "%s: %s", name, mysql_stmt_error(statement));
    return tl_error_report(TL_CALLBACK_FAILED, "%s: error %u: %s", name, number,
                           mysql_stmt_error(statement));
}

static void bind(MYSQL_BIND *binds, const parameter *parameters, unsigned count)
{
    memset(binds, 0, count * sizeof *binds);
    for (unsigned i = 0; i < count; i++) {
        const parameter *p = &parameters[i];

        if (p->text != NULL) {
            binds[i].buffer_type = MYSQL_TYPE_STRING;
            binds[i].buffer = (void *)(uintptr_t)p->text;
            binds[i].buffer_length = (unsigned long)strlen(p->text);
        } else {
            binds[i].buffer_type = MYSQL_TYPE_LONGLONG;
            binds[i].buffer = (void *)(uintptr_t)&p->number;
        }
    }
}

tl_status statement_run(struct st_mysql *connection, const char *name, const char *sql,
                        const parameter *parameters, unsigned count, uint64_t *changed)
{
    MYSQL_BIND binds[PARAMETERS_MAX];
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    tl_status status = TL_OK;

    if (statement == NULL)
        return tl_error_report(TL_CALLBACK_FAILED, "%s: no memory", name);
    bind(binds, parameters, count);
    if (mysql_stmt_prepare(statement, sql, (unsigned long)strlen(sql)) != 0 ||
        mysql_stmt_bind_param(statement, binds) != 0) {
        status = failed(statement, name);
        goto out;
    }
    tl_test_point('S', name, "before");
    if (mysql_stmt_execute(statement) != 0)
        status = failed(statement, name);
    else
        *changed = mysql_stmt_affected_rows(statement);
    tl_test_point('S', name, "after");
out:
    mysql_stmt_close(statement);
    return status;
}
