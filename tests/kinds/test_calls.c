/* What each call answers: to bad input, in a wrong order, on names and times, and within the
 * caller's transaction. */
#include "kinds/kinds.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <stdint.h>

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, "beat_ms=100\nsession_ms=30s\nask_wait_min_ms=5ms\nask_wait_max_ms=20ms\n");
    database_run(f.sql, "CREATE TABLE business (id INT PRIMARY KEY, n INT NOT NULL);"
                        "INSERT INTO business VALUES (1, 100)");
}

FIXTURE(teardown)
{
    assert_holders_whole(&f, 0);
    fixture_close(&f);
}

static long long business(void)
{
    return database_number(f.sql, "SELECT n FROM business");
}

/* Whether its lease is not over, as the server counts. */
static int is_running(const char *resource)
{
    return database_number(f.sql,
                           "SELECT EXISTS (SELECT 1 FROM resource_lock WHERE resource = '%s' AND "
                           "lease_until > UTC_TIMESTAMP(6)) OR EXISTS (SELECT 1 FROM "
                           "resource_holder WHERE resource = '%s' AND over_at > UTC_TIMESTAMP(6))",
                           resource, resource) != 0;
}

/* Of a lock that nobody holds, or whose time is over. */
static any_lock taken_at_last(const char *resource)
{
    any_lock lock = any_new(f.other, resource, 0);

    assert_status(any_take(lock, PATIENCE_MS), TL_GRANTED);
    return lock;
}

/* -------------------------------------------------------------------- bad input -- */

struct input {
    const char *resource;
    int64_t lease_ms, max_hold_ms;
    const char *remark;
};

static tl_status try_input(const struct input *in)
{
    tl_mutex_options of_mutex = lease_options(in->lease_ms);
    tl_rw_options of_rw = rw_options(in->lease_ms);
    any_lock lock = {NULL, NULL};
    tl_status status;

    of_mutex.max_hold_ms = of_rw.max_hold_ms = in->max_hold_ms;
    of_mutex.remark = of_rw.remark = in->remark;
    status = tested == RW ? tl_rw_new(&lock.rw, f.client, in->resource, &of_rw)
                          : tl_mutex_new(&lock.mutex, f.client, in->resource, &of_mutex);
    assert_true((lock.rw != NULL || lock.mutex != NULL) == (status == TL_OK));
    any_free(lock);
    return status;
}

static void refuse(const struct input *in)
{
    assert_status(try_input(in), TL_INVALID);
    assert_true(strlen(tl_error_message()) > 0);
}

TEST(test_bad_input)
{
    char longest[TL_RESOURCE_MAX + 2];
    const struct input wrong[] = {
        {NULL, 0, 60000, NULL},
        {"", 0, 60000, NULL},
        {longest, 0, 60000, NULL},
        {"two words", 0, 60000, NULL},
        {"tab\there", 0, 60000, NULL},
        {"gr\xc3\xbcn", 0, 60000, NULL},
        {"ok", -1, 60000, NULL},
        {"ok", INT64_MAX, 60000, NULL},
        {"ok", 60001, 60000, NULL},
        {"ok", 0, 0, NULL},
        {"ok", 0, -1, NULL},
        {"ok", 0, TL_HOLD_MAX_MS + 1, NULL},
        {"ok", 0, 60000, "R\xe9sum\xe9"},
    };

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuse(&wrong[i]);
    assert_status(try_input(&(struct input){"ok", 60000, 0, "fine"}), TL_OK);
}

/* What a mutex alone has, and versions. */
TEST(test_bad_options)
{
    static const char payload[TL_RESOURCE_PAYLOAD_MAX + 1];
    tl_mutex_options bad[4];
    tl_rw_options of_rw = rw_options(0);
    tl_mutex *mutex = NULL;
    tl_rw *rw = NULL;

    for (int i = 0; i < 4; i++)
        bad[i] = lease_options(0);
    bad[0].min_hold_ms = -5;
    bad[1].flags = 64;
    bad[2].payload = payload;
    bad[2].payload_size = sizeof payload;
    bad[3].version = of_rw.version = 0;
    for (int i = 0; i < 4; i++)
        assert_status(tl_mutex_new(&mutex, f.client, "ok", &bad[i]), TL_INVALID);
    assert_null(mutex);
    assert_status(tl_rw_new(&rw, f.client, "ok", &of_rw), TL_INVALID);
    assert_null(rw);
}

TEST(test_calls_in_a_wrong_order)
{
    any_lock lock = any_new(f.client, "never-locked", 0);

    assert_status(any_unlock(lock), TL_NOT_HELD);
    assert_status(any_renew(lock, 1000), TL_NOT_HELD);
    assert_status(any_take(lock, -1), TL_INVALID);
    assert_status(any_take(lock, TL_HOLD_MAX_MS + 1), TL_INVALID);
    assert_int_equal(any_fence(lock), 0);
    assert_int_equal(any_remaining_ms(lock), 0);
    /* Nothing was written. */
    assert_int_equal(database_number(f.sql, "SELECT (SELECT COUNT(*) FROM resource_lock WHERE "
                                            "resource = 'never-locked') + (SELECT COUNT(*) FROM "
                                            "resource_holder WHERE resource = 'never-locked')"),
                     0);
    assert_status(any_take(lock, 0), TL_GRANTED);
    assert_status(any_renew(lock, 0), TL_INVALID);
    assert_status(any_unlock(lock), TL_OK);
    assert_status(any_unlock(lock), TL_RELEASED);
    assert_status(any_renew(lock, 1000), TL_RELEASED);
    any_free(lock);
    any_free((any_lock){NULL, NULL});
}

TEST(test_names_are_exact)
{
    char longest[TL_RESOURCE_MAX + 1];
    any_lock lock = any_taken(f.client, "Case", 0);

    memset(longest, '?', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_status(any_try(f.other, "case"), TL_GRANTED);
    assert_status(any_try(f.other, "Case2"), TL_GRANTED);
    assert_status(any_try(f.other, longest), TL_GRANTED);
    assert_status(any_try(f.other, "it's%_\\"), TL_GRANTED);
    assert_status(any_try(f.other, "Case"), TL_BUSY);
    /* One of the other kind is another lock. */
    assert_status(tested == RW ? try_once(f.other, "Case") : try_read(f.other, "Case"), TL_GRANTED);
    any_free(lock);
}

/* ------------------------------------------------------------------------- times -- */

TEST(test_renewing_by_hand)
{
    any_lock lock = any_new_for(f.client, "by-hand", 4500, 8500);

    assert_status(any_take(lock, 0), TL_GRANTED);
    /* Longer than the first lease. */
    for (int i = 0; i < 3; i++) {
        crew_sleep_ms(1600);
        assert_status(any_renew(lock, 4500), TL_OK);
    }
    assert_status(any_try(f.other, "by-hand"), TL_BUSY);
    /* Never beyond max_hold. */
    assert_status(any_renew(lock, 60000), TL_OK);
    assert_true(any_remaining_ms(lock) <= 8500 - 3 * 1600);
    while (any_remaining_ms(lock) > 0)
        crew_sleep_ms(10);
    assert_status(any_renew(lock, 4500), TL_LOST);
    any_free(taken_at_last("by-hand"));
    assert_status(any_unlock(lock), TL_LOST);
    assert_status(any_unlock(lock), TL_LOST);
    any_free(lock);
}

TEST(test_automatic_renewal_stops_when_told)
{
    any_lock lock = any_taken(f.client, "stops", 0);

    assert_true(any_remaining_ms(lock) > 1000);
    assert_status(any_renew(lock, 200), TL_OK);
    assert_true(any_remaining_ms(lock) <= 200);
    crew_sleep_ms(250);
    any_free(taken_at_last("stops"));
    any_free(lock);
}

/* ------------------------------------------------------- the caller's transaction -- */

TEST(test_possession_is_kept_until_the_commit)
{
    any_lock lock = any_taken(f.client, "kept", 4000), next = any_new(f.other, "kept", 0);
    MYSQL *caller = caller_new(&f);
    uint64_t fence = any_fence(lock);

    assert_status(any_guard(lock, caller), TL_OK);
    caller_run(caller, "UPDATE business SET n = n - 30");
    AWAIT_WHILE(is_running("kept"));
    /* The lease is over, and still nobody gets in, nor may an operator take it away. */
    assert_status(any_take(next, 0), TL_BUSY);
    assert_true(tested == RW || tl_mutex_view(next.mutex)->being_decided);
    assert_status(any_force(f.other, "kept", fence), TL_BUSY);
    caller_run(caller, "COMMIT");
    assert_status(any_take(next, PATIENCE_MS), TL_GRANTED);
    assert_int_equal(business(), 70);
    database_run(f.sql, "UPDATE business SET n = 100");
    assert_status(any_unlock(lock), TL_LOST);
    mysql_close(caller);
    any_free(lock);
    any_free(next);
}

TEST(test_a_late_holder_must_roll_back)
{
    any_lock lock = any_taken(f.client, "late", 100), next;
    MYSQL *caller = caller_new(&f);

    /* Late by its own clock, before anybody took over. */
    crew_sleep_ms(150);
    assert_status(any_guard(lock, caller), TL_ROLL_BACK);
    next = taken_at_last("late");
    assert_status(any_guard(lock, caller), TL_ROLL_BACK);
    assert_int_equal(tl_status_class(TL_ROLL_BACK), TL_CLASS_ROLL_BACK);
    assert_status(any_unlock(lock), TL_LOST);
    assert_status(any_guard(lock, caller), TL_ROLL_BACK);
    mysql_close(caller);
    any_free(next);
    any_free(lock);
}

/* Taken away behind its back: only the server knows. */
TEST(test_a_lock_that_was_taken_away)
{
    any_lock lock = any_taken(f.client, "away", 0);
    MYSQL *caller = caller_new(&f);

    assert_status(any_force(f.other, "away", any_fence(lock)), TL_OK);
    assert_true(any_remaining_ms(lock) > 0);
    assert_status(any_guard(lock, caller), TL_ROLL_BACK);
    mysql_close(caller);
    any_free(lock);
}

static void refuse_connections(const char *resource, any_proof prove)
{
    any_lock lock = any_taken(f.client, resource, 0), idle = any_new(f.client, "idle", 0);
    MYSQL *caller = database_connect(f.db);

    assert_status(prove(lock, NULL, 0), TL_INVALID);
    assert_status(prove(lock, caller, 0), TL_NO_TRANSACTION);
    database_run(caller, "START TRANSACTION");
    assert_status(prove(lock, caller, 64), TL_INVALID);
    assert_status(prove(lock, caller, 0), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "idle_transaction_timeout"));
    assert_status(prove(lock, caller, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(caller, "COMMIT");
    assert_status(prove(lock, caller, TL_GUARD_ANY_IDLE), TL_NO_TRANSACTION);
    database_run(caller, "SET autocommit = 0, idle_transaction_timeout = 60");
    assert_status(prove(lock, caller, 0), TL_OK);
    /* Never committed, rolled back or SET by the proof. */
    assert_int_equal(database_number(caller, "SELECT @@in_transaction"), 1);
    assert_int_equal(database_number(caller, "SELECT @@idle_transaction_timeout"), 60);
    database_run(caller, "ROLLBACK");
    assert_status(prove(idle, caller, 0), TL_NOT_HELD);
    assert_status(any_unlock(lock), TL_OK);
    assert_status(prove(lock, caller, 0), TL_RELEASED);
    mysql_close(caller);
    any_free(idle);
    any_free(lock);
}

TEST(test_connections_that_are_refused)
{
    refuse_connections("guard", any_guard_with);
    if (tested == RW)
        refuse_connections("done", any_done_with);
    /* Nothing was written but the lock, what was done and committed, and the unlock. */
    assert_int_equal(database_number(f.sql, tested == RW
                                                ? "SELECT COUNT(*) FROM resource_holder_log "
                                                  "WHERE resource IN ('guard', 'done')"
                                                : "SELECT COUNT(*) FROM resource_log "
                                                  "WHERE resource = 'guard'"),
                     tested == RW ? 5 : 2);
}

TEST_MAIN(calls)
{
    kind_choose(argc, argv);
    return tests_run(setup, teardown);
}
