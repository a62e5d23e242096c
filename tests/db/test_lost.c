/* Answers that are lost, and requests that never left. */
#include "common.h"
#include "proxy.h"
#include "support/theme.h"

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

static server *own;
static database *base;
static MYSQL *plain;
static proxy *between;
static char *through; /* option file that leads through the proxy */

FIXTURE(set_up)
{
    own = server_start(NULL);
    base = database_new_empty(own, NULL);
    plain = database_connect(base);
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY, n INT);"
                        "INSERT INTO t VALUES (1, 0)");
    between = proxy_start(server_socket(own));
    through = database_option_file_at(base, proxy_socket(between), NULL);
}

FIXTURE(tear_down)
{
    free(through);
    proxy_free(between);
    mysql_close(plain);
    database_free(base);
    server_free(own);
}

STATEMENT(insert_row, "INSERT INTO t VALUES (?, 7) RETURNING id, n");
STATEMENT(add_one, "UPDATE t SET n = n + 1 WHERE id = ?");

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int has_row(int id)
{
    return (int)database_number(plain, "SELECT COUNT(*) FROM t WHERE id = %d", id);
}

static void wait_until_gone(uint64_t thread_id)
{
    int tries;

    for (tries = 0; tries < 6000; tries++) {
        if (!database_number(plain,
                             "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                             "WHERE ID = %llu",
                             (unsigned long long)thread_id))
            return;
        usleep(10000);
    }
    fail_msg("connection %llu does not end", (unsigned long long)thread_id);
}

static void expect_broken(db *connection)
{
    db_value one = db_int(1);

    assert_false(db_usable(connection));
    assert_false(db_alive(connection));
    EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_NOT_SENT);
    EXPECT(connection, db_commit(connection), DB_NOT_SENT);
    EXPECT(connection, db_rollback(connection), DB_NOT_SENT);
}

static void lose_insert(int id, proxy_cut cut, int there)
{
    db *connection = open_at(through);
    db_value value = db_int(1000 + id);
    db_result result = DB_RESULT_INIT;
    uint64_t thread_id = db_thread_id(connection);

    EXPECT(connection, db_run(connection, &insert_row, &value, 1, NULL), DB_DONE);
    value = db_int(id);
    proxy_set(between, cut);
    EXPECT(connection, db_run(connection, &insert_row, &value, 1, &result), DB_UNANSWERED);
    assert_int_equal(db_error_status(connection, DB_UNANSWERED, "asking"), TL_UNKNOWN);
    expect_message("asking: the answer was lost");
    /* Of a read nobody need fear that it happened. */
    assert_int_equal(db_read_status(connection, DB_UNANSWERED, "asking"), TL_UNREACHABLE);
    assert_null(strstr(tl_error_message(), "may have happened"));
    wait_until_gone(thread_id);
    assert_int_equal(has_row(id), there);
    expect_broken(connection);
    db_close(connection);
    db_result_free(&result);
}

TEST(a_lost_answer_is_neither_yes_nor_no)
{
    lose_insert(10, PROXY_CUT_REQUEST, 0);
    lose_insert(11, PROXY_CUT_ANSWER, 1);
    /* The row of RETURNING was read; the packet that ends the result was not. */
    lose_insert(12, PROXY_CUT_TAIL, 1);
}

static void lose_preparing(proxy_cut cut, int within, db_answer expected)
{
    db *connection = open_at(through);
    db_value value = db_int(19);
    uint64_t thread_id = db_thread_id(connection);

    if (within)
        EXPECT(connection, db_begin(connection), DB_DONE);
    proxy_set(between, cut);
    EXPECT(connection, db_run(connection, &insert_row, &value, 1, NULL), expected);
    wait_until_gone(thread_id);
    assert_int_equal(has_row(19), 0);
    expect_broken(connection);
    db_close(connection);
}

/* But a transaction may stand open, and holds what it has locked. */
TEST(what_was_only_prepared_was_not_sent)
{
    lose_preparing(PROXY_CUT_REQUEST, 0, DB_NOT_SENT);
    lose_preparing(PROXY_CUT_ANSWER, 0, DB_NOT_SENT);
    lose_preparing(PROXY_CUT_REQUEST, 1, DB_UNANSWERED);
    lose_preparing(PROXY_CUT_ANSWER, 1, DB_UNANSWERED);
}

static void lose_commit(int id, proxy_cut cut, int there)
{
    db *connection = open_at(through);
    db_value value = db_int(id);
    uint64_t thread_id = db_thread_id(connection);

    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_run(connection, &insert_row, &value, 1, NULL), DB_DONE);
    proxy_set(between, cut);
    EXPECT(connection, db_commit(connection), DB_UNANSWERED);
    wait_until_gone(thread_id);
    assert_int_equal(has_row(id), there);
    expect_broken(connection);
    db_close(connection);
}

TEST(a_lost_commit_is_neither_yes_nor_no)
{
    lose_commit(20, PROXY_CUT_REQUEST, 0);
    lose_commit(21, PROXY_CUT_ANSWER, 1);
}

TEST(one_turn_for_a_statement)
{
    db *connection;
    db_value value = db_int(1);
    unsigned before = proxy_turns(between);

    connection = open_at(through);
    /* The server speaks first; then log-in, session and name. */
    assert_int_equal(proxy_turns(between) - before, 3);
    before = proxy_turns(between);
    EXPECT(connection, db_run(connection, &add_one, &value, 1, NULL), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 2); /* prepared and run */
    before = proxy_turns(between);
    EXPECT(connection, db_run(connection, &add_one, &value, 1, NULL), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 1);
    EXPECT(connection, db_run_nowait(connection, &add_one, &value, 1, NULL), DB_DONE);
    EXPECT(connection, db_run_nowait(connection, &add_one, &value, 1, NULL), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 4);
    assert_true(db_alive(connection));
    assert_true(db_usable(connection));
    assert_int_equal(proxy_turns(between) - before, 4);
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_commit(connection), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 6);
    before = proxy_turns(between);
    /* The commit is prepared, and the savepoint set; it begins already prepared. */
    EXPECT(connection, db_callback_tx_begin(connection, &add_one, &value, 1, 0, NULL), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 3);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    EXPECT(connection, db_callback_tx_begin(connection, &add_one, &value, 1, 0, NULL), DB_DONE);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    EXPECT(connection, db_callback_tx_begin(connection, &add_one, &value, 1, 0, NULL), DB_DONE);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 8);
    /* Autocommit is switched on again. */
    EXPECT(connection, db_run(connection, &add_one, &value, 1, NULL), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 10);
    EXPECT(connection, db_run(connection, &add_one, &value, 1, NULL), DB_DONE);
    assert_int_equal(proxy_turns(between) - before, 11);
    db_close(connection);
}

static long long session_number(db *connection, const char *name)
{
    char sql[96];
    db_result result = DB_RESULT_INIT;
    long long number;

    snprintf(sql, sizeof(sql), "SHOW SESSION STATUS LIKE '%s'", name);
    EXPECT(connection, run_sql(connection, sql, &result), DB_DONE);
    number = db_get_int(&result, 0, 1);
    db_result_free(&result);
    return number;
}

TEST(the_server_counts_the_same)
{
    db *connection = open_at(database_option_file(base));
    db_value value = db_int(1);
    int i;

    for (i = 0; i < 5; i++)
        EXPECT(connection, db_run(connection, &add_one, &value, 1, NULL), DB_DONE);
    assert_int_equal(session_number(connection, "Com_stmt_prepare"), 1);
    assert_int_equal(session_number(connection, "Com_stmt_execute"), 5);
    assert_int_equal(session_number(connection, "Com_update"), 5);
    assert_int_equal(session_number(connection, "Com_commit"), 0);
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_commit(connection), DB_DONE);
    assert_int_equal(session_number(connection, "Com_begin"), 1);
    assert_int_equal(session_number(connection, "Com_commit"), 1);
    assert_int_equal(db_count(connection)->commits, 1);
    db_close(connection);
}

TEST(a_connection_killed_while_idle_sends_nothing)
{
    db *connection = open_at(database_option_file(base));
    db_value value = db_int(30);

    assert_true(db_alive(connection));
    assert_true(db_ping(connection));
    database_run(plain, "KILL %llu", (unsigned long long)db_thread_id(connection));
    wait_until_gone(db_thread_id(connection));
    assert_false(db_alive(connection));
    EXPECT(connection, db_run(connection, &insert_row, &value, 1, NULL), DB_NOT_SENT);
    assert_int_equal(db_error_status(connection, DB_NOT_SENT, "asking"), TL_UNREACHABLE);
    expect_message("asking: nothing was sent, since the server had closed the connection");
    assert_int_equal(has_row(30), 0);
    assert_false(db_ping(connection));
    expect_broken(connection);
    db_close(connection);
}

struct slow_call {
    db *connection;
    const char *sql;
    db_answer answer;
    pthread_t thread;
};

static void *slow(void *context)
{
    struct slow_call *call = context;

    call->answer = run_sql(call->connection, call->sql, NULL);
    return NULL;
}

static void start_slow(struct slow_call *call)
{
    int tries;

    assert_int_equal(pthread_create(&call->thread, NULL, slow, call), 0);
    for (tries = 0; tries < 6000; tries++) {
        if (database_number(plain,
                            "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                            "WHERE ID = %llu AND STATE = 'User sleep'",
                            (unsigned long long)db_thread_id(call->connection)))
            return;
        usleep(10000);
    }
    fail_msg("the slow statement does not start");
}

#define SLOW "UPDATE t SET n = n + 1 WHERE id = 1 AND SLEEP(20) = 0"

/* A killed connection may end before its error has left the server. */
static void kill_slow(const char *how, int in_transaction, int usable)
{
    struct slow_call call = {.connection = open_at(database_option_file(base)), .sql = SLOW};

    if (in_transaction)
        EXPECT(call.connection, db_begin(call.connection), DB_DONE);
    start_slow(&call);
    database_run(plain, "%s %llu", how, (unsigned long long)db_thread_id(call.connection));
    pthread_join(call.thread, NULL);
    assert_int_equal(db_error_kind_of(db_errno(call.connection)), DB_KIND_GONE);
    if (!in_transaction)
        EXPECT(call.connection, call.answer, DB_UNANSWERED);
    else if (usable || call.answer != DB_UNANSWERED)
        EXPECT(call.connection, call.answer, DB_ERROR);
    if (usable)
        EXPECT(call.connection, db_rollback(call.connection), DB_DONE);
    assert_int_equal(db_usable(call.connection), usable);
    db_close(call.connection);
}

TEST(a_killed_statement)
{
    /* It might have committed: no proof. */
    kill_slow("KILL", 0, 0);
    kill_slow("KILL QUERY", 0, 0);
    /* Nothing is committed before COMMIT. */
    kill_slow("KILL", 1, 0);
    kill_slow("KILL QUERY", 1, 1);
}

/* A connection that does not wait longer than a second, and its statement prepared.  The disk may
 * take longer than that second: then another one. */
static db *open_impatient(void)
{
    db_options options = options_at(database_option_file(base));
    db *connection = NULL;
    db_value one = db_int(1);

    options.read_timeout_s = 1;
    for (;;) {
        if (db_open(&connection, &options) != TL_OK)
            continue;
        if (db_run(connection, &add_one, &one, 1, NULL) == DB_DONE)
            return connection;
        EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_NOT_SENT);
        wait_until_gone(db_thread_id(connection));
        db_close(connection);
    }
}

TEST(a_silent_server)
{
    db *connection = open_impatient();
    db_value one = db_int(1);
    db_answer answer;
    long long before;

    before = database_number(plain, "SELECT n FROM t WHERE id = 1");
    server_freeze(own);
    answer = db_run(connection, &add_one, &one, 1, NULL);
    server_thaw(own);
    EXPECT(connection, answer, DB_UNANSWERED);
    expect_broken(connection);
    wait_until_gone(db_thread_id(connection));
    /* The request was in the socket and was carried out after all. */
    assert_int_equal(database_number(plain, "SELECT n FROM t WHERE id = 1"), before + 1);
    db_close(connection);
}

/* A transaction with a row in it, on a connection that the server ends when such a one is silent
 * for a second; NULL when this thread was silent for so long itself. */
static db *begin_to_be_silent(int id)
{
    db_options options = options_at(database_option_file(base));
    db *connection;
    db_value value = db_int(id);
    int64_t begun_ms = now_ms();

    options.idle_transaction_s = 1;
    connection = open_with(&options);
    if (db_begin(connection) == DB_DONE &&
        db_run(connection, &insert_row, &value, 1, NULL) == DB_DONE)
        return connection;
    assert_true(now_ms() - begun_ms >= 1000);
    wait_until_gone(db_thread_id(connection));
    db_close(connection);
    return NULL;
}

TEST(a_silent_transaction_is_ended_by_the_server)
{
    db *connection = NULL;

    while (connection == NULL)
        connection = begin_to_be_silent(50);
    wait_until_gone(db_thread_id(connection));
    EXPECT(connection, db_commit(connection), DB_NOT_SENT);
    assert_int_equal(has_row(50), 0);
    db_close(connection);
}

/* The last: the server dies. */
#define TRIES_WHILE_DYING 6000

TEST(a_server_that_dies)
{
    struct slow_call call = {.connection = open_at(database_option_file(base)), .sql = SLOW};
    db *idle = open_at(database_option_file(base));
    db *fresh = NULL;
    db_value one = db_int(1);
    db_options options = options_at(database_option_file(base));

    start_slow(&call);
    mysql_close(plain);
    server_kill9(own);
    pthread_join(call.thread, NULL);
    EXPECT(call.connection, call.answer, DB_UNANSWERED);
    /* A dying process closes one socket after the other, and may listen for a while longer. */
    for (int i = 0; db_alive(idle) && i < TRIES_WHILE_DYING; i++)
        usleep(10 * 1000);
    EXPECT(idle, db_run(idle, &add_one, &one, 1, NULL), DB_NOT_SENT);
    for (int i = 0; i == 0 || (strstr(tl_error_message(), server_socket(own)) == NULL &&
                               i < TRIES_WHILE_DYING);
         i++) {
        usleep(10 * 1000);
        assert_int_equal(db_open(&fresh, &options), TL_UNREACHABLE);
        assert_null(fresh);
        expect_message("the server cannot be reached: ");
    }
    expect_message(server_socket(own));
    db_close(call.connection);
    db_close(idle);
    server_restart(own);
    plain = database_connect(base);
    fresh = open_with(&options);
    EXPECT(fresh, db_run(fresh, &add_one, &one, 1, NULL), DB_DONE);
    db_close(fresh);
}

TESTS_OF(lost, set_up, tear_down)
