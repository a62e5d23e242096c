/*
 * What a careful team writes by hand, writing the very same rows: a prepared INSERT and a prepared
 * compare-and-set in autocommit, on a pool of connections.  History is kept by the same triggers.
 */
#include "handwritten.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <uuid/uuid.h>

static const char insert_sql[] =
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, "
    "session_id, token, fence, rev, sends, max_hold_until, send_until, next_run_at, "
    "fingerprint, payload, created_at, updated_at) VALUES (?, ?, 'WITHDRAW', 'S', 'P', "
    "'ask', ?, ?, ?, ?, fence, 1, UTC_TIMESTAMP(6) + INTERVAL 60 SECOND, "
    "max_hold_until, max_hold_until, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";
static const char update_sql[] =
    "UPDATE trade_lock SET status = 'Y', step = 'end', "
    "max_hold_until = NULL, token = ?, fence = fence + 1, "
    "rev = rev + 1, updated_at = UTC_TIMESTAMP(6) WHERE cust_no = ? AND serial_no = ? "
    "AND op_code = 'WITHDRAW' AND status = 'P' AND fence = ? AND token = ?";
/* What a workflow writes besides: the channel, its key, the deadline, the amount. */
static const char paid_insert_sql[] =
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, "
    "session_id, token, fence, rev, sends, max_hold_until, send_until, next_run_at, "
    "deadline_at, fingerprint, payload, channel, channel_key, amount_minor, currency, "
    "created_at, updated_at) "
    "VALUES (?, ?, 'WITHDRAW', 'S', 'P', 'ask', ?, ?, ?, ?, fence, 1, "
    "UTC_TIMESTAMP(6) + INTERVAL 60 SECOND, max_hold_until, max_hold_until, "
    "UTC_TIMESTAMP(6) + INTERVAL 72 HOUR, ?, ?, 'bench', ?, ?, ?, UTC_TIMESTAMP(6), "
    "UTC_TIMESTAMP(6))";
static const char select_sql[] =
    "SELECT status, fence, epoch, fingerprint, payload, result FROM trade_lock "
    "WHERE cust_no = ? AND serial_no = ? AND op_code = 'WITHDRAW'";

/* Of each connection. */
enum { INSERT, UPDATE, PAID_INSERT, SELECT, STATEMENTS };
static const char *const texts[STATEMENTS] = {insert_sql, update_sql, paid_insert_sql, select_sql};
static MYSQL_STMT *statements[HAND_CONNECTIONS_MAX][STATEMENTS];

/* Who writes: on every row. */
static uuid_t service;
static _Thread_local uuid_t thread;

MYSQL_STMT *hand_prepare(MYSQL *connection, const char *sql)
{
    MYSQL_STMT *statement = mysql_stmt_init(connection);

    if (statement == NULL || mysql_stmt_prepare(statement, sql, strlen(sql)) != 0)
        bench_fail("prepare: %s", mysql_error(connection));
    return statement;
}

static int (*prepare_more)(MYSQL *connection, unsigned number);

static int prepare(struct st_mysql *connection, unsigned number)
{
    for (int i = 0; i < STATEMENTS; i++)
        statements[number][i] = hand_prepare(connection, texts[i]);
    return prepare_more != NULL ? prepare_more(connection, number) : 0;
}

int hand_open(const bench_options *options, int (*prepare_own)(MYSQL *connection, unsigned number))
{
    prepare_more = prepare_own;
    uuid_generate_random(service);
    return sql_open(options, prepare);
}

static int open_pool(const bench_options *options)
{
    return hand_open(options, NULL);
}

void hand_close(void)
{
    for (unsigned i = 0; i < bench.connections; i++)
        for (int j = 0; j < STATEMENTS; j++)
            mysql_stmt_close(statements[i][j]);
    sql_close();
}

MYSQL_BIND hand_text(char *text, unsigned long *size)
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

    bind.buffer = bytes;
    bind.buffer_length = *size;
    bind.length = size;
    return bind;
}

void hand_execute(MYSQL_STMT *statement, MYSQL_BIND *binds)
{
    if (mysql_stmt_bind_param(statement, binds) != 0 || mysql_stmt_execute(statement) != 0)
        bench_fail("execute: %s", mysql_stmt_error(statement));
}

static char payload[] = "100.00 EUR";
static char channel_key[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static long long amount_minor = 10000;
static char currency[] = "EUR";

void hand_trade(trade *t, unsigned caller, uint64_t number)
{
    struct sha256_ctx sha;

    bench_key(caller, number, t->serial, t->cust);
    if (uuid_is_null(thread))
        uuid_generate_random(thread);
    if (getrandom(&t->token, sizeof t->token, 0) != sizeof t->token)
        bench_fail("no random numbers");
    sha256_init(&sha);
    sha256_update(&sha, sizeof payload - 1, (const uint8_t *)payload);
    sha256_digest(&sha, sizeof t->fingerprint, t->fingerprint);
    t->fence = 1795000000000000ULL + number;
}

static void run_insert(unsigned at, int which, trade *t)
{
    unsigned long sizes[4], uuid_size = sizeof(uuid_t), print_size = sizeof t->fingerprint,
                            payload_size = sizeof payload - 1;
    /* The last three are of paid_insert_sql alone. */
    MYSQL_BIND binds[11] = {hand_text(t->cust, &sizes[0]),
                            hand_text(t->serial, &sizes[1]),
                            bytes_bind(thread, &uuid_size),
                            bytes_bind(service, &uuid_size),
                            bytes_bind(t->token.ask, &uuid_size),
                            {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &t->fence},
                            bytes_bind(t->fingerprint, &print_size),
                            bytes_bind(payload, &payload_size),
                            hand_text(channel_key, &sizes[2]),
                            {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &amount_minor},
                            hand_text(currency, &sizes[3])};

    hand_execute(statements[at][which], binds);
}

void hand_insert_payment(unsigned at, trade *t)
{
    run_insert(at, PAID_INSERT, t);
}

void hand_end(unsigned at, trade *t)
{
    unsigned long sizes[2], token_size = sizeof(uuid_t);
    MYSQL_BIND binds[5] = {bytes_bind(t->token.end, &token_size),
                           hand_text(t->cust, &sizes[0]),
                           hand_text(t->serial, &sizes[1]),
                           {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &t->fence},
                           bytes_bind(t->token.ask, &token_size)};

    hand_execute(statements[at][UPDATE], binds);
    if (mysql_stmt_affected_rows(statements[at][UPDATE]) != 1)
        bench_fail("the compare-and-set was refused");
}

static int cycle(unsigned caller, uint64_t number)
{
    MYSQL *connection;
    unsigned at;
    trade t;

    hand_trade(&t, caller, number);
    at = sql_take(&connection);
    run_insert(at, INSERT, &t);
    sql_give(at);
    at = sql_take(&connection);
    hand_end(at, &t);
    sql_give(at);
    return 1;
}

const contestant contestant_handwritten = {
    .name = "handwritten",
    .what = "prepared INSERT and UPDATE in autocommit, the same rows",
    .open = open_pool,
    .cycle = cycle,
    .close = hand_close};

static int workflow_cycle(unsigned caller, uint64_t number)
{
    MYSQL *connection;
    unsigned at;
    trade t;

    hand_trade(&t, caller, number);
    at = sql_take(&connection);
    sql_run(connection, "START TRANSACTION");
    hand_insert_payment(at, &t);
    sql_run(connection, "INSERT INTO bench_order (amount) VALUES (10000)");
    sql_run(connection, "COMMIT");
    sql_give(at);
    at = sql_take(&connection);
    sql_run(connection, "START TRANSACTION");
    hand_end(at, &t);
    sql_run(connection, "INSERT INTO bench_ledger (amount) VALUES (10000)");
    sql_run(connection, "COMMIT");
    sql_give(at);
    return 1;
}

const contestant contestant_workflow_hand = {.name = "workflow-hand",
                                             .what = "the transactions of `workflow`, hand-written",
                                             .open = open_pool,
                                             .cycle = workflow_cycle,
                                             .close = hand_close};

/* -------------------------------------------------- reading one key, for refusals -- */

/* The contended key's row, as nobody holds it. */
static void make_hot_row(void)
{
    char serial[64], cust[32];
    MYSQL *connection;
    unsigned at = sql_take(&connection);

    bench_key(0, 0, serial, cust);
    sql_runf(connection,
             "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
             "thread_no, token, fence, rev, created_at, updated_at) VALUES ('%s', '%s', "
             "'WITHDRAW', 'S', 'Y', 'ask', '01234567-89ab-4cde-8f01-23456789abcd', "
             "REPEAT('t', 16), 1, 1, NOW(6), NOW(6))",
             cust, serial);
    sql_give(at);
}

static int open_select(const bench_options *options)
{
    open_pool(options);
    make_hot_row();
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
        MYSQL_BIND binds[2] = {hand_text(cust, &sizes[0]), hand_text(serial, &sizes[1])};
        MYSQL_STMT *select = statements[at][SELECT];

        hand_execute(select, binds);
        if (mysql_stmt_store_result(select) != 0 || mysql_stmt_num_rows(select) != 1)
            bench_fail("the row was not read");
        mysql_stmt_free_result(select);
    }
    sql_give(at);
    return 1;
}

const contestant contestant_select = {.name = "select",
                                      .what = "prepared SELECT of one key that is held",
                                      .open = open_select,
                                      .cycle = select_cycle,
                                      .close = hand_close};
