/* Makes an account with money for each customer of the input that has none, in one transaction. */
#include "accounts.h"

#include <mysql.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 100

/* An account that is there keeps its balance. */
#define INSERT                                                                                     \
    "INSERT INTO account (cust_no, currency, balance_minor) VALUES (?, ?, ?)"                      \
    " ON DUPLICATE KEY UPDATE cust_no = VALUES(cust_no)"

/* A MYSQL that has read the option file: libmariadb reads it when it connects, here to nowhere. */
static MYSQL *read_file(const char *config_file)
{
    MYSQL *connection = mysql_init(NULL);

    if (connection == NULL)
        return NULL;
    mysql_options(connection, MYSQL_READ_DEFAULT_FILE, config_file);
    mysql_options(connection, MYSQL_READ_DEFAULT_GROUP, "tradelock-client");
    (void)mysql_real_connect(connection, "localhost", NULL, NULL, NULL, 0, "/dev/null/none",
                             CLIENT_REMEMBER_OPTIONS);
    return connection;
}

/* Connects to one of "a, b:3307, [::1]:3307"; 0 as `size` for libmariadb's own. */
static MYSQL *connect_to(const char *config_file, const char *from, size_t size)
{
    char host[300];
    char *name = host, *colon, *end;
    MYSQL *connection = read_file(config_file);
    unsigned port = 0;

    if (connection == NULL)
        return NULL;
    snprintf(host, sizeof host, "%.*s", (int)size, from);
    name += strspn(name, " \t[");
    name[strcspn(name, " \t")] = '\0';
    end = strchr(name, ']');
    colon = end != NULL ? end + 1 : strchr(name, ':');
    if (name[0] != '/' && colon != NULL && *colon == ':' && strchr(colon + 1, ':') == NULL) {
        port = (unsigned)strtoul(colon + 1, NULL, 10);
        *colon = '\0';
    }
    if (end != NULL)
        *end = '\0';
    /* libmariadb knows what to do where the file names no host. */
    (void)mysql_real_connect(connection,
                             name[0] == '/'    ? "localhost"
                             : name[0] != '\0' ? name
                                               : NULL,
                             NULL, NULL, NULL, port, name[0] == '/' ? name : NULL, 0);
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

/* The server's error; 0: all have one. */
static unsigned open_all(MYSQL *connection, const rows *all, int64_t balance_minor, char *problem,
                         size_t space)
{
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    unsigned error = 0;
    int failed = statement == NULL || mysql_autocommit(connection, 0) != 0 ||
                 mysql_stmt_prepare(statement, INSERT, sizeof INSERT - 1) != 0;

    for (size_t i = 0; i < all->count && !failed; i++)
        failed = is_usable(&all->list[i]) && open_one(statement, &all->list[i], balance_minor) != 0;
    if (failed || mysql_commit(connection) != 0) {
        const int of_statement = statement != NULL && mysql_stmt_errno(statement) != 0;

        error = of_statement ? mysql_stmt_errno(statement) : mysql_errno(connection);
        snprintf(problem, space, "opening accounts: %s",
                 of_statement ? mysql_stmt_error(statement) : mysql_error(connection));
    }
    if (statement != NULL)
        mysql_stmt_close(statement);
    return error;
}

/* Another service that opens the same accounts may be in the way of this one, and is over soon. */
static unsigned open_at(MYSQL *connection, const rows *all, int64_t balance_minor, char *problem,
                        size_t space)
{
    unsigned error = mysql_errno(connection);

    if (error != 0)
        snprintf(problem, space, "opening accounts: %s", mysql_error(connection));
    for (int tries = 0;
         tries == 0 ||
         ((error == ER_LOCK_DEADLOCK || error == ER_LOCK_WAIT_TIMEOUT) && tries < TRIES);
         tries++) {
        if (tries == 0 && error != 0)
            break;
        mysql_rollback(connection);
        error = open_all(connection, all, balance_minor, problem, space);
    }
    return error;
}

/* Of several hosts one takes writes. */
int accounts_open(const char *config_file, const rows *all, int64_t balance_minor, char *problem,
                  size_t space)
{
    MYSQL *settings = read_file(config_file);
    const char *list = settings != NULL ? settings->options.host : NULL, *at;
    unsigned error = 1;

    snprintf(problem, space, "out of memory");
    for (at = list != NULL ? list : ""; settings != NULL && at != NULL && error != 0;) {
        const size_t size = strcspn(at, ",");
        MYSQL *connection = connect_to(config_file, at, size);

        if (connection != NULL)
            error = open_at(connection, all, balance_minor, problem, space);
        mysql_close(connection);
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    mysql_close(settings);
    return error == 0 ? 0 : -1;
}
