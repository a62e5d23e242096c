/* The batch and the trace context that a request names: on the row, in views and in the statements
 * of many; never a reason to grant or refuse. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define THREADS 32
#define ROUNDS 8
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define OTHER_TRACE "00-11111111111111111111111111111111-2222222222222222-00"
#define SIXTEEN "0123456789abcdef"
#define LONGEST SIXTEEN SIXTEEN SIXTEEN SIXTEEN

static fixture f;

static tl_lock_options of_batch(const char *batch, const char *traceparent)
{
    tl_lock_options options = sync_options("100 EUR");

    options.batch = batch;
    options.traceparent = traceparent;
    return options;
}

static void assert_said(const tl_view *view, const char *batch, const char *traceparent)
{
    assert_string_equal(view->batch, batch);
    assert_string_equal(view->traceparent, traceparent);
}

struct said {
    const char *batch, *traceparent;
};

static int compare(void *context, const tl_view *view)
{
    const struct said *said = context;

    assert_said(view, said->batch, said->traceparent);
    return 0;
}

static void row_says(const char *serial, tl_lane lane, const char *batch, const char *traceparent)
{
    struct said said = {batch, traceparent};
    tl_key key = {serial, "c1", "WITHDRAW"};

    assert_status(tl_show(f.other, &key, lane, compare, &said), TL_OK);
}

static void test_the_row_keeps_what_the_first_ask_said(void **state)
{
    static const struct said cases[] = {{"b", TRACE},
                                        {LONGEST, ""},
                                        {"", OTHER_TRACE},
                                        {"a blank behind ", TRACE},
                                        {"\xe2\x82\xac", ""}};
    tl_lock_options first, later = of_batch("other", OTHER_TRACE), silent = of_batch(NULL, NULL);
    tl_status status;
    tl_lock *lock, *again;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char serial[8], batch[TL_BATCH_MAX + 1], trace[TL_TRACEPARENT + 1];

        snprintf(serial, sizeof serial, "k%zu", i);
        strcpy(batch, cases[i].batch);
        strcpy(trace, cases[i].traceparent);
        first = of_batch(batch[0] != '\0' ? batch : NULL, trace[0] != '\0' ? trace : NULL);
        lock = lock_new(f.client, serial, "c1", &first);
        memset(batch, 'X', sizeof batch - 1); /* both were copied */
        memset(trace, 'X', sizeof trace - 1);
        assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_said(tl_lock_view(lock), cases[i].batch, cases[i].traceparent);
        row_says(serial, TL_LANE_SYNC, cases[i].batch, cases[i].traceparent);
        again = ask(f.other, serial, "c1", &later, &status);
        assert_status(status, TL_BUSY);
        assert_said(tl_lock_view(again), cases[i].batch, cases[i].traceparent);
        tl_lock_free(again);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
        again = ask(f.other, serial, "c1", &silent, &status);
        assert_status(status, TL_ALREADY_DONE);
        tl_lock_free(again);
        row_says(serial, TL_LANE_SYNC, cases[i].batch, cases[i].traceparent);
    }
    lock = granted(f.client, "silent", "c1", &silent);
    assert_said(tl_lock_view(lock), "", "");
    row_says("silent", TL_LANE_SYNC, "", "");
    assert_int_equal(database_number(f.sql, "SELECT batch IS NULL AND traceparent IS NULL FROM "
                                            "trade_lock WHERE serial_no = 'silent'"),
                     1);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static void test_the_retry_lane_and_a_reclaim_keep_it(void **state)
{
    tl_lock_options options = of_batch("b", TRACE), retry = retry_options();
    tl_ending failed = TL_ENDING_INIT;
    tl_lock *lock = granted(f.client, "r", "c1", &options);

    (void)state;
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
    row_says("r", TL_LANE_RETRY, "", "");
    lock = granted(f.other, "r", "c1", &retry);
    assert_said(tl_lock_view(lock), "b", TRACE);
    failed.outcome = TL_OUTCOME_FAILURE;
    failed.proof = TL_PROOF_DECLINED;
    failed.retryable = 1;
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    options = of_batch("other", OTHER_TRACE);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = granted(f.client, "r", "c1", &options);
    assert_said(tl_lock_view(lock), "b", TRACE);
    row_says("r", TL_LANE_SYNC, "b", TRACE);
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
}

static void test_what_is_none_is_refused(void **state)
{
    static const struct {
        const char *batch, *traceparent, *words;
    } bad[] = {
        {"", NULL, "batch: is empty"},
        {LONGEST "x", NULL, "batch: is longer than 64 bytes"},
        {"a\tb", NULL, "batch: byte 2 is a control character (0x09)"},
        {"a\x7f", NULL, "batch: byte 2 is a control character (0x7f)"},
        {"a\xc2\x85", NULL, "batch: byte 2 is a control character"},
        {"a\xff", NULL, "batch: byte 2 is not UTF-8 (0xff)"},
        {"a\xc3", NULL, "batch: byte 2 is not UTF-8 (0xc3)"},
        {NULL, "", "has not 55 characters"},
        {NULL, TRACE "0", "has not 55 characters"},
        {NULL, "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "no W3C trace context"},
        {NULL, "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "no W3C trace context"},
        {NULL, "00-00000000000000000000000000000000-b7ad6b7169203331-01", "no W3C trace context"},
        {NULL, "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "no W3C trace context"},
        {NULL, "00-0af7651916cd43dd8448eb211c80319cab7ad6b7169203331-01", "no W3C trace context"},
        {NULL, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331x01", "no W3C trace context"},
        {NULL, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g", "no W3C trace context"},
    };
    const int before = (int)database_number(f.sql, "SELECT COUNT(*) FROM trade_lock");
    tl_lock_options repeatable = of_batch("b", NULL);
    tl_key key = {"bad", "c1", "WITHDRAW"};
    tl_lock *lock = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tl_lock_options options = of_batch(bad[i].batch, bad[i].traceparent);

        assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
        assert_null(lock);
        if (strstr(tl_error_message(), bad[i].words) == NULL)
            fail_msg("%zu: %s", i, tl_error_message());
    }
    repeatable.flags = TL_ASK_REPEATABLE;
    repeatable.channel = NULL;
    assert_status(tl_lock_new(&lock, f.client, &key, &repeatable), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "neither batch nor trace"));
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM trade_lock"), before);
}

/* Asks that name a batch and such that do not share statements with each other and with endings. */
static void ask_in_crowd(void *context, int number)
{
    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        tl_lock_options options = of_batch(number % 2 ? "crowd" : NULL, number % 3 ? TRACE : NULL);
        char serial[24];
        tl_status status;
        tl_lock *lock;

        if (number % 4 < 2)
            options.channel = NULL;
        snprintf(serial, sizeof serial, "g%d-%d", number, round);
        lock = ask(f.client, serial, "c1", &options, &status);
        CREW_STATUS(status, TL_GRANTED);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

static void test_in_groups(void **state)
{
    (void)state;
    crew_threads(THREADS, ask_in_crowd, NULL);
    for (int number = 0; number < THREADS; number++)
        for (int round = 0; round < ROUNDS; round++) {
            char serial[24];

            snprintf(serial, sizeof serial, "g%d-%d", number, round);
            row_says(serial, TL_LANE_SYNC, number % 2 ? "crowd" : "", number % 3 ? TRACE : "");
        }
}

/* A batch or trace context that somebody types is a step of theirs. */
static void test_by_hand_it_is_on_record(void **state)
{
    tl_lock_options options = of_batch("b", TRACE);
    tl_lock *lock = granted(f.client, "hand", "c1", &options);

    (void)state;
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    database_run(f.sql, "UPDATE trade_lock SET batch = 'other' WHERE serial_no = 'hand'");
    database_run(f.sql, "UPDATE trade_lock SET traceparent = NULL WHERE serial_no = 'hand'");
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = "
                                            "'hand' AND step = 'by hand'"),
                     2);
    assert_log_whole(&f);
}

static int set_up(void **state)
{
    (void)state;
    fixture_open(&f, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

TEST_MAIN(batch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_row_keeps_what_the_first_ask_said),
        cmocka_unit_test(test_the_retry_lane_and_a_reclaim_keep_it),
        cmocka_unit_test(test_what_is_none_is_refused),
        cmocka_unit_test(test_in_groups),
        cmocka_unit_test(test_by_hand_it_is_on_record),
    };

    crew_arguments(argc, argv);
    return server_run_tests(tests, set_up, tear_down);
}
