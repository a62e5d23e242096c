/* The queue of a worker: its order, how much is claimed ahead, and what waits in vain. */
#include "job_queue.h"

#include "support/theme.h"

/* More than any test uses, but those of shares. */
#define THREADS 1000

static job_queue queue;
static workflow quick, slow;

static void begin(void)
{
    job_queue_init(&queue);
}

/* Jobs are told apart by their time. */
static void add_of(const workflow *of, int64_t since_ms)
{
    job_queue_add(&queue, &(job){.of = of, .since_ms = since_ms});
}

static void add(int64_t since_ms)
{
    add_of(&quick, since_ms);
}

/* So many of the queue's jobs are on threads. */
static void run(unsigned count)
{
    job taken;

    for (unsigned i = 0; i < count; i++)
        assert_int_equal(job_queue_take(&queue, THREADS, &taken), 1);
}

static void run_many(const workflow *of, int64_t took_us)
{
    for (int i = 0; i < 100; i++) {
        add_of(of, 0);
        run(1);
        job_queue_ran(&queue, of, took_us);
    }
}

/* How many may wait beside the threads, all of which are idle. */
static unsigned ahead(const workflow *of, unsigned threads)
{
    return job_queue_room(&queue, of, threads) - threads;
}

TEST(first_in_first_out)
{
    job taken;

    begin();
    assert_int_equal(job_queue_take(&queue, THREADS, &taken), 0);
    for (int i = 0; i < TL_CLAIM_MAX + JOB_AHEAD_MOST; i++)
        add(i);
    for (int i = 0; i < TL_CLAIM_MAX + JOB_AHEAD_MOST; i++) {
        assert_int_equal(job_queue_take(&queue, THREADS, &taken), 1);
        assert_int_equal(taken.since_ms, i);
    }
    assert_int_equal(job_queue_take(&queue, THREADS, &taken), 0);
}

TEST(only_short_jobs_are_claimed_ahead)
{
    begin();
    assert_int_equal(ahead(&quick, TL_CLAIM_MAX), 0);
    assert_false(job_queue_is_quick(&queue, &quick, TL_CLAIM_MAX));
    run_many(&quick, 1000000);
    assert_int_equal(ahead(&quick, 8), 0);
    run_many(&quick, 60000);
    assert_int_equal(ahead(&quick, 8), 0);
    run_many(&quick, 49900);
    assert_int_equal(ahead(&quick, 1), 1);
    assert_in_range(ahead(&quick, 8), 7, 8);
    assert_true(job_queue_is_quick(&queue, &quick, 8));
    run_many(&quick, 5000);
    assert_in_range(ahead(&quick, 1), 9, 10);
    assert_int_equal(ahead(&quick, 8), JOB_AHEAD_MOST);
    run_many(&quick, 0);
    assert_int_equal(ahead(&quick, 1), JOB_AHEAD_MOST);
    assert_int_equal(ahead(&quick, 0), 0);
    assert_false(job_queue_is_quick(&queue, &quick, 0));
    /* One long job is enough. */
    add(0);
    run(1);
    job_queue_ran(&queue, &quick, 4000000);
    assert_int_equal(ahead(&quick, 8), 0);
}

/* What waits already is taken off, but not what goes to a thread at once. */
TEST(no_more_than_the_threads_will_end)
{
    begin();
    run_many(&quick, 10000);
    assert_in_range(job_queue_room(&queue, &quick, 2), 2 + 9, 2 + 10);
    add(0);
    add(0);
    assert_in_range(job_queue_room(&queue, &quick, 2), 9, 10);
    run(2);
    assert_in_range(job_queue_room(&queue, &quick, 2), 9, 10);
    for (int i = 0; i < 6; i++)
        add(0);
    assert_in_range(job_queue_room(&queue, &quick, 2), 3, 4);
    for (int i = 0; i < 4; i++)
        add(0);
    assert_int_equal(job_queue_room(&queue, &quick, 2), 0);
    /* However short they are. */
    begin();
    run_many(&quick, 10);
    for (int i = 0; i < 2 + JOB_AHEAD_MOST - 3; i++)
        add(0);
    assert_int_equal(job_queue_room(&queue, &quick, 2), 3);
}

/* Each operation has its own mean; a thread with a slow one promises nothing. */
TEST(a_slow_operation_does_not_change_what_is_quick)
{
    job taken;

    begin();
    run_many(&quick, 1000);
    run_many(&slow, 3000000);
    /* One of two threads each. */
    assert_int_equal(job_queue_room(&queue, &quick, 2), 1 + JOB_AHEAD_MOST);
    assert_int_equal(job_queue_room(&queue, &slow, 2), 1);
    assert_false(job_queue_is_quick(&queue, &slow, 2));
    add_of(&slow, 0);
    assert_int_equal(job_queue_room(&queue, &slow, 2), 0);
    assert_int_equal(job_queue_room(&queue, &quick, 2), 1 + JOB_AHEAD_MOST);
    add_of(&slow, 0);
    assert_int_equal(job_queue_room(&queue, &quick, 2), 1);
    run(1);
    assert_int_equal(job_queue_take_stuck(&queue, JOB_STUCK_MS, &taken), 1);
    run_many(&quick, 1000);
    assert_int_equal(job_queue_room(&queue, &slow, 2), 0);
    assert_int_equal(job_queue_room(&queue, &quick, 2), 1 + JOB_AHEAD_MOST);
    assert_true(job_queue_is_quick(&queue, &quick, 2));
    job_queue_ran(&queue, &slow, 3000000);
    assert_int_equal(job_queue_room(&queue, &slow, 2), 1);
}

/* However many jobs of one operation wait, and whichever came first. */
TEST(each_operation_has_its_share)
{
    static workflow others[2];
    job taken;

    begin();
    job_queue_know(&queue, &quick);
    for (int i = 0; i < 8; i++)
        add_of(&slow, i);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(job_queue_is_held_back(&queue, &slow, 4));
        assert_int_equal(job_queue_take(&queue, 4, &taken), 1);
    }
    assert_int_equal(job_queue_take(&queue, 4, &taken), 0);
    assert_true(job_queue_is_held_back(&queue, &slow, 4));
    assert_false(job_queue_is_held_back(&queue, &quick, 4));
    assert_int_equal(job_queue_room(&queue, &slow, 4), 0);
    add(100);
    assert_int_equal(job_queue_take(&queue, 4, &taken), 1);
    assert_int_equal(taken.since_ms, 100);
    assert_false(job_queue_is_held_back(&queue, &slow, 4)); /* nothing is idle */
    job_queue_ran(&queue, &quick, 1000);
    assert_int_equal(job_queue_take(&queue, 4, &taken), 0);
    job_queue_ran(&queue, &slow, 1000);
    assert_int_equal(job_queue_take(&queue, 4, &taken), 1);
    assert_int_equal(taken.since_ms, 3);
    /* Two that hang leave a thread to each of the others. */
    begin();
    for (unsigned i = 0; i < 2; i++)
        job_queue_know(&queue, &others[i]);
    for (int i = 0; i < 4; i++) {
        add_of(&slow, i);
        add(i);
    }
    assert_int_equal(job_queue_take(&queue, 4, &taken), 1);
    assert_int_equal(job_queue_take(&queue, 4, &taken), 1);
    assert_ptr_equal(taken.of, &quick);
    assert_int_equal(job_queue_take(&queue, 4, &taken), 0);
    assert_int_equal(job_queue_room(&queue, &others[0], 4), 1);
    /* More operations than threads: half of them are kept. */
    begin();
    for (unsigned i = 0; i < 2; i++)
        job_queue_know(&queue, &others[i]);
    for (int i = 0; i < 4; i++)
        add(i);
    assert_int_equal(job_queue_take(&queue, 2, &taken), 1);
    assert_int_equal(job_queue_take(&queue, 2, &taken), 0);
    begin();
    job_queue_know(&queue, &slow);
    add(0);
    assert_int_equal(job_queue_take(&queue, 1, &taken), 1);
}

TEST(what_waits_in_vain_is_told)
{
    job taken;

    begin();
    run_many(&quick, 1000);
    run_many(&slow, 1000);
    assert_int_equal(job_queue_take_stuck(&queue, 1000000, &taken), 0);
    add_of(&slow, 999);
    run(1);
    add(1000);
    add(1001);
    assert_int_equal(job_queue_take_stuck(&queue, 1000 + JOB_STUCK_MS - 1, &taken), 0);
    assert_int_equal(job_queue_room(&queue, &slow, 8), 8 - 3 + JOB_AHEAD_MOST);
    assert_int_equal(job_queue_take_stuck(&queue, 1000 + JOB_STUCK_MS, &taken), 1);
    assert_int_equal(taken.since_ms, 1000);
    assert_int_equal(job_queue_take_stuck(&queue, 1000 + JOB_STUCK_MS, &taken), 0);
    /* The one on the thread was at fault. */
    assert_int_equal(job_queue_room(&queue, &slow, 1), 0);
    assert_false(job_queue_is_quick(&queue, &slow, 8));
    assert_true(job_queue_is_quick(&queue, &quick, 8));
    assert_int_equal(job_queue_take(&queue, THREADS, &taken), 1);
    assert_int_equal(taken.since_ms, 1001);
}

TESTS_OF(job_queue, NULL, NULL)
