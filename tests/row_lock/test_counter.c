/* The counter under a row lock: in transactions, with a plain read. */
#include "lease/counter.h"
#include "support/theme.h"

#include <tradelock/row_lock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <unistd.h>

static fixture f;

static int setup(void **state)
{
    (void)state;
    fixture_open(&f, "session_ms=60s\n");
    counter_make(&f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

/* The lock comes before the first read: a snapshot of REPEATABLE READ would begin with that, and be
 * old by the time the lock is there. */
static int count_up(const fixture *of, int with_lock, int times)
{
    tl_client *client = client_new(of);
    MYSQL *caller = database_connect(of->db);
    int good = 0;

    database_run(caller, "SET idle_transaction_timeout = 600, "
                         "innodb_lock_wait_timeout = 600");
    if (!with_lock) /* else the server would refuse with 1020 what is to be lost */
        database_run(caller, "SET innodb_snapshot_isolation = OFF");
    for (; good < times; good++) {
        long long n;

        database_run(caller, "START TRANSACTION");
        if (with_lock &&
            tl_row_lock(client, "counter", caller, TL_ROW_LOCK_BLOCK, 0) != TL_GRANTED) {
            print_error("round %d: %s\n", good, tl_error_message());
            break;
        }
        n = database_number(caller, "SELECT n FROM counter WHERE id = 1");
        usleep(100);
        database_run(caller, "UPDATE counter SET n = %lld WHERE id = 1", n + 1);
        database_run(caller, "COMMIT");
    }
    mysql_close(caller);
    tl_client_close(client);
    return good == times;
}

static void test_no_update_is_lost(void **state)
{
    (void)state;
    counter_is_right(&f, "row lock", count_up);
}

static void test_without_the_lock_updates_are_lost(void **state)
{
    (void)state;
    counter_is_wrong_without(&f, "row lock", count_up);
}

TEST_MAIN(counter)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_update_is_lost),
        cmocka_unit_test(test_without_the_lock_updates_are_lost),
    };

    return server_run_tests(tests, setup, teardown);
}
