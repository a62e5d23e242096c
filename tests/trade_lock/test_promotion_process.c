/* Which processes have to answer before a promoted server is accepted by itself: those that just
 * begin there, end in order, go on under another session or come back to the first server are asked
 * for no more than they can say; and where one died, or its session was ended by somebody else, the
 * server is not accepted before the old primary is off for certain. */
#include "pair.h"

#include "client/client.h"
#include "client/restored.h"
#include "support/crew.h"
#include "support/theme.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* ----------------------------------------------------------------------- it ends meanwhile -- */

static void *close_it(void *client)
{
    tl_client_close(client);
    return NULL;
}

/* A program that ends in order while the servers change places answers before it is gone.  It ends
 * before the new server takes writes, or while it waits there. */
static void end_meanwhile(int waits_there)
{
    tl_client *ends;
    pthread_t thread;

    open_pair(1);
    ends = open_with(file_with(both(), BEATING), 0);
    await_rounds();
    usleep(QUIET_MS * 1000); /* it has seen the clock */
    stop_writes();
    await_unreachable(ends, 1);
    if (waits_there) {
        take_writes();
        usleep(QUIET_MS * 1000);
    }
    assert_int_equal(pthread_create(&thread, NULL, close_it, ends), 0);
    usleep(QUIET_MS * 1000);
    if (!waits_there)
        take_writes();
    promote();
    await_accepted();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_session "
                                                    "WHERE ended_at IS NOT NULL"),
                     1);
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

/* ---------------------------------------------------- its session is another one meanwhile -- */

/* A process that goes on anew, while the primary dies: the row of its next session is there, and it
 * never lived under that one.  It answers for it all the same. */
TEST(test_a_session_that_only_began)
{
    MYSQL *table;

    open_pair(1);
    await_rounds();
    table = database_connect(pair.db);
    database_run(table, "LOCK TABLES trade_channel WRITE");
    end_mine();
    await_number(pair.sql, "SELECT COUNT(*) > 3 FROM tl_session", 1); /* the first could not read */
    server_kill9(pair.primary);
    mysql_close(table);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

/* The first one lost its session, and goes on at the server that just took writes: each time the row
 * of its next session is there, and for a second what it reads next is not. */
static MYSQL *begin_slowly(void)
{
    MYSQL *table;

    await_rounds();
    server_kill9(pair.primary);
    apply_all();
    take_writes();
    open_ops();
    table = server_connect(pair.copy);
    database_run(table, "USE %s", database_name(pair.db));
    database_run(table, "LOCK TABLES trade_channel WRITE");
    database_run(pair.sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = '' "
                 "WHERE session_id = '%s'",
                 tl_client_session(pair.first));
    return table;
}

static void await_sessions(const char *which, long long wanted)
{
    char query[160];

    snprintf(query, sizeof query, "SELECT COUNT(*) >= %lld FROM tl_session WHERE ended_at %s",
             wanted, which);
    await_number(pair.sql_copy, query, 1);
}

/* Sessions that only began at the new server, and were taken back, before it was promoted and after
 * it: nobody is told of anything under those. */
TEST(test_a_session_that_was_taken_back)
{
    MYSQL *table;

    open_pair(1);
    table = begin_slowly();
    await_sessions("IS NOT NULL", 2);
    await_sessions("IS NULL", 2);
    promote();
    await_sessions("IS NOT NULL", 3);
    mysql_close(table);
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

/* The process attests while its next session begins, which is among those that have to: it attests
 * under that one too. */
TEST(test_a_session_that_just_begins)
{
    db *connection;
    MYSQL *table;

    open_pair(1);
    table = begin_slowly();
    await_sessions("IS NULL", 2);
    promote();
    assert_status(pool_get(pair.first->connections, POOL_QUICK, PATIENCE_MS, &connection), TL_OK);
    assert_status(restored_look(pair.first, connection), TL_OK);
    pool_put(pair.first->connections, connection);
    mysql_close(table);
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

TEST(test_a_program_ends_meanwhile)
{
    end_meanwhile(0);
}

TEST(test_a_program_ends_while_it_waits)
{
    end_meanwhile(1);
}

/* Programs that began at the new server before it was promoted, were refused, and ended. */
TEST(test_a_program_was_too_early)
{
    tl_client *early;

    open_pair(1);
    await_rounds();
    stop_writes();
    take_writes();
    early = open_with(file_with(both(), BEATING), 0);
    assert_int_not_equal(ask_now(early, "early"), TL_GRANTED);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_session"), 3);
    tl_client_close(early);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_session "
                                                    "WHERE ended_at IS NOT NULL"),
                     1);
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

/* One that had been told of something by the old primary, and ended there before the promotion, is
 * asked: nobody can say what that was. */
TEST(test_a_program_ended_between)
{
    char query[160];
    tl_client *early;

    open_pair(1);
    early = open_with(file_with(both(), BEATING), 0);
    snprintf(query, sizeof query,
             "SELECT COUNT(*) FROM tl_session WHERE session_id <> '%s' AND ended_at IS NULL",
             tl_client_session(early));
    await_rounds();
    server_kill9(pair.primary);
    apply_all();
    take_writes();
    /* Its session is lost, and it goes on there under another one. */
    database_run(pair.sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = '' "
                 "WHERE session_id = '%s'",
                 tl_client_session(early));
    await_number(pair.sql_copy, query, 3);
    tl_client_close(early);
    await_number(pair.sql_copy, query, 2);
    promote();
    expect_veto(2);
    assert_int_equal(what_is_missing().unattested, 1);
    close_pair();
}

/* ------------------------------------------------ it dies, or is on the first server again -- */

/* Another process, which holds a lock. */
static pid_t start_run(const char *resource)
{
    const char *arguments[10];
    char program[512], query[128];
    pid_t child;

    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    arguments[0] = program;
    arguments[1] = "run";
    arguments[2] = "--config";
    arguments[3] = file_with(both(), BEATING);
    arguments[4] = "--lock";
    arguments[5] = resource;
    arguments[6] = "--";
    arguments[7] = "sleep";
    arguments[8] = "600";
    arguments[9] = NULL;
    child = fork();
    if (child == 0) {
        (void)setpgid(0, 0);
        execv(program, (char **)arguments);
        _exit(127);
    }
    (void)setpgid(child, child);
    snprintf(query, sizeof query, "SELECT COUNT(*) FROM resource_lock WHERE resource = '%s'",
             resource);
    await_number(pair.sql, query, 1);
    return child;
}

static void kill_run(pid_t child)
{
    assert_int_equal(kill(-child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The old primary is the replica of the new one, and each commit waits for it. */
static void make_replica_of_old(void)
{
    database_run(pair.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 0; "
                           "SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos");
    replicate(pair.copy, pair.port_copy, pair.primary);
    database_run(pair.sql_copy, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    await_number(pair.sql_copy,
                 "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                 "WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'",
                 1);
}

/* The old primary takes writes again, with all that the other one has, and is promoted. */
static void switch_back(void)
{
    char *position;

    database_run(pair.sql_copy, "SET GLOBAL read_only = 1");
    position = database_text(pair.sql_copy, "SELECT @@gtid_binlog_pos");
    assert_int_equal(database_number(pair.sql, "SELECT MASTER_GTID_WAIT('%s', %d)", position,
                                     PATIENCE_MS / 1000),
                     0);
    free(position);
    database_run(pair.sql, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static void promote_old(void)
{
    tl_client *there = open_with(database_option_file(pair.db), TL_CLIENT_NO_SESSION);

    assert_status(tl_promote(there, 0, "hook", "and back"), TL_OK);
    tl_client_close(there);
}

static void switch_over(void)
{
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    make_replica_of_old();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    await_rounds();
}

/* Who ended in order on the first server, while that was the accepted one, was told of nothing on
 * the second: it is not asked when they change places again. */
TEST(test_there_and_back)
{
    char mine[64];

    open_pair(1);
    tl_client_close(open_with(file_with(both(), BEATING), 0));
    assert_int_equal(database_number(pair.sql, "SELECT COUNT(*) FROM tl_session "
                                               "WHERE ended_at IS NOT NULL"),
                     1);
    snprintf(mine, sizeof mine, "%s", tl_client_session(pair.first));
    switch_over();
    switch_back();
    promote_old();
    await_number(pair.sql, "SELECT tl_restored()", 0);
    assert_int_equal(
        database_number(pair.sql, "SELECT COUNT(*) FROM tl_restore WHERE step = 'proved'"), 2);
    await_grant(pair.first, "s3");
    await_grant(pair.second, "s4");
    assert_string_equal(tl_client_session(pair.first), mine);
    assert_true(has_row(pair.sql, "s3"));
    close_pair();
}

/* Another process, which dies with the primary. */
static void kill_both(void)
{
    const pid_t child = start_run("of-the-dead");

    await_rounds();
    server_kill9(pair.primary);
    kill_run(child);
    apply_all();
    take_writes();
}

/* A process that died with the primary cannot say what it was told. */
TEST(test_a_process_dies_too)
{
    struct found found;

    open_pair(1);
    kill_both();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_int_equal(found.unattested, 1);
    assert_int_equal(found.rows, 1);
    assert_non_null(strstr(found.whose, "tradelock"));
    /* Nor when somebody there has ended its session. */
    database_run(pair.sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = tl_identity() "
                 "WHERE program LIKE '%%run%%' AND ended_at IS NULL");
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    accept_as_two();
    await_grant(pair.first, "s1");
    close_pair();
}

/* A session that lived on the second server, and was ended on the first one all the same: nobody can
 * say what it was told there.  Under whichever number that was: the first one takes writes while it
 * is a replica, and has not applied yet that the second one was accepted. */
static void end_here(const char *number)
{
    pid_t child;

    open_pair(1);
    child = start_run("of-the-dead");
    switch_over();
    kill_run(child);
    switch_back();
    database_run(pair.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = tl_identity(), "
                 "ended_no = %s WHERE program LIKE '%%run%%'",
                 number);
    assert_int_equal(database_number(pair.sql, "SELECT COUNT(*) FROM tl_session WHERE program LIKE "
                                               "'%%run%%' AND ended_on = tl_identity()"),
                     1);
    promote_old();
    await_number(pair.sql,
                 "SELECT COUNT(*) FROM tl_attestation a JOIN tl_schema s "
                 "ON a.restore_no = s.restore_no WHERE a.attested_at IS NOT NULL",
                 2);
    usleep(QUIET_MS * 1000);
    assert_int_equal(database_number(pair.sql, "SELECT tl_restored()"), 1);
    close_pair();
}

TEST(test_ended_here_since)
{
    end_here("(SELECT accepted_no FROM tl_schema)");
}

TEST(test_ended_here_by_hand)
{
    end_here("NULL");
}

TEST(test_ended_here_while_it_lived_there)
{
    end_here("0");
}

/* Where the primary is off for certain that does not matter, once its session has ended: others
 * saw that it answered no commit before the replica had it. */
TEST(test_a_process_dies_and_the_primary_is_off)
{
    open_pair(1);
    kill_both();
    promote();
    expect_veto(2);
    promote_as(1);
    promote_as(1); /* a hook that runs twice */
    await_accepted();
    assert_int_equal(database_number(pair.sql_copy,
                                     "SELECT COUNT(*) FROM tl_session WHERE ended_at IS "
                                     "NOT NULL AND program LIKE '%%run%%'"),
                     1);
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'fenced'"), 1);
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    close_pair();
}

/* It proves nothing where commits were answered before the replica had them. */
TEST(test_off_and_not_kept)
{
    open_pair(0);
    kill_both();
    promote_as(1);
    expect_veto(2);
    database_run(pair.sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = tl_identity() "
                 "WHERE program LIKE '%%run%%' AND ended_at IS NULL");
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    close_pair();
}

TESTS_OF(promotion_process, NULL, NULL)
