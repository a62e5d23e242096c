/*
 * What a callback does to the transaction in which it runs, and what is left of that for the next
 * trade: they all share one connection here.
 */
#include "fixture.h"
#include "support/theme.h"

#include <tradelock/callback.h>

#include <pthread.h>
#include <stdatomic.h>

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, "business_pool_size=1\nbusiness_lock_wait_s=30s\n");
    database_run(f.sql, "CREATE TABLE ledger (note VARCHAR(20) NOT NULL) ENGINE=InnoDB;"
                        "CREATE TABLE account (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;"
                        "INSERT INTO account SELECT seq, 0 FROM seq_1_to_100");
}

FIXTURE(teardown)
{
    assert_log_whole(&f);
    fixture_close(&f);
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
    assert_int_not_equal(mysql_query(connection, "UPDATE account SET n = n + 1 WHERE id = 2"), 0);
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
    tl_lock *lock = lock_new(f.client, serial, "c1", SYNC);
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

TEST(test_what_is_run_again_is_run_as_a_whole)
{
    char serial[32];

    for (unsigned i = 0; i < sizeof again / sizeof again[0]; i++)
        for (int at_the_end = 0; at_the_end < 2; at_the_end++) {
            struct work asking = {.note = "ordered"}, ending = {.note = "booked"};
            struct work *meddling = at_the_end ? &ending : &asking;
            tl_lock *lock;

            meddling->meddle = again[i];
            meddling->then = TL_TRY_AGAIN;
            snprintf(serial, sizeof serial, "again-%u-%d", i, at_the_end);
            database_run(f.sql, "DELETE FROM ledger");
            lock = lock_new(f.client, serial, "c1", SYNC);
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
TEST(test_the_next_trade_is_not_concerned)
{
    static const tl_status answers[] = {TL_OK, TL_REFUSED, TL_SERVER_ERROR};
    char serial[32];

    for (unsigned i = 0; i < sizeof givers_up / sizeof givers_up[0]; i++)
        for (unsigned j = 0; j < sizeof answers / sizeof answers[0]; j++) {
            struct work asking = {.note = "ordered", .meddle = givers_up[i], .then = answers[j]};
            tl_lock *lock;

            snprintf(serial, sizeof serial, "up-%u-%u", i, j);
            database_run(f.sql, "DELETE FROM ledger");
            lock = lock_new(f.client, serial, "c1", SYNC);
            assert_status(tl_lock_ask_with(lock, do_work, &asking, 0), TL_CALLBACK_FAILED);
            assert_int_equal(asking.runs, 1);
            assert_int_equal(notes("stray"), 0);
            tl_lock_free(lock);
            snprintf(serial, sizeof serial, "after-%u-%u", i, j);
            pay_innocently(serial);
        }
}

/* Nothing can be sent behind them: it is not run again in vain, and told in its own words. */
TEST(test_results_that_nobody_read)
{
    static const struct {
        tl_status then, told;
        const char *sentence;
    } cases[] = {
        {TL_OK, TL_CALLBACK_FAILED, "left results unread"},
        {TL_SERVER_ERROR, TL_CALLBACK_FAILED, "TL_SERVER_ERROR"},
        {TL_REFUSED, TL_REFUSED, "refused"},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct work asking = {.note = "ordered", .meddle = leave_unread, .then = cases[i].then};
        tl_lock *lock;
        const struct text serial = text_of("unread-%u", i);

        lock = lock_new(f.client, serial.is, "c1", SYNC);
        assert_status(tl_lock_ask_with(lock, do_work, &asking, 0), cases[i].told);
        assert_non_null(strstr(tl_error_message(), cases[i].sentence));
        assert_int_equal(asking.runs, 1);
        assert_row(&f, serial.is, "c1", "WITHDRAW", "-");
        tl_lock_free(lock);
        pay_innocently(serial.is);
    }
}

static void (*const committers[])(MYSQL *) = {
    commit, autocommit, begin_anew, commit_and_kill, commit_and_deadlock,
};

/* Ends the lock's statement alone, and says so to nobody. */
static void commit_alone(void (*by)(MYSQL *), tl_status then, int at_the_end)
{
    struct work asking = {.note = "ordered"}, ending = {.note = "booked"};
    struct work *meddling = at_the_end ? &ending : &asking;
    static int number;
    char serial[32];
    tl_lock *lock;

    meddling->meddle = by;
    meddling->then = then;
    snprintf(serial, sizeof serial, "alone-%d", ++number);
    database_run(f.sql, "DELETE FROM ledger");
    lock = lock_new(f.client, serial, "c1", SYNC);
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
TEST(test_what_was_committed_alone_is_told)
{
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
    {ask_with_rows, ask_with_rows}, {ask_with_rows, ask_plainly}, {end_with_rows, end_with_rows},
    {end_with_rows, end_plainly},   {end_with_rows, settle_it},
};

/* Nor when it takes a later call to find out. */
TEST(test_what_was_committed_alone_is_told_later)
{
    tl_client *hasty;

    in_the_way = database_connect(f.db);
    database_set(f.db, "business_pool_size=1\ncommit_ms=500ms\n");
    hasty = client_new(&f, TL_CLIENT_NO_JANITOR);
    for (unsigned i = 0; i < sizeof later_calls / sizeof later_calls[0]; i++) {
        struct work work = {
            .note = "ordered", .meddle = commit_and_lose_sight, .then = TL_SERVER_ERROR};
        tl_lock *lock;

        lock = lock_new(hasty, text_of("later-%u", i).is, "c1", SYNC);
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

/* ------------------------------------------------- what is left of the session -- */

/* Of a session, as whoever is lent it finds it: all that it could change but the numbers that every
 * statement sets, and whether its clock is the server's. */
static const char session_text[] =
    "SELECT CONCAT_WS(' ', DATABASE(), CURRENT_ROLE(),"
    " ABS(TIMESTAMPDIFF(MINUTE, SYSDATE(), NOW())), @left_behind,"
    " GROUP_CONCAT(VARIABLE_NAME, '=', VARIABLE_VALUE ORDER BY VARIABLE_NAME))"
    " FROM information_schema.SESSION_VARIABLES WHERE VARIABLE_NAME NOT IN ('IDENTITY',"
    " 'ERROR_COUNT', 'IN_TRANSACTION', 'INSERT_ID', 'LAST_INSERT_ID', 'PSEUDO_THREAD_ID',"
    " 'RAND_SEED1', 'RAND_SEED2', 'TIMESTAMP', 'WARNING_COUNT')"
    " AND VARIABLE_NAME NOT LIKE 'GTID_%' AND VARIABLE_NAME NOT LIKE 'LAST_GTID%'";

struct meddling {
    const char *sql; /* or NULL; what fails in it is the callback's affair */
    tl_status then;
    char *session; /* as it was found */
    int runs;
};

static char *session_of(MYSQL *connection)
{
    MYSQL_RES *rows;
    char *text;

    if (mysql_query(connection, session_text) != 0)
        fail_msg("%s", mysql_error(connection));
    rows = mysql_store_result(connection);
    text = strdup(mysql_fetch_row(rows)[0]);
    mysql_free_result(rows);
    return text;
}

static tl_status look_and_meddle(void *context, struct st_mysql *connection)
{
    struct meddling *self = context;

    free(self->session);
    self->session = session_of(connection);
    if (self->runs++ > 0 || self->sql == NULL)
        return TL_OK;
    if (mysql_query(connection, self->sql) == 0)
        mysql_free_result(mysql_store_result(connection));
    return self->then;
}

static const char *const meddlings[] = {
    "SET timestamp = 1000000000",
    "SET time_zone = '+05:00'",
    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    "SET SESSION TRANSACTION READ ONLY",
    "SET innodb_lock_wait_timeout = 1",
    "SET lock_wait_timeout = 86400",
    "SET sql_mode = ''",
    "SET sql_mode = 'ORACLE'",
    "SET idle_transaction_timeout = 0",
    "SET max_statement_time = 1000",
    "SET sql_select_limit = 1",
    "SET foreign_key_checks = 0, unique_checks = 0, check_constraint_checks = 0",
    "SET completion_type = 'CHAIN'",
    "SET optimizer_switch = 'mrr=on'",
    "SET NAMES latin1",
    "SET @left_behind = 1",
    "SET session_track_system_variables = '', session_track_state_change = 0",
    "SET STATEMENT max_statement_time = 1000 FOR SET time_zone = '+05:00'",
    "USE information_schema",
    "SET ROLE less",
    "CREATE TEMPORARY TABLE trade_lock LIKE account",
    "CALL set_and_fail(1000000000, 30)",
    "CALL set_and_fail(0, 1)",
    "SELECT set_the_clock()",
    "INSERT INTO hurried VALUES (1)",
};

static tl_status ask_and_meddle(const char *serial, struct meddling *meddling)
{
    tl_lock *lock = lock_new(f.client, serial, "c1", SYNC);
    tl_status status = tl_lock_ask_with(lock, look_and_meddle, meddling, 0);

    tl_lock_free(lock);
    return status;
}

static void assert_same_session(const char *first, const char *next, const char *after)
{
    size_t at = 0;

    while (first[at] != '\0' && first[at] == next[at])
        at++;
    if (first[at] != next[at])
        fail_msg("after %s: %.60s, not %.60s", after, next + (at > 30 ? at - 30 : 0),
                 first + (at > 30 ? at - 30 : 0));
}

/* Whatever a callback did to its session and answered, the next trade finds one as it was. */
TEST(test_the_next_trade_has_a_session_of_its_own)
{
    static const tl_status answers[] = {TL_OK, TL_REFUSED, TL_TRY_AGAIN, TL_SERVER_ERROR};
    static const tl_status told[] = {TL_GRANTED, TL_REFUSED, TL_GRANTED, TL_CALLBACK_FAILED};
    struct meddling first = {.then = TL_OK};
    char serial[40];

    database_run(f.sql, "CREATE ROLE IF NOT EXISTS less;"
                        "CREATE TABLE hurried (n INT) ENGINE=InnoDB;"
                        "CREATE FUNCTION set_the_clock() RETURNS INT BEGIN SET timestamp = 5;"
                        " RETURN 1; END;"
                        "CREATE PROCEDURE set_and_fail(t INT, w INT) BEGIN SET timestamp = t;"
                        " SET innodb_lock_wait_timeout = w; SIGNAL SQLSTATE '45000'; END;"
                        "CREATE TRIGGER hurry BEFORE INSERT ON hurried FOR EACH ROW"
                        " SET SESSION lock_wait_timeout = 86400");
    assert_status(ask_and_meddle("as-made", &first), TL_GRANTED);
    for (unsigned i = 0; i < sizeof meddlings / sizeof *meddlings; i++)
        /* In turns all four answers, or TL_OK and one more. */
        for (unsigned j = 0; j < sizeof answers / sizeof *answers; j += 1 + i % 3) {
            struct meddling meddling = {.sql = meddlings[i], .then = answers[j]};
            struct meddling next = {.then = TL_OK};

            snprintf(serial, sizeof serial, "meddles-%u-%u", i, j);
            assert_status(ask_and_meddle(serial, &meddling), told[j]);
            snprintf(serial, sizeof serial, "is-next-%u-%u", i, j);
            assert_status(ask_and_meddle(serial, &next), TL_GRANTED);
            assert_row(&f, serial, "c1", "WITHDRAW", "P 1 1");
            assert_same_session(first.session, next.session, meddlings[i]);
            free(meddling.session);
            free(next.session);
        }
    database_expect(f.sql, 0,
                    "SELECT COUNT(*) FROM trade_lock WHERE ABS(TIMESTAMPDIFF(MINUTE, created_at, "
                    "UTC_TIMESTAMP())) > 30");
    free(first.session);
}

/* An ordinary callback costs no connection. */
TEST(test_an_innocent_callback_keeps_its_connection)
{
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;

    pay_innocently("keeps-it");
    assert_status(tl_client_stats(f.client, &before), TL_OK);
    for (int i = 0; i < 20; i++)
        pay_innocently(text_of("keeps-it-%d", i).is);
    assert_status(tl_client_stats(f.client, &after), TL_OK);
    assert_int_equal(after.reconnects, before.reconnects);
}

static void release_all(MYSQL *connection)
{
    say(connection, "SELECT RELEASE_ALL_LOCKS()");
}

/* By its name others find out whether a commit may still be under way: without it none is tried,
 * and nobody else gets such a connection. */
TEST(test_a_connection_without_its_name_commits_nothing)
{
    static const tl_status answers[] = {TL_OK, TL_REFUSED, TL_TRY_AGAIN, TL_SERVER_ERROR};
    static const tl_status told[] = {TL_CALLBACK_FAILED, TL_REFUSED, TL_SUCCEEDED,
                                     TL_CALLBACK_FAILED};
    char serial[40];

    for (unsigned i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct work asking = {.note = "ordered", .meddle = release_all, .then = answers[i]};
        struct work ending = {.note = "booked"};
        tl_stats before = {.version = TL_STATS_VERSION}, after = before;
        tl_lock *lock;

        snprintf(serial, sizeof serial, "nameless-%u", i);
        database_run(f.sql, "DELETE FROM ledger");
        lock = lock_new(f.client, serial, "c1", SYNC);
        assert_status(tl_client_stats(f.client, &before), TL_OK);
        assert_status(pay(lock, &asking, &ending), told[i]);
        assert_row(&f, serial, "c1", "WITHDRAW", told[i] == TL_SUCCEEDED ? "Y 1 1" : "-");
        assert_int_equal(notes("ordered"), told[i] == TL_SUCCEEDED);
        tl_lock_free(lock);
        snprintf(serial, sizeof serial, "named-%u", i);
        pay_innocently(serial);
        assert_status(tl_client_stats(f.client, &after), TL_OK);
        assert_true(after.reconnects > before.reconnects);
    }
}

/* An ask waits for nobody, whatever rows the callback may wait for. */
TEST(test_a_row_that_is_taken)
{
    tl_lock *holder = granted(f.client, "taken", "c1", SYNC);
    tl_lock *lock = lock_new(f.client, "taken", "c1", SYNC);
    struct work asking = {.note = "ordered"};
    MYSQL *other = database_connect(f.db);

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

TESTS_OF(callbacks, setup, teardown)
