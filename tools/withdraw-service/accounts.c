/* Makes an account with money for each customer of the input that has none, in one transaction. */
#include "accounts.h"

#include <mysql.h>
#include <stdio.h>
#include <string.h>

/* An account that is there keeps its balance. */
#define INSERT                                                                                     \
    "INSERT INTO account (cust_no, currency, balance_minor) VALUES (?, ?, ?)"                      \
    " ON DUPLICATE KEY UPDATE cust_no = VALUES(cust_no)"

static MYSQL *connect_as_told(const char *config_file, char *problem, size_t space)
{
    MYSQL *connection = mysql_init(NULL);

    if (connection == NULL) {
        snprintf(problem, space, "out of memory");
        return NULL;
    }
    mysql_options(connection, MYSQL_READ_DEFAULT_FILE, config_file);
    mysql_options(connection, MYSQL_READ_DEFAULT_GROUP, "tradelock-client");
    if (mysql_real_connect(connection, NULL, NULL, NULL, NULL, 0, NULL, 0) == NULL) {
        snprintf(problem, space, "opening accounts: %s", mysql_error(connection));
        mysql_close(connection);
        return NULL;
    }
    return connection;
}

static void bind_text(MYSQL_BIND *bind, char *text)
{
    bind->buffer_type = MYSQL_TYPE_STRING;
    bind->buffer = text;
    bind->buffer_length = (unsigned long)strlen(text);
}

static int open_one(MYSQL_STMT *statement, const row *of, int64_t balance_minor)
{
    MYSQL_BIND binds[3];

    memset(binds, 0, sizeof binds);
    bind_text(&binds[0], of->columns[COL_CUST]);
    bind_text(&binds[1], of->columns[COL_CURRENCY]);
    binds[2].buffer_type = MYSQL_TYPE_LONGLONG;
    binds[2].buffer = &balance_minor;
    if (mysql_stmt_bind_param(statement, binds) != 0)
        return -1;
    return mysql_stmt_execute(statement) != 0 ? -1 : 0;
}

/* A customer number that no lock would take needs no account. */
static int is_usable(const row *of)
{
    size_t size = strlen(of->columns[COL_CUST]);

    return of->kind != ROW_BAD && size > 0 && size <= TL_CUST_MAX;
}

int accounts_open(const char *config_file, const rows *all, int64_t balance_minor, char *problem,
                  size_t space)
{
    MYSQL *connection = connect_as_told(config_file, problem, space);
    MYSQL_STMT *statement;
    int result = -1;

    if (connection == NULL)
        return -1;
    statement = mysql_stmt_init(connection);
    if (statement == NULL || mysql_autocommit(connection, 0) != 0 ||
        mysql_stmt_prepare(statement, INSERT, sizeof INSERT - 1) != 0)
        goto out;
    for (size_t i = 0; i < all->count; i++)
        if (is_usable(&all->list[i]) && open_one(statement, &all->list[i], balance_minor) != 0)
            goto out;
    result = mysql_commit(connection) != 0 ? -1 : 0;
out:
    if (result != 0)
        snprintf(problem, space, "opening accounts: %s",
                 statement != NULL && mysql_stmt_errno(statement) != 0 ? mysql_stmt_error(statement)
                                                                       : mysql_error(connection));
    if (statement != NULL)
        mysql_stmt_close(statement);
    mysql_close(connection);
    return result;
}
