/*
 * A restored database: who holds what in the hours that are lost is not known, so nothing is
 * granted until an operator accepts it, and then everything begins anew.
 */
#include "rw_lock/fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/row_lock.h>

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, "beat_ms=100\nsession_ms=10s\n");
}

FIXTURE(teardown)
{
    assert_holders_whole(&f, 0);
    fixture_close(&f);
}

/* The client looks with every beat. */
static void await(tl_status (*try)(tl_client *client, const char *resource), const char *resource,
                  tl_status expected)
{
    tl_status status = try(f.client, resource);

    for (int i = 0; i < PATIENCE_MS / 50 && status != expected; i++) {
        crew_sleep_ms(50);
        status = try(f.client, resource);
    }
    assert_status(status, expected);
}

static long long highest_fence(const char *log)
{
    return database_number(f.sql, "SELECT MAX(fence) FROM %s", log);
}

TEST(test_nothing_is_granted_until_accepted)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "account/1", &options);
    tl_rw *rw = writing(f.client, "loan/1", 0);
    MYSQL *caller = caller_new(&f);
    long long fence, rw_fence;

    assert_status(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    await(try_once, "early", TL_ASK_CHANNEL);
    assert_status(try_once(f.client, "fresh"), TL_ASK_CHANNEL);
    assert_status(try_read(f.client, "fresh"), TL_ASK_CHANNEL);
    assert_status(try_write(f.client, "fresh"), TL_ASK_CHANNEL);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM resource_lock WHERE "
                                            "resource = 'fresh'"),
                     0);
    /* What the rows show of the living still holds: they are asked by token. */
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_status(tl_guard(mutex, caller, 0), TL_OK);
    assert_status(tl_rw_done(rw, caller, 0), TL_OK);
    caller_run(caller, "COMMIT");
    /* A row lock has no memory that could be lost. */
    caller_run(caller, "START TRANSACTION");
    assert_status(tl_row_lock(f.client, "row", caller, TL_ROW_LOCK_NOWAIT, 0), TL_GRANTED);
    caller_run(caller, "COMMIT");

    fence = highest_fence("resource_log");
    rw_fence = highest_fence("resource_holder_log");
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "compared", NULL), TL_OK);
    await(try_once, "account/1", TL_GRANTED);
    assert_status(write_when_free(f.client, "loan/1"), TL_GRANTED);
    /* Who held it before has lost it, and every fence rose. */
    caller_run(caller, "START TRANSACTION");
    assert_status(tl_guard(mutex, caller, 0), TL_ROLL_BACK);
    assert_status(tl_rw_done(rw, caller, 0), TL_ROLL_BACK);
    caller_run(caller, "ROLLBACK");
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    assert_status(tl_rw_unlock(rw), TL_LOST);
    assert_true(highest_fence("resource_log WHERE step = 'restored' AND actor = 'bob' "
                              "AND remark = 'compared'") > fence);
    assert_true(highest_fence("resource_holder_log WHERE step = 'restored' AND actor = "
                              "'bob'") > rw_fence);
    mysql_close(caller);
    tl_mutex_free(mutex);
    tl_rw_free(rw);
}

/* A backup has an old fence; what was given in the hours that are lost was higher. */
TEST(test_fences_go_above_those_that_were_lost)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "lost/1", &options);
    tl_rw *rw = writing(f.client, "lost/2", 0);
    uint64_t fence = tl_mutex_fence(mutex, NULL), rw_fence = tl_rw_fence(rw);

    /* The backup was made a hundred grants ago. */
    database_run(f.sql, "UPDATE resource_lock SET fence = fence - 100, "
                        "rev = rev + 1 WHERE resource = 'lost/1'; "
                        "DELETE FROM resource_log WHERE resource = 'lost/1' AND step = 'lock'; "
                        "UPDATE resource_holder SET fence = fence - 100, rev = rev + 1 WHERE "
                        "resource = 'lost/2'; "
                        "DELETE FROM resource_holder_log WHERE resource = 'lost/2' ORDER BY rev "
                        "LIMIT 1");
    assert_status(tl_restore_declare(f.other, "ann", "backup of monday"), TL_OK);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "compared", NULL), TL_OK);
    await(try_once, "lost/1", TL_GRANTED);
    assert_true((uint64_t)highest_fence("resource_log WHERE resource = 'lost/1'") > fence);
    assert_status(write_when_free(f.client, "lost/2"), TL_GRANTED);
    assert_true((uint64_t)highest_fence("resource_holder_log WHERE resource = "
                                        "'lost/2'") > rw_fence);
    tl_mutex_free(mutex);
    tl_rw_free(rw);
}

/* The first one that meets the promoted server: nothing has told its client before. */
static void fail_over(tl_status (*try)(tl_client *client, const char *resource))
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    char *file = database_option_file_at(f.db, server_socket(server_shared()),
                                         "beat_ms=60s\nsession_ms=10m\n");

    options.config_file = file;
    options.flags = TL_CLIENT_NO_JANITOR;
    assert_status(tl_client_open(&client, &options), TL_OK);
    database_run(f.sql, "UPDATE tl_schema SET identity = 'the old one'");
    database_cut(f.sql);
    assert_status(try(client, "promoted"), TL_ASK_CHANNEL);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.other, "bob", "promoted", NULL), TL_OK);
    tl_client_close(client);
    remove(file);
    free(file);
}

TEST(test_the_first_ask_after_a_failover)
{
    fail_over(try_once);
    fail_over(try_read);
    fail_over(try_write);
}

TESTS_OF(restored, setup, teardown)
