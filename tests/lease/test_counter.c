/* The counter, each statement for itself, under a lease mutex. */
#include "lease/counter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

static int count_up(const fixture *of, int with_lock, int times)
{
    tl_mutex_options options = lease_options(0);
    tl_client *client = client_new(of);
    tl_mutex *mutex = mutex_new(client, "counter", &options);
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

static void test_no_update_is_lost(void **state)
{
    (void)state;
    counter_is_right(&f, "lease mutex", count_up);
}

static void test_without_the_lock_updates_are_lost(void **state)
{
    (void)state;
    counter_is_wrong_without(&f, "lease mutex", count_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_update_is_lost),
        cmocka_unit_test(test_without_the_lock_updates_are_lost),
    };

    return server_report(cmocka_run_group_tests(tests, setup, teardown));
}
