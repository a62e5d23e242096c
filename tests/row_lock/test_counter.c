/*
 * A counter that many processes raise in transactions by a plain read, a pause and a
 * write: only the row lock keeps it right.  Without it the counter must go wrong, or this
 * would prove nothing.
 */
#include "lease/fixture.h"

#include <tradelock/row_lock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 8
#define ROUNDS_LONG 10000
#define ROUNDS (ROUNDS_LONG / 20)

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "session_ms=60s\n");
    database_run(f.sql, "CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT NOT NULL)");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int rounds(void)
{
    const char *text = getenv("TL_TEST_LONG");

    return text != NULL && text[0] != '\0' ? ROUNDS_LONG : ROUNDS;
}

/* The lock comes before the first read: a snapshot of REPEATABLE READ would begin with
 * that, and be old by the time the lock is there. */
static int count_up(int with_lock, int times)
{
    tl_client *client = client_new(&f);
    MYSQL *caller = database_connect(f.db);
    int good = 0;

    database_run(caller, "SET idle_transaction_timeout = 600, "
                         "innodb_lock_wait_timeout = 600");
    for (; good < times; good++) {
        long long n;

        database_run(caller, "START TRANSACTION");
        if (with_lock &&
            tl_row_lock(client, "counter", caller, TL_ROW_LOCK_BLOCK, 0) != TL_GRANTED) {
            print_error("round %d: %s\n", good, tl_error_message());
            break;
        }
        n = database_number(caller, "SELECT n FROM counter WHERE id = 1");
        usleep(100);
        database_run(caller, "UPDATE counter SET n = %lld WHERE id = 1", n + 1);
        database_run(caller, "COMMIT");
    }
    mysql_close(caller);
    tl_client_close(client);
    return good == times;
}

static long long count_with_processes(int with_lock, int times)
{
    pid_t pids[PROCESSES];

    database_run(f.sql, "REPLACE INTO counter VALUES (1, 0)");
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(count_up(with_lock, times) ? 0 : 1);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    return database_number(f.sql, "SELECT n FROM counter WHERE id = 1");
}

static void test_no_update_is_lost(void **state)
{
    int times = rounds();
    int64_t begun_ms = now_ms();

    (void)state;
    assert_int_equal(count_with_processes(1, times), (long long)PROCESSES * times);
    print_message("%d processes x %d rounds in %lld ms\n", PROCESSES, times,
                  (long long)(now_ms() - begun_ms));
}

static void test_without_the_lock_updates_are_lost(void **state)
{
    (void)state;
    assert_true(count_with_processes(0, 200) < PROCESSES * 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_update_is_lost),
        cmocka_unit_test(test_without_the_lock_updates_are_lost),
    };

    return server_report(cmocka_run_group_tests(tests, setup, teardown));
}
