/* A primary that waits for its replica with each commit dies or is switched off, and the replica is
 * promoted: by a hook or a person, at once or late, beside a drain, with slow beats, or behind one
 * address.  It is accepted without a person, and whoever holds a lock keeps it.  One that somebody
 * declared to be restored is not, and one that does not take over is refused. */
#include "pair.h"

#include "support/crew.h"
#include "support/haproxy.h"
#include "support/theme.h"

#include <tradelock/resource.h>

#include <stdatomic.h>

#define SLOW_BEAT_MS 60000
/* Two of these are longer than a session waits for a promotion. */
#define SLOWER "beat_ms=9s\nsession_ms=1m\nread_timeout_s=2\nconnect_timeout_s=4\n"

/* ---------------------------------------------------------------------- accepted by itself -- */

/* No person, and who holds a lock keeps it. */
TEST(test_the_primary_dies)
{
    tl_lock_options options = sync_options("x");
    tl_mutex_options mutex_options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;
    char sessions[2][64];
    int64_t since_ms;
    tl_lock *lock;

    open_pair(1);
    lock = granted(pair.first, "held", "c1", &options);
    mutex_options.max_hold_ms = 600000;
    assert_status(tl_mutex_new(&mutex, pair.second, "nightly", &mutex_options), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    await_rounds();
    snprintf(sessions[0], sizeof sessions[0], "%s", tl_client_session(pair.first));
    snprintf(sessions[1], sizeof sessions[1], "%s", tl_client_session(pair.second));
    server_kill9(pair.primary);
    since_ms = crew_now_ms();
    apply_all();
    take_writes();
    assert_int_not_equal(ask_now(pair.first, "early"), TL_GRANTED);
    usleep(300 * 1000); /* both meet it before it is promoted */
    promote();
    await_accepted();
    /* The hook lost its answer, and asks again. */
    assert_status(tl_promote(pair.ops, 1, "hook", "the primary is gone"), TL_OK);
    await_grant(pair.first, "s1");
    print_message("killed, promoted and granted again after %lld ms, without a person\n",
                  (long long)(crew_now_ms() - since_ms));
    await_grant(pair.second, "s2");
    assert_true(has_row(pair.sql_copy, "s1"));
    assert_string_equal(tl_client_session(pair.first), sessions[0]);
    assert_string_equal(tl_client_session(pair.second), sessions[1]);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM trade_lock "
                                                    "WHERE serial_no = 'held' AND status = 'Y' "
                                                    "AND sends = 1"),
                     1);
    tl_lock_free(lock);
    tl_mutex_free(mutex);
    close_pair();
}

/* Read-only, caught up, promoted. */
TEST(test_a_planned_switch_over)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    open_pair(1);
    lock = granted(pair.second, "held", "c1", &options);
    await_rounds();
    stop_writes();
    take_writes();
    promote();
    promote(); /* a hook that runs twice */
    await_accepted();
    await_grant(pair.second, "s1");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore "
                                                    "WHERE step = 'promoted'"),
                     1);
    /* The old one is back, takes writes, and stands first. */
    database_run(pair.sql, "SET GLOBAL read_only = 0");
    for (int i = 0; i < 10; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "t%d", i);
        await_grant(pair.first, serial);
        assert_true(has_row(pair.sql_copy, serial));
        assert_false(has_row(pair.sql, serial));
        usleep(20 * 1000);
    }
    tl_lock_free(lock);
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
    assert_status(tl_mutex_new(&mutexes[0], pair.first, "nightly", &options), TL_OK);
    options.lease_ms = 60000;
    assert_status(tl_mutex_new(&mutexes[1], pair.second, "leased", &options), TL_OK);
    for (int i = 0; i < 2; i++)
        assert_status(tl_mutex_lock(mutexes[i], 0), TL_GRANTED);
    snprintf(sessions[0], sizeof sessions[0], "%s", tl_client_session(pair.first));
    snprintf(sessions[1], sizeof sessions[1], "%s", tl_client_session(pair.second));
    await_rounds();
    stop_writes();
    take_writes();
    usleep((useconds_t)late_ms * 1000);
    promote();
    await_accepted();
    assert_string_equal(tl_client_session(pair.first), sessions[0]);
    assert_string_equal(tl_client_session(pair.second), sessions[1]);
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

/* -------------------------------------------------- beside a drain, and between slow beats -- */

/* Both processes anew, with the drain on record. */
static void drain_slowly(const char *hosts)
{
    tl_client_close(pair.second);
    tl_client_close(pair.first);
    database_run(pair.sql, "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); "
                           "COMMIT");
    pair.first = open_with(file_with(hosts, SLOW), 0);
    pair.second = open_with(file_with(hosts, SLOW), 0);
}

/* While the primary takes no writes, no beat can be confirmed there, and one that was refused is not
 * followed by ten a second, each on a connection of its own.  And yet all see at once that the other
 * server was promoted, without a connection more. */
TEST(test_a_drain_at_a_server_that_is_read_only)
{
    char mine[64];
    int64_t made[2], since_ms;

    open_pair(1);
    drain_slowly(both());
    await_rounds(); /* they hurry */
    snprintf(mine, sizeof mine, "%s", tl_client_session(pair.first));
    since_ms = crew_now_ms();
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(pair.first, 1);
    await_unreachable(pair.second, 1);
    usleep(QUIET_MS * 1000);
    made[0] = database_counter(pair.sql, "Connections");
    made[1] = database_counter(pair.sql_copy, "Connections");
    usleep(QUIET_MS * 1000);
    assert_int_equal(beats_unreachable(pair.first), 1);
    assert_int_equal(beats_unreachable(pair.second), 1);
    assert_int_equal(database_counter(pair.sql, "Connections"), made[0]);
    assert_int_equal(database_counter(pair.sql_copy, "Connections"), made[1]);
    take_writes();
    promote();
    await_accepted();
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS); /* by no beat that was merely due */
    database_run(pair.sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    assert_string_equal(tl_client_session(pair.first), mine);
    close_pair();
}

static void let_in(int lets)
{
    for (int i = 0; i < 2; i++)
        database_run(pair.sql_copy, "ALTER USER plain@'%s' ACCOUNT %s", i == 0 ? "%" : "localhost",
                     lets ? "UNLOCK" : "LOCK");
}

/* A promoted server that takes no connection for a moment is tried again soon, however slow beats
 * are: a session that waits for the next beat may be over by then. */
TEST(test_a_promoted_server_that_is_full)
{
    char mine[64];
    int64_t since_ms;

    open_pair(1);
    drain_slowly(both());
    await_rounds();
    snprintf(mine, sizeof mine, "%s", tl_client_session(pair.first));
    since_ms = crew_now_ms();
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(pair.first, 1);
    await_unreachable(pair.second, 1);
    take_writes();
    let_in(0);
    promote();
    await_unreachable(pair.first, 2); /* both were sent to it, and none came in */
    await_unreachable(pair.second, 2);
    let_in(1);
    await_accepted();
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS);
    database_run(pair.sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    assert_string_equal(tl_client_session(pair.first), mine);
    close_pair();
}

/* One that lost its session during the drain, and could begin no other, begins one at the promoted
 * server as soon as the others are there. */
TEST(test_a_process_without_a_session)
{
    int64_t since_ms;

    open_pair(1);
    drain_slowly(both());
    await_rounds();
    database_run(pair.sql,
                 "SET SESSION sql_log_bin = 0; CREATE TRIGGER no_other BEFORE INSERT ON tl_session "
                 "FOR EACH ROW SIGNAL SQLSTATE '45000'; SET SESSION sql_log_bin = 1");
    since_ms = crew_now_ms();
    end_mine();
    AWAIT_WHILE(tl_client_alive_ms(pair.first) > 0);
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(pair.second, 1);
    take_writes();
    promote();
    await_accepted();
    database_run(pair.sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(pair.first, "s1");
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS);
    await_grant(pair.second, "s2");
    close_pair();
}

/* Who waits at a server that is not promoted yet keeps its connections there. */
TEST(test_who_waits_connects_to_nothing)
{
    int64_t made[2];

    open_pair(1);
    database_run(pair.sql, "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); "
                           "COMMIT");
    await_rounds();
    stop_writes();
    take_writes();
    usleep(QUIET_MS * 1000);
    made[0] = database_counter(pair.sql, "Connections");
    made[1] = database_counter(pair.sql_copy, "Connections");
    usleep(2 * QUIET_MS * 1000);
    made[0] = database_counter(pair.sql, "Connections") - made[0];
    made[1] = database_counter(pair.sql_copy, "Connections") - made[1];
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
    proxy = haproxy_start(pair.port_primary, pair.port_copy, ends);
    snprintf(address, sizeof address, "127.0.0.1:%u", haproxy_port(proxy));
    drain_slowly(address);
    await_rounds(); /* they hurry */
    snprintf(mine, sizeof mine, "%s", tl_client_session(pair.first));
    since_ms = crew_now_ms();
    database_run(pair.sql, "SET GLOBAL read_only = 1");
    await_copy();
    await_unreachable(pair.first, 1);
    await_unreachable(pair.second, 1);
    made[0] = database_counter(pair.sql, "Connections");
    usleep(2 * QUIET_MS * 1000);
    made[0] = database_counter(pair.sql, "Connections") - made[0];
    made[1] = database_counter(pair.sql_copy, "Connections");
    take_writes();
    haproxy_turn(proxy);
    promote();
    promoted_ms = crew_now_ms();
    await_accepted();
    promoted_ms = crew_now_ms() - promoted_ms;
    made[1] = database_counter(pair.sql_copy, "Connections") - made[1];
    print_message("%lld connections were made to the old server in %d ms, and %lld to the new one "
                  "until it was accepted, %lld ms after it was promoted\n",
                  (long long)made[0], 2 * QUIET_MS, (long long)made[1], (long long)promoted_ms);
    assert_true(crew_now_ms() - since_ms < SLOW_BEAT_MS); /* by no beat that was merely due */
    /* Each process looks where it leads once a second. */
    assert_true(made[0] <= 2 * (2 * QUIET_MS / 1000 + 1));
    database_run(pair.sql_copy,
                 "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); COMMIT");
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    assert_string_equal(tl_client_session(pair.first), mine);
    close_pair();
    haproxy_free(proxy);
}

/* While no beat is confirmed at the old server, all see that another one was promoted: as soon as
 * HAProxy cuts them off, or by the next look where the address leads. */
TEST(test_a_drain_behind_haproxy)
{
    drain_behind_one_address(1);
}

TEST(test_a_drain_behind_one_address)
{
    drain_behind_one_address(0);
}

/* The writer dies just after a beat, beats are slow, and the next server has taken writes for long:
 * who stands there waits as long as anybody else, though the last beat that was confirmed is old. */
TEST(test_the_writer_dies_between_slow_beats)
{
    char mine[64];
    int64_t end_ms;
    uint64_t last;

    open_pair(1);
    tl_client_close(pair.second);
    tl_client_close(pair.first);
    database_run(pair.sql_copy, "SET GLOBAL read_only = 0");
    pair.first = open_with(file_with(both(), SLOWER), 0);
    pair.second = open_with(file_with(both(), SLOWER), 0);
    snprintf(mine, sizeof mine, "%s", tl_client_session(pair.first));
    last = beats(pair.first);
    end_ms = crew_now_ms() + PATIENCE_MS;
    while (beats(pair.first) == last) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    usleep(1000 * 1000); /* and the round after it */
    server_kill9(pair.primary);
    apply_all();
    take_writes();
    await_unreachable(pair.first, 1);
    last = (uint64_t)database_number(pair.sql_copy,
                                     "SELECT waits FROM tl_session WHERE session_id = '%s'", mine);
    end_ms = crew_now_ms() + PATIENCE_MS;
    while (strcmp(tl_client_session(pair.first), mine) == 0 &&
           database_number(pair.sql_copy, "SELECT waits FROM tl_session WHERE session_id = '%s'",
                           mine) == (int64_t)last) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    promote();
    await_accepted();
    await_grant(pair.first, "s1");
    await_grant(pair.second, "s2");
    assert_string_equal(tl_client_session(pair.first), mine);
    close_pair();
}

/* The replica was known for long, and each process meets it before it is promoted. */
TEST(test_a_replica_known_for_long)
{
    open_pair(1);
    usleep(6 * 1000 * 1000);
    switch_over_late(1500);
    await_grant(pair.first, "s1");
    close_pair();
}

/* A person promotes, some seconds later.  Nobody is in a hurry: the installation drains. */
TEST(test_a_person_promotes)
{
    open_pair(1);
    database_run(pair.sql, "BEGIN; CALL tl_channel_decide('*', '', 1, NULL, 'ann', 'maintenance'); "
                           "COMMIT");
    switch_over_late(9000);
    database_run(pair.sql_copy, "BEGIN; CALL tl_channel_decide('*', '', 0, NULL, 'ann', 'over'); "
                                "COMMIT");
    await_grant(pair.first, "s1");
    close_pair();
}

/* --------------------------------------------------------------------------- not by itself -- */

/* What anybody else said against it counts. */
TEST(test_it_was_declared)
{
    open_pair(1);
    await_rounds();
    server_kill9(pair.primary);
    apply_all();
    take_writes();
    open_ops();
    assert_status(tl_restore_declare(pair.ops, "ann", "the disk was replaced"), TL_OK);
    promote();
    expect_veto(2);
    close_pair();
}

TEST(test_a_server_that_is_not_promoted)
{
    tl_client *client;

    open_pair(1);
    client = open_with(database_option_file(pair.db), TL_CLIENT_NO_SESSION);
    assert_status(tl_promote(client, 0, "hook", "by mistake"), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "is the accepted one"));
    assert_status(tl_promote(client, 0, "hook", ""), TL_INVALID);
    tl_client_close(client);
    /* An administrator may write there. */
    assert_int_not_equal(mysql_query(pair.sql_copy, "INSERT INTO tl_restore (step, reason, actor) "
                                                    "VALUES ('promoted', 'too early', 'hook')"),
                         0);
    assert_non_null(strstr(mysql_error(pair.sql_copy), "read-only"));
    database_run(pair.sql_copy, "SET GLOBAL read_only = 0");
    open_ops();
    assert_status(tl_promote(pair.ops, 0, "hook", "too early"), TL_REFUSED);
    assert_non_null(strstr(tl_error_message(), "still replicates"));
    /* Nobody writes by hand that it was accepted by itself. */
    assert_int_not_equal(mysql_query(pair.sql, "INSERT INTO tl_restore (restore_no, step, reason) "
                                               "VALUES (1, 'proved', 'by hand')"),
                         0);
    assert_int_equal(database_number(pair.sql, "SELECT COUNT(*) FROM tl_restore "
                                               "WHERE step <> 'kept'"),
                     0);
    assert_int_equal(
        database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step = 'promoted'"),
        0);
    assert_int_equal(database_number(pair.sql_copy, "SELECT COUNT(*) FROM tl_attestation"), 0);
    assert_status(ask_now(pair.first, "s1"), TL_GRANTED);
    close_pair();
}

TESTS_OF(promotion, NULL, NULL)
