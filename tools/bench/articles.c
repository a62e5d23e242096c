/* The articles' own ways, in C, each against a table of its own.  Contended, each waits for the one
 * key in its own way too: by trying again, or in the server. */
#include "bench.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

static int open_pool(const bench_options *options)
{
    return sql_open(options, NULL);
}

/* ------------------------------------------------------------ the main article -- */

/* Find, then insert; in a transaction of its own.  Contended, the row is there: it is taken over
 * when it is not in process, as the article's compensation does. */
static int article_lock(MYSQL *connection, const char *cust, const char *serial)
{
    int taken = 1;

    sql_run(connection, "START TRANSACTION");
    sql_runf(connection,
             "SELECT id, status FROM article_lock WHERE cust_no = '%s' AND "
             "serial_no = '%s' AND source_code = 'WITHDRAW'",
             cust, serial);
    if (bench.contended) {
        sql_runf(connection,
                 "UPDATE article_lock SET status = 'P', thread_no = UUID() WHERE "
                 "cust_no = '%s' AND serial_no = '%s' AND source_code = 'WITHDRAW' AND "
                 "status <> 'P'",
                 cust, serial);
        taken = mysql_affected_rows(connection) == 1;
    } else {
        sql_runf(connection,
                 "INSERT INTO article_lock (cust_no, serial_no, source_code, thread_no, "
                 "status, remark) VALUES ('%s', '%s', 'WITHDRAW', UUID(), 'P', "
                 "'withdraw')",
                 cust, serial);
    }
    sql_run(connection, "COMMIT");
    return taken;
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

static int article_open(const bench_options *options)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at;

    open_pool(options);
    if (!options->contended)
        return 0;
    bench_key(0, 0, serial, cust);
    at = sql_take(&connection);
    sql_runf(connection,
             "INSERT INTO article_lock (cust_no, serial_no, source_code, thread_no, "
             "status) VALUES ('%s', '%s', 'WITHDRAW', UUID(), 'Y')",
             cust, serial);
    sql_give(at);
    return 0;
}

static int article_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at, attempt = 0;
    int taken;

    bench_key(caller, number, serial, cust);
    do {
        at = sql_take(&connection);
        taken = article_lock(connection, cust, serial);
        sql_give(at);
        if (!taken)
            bench_refused(attempt++);
    } while (!taken);
    at = sql_take(&connection);
    article_unlock(connection, cust, serial);
    sql_give(at);
    return 1;
}

const contestant contestant_article = {.name = "article",
                                       .what = "SELECT, INSERT, COMMIT; SELECT, UPDATE, COMMIT",
                                       .open = article_open,
                                       .cycle = article_cycle,
                                       .close = sql_close};

/* ----------------------------------- a unique key: the insert is the lock -- */

static int unique_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at, error, attempt = 0;

    bench_key(caller, number, serial, cust);
    do {
        at = sql_take(&connection);
        error = sql_tryf(connection, "INSERT INTO uni_key_lock (lock_name) VALUES ('%s/%s')", cust,
                         serial);
        sql_give(at);
        if (error != 0)
            bench_refused(attempt++);
    } while (error != 0);
    do {
        at = sql_take(&connection);
        error = sql_tryf(connection, "DELETE FROM uni_key_lock WHERE lock_name = '%s/%s'", cust,
                         serial);
        if (error == 0 && mysql_affected_rows(connection) != 1)
            bench_fail("the name was not there");
        sql_give(at);
    } while (error != 0);
    return 1;
}

const contestant contestant_unique_key = {.name = "unique-key",
                                          .what = "INSERT a name, DELETE it",
                                          .open = open_pool,
                                          .cycle = unique_cycle,
                                          .close = sql_close};

/* ------------------------------------ a version number: read it, write with it -- */

/* One of the thousand rows. */
static unsigned row_of(unsigned caller, uint64_t number)
{
    return bench.contended ? 0 : (unsigned)((caller * 7919u + number) % 1000);
}

static int optimistic_cycle(unsigned caller, uint64_t number)
{
    unsigned row = row_of(caller, number), at, attempt = 0;
    char sql[128];
    MYSQL *connection;
    int done;

    snprintf(sql, sizeof sql, "SELECT version FROM optimistic_lock WHERE id = %u", row);
    do {
        at = sql_take(&connection);
        sql_runf(connection,
                 "UPDATE optimistic_lock SET version = version + 1, amount = amount + 1 "
                 "WHERE id = %u AND version = %.0f",
                 row, sql_number(connection, sql));
        done = mysql_affected_rows(connection) == 1;
        sql_give(at);
        if (!done)
            bench_refused(attempt++);
    } while (!done);
    return 1;
}

const contestant contestant_optimistic = {.name = "optimistic",
                                          .what = "SELECT a version, UPDATE with it",
                                          .open = open_pool,
                                          .cycle = optimistic_cycle,
                                          .close = sql_close};

/* -------------------------- a row lock that lives as long as the transaction -- */

static int for_update_cycle(unsigned caller, uint64_t number)
{
    MYSQL *connection;
    unsigned at = sql_take(&connection);

    sql_run(connection, "START TRANSACTION");
    sql_runf(connection, "SELECT * FROM optimistic_lock WHERE id = %u FOR UPDATE",
             row_of(caller, number));
    sql_run(connection, "COMMIT");
    sql_give(at);
    return 1;
}

const contestant contestant_for_update = {.name = "for-update",
                                          .what = "SELECT FOR UPDATE, COMMIT; nothing is written",
                                          .open = open_pool,
                                          .cycle = for_update_cycle,
                                          .close = sql_close};

static int get_lock_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32], sql[160];
    MYSQL *connection;
    unsigned at;

    bench_key(caller, number, serial, cust);
    snprintf(sql, sizeof sql, "SELECT GET_LOCK('%s/%s', 60)", cust, serial);
    at = sql_take(&connection);
    if (sql_number(connection, sql) != 1)
        bench_fail("GET_LOCK did not lock");
    sql_runf(connection, "SELECT RELEASE_LOCK('%s/%s')", cust, serial);
    sql_give(at);
    return 1;
}

const contestant contestant_get_lock = {.name = "get-lock",
                                        .what = "GET_LOCK, RELEASE_LOCK; nothing is durable",
                                        .open = open_pool,
                                        .cycle = get_lock_cycle,
                                        .close = sql_close};
