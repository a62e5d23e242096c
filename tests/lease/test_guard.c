/* The guard in transactions that the server undid, and in any isolation. */
#include "fixture.h"
#include "support/client.h"
#include "support/crew.h"
#include "support/theme.h"

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, "beat_ms=1s\nsession_ms=30s\n");
    database_run(f.sql, "CREATE TABLE account (id INT PRIMARY KEY, cents BIGINT NOT NULL)");
}

FIXTURE(teardown)
{
    fixture_close(&f);
}

/* The server undid the transaction, and the caller has not noticed. */
TEST(test_a_transaction_that_is_gone)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "a5", &options);
    MYSQL *one = caller_new(&f), *two = caller_new(&f);
    long long deadlocks = server_counter(&f, "Innodb_deadlocks");

    database_run(f.sql, "REPLACE INTO account VALUES (1, 1), (2, 1)");
    caller_run(one, "UPDATE account SET cents = 2 WHERE id = 1");
    caller_run(two, "UPDATE account SET cents = 2 WHERE id = 2");
    assert_int_equal(mysql_send_query(one, "UPDATE account SET cents = 3 WHERE id = 2", 41), 0);
    crew_sleep_ms(100);
    if (mysql_query(two, "UPDATE account SET cents = 3 WHERE id = 1") == 0) {
        MYSQL *swap = one;

        one = two;
        two = swap;
        assert_int_not_equal(mysql_read_query_result(two), 0);
    }
    assert_int_equal(mysql_errno(two), 1213);
    /* The counter that the test of transfers relies on does count. */
    assert_true(server_counter(&f, "Innodb_deadlocks") > deadlocks);
    assert_status(tl_mutex_guard(mutex, two, 0), TL_NO_TRANSACTION);
    mysql_close(one);
    mysql_close(two);
    tl_mutex_free(mutex);
}

static uint64_t beats_of(const tl_client *client)
{
    return stats_of(client).beats;
}

/* Whatever the isolation, an open guarded transaction stops neither heartbeats nor the locks of
 * others. */
static void guard_at(const char *isolation)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "a6", &options);
    MYSQL *caller = database_connect(f.db);
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;
    uint64_t beats;

    database_run(caller,
                 "SET idle_transaction_timeout = 120;"
                 "SET TRANSACTION ISOLATION LEVEL %s; START TRANSACTION",
                 isolation);
    database_number(caller, "SELECT COUNT(*) FROM account");
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    beats = beats_of(f.client);
    crew_sleep_ms(3000);
    while (beats_of(f.client) < beats + 3 && crew_now_ms() < until_ms)
        crew_sleep_ms(10);
    assert_true(beats_of(f.client) >= beats + 3);
    assert_true(tl_client_alive_ms(f.client) > 500);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    assert_status(try_once(f.other, "a6"), TL_BUSY);
    assert_status(try_once(f.other, "a6-other"), TL_GRANTED);
    database_run(caller, "COMMIT");
    mysql_close(caller);
    tl_mutex_free(mutex);
}

TEST(test_isolation_levels)
{
    guard_at("REPEATABLE READ");
    guard_at("SERIALIZABLE");
}

TESTS_OF(guard, setup, teardown)
