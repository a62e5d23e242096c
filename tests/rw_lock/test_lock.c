/* Reading, writing, the caller's transaction, and everything that is refused. */
#include "rw_lock/fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

static fixture f;
static int by_hand;

FIXTURE(setup)
{
    fixture_open(&f, "commit_ms=300ms\nask_wait_min_ms=5ms\nask_wait_max_ms=20ms\n");
    database_run(f.sql, "CREATE TABLE business (id INT PRIMARY KEY, n INT NOT NULL);"
                        "INSERT INTO business VALUES (1, 0)");
}

FIXTURE(teardown)
{
    assert_holders_whole(&f, by_hand);
    fixture_close(&f);
}

static long long business(void)
{
    return database_number(f.sql, "SELECT n FROM business WHERE id = 1");
}

/* The holder looks dead from now on, whatever its process thinks. */
static void make_dead(const char *resource)
{
    database_run(f.sql,
                 "UPDATE resource_holder SET over_at = UTC_TIMESTAMP(6) WHERE "
                 "resource = '%s' AND status <> 'F'",
                 resource);
    by_hand++;
}

/* ------------------------------------------------------------------ who may enter -- */

TEST(test_many_readers_or_one_writer)
{
    tl_rw *one = reading(f.client, "many", 0), *two = reading(f.other, "many", 0),
          *three = reading(f.client, "many", 0), *writer;

    assert_true(tl_rw_held(one) == TL_RW_READ && tl_rw_fence(two) > tl_rw_fence(one));
    assert_status(try_write(f.client, "many"), TL_BUSY);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM resource_holder "
                                            "WHERE resource = 'many' AND status = 'H'"),
                     3);
    assert_status(tl_rw_unlock(one), TL_OK);
    assert_status(tl_rw_unlock(two), TL_OK);
    assert_status(try_write(f.client, "many"), TL_BUSY);
    assert_status(tl_rw_unlock(three), TL_OK);
    writer = writing(f.other, "many", 0);
    assert_true(tl_rw_held(writer) == TL_RW_WRITE);
    assert_true(tl_rw_remaining_ms(writer) > 0);
    assert_status(try_write(f.client, "many"), TL_BUSY);
    assert_status(tl_rw_read(one, 0), TL_BUSY);
    assert_true(tl_rw_view(one)->mode == TL_RW_WRITE);
    assert_true(tl_rw_view(one)->fence == tl_rw_fence(writer));
    assert_string_equal(tl_rw_view(one)->session_id, tl_client_session(f.other));
    assert_non_null(strstr(tl_error_message(), "written by test"));
    assert_status(tl_rw_unlock(writer), TL_OK);
    assert_status(tl_rw_read(one, 0), TL_GRANTED);
    assert_true(tl_rw_fence(one) > tl_rw_fence(two));
    tl_rw_free(one);
    tl_rw_free(two);
    tl_rw_free(three);
    tl_rw_free(writer);
    /* Rows are used again, not added. */
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM resource_holder "
                                            "WHERE resource = 'many'"),
                     3);
    assert_status(write_when_free(f.client, "many"), TL_GRANTED);
}

/* A refusal writes no row. */
TEST(test_a_refusal_writes_nothing)
{
    tl_rw *reader = reading(f.client, "refused", 0);
    long long before = database_number(f.sql, "SELECT COUNT(*) FROM resource_holder_log");

    assert_status(try_write(f.other, "refused"), TL_BUSY);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM resource_holder_log"), before);
    tl_rw_free(reader);
}

TEST(test_downgrade)
{
    tl_rw *writer = writing(f.client, "down", 0), *idle = rw_new(f.client, "down", 0);
    uint64_t fence = tl_rw_fence(writer);

    assert_status(try_read(f.other, "down"), TL_BUSY);
    assert_status(tl_rw_downgrade(writer), TL_OK);
    assert_true(tl_rw_held(writer) == TL_RW_READ && tl_rw_fence(writer) == fence);
    assert_status(tl_rw_downgrade(writer), TL_OK);
    assert_status(try_read(f.other, "down"), TL_GRANTED);
    assert_status(try_write(f.other, "down"), TL_BUSY);
    assert_status(tl_rw_unlock(writer), TL_OK);
    assert_status(write_when_free(f.other, "down"), TL_GRANTED);
    assert_status(tl_rw_downgrade(writer), TL_RELEASED);
    assert_status(tl_rw_downgrade(idle), TL_NOT_HELD);
    /* Too late. */
    assert_status(tl_rw_write(writer, 0), TL_GRANTED);
    make_dead("down");
    assert_status(write_when_free(f.other, "down"), TL_GRANTED);
    assert_status(tl_rw_downgrade(writer), TL_LOST);
    assert_status(tl_rw_unlock(writer), TL_LOST);
    tl_rw_free(idle);
    tl_rw_free(writer);
}

TEST(test_upgrade_is_refused)
{
    tl_rw *reader = reading(f.client, "up", 0);

    assert_status(tl_rw_write(reader, 0), TL_WOULD_UPGRADE);
    assert_status(tl_rw_write(reader, 5000), TL_WOULD_UPGRADE);
    assert_status(tl_rw_read(reader, 0), TL_WRONG_STATE);
    assert_true(tl_rw_held(reader) == TL_RW_READ);
    assert_status(try_read(f.other, "up"), TL_GRANTED);
    assert_status(tl_rw_unlock(reader), TL_OK);
    assert_status(tl_rw_write(reader, 0), TL_GRANTED);
    /* Downgraded, it is a reader like any other. */
    assert_status(tl_rw_downgrade(reader), TL_OK);
    assert_status(tl_rw_write(reader, 0), TL_WOULD_UPGRADE);
    tl_rw_free(reader);
}

/* ------------------------------------------------------------------ business done -- */

TEST(test_acquired_done_released)
{
    tl_rw *writer = writing(f.client, "done", 0);
    MYSQL *caller = caller_new(&f);
    char *steps;

    caller_run(caller, "UPDATE business SET n = 7 WHERE id = 1");
    assert_status(tl_rw_done(writer, caller, 0), TL_OK);
    caller_run(caller, "COMMIT");
    assert_int_equal(business(), 7);
    assert_int_equal(database_number(f.sql, "SELECT done_at >= acquired_at AND status = 'D' "
                                            "FROM resource_holder WHERE resource = 'done'"),
                     1);
    assert_status(try_read(f.other, "done"), TL_BUSY);
    assert_status(tl_rw_unlock(writer), TL_OK);
    assert_int_equal(database_number(f.sql, "SELECT released_at >= done_at FROM "
                                            "resource_holder WHERE resource = 'done'"),
                     1);
    steps = database_text(f.sql, "SELECT GROUP_CONCAT(step ORDER BY logged_at) FROM "
                                 "resource_holder_log WHERE resource = 'done'");
    assert_string_equal(steps, "write,done,release");
    free(steps);
    tl_rw_free(writer);
    mysql_close(caller);
}

/* What is rolled back with the business was not done. */
TEST(test_done_goes_with_the_transaction)
{
    tl_rw *reader = reading(f.client, "undone", 0);
    MYSQL *caller = caller_new(&f);

    assert_status(tl_rw_done(reader, caller, 0), TL_OK);
    caller_run(caller, "ROLLBACK");
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM resource_holder WHERE "
                                            "resource = 'undone' AND done_at IS NULL "
                                            "AND status = 'H'"),
                     1);
    assert_status(tl_rw_unlock(reader), TL_OK);
    tl_rw_free(reader);
    mysql_close(caller);
}

TEST(test_the_janitor_was_faster)
{
    tl_status (*const proofs[])(tl_rw *, MYSQL *, unsigned) = {tl_rw_done, tl_rw_guard};

    database_run(f.sql, "UPDATE business SET n = 1");
    for (int i = 0; i < 2; i++) {
        tl_rw *writer = writing(f.client, "faster", 0);
        MYSQL *caller = caller_new(&f);
        tl_status status;

        caller_run(caller, "UPDATE business SET n = 99 WHERE id = 1");
        make_dead("faster");
        assert_status(write_when_free(f.other, "faster"), TL_GRANTED);
        assert_true(tl_rw_remaining_ms(writer) > 0);
        status = proofs[i](writer, caller, 0);
        assert_status(status, TL_ROLL_BACK);
        assert_int_equal(tl_status_class(status), TL_CLASS_ROLL_BACK);
        caller_run(caller, "ROLLBACK");
        assert_int_equal(business(), 1);
        assert_status(tl_rw_unlock(writer), TL_LOST);
        tl_rw_free(writer);
        mysql_close(caller);
    }
}

/* Its row is locked by the caller's transaction: dead or not, it is not freed before that has
 * ended; and a free row that such a transaction keeps does not stop others. */
TEST(test_the_transaction_was_faster)
{
    MYSQL *caller = caller_new(&f);
    tl_rw *writer = writing(f.client, "kept", 4000);

    assert_status(tl_rw_done(writer, caller, 0), TL_OK);
    while (tl_rw_remaining_ms(writer) > 0)
        crew_sleep_ms(10);
    crew_sleep_ms(100);
    assert_status(try_write(f.other, "kept"), TL_BUSY);
    assert_status(try_read(f.other, "kept"), TL_BUSY);
    assert_status(tl_rw_unlock(writer), TL_TRY_AGAIN);
    assert_status(tl_rw_read(writer, 0), TL_WRONG_STATE);
    caller_run(caller, "COMMIT");
    assert_status(write_when_free(f.other, "kept"), TL_GRANTED);
    assert_status(tl_rw_unlock(writer), TL_LOST);
    /* The late transaction holds the free row until it rolls back. */
    assert_status(tl_rw_write(writer, 0), TL_GRANTED);
    assert_status(tl_rw_renew(writer, 60000), TL_OK);
    make_dead("kept");
    assert_status(write_when_free(f.other, "kept"), TL_GRANTED);
    caller_run(caller, "START TRANSACTION");
    assert_status(tl_rw_guard(writer, caller, 0), TL_ROLL_BACK);
    assert_status(write_when_free(f.other, "kept"), TL_GRANTED);
    caller_run(caller, "ROLLBACK");
    tl_rw_free(writer);
    mysql_close(caller);
}

/* ---------------------------------------------------------------------- operators -- */

struct seen {
    int count, readers, writers;
};

static int see(void *context, const tl_holder_view *view)
{
    struct seen *seen = context;

    seen->count++;
    if (view->state == TL_HOLDER_HELD && strncmp(view->holder, "test ", 5) == 0) {
        seen->readers += view->mode == TL_RW_READ;
        seen->writers += view->mode == TL_RW_WRITE;
    }
    return 0;
}

TEST(test_listing)
{
    tl_rw *one = reading(f.client, "list/a", 0), *two = reading(f.other, "list/a", 0),
          *three = writing(f.client, "list/b", 0);
    struct seen seen = {0, 0, 0};

    assert_status(tl_holder_list(f.client, "list/a", 0, 0, see, &seen), TL_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.readers, 2);
    assert_status(tl_rw_unlock(two), TL_OK);
    seen = (struct seen){0, 0, 0};
    assert_status(tl_holder_list(f.client, NULL, 0, 0, see, &seen), TL_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.writers, 1);
    seen = (struct seen){0, 0, 0};
    assert_status(tl_holder_list(f.client, "list/a", 1, 0, see, &seen), TL_OK);
    assert_int_equal(seen.count, 2);
    seen = (struct seen){0, 0, 0};
    assert_status(tl_holder_list(f.client, NULL, 1, 1, see, &seen), TL_OK);
    assert_int_equal(seen.count, 1);
    assert_status(tl_holder_list(f.client, "a b", 0, 0, see, &seen), TL_INVALID);
    assert_status(tl_holder_list(f.client, NULL, 0, 0, NULL, NULL), TL_INVALID);
    tl_rw_free(one);
    tl_rw_free(two);
    tl_rw_free(three);
}

/* One of two readers is taken out; the other, and nobody else, stays. */
TEST(test_an_operator_takes_it_from_one)
{
    tl_rw *one = reading(f.client, "force", 0), *two = reading(f.other, "force", 0);
    MYSQL *caller = caller_new(&f);
    uint64_t fence = tl_rw_fence(one);

    assert_status(tl_holder_unlock(f.other, "force", 1, fence, "", "hangs"), TL_INVALID);
    assert_status(tl_holder_unlock(f.other, "force", 1, fence, "ann", NULL), TL_INVALID);
    assert_status(tl_holder_unlock(f.other, "force", 0, fence, "ann", "hangs"), TL_INVALID);
    assert_status(tl_holder_unlock(f.other, "a b", 1, fence, "ann", "hangs"), TL_INVALID);
    assert_status(tl_holder_unlock(f.other, "never", 1, fence, "ann", "hangs"), TL_NOT_FOUND);
    assert_status(tl_holder_unlock(f.other, "force", 9, fence, "ann", "hangs"), TL_NOT_FOUND);
    assert_status(tl_holder_unlock(f.other, "force", 1, fence + 1, "ann", "hangs"), TL_LOST);
    assert_status(tl_guard(one, caller, 0), TL_OK);
    assert_status(tl_holder_unlock(f.other, "force", 1, fence, "ann", "hangs"), TL_BUSY);
    caller_run(caller, "ROLLBACK");
    assert_status(tl_holder_unlock(f.other, "force", 1, fence, "ann", "hangs"), TL_OK);
    assert_status(tl_holder_unlock(f.other, "force", 1, fence, "ann", "hangs"), TL_LOST);
    assert_int_equal(database_number(f.sql,
                                     "SELECT COUNT(*) FROM resource_holder_log WHERE "
                                     "resource = 'force' AND step = 'force unlock' AND "
                                     "actor = 'ann' AND remark = 'hangs' AND fence > %llu",
                                     (unsigned long long)tl_rw_fence(two)),
                     1);
    /* The row that it left is free. */
    fence = (uint64_t)database_number(
        f.sql, "SELECT fence FROM resource_holder WHERE resource = 'force' AND slot = 1");
    assert_status(tl_holder_unlock(f.other, "force", 1, fence, "ann", "hangs"), TL_NOT_HELD);
    /* Whoever lost it fails; whoever did not goes on. */
    caller_run(caller, "START TRANSACTION");
    assert_status(tl_rw_done(one, caller, 0), TL_ROLL_BACK);
    assert_status(tl_guard(one, caller, 0), TL_ROLL_BACK);
    assert_status(tl_rw_done(two, caller, 0), TL_OK);
    caller_run(caller, "COMMIT");
    assert_status(tl_rw_unlock(one), TL_LOST);
    assert_status(try_write(f.client, "force"), TL_BUSY);
    assert_status(tl_rw_unlock(two), TL_OK);
    assert_status(tl_rw_write(one, 0), TL_GRANTED);
    assert_true(tl_rw_fence(one) > fence);
    mysql_close(caller);
    tl_rw_free(one);
    tl_rw_free(two);
}

TESTS_OF(lock, setup, teardown)
