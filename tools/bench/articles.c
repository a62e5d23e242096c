/* The articles' own ways, in C, each against a table of its own. */
#include "bench.h"

#include <mysql.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SQL_SPACE 512

/* Formats and runs; the arguments are names made by bench_key. */
static void run_format(MYSQL *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void run_format(MYSQL *connection, const char *format, ...)
{
    char sql[SQL_SPACE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sql, sizeof sql, format, arguments);
    va_end(arguments);
    sql_run(connection, sql);
}

static int open_pool(const bench_options *options)
{
    return sql_open(options, NULL);
}

/* The main article: find, then insert or update, each in a transaction of its own. */
static int article_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at;

    bench_key(caller, number, serial, cust);
    at = sql_take(&connection);
    sql_run(connection, "START TRANSACTION");
    run_format(connection,
               "SELECT id, status FROM article_lock WHERE cust_no = '%s' AND "
               "serial_no = '%s' AND source_code = 'WITHDRAW'",
               cust, serial);
    run_format(connection,
               "INSERT INTO article_lock (cust_no, serial_no, source_code, thread_no, "
               "status, remark) VALUES ('%s', '%s', 'WITHDRAW', UUID(), 'P', 'withdraw')",
               cust, serial);
    sql_run(connection, "COMMIT");
    sql_give(at);
    at = sql_take(&connection);
    sql_run(connection, "START TRANSACTION");
    run_format(connection,
               "SELECT id, status FROM article_lock WHERE cust_no = '%s' AND "
               "serial_no = '%s' AND source_code = 'WITHDRAW'",
               cust, serial);
    run_format(connection,
               "UPDATE article_lock SET status = 'Y' WHERE cust_no = '%s' AND "
               "serial_no = '%s' AND source_code = 'WITHDRAW' AND status = 'P'",
               cust, serial);
    sql_run(connection, "COMMIT");
    sql_give(at);
    return 1;
}

const contestant contestant_article = {"article",
                                       "SELECT, INSERT, COMMIT; SELECT, UPDATE, COMMIT",
                                       open_pool, article_cycle, sql_close};

/* A unique key: the insert is the lock, the delete frees it. */
static int unique_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at;

    bench_key(caller, number, serial, cust);
    at = sql_take(&connection);
    run_format(connection, "INSERT INTO uni_key_lock (lock_name) VALUES ('%s/%s')", cust,
               serial);
    sql_give(at);
    at = sql_take(&connection);
    run_format(connection, "DELETE FROM uni_key_lock WHERE lock_name = '%s/%s'", serial,
               cust);
    sql_give(at);
    return 1;
}

const contestant contestant_unique_key = {"unique-key", "INSERT a name, DELETE it",
                                          open_pool, unique_cycle, sql_close};

/* A version number: read it, write with it. */
static int optimistic_cycle(unsigned caller, uint64_t number)
{
    unsigned row = (unsigned)((caller * 7919u + number) % 1000);
    char sql[SQL_SPACE];
    MYSQL *connection;
    unsigned at = sql_take(&connection);
    MYSQL_RES *result;
    MYSQL_ROW values;
    int done;

    snprintf(sql, sizeof sql, "SELECT version FROM optimistic_lock WHERE id = %u", row);
    if (mysql_query(connection, sql) != 0)
        bench_fail("%s", mysql_error(connection));
    result = mysql_store_result(connection);
    values = mysql_fetch_row(result);
    snprintf(sql, sizeof sql,
             "UPDATE optimistic_lock SET version = version + 1, amount = amount + 1 "
             "WHERE id = %u AND version = %s",
             row, values[0]);
    mysql_free_result(result);
    sql_run(connection, sql);
    done = mysql_affected_rows(connection) == 1;
    sql_give(at);
    return done;
}

const contestant contestant_optimistic = {"optimistic",
                                          "SELECT a version, UPDATE with it", open_pool,
                                          optimistic_cycle, sql_close};

/* A row lock that lives as long as the transaction. */
static int for_update_cycle(unsigned caller, uint64_t number)
{
    unsigned row = (unsigned)((caller * 7919u + number) % 1000);
    char sql[SQL_SPACE];
    MYSQL *connection;
    unsigned at = sql_take(&connection);

    sql_run(connection, "START TRANSACTION");
    snprintf(sql, sizeof sql, "SELECT * FROM optimistic_lock WHERE id = %u FOR UPDATE",
             row);
    sql_run(connection, sql);
    sql_run(connection, "COMMIT");
    sql_give(at);
    return 1;
}

const contestant contestant_for_update = {"for-update",
                                          "SELECT FOR UPDATE, COMMIT; nothing is written",
                                          open_pool, for_update_cycle, sql_close};

static int get_lock_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at;

    bench_key(caller, number, serial, cust);
    at = sql_take(&connection);
    run_format(connection, "SELECT GET_LOCK('%s/%s', 10)", cust, serial);
    run_format(connection, "SELECT RELEASE_LOCK('%s/%s')", cust, serial);
    sql_give(at);
    return 1;
}

const contestant contestant_get_lock = {"get-lock",
                                        "GET_LOCK, RELEASE_LOCK; nothing is durable",
                                        open_pool, get_lock_cycle, sql_close};
