/* Waiting: in the order of coming, one at the server, and no poll when the lock is given
 * back in the same process. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#define WAITERS 8

static fixture f;

/* Whoever polls comes back after 10 s only: what is quicker was woken. */
static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "ask_wait_min_ms=10s\nask_wait_max_ms=20s\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static atomic_int arrivals, wrong;

struct waiting {
    int number;
    const char *resource;
    int64_t waited_ms;
};

static void *wait_in_line(void *argument)
{
    struct waiting *w = argument;
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(f.client, w->resource, &options);
    int64_t begun_ms = now_ms();

    if (tl_mutex_lock(mutex, 60000) != TL_GRANTED)
        atomic_fetch_add(&wrong, 1);
    w->waited_ms = now_ms() - begun_ms;
    if (atomic_fetch_add(&arrivals, 1) != w->number)
        atomic_fetch_add(&wrong, 1);
    if (tl_mutex_unlock(mutex) != TL_OK)
        atomic_fetch_add(&wrong, 1);
    tl_mutex_free(mutex);
    return NULL;
}

static uint64_t statements(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(f.client, &stats), TL_OK);
    return stats.statements;
}

static void test_first_come_first_served_without_polling(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "line", &options);
    struct waiting w[WAITERS];
    pthread_t threads[WAITERS];
    uint64_t before;

    (void)state;
    before = statements();
    for (int i = 0; i < WAITERS; i++) {
        w[i] = (struct waiting){.number = i, .resource = "line"};
        pthread_create(&threads[i], NULL, wait_in_line, &w[i]);
        sleep_ms(60);
    }
    /* One of the eight asked, once. */
    assert_in_range(statements() - before, 1, 2);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    assert_in_range(w[WAITERS - 1].waited_ms, 0, 5000);
    tl_mutex_free(mutex);
}

static void *wait_for_set(void *argument)
{
    static const char *const names[] = {"s1", "s2", "s3"};
    tl_mutex_options options = lease_options(0);
    tl_mutex *set = NULL;
    int64_t begun_ms = now_ms();

    if (tl_mutex_new_set(&set, f.client, names, 3, &options) != TL_OK ||
        tl_mutex_lock(set, 60000) != TL_GRANTED)
        atomic_fetch_add(&wrong, 1);
    *(int64_t *)argument = now_ms() - begun_ms;
    tl_mutex_free(set);
    return NULL;
}

/* A set is woken by whichever of its resources was in the way. */
static void test_a_set_is_woken_too(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *second = locked(f.client, "s2", &options);
    tl_mutex *third = locked(f.client, "s3", &options);
    int64_t waited_ms = 0;
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, wait_for_set, &waited_ms);
    sleep_ms(200);
    assert_status(tl_mutex_unlock(second), TL_OK);
    sleep_ms(200);
    assert_status(tl_mutex_unlock(third), TL_OK);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    assert_in_range(waited_ms, 300, 5000);
    tl_mutex_free(second);
    tl_mutex_free(third);
}

static void test_a_wait_that_is_in_vain(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "vain", &options);
    tl_mutex *late = mutex_new(f.client, "vain", &options);
    int64_t begun_ms = now_ms();

    (void)state;
    assert_status(tl_mutex_lock(late, 300), TL_TIMEOUT);
    assert_in_range(now_ms() - begun_ms, 290, 2000);
    assert_int_equal(tl_mutex_view(late)->state, TL_RESOURCE_HELD);
    tl_mutex_free(late);
    tl_mutex_free(mutex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_come_first_served_without_polling),
        cmocka_unit_test(test_a_set_is_woken_too),
        cmocka_unit_test(test_a_wait_that_is_in_vain),
    };

    return server_report(cmocka_run_group_tests(tests, setup, teardown));
}
