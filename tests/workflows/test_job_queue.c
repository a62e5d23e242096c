/* The queue of a worker: its order, how much is claimed ahead, and what waits in vain. */
#include "job_queue.h"

#include "cmocka_all.h"

static job_queue queue;

/* Jobs are told apart by their time. */
static void add(int64_t since_ms)
{
    job_queue_add(&queue, &(job){.since_ms = since_ms});
}

static void run_many(int64_t took_us)
{
    for (int i = 0; i < 100; i++)
        job_queue_ran(&queue, took_us);
}

static void first_in_first_out(void **state)
{
    job taken;

    (void)state;
    job_queue_init(&queue);
    assert_int_equal(job_queue_take(&queue, &taken), 0);
    for (int i = 0; i < TL_CLAIM_MAX + JOB_AHEAD_MOST; i++)
        add(i);
    for (int i = 0; i < TL_CLAIM_MAX + JOB_AHEAD_MOST; i++) {
        assert_int_equal(job_queue_take(&queue, &taken), 1);
        assert_int_equal(taken.since_ms, i);
    }
    assert_int_equal(job_queue_take(&queue, &taken), 0);
}

static void only_short_jobs_are_claimed_ahead(void **state)
{
    (void)state;
    job_queue_init(&queue);
    assert_int_equal(job_queue_ahead(&queue, TL_CLAIM_MAX), 0);
    job_queue_ran(&queue, 1000);
    assert_int_equal(job_queue_ahead(&queue, 8), 0);
    run_many(1000000);
    assert_int_equal(job_queue_ahead(&queue, 8), 0);
    run_many(50000);
    assert_int_equal(job_queue_ahead(&queue, 1), 0);
    assert_in_range(job_queue_ahead(&queue, 8), 7, 8);
    run_many(5000);
    assert_in_range(job_queue_ahead(&queue, 1), 9, 10);
    assert_int_equal(job_queue_ahead(&queue, 8), JOB_AHEAD_MOST);
    run_many(0);
    assert_int_equal(job_queue_ahead(&queue, 1), JOB_AHEAD_MOST);
    assert_int_equal(job_queue_ahead(&queue, 0), 0);
    /* One long job is enough. */
    job_queue_ran(&queue, 4000000);
    assert_int_equal(job_queue_ahead(&queue, 8), 0);
}

static void what_waits_in_vain_is_told(void **state)
{
    job taken;

    (void)state;
    job_queue_init(&queue);
    run_many(1000);
    assert_int_equal(job_queue_take_stuck(&queue, 1000000, &taken), 0);
    add(1000);
    add(1001);
    assert_int_equal(job_queue_take_stuck(&queue, 1000 + JOB_STUCK_MS - 1, &taken), 0);
    assert_int_equal(job_queue_ahead(&queue, 8), JOB_AHEAD_MOST);
    assert_int_equal(job_queue_take_stuck(&queue, 1000 + JOB_STUCK_MS, &taken), 1);
    assert_int_equal(taken.since_ms, 1000);
    assert_int_equal(job_queue_take_stuck(&queue, 1000 + JOB_STUCK_MS, &taken), 0);
    assert_int_equal(job_queue_ahead(&queue, 8), 0);
    assert_int_equal(job_queue_take(&queue, &taken), 1);
    assert_int_equal(taken.since_ms, 1001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out),
        cmocka_unit_test(only_short_jobs_are_claimed_ahead),
        cmocka_unit_test(what_waits_in_vain_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
