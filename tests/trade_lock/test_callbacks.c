/*
 * What a callback does to the transaction in which it runs, and what is left of that for the next
 * trade: they all share one connection here.
 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "business_pool_size=1\nbusiness_lock_wait_s=30s\n");
    database_run(f.sql, "CREATE TABLE ledger (note VARCHAR(20) NOT NULL) ENGINE=InnoDB;"
                        "CREATE TABLE account (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;"
                        "INSERT INTO account SELECT seq, 0 FROM seq_1_to_100");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_log_whole(&f);
    fixture_close(&f);
    return 0;
}

/* ------------------------------------------------------------ what goes wrong inside -- */

struct work {
    const char *note;
    void (*meddle)(MYSQL *connection); /* the first time */
    tl_status then;
    int runs;
};

static void say(MYSQL *connection, const char *sql)
{
    MYSQL_RES *rows;

    if (mysql_query(connection, sql) != 0)
        fail_msg("%s: %s", sql, mysql_error(connection));
    rows = mysql_store_result(connection);
    mysql_free_result(rows);
}

static void roll_back(MYSQL *connection)
{
    assert_int_equal(mysql_rollback(connection), 0);
}

/* As some layers above a database do it with whatever they get back. */
static void roll_back_and_tidy(MYSQL *connection)
{
    assert_int_equal(mysql_rollback(connection), 0);
    assert_int_equal(mysql_autocommit(connection, 1), 0);
}

static void reset(MYSQL *connection)
{
    assert_int_equal(mysql_reset_connection(connection), 0);
}

static void commit(MYSQL *connection)
{
    assert_int_equal(mysql_commit(connection), 0);
}

/* Which commits what there is. */
static void autocommit(MYSQL *connection)
{
    assert_int_equal(mysql_autocommit(connection, 1), 0);
}

static void begin_anew(MYSQL *connection)
{
    say(connection, "START TRANSACTION");
}

static void kill_it(MYSQL *connection)
{
    database_run(f.sql, "KILL %lu", mysql_thread_id(connection));
    while (mysql_ping(connection) == 0)
        usleep(1000);
}

static void commit_and_kill(MYSQL *connection)
{
    commit(connection);
    say(connection, "INSERT INTO ledger VALUES ('stray')");
    kill_it(connection);
}

static void roll_back_and_lock_tables(MYSQL *connection)
{
    roll_back(connection);
    say(connection, "LOCK TABLES account WRITE");
}

static void leave_unread(MYSQL *connection)
{
    static const char sql[] = "SELECT 1 UNION SELECT 2";

    assert_int_equal(mysql_real_query(connection, sql, sizeof sql - 1), 0);
}

static void change_the_session(MYSQL *connection)
{
    say(connection, "SET SESSION TRANSACTION READ ONLY");
}

static atomic_int other_has_all;

/* It has changed more rows than the callback, which so becomes the victim. */
static void *want_the_other_row(void *unused)
{
    MYSQL *other = database_connect(f.db);

    (void)unused;
    database_run(other, "BEGIN; UPDATE account SET n = n + 1 WHERE id > 1");
    atomic_store(&other_has_all, 1);
    database_run(other, "UPDATE account SET n = n + 1 WHERE id = 1; COMMIT");
    mysql_close(other);
    return NULL;
}

static void meet_a_deadlock(MYSQL *connection)
{
    pthread_t thread;

    atomic_store(&other_has_all, 0);
    say(connection, "UPDATE account SET n = n + 1 WHERE id = 1");
    assert_int_equal(pthread_create(&thread, NULL, want_the_other_row, NULL), 0);
    while (!atomic_load(&other_has_all))
        usleep(1000);
    assert_int_not_equal(
        mysql_query(connection, "UPDATE account SET n = n + 1 WHERE id = 2"), 0);
    assert_int_equal(mysql_errno(connection), 1213);
    pthread_join(thread, NULL);
}

static void commit_and_deadlock(MYSQL *connection)
{
    commit(connection);
    meet_a_deadlock(connection);
}

static void deadlock_and_look(MYSQL *connection)
{
    meet_a_deadlock(connection);
    say(connection, "SHOW WARNINGS");
}

static void deadlock_and_write(MYSQL *connection)
{
    meet_a_deadlock(connection);
    say(connection, "INSERT INTO ledger VALUES ('stray')");
}

static void deadlock_and_roll_back(MYSQL *connection)
{
    meet_a_deadlock(connection);
    roll_back(connection);
}

static tl_status do_work(void *context, struct st_mysql *connection)
{
    struct work *self = context;
    char sql[100];

    if (self->runs++ == 0 && self->meddle != NULL) {
        self->meddle(connection);
        return self->then;
    }
    snprintf(sql, sizeof sql, "INSERT INTO ledger VALUES ('%s')", self->note);
    say(connection, sql);
    return TL_OK;
}

/* ---------------------------------------------------------------------- the trades -- */

static long long notes(const char *note)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM ledger WHERE note = '%s'", note);
}

static tl_status pay(tl_lock *lock, struct work *asking, struct work *ending)
{
    tl_ending success = TL_ENDING_INIT;
    tl_status status = tl_lock_ask_with(lock, do_work, asking, 0);

    if (status != TL_GRANTED)
        return status;
    success.outcome = TL_OUTCOME_SUCCESS;
    return tl_lock_finish_with(lock, &success, do_work, ending, 5000);
}

/* Each half has its rows, once, and nobody else's. */
static void pay_innocently(const char *serial)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock = lock_new(f.client, serial, "c1", &options);
    struct work asking = {.note = "ordered"}, ending = {.note = "booked"};

    database_run(f.sql, "DELETE FROM ledger");
    assert_status(pay(lock, &asking, &ending), TL_SUCCEEDED);
    assert_int_equal(asking.runs, 1);
    assert_int_equal(ending.runs, 1);
    assert_int_equal(notes("ordered"), 1);
    assert_int_equal(notes("booked"), 1);
    tl_lock_free(lock);
}

static void (*const again[])(MYSQL *) = {
    meet_a_deadlock,
    deadlock_and_look,
    deadlock_and_write,
    deadlock_and_roll_back,
    roll_back,
    roll_back_and_tidy,
    roll_back_and_lock_tables,
    leave_unread,
    kill_it,
    reset,
};

static void test_what_is_run_again_is_run_as_a_whole(void **state)
{
    char serial[32];

    (void)state;
    for (unsigned i = 0; i < sizeof again / sizeof again[0]; i++)
        for (int at_the_end = 0; at_the_end < 2; at_the_end++) {
            tl_lock_options options = sync_options("x");
            struct work asking = {.note = "ordered"}, ending = {.note = "booked"};
            struct work *meddling = at_the_end ? &ending : &asking;
            tl_lock *lock;

            meddling->meddle = again[i];
            meddling->then = TL_TRY_AGAIN;
            snprintf(serial, sizeof serial, "again-%u-%d", i, at_the_end);
            database_run(f.sql, "DELETE FROM ledger");
            lock = lock_new(f.client, serial, "c1", &options);
            assert_status(pay(lock, &asking, &ending), TL_SUCCEEDED);
            assert_int_equal(asking.runs + ending.runs, 3);
            assert_int_equal(notes("ordered"), 1);
            assert_int_equal(notes("booked"), 1);
            assert_int_equal(notes("stray"), 0);
            tl_lock_free(lock);
            snprintf(serial, sizeof serial, "innocent-%u-%d", i, at_the_end);
            pay_innocently(serial);
        }
}

static void (*const givers_up[])(MYSQL *) = {
    meet_a_deadlock,
    deadlock_and_look,
    deadlock_and_write,
    deadlock_and_roll_back,
    roll_back,
    roll_back_and_tidy,
    reset,
    commit,
};

/* It answers anything: what is left of its transaction concerns nobody else. */
static void test_the_next_trade_is_not_concerned(void **state)
{
    static const tl_status answers[] = {TL_OK, TL_REFUSED, TL_SERVER_ERROR};
    char serial[32];

    (void)state;
    for (unsigned i = 0; i < sizeof givers_up / sizeof givers_up[0]; i++)
        for (unsigned j = 0; j < sizeof answers / sizeof answers[0]; j++) {
            tl_lock_options options = sync_options("x");
            struct work asking = {
                .note = "ordered", .meddle = givers_up[i], .then = answers[j]};
            tl_lock *lock;

            snprintf(serial, sizeof serial, "up-%u-%u", i, j);
            database_run(f.sql, "DELETE FROM ledger");
            lock = lock_new(f.client, serial, "c1", &options);
            assert_status(tl_lock_ask_with(lock, do_work, &asking, 0),
                          TL_CALLBACK_FAILED);
            assert_int_equal(asking.runs, 1);
            assert_int_equal(notes("stray"), 0);
            tl_lock_free(lock);
            snprintf(serial, sizeof serial, "after-%u-%u", i, j);
            pay_innocently(serial);
        }
}

/* Nothing can be sent behind them: it is not run again in vain, and told in its own words. */
static void test_results_that_nobody_read(void **state)
{
    static const struct {
        tl_status then, told;
        const char *sentence;
    } cases[] = {
        {TL_OK, TL_CALLBACK_FAILED, "left results unread"},
        {TL_SERVER_ERROR, TL_CALLBACK_FAILED, "TL_SERVER_ERROR"},
        {TL_REFUSED, TL_REFUSED, "refused"},
    };
    char serial[32];

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tl_lock_options options = sync_options("x");
        struct work asking = {
            .note = "ordered", .meddle = leave_unread, .then = cases[i].then};
        tl_lock *lock;

        snprintf(serial, sizeof serial, "unread-%u", i);
        lock = lock_new(f.client, serial, "c1", &options);
        assert_status(tl_lock_ask_with(lock, do_work, &asking, 0), cases[i].told);
        assert_non_null(strstr(tl_error_message(), cases[i].sentence));
        assert_int_equal(asking.runs, 1);
        assert_row(&f, serial, "c1", "WITHDRAW", "-");
        tl_lock_free(lock);
        pay_innocently(serial);
    }
}

static void (*const committers[])(MYSQL *) = {
    commit, autocommit, begin_anew, commit_and_kill, commit_and_deadlock,
};

/* Ends the lock's statement alone, and says so to nobody. */
static void commit_alone(void (*by)(MYSQL *), tl_status then, int at_the_end)
{
    tl_lock_options options = sync_options("x");
    struct work asking = {.note = "ordered"}, ending = {.note = "booked"};
    struct work *meddling = at_the_end ? &ending : &asking;
    static int number;
    char serial[32];
    tl_lock *lock;

    meddling->meddle = by;
    meddling->then = then;
    snprintf(serial, sizeof serial, "alone-%d", ++number);
    database_run(f.sql, "DELETE FROM ledger");
    lock = lock_new(f.client, serial, "c1", &options);
    assert_status(pay(lock, &asking, &ending), TL_CALLBACK_FAILED);
    if (by == commit_and_kill || then == TL_TRY_AGAIN)
        assert_non_null(strstr(tl_error_message(), "without its business rows"));
    assert_int_equal(asking.runs + ending.runs, 1 + at_the_end);
    assert_int_equal(notes("stray"), 0);
    assert_row(&f, serial, "c1", "WITHDRAW", at_the_end ? "Y 1 1" : "P 1 1");
    tl_lock_free(lock);
    snprintf(serial, sizeof serial, "beside-%d", number);
    pay_innocently(serial);
}

/* It must not commit.  Where it does, nobody is told that the trade has its business rows. */
static void test_what_was_committed_alone_is_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof committers / sizeof committers[0]; i++)
        for (int at_the_end = 0; at_the_end < 2; at_the_end++) {
            commit_alone(committers[i], TL_TRY_AGAIN, at_the_end);
            commit_alone(committers[i], TL_OK, at_the_end);
        }
}

static MYSQL *in_the_way;

static void commit_and_lose_sight(MYSQL *connection)
{
    commit(connection);
    database_run(in_the_way, "LOCK TABLES trade_lock WRITE");
    kill_it(connection);
}

static tl_status ask_with_rows(tl_lock *lock, struct work *work)
{
    return tl_lock_ask_with(lock, do_work, work, 0);
}

static tl_status ask_plainly(tl_lock *lock, struct work *work)
{
    (void)work;
    return tl_lock_ask(lock, 0);
}

static tl_status end_with_rows(tl_lock *lock, struct work *work)
{
    tl_ending success = TL_ENDING_INIT;

    success.outcome = TL_OUTCOME_SUCCESS;
    return tl_lock_finish_with(lock, &success, do_work, work, 500);
}

static tl_status end_plainly(tl_lock *lock, struct work *work)
{
    (void)work;
    return finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE);
}

static tl_status settle_it(tl_lock *lock, struct work *work)
{
    (void)work;
    return tl_lock_settle(lock);
}

static const struct {
    tl_status (*first)(tl_lock *lock, struct work *work);
    tl_status (*later)(tl_lock *lock, struct work *work);
} later_calls[] = {
    {ask_with_rows, ask_with_rows}, {ask_with_rows, ask_plainly},
    {end_with_rows, end_with_rows}, {end_with_rows, end_plainly},
    {end_with_rows, settle_it},
};

/* Nor when it takes a later call to find out. */
static void test_what_was_committed_alone_is_told_later(void **state)
{
    tl_client *hasty;

    (void)state;
    in_the_way = database_connect(f.db);
    database_set(f.db, "business_pool_size=1\ncommit_ms=500ms\n");
    hasty = client_new(&f, TL_CLIENT_NO_JANITOR);
    for (unsigned i = 0; i < sizeof later_calls / sizeof later_calls[0]; i++) {
        tl_lock_options options = sync_options("x");
        struct work work = {
            .note = "ordered", .meddle = commit_and_lose_sight, .then = TL_SERVER_ERROR};
        char serial[32];
        tl_lock *lock;

        snprintf(serial, sizeof serial, "later-%u", i);
        lock = lock_new(hasty, serial, "c1", &options);
        if (later_calls[i].first == end_with_rows)
            assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_status(later_calls[i].first(lock, &work), TL_UNKNOWN);
        database_run(in_the_way, "UNLOCK TABLES");
        assert_status(later_calls[i].later(lock, &work), TL_CALLBACK_FAILED);
        assert_non_null(strstr(tl_error_message(), "without its business rows"));
        assert_int_equal(work.runs, 1);
        assert_false(tl_may_send(lock, 0));
        tl_lock_free(lock);
    }
    tl_client_close(hasty);
    mysql_close(in_the_way);
}

/* It must not do that either; what it breaks is one trade, not all that come after it. */
static void test_a_session_that_was_changed(void **state)
{
    tl_lock_options options = sync_options("x");
    struct work asking = {
        .note = "ordered", .meddle = change_the_session, .then = TL_REFUSED};
    tl_lock *first = lock_new(f.client, "changes", "c1", &options);
    tl_lock *second = lock_new(f.client, "suffers", "c1", &options);

    (void)state;
    assert_status(tl_lock_ask_with(first, do_work, &asking, 0), TL_REFUSED);
    assert_status(tl_lock_ask_with(second, do_work, &asking, 0), TL_READ_ONLY);
    tl_lock_free(first);
    tl_lock_free(second);
    pay_innocently("thrives");
}

/* An ask waits for nobody, whatever rows the callback may wait for. */
static void test_a_row_that_is_taken(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_lock *holder = granted(f.client, "taken", "c1", &options);
    tl_lock *lock = lock_new(f.client, "taken", "c1", &options);
    struct work asking = {.note = "ordered"};
    MYSQL *other = database_connect(f.db);

    (void)state;
    database_run(other, "BEGIN; UPDATE trade_lock SET remark = 'x' WHERE serial_no = "
                        "'taken'");
    assert_status(tl_lock_ask(lock, 0), TL_BUSY);
    assert_non_null(strstr(tl_error_message(), "decid"));
    assert_status(tl_lock_ask_with(lock, do_work, &asking, 0), TL_BUSY);
    assert_non_null(strstr(tl_error_message(), "decid"));
    assert_int_equal(asking.runs, 0);
    database_run(other, "ROLLBACK");
    mysql_close(other);
    tl_lock_free(lock);
    tl_lock_free(holder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_run_again_is_run_as_a_whole),
        cmocka_unit_test(test_the_next_trade_is_not_concerned),
        cmocka_unit_test(test_results_that_nobody_read),
        cmocka_unit_test(test_what_was_committed_alone_is_told),
        cmocka_unit_test(test_what_was_committed_alone_is_told_later),
        cmocka_unit_test(test_a_session_that_was_changed),
        cmocka_unit_test(test_a_row_that_is_taken),
    };

    return server_run_tests(tests, setup, teardown);
}
