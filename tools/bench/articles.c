/* The article's own way, in C, against a table of its own. */
#include "bench.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

static int open_pool(const bench_options *options)
{
    return sql_open(options, NULL);
}

/* Find, then insert; in a transaction of its own. */
static void article_lock(MYSQL *connection, const char *cust, const char *serial)
{
    sql_run(connection, "START TRANSACTION");
    sql_runf(connection,
             "SELECT id, status FROM article_lock WHERE cust_no = '%s' AND "
             "serial_no = '%s' AND source_code = 'WITHDRAW'",
             cust, serial);
    sql_runf(connection,
             "INSERT INTO article_lock (cust_no, serial_no, source_code, thread_no, "
             "status, remark) VALUES ('%s', '%s', 'WITHDRAW', UUID(), 'P', "
             "'withdraw')",
             cust, serial);
    sql_run(connection, "COMMIT");
}

static void article_unlock(MYSQL *connection, const char *cust, const char *serial)
{
    sql_run(connection, "START TRANSACTION");
    sql_runf(connection,
             "SELECT id, status FROM article_lock WHERE cust_no = '%s' AND "
             "serial_no = '%s' AND source_code = 'WITHDRAW'",
             cust, serial);
    sql_runf(connection,
             "UPDATE article_lock SET status = 'Y' WHERE cust_no = '%s' AND "
             "serial_no = '%s' AND source_code = 'WITHDRAW' AND status = 'P'",
             cust, serial);
    sql_run(connection, "COMMIT");
}

static int article_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at;

    bench_key(caller, number, serial, cust);
    at = sql_take(&connection);
    article_lock(connection, cust, serial);
    sql_give(at);
    at = sql_take(&connection);
    article_unlock(connection, cust, serial);
    sql_give(at);
    return 1;
}

const contestant contestant_article = {.name = "article",
                                       .what = "SELECT, INSERT, COMMIT; SELECT, UPDATE, COMMIT",
                                       .open = open_pool,
                                       .cycle = article_cycle,
                                       .close = sql_close};
