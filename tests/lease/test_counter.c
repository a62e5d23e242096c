/* The counter, each statement for itself, under a lease mutex, and under a set of three. */
#include "lease/counter.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

#define WAIT_MS 600000

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "ask_wait_min_ms=1ms\nask_wait_max_ms=40ms\nsession_ms=60s\n");
    counter_make(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static tl_mutex *make_one(tl_client *client)
{
    tl_mutex_options options = lease_options(0);

    return mutex_new(client, "counter", &options);
}

/* Every other process names them the other way round. */
static tl_mutex *make_set(tl_client *client)
{
    static const char *const there[] = {"a", "counter", "z"};
    static const char *const back[] = {"z", "counter", "a"};
    tl_mutex_options options = lease_options(0);
    tl_mutex *set = NULL;

    if (tl_mutex_new_set(&set, client, getpid() % 2 ? there : back, 3, &options) != TL_OK)
        server_panic("no set: %s", tl_error_message());
    return set;
}

static int count_under(const fixture *of, tl_mutex *(*make)(tl_client *client), int with_lock,
                       int times)
{
    tl_client *client = client_new(of);
    tl_mutex *mutex = make(client);
    MYSQL *connection = database_connect(of->db);
    int good = 0;

    for (; good < times; good++) {
        if (with_lock && tl_mutex_lock(mutex, WAIT_MS) != TL_GRANTED)
            break;
        if (!counter_raise(connection))
            break;
        if (with_lock && tl_mutex_unlock(mutex) != TL_OK)
            break;
    }
    if (good < times)
        print_error("round %d: %s\n", good, tl_error_message());
    mysql_close(connection);
    tl_mutex_free(mutex);
    tl_client_close(client);
    return good == times;
}

static int count_up(const fixture *of, int with_lock, int times)
{
    return count_under(of, make_one, with_lock, times);
}

static int count_up_under_a_set(const fixture *of, int with_lock, int times)
{
    return count_under(of, make_set, with_lock, times);
}

static void test_no_update_is_lost(void **state)
{
    (void)state;
    counter_is_right(&f, "lease mutex", count_up);
}

static void test_no_update_is_lost_under_a_set(void **state)
{
    (void)state;
    counter_is_right(&f, "set of three", count_up_under_a_set);
}

static void test_without_the_lock_updates_are_lost(void **state)
{
    (void)state;
    counter_is_wrong_without(&f, "lease mutex", count_up);
}

TEST_MAIN(counter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_update_is_lost),
        cmocka_unit_test(test_no_update_is_lost_under_a_set),
        cmocka_unit_test(test_without_the_lock_updates_are_lost),
    };

    return server_run_tests(tests, setup, teardown);
}
