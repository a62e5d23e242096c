#include "lease/counter.h"
#include "support/crew.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES_LONG 10000

int counter_times(void)
{
    return (int)tier_pick(TIMES_LONG / 100, TIMES_LONG / 20, TIMES_LONG);
}

void counter_make(const fixture *f)
{
    database_run(f->sql, "CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT NOT NULL)");
}

int counter_raise(MYSQL *connection)
{
    char sql[64];
    long long n = database_number(connection, "SELECT n FROM counter WHERE id = 1");

    usleep(100);
    snprintf(sql, sizeof sql, "UPDATE counter SET n = %lld WHERE id = 1", n + 1);
    return mysql_query(connection, sql) == 0;
}

/* How many updates were lost. */
static long long count(const fixture *f, const char *lock, counter_job job, int with_lock)
{
    int times = counter_times();
    long long wanted = (long long)COUNTER_PROCESSES * times, counted;
    int64_t begun_ms = crew_now_ms();
    pid_t pids[COUNTER_PROCESSES];

    database_run(f->sql, "REPLACE INTO counter VALUES (1, 0)");
    for (int i = 0; i < COUNTER_PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(job(f, with_lock, times) ? 0 : 1);
    }
    for (int i = 0; i < COUNTER_PROCESSES; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    counted = database_number(f->sql, "SELECT n FROM counter WHERE id = 1");
    print_message("%s %s: %d processes x %d: counted %lld of %lld, %lld lost, %.1f s\n",
                  with_lock ? "with the" : "without the", lock, COUNTER_PROCESSES, times, counted,
                  wanted, wanted - counted, (double)(crew_now_ms() - begun_ms) / 1000);
    return wanted - counted;
}

void counter_is_right(const fixture *f, const char *lock, counter_job job)
{
    assert_int_equal(count(f, lock, job, 1), 0);
}

void counter_is_wrong_without(const fixture *f, const char *lock, counter_job job)
{
    assert_true(count(f, lock, job, 0) > 0);
}
