/*
 * A new row's fence starts from the server's microseconds: as an answer brought them, or for up to
 * a second, as the client knows them from that answer.
 */
#include "fixture.h"

#include "transition/server_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#define SECOND_US 1000000
#define ASKS 50

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_log_whole(&f);
    fixture_close(&f);
    return 0;
}

static void test_the_clock(void **state)
{
    const uint64_t server_us = 1800000000000000;
    server_clock clock = {0};

    (void)state;
    assert_true(server_clock_us(&clock, 5 * SECOND_US) == 0);

    /* What took longer than a tenth of a second tells nothing. */
    server_clock_set(&clock, server_us, 4 * SECOND_US, 4 * SECOND_US + 100001);
    assert_true(server_clock_us(&clock, 5 * SECOND_US) == 0);

    server_clock_set(&clock, server_us, 4 * SECOND_US, 4 * SECOND_US + 100000);
    assert_true(server_clock_us(&clock, 4 * SECOND_US) == server_us);
    assert_true(server_clock_us(&clock, 4 * SECOND_US + 7) == server_us + 7);
    assert_true(server_clock_us(&clock, 5 * SECOND_US) == server_us + SECOND_US);
    assert_true(server_clock_us(&clock, 5 * SECOND_US + 1) == 0);

    /* Whatever the server's clock did meanwhile. */
    server_clock_set(&clock, server_us - SECOND_US, 9 * SECOND_US, 9 * SECOND_US + 3);
    assert_true(server_clock_us(&clock, 9 * SECOND_US + 5) == server_us - SECOND_US + 5);
}

/* Nothing is told but what every ask tells, so that the shortest statement will do. */
static void ask_and_end(int number)
{
    tl_lock_options options = sync_options("x");
    char serial[16];
    tl_lock *lock;

    options.channel = NULL;
    snprintf(serial, sizeof serial, "f%d", number);
    lock = granted(f.client, serial, "c1", &options);
    assert_true(
        (long long)tl_lock_view(lock)->fence ==
        database_number(f.sql, "SELECT fence FROM trade_lock WHERE serial_no='%s'", serial));
    assert_true(database_number(f.sql,
                                "SELECT fence = rev AND first_rev = rev FROM trade_lock "
                                "WHERE serial_no='%s'",
                                serial));
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static void test_asks_in_a_row(void **state)
{
    (void)state;
    for (int i = 0; i < ASKS; i++)
        ask_and_end(i);

    /* An ending has added one. */
    assert_true(database_number(f.sql, "SELECT fence - 1 = " DATABASE_MADE_US
                                       " FROM trade_lock WHERE serial_no='f0'"));
    assert_int_equal(database_number(f.sql,
                                     "SELECT COUNT(*) FROM trade_lock WHERE ABS(CAST(fence "
                                     "AS SIGNED) - " DATABASE_MADE_US ") > %d",
                                     30 * SECOND_US),
                     0);
    /* Some did without the server's word, and would have met it by chance only. */
    assert_true(database_number(
                    f.sql, "SELECT COUNT(*) FROM trade_lock WHERE fence - 1 = " DATABASE_MADE_US) <
                ASKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_clock),
        cmocka_unit_test(test_asks_in_a_row),
    };

    return server_run_tests(tests, setup, teardown);
}
