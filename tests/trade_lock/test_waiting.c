/* Waiting: first come, first served, one asks for all, and no later than the deadline. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

/* Whoever waited in vain for one after the other of a crowd would be later. */
#define LATE_MS 15000

WHOLE_FIXTURE_OF_ALL(NULL)

static tl_lock_options mutex_options(void)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    return options;
}

static tl_stats stats_of(const tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    CREW_STATUS(tl_client_stats(client, &stats), TL_OK);
    return stats;
}

static uint64_t statements_of(const tl_client *client)
{
    return stats_of(client).statements;
}

struct queue {
    tl_client *client;
    const char *serial;
    uint64_t asked_before;
    int threads[64]; /* those that ask, by gettid() */
    int served;
    int order[64];
    int64_t granted_ms[64];
    tl_lock *first; /* held by thread 0, whom the others wait for */
    int others;
    int64_t released_ms;
};

/* So many threads have asked, and the last of them sleeps in its place in the queue. */
static void await_queued(struct queue *q, int count)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    for (int seen = 0; seen < 3;) {
        int thread = __atomic_load_n(&q->threads[count], __ATOMIC_SEQ_CST);

        CREW_CHECK(crew_now_ms() < end_ms);
        crew_sleep_ms(5);
        seen =
            stats_of(q->client).asks >= q->asked_before + (uint64_t)count && crew_is_asleep(thread)
                ? seen + 1
                : 0;
    }
}

/* Thread 0 holds and releases when all others wait; the others queue one after another. */
static void queue_up(void *context, int number)
{
    struct queue *q = context;
    tl_lock_options options = mutex_options();
    tl_lock *lock;

    if (number == 0) {
        await_queued(q, q->others);
        q->released_ms = crew_now_ms();
        CREW_STATUS(finish(q->first, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        return;
    }
    if (number > 1)
        await_queued(q, number - 1);
    lock = lock_new(q->client, q->serial, "wait", &options);
    __atomic_store_n(&q->threads[number], gettid(), __ATOMIC_SEQ_CST);
    CREW_STATUS(tl_lock_ask(lock, PATIENCE_MS), TL_GRANTED);
    q->order[q->served] = number;
    q->granted_ms[q->served] = crew_now_ms();
    q->served++;
    CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

TEST(test_first_come_first_served)
{
    tl_lock_options options = mutex_options();
    struct queue q = {.client = f.client, .serial = "fifo", .others = 8};

    q.first = granted(f.client, q.serial, "wait", &options);
    q.asked_before = stats_of(f.client).asks;
    crew_threads(q.others + 1, queue_up, &q);
    assert_int_equal(q.served, q.others);
    for (int i = 0; i < q.others; i++)
        assert_int_equal(q.order[i], i + 1);
    tl_lock_free(q.first);
}

/* With pauses of many seconds between two asks, a release is still heard of at once. */
TEST(test_a_release_wakes_the_next)
{
    char *file = database_option_file_at(f.db, server_socket(server_shared()),
                                         "ask_wait_min_ms=10s\nask_wait_max_ms=20s\n");
    tl_lock_options options = mutex_options();
    struct queue q = {.serial = "quick", .others = 8};

    q.client = client_of(file, 0);
    q.first = granted(q.client, q.serial, "wait", &options);
    q.asked_before = stats_of(q.client).asks;
    crew_threads(q.others + 1, queue_up, &q);
    assert_int_equal(q.served, q.others);
    assert_in_range(q.granted_ms[q.others - 1] - q.released_ms, 0, 5000);
    tl_lock_free(q.first);
    tl_client_close(q.client);
    remove(file);
    free(file);
}

struct crowd {
    const char *serial;
    int64_t until_ms; /* for all of them, whenever their thread begins */
    int expired, granted;
    int waiters;
    tl_lock *held;
    uint64_t statements; /* when they began */
};

/* Whoever may ask has asked some more times. */
static void release_after_polls(const struct crowd *crowd)
{
    int64_t end_ms = crew_now_ms() + PATIENCE_MS / 2;

    while (statements_of(f.client) < crowd->statements + 8) {
        CREW_CHECK(crew_now_ms() < end_ms);
        crew_sleep_ms(5);
    }
    CREW_STATUS(finish(crowd->held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
}

static void wait_in_crowd(void *context, int number)
{
    struct crowd *crowd = context;
    tl_lock_options options = mutex_options();
    int64_t start_ms, wait_ms, took_ms;
    tl_status status;
    tl_lock *lock;

    if (number == crowd->waiters) {
        release_after_polls(crowd);
        return;
    }
    lock = lock_new(f.client, crowd->serial, "wait", &options);
    start_ms = crew_now_ms();
    wait_ms = start_ms < crowd->until_ms ? crowd->until_ms - start_ms : 0;
    status = tl_lock_ask(lock, wait_ms);
    took_ms = crew_now_ms() - start_ms;
    if (status == TL_GRANTED) {
        __atomic_add_fetch(&crowd->granted, 1, __ATOMIC_SEQ_CST);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    } else {
        CREW_CHECK(status == TL_BUSY || status == TL_TIMEOUT);
        CREW_CHECK(tl_error_message()[0] != '\0');
        CREW_CHECK(took_ms >= wait_ms && took_ms < wait_ms + LATE_MS);
        __atomic_add_fetch(&crowd->expired, 1, __ATOMIC_SEQ_CST);
    }
    tl_lock_free(lock);
}

/* Thirty-two wait for a lock of another process: one of them asks. */
TEST(test_one_asks_for_all)
{
    enum { WAITERS = 32, POLLS = 20 };
    tl_lock_options options = mutex_options();
    struct crowd crowd = {.serial = "crowd", .waiters = WAITERS};
    tl_lock *held = granted(f.other, crowd.serial, "wait", &options);
    uint64_t before = statements_of(f.client);

    crowd.until_ms = crew_now_ms() + 1000;
    crew_threads(WAITERS, wait_in_crowd, &crowd);
    assert_int_equal(crowd.expired, WAITERS);
    /* With pauses of 5 to 200 ms, give or take half, one asks 15 times in a second at most, two
     * statements each; at the deadline each asks at most once more, and the client beats.  All of
     * them asking would be more than six hundred in a second. */
    assert_in_range(statements_of(f.client) - before, 1, 2 * (WAITERS + POLLS));

    /* It goes on asking, and hears of the release. */
    crowd = (struct crowd){.serial = "crowd",
                           .until_ms = crew_now_ms() + PATIENCE_MS,
                           .waiters = WAITERS,
                           .held = held,
                           .statements = statements_of(f.client)};
    crew_threads(WAITERS + 1, wait_in_crowd, &crowd);
    assert_int_equal(crowd.granted, WAITERS);
    tl_lock_free(held);
}

/* Waiting is for what may pass; the rest is answered at once. */
TEST(test_what_will_not_pass)
{
    tl_lock_options options = sync_options("x"), other = sync_options("y");
    tl_lock *lock = granted(f.client, "final", "wait", &options), *asked;
    int64_t start_ms = crew_now_ms();

    asked = lock_new(f.other, "final", "wait", &other);
    assert_status(tl_lock_ask(asked, PATIENCE_MS), TL_MISMATCH);
    tl_lock_free(asked);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    asked = lock_new(f.other, "final", "wait", &options);
    assert_status(tl_lock_ask(asked, PATIENCE_MS), TL_ALREADY_DONE);
    tl_lock_free(asked);
    assert_in_range(crew_now_ms() - start_ms, 0, PATIENCE_MS / 4);
    tl_lock_free(lock);
}

TESTS_OF(waiting, open_all, close_all)
