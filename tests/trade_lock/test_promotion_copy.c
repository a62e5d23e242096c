/* A replica that is made of the primary's files, or whose logs were purged.  It is accepted by itself
 * if it got all that was committed since; it is not if a position was set by hand over some of it. */
#include "pair.h"

#include "support/crew.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_FOR_REPLICA "SET GLOBAL rpl_semi_sync_master_enabled = 1"

/* Of the primary, into the directory of the copy. */
static void copy_data(void)
{
    char command[1024];

    snprintf(command, sizeof command, "cp -a '%s/data' '%s/taken'", server_dir(pair.primary),
             server_dir(pair.copy));
    assert_int_equal(system(command), 0);
}

/* The files of a primary that goes on, as of one moment. */
static void copy_files(void)
{
    server_freeze(pair.primary);
    copy_data();
    server_thaw(pair.primary);
}

/* Of one that was stopped. */
static void copy_files_cold(void)
{
    mysql_close(pair.sql);
    server_stop(pair.primary);
    copy_data();
    server_restart(pair.primary);
    pair.sql = database_connect(pair.db);
    database_run(pair.sql, WAIT_FOR_REPLICA);
}

/* The copy is a server with these files; it has what its own log says. */
static void start_with_files(void)
{
    const char *const dir = server_dir(pair.copy);
    char command[1024];

    mysql_close(pair.sql_copy);
    server_kill9(pair.copy);
    snprintf(command, sizeof command, "rm -r '%s/data' && mv '%s/taken' '%s/data'", dir, dir, dir);
    assert_int_equal(system(command), 0);
    server_restart(pair.copy);
    pair.sql_copy = server_connect(pair.copy);
    database_run(pair.sql_copy, "USE %s", database_name(pair.db));
}

static void say_position(const char *position)
{
    database_run(pair.sql_copy,
                 "SET GLOBAL read_only = 1; RESET MASTER; "
                 "SET GLOBAL gtid_slave_pos = '%s'",
                 position);
}

/* Somebody set a position over a payment. */
static void expect_it_is_missed(tl_lock *lock)
{
    server_kill9(pair.primary);
    take_writes();
    promote_as(1);
    expect_veto(2);
    assert_int_not_equal(ask_now(pair.second, "lost"), TL_GRANTED);
    assert_true(database_number(pair.sql_copy, "SELECT SUM(missing) FROM tl_attestation") > 0);
    tl_lock_free(lock);
    close_pair();
}

static void test_files_of_a_stopped_server(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;
    char *position;

    (void)state;
    open_pair(1);
    await_rounds();
    copy_files_cold();
    start_with_files();
    position = database_text(pair.sql_copy, "SELECT @@gtid_binlog_pos");
    say_position(position);
    follow(pair.port_primary, pair.copy, 1);
    free(position);
    await_rounds();
    lock = granted(pair.first, "kept", "c1", &options);
    await_rounds();
    server_kill9(pair.primary);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

/* at_once: the primary dies before anything came that shows it. */
static void attach_old_files(int at_once)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;
    char *position;

    open_pair(1);
    await_rounds();
    copy_files();
    lock = granted(pair.first, "lost", "c1", &options);
    await_rounds();
    position = database_text(pair.sql, "SELECT @@gtid_binlog_pos");
    start_with_files();
    say_position(position);
    if (!at_once) {
        follow(pair.port_primary, pair.copy, 1);
        await_stopped_at(".tl_beat;");
    }
    free(position);
    expect_it_is_missed(lock);
}

static void test_old_files_and_a_position_by_hand(void **state)
{
    (void)state;
    attach_old_files(0);
}

static void test_old_files_at_once(void **state)
{
    (void)state;
    attach_old_files(1);
}

/* Until the server has only the log that it writes; a log that a replica reads stays. */
static void purge_all_logs(void)
{
    char *last = NULL, *first = NULL;

    database_run(pair.sql, "KILL USER replica");
    do {
        usleep(50 * 1000);
        free(last);
        free(first);
        database_run(pair.sql, "FLUSH BINARY LOGS");
        last = database_text(pair.sql, "SHOW MASTER STATUS");
        database_run(pair.sql, "PURGE BINARY LOGS TO '%s'", last);
        first = database_text(pair.sql, "SHOW BINARY LOGS");
    } while (strcmp(first, last) != 0);
    free(last);
    free(first);
}

static void await_refused(void)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char *found = NULL;

    do {
        assert_true(crew_now_ms() < end_ms);
        usleep(20 * 1000);
        free(found);
        found = database_replication(pair.sql_copy, "Last_IO_Errno");
    } while (strcmp(found, "1236") != 0);
    free(found);
}

/* The replica was away, the primary did not wait for it any more, and what it needs is purged. */
static tl_lock *purge_logs(void)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    open_pair(1);
    await_rounds();
    database_run(pair.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 0");
    database_run(pair.sql_copy, "STOP SLAVE");
    lock = granted(pair.first, "lost", "c1", &options);
    await_rounds();
    purge_all_logs();
    await_rounds();
    database_run(pair.sql_copy, "START SLAVE");
    await_refused();
    return lock;
}

static void test_purged_logs_and_a_position_by_hand(void **state)
{
    tl_lock *lock;

    (void)state;
    lock = purge_logs();
    set_position();
    database_run(pair.sql, WAIT_FOR_REPLICA);
    database_run(pair.sql_copy, "START SLAVE");
    await_stopped_at(".tl_beat;");
    expect_it_is_missed(lock);
}

static void test_purged_logs_at_once(void **state)
{
    tl_lock *lock;

    (void)state;
    lock = purge_logs();
    set_position();
    expect_it_is_missed(lock);
}

TEST_MAIN(promotion_copy)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_a_stopped_server),
        cmocka_unit_test(test_purged_logs_at_once),
        cmocka_unit_test(test_old_files_and_a_position_by_hand),
        cmocka_unit_test(test_old_files_at_once),
        cmocka_unit_test(test_purged_logs_and_a_position_by_hand),
    };

    crew_arguments(argc, argv);
    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
