/*
 * What a client counts of asks, refusals and endings, told as metrics; also while many threads
 * work and others read.
 */
#include "fixture.h"

#include "support/crew.h"
#include "support/metric.h"
#include "support/theme.h"

#include <tradelock/layer.h>

#include <stdatomic.h>

#define SETTINGS "session_ms=2m\npool_wait_ms=2m\ncommit_ms=2m\n"

WHOLE_FIXTURE_OF_ALL(SETTINGS)

static void expect(const char *name, double value)
{
    const double got = metric_of(f.client, name);

    if (got != value)
        fail_msg("%s is %g, not %g", name, got, value);
}

static void end(const char *serial, tl_outcome outcome, tl_proof proof, tl_status expected)
{
    const tl_lock_options options = sync_options("100");
    tl_lock *lock = granted(f.client, serial, "C1", &options);

    assert_status(finish(lock, outcome, proof), expected);
    tl_lock_free(lock);
}

static void refuse(const char *serial, const char *payload, tl_status expected)
{
    const tl_lock_options options = sync_options(payload);
    tl_status status;
    tl_lock *lock = ask(f.client, serial, "C1", &options, &status);

    assert_status(status, expected);
    tl_lock_free(lock);
}

/* Everything is there from the beginning, so that rates begin at 0. */
TEST(test_nothing)
{
    expect("tradelock_asks_total", 0);
    expect("tradelock_refusals_total{reason=\"busy\"}", 0);
    expect("tradelock_refusals_total{reason=\"already_done\"}", 0);
    expect("tradelock_endings_total{outcome=\"succeeded\"}", 0);
    expect("tradelock_ask_duration_seconds_count", 0);
    expect("tradelock_lost_answers_total{found=\"applied\"}", 0);
    expect("tradelock_server_errors_total{code=\"1213\"}", 0);
    expect("tradelock_pool_waits_total{pool=\"quick\"}", 0);
    expect("tradelock_build_info{version=\"" TL_VERSION_STRING "\"}", 1);
    assert_true(metric_of(f.client, "tradelock_session_left_seconds") > 0);
    assert_string_equal(tl_metrics_listen(f.client), "");
}

TEST(test_kinds)
{
    const tl_lock_options options = sync_options("100");
    tl_lock *held = granted(f.client, "held", "C1", &options);
    double sum;

    refuse("held", "100", TL_BUSY);
    refuse("held", "200", TL_MISMATCH);
    tl_lock_free(held);
    end("paid", TL_OUTCOME_SUCCESS, TL_PROOF_NONE, TL_SUCCEEDED);
    refuse("paid", "100", TL_ALREADY_DONE);
    end("declined", TL_OUTCOME_FAILURE, TL_PROOF_DECLINED, TL_FAILED);
    refuse("declined", "100", TL_FAILED);
    end("lost", TL_OUTCOME_UNKNOWN, TL_PROOF_NONE, TL_IN_DOUBT);
    refuse("lost", "100", TL_IN_DOUBT);
    end("kept", TL_OUTCOME_NOT_SENT, TL_PROOF_NONE, TL_QUEUED);
    refuse("kept", "100", TL_QUEUED);
    expect("tradelock_asks_total", 11);
    expect("tradelock_grants_total", 5);
    expect("tradelock_refusals_total{reason=\"busy\"}", 1);
    expect("tradelock_refusals_total{reason=\"mismatch\"}", 1);
    expect("tradelock_refusals_total{reason=\"already_done\"}", 1);
    expect("tradelock_refusals_total{reason=\"failed\"}", 1);
    expect("tradelock_refusals_total{reason=\"in_doubt\"}", 1);
    expect("tradelock_refusals_total{reason=\"queued\"}", 1);
    expect("tradelock_endings_total{outcome=\"succeeded\"}", 1);
    expect("tradelock_endings_total{outcome=\"failed\"}", 1);
    expect("tradelock_endings_total{outcome=\"in_doubt\"}", 1);
    expect("tradelock_endings_total{outcome=\"queued\"}", 1);
    expect("tradelock_ask_duration_seconds_count", 11);
    expect("tradelock_ask_duration_seconds_bucket{le=\"+Inf\"}", 11);
    expect("tradelock_ending_duration_seconds_count", 4);
    sum = metric_of(f.client, "tradelock_ask_duration_seconds_sum");
    assert_true(sum > 0 && sum < 600);
}

/* The same names are the same counter; an answer without a name is not counted. */
TEST(test_calls)
{
    static const char *const answers[] = {"UNKNOWN", "YES"};
    const tl_calls_names names = {"bank", "WITHDRAW", "execute", answers, 2};
    const tl_calls_names other = {"bank", "TRANSFER", "execute", answers, 2};
    const tl_calls_names none = {"bank", "WITHDRAW", "execute", answers, 0};
    tl_calls *first, *second, *third;

    assert_int_equal(tl_calls_of(&first, f.client, &names), TL_OK);
    assert_int_equal(tl_calls_of(&second, f.client, &names), TL_OK);
    assert_int_equal(tl_calls_of(&third, f.client, &other), TL_OK);
    assert_int_equal(tl_calls_of(&third, f.client, &none), TL_INVALID);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, third);
    tl_calls_count(first, 1, 2000000);
    tl_calls_count(second, 1, -5);
    tl_calls_count(first, 2, 1);
    tl_calls_count(NULL, 0, 1);
    expect("tradelock_channel_answers_total{channel=\"bank\",operation=\"WITHDRAW\","
           "call=\"execute\",answer=\"yes\"}",
           2);
    expect("tradelock_channel_answers_total{channel=\"bank\",operation=\"TRANSFER\","
           "call=\"execute\",answer=\"yes\"}",
           0);
    expect("tradelock_channel_duration_seconds_sum{channel=\"bank\",operation=\"WITHDRAW\","
           "call=\"execute\"}",
           2);
}

static int refuse_text(void *context, const char *text, size_t size)
{
    (void)text;
    (void)size;
    ++*(unsigned *)context;
    return 1;
}

TEST(test_a_writer_that_stops)
{
    unsigned calls = 0;

    assert_int_equal(tl_metrics_write(f.client, refuse_text, &calls), TL_CALLBACK_FAILED);
    assert_int_equal(calls, 1);
}

/* ------------------------------------------------------------------------ under load -- */

#define READERS 2
static struct {
    long threads, rounds;
    unsigned passage;
    atomic_int working;
} load;

static void work(int number)
{
    const tl_lock_options options = sync_options("100");

    for (long round = 0; round < load.rounds; round++) {
        tl_lock *lock;

        lock = lock_new(f.client, text_of("L%u-%d-%ld", load.passage, number, round).is, "C2",
                        &options);
        CREW_STATUS(tl_lock_ask(lock, 0), TL_GRANTED);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    atomic_fetch_sub(&load.working, 1);
}

/* Counters never fall. */
static void read_on(void)
{
    double before = 0;

    while (atomic_load(&load.working) > 0) {
        const double now = metric_of(f.client, "tradelock_ask_duration_seconds_count");

        CREW_CHECK(now >= before);
        before = now;
    }
}

static void work_or_read(void *context, int number)
{
    (void)context;
    if (number < load.threads)
        work(number);
    else
        read_on();
}

/* All threads trade once through, and all counters count each trade. */
static void work_once(void)
{
    const double asked = metric_of(f.client, "tradelock_ask_duration_seconds_count");
    const double granted_before = metric_of(f.client, "tradelock_grants_total");
    const double ended = metric_of(f.client, "tradelock_ending_duration_seconds_count");
    const double all = (double)(load.threads * load.rounds);

    load.passage++;
    atomic_store(&load.working, (int)load.threads);
    crew_threads((int)load.threads + READERS, work_or_read, NULL);
    expect("tradelock_ask_duration_seconds_count", asked + all);
    expect("tradelock_grants_total", granted_before + all);
    expect("tradelock_ending_duration_seconds_count", ended + all);
}

TEST(test_load)
{
    load.threads = crew_number("workers", 32);
    load.rounds = crew_number("turns", 20);
    /* Whether two threads ask in the same moment is chance. */
    for (int i = 0; i < 50 && (i == 0 || metric_of(f.client, "tradelock_group_tasks_count") == 0);
         i++)
        work_once();
    assert_true(metric_of(f.client, "tradelock_group_tasks_count") > 0);
    assert_true(metric_of(f.client, "tradelock_group_tasks_sum") >=
                2 * metric_of(f.client, "tradelock_group_tasks_count"));
}

TESTS_OF(metrics, open_all, close_all)
