/* A restored database grants nothing until it is accepted. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "beat_ms=100\nsession_ms=2s\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_log_whole(&f);
    fixture_close(&f);
    return 0;
}

/* Asks for fresh trades until the answer is the expected one. */
static void await_answer(const char *cust, tl_status expected)
{
    tl_lock_options options = sync_options("x");
    tl_status status = TL_OK;

    for (int i = 0; i < 100 && status != expected; i++) {
        char serial[] = {'w', (char)('0' + i / 10), (char)('0' + i % 10), '\0'};

        tl_lock_free(ask(f.client, serial, cust, &options, &status));
        usleep(50 * 1000);
    }
    assert_status(status, expected);
}

static tl_lock *queued_then_claimed(void)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_lock *lock = granted(f.client, "q1", "c1", &options);

    assert_status(finish(lock, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(lock);
    return granted(f.client, "q1", "c1", &retry);
}

static void test_declared_and_accepted(void **state)
{
    tl_lock *claimed = queued_then_claimed();
    tl_lock_options mutex = TL_LOCK_OPTIONS_INIT;
    uint64_t doubtful = 0;

    (void)state;
    assert_status(tl_restore_declare(f.other, "ann", ""), TL_INVALID);
    assert_status(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    await_answer("declared", TL_ASK_CHANNEL);
    /* The lane looks, and sends nothing. */
    assert_status(tl_lock_arm(claimed, 1000), TL_ASK_CHANNEL);
    assert_status(finish(claimed, TL_OUTCOME_NOT_SENT, TL_PROOF_NONE), TL_QUEUED);
    tl_lock_free(claimed);
    mutex.flags = TL_ASK_REPEATABLE;
    mutex.max_hold_ms = 1000;
    tl_lock_free(granted(f.client, "m1", "c1", &mutex));

    assert_status(tl_restore_accept(f.other, "bob", "statements agree", &doubtful),
                  TL_OK);
    assert_int_equal(doubtful, 1);
    assert_row(&f, "q1", "c1", "WITHDRAW", "P 1 1");
    await_answer("accepted", TL_GRANTED);
}

static void test_another_server_is_noticed(void **state)
{
    tl_client *late;
    tl_lock_options options = sync_options("x");
    tl_status status;

    (void)state;
    database_run(f.sql, "UPDATE tl_schema SET server_identity = 'the old one'");
    late = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock_free(ask(late, "x1", "c1", &options, &status));
    assert_status(status, TL_ASK_CHANNEL);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    await_answer("promoted", TL_GRANTED);
    tl_client_close(late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_and_accepted),
        cmocka_unit_test(test_another_server_is_noticed),
    };

    return server_report(cmocka_run_group_tests(tests, setup, teardown));
}
