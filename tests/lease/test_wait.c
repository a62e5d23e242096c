/* Waiting: in the order of coming, one at the server, and no poll when the lock is given back in
 * the same process. */
#include "fixture.h"

#include "support/client.h"
#include "support/crew.h"
#include "support/theme.h"

#include <pthread.h>
#include <stdatomic.h>

/* Of the settings' least pause, what is left after the jitter. */
#define PAUSE_LEAST_MS 5000
#define WAITERS 8

/* Whoever polls comes back after 10 s only: what is quicker was woken. */
FIXTURE_OF_ALL("ask_wait_min_ms=10s\nask_wait_max_ms=20s\n")

static atomic_int arrivals, wrong;

struct waiting {
    int number;
    const char *resource;
    atomic_int thread; /* its number for the system, once it runs */
};

static uint64_t asks(void)
{
    return stats_of(f.client).asks;
}

/* It has asked, and sleeps in its place in the queue: it was not merely started. */
static void wait_until_queued(struct waiting *w, uint64_t asks_wanted)
{
    int seen = 0;

    for (int i = 0; i < PATIENCE_MS / 10 && seen < 3; i++) {
        crew_sleep_ms(10);
        seen = asks() >= asks_wanted && crew_is_asleep(atomic_load(&w->thread)) ? seen + 1 : 0;
    }
    assert_int_equal(seen, 3);
}

static void *wait_in_line(void *argument)
{
    struct waiting *w = argument;
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(f.client, w->resource, &options);

    atomic_store(&w->thread, gettid());
    if (tl_mutex_lock(mutex, 600000) != TL_GRANTED)
        atomic_fetch_add(&wrong, 1);
    if (atomic_fetch_add(&arrivals, 1) != w->number)
        atomic_fetch_add(&wrong, 1);
    if (tl_mutex_unlock(mutex) != TL_OK)
        atomic_fetch_add(&wrong, 1);
    tl_mutex_free(mutex);
    return NULL;
}

static uint64_t statements(void)
{
    return stats_of(f.client).statements;
}

/* All of it is over before anybody looks again: only then it shows that nobody needed to. A machine
 * that is too busy for that gets more than one chance. */
static void must_be_quick(int (*attempt)(void))
{
    int quick = 0;

    for (int i = 0; i < 20 && !quick; i++) {
        int64_t begun_ms = crew_now_ms();

        quick = attempt() && crew_now_ms() - begun_ms < PAUSE_LEAST_MS;
    }
    assert_true(quick);
}

/* 1 when one of the eight had asked, once, by the time that all stood in line. */
static int stand_in_line(void)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "line", &options);
    struct waiting w[WAITERS];
    pthread_t threads[WAITERS];
    uint64_t before = statements(), asked = asks();
    int quiet;

    atomic_store(&arrivals, 0);
    for (int i = 0; i < WAITERS; i++) {
        w[i].number = i;
        w[i].resource = "line";
        atomic_init(&w[i].thread, 0);
        pthread_create(&threads[i], NULL, wait_in_line, &w[i]);
        wait_until_queued(&w[i], asked + (uint64_t)i + 1);
    }
    quiet = statements() - before <= 2;
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    tl_mutex_free(mutex);
    return quiet;
}

TEST(test_first_come_first_served_without_polling)
{
    must_be_quick(stand_in_line);
}

static void *wait_for_set(void *argument)
{
    static const char *const names[] = {"s1", "s2", "s3"};
    tl_mutex_options options = lease_options(0);
    tl_mutex *set = NULL;

    (void)argument;
    if (tl_mutex_new_set(&set, f.client, names, 3, &options) != TL_OK ||
        tl_mutex_lock(set, 600000) != TL_GRANTED)
        atomic_fetch_add(&wrong, 1);
    tl_mutex_free(set);
    return NULL;
}

static int unlock_one_by_one(void)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *second = locked(f.client, "s2", &options);
    tl_mutex *third = locked(f.client, "s3", &options);
    pthread_t thread;

    pthread_create(&thread, NULL, wait_for_set, NULL);
    crew_sleep_ms(200);
    assert_status(tl_mutex_unlock(second), TL_OK);
    crew_sleep_ms(200);
    assert_status(tl_mutex_unlock(third), TL_OK);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    tl_mutex_free(second);
    tl_mutex_free(third);
    return 1;
}

/* A set is woken by whichever of its resources was in the way. */
TEST(test_a_set_is_woken_too)
{
    must_be_quick(unlock_one_by_one);
}

static int wait_in_vain(void)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "vain", &options);
    tl_mutex *late = mutex_new(f.client, "vain", &options);
    int64_t begun_ms = crew_now_ms();

    assert_status(tl_mutex_lock(late, 300), TL_TIMEOUT);
    assert_true(crew_now_ms() - begun_ms >= 290);
    assert_int_equal(tl_mutex_view(late)->state, TL_RESOURCE_HELD);
    tl_mutex_free(late);
    tl_mutex_free(mutex);
    return 1;
}

/* The deadline ends the sleep as well. */
TEST(test_a_wait_that_is_in_vain)
{
    must_be_quick(wait_in_vain);
}

TESTS_OF(wait, open_all, close_all)
