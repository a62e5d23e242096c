/*
 * What a careful team writes by hand, writing the very same rows: a prepared INSERT and a
 * prepared compare-and-set in autocommit, on a pool of connections.  The log is written by
 * the same triggers.
 */
#include "bench.h"

#include <mysql.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_MAX 512

static const char insert_sql[] =
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, "
    "session_id, token, fence, rev, sends, max_hold_until, send_until, next_run_at, "
    "fingerprint, payload, created_at, updated_at) VALUES (?, ?, 'WITHDRAW', 'S', 'P', "
    "'ask', '01234567-89ab-4cde-8f01-23456789abcd', "
    "'01234567-89ab-4cde-8f01-23456789abcd',"
    " ?, ?, fence, 1, UTC_TIMESTAMP(6) + INTERVAL 60 SECOND, max_hold_until, "
    "max_hold_until, REPEAT('f', 32), '100.00 EUR', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
static const char update_sql[] =
    "UPDATE trade_lock SET status = 'Y', step = 'end', session_id = NULL, "
    "max_hold_until = NULL, next_run_at = NULL, token = ?, fence = fence + 1, "
    "rev = rev + 1, updated_at = UTC_TIMESTAMP(6) WHERE cust_no = ? AND serial_no = ? "
    "AND op_code = 'WITHDRAW' AND status = 'P' AND fence = ? AND token = ?";
static const char select_sql[] =
    "SELECT status, fence, epoch, fingerprint, payload, result FROM trade_lock "
    "WHERE cust_no = ? AND serial_no = ? AND op_code = 'WITHDRAW'";

static MYSQL_STMT *inserts[CONNECTIONS_MAX], *updates[CONNECTIONS_MAX],
    *selects[CONNECTIONS_MAX];

static MYSQL_STMT *prepare_one(MYSQL *connection, const char *sql)
{
    MYSQL_STMT *statement = mysql_stmt_init(connection);

    if (statement == NULL || mysql_stmt_prepare(statement, sql, strlen(sql)) != 0)
        bench_fail("prepare: %s", mysql_error(connection));
    return statement;
}

static int prepare(struct st_mysql *connection, unsigned number)
{
    inserts[number] = prepare_one(connection, insert_sql);
    updates[number] = prepare_one(connection, update_sql);
    selects[number] = prepare_one(connection, select_sql);
    return 0;
}

static int open_pool(const bench_options *options)
{
    return sql_open(options, prepare);
}

static void close_pool(void)
{
    for (unsigned i = 0; i < bench.connections; i++) {
        mysql_stmt_close(inserts[i]);
        mysql_stmt_close(updates[i]);
        mysql_stmt_close(selects[i]);
    }
    sql_close();
}

static MYSQL_BIND text_bind(char *text, unsigned long *size)
{
    MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_STRING};

    *size = strlen(text);
    bind.buffer = text;
    bind.buffer_length = *size;
    bind.length = size;
    return bind;
}

static MYSQL_BIND bytes_bind(void *bytes, unsigned long *size)
{
    MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_BLOB};

    *size = 16;
    bind.buffer = bytes;
    bind.buffer_length = 16;
    bind.length = size;
    return bind;
}

static void execute(MYSQL_STMT *statement, MYSQL_BIND *binds)
{
    if (mysql_stmt_bind_param(statement, binds) != 0 ||
        mysql_stmt_execute(statement) != 0)
        bench_fail("execute: %s", mysql_stmt_error(statement));
}

/* What one trade writes with; a token is as random as it is cheap. */
typedef struct trade {
    char serial[64], cust[32];
    unsigned char token[16], next[16];
    unsigned long long fence;
} trade;

static void make_trade(trade *t, unsigned caller, uint64_t number)
{
    bench_key(caller, number, t->serial, t->cust);
    memset(t->token, 0, sizeof t->token);
    memcpy(t->token, &number, sizeof number);
    memcpy(t->token + 8, &caller, sizeof caller);
    memcpy(t->next, t->token, sizeof t->next);
    t->next[15] = 1;
    t->fence = 1795000000000000ULL + number;
}

static void run_insert(unsigned at, trade *t)
{
    unsigned long sizes[3];
    MYSQL_BIND binds[4] = {text_bind(t->cust, &sizes[0]),
                           text_bind(t->serial, &sizes[1]),
                           bytes_bind(t->token, &sizes[2]),
                           {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &t->fence}};

    execute(inserts[at], binds);
}

static void run_update(unsigned at, trade *t)
{
    unsigned long sizes[4];
    MYSQL_BIND binds[5] = {bytes_bind(t->next, &sizes[0]),
                           text_bind(t->cust, &sizes[1]),
                           text_bind(t->serial, &sizes[2]),
                           {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &t->fence},
                           bytes_bind(t->token, &sizes[3])};

    execute(updates[at], binds);
    if (mysql_stmt_affected_rows(updates[at]) != 1)
        bench_fail("the compare-and-set was refused");
}

static int cycle(unsigned caller, uint64_t number)
{
    MYSQL *connection;
    unsigned at;
    trade t;

    make_trade(&t, caller, number);
    at = sql_take(&connection);
    run_insert(at, &t);
    sql_give(at);
    at = sql_take(&connection);
    run_update(at, &t);
    sql_give(at);
    return 1;
}

const contestant contestant_handwritten = {
    "handwritten", "prepared INSERT and UPDATE in autocommit, the same rows", open_pool,
    cycle, close_pool};

static int workflow_cycle(unsigned caller, uint64_t number)
{
    MYSQL *connection;
    unsigned at;
    trade t;

    make_trade(&t, caller, number);
    at = sql_take(&connection);
    sql_run(connection, "START TRANSACTION");
    run_insert(at, &t);
    sql_run(connection, "INSERT INTO bench_order (amount) VALUES (10000)");
    sql_run(connection, "COMMIT");
    sql_give(at);
    at = sql_take(&connection);
    sql_run(connection, "START TRANSACTION");
    run_update(at, &t);
    sql_run(connection, "INSERT INTO bench_ledger (amount) VALUES (10000)");
    sql_run(connection, "COMMIT");
    sql_give(at);
    return 1;
}

const contestant contestant_workflow_hand = {
    "workflow-hand", "the transactions of `workflow`, hand-written", open_pool,
    workflow_cycle, close_pool};

/* -------------------------------------------------- reading one key, for refusals -- */

static int open_select(const bench_options *options)
{
    trade t;
    MYSQL *connection;
    unsigned at;

    open_pool(options);
    make_trade(&t, 0, 1);
    at = sql_take(&connection);
    sql_run(connection,
            "DELETE FROM trade_lock WHERE cust_no = 'C1' AND serial_no = 'hot'");
    sql_run(connection, "DELETE FROM trade_lock_log WHERE cust_no = 'C1'");
    run_insert(at, &t);
    sql_give(at);
    return 0;
}

static int select_cycle(unsigned caller, uint64_t number)
{
    char serial[64], cust[32];
    unsigned long sizes[2];
    MYSQL *connection;
    unsigned at;

    bench_key(caller, number, serial, cust);
    at = sql_take(&connection);
    {
        MYSQL_BIND binds[2] = {text_bind(cust, &sizes[0]), text_bind(serial, &sizes[1])};

        execute(selects[at], binds);
        if (mysql_stmt_store_result(selects[at]) != 0 ||
            mysql_stmt_num_rows(selects[at]) != 1)
            bench_fail("the row was not read");
        mysql_stmt_free_result(selects[at]);
    }
    sql_give(at);
    return 0;
}

const contestant contestant_select = {"select", "prepared SELECT of one key that is held",
                                      open_select, select_cycle, close_pool};
