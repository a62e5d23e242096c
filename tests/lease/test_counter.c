/*
 * A counter that many processes raise by reading it, pausing, and writing it back, each
 * statement for itself: only the lock keeps it right.  Without the lock it must go wrong,
 * or this would prove nothing.
 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 8
#define ROUNDS_LONG 10000
#define ROUNDS (ROUNDS_LONG / 20)

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "ask_wait_min_ms=1ms\nask_wait_max_ms=8ms\nsession_ms=60s\n");
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

static int raise_counter(MYSQL *connection)
{
    char sql[64];
    long long n = database_number(connection, "SELECT n FROM counter WHERE id = 1");

    usleep(100);
    snprintf(sql, sizeof sql, "UPDATE counter SET n = %lld WHERE id = 1", n + 1);
    return mysql_query(connection, sql) == 0;
}

static int count_up(int with_lock, int times)
{
    tl_mutex_options options = lease_options(0);
    tl_client *client = client_new(&f);
    tl_mutex *mutex = mutex_new(client, "counter", &options);
    MYSQL *connection = database_connect(f.db);
    int good = 0;

    for (int i = 0; i < times; i++) {
        if (with_lock && tl_mutex_lock(mutex, 600000) != TL_GRANTED)
            break;
        if (!raise_counter(connection))
            break;
        if (with_lock && tl_mutex_unlock(mutex) != TL_OK)
            break;
        good++;
    }
    mysql_close(connection);
    tl_mutex_free(mutex);
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
