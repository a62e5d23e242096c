/* Several at once: all or none, in one order, without a deadlock. */
#include "fixture.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 64
#define TRANSFERS 5
#define OPENING 100000

FIXTURE_OF_ALL("pool_size=8\nask_wait_max_ms=50\n")

static tl_mutex *set_new(tl_client *client, const char *const *names, size_t count)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = NULL;

    if (tl_mutex_new_set(&mutex, client, names, count, &options) != TL_OK)
        server_panic("no set: %s", tl_error_message());
    return mutex;
}

TEST(test_all_or_none)
{
    const char *const names[] = {"z9", "b2", "m5"}, *const others[] = {"a1", "m5"};
    tl_mutex *set = set_new(f.client, names, 3), *other;
    long long rows;

    assert_status(tl_mutex_lock(set, 0), TL_GRANTED);
    assert_true(tl_mutex_fence(set, "z9") > 0 && tl_mutex_fence(set, "b2") > 0);
    assert_int_equal(tl_mutex_fence(set, "a1"), 0);
    rows = database_number(f.sql, "SELECT COUNT(*) FROM resource_log");
    other = set_new(f.other, others, 2);
    assert_status(tl_mutex_lock(other, 0), TL_BUSY);
    assert_string_equal(tl_mutex_view(other)->resource, "m5");
    /* Not even the free one among them was touched. */
    database_expect(f.sql, rows, "SELECT COUNT(*) FROM resource_log");
    assert_status(try_once(f.other, "a1"), TL_GRANTED);
    assert_status(try_once(f.other, "z9"), TL_BUSY);
    assert_status(tl_mutex_lock(set, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(set), TL_OK);
    assert_status(tl_mutex_unlock(set), TL_OK);
    assert_status(tl_mutex_unlock(set), TL_RELEASED);
    assert_status(tl_mutex_lock(other, 0), TL_GRANTED);
    tl_mutex_free(set);
    tl_mutex_free(other);
    database_expect(f.sql, 0, "SELECT COUNT(*) FROM resource_lock WHERE status='L'");
}

TEST(test_a_part_that_is_lost)
{
    const char *const names[] = {"p1", "p2", "p3"};
    tl_mutex *set = set_new(f.client, names, 3);
    MYSQL *caller = caller_new(&f);

    assert_status(tl_mutex_lock(set, 0), TL_GRANTED);
    assert_status(tl_mutex_guard(set, caller, 0), TL_OK);
    caller_run(caller, "COMMIT");
    assert_status(tl_resource_unlock(f.other, "p2", tl_mutex_fence(set, "p2"), "ann", "test"),
                  TL_OK);
    caller_run(caller, "START TRANSACTION");
    assert_status(tl_mutex_guard(set, caller, 0), TL_ROLL_BACK);
    caller_run(caller, "ROLLBACK");
    assert_status(tl_mutex_renew(set, 1000), TL_LOST);
    assert_status(tl_mutex_unlock(set), TL_LOST);
    assert_status(try_once(f.other, "p1"), TL_GRANTED);
    assert_status(try_once(f.other, "p3"), TL_GRANTED);
    mysql_close(caller);
    tl_mutex_free(set);
}

TEST(test_bad_sets)
{
    char names[TL_RESOURCES_MAX + 1][16];
    const char *all[TL_RESOURCES_MAX + 1];
    tl_mutex_options options = lease_options(0);
    tl_mutex *set = NULL;

    for (int i = 0; i <= TL_RESOURCES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "many-%d", (i * 37) % 1000);
        all[i] = names[i];
    }
    assert_status(tl_mutex_new_set(&set, f.client, all, 65, &options), TL_INVALID);
    assert_status(tl_mutex_new_set(&set, f.client, all, 0, &options), TL_INVALID);
    assert_status(tl_mutex_new_set(&set, f.client, NULL, 2, &options), TL_INVALID);
    all[1] = all[0];
    assert_status(tl_mutex_new_set(&set, f.client, all, 2, &options), TL_INVALID);
    all[1] = "has blank";
    assert_status(tl_mutex_new_set(&set, f.client, all, 2, &options), TL_INVALID);
    all[1] = names[1];
    options.flags = TL_MUTEX_BY_THREAD;
    assert_status(tl_mutex_new_set(&set, f.client, all, 2, &options), TL_INVALID);
    assert_null(set);
    set = set_new(f.client, all, 64);
    assert_status(tl_mutex_lock(set, 0), TL_GRANTED);
    database_expect(
        f.sql, 64,
        "SELECT COUNT(*) FROM resource_lock WHERE resource LIKE 'many-%%' AND status='L'");
    assert_status(tl_mutex_unlock(set), TL_OK);
    tl_mutex_free(set);
}

/* ---------------------------------------------------------------------- transfers -- */

static atomic_int failures;

/* Moves one cent after the other, in autocommit statements with a look in between: only the lock
 * keeps the sum. */
static int move(MYSQL *connection, int from, int to)
{
    char sql[128];
    long long left = database_number(connection, "SELECT cents FROM book WHERE id = %d", from);
    long long right = database_number(connection, "SELECT cents FROM book WHERE id = %d", to);

    snprintf(sql, sizeof sql, "UPDATE book SET cents = %lld WHERE id = %d", left - 1, from);
    if (mysql_query(connection, sql) != 0)
        return 0;
    snprintf(sql, sizeof sql, "UPDATE book SET cents = %lld WHERE id = %d", right + 1, to);
    return mysql_query(connection, sql) == 0;
}

static void *transfer(void *argument)
{
    int number = (int)(intptr_t)argument;
    int from = number % 2 ? 1 : 2, to = 3 - from;
    const char *const names[] = {from == 1 ? "book/1" : "book/2", from == 1 ? "book/2" : "book/1"};
    tl_mutex *set = set_new(number % 4 < 2 ? f.client : f.other, names, 2);
    MYSQL *connection = database_connect(f.db);

    for (int i = 0; i < TRANSFERS; i++)
        if (tl_mutex_lock(set, 60000) != TL_GRANTED || !move(connection, from, to) ||
            tl_mutex_unlock(set) != TL_OK)
            atomic_fetch_add(&failures, 1);
    mysql_close(connection);
    tl_mutex_free(set);
    return NULL;
}

TEST(test_transfers_in_opposite_directions)
{
    pthread_t threads[THREADS];
    long long deadlocks = server_counter(&f, "Innodb_deadlocks");

    database_run(f.sql,
                 "CREATE TABLE book (id INT PRIMARY KEY, cents BIGINT NOT NULL);"
                 "INSERT INTO book VALUES (1, %d), (2, %d)",
                 OPENING, OPENING);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, transfer, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
    /* As many went one way as the other. */
    database_expect(f.sql, OPENING, "SELECT cents FROM book WHERE id = 1");
    database_expect(f.sql, OPENING, "SELECT cents FROM book WHERE id = 2");
    print_message("%d threads, %d transfers, half of them the other way: %lld deadlocks\n", THREADS,
                  THREADS * TRANSFERS, server_counter(&f, "Innodb_deadlocks") - deadlocks);
    assert_int_equal(server_counter(&f, "Innodb_deadlocks"), deadlocks);
}

TESTS_OF(set, open_all, close_all)
