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
    (void)job_queue_add(&queue, of, NULL, since_ms);
}

static void add(int64_t since_ms)
{
    add_of(&quick, since_ms);
}

/* The time of the one that a thread takes; -1: there is none. */
static int64_t take(unsigned threads)
{
    const job *taken = job_queue_take(&queue, threads);

    return taken != NULL ? taken->since_ms : -1;
}

static int64_t take_stuck(int64_t now_ms)
{
    const job *taken = job_queue_take_stuck(&queue, now_ms);

    return taken != NULL ? taken->since_ms : -1;
}

/* So many of the queue's jobs are on threads. */
static void run(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_true(take(THREADS) >= 0);
}

static void run_many(const workflow *of, int64_t took_us)
{
    for (int i = 0; i < 100; i++) {
        job *one = job_queue_add(&queue, of, NULL, 0);

        run(1);
        job_queue_ran(&queue, of, took_us);
        job_queue_over(&queue, one);
    }
}

/* How many may wait beside the threads, all of which are idle. */
static unsigned ahead(const workflow *of, unsigned threads)
{
    return job_queue_room(&queue, of, threads) - threads;
}

TEST(first_in_first_out)
{
    begin();
    assert_int_equal(take(THREADS), -1);
    for (int i = 0; i < TL_CLAIM_MAX + JOB_AHEAD_MOST; i++)
        add(i);
    for (int i = 0; i < TL_CLAIM_MAX + JOB_AHEAD_MOST; i++) {
        assert_int_equal(take(THREADS), i);
    }
    assert_int_equal(take(THREADS), -1);
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
    assert_true(take_stuck(JOB_STUCK_MS) >= 0);
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

    begin();
    job_queue_know(&queue, &quick);
    for (int i = 0; i < 8; i++)
        add_of(&slow, i);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(job_queue_is_held_back(&queue, &slow, 4));
        assert_true(take(4) >= 0);
    }
    assert_int_equal(take(4), -1);
    assert_true(job_queue_is_held_back(&queue, &slow, 4));
    assert_false(job_queue_is_held_back(&queue, &quick, 4));
    assert_int_equal(job_queue_room(&queue, &slow, 4), 0);
    add(100);
    assert_int_equal(take(4), 100);
    assert_false(job_queue_is_held_back(&queue, &slow, 4)); /* nothing is idle */
    job_queue_ran(&queue, &quick, 1000);
    assert_int_equal(take(4), -1);
    job_queue_ran(&queue, &slow, 1000);
    assert_int_equal(take(4), 3);
    /* Two that hang leave a thread to each of the others. */
    begin();
    for (unsigned i = 0; i < 2; i++)
        job_queue_know(&queue, &others[i]);
    for (int i = 0; i < 4; i++) {
        add_of(&slow, i);
        add(i);
    }
    assert_true(take(4) >= 0);
    assert_ptr_equal(job_queue_take(&queue, 4)->of, &quick);
    assert_int_equal(take(4), -1);
    assert_int_equal(job_queue_room(&queue, &others[0], 4), 1);
    /* More operations than threads: half of them are kept. */
    begin();
    for (unsigned i = 0; i < 2; i++)
        job_queue_know(&queue, &others[i]);
    for (int i = 0; i < 4; i++)
        add(i);
    assert_true(take(2) >= 0);
    assert_int_equal(take(2), -1);
    begin();
    job_queue_know(&queue, &slow);
    add(0);
    assert_true(take(1) >= 0);
}

TEST(what_waits_in_vain_is_told)
{
    begin();
    run_many(&quick, 1000);
    run_many(&slow, 1000);
    assert_int_equal(take_stuck(1000000), -1);
    add_of(&slow, 999);
    run(1);
    add(1000);
    add(1001);
    assert_int_equal(take_stuck(1000 + JOB_STUCK_MS - 1), -1);
    assert_int_equal(job_queue_room(&queue, &slow, 8), 8 - 3 + JOB_AHEAD_MOST);
    assert_int_equal(take_stuck(1000 + JOB_STUCK_MS), 1000);
    assert_int_equal(take_stuck(1000 + JOB_STUCK_MS), -1);
    /* The one on the thread was at fault. */
    assert_int_equal(job_queue_room(&queue, &slow, 1), 0);
    assert_false(job_queue_is_quick(&queue, &slow, 8));
    assert_true(job_queue_is_quick(&queue, &quick, 8));
    assert_int_equal(take(THREADS), 1001);
}

/* A trade that returned is taken before those that were never begun; the thread that handed it over
 * may come back later. */
TEST(what_returns_comes_first)
{
    later_item item = {0};
    job *first, *taken;

    begin();
    for (int i = 0; i < 3; i++)
        add(i);
    first = job_queue_take(&queue, THREADS);
    assert_int_equal(first->since_ms, 0);
    assert_int_equal(queue.busy, 3);
    job_queue_return(&queue, first, &item);
    assert_int_equal(queue.busy, 4);
    job_queue_ran(&queue, &quick, 1000);
    assert_int_equal(queue.busy, 3);
    assert_int_equal(take_stuck(JOB_STUCK_MS + 1), 1); /* it is never given back */
    assert_int_equal(queue.busy, 2);
    taken = job_queue_take(&queue, THREADS);
    assert_ptr_equal(taken, first);
    assert_ptr_equal(taken->item, &item);
    job_queue_over(&queue, taken);
    assert_int_equal(queue.in_flight, 2);
    job_queue_ran(&queue, &quick, 1000);
    assert_int_equal(take(THREADS), 2);
}

TEST(what_hangs_is_counted_until_it_is_over)
{
    job *jobs[3];

    begin();
    for (int i = 0; i < 2; i++)
        jobs[i] = job_queue_add(&queue, &quick, NULL, i);
    run(2);
    assert_int_equal(job_queue_hang(&queue), 2);
    jobs[2] = job_queue_add(&queue, &slow, NULL, 2);
    run(1);
    job_queue_over(&queue, jobs[2]);
    assert_int_equal(queue.hung, 2);
    job_queue_over(&queue, jobs[0]);
    assert_int_equal(queue.hung, 1);
    jobs[0] = job_queue_add(&queue, &quick, NULL, 3);
    assert_int_equal(queue.hung, 1);
    assert_int_equal(job_queue_hang(&queue), 2);
    job_queue_over(&queue, jobs[1]);
    assert_int_equal(job_queue_hang(&queue), 1);
}

/* Each place is used again. */
TEST(the_table_has_room_for_all)
{
    static job *jobs[JOBS_MAX];

    begin();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < JOBS_MAX; i++)
            jobs[i] = job_queue_add(&queue, &quick, NULL, i);
        run(JOBS_MAX);
        for (int i = 0; i < JOBS_MAX; i++) {
            job_queue_ran(&queue, &quick, 1000);
            job_queue_over(&queue, jobs[i]);
        }
        assert_int_equal(queue.in_flight, 0);
        assert_int_equal(queue.busy, 0);
        assert_false(job_queue_has(&queue, &quick));
    }
}

TESTS_OF(job_queue, NULL, NULL)
