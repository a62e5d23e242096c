/* A primary that waits for its replica with each commit, and the replica, which is promoted: it is
 * accepted by itself, when every process has found there all that it was told; and each thing that
 * keeps it from that. */
#include "fixture.h"

#include "client/client.h"
#include "client/position.h"
#include "client/restored.h"
#include "db/db.h"
#include "support/crew.h"
#include "support/haproxy.h"
#include "support/theme.h"
#include "transition/engine.h"
#include "transition/marks.h"
#include "transition/settle.h"

#include <tradelock/admin.h>
#include <tradelock/resource.h>
#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* So long nothing may have happened. */
#define QUIET_MS 1500
#define BEATING "beat_ms=100ms\nsession_ms=20s\nread_timeout_s=2\nconnect_timeout_s=4\n"
#define SLOW_BEAT_MS 60000
#define SLOW "beat_ms=1m\nsession_ms=10m\nread_timeout_s=2\nconnect_timeout_s=4\n"
/* Two of these are longer than a session waits for a promotion. */
#define SLOWER "beat_ms=9s\nsession_ms=1m\nread_timeout_s=2\nconnect_timeout_s=4\n"
/* The first beat is some seconds away. */
#define SLOW_START "beat_ms=5s\nsession_ms=30s\nread_timeout_s=2\nconnect_timeout_s=4\n"
#define SHORT_SESSION_MS 4000
#define SHORT "beat_ms=100ms\nsession_ms=4s\nread_timeout_s=2\nconnect_timeout_s=4\n"
#define A_DAY "86400000"

static fixture f;
static server *primary, *copy, *third;
static unsigned port_primary, port_copy, port_third;
static MYSQL *sql_copy;
static tl_client *second, *ops;
static char *paths[32];
static size_t path_count;

/* ------------------------------------------------------------------- the two servers -- */

/* Of each server that is started, or NULL. */
static const char *extra_option;

static server *start_at(unsigned number, unsigned *port)
{
    char at[64], id[64];
    const char *const options[] = {"--log-bin=binlog",
                                   extra_option != NULL ? extra_option : "--sync-binlog=1",
                                   "--sync-binlog=1",
                                   "--log-slave-updates=1",
                                   "--skip-networking=0",
                                   "--bind-address=127.0.0.1",
                                   "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                                   ("--rpl-semi-sync-master-timeout=" A_DAY),
                                   at,
                                   id,
                                   NULL};

    *port = server_free_port();
    snprintf(at, sizeof at, "--port=%u", *port);
    snprintf(id, sizeof id, "--server-id=%u", number);
    return server_start(options);
}

static void follow(unsigned port, server *to, int acknowledges)
{
    MYSQL *sql = server_connect(to);

    database_run(sql,
                 "SET GLOBAL rpl_semi_sync_slave_enabled = %d; "
                 "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE; SET GLOBAL read_only = 1",
                 acknowledges, port);
    mysql_close(sql);
}

static void replicate(server *from, unsigned port, server *to)
{
    MYSQL *sql = server_connect(from);

    database_run(sql, "CREATE USER IF NOT EXISTS replica@'%%'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'%%'");
    mysql_close(sql);
    follow(port, to, 1);
}

static void await_number(MYSQL *sql, const char *query, long long wanted)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (database_number(sql, "%s", query) != wanted) {
        if (crew_now_ms() > end_ms)
            server_panic("%s never is %lld", query, wanted);
        usleep(10 * 1000);
    }
}

static void await_at(MYSQL *sql)
{
    char *position = database_text(f.sql, "SELECT @@gtid_binlog_pos");

    assert_int_equal(
        database_number(sql, "SELECT MASTER_GTID_WAIT('%s', %d)", position, PATIENCE_MS / 1000), 0);
    free(position);
}

static void await_copy(void)
{
    await_at(sql_copy);
}

/* The service's account, at these servers. */
static const char *file_with(const char *hosts, const char *settings)
{
    char *path = database_option_file_at(f.db, "/nowhere", settings);
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nuser=plain\npassword=plain\nhost=%s\n", hosts);
    fclose(file);
    assert_true(path_count < sizeof paths / sizeof paths[0]);
    paths[path_count++] = path;
    return path;
}

static const char *file_of(const char *hosts)
{
    return file_with(hosts, BEATING);
}

/* The primary and another one. */
static const char *hosts_with(unsigned port)
{
    static char hosts[64];

    snprintf(hosts, sizeof hosts, "127.0.0.1:%u, 127.0.0.1:%u", port_primary, port);
    return hosts;
}

static const char *both(void)
{
    return hosts_with(port_copy);
}

static tl_client *open_with(const char *option_file, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client;
    tl_status status;

    options.config_file = option_file;
    options.flags = TL_CLIENT_NO_JANITOR | flags;
    status = tl_client_open(&client, &options);
    if (status != TL_OK)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
    return client;
}

static void note_identity(void)
{
    tl_client *client = client_new(&f, TL_CLIENT_NO_SCHEMA | TL_CLIENT_NO_SESSION);
    tl_migrated migrated;

    assert_status(tl_migrate(client, &migrated), TL_OK);
    tl_client_close(client);
}

/* Two processes at the primary.  waits: it waits for its replica. */
static void open_pair(int waits)
{
    memset(&f, 0, sizeof f);
    ops = NULL;
    primary = start_at(1, &port_primary);
    copy = start_at(2, &port_copy);
    replicate(primary, port_primary, copy);
    f.db = database_new(primary, BEATING);
    note_identity();
    f.sql = database_connect(f.db);
    database_run(f.sql,
                 "CREATE USER plain@'%%' IDENTIFIED BY 'plain'; "
                 "CREATE USER plain@localhost IDENTIFIED BY 'plain'; "
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@'%%'; "
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@localhost",
                 database_name(f.db), database_name(f.db));
    sql_copy = server_connect(copy);
    await_copy();
    database_run(sql_copy, "USE %s", database_name(f.db));
    if (waits) {
        database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
        database_run(sql_copy, "STOP SLAVE; START SLAVE");
        await_number(f.sql,
                     "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                     "WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'",
                     1);
    }
    f.client = open_with(file_of(both()), 0);
    second = open_with(file_of(both()), 0);
}

static void close_pair(void)
{
    tl_client_close(ops);
    tl_client_close(second);
    tl_client_close(f.client);
    ops = second = f.client = NULL;
    mysql_close(f.sql);
    f.sql = sql_copy;
    assert_log_whole(&f);
    f.sql = NULL;
    mysql_close(sql_copy);
    server_free(copy);
    server_free(third);
    copy = third = NULL;
    database_forget(f.db);
    while (path_count > 0) {
        remove(paths[--path_count]);
        free(paths[path_count]);
    }
    memset(&f, 0, sizeof f);
    server_free(primary);
}

static uint64_t beats(tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats.beats;
}

/* Each has looked at the server in a round since now. */
static void await_rounds(void)
{
    const uint64_t one = beats(f.client) + 4, other = beats(second) + 4;
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (beats(f.client) < one || beats(second) < other) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    usleep(200 * 1000);
}

static uint64_t unreachable(tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats.beats_unreachable;
}

static void await_unreachable(tl_client *client, uint64_t times)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (unreachable(client) < times) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
}

/* The primary takes no more writes, and the replica has all.  Each process has looked once more, after
 * the last beat that was answered, whether the primary waits for its replica: the replica is stopped
 * next, and who looked after that would have seen no one. */
static void stop_writes(void)
{
    const uint64_t mine = unreachable(f.client), other = unreachable(second);

    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_unreachable(f.client, mine + 1);
    await_unreachable(second, other + 1);
    await_copy();
}

/* All that the replica was sent is applied; then it is none any more. */
static void apply_all(void)
{
    char *position;

    database_run(sql_copy, "STOP SLAVE IO_THREAD");
    position = database_replication(sql_copy, "Gtid_IO_Pos");
    assert_non_null(position);
    assert_int_equal(database_number(sql_copy, "SELECT MASTER_GTID_WAIT('%s', %d)", position,
                                     PATIENCE_MS / 1000),
                     0);
    free(position);
}

static void take_writes(void)
{
    database_run(sql_copy, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static void open_ops(void)
{
    paths[path_count] = database_option_file_at(f.db, server_socket(copy), BEATING);
    ops = open_with(paths[path_count++], TL_CLIENT_NO_SESSION);
}

static void promote_as(int fenced)
{
    if (ops == NULL)
        open_ops();
    assert_status(tl_promote(ops, fenced, "hook", "the primary is gone"), TL_OK);
}

static void promote(void)
{
    promote_as(0);
}

static int is_restored(void)
{
    return database_number(sql_copy, "SELECT tl_restored()") != 0;
}

static void await_accepted(void)
{
    await_number(sql_copy, "SELECT tl_restored()", 0);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'proved'"), 1);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'confirmed'"), 0);
}

static int64_t attested(void)
{
    return database_number(sql_copy,
                           "SELECT COUNT(*) FROM tl_attestation WHERE attested_at IS NOT NULL");
}

/* Both have said what they know, and still it is not accepted. */
static void expect_veto(int64_t sessions)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (attested() < sessions) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    assert_int_not_equal(ask_now(f.client, "vetoed"), TL_GRANTED);
    assert_false(has_row(sql_copy, "vetoed"));
}

struct found {
    char serial[128], token[64], whose[256];
    int rows, unattested, not_kept, steps;
};

static int take_found(void *context, const tl_missing *missing)
{
    struct found *found = context;

    found->rows++;
    found->unattested += !missing->attested;
    found->not_kept += missing->not_kept;
    if (missing->cust_no[0] != '\0') {
        found->steps++;
        snprintf(found->serial, sizeof found->serial, "%s", missing->serial_no);
        snprintf(found->token, sizeof found->token, "%s", missing->token);
    }
    if (!missing->attested)
        snprintf(found->whose, sizeof found->whose, "%s", missing->whose);
    return 0;
}

static struct found what_is_missing(void)
{
    struct found found;
    tl_restore state = TL_RESTORE_INIT;

    memset(&found, 0, sizeof found);
    assert_status(tl_restore_status(ops, &state, NULL, NULL), TL_OK);
    assert_status(tl_restore_missing(ops, state.number, take_found, &found), TL_OK);
    return found;
}

static void accept_as_two(void)
{
    database_propose(sql_copy);
    assert_status(tl_restore_accept(ops, "bob", "compared", NULL), TL_OK);
}

/* ---------------------------------------------------------------------- accepted by itself -- */

/* No person, and who holds a lock keeps it. */
static void test_the_primary_dies(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_mutex_options mutex_options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;
    char sessions[2][64];
    int64_t since_ms;
    tl_lock *lock;

    (void)state;
    open_pair(1);
    lock = granted(f.client, "held", "c1", &options);
    mutex_options.max_hold_ms = 600000;
    assert_status(tl_mutex_new(&mutex, second, "nightly", &mutex_options), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    await_rounds();
    snprintf(sessions[0], sizeof sessions[0], "%s", tl_client_session(f.client));
    snprintf(sessions[1], sizeof sessions[1], "%s", tl_client_session(second));
    server_kill9(primary);
    since_ms = crew_now_ms();
    apply_all();
    take_writes();
    assert_int_not_equal(ask_now(f.client, "early"), TL_GRANTED);
    usleep(300 * 1000); /* both meet it before it is promoted */
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    print_message("killed, promoted and granted again after %lld ms, without a person\n",
                  (long long)(crew_now_ms() - since_ms));
    await_grant(second, "s2");
    assert_true(has_row(sql_copy, "s1"));
    assert_string_equal(tl_client_session(f.client), sessions[0]);
    assert_string_equal(tl_client_session(second), sessions[1]);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM trade_lock "
                                               "WHERE serial_no = 'held' AND status = 'Y' "
                                               "AND sends = 1"),
                     1);
    tl_lock_free(lock);
    tl_mutex_free(mutex);
    close_pair();
}

/* Read-only, caught up, promoted. */
static void test_a_planned_switch_over(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    (void)state;
    open_pair(1);
    lock = granted(second, "held", "c1", &options);
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    promote(); /* a hook that runs twice */
    await_accepted();
    await_grant(second, "s1");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore "
                                               "WHERE step = 'promoted'"),
                     1);
    /* The old one is back, takes writes, and stands first. */
    database_run(f.sql, "SET GLOBAL read_only = 0");
    for (int i = 0; i < 10; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "t%d", i);
        await_grant(f.client, serial);
        assert_true(has_row(sql_copy, serial));
        assert_false(has_row(f.sql, serial));
        usleep(20 * 1000);
    }
    tl_lock_free(lock);
    close_pair();
}

/* Both processes anew, with the drain on record. */
static void drain_slowly(const char *hosts)
{
    tl_client_close(second);
    tl_client_close(f.client);
    database_run(f.sql, "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); "
                        "COMMIT");
    f.client = open_with(file_with(hosts, SLOW), 0);
    second = open_with(file_with(hosts, SLOW), 0);
}

/* While the primary takes no writes, no beat can be confirmed there, and one that was refused is not
 * followed by ten a second, each on a connection of its own.  And yet all see at once that the other
 * server was promoted, without a connection more. */
static void test_a_drain_at_a_server_that_is_read_only(void **state)
{
    char mine[64];
    int64_t made[2], since_ms;

    (void)state;
    open_pair(1);
    drain_slowly(both());
    await_rounds(); /* they hurry */
    snprintf(mine, sizeof mine, "%s", tl_client_session(f.client));
    since_ms = crew_now_ms();
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(f.client, 1);
    await_unreachable(second, 1);
    usleep(QUIET_MS * 1000);
    made[0] = database_counter(f.sql, "Connections");
    made[1] = database_counter(sql_copy, "Connections");
    usleep(QUIET_MS * 1000);
    assert_int_equal(unreachable(f.client), 1);
    assert_int_equal(unreachable(second), 1);
    assert_int_equal(database_counter(f.sql, "Connections"), made[0]);
    assert_int_equal(database_counter(sql_copy, "Connections"), made[1]);
    take_writes();
    promote();
    await_accepted();
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS); /* by no beat that was merely due */
    database_run(sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    assert_string_equal(tl_client_session(f.client), mine);
    close_pair();
}

static void let_in(int lets)
{
    for (int i = 0; i < 2; i++)
        database_run(sql_copy, "ALTER USER plain@'%s' ACCOUNT %s", i == 0 ? "%" : "localhost",
                     lets ? "UNLOCK" : "LOCK");
}

/* A promoted server that takes no connection for a moment is tried again soon, however slow beats
 * are: a session that waits for the next beat may be over by then. */
static void test_a_promoted_server_that_is_full(void **state)
{
    char mine[64];
    int64_t since_ms;

    (void)state;
    open_pair(1);
    drain_slowly(both());
    await_rounds();
    snprintf(mine, sizeof mine, "%s", tl_client_session(f.client));
    since_ms = crew_now_ms();
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(f.client, 1);
    await_unreachable(second, 1);
    take_writes();
    let_in(0);
    promote();
    await_unreachable(f.client, 2); /* both were sent to it, and none came in */
    await_unreachable(second, 2);
    let_in(1);
    await_accepted();
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS);
    database_run(sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    assert_string_equal(tl_client_session(f.client), mine);
    close_pair();
}

static void end_mine(void)
{
    database_run(f.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_by = session_id, "
                 "ended_on = CONCAT_WS(' ', @@hostname, @@server_id, @@datadir) "
                 "WHERE session_id = '%s'",
                 tl_client_session(f.client));
}

/* One that lost its session during the drain, and could begin no other, begins one at the promoted
 * server as soon as the others are there. */
static void test_a_process_without_a_session(void **state)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    int64_t since_ms;

    (void)state;
    open_pair(1);
    drain_slowly(both());
    await_rounds();
    database_run(f.sql,
                 "SET SESSION sql_log_bin = 0; CREATE TRIGGER no_other BEFORE INSERT ON tl_session "
                 "FOR EACH ROW SIGNAL SQLSTATE '45000'; SET SESSION sql_log_bin = 1");
    since_ms = crew_now_ms();
    end_mine();
    while (tl_client_alive_ms(f.client) > 0) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(second, 1);
    take_writes();
    promote();
    await_accepted();
    database_run(sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(f.client, "s1");
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS);
    await_grant(second, "s2");
    close_pair();
}

/* Who waits at a server that is not promoted yet keeps its connections there. */
static void test_who_waits_connects_to_nothing(void **state)
{
    int64_t made[2];

    (void)state;
    open_pair(1);
    database_run(f.sql, "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); "
                        "COMMIT");
    await_rounds();
    stop_writes();
    take_writes();
    usleep(QUIET_MS * 1000);
    made[0] = database_counter(f.sql, "Connections");
    made[1] = database_counter(sql_copy, "Connections");
    usleep(2 * QUIET_MS * 1000);
    made[0] = database_counter(f.sql, "Connections") - made[0];
    made[1] = database_counter(sql_copy, "Connections") - made[1];
    print_message("%lld and %lld connections were made\n", (long long)made[0], (long long)made[1]);
    promote();
    await_accepted();
    /* For each process one a second, and there are ten rounds. */
    assert_true(made[0] <= 4 * 2 * QUIET_MS / 1000);
    assert_true(made[1] <= 4 * 2 * QUIET_MS / 1000);
    close_pair();
}

/* Both processes know one address, which is HAProxy before the servers.  ends: it cuts off those who
 * are connected to the old one. */
static void drain_behind_one_address(int ends)
{
    char mine[64], address[32];
    int64_t made[2], since_ms, promoted_ms;
    haproxy *proxy;

    open_pair(1);
    proxy = haproxy_start(port_primary, port_copy, ends);
    snprintf(address, sizeof address, "127.0.0.1:%u", haproxy_port(proxy));
    drain_slowly(address);
    await_rounds(); /* they hurry */
    snprintf(mine, sizeof mine, "%s", tl_client_session(f.client));
    since_ms = crew_now_ms();
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(f.client, 1);
    await_unreachable(second, 1);
    made[0] = database_counter(f.sql, "Connections");
    usleep(2 * QUIET_MS * 1000);
    made[0] = database_counter(f.sql, "Connections") - made[0];
    made[1] = database_counter(sql_copy, "Connections");
    take_writes();
    haproxy_turn(proxy);
    promote();
    promoted_ms = crew_now_ms();
    await_accepted();
    promoted_ms = crew_now_ms() - promoted_ms;
    made[1] = database_counter(sql_copy, "Connections") - made[1];
    print_message("%lld connections were made to the old server in %d ms, and %lld to the new one "
                  "until it was accepted, %lld ms after it was promoted\n",
                  (long long)made[0], 2 * QUIET_MS, (long long)made[1], (long long)promoted_ms);
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS); /* by no beat that was merely due */
    /* Each process looks where it leads once a second. */
    assert_true(made[0] <= 2 * (2 * QUIET_MS / 1000 + 1));
    database_run(sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    assert_string_equal(tl_client_session(f.client), mine);
    close_pair();
    haproxy_free(proxy);
}

/* While no beat is confirmed at the old server, all see that another one was promoted: as soon as
 * HAProxy cuts them off, or by the next look where the address leads. */
static void test_a_drain_behind_haproxy(void **state)
{
    (void)state;
    drain_behind_one_address(1);
}

static void test_a_drain_behind_one_address(void **state)
{
    (void)state;
    drain_behind_one_address(0);
}

/* The writer dies just after a beat, beats are slow, and the next server has taken writes for long:
 * who stands there waits as long as anybody else, though the last beat that was confirmed is old. */
static void test_the_writer_dies_between_slow_beats(void **state)
{
    char mine[64];
    int64_t end_ms;
    uint64_t last;

    (void)state;
    open_pair(1);
    tl_client_close(second);
    tl_client_close(f.client);
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    f.client = open_with(file_with(both(), SLOWER), 0);
    second = open_with(file_with(both(), SLOWER), 0);
    snprintf(mine, sizeof mine, "%s", tl_client_session(f.client));
    last = beats(f.client);
    end_ms = crew_now_ms() + PATIENCE_MS;
    while (beats(f.client) == last) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    usleep(1000 * 1000); /* and the round after it */
    server_kill9(primary);
    apply_all();
    take_writes();
    await_unreachable(f.client, 1);
    last = (uint64_t)database_number(sql_copy,
                                     "SELECT waits FROM tl_session WHERE session_id = '%s'", mine);
    end_ms = crew_now_ms() + PATIENCE_MS;
    while (strcmp(tl_client_session(f.client), mine) == 0 &&
           database_number(sql_copy, "SELECT waits FROM tl_session WHERE session_id = '%s'",
                           mine) == (int64_t)last) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    assert_string_equal(tl_client_session(f.client), mine);
    close_pair();
}

/* One that began a moment ago has seen no round yet: it knows all the same that the primary waited
 * for its replica. */
static void test_a_process_just_begins(void **state)
{
    char mine[64];
    tl_client *late;

    (void)state;
    open_pair(1);
    await_rounds();
    late = open_with(file_with(both(), SLOW_START), 0);
    snprintf(mine, sizeof mine, "%s", tl_client_session(late));
    server_kill9(primary);
    assert_int_equal(beats(late), 0);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(late, "s2");
    assert_string_equal(tl_client_session(late), mine);
    tl_client_close(late);
    close_pair();
}

/* Its callers had every connection for longer than a session lives: it has seen all the same that
 * the primary waited for its replica. */
static void test_all_connections_are_lent(void **state)
{
    db *lent[64];
    size_t count = 0;

    (void)state;
    open_pair(1);
    tl_client_close(second);
    second = open_with(file_with(both(), SHORT), 0);
    await_rounds();
    while (pool_get(second->connections, POOL_QUICK, 0, &lent[count]) == TL_OK)
        assert_true(++count < sizeof lent / sizeof lent[0]);
    assert_true(count > 0);
    usleep((SHORT_SESSION_MS + QUIET_MS) * 1000);
    server_kill9(primary);
    while (count > 0)
        pool_put(second->connections, lent[--count]);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

static int count_warning(void *context, const tl_finding *finding)
{
    *(int *)context += strcmp(finding->check, "read_only of a replica") == 0 &&
                       finding->level == TL_FINDING_WARNING;
    return 0;
}

static int warns_of_replica(tl_client *client)
{
    int count = 0;

    (void)tl_doctor(client, count_warning, &count);
    return count;
}

/* A replica that takes writes lags as any other, which is no loss once it has caught up. */
static void test_a_replica_that_is_not_read_only(void **state)
{
    char mine[64];

    (void)state;
    open_pair(1);
    snprintf(mine, sizeof mine, "%s", tl_client_session(f.client));
    database_run(sql_copy, "SET GLOBAL read_only = 0; STOP SLAVE SQL_THREAD");
    await_rounds(); /* beats are missing there */
    database_run(sql_copy, "START SLAVE SQL_THREAD");
    await_number(sql_copy,
                 "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                 "WHERE VARIABLE_NAME = 'SLAVES_RUNNING'",
                 1);
    open_ops();
    assert_int_equal(warns_of_replica(ops), 1);
    assert_int_equal(warns_of_replica(f.client), 0);
    await_copy();
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    assert_string_equal(tl_client_session(f.client), mine);
    close_pair();
}

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
    ends = open_with(file_of(both()), 0);
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
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_session "
                                               "WHERE ended_at IS NOT NULL"),
                     1);
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

static void test_a_program_ends_meanwhile(void **state)
{
    (void)state;
    end_meanwhile(0);
}

static void test_a_program_ends_while_it_waits(void **state)
{
    (void)state;
    end_meanwhile(1);
}

/* Programs that began at the new server before it was promoted, were refused, and ended. */
static void test_a_program_was_too_early(void **state)
{
    tl_client *early;

    (void)state;
    open_pair(1);
    await_rounds();
    stop_writes();
    take_writes();
    early = open_with(file_of(both()), 0);
    assert_int_not_equal(ask_now(early, "early"), TL_GRANTED);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_session"), 3);
    tl_client_close(early);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_session "
                                               "WHERE ended_at IS NOT NULL"),
                     1);
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

/* One that had been told of something by the old primary, and ended there before the promotion, is
 * asked: nobody can say what that was. */
static void test_a_program_ended_between(void **state)
{
    char query[160];
    tl_client *early;

    (void)state;
    open_pair(1);
    early = open_with(file_of(both()), 0);
    snprintf(query, sizeof query,
             "SELECT COUNT(*) FROM tl_session WHERE session_id <> '%s' AND ended_at IS NULL",
             tl_client_session(early));
    await_rounds();
    server_kill9(primary);
    apply_all();
    take_writes();
    /* Its session is lost, and it goes on there under another one. */
    database_run(sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = '' "
                 "WHERE session_id = '%s'",
                 tl_client_session(early));
    await_number(sql_copy, query, 3);
    tl_client_close(early);
    await_number(sql_copy, query, 2);
    promote();
    expect_veto(2);
    assert_int_equal(what_is_missing().unattested, 1);
    close_pair();
}

/* A process that goes on anew, while the primary dies: the row of its next session is there, and it
 * never lived under that one.  It answers for it all the same. */
static void test_a_session_that_only_began(void **state)
{
    MYSQL *table;

    (void)state;
    open_pair(1);
    await_rounds();
    table = database_connect(f.db);
    database_run(table, "LOCK TABLES trade_channel WRITE");
    end_mine();
    await_number(f.sql, "SELECT COUNT(*) > 3 FROM tl_session", 1); /* the first could not read */
    server_kill9(primary);
    mysql_close(table);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

/* The first one lost its session, and goes on at the server that just took writes: each time the row
 * of its next session is there, and for a second what it reads next is not. */
static MYSQL *begin_slowly(void)
{
    MYSQL *table;

    await_rounds();
    server_kill9(primary);
    apply_all();
    take_writes();
    open_ops();
    table = server_connect(copy);
    database_run(table, "USE %s", database_name(f.db));
    database_run(table, "LOCK TABLES trade_channel WRITE");
    database_run(sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = '' "
                 "WHERE session_id = '%s'",
                 tl_client_session(f.client));
    return table;
}

static void await_sessions(const char *which, long long wanted)
{
    char query[160];

    snprintf(query, sizeof query, "SELECT COUNT(*) >= %lld FROM tl_session WHERE ended_at %s",
             wanted, which);
    await_number(sql_copy, query, 1);
}

/* Sessions that only began at the new server, and were taken back, before it was promoted and after
 * it: nobody is told of anything under those. */
static void test_a_session_that_was_taken_back(void **state)
{
    MYSQL *table;

    (void)state;
    open_pair(1);
    table = begin_slowly();
    await_sessions("IS NOT NULL", 2);
    await_sessions("IS NULL", 2);
    promote();
    await_sessions("IS NOT NULL", 3);
    mysql_close(table);
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

/* The process attests while its next session begins, which is among those that have to: it attests
 * under that one too. */
static void test_a_session_that_just_begins(void **state)
{
    db *connection;
    MYSQL *table;

    (void)state;
    open_pair(1);
    table = begin_slowly();
    await_sessions("IS NULL", 2);
    promote();
    assert_status(pool_get(f.client->connections, POOL_QUICK, PATIENCE_MS, &connection), TL_OK);
    assert_status(restored_look(f.client, connection), TL_OK);
    pool_put(f.client->connections, connection);
    mysql_close(table);
    await_accepted();
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

static atomic_int losses;

static void on_loss(void *context, const char *resource, tl_status why)
{
    (void)context;
    print_message("the lock of %s is lost: %s\n", resource, tl_status_name(why));
    atomic_fetch_add(&losses, 1);
}

/* Both processes hold a lock while the servers change places, and the promotion comes `late_ms`
 * after the new server took writes. */
static void switch_over_late(int64_t late_ms)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    char sessions[2][64];
    tl_mutex *mutexes[2];

    atomic_store(&losses, 0);
    options.max_hold_ms = 600000;
    options.loss = on_loss;
    assert_status(tl_mutex_new(&mutexes[0], f.client, "nightly", &options), TL_OK);
    options.lease_ms = 60000;
    assert_status(tl_mutex_new(&mutexes[1], second, "leased", &options), TL_OK);
    for (int i = 0; i < 2; i++)
        assert_status(tl_mutex_lock(mutexes[i], 0), TL_GRANTED);
    snprintf(sessions[0], sizeof sessions[0], "%s", tl_client_session(f.client));
    snprintf(sessions[1], sizeof sessions[1], "%s", tl_client_session(second));
    await_rounds();
    stop_writes();
    take_writes();
    usleep((useconds_t)late_ms * 1000);
    promote();
    await_accepted();
    assert_string_equal(tl_client_session(f.client), sessions[0]);
    assert_string_equal(tl_client_session(second), sessions[1]);
    await_rounds();
    assert_int_equal(atomic_load(&losses), 0);
    for (int i = 0; i < 2; i++) {
        const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
        tl_status status;

        while ((status = tl_mutex_unlock(mutexes[i])) != TL_OK &&
               tl_status_class(status) == TL_CLASS_RETRY && crew_now_ms() < end_ms)
            usleep(10 * 1000);
        assert_status(status, TL_OK);
        tl_mutex_free(mutexes[i]);
    }
}

/* The replica was known for long, and each process meets it before it is promoted. */
static void test_a_replica_known_for_long(void **state)
{
    (void)state;
    open_pair(1);
    usleep(6 * 1000 * 1000);
    switch_over_late(1500);
    await_grant(f.client, "s1");
    close_pair();
}

/* A person promotes, some seconds later.  Nobody is in a hurry: the installation drains. */
static void test_a_person_promotes(void **state)
{
    (void)state;
    open_pair(1);
    database_run(f.sql, "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); "
                        "COMMIT");
    switch_over_late(9000);
    database_run(sql_copy, "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); "
                           "COMMIT");
    await_grant(f.client, "s1");
    close_pair();
}

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
    arguments[3] = file_of(both());
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
    await_number(f.sql, query, 1);
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
    database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 0; "
                        "SET GLOBAL gtid_slave_pos = @@gtid_binlog_pos");
    replicate(copy, port_copy, primary);
    database_run(sql_copy, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    await_number(sql_copy,
                 "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                 "WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'",
                 1);
}

/* The old primary takes writes again, with all that the other one has, and is promoted. */
static void switch_back(void)
{
    char *position;

    database_run(sql_copy, "SET GLOBAL read_only = 1");
    position = database_text(sql_copy, "SELECT @@gtid_binlog_pos");
    assert_int_equal(
        database_number(f.sql, "SELECT MASTER_GTID_WAIT('%s', %d)", position, PATIENCE_MS / 1000),
        0);
    free(position);
    database_run(f.sql, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static void promote_old(void)
{
    tl_client *there = open_with(database_option_file(f.db), TL_CLIENT_NO_SESSION);

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
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    await_rounds();
}

/* Who ended in order on the first server, while that was the accepted one, was told of nothing on
 * the second: it is not asked when they change places again. */
static void test_there_and_back(void **state)
{
    char mine[64];

    (void)state;
    open_pair(1);
    tl_client_close(open_with(file_of(both()), 0));
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_session "
                                            "WHERE ended_at IS NOT NULL"),
                     1);
    snprintf(mine, sizeof mine, "%s", tl_client_session(f.client));
    switch_over();
    switch_back();
    promote_old();
    await_number(f.sql, "SELECT tl_restored()", 0);
    assert_int_equal(
        database_number(f.sql, "SELECT COUNT(*) FROM tl_restore WHERE step = 'proved'"), 2);
    await_grant(f.client, "s3");
    await_grant(second, "s4");
    assert_string_equal(tl_client_session(f.client), mine);
    assert_true(has_row(f.sql, "s3"));
    close_pair();
}

/* The others accept it while the answer to this process' own attestation is on its way: the session
 * waits, until it has looked itself. */
static void test_accepted_before_it_knows(void **state)
{
    restored_servers *all;
    const db_server *from, *to;

    (void)state;
    open_pair(1);
    await_rounds();
    from = life_server(session_life(f.client->session));
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    to = life_server(session_life(f.client->session));
    assert_ptr_not_equal(from, to);
    all = &f.client->servers;
    for (int i = 0; i < 100; i++) { /* its own looks come between */
        pthread_mutex_lock(&all->mutex);
        all->has_attested = 0;
        pthread_mutex_unlock(&all->mutex);
        assert_int_not_equal(restored_follow(f.client, from, to, 0), SESSION_LEAVES);
    }
    await_rounds();
    assert_int_equal(restored_follow(f.client, from, to, 0), SESSION_MOVES);
    close_pair();
}

/* --------------------------------------------------------------------------------- vetoes -- */

/* The last of what was acknowledged never came: the list names it. */
static void test_some_of_the_log_is_missing(void **state)
{
    tl_lock_options options = sync_options("x");
    struct found found;
    char *token;
    tl_lock *lock;

    (void)state;
    open_pair(1);
    await_rounds();
    /* What the replica has received it does not apply, and loses with its relay log. */
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    lock = granted(f.client, "lost", "c1", &options);
    token = database_text(f.sql, "SELECT LOWER(HEX(token)) FROM trade_lock "
                                 "WHERE serial_no = 'lost'");
    server_kill9(primary);
    take_writes();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_true(found.steps <= 1);
    assert_true(found.rows > 0);
    assert_int_equal(found.not_kept, 0);
    if (found.steps == 1) { /* no beat came after it */
        assert_string_equal(found.serial, "lost");
        assert_string_equal(found.token, token);
    }
    assert_int_not_equal(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    accept_as_two();
    await_grant(f.client, "s1");
    free(token);
    tl_lock_free(lock);
    close_pair();
}

/* Replication stops at a row that is not there. */
static void expect_stopped_at(const char *table)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char *found = NULL;

    do {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
        free(found);
        found = database_replication(sql_copy, "Last_SQL_Error");
    } while (found[0] == '\0');
    assert_non_null(strstr(found, "Error_code: 1032"));
    assert_non_null(strstr(found, table));
    free(found);
}

/* How a replica comes to pass over what was committed while it stood still: `before` that is
 * committed, `after` it. */
struct passing {
    void (*before)(void), (*after)(void);
};

/* As if it had all until now, read while the replica still receives: else a commit waits for it. */
static void set_position(void)
{
    char *position = database_text(f.sql, "SELECT @@gtid_binlog_pos");

    database_run(sql_copy, "STOP SLAVE; RESET MASTER; SET GLOBAL gtid_slave_pos = '%s'", position);
    free(position);
}

static void dump(void)
{
    char command[1024];

    snprintf(command, sizeof command,
             "mariadb-dump --no-defaults --socket='%s' --single-transaction --routines %s "
             ">'%s/dump.sql'",
             server_socket(primary), database_name(f.db), server_dir(primary));
    assert_int_equal(system(command), 0);
}

/* As of the dump, and then as if it were of now. */
static void load_dump(void)
{
    char command[1024];

    set_position();
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    snprintf(command, sizeof command, "mariadb --no-defaults --socket='%s' %s <'%s/dump.sql'",
             server_socket(copy), database_name(f.db), server_dir(primary));
    assert_int_equal(system(command), 0);
    database_run(sql_copy, "SET GLOBAL read_only = 1; RESET MASTER");
}

/* The primary's log begins anew, and what the replica had received goes, too. */
static void begin_log_anew(void)
{
    database_run(sql_copy, "STOP SLAVE");
    database_run(f.sql, "RESET MASTER");
    database_run(sql_copy, "RESET SLAVE; RESET MASTER; SET GLOBAL gtid_slave_pos = ''");
}

static const struct passing by_hand = {NULL, set_position};
static const struct passing by_dump = {dump, load_dump};
static const struct passing by_new_log = {NULL, begin_log_anew};

/* goes_on: replication is told to go on in spite of what it does not find. */
static void skip_some(const struct passing *how, int goes_on)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    open_pair(1);
    await_rounds();
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    if (how->before != NULL)
        how->before();
    lock = granted(f.client, "lost", "c1", &options);
    await_rounds();
    how->after();
    if (goes_on)
        database_run(sql_copy, "SET GLOBAL slave_exec_mode = IDEMPOTENT");
    database_run(sql_copy, "START SLAVE");
    if (goes_on) {
        await_rounds();
        await_copy();
        database_run(sql_copy, "STOP SLAVE; SET GLOBAL slave_exec_mode = STRICT");
    } else {
        expect_stopped_at(".tl_beat;");
    }
    server_kill9(primary);
    take_writes();
    open_ops();
    if (goes_on) {
        assert_status(tl_promote(ops, 1, "hook", "the primary is gone"), TL_REFUSED);
        assert_true(is_restored());
    } else {
        assert_status(tl_promote(ops, 1, "hook", "the primary is gone"), TL_OK);
        expect_veto(2);
    }
    assert_int_not_equal(ask_now(second, "lost"), TL_GRANTED);
    tl_lock_free(lock);
    close_pair();
}

/* Where each commit begins in the primary's log, since a position, that changed a trade. */
static size_t commits_of_trades(const char *since, uint64_t *places, size_t space)
{
    const uint64_t after = strtoull(strrchr(since, '-') + 1, NULL, 10);
    MYSQL_RES *events;
    MYSQL_ROW row;
    uint64_t number = 0, place = 0;
    size_t count = 0;

    assert_int_equal(mysql_query(f.sql, "SHOW BINLOG EVENTS"), 0);
    events = mysql_store_result(f.sql);
    while ((row = mysql_fetch_row(events)) != NULL) {
        if (strcmp(row[2], "Gtid") == 0) {
            number = strtoull(strrchr(row[5], '-') + 1, NULL, 10);
            place = strtoull(row[1], NULL, 10);
        } else if (number > after && strcmp(row[2], "Table_map") == 0 &&
                   strstr(row[5], ".trade_lock)") != NULL &&
                   (count == 0 || places[count - 1] != place)) {
            assert_true(count < space);
            places[count++] = place;
        }
    }
    mysql_free_result(events);
    return count;
}

static void await_applied_until(uint64_t place)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char *there = NULL;

    database_run(sql_copy,
                 "START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE = 'binlog.000001', "
                 "MASTER_LOG_POS = %llu",
                 (unsigned long long)place);
    do {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
        free(there);
        there = database_replication(sql_copy, "Exec_Master_Log_Pos");
    } while (strtoull(there, NULL, 10) < place);
    assert_int_equal(strtoull(there, NULL, 10), place);
    free(there);
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
}

static void await_beats_of(tl_client *client)
{
    const uint64_t wanted = beats(client) + 2;
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (beats(client) < wanted) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
}

/* The replica passes over the commits of one trade, and then over whatever stops it.  at_once: the
 * primary dies before its process came to a round. */
static void pass_over_one(const char *settings, int at_once)
{
    tl_lock_options options = sync_options("x");
    uint64_t places[2];
    char *since;
    tl_lock *lock;

    open_pair(1);
    tl_client_close(f.client);
    f.client = open_with(file_with(both(), settings), 0);
    await_beats_of(f.client);
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    since = database_text(f.sql, "SELECT @@gtid_binlog_pos");
    lock = granted(f.client, "lost", "c1", &options);
    await_beats_of(second);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    await_beats_of(at_once ? second : f.client);
    assert_int_equal(commits_of_trades(since, places, 2), 2);
    free(since);
    if (at_once)
        server_kill9(primary);
    await_applied_until(places[0]);
    database_run(sql_copy, "SET GLOBAL sql_slave_skip_counter = 1");
    if (at_once) {
        await_applied_until(places[1]);
        database_run(sql_copy, "SET GLOBAL sql_slave_skip_counter = 1; START SLAVE SQL_THREAD");
        apply_all();
    } else {
        database_run(sql_copy, "START SLAVE SQL_THREAD");
        expect_stopped_at(".tl_receipt;");
        for (unsigned i = 0; i < 10; i++) { /* the usual way out */
            database_run(sql_copy, "STOP SLAVE SQL_THREAD; SET GLOBAL sql_slave_skip_counter = 1; "
                                   "START SLAVE SQL_THREAD");
            expect_stopped_at("");
        }
        server_kill9(primary);
    }
    assert_false(has_row(sql_copy, "lost"));
    take_writes();
    promote();
    expect_veto(2);
    if (at_once)
        assert_int_equal(what_is_missing().steps, 2);
    assert_int_not_equal(ask_now(second, "lost"), TL_GRANTED);
    tl_lock_free(lock);
    close_pair();
}

static void test_one_trade_is_passed_over(void **state)
{
    (void)state;
    pass_over_one(BEATING, 0);
}

static void test_one_trade_is_passed_over_at_last(void **state)
{
    (void)state;
    pass_over_one("beat_ms=5s\nsession_ms=40s\nread_timeout_s=2\nconnect_timeout_s=4\n", 1);
}

static void test_a_position_set_by_hand(void **state)
{
    (void)state;
    skip_some(&by_hand, 0);
}

static void test_a_replica_made_of_an_old_dump(void **state)
{
    (void)state;
    skip_some(&by_dump, 0);
}

static void test_a_log_that_begins_anew(void **state)
{
    (void)state;
    skip_some(&by_new_log, 0);
}

/* A replica that tries commits side by side, undoes them and begins anew passes over none. */
static void test_a_replica_in_parallel(void **state)
{
    tl_lock_options options = sync_options("x");
    char serial[16];

    (void)state;
    open_pair(1);
    database_run(sql_copy, "STOP SLAVE; SET GLOBAL slave_parallel_threads = 4; "
                           "SET GLOBAL slave_parallel_mode = 'aggressive'; START SLAVE");
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    for (unsigned i = 0; i < 50; i++) {
        tl_lock *lock;

        snprintf(serial, sizeof serial, "p%u", i);
        lock = granted(i % 2 ? f.client : second, serial, "c1", &options);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    await_rounds();
    database_run(sql_copy, "START SLAVE SQL_THREAD");
    server_kill9(primary);
    apply_all();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s1");
    close_pair();
}

static void test_beats_that_were_passed_over(void **state)
{
    (void)state;
    skip_some(&by_hand, 1);
}

/* Beats cover the grant that is lost; the sessions wait on the new server, and beat there, until it
 * is promoted.  Somebody else has written down before that it is another one. */
static void test_who_waits_counts_no_beats(void **state)
{
    tl_lock_options options = sync_options("x");
    struct found found;
    tl_lock *lock;

    (void)state;
    open_pair(1);
    await_rounds();
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    lock = granted(f.client, "lost", "c1", &options);
    await_rounds();
    server_kill9(primary);
    database_run(sql_copy, "INSERT INTO tl_restore (step, reason, account) VALUES ('found', "
                           "'it is another server than the one that was accepted', USER())");
    take_writes();
    usleep(3000 * 1000);
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_true(found.rows > 0);
    assert_int_not_equal(ask_now(second, "lost"), TL_GRANTED);
    assert_int_not_equal(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    accept_as_two();
    await_grant(f.client, "s1");
    tl_lock_free(lock);
    close_pair();
}

/* The same where the replica was never read-only: its beats are seen to be missing, and then there
 * are as many, since those who wait write them there. */
static void test_who_waits_has_not_caught_up(void **state)
{
    tl_lock_options options = sync_options("x");
    struct found found;
    tl_lock *lock;

    (void)state;
    open_pair(1);
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    await_rounds();
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    lock = granted(f.client, "lost", "c1", &options);
    await_rounds();
    server_kill9(primary);
    usleep(3000 * 1000);
    take_writes();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_true(found.rows > 0);
    assert_int_not_equal(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

/* The session went on at the new server, and a connection of the caller's leads to the old one. */
static void test_an_ending_at_the_old_server(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_ending success = TL_ENDING_INIT;
    tl_lock *lock;

    (void)state;
    open_pair(1);
    lock = granted(f.client, "held", "c1", &options);
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    await_accepted();
    await_grant(f.client, "s0");
    database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 0; SET GLOBAL read_only = 0; "
                        "START TRANSACTION; UPDATE row_lock SET resource = resource");
    success.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish_in(lock, f.sql, &success, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    database_run(f.sql, "ROLLBACK");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM trade_lock "
                                               "WHERE serial_no = 'held' AND status = 'Y'"),
                     1);
    tl_lock_free(lock);
    close_pair();
}

/* A replica of which nobody waits: a process of which nobody knows may have paid. */
static void test_nobody_waited_for_the_replica(void **state)
{
    struct found found;

    (void)state;
    open_pair(0);
    await_rounds();
    await_copy();
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    take_writes();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_int_equal(found.not_kept, 2);
    assert_int_equal(found.steps, 0);
    close_pair();
}

/* Another process, which dies with the primary. */
static void kill_both(void)
{
    const pid_t child = start_run("of-the-dead");

    await_rounds();
    server_kill9(primary);
    kill_run(child);
    apply_all();
    take_writes();
}

/* A process that died with the primary cannot say what it was told. */
static void test_a_process_dies_too(void **state)
{
    struct found found;

    (void)state;
    open_pair(1);
    kill_both();
    promote();
    expect_veto(2);
    found = what_is_missing();
    assert_int_equal(found.unattested, 1);
    assert_int_equal(found.rows, 1);
    assert_non_null(strstr(found.whose, "tradelock"));
    /* Nor when somebody there has ended its session. */
    database_run(sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = tl_identity() "
                 "WHERE program LIKE '%%run%%' AND ended_at IS NULL");
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    accept_as_two();
    await_grant(f.client, "s1");
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
    database_run(f.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = tl_identity(), "
                 "ended_no = %s WHERE program LIKE '%%run%%'",
                 number);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_session WHERE program LIKE "
                                            "'%%run%%' AND ended_on = tl_identity()"),
                     1);
    promote_old();
    await_number(f.sql,
                 "SELECT COUNT(*) FROM tl_attestation a JOIN tl_schema s "
                 "ON a.restore_no = s.restore_no WHERE a.attested_at IS NOT NULL",
                 2);
    usleep(QUIET_MS * 1000);
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 1);
    close_pair();
}

static void test_ended_here_since(void **state)
{
    (void)state;
    end_here("(SELECT accepted_no FROM tl_schema)");
}

static void test_ended_here_by_hand(void **state)
{
    (void)state;
    end_here("NULL");
}

static void test_ended_here_while_it_lived_there(void **state)
{
    (void)state;
    end_here("0");
}

/* Where the primary is off for certain that does not matter, once its session has ended: others
 * saw that it answered no commit before the replica had it. */
static void test_a_process_dies_and_the_primary_is_off(void **state)
{
    (void)state;
    open_pair(1);
    kill_both();
    promote();
    expect_veto(2);
    promote_as(1);
    promote_as(1); /* a hook that runs twice */
    await_accepted();
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_session WHERE ended_at IS "
                                               "NOT NULL AND program LIKE '%%run%%'"),
                     1);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'fenced'"), 1);
    await_grant(f.client, "s1");
    await_grant(second, "s2");
    close_pair();
}

/* It proves nothing where commits were answered before the replica had them. */
static void test_off_and_not_kept(void **state)
{
    (void)state;
    open_pair(0);
    kill_both();
    promote_as(1);
    expect_veto(2);
    database_run(sql_copy,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_on = tl_identity() "
                 "WHERE program LIKE '%%run%%' AND ended_at IS NULL");
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    close_pair();
}

/* A third server, which has all that there is: behind the second one, or asynchronous behind the
 * first, and away while processes look.  Both processes begin anew, and know the primary and this
 * one; or, with a split, one of them knows the second instead. */
static void open_third(int is_behind_copy, int is_split)
{
    MYSQL *sql;

    third = start_at(3, &port_third);
    follow(is_behind_copy ? port_copy : port_primary, third, is_behind_copy);
    sql = server_connect(third);
    await_at(sql);
    if (!is_behind_copy)
        database_run(sql, "STOP SLAVE");
    mysql_close(sql);
    tl_client_close(second);
    tl_client_close(f.client);
    f.client = open_with(file_with(hosts_with(is_split ? port_copy : port_third), SHORT), 0);
    second = open_with(file_with(hosts_with(port_third), SHORT), 0);
    await_rounds();
}

/* From now on the third one is the one that is promoted. */
static void take_third(void)
{
    server *other = copy;

    copy = third;
    third = other;
    mysql_close(sql_copy);
    sql_copy = server_connect(copy);
    database_run(sql_copy, "USE %s", database_name(f.db));
    tl_client_close(ops);
    ops = NULL;
}

/* A server that has all, and that nobody had waited for: a process of which nobody knows may have
 * been told of more, by the one that was waited for. */
static void promote_another(int is_behind_copy)
{
    struct found found;

    open_pair(1);
    open_third(is_behind_copy, 0);
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    take_third();
    database_run(sql_copy, "START SLAVE");
    await_copy();
    server_kill9(primary);
    take_writes();
    promote_as(1);
    expect_veto(2);
    found = what_is_missing();
    assert_int_equal(found.not_kept, 2);
    assert_int_equal(found.steps, 0);
    close_pair();
}

static void test_one_behind_the_replica(void **state)
{
    (void)state;
    promote_another(1);
}

static void test_one_that_was_away(void **state)
{
    (void)state;
    promote_another(0);
}

/* On each side of a split somebody promotes a server that has all, with the primary off for certain:
 * one of the two is accepted. */
static void test_two_sides_of_a_split(void **state)
{
    (void)state;
    open_pair(1);
    open_third(1, 1);
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    server_kill9(primary);
    take_writes();
    promote_as(1);
    await_accepted();
    await_grant(f.client, "s1");
    take_third();
    take_writes();
    promote_as(1);
    /* It says so under each of its sessions; one may have begun before the server was promoted. */
    await_number(sql_copy,
                 "SELECT COUNT(*) > 0 AND MAX(kept) = 0 FROM tl_attestation "
                 "WHERE attested_at IS NOT NULL "
                 "AND restore_no = (SELECT MAX(restore_no) FROM tl_attestation)",
                 1);
    await_number(sql_copy,
                 "SELECT COUNT(*) FROM tl_attestation a JOIN tl_session x USING (session_id) "
                 "WHERE a.attested_at IS NULL AND x.ended_at IS NULL",
                 0);
    usleep(QUIET_MS * 1000);
    assert_true(is_restored());
    assert_int_not_equal(ask_now(second, "s1"), TL_GRANTED);
    close_pair();
}

/* What the log leaves out nobody has but the primary. */
static void test_a_log_with_a_filter(void **state)
{
    (void)state;
    extra_option = "--binlog-ignore-db=elsewhere";
    open_pair(1);
    extra_option = NULL;
    await_rounds();
    database_run(f.sql, "SET GLOBAL read_only = 1");
    await_copy();
    take_writes();
    promote();
    expect_veto(2);
    assert_int_equal(what_is_missing().not_kept, 2);
    close_pair();
}

/* What anybody else said against it counts. */
static void test_it_was_declared(void **state)
{
    (void)state;
    open_pair(1);
    await_rounds();
    server_kill9(primary);
    apply_all();
    take_writes();
    open_ops();
    assert_status(tl_restore_declare(ops, "ann", "the disk was replaced"), TL_OK);
    promote();
    expect_veto(2);
    close_pair();
}

/* ---------------------------------------------------------------------------- what is refused -- */

struct told {
    tl_finding_level level;
    const char *found;
    int times;
};

static int take_told(void *context, const tl_finding *finding)
{
    struct told *told = context;

    told->times += strcmp(finding->check, "replication") == 0 && finding->level == told->level &&
                   strstr(finding->found, told->found) != NULL;
    return 0;
}

static void expect_told(tl_finding_level level, const char *found)
{
    struct told told = {level, found, 0};

    (void)tl_doctor(ops, take_told, &told);
    assert_int_equal(told.times, 1);
}

/* A replica that leaves out what its primary committed; the last one does since it was started. */
static void test_a_replica_that_passes_over(void **state)
{
    static const struct {
        const char *name, *value, *otherwise;
    } settings[] = {{"replicate_do_db", "payments", ""},
                    {"replicate_ignore_db", "payments", ""},
                    {"replicate_do_table", "payments.ledger", ""},
                    {"replicate_ignore_table", "payments.ledger", ""},
                    {"replicate_wild_do_table", "payments.%", ""},
                    {"replicate_wild_ignore_table", "payments.ledger", ""},
                    {"replicate_rewrite_db", "payments->books", ""},
                    {"replicate_events_marked_for_skip", "FILTER_ON_SLAVE", "REPLICATE"},
                    {"sql_slave_skip_counter", "1", "0"},
                    {"gtid_slave_pos", "0-1-4000000,7-1-1", "0-1-4000000"},
                    {"slave_exec_mode", "IDEMPOTENT", "STRICT"},
                    {"slave_skip_errors", "1062", NULL}};
    const size_t count = sizeof settings / sizeof *settings;

    (void)state;
    extra_option = "--slave-skip-errors=1062";
    open_pair(1);
    extra_option = NULL;
    take_writes();
    open_ops();
    for (size_t i = 0; i < count; i++) {
        const int is_number = settings[i].otherwise != NULL && settings[i].otherwise[0] == '0' &&
                              settings[i].otherwise[1] == '\0';
        const char *quote = is_number ? "" : "'";
        char found[128];

        snprintf(found, sizeof found, "%s = %s", settings[i].name, settings[i].value);
        if (settings[i].otherwise != NULL)
            database_run(sql_copy, "SET GLOBAL %s = %s%s%s", settings[i].name, quote,
                         settings[i].value, quote);
        database_run(sql_copy, "SET GLOBAL read_only = 1");
        expect_told(TL_FINDING_UNSAFE, found);
        database_run(sql_copy, "SET GLOBAL read_only = 0");
        assert_status(tl_promote(ops, 1, "hook", "the primary is gone"), TL_REFUSED);
        assert_non_null(strstr(tl_error_message(), found));
        if (settings[i].otherwise != NULL)
            database_run(sql_copy, "SET GLOBAL %s = %s%s%s", settings[i].name, quote,
                         settings[i].otherwise, quote);
    }
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted'"), 0);
    close_pair();
}

static void test_a_server_that_is_not_promoted(void **state)
{
    tl_client *client;

    (void)state;
    open_pair(1);
    client = open_with(database_option_file(f.db), TL_CLIENT_NO_SESSION);
    assert_status(tl_promote(client, 0, "hook", "by mistake"), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "is the accepted one"));
    assert_status(tl_promote(client, 0, "hook", ""), TL_INVALID);
    tl_client_close(client);
    /* An administrator may write there. */
    assert_int_not_equal(mysql_query(sql_copy, "INSERT INTO tl_restore (step, reason, actor) "
                                               "VALUES ('promoted', 'too early', 'hook')"),
                         0);
    assert_non_null(strstr(mysql_error(sql_copy), "read-only"));
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    open_ops();
    assert_status(tl_promote(ops, 0, "hook", "too early"), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "still replicates"));
    /* Nobody writes by hand that it was accepted by itself. */
    assert_int_not_equal(mysql_query(f.sql, "INSERT INTO tl_restore (restore_no, step, reason) "
                                            "VALUES (1, 'proved', 'by hand')"),
                         0);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_restore "
                                            "WHERE step <> 'kept'"),
                     0);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted'"), 0);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_attestation"), 0);
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    close_pair();
}

/* ------------------------------------------------------------------------------- the marks -- */

static commit_mark mark_of(const char *serial)
{
    commit_mark m = {.kind = MARK_EVIDENCE};

    snprintf(m.serial_no, sizeof m.serial_no, "%s", serial);
    return m;
}

/* Of commits that were under way at the same time each is kept, of others only the last. */
static void test_which_commits_are_kept(void **state)
{
    static commit_marks noted;
    db_server old = {DB_SERVER_WHOLE, 0}, promoted = {DB_SERVER_MAY_LACK, 0};
    commit_mark a = mark_of("a"), b = mark_of("b"), c = mark_of("c"), *all;
    uint64_t one, other;
    size_t count;

    (void)state;
    marks_init(&noted);
    one = marks_begin(&noted);
    other = marks_begin(&noted);
    assert_true(marks_note(&noted, &a, &old, one));
    assert_true(marks_note(&noted, &b, &old, other)); /* was sent before the first was answered */
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 2);
    free(all);
    assert_true(marks_note(&noted, &c, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 1);
    assert_string_equal(all[0].serial_no, "c");
    free(all);
    assert_true(marks_of_others(&noted, &old, &all, &count));
    assert_int_equal(count, 0);
    free(all);
    /* What the old one answers once it was given up counts for nothing. */
    one = marks_begin(&noted);
    atomic_store(&old.state, DB_SERVER_LEFT);
    assert_false(marks_note(&noted, &a, &old, one));
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 1);
    free(all);
    marks_forget_left(&noted);
    assert_true(marks_of_others(&noted, &promoted, &all, &count));
    assert_int_equal(count, 0);
    free(all);
    /* More at a time than there is room for: then it cannot say any more what it was told, before a
     * commit covers them all. */
    for (size_t i = 0; i <= COMMIT_MARKS_MAX; i++)
        assert_true(marks_note(&noted, &a, &promoted, 0));
    assert_false(marks_of_others(&noted, &old, &all, &count));
    free(all);
    assert_true(marks_note(&noted, &a, &promoted, marks_begin(&noted) - 1));
    assert_false(marks_of_others(&noted, &old, &all, &count));
    free(all);
    assert_true(marks_note(&noted, &a, &promoted, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, &old, &all, &count));
    assert_int_equal(count, 1);
    free(all);
    marks_end(&noted);
}

static size_t kept_of(commit_marks *noted, const db_server *other)
{
    commit_mark *all;
    size_t count;

    assert_true(marks_of_others(noted, other, &all, &count));
    free(all);
    return count;
}

/* Each step of a trade is kept until a round closed it, and a beat came after that. */
static void test_which_steps_are_kept(void **state)
{
    static commit_marks noted;
    db_server old = {DB_SERVER_WHOLE, 0}, promoted = {DB_SERVER_MAY_LACK, 0};
    commit_mark done = mark_of("a"), beat = mark_of("b"), *all;
    uint64_t round;
    size_t count;

    (void)state;
    done.kind = MARK_TRADE;
    beat.kind = MARK_BEAT;
    marks_init(&noted);
    for (size_t i = 0; i < 1 << 15; i++) /* more than there is room for */
        assert_true(marks_note(&noted, &done, &old, marks_begin(&noted)));
    assert_false(marks_of_others(&noted, &promoted, &all, &count));
    free(all);
    marks_closed(&noted, &old, marks_begin(&noted));
    assert_false(marks_drop_closed(&noted, &old));
    for (size_t i = 0; i < 3 * COMMIT_MARKS_MAX; i++)
        assert_true(marks_note(&noted, &done, &old, marks_begin(&noted)));
    assert_true(marks_note(&noted, &beat, &old, marks_begin(&noted)));
    assert_int_equal(kept_of(&noted, &promoted), 3 * COMMIT_MARKS_MAX + 1);
    assert_true(marks_drop_closed(&noted, &old));
    round = marks_begin(&noted);
    assert_true(marks_note(&noted, &done, &old, round)); /* beside the round */
    marks_closed(&noted, &old, round);
    assert_int_equal(kept_of(&noted, &promoted), 3 * COMMIT_MARKS_MAX + 1);
    assert_true(marks_note(&noted, &beat, &old, marks_begin(&noted)));
    assert_false(marks_drop_closed(&noted, &promoted));
    assert_true(marks_drop_closed(&noted, &old));
    assert_int_equal(kept_of(&noted, &promoted), 2);
    marks_closed(&noted, &old, marks_begin(&noted));
    assert_false(marks_drop_closed(&noted, &old));
    assert_int_equal(kept_of(&noted, &promoted), 1);
    marks_end(&noted);
}

static void mark_nothing(const task *t, commit_mark *to)
{
    (void)t;
    to->kind = MARK_NONE;
}

static void mark_trade(const task *t, commit_mark *to)
{
    *to = mark_of(t->name);
}

/* Of a batch the first step that was committed stands for all, and not one that found nothing to
 * do, nor one that nobody can look up. */
static void test_which_of_a_batch_is_kept(void **state)
{
    static commit_marks noted;
    static const task_kind nothing = {.mark = mark_nothing}, trade = {.mark = mark_trade},
                           untold = {.mark = NULL};
    task tasks[] = {{.kind = &nothing, .name = "a"},
                    {.kind = &untold, .name = "b"},
                    {.kind = &trade, .name = "c"},
                    {.kind = &trade, .name = "d"}};
    const task *const all_of[] = {&tasks[0], &tasks[1], &tasks[2], &tasks[3]};
    struct task_engine engine = {.noted = &noted};
    db_server old = {DB_SERVER_WHOLE, 0};
    commit_mark *all;
    size_t count;

    (void)state;
    marks_init(&noted);
    assert_true(settle_note(&engine, all_of, 1, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, NULL, &all, &count));
    assert_int_equal(count, 0);
    free(all);
    assert_true(settle_note(&engine, all_of, 2, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, NULL, &all, &count));
    assert_int_equal(count, 1);
    assert_int_equal(all[0].kind, MARK_UNTOLD);
    free(all);
    assert_true(settle_note(&engine, all_of, 4, &old, marks_begin(&noted)));
    assert_true(marks_of_others(&noted, NULL, &all, &count));
    assert_int_equal(count, 1);
    assert_string_equal(all[0].serial_no, "c");
    free(all);
    /* What the old one answers once it was given up is believed of none. */
    atomic_store(&old.state, DB_SERVER_LEFT);
    assert_false(settle_note(&engine, all_of, 4, &old, marks_begin(&noted)));
    marks_end(&noted);
}

/* ------------------------------------------------------------------- each step is looked up -- */

static tl_mutex *held_mutex;
static tl_rw *held_rw;
static tl_lock *held_trade;
static MYSQL *business;

static void do_ask_trade(void)
{
    tl_lock_options options = sync_options("x");

    held_trade = granted(f.client, "held", "c1", &options);
}

static void do_evidence(void)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {"held", "c1", "WITHDRAW"},
                            .outcome = "ACCEPTED",
                            .source = "a web-hook"};

    assert_status(tl_evidence_add(f.client, &evidence), TL_OK);
}

static void do_end_trade(void)
{
    assert_status(finish(held_trade, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(held_trade);
}

static void do_lock(void)
{
    assert_status(tl_mutex_lock(held_mutex, 0), TL_GRANTED);
}

static void do_renew(void)
{
    assert_status(tl_mutex_renew(held_mutex, 20000), TL_OK);
}

static void do_unlock(void)
{
    assert_status(tl_mutex_unlock(held_mutex), TL_OK);
}

static void do_write(void)
{
    assert_status(tl_rw_write(held_rw, 0), TL_GRANTED);
}

static void do_renew_rw(void)
{
    assert_status(tl_rw_renew(held_rw, 20000), TL_OK);
}

static void do_downgrade(void)
{
    assert_status(tl_rw_downgrade(held_rw), TL_OK);
}

static void do_unlock_rw(void)
{
    assert_status(tl_rw_unlock(held_rw), TL_OK);
}

static void do_read(void)
{
    assert_status(tl_rw_read(held_rw, 0), TL_GRANTED);
}

/* Another one waits to write what is read. */
static void do_intent(void)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *writer;

    options.lease_ms = 10000;
    assert_status(tl_rw_new(&writer, f.client, "shared", &options), TL_OK);
    assert_status(tl_rw_write(writer, 1), TL_TIMEOUT);
    tl_rw_free(writer);
}

static void do_row_lock(void)
{
    database_run(business, "BEGIN");
    assert_status(tl_row_lock(f.client, "account", business, TL_ROW_LOCK_NOWAIT, TL_GUARD_ANY_IDLE),
                  TL_GRANTED);
    database_run(business, "ROLLBACK");
}

static unsigned missing_at_copy(db *connection)
{
    unsigned missing;

    assert_status(position_count_missing(f.client, connection, &missing), TL_OK);
    return missing;
}

static db *connect_to_copy(void)
{
    db_options options = {.option_file =
                              database_option_file_at(f.db, server_socket(copy), BEATING),
                          .group = "tradelock-client",
                          .connect_timeout_s = 10,
                          .read_timeout_s = 10};
    db *connection;

    paths[path_count++] = (char *)options.option_file;
    assert_status(db_open(&connection, &options), TL_OK);
    return connection;
}

static void make_handles(void)
{
    tl_mutex_options mutex = TL_MUTEX_OPTIONS_INIT;
    tl_rw_options rw = TL_RW_OPTIONS_INIT;

    mutex.lease_ms = rw.lease_ms = 10000;
    mutex.max_hold_ms = rw.max_hold_ms = 600000;
    assert_status(tl_mutex_new(&held_mutex, f.client, "job", &mutex), TL_OK);
    assert_status(tl_rw_new(&held_rw, f.client, "shared", &rw), TL_OK);
}

/* One process, whose beats are a minute apart. */
static void open_slow(void)
{
    open_pair(0);
    tl_client_close(second);
    tl_client_close(f.client);
    second = NULL;
    f.client = open_with(file_with(both(), SLOW), 0);
}

/* Whatever was done last, before any beat: where it has not arrived it is missed, and where it has,
 * nothing is.  Of what costs nobody anything where it is lost, nothing is ever missed. */
static void test_each_step_is_looked_up(void **state)
{
    static const struct {
        const char *name;
        void (*run)(void);
        int is_missed;
    } steps[] = {{"ask", do_ask_trade, 1},
                 {"evidence", do_evidence, 1},
                 {"ending", do_end_trade, 1},
                 {"lock", do_lock, 1},
                 {"renew", do_renew, 1},
                 {"renew again", do_renew, 1},
                 {"unlock", do_unlock, 1},
                 {"write", do_write, 1},
                 {"renew a writer", do_renew_rw, 1},
                 {"downgrade", do_downgrade, 1},
                 {"renew a reader", do_renew_rw, 1},
                 {"unlock a reader", do_unlock_rw, 1},
                 {"read", do_read, 1},
                 {"wait to write", do_intent, 1},
                 {"row lock", do_row_lock, 0}};
    db *at_copy;

    (void)state;
    open_slow();
    business = database_connect(f.db);
    at_copy = connect_to_copy();
    make_handles();
    await_copy();
    assert_int_equal(missing_at_copy(at_copy), 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        unsigned missed;

        database_run(sql_copy, "STOP SLAVE SQL_THREAD");
        steps[i].run();
        missed = missing_at_copy(at_copy);
        database_run(sql_copy, "START SLAVE SQL_THREAD");
        await_copy();
        if (missed != (unsigned)steps[i].is_missed || missing_at_copy(at_copy) != 0)
            fail_msg("%s: %u were missing before it was applied, and %u after it", steps[i].name,
                     missed, missing_at_copy(at_copy));
    }
    db_close(at_copy);
    tl_mutex_free(held_mutex);
    tl_rw_free(held_rw);
    mysql_close(business);
    close_pair();
}

/* The primary is gone, and the other one takes writes, though nobody has promoted it yet. */
static void lose_primary(void)
{
    server_kill9(primary);
    take_writes();
    open_ops();
}

/* Evidence that is lost is missed, though other evidence was filed on the new server, and has its
 * number there. */
static void test_evidence_whose_number_another_has(void **state)
{
    tl_lock_options options = sync_options("x");
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {"other", "c2", "WITHDRAW"},
                            .outcome = "ACCEPTED",
                            .source = "a web-hook"};
    tl_lock *other;
    db *at_copy;

    (void)state;
    open_slow();
    at_copy = connect_to_copy();
    do_ask_trade();
    other = granted(f.client, "other", "c2", &options);
    await_copy();
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    do_evidence();
    assert_int_equal(missing_at_copy(at_copy), 1);
    lose_primary();
    assert_status(tl_evidence_add(ops, &evidence), TL_OK);
    assert_int_equal(missing_at_copy(at_copy), 1);
    db_close(at_copy);
    tl_lock_free(held_trade);
    tl_lock_free(other);
    close_pair();
}

/* A renewal that is lost, and a grant before it, are missed, though the lock's row was changed as
 * often on the new server: there it was unlocked. */
static void test_a_renewal_that_is_lost(void **state)
{
    db *at_copy;

    (void)state;
    open_slow();
    make_handles();
    at_copy = connect_to_copy();
    do_lock();
    await_copy();
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    do_ask_trade();
    do_renew();
    assert_int_equal(missing_at_copy(at_copy), 2);
    lose_primary();
    do_unlock();
    assert_int_equal(missing_at_copy(at_copy), 2);
    db_close(at_copy);
    tl_lock_free(held_trade);
    tl_mutex_free(held_mutex);
    tl_rw_free(held_rw);
    close_pair();
}

/* The same of a read-write lock: there the writer became a reader, and then it was unlocked. */
static void test_a_renewal_of_a_writer_that_is_lost(void **state)
{
    db *at_copy;

    (void)state;
    open_slow();
    make_handles();
    at_copy = connect_to_copy();
    do_write();
    await_copy();
    database_run(sql_copy, "STOP SLAVE SQL_THREAD");
    do_ask_trade();
    do_renew_rw();
    assert_int_equal(missing_at_copy(at_copy), 2);
    lose_primary();
    do_downgrade();
    assert_int_equal(missing_at_copy(at_copy), 2);
    do_unlock_rw();
    assert_int_equal(missing_at_copy(at_copy), 2);
    db_close(at_copy);
    tl_lock_free(held_trade);
    tl_mutex_free(held_mutex);
    tl_rw_free(held_rw);
    close_pair();
}

TEST_MAIN(position)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_commits_are_kept),
        cmocka_unit_test(test_which_steps_are_kept),
        cmocka_unit_test(test_which_of_a_batch_is_kept),
        cmocka_unit_test(test_each_step_is_looked_up),
        cmocka_unit_test(test_evidence_whose_number_another_has),
        cmocka_unit_test(test_a_renewal_that_is_lost),
        cmocka_unit_test(test_a_renewal_of_a_writer_that_is_lost),
        cmocka_unit_test(test_the_primary_dies),
        cmocka_unit_test(test_a_planned_switch_over),
        cmocka_unit_test(test_a_drain_at_a_server_that_is_read_only),
        cmocka_unit_test(test_a_promoted_server_that_is_full),
        cmocka_unit_test(test_a_process_without_a_session),
        cmocka_unit_test(test_who_waits_connects_to_nothing),
        cmocka_unit_test(test_a_drain_behind_haproxy),
        cmocka_unit_test(test_a_drain_behind_one_address),
        cmocka_unit_test(test_the_writer_dies_between_slow_beats),
        cmocka_unit_test(test_a_process_just_begins),
        cmocka_unit_test(test_a_session_that_only_began),
        cmocka_unit_test(test_a_session_that_was_taken_back),
        cmocka_unit_test(test_a_session_that_just_begins),
        cmocka_unit_test(test_all_connections_are_lent),
        cmocka_unit_test(test_a_replica_that_is_not_read_only),
        cmocka_unit_test(test_a_program_ends_meanwhile),
        cmocka_unit_test(test_a_program_ends_while_it_waits),
        cmocka_unit_test(test_a_program_was_too_early),
        cmocka_unit_test(test_a_program_ended_between),
        cmocka_unit_test(test_a_replica_known_for_long),
        cmocka_unit_test(test_a_person_promotes),
        cmocka_unit_test(test_accepted_before_it_knows),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_some_of_the_log_is_missing),
        cmocka_unit_test(test_a_position_set_by_hand),
        cmocka_unit_test(test_a_replica_made_of_an_old_dump),
        cmocka_unit_test(test_a_log_that_begins_anew),
        cmocka_unit_test(test_beats_that_were_passed_over),
        cmocka_unit_test(test_a_replica_in_parallel),
        cmocka_unit_test(test_one_trade_is_passed_over),
        cmocka_unit_test(test_one_trade_is_passed_over_at_last),
        cmocka_unit_test(test_who_waits_counts_no_beats),
        cmocka_unit_test(test_who_waits_has_not_caught_up),
        cmocka_unit_test(test_an_ending_at_the_old_server),
        cmocka_unit_test(test_nobody_waited_for_the_replica),
        cmocka_unit_test(test_a_process_dies_too),
        cmocka_unit_test(test_ended_here_since),
        cmocka_unit_test(test_ended_here_by_hand),
        cmocka_unit_test(test_ended_here_while_it_lived_there),
        cmocka_unit_test(test_a_process_dies_and_the_primary_is_off),
        cmocka_unit_test(test_off_and_not_kept),
        cmocka_unit_test(test_one_behind_the_replica),
        cmocka_unit_test(test_one_that_was_away),
        cmocka_unit_test(test_two_sides_of_a_split),
        cmocka_unit_test(test_a_log_with_a_filter),
        cmocka_unit_test(test_it_was_declared),
        cmocka_unit_test(test_a_replica_that_passes_over),
        cmocka_unit_test(test_a_server_that_is_not_promoted),
    };

    crew_arguments(argc, argv);
    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
