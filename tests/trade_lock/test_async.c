/* Asks and endings from an event loop: submitted, carried out together, completed. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 300 };

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_log_whole(&f);
    fixture_close(&f);
    return 0;
}

/* Waits, as an event loop does, until so many completions were taken. */
static void complete_all(size_t wanted, tl_status expected)
{
    tl_completion done[64];
    struct pollfd readable = {.fd = tl_client_completed_fd(f.client), .events = POLLIN};
    size_t taken = 0;

    while (taken < wanted) {
        size_t count;

        assert_int_equal(poll(&readable, 1, 20000), 1);
        count = tl_client_completed(f.client, done, 64);
        for (size_t i = 0; i < count; i++) {
            assert_status(done[i].status, expected);
            assert_non_null(done[i].lock);
        }
        taken += count;
    }
    assert_int_equal(taken, wanted);
    assert_int_equal(tl_client_completed(f.client, done, 64), 0);
    assert_int_equal(poll(&readable, 1, 0), 0);
}

static void test_many_share_statements(void **state)
{
    static tl_lock *locks[MANY];
    tl_lock_options options = sync_options("x");
    tl_ending ending = TL_ENDING_INIT;
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;

    (void)state;
    ending.outcome = TL_OUTCOME_SUCCESS;
    tl_client_stats(f.client, &before);
    for (int i = 0; i < MANY; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "a%d", i);
        locks[i] = lock_new(f.client, serial, "c1", &options);
        assert_status(tl_lock_ask_submit(locks[i], NULL, NULL), TL_OK);
    }
    complete_all(MANY, TL_GRANTED);
    for (int i = 0; i < MANY; i++)
        assert_status(tl_lock_finish_submit(locks[i], &ending, NULL, NULL), TL_OK);
    complete_all(MANY, TL_SUCCEEDED);
    tl_client_stats(f.client, &after);
    assert_true(after.statements - before.statements < 2 * MANY / 4);
    assert_int_equal(
        database_number(f.sql, "SELECT COUNT(*) FROM trade_lock WHERE status = 'Y'"),
        MANY);
    for (int i = 0; i < MANY; i++)
        tl_lock_free(locks[i]);
}

static void test_refusals_and_endings_that_open(void **state)
{
    tl_lock_options options = sync_options("x"), other = sync_options("y");
    tl_ending unknown = TL_ENDING_INIT;
    tl_lock *lock = granted(f.client, "b1", "c1", &options), *again;

    (void)state;
    again = lock_new(f.client, "b1", "c1", &other);
    assert_status(tl_lock_ask_submit(again, NULL, NULL), TL_OK);
    complete_all(1, TL_MISMATCH);
    assert_status(tl_lock_finish_submit(again, &unknown, NULL, NULL), TL_NOT_HELD);
    assert_status(tl_lock_finish_submit(lock, &unknown, NULL, NULL), TL_OK);
    complete_all(1, TL_IN_DOUBT);
    assert_row(&f, "b1", "c1", "WITHDRAW_RETRY", "F 1 0");
    tl_lock_free(lock);
    tl_lock_free(again);
}

static atomic_int called;

static void note_call(void *context, tl_lock *lock, tl_status status)
{
    (void)lock;
    atomic_store(&called, status == TL_GRANTED ? *(int *)context : -1);
}

static void test_a_callback_instead(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock = lock_new(f.client, "c1", "c1", &options);
    int seven = 7;

    (void)state;
    assert_status(tl_lock_ask_submit(lock, note_call, &seven), TL_OK);
    for (int i = 0; i < 2000 && atomic_load(&called) == 0; i++)
        poll(NULL, 0, 5);
    assert_int_equal(atomic_load(&called), 7);
    /* The row names the thread that submitted. */
    assert_int_equal(database_number(f.sql,
                                     "SELECT thread_no = '%s' FROM trade_lock WHERE "
                                     "serial_no = 'c1'",
                                     tl_thread_uuid()),
                     1);
    tl_lock_free(lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_share_statements),
        cmocka_unit_test(test_refusals_and_endings_that_open),
        cmocka_unit_test(test_a_callback_instead),
    };

    return server_run_tests(tests, setup, teardown);
}
