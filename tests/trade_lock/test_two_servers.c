/* One address and two servers behind it: a primary, and a copy of it that is promoted.  What a
 * process knows belongs to the server that a connection leads to, and not to the process. */
#include "fixture.h"

#include "client/client.h"
#include "client/restored.h"
#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>
#include <tradelock/lane.h>
#include <tradelock/resource.h>
#include <tradelock/rw_lock.h>

#include <pthread.h>

/* No beat comes meanwhile, or many do. */
#define SILENT "beat_ms=1m\nsession_ms=10m\n"
#define BEATING "beat_ms=100\nsession_ms=10m\n"

/* The sql and the other client of the fixture are the primary's. */
static fixture f;
static server *primary, *copy;
static tap *line;
static char *at_line, *at_copy;
static MYSQL *sql_copy;
static tl_client *ops; /* at the copy, once it was accepted */

/* ------------------------------------------------------------------- the two servers -- */

static void start_pair(void)
{
    static const char *const second[] = {"--server-id=2", NULL};
    const unsigned port = server_free_port();
    char at[64];
    const char *const first[] = {"--log-bin=binlog",
                                 "--sync-binlog=1",
                                 "--server-id=1",
                                 "--skip-networking=0",
                                 at,
                                 "--bind-address=127.0.0.1",
                                 NULL};
    MYSQL *sql;

    snprintf(at, sizeof at, "--port=%u", port);
    primary = server_start(first);
    sql = server_connect(primary);
    database_run(sql, "CREATE USER replica@'127.0.0.1'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'");
    mysql_close(sql);
    copy = server_start(second);
    sql = server_connect(copy);
    database_run(sql,
                 "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE",
                 port);
    mysql_close(sql);
}

static void await_copy(void)
{
    char *position = database_text(f.sql, "SELECT @@gtid_binlog_pos");

    assert_int_equal(database_number(sql_copy, "SELECT MASTER_GTID_WAIT('%s', %d)", position,
                                     PATIENCE_MS / 1000),
                     0);
    free(position);
}

/* The service's account may not write where the server is read-only; an administrator may. */
static char *option_file_of_service(const char *settings)
{
    char *path = database_option_file_at(f.db, tap_socket(line), settings);
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fputs("[tradelock-client]\nuser=plain\npassword=plain\n", file);
    fclose(file);
    return path;
}

static tl_client *open_at(const char *option_file)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = option_file;
    options.flags = TL_CLIENT_NO_JANITOR;
    assert_status(tl_client_open(&client, &options), TL_OK);
    return client;
}

/* The process is at the primary, and the copy has all that the primary has. */
static void open_pair(const char *settings)
{
    start_pair();
    f.db = database_new(primary, SILENT);
    database_note_server(f.db);
    f.other = client_new(&f, TL_CLIENT_NO_JANITOR);
    f.sql = database_connect(f.db);
    database_run(f.sql,
                 "CREATE USER plain@localhost IDENTIFIED BY 'plain'; "
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@localhost",
                 database_name(f.db));
    line = tap_start(server_socket(primary));
    at_line = option_file_of_service(settings);
    at_copy = database_option_file_at(f.db, server_socket(copy), SILENT);
    f.client = open_at(at_line);
    sql_copy = server_connect(copy);
    await_copy();
    database_run(sql_copy, "USE %s", database_name(f.db));
}

static void remove_file(char *path)
{
    remove(path);
    free(path);
}

static void close_pair(void)
{
    assert_log_whole(&f);
    tl_client_close(ops);
    ops = NULL;
    mysql_close(sql_copy);
    fixture_close(&f);
    tap_free(line);
    remove_file(at_line);
    remove_file(at_copy);
    server_free(copy);
    server_free(primary);
}

static void promote(void)
{
    await_copy();
    database_run(sql_copy, "STOP SLAVE; RESET SLAVE ALL");
}

static void accept_copy(void)
{
    ops = open_at(at_copy);
    database_propose(sql_copy);
    assert_status(tl_restore_accept(ops, "bob", "nothing is missing", NULL), TL_OK);
    assert_int_equal(database_number(sql_copy, "SELECT tl_restored()"), 0);
}

/* Until the process has no connection there. */
static void await_nobody_at(MYSQL *sql)
{
    AWAIT_WHILE(database_number(sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                     "WHERE USER = 'plain'") > 0);
}

/* The address leads there, for those who connect from now on. */
static void lead(server *to)
{
    tap_lead(line, server_socket(to));
}

/* And for those who were connected, too. */
static void lead_all(server *to)
{
    lead(to);
    tap_cut(line);
    await_nobody_at(to == copy ? f.sql : sql_copy);
}

/* --------------------------------------------------------------------- what they do -- */

static tl_status prepare_nothing(void *context, struct st_mysql *connection)
{
    (void)context;
    (void)connection;
    return TL_OK;
}

/* An ask with business rows uses connections of another kind. */
static tl_status ask_with_rows(const char *serial)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock = lock_new(f.client, serial, "c1", &options);
    tl_status status = tl_lock_ask_with(lock, prepare_nothing, NULL, 0);

    tl_lock_free(lock);
    return status;
}

/* The answer of a server that another one was accepted after. */
static void assert_earlier(tl_status status)
{
    assert_status(status, TL_UNREACHABLE);
    if (strstr(tl_error_message(), "of an earlier term than one that was accepted") == NULL)
        fail_msg("%s", tl_error_message());
}

/* Until the process has moved to the server where the address leads. */
static void await_grant_with_rows(const char *serial)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    while ((status = ask_with_rows(serial)) != TL_GRANTED && crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_status(status, TL_GRANTED);
}

static uint64_t beats(void)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(f.client, &stats), TL_OK);
    return stats.beats;
}

static uint64_t beat_at(MYSQL *sql)
{
    return (uint64_t)database_number(sql, "SELECT beat FROM tl_session WHERE session_id = '%s'",
                                     tl_client_session(f.client));
}

static void await_beats(uint64_t count)
{
    const uint64_t least = beats() + count;
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (beats() < least && crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_true(beats() >= least);
}

/* ----------------------------------------------------------------------------- tests -- */

/* Who has met the accepted copy does not go back: the old primary lacks what was paid there. */
TEST(test_the_old_primary_comes_back)
{
    tl_client *late;
    tl_lock_options options = sync_options("x");
    tl_status status;

    open_pair(SILENT);
    assert_status(ask_now(f.client, "before"), TL_GRANTED);
    promote();
    accept_copy();
    lead_all(copy);
    await_grant(f.client, "copy");
    lead_all(primary);
    assert_earlier(ask_now(f.client, "copy"));
    assert_earlier(ask_with_rows("rows"));
    assert_int_equal(has_row(f.sql, "copy"), 0);
    assert_int_equal(has_row(f.sql, "rows"), 0);
    /* It is told there, so whoever begins later hears it. */
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 1);
    late = client_new(&f, TL_CLIENT_NO_JANITOR);
    tl_lock_free(ask(late, "late", "c1", &options, &status));
    assert_status(status, TL_ASK_CHANNEL);
    tl_client_close(late);
    lead_all(copy);
    await_grant(f.client, "after");
    assert_int_equal(has_row(sql_copy, "after"), 1);
    close_pair();
}

/* Neither does a connection that had stayed at the old primary. */
TEST(test_a_connection_to_the_old_primary)
{
    open_pair(SILENT);
    assert_status(ask_now(f.client, "before"), TL_GRANTED);
    promote();
    accept_copy();
    lead(copy);
    await_grant_with_rows("met");
    assert_int_equal(has_row(sql_copy, "met"), 1);
    await_grant(f.client, "after");
    assert_int_equal(has_row(f.sql, "after"), 0);
    assert_int_equal(has_row(sql_copy, "after"), 1);
    close_pair();
}

/* A backup from before the last accepting is of an earlier term, until it is accepted: later by the
 * clock, although not by its number. */
TEST(test_an_old_backup_is_accepted)
{
    open_pair(SILENT);
    promote();
    database_run(f.sql, "UPDATE tl_schema SET restore_no = 5, accepted_no = 5, "
                        "accepted_at = UTC_TIMESTAMP(6)");
    tap_cut(line);
    await_nobody_at(f.sql);
    await_grant(f.client, "primary");
    lead_all(copy);
    assert_earlier(ask_now(f.client, "early"));
    assert_int_equal(has_row(sql_copy, "early"), 0);
    accept_copy();
    await_grant(f.client, "accepted");
    assert_int_equal(has_row(sql_copy, "accepted"), 1);
    /* One has the higher number, the other the later moment: neither is known as the earlier.  But
     * the process has a session at one, of which the other one knows nothing. */
    lead(primary);
    assert_status(ask_with_rows("rows"), TL_ASK_CHANNEL);
    assert_int_equal(has_row(f.sql, "rows"), 0);
    assert_status(ask_now(f.client, "still"), TL_GRANTED);
    assert_int_equal(has_row(sql_copy, "still"), 1);
    close_pair();
}

/* A grant is of one server: that another one was not accepted takes nothing from it, and gives the
 * other one nothing. */
TEST(test_each_answers_for_itself)
{
    open_pair(SILENT);
    assert_status(ask_now(f.client, "before"), TL_GRANTED);
    promote();
    lead(copy);
    assert_status(ask_with_rows("rows"), TL_ASK_CHANNEL);
    assert_status(ask_now(f.client, "primary"), TL_GRANTED);
    assert_status(ask_with_rows("again"), TL_ASK_CHANNEL);
    assert_int_equal(has_row(f.sql, "primary"), 1);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM trade_lock WHERE serial_no IN "
                                               "('rows', 'primary', 'again')"),
                     0);
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 0);
    close_pair();
}

static db *borrow(void)
{
    db *connection = NULL;

    assert_status(pool_get(f.client->connections, POOL_QUICK, PATIENCE_MS, &connection), TL_OK);
    return connection;
}

static void give_back(db *connection)
{
    pool_put(f.client->connections, connection);
}

static db_server_state state_of(const db *connection)
{
    return db_state_of(db_server_of(connection));
}

/* A connection that met the copy before it was accepted is closed as soon as a look shows that the
 * process has a whole server.  The next one hears of the accepting, and that the primary is the
 * earlier one. */
TEST(test_accepting_is_heard)
{
    db *first, *second;

    open_pair(SILENT);
    promote();
    first = borrow();
    lead(copy);
    second = borrow();
    assert_int_equal(state_of(first), DB_SERVER_WHOLE);
    assert_int_equal(state_of(second), DB_SERVER_MAY_LACK);
    assert_true(db_usable(second));
    accept_copy();
    assert_status(restored_look(f.client, first), TL_OK);
    assert_false(db_usable(second));
    give_back(second);
    second = borrow();
    assert_int_equal(state_of(second), DB_SERVER_WHOLE);
    assert_int_equal(state_of(first), DB_SERVER_LEFT);
    assert_false(db_usable(first));
    give_back(first);
    give_back(second);
    close_pair();
}

/* The server behind the address takes no writes any more, and another one does. */
TEST(test_a_demotion_and_a_promotion)
{
    uint64_t at_copy_before;

    open_pair(BEATING);
    assert_status(ask_now(f.client, "before"), TL_GRANTED);
    database_run(f.sql, "SET GLOBAL read_only = 1");
    assert_status(ask_now(f.client, "demoted"), TL_READ_ONLY);
    promote();
    accept_copy();
    lead(copy);
    await_grant(f.client, "promoted");
    assert_int_equal(has_row(sql_copy, "promoted"), 1);
    at_copy_before = beat_at(sql_copy);
    await_beats(3);
    assert_true(beat_at(sql_copy) > at_copy_before);
    database_run(f.sql, "SET GLOBAL read_only = 0");
    close_pair();
}

/* A replica is no server that was restored: whoever meets it tries again, and writes nothing. */
TEST(test_a_replica)
{
    open_pair(SILENT);
    promote();
    database_run(sql_copy, "SET GLOBAL read_only = 1");
    lead_all(copy);
    assert_status(ask_now(f.client, "replica"), TL_READ_ONLY);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore"), 0);
    lead_all(primary);
    await_grant(f.client, "primary");
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    close_pair();
}

/* What the copy confirmed while nobody had accepted it says nothing about the primary. */
TEST(test_a_beat_that_the_copy_confirmed)
{
    open_pair(BEATING);
    await_beats(1);
    promote();
    lead_all(copy);
    await_beats(5);
    assert_true(beat_at(sql_copy) > beat_at(f.sql));
    lead_all(primary);
    await_grant(f.client, "primary");
    await_beats(3);
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 0);
    assert_int_equal(has_row(f.sql, "primary"), 1);
    close_pair();
}

static int count_restores(MYSQL *sql)
{
    return (int)database_number(sql, "SELECT COUNT(*) FROM tl_restore");
}

/* What the primary confirmed is forgotten by no look at another server: the primary comes back with
 * yesterday's data, and what was paid since is missing there. */
TEST(test_the_witness_of_another_server)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    char *old;
    tl_status status;

    open_pair(BEATING);
    assert_status(ask_now(f.client, "paid"), TL_GRANTED);
    promote();
    await_beats(3);
    assert_true(beat_at(f.sql) > beat_at(sql_copy));
    old = strdup(tl_client_session(f.client));
    lead_all(copy);
    await_beats(5);
    assert_status(ask_now(f.client, "other"), TL_ASK_CHANNEL);
    assert_int_equal(count_restores(sql_copy), 1);
    assert_int_equal(count_restores(f.sql), 0);
    database_run(f.sql,
                 "DELETE FROM trade_lock WHERE serial_no = 'paid'; "
                 "DELETE FROM trade_lock_past WHERE serial_no = 'paid'; "
                 "DELETE FROM tl_session WHERE session_id = '%s'",
                 old);
    free(old);
    lead_all(primary);
    while ((status = ask_now(f.client, "paid")) != TL_ASK_CHANNEL && status != TL_GRANTED &&
           crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_status(status, TL_ASK_CHANNEL);
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 1);
    close_pair();
}

static tl_status mutex_lock(tl_client *client, tl_mutex **out)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;

    options.max_hold_ms = 600000;
    assert_status(tl_mutex_new(out, client, "account", &options), TL_OK);
    return tl_mutex_lock(*out, 0);
}

/* A session is of one server.  The heart is led to another one, and others end the session where it
 * was: what it held there is lost, and no connection that stayed there is granted anything. */
TEST(test_the_heart_leads_elsewhere)
{
    const int64_t end_ms = crew_now_ms() + 2 * PATIENCE_MS;
    tl_mutex *mine, *theirs = NULL;
    char *old, *heart;
    db *stayed;

    open_pair(BEATING);
    await_beats(1);
    old = strdup(tl_client_session(f.client));
    assert_status(mutex_lock(f.client, &mine), TL_GRANTED);
    stayed = borrow();
    promote();
    lead(copy);
    heart = database_text(f.sql,
                          "SELECT IS_USED_LOCK(CONCAT('tl:', connection_name)) FROM tl_session "
                          "WHERE session_id = '%s'",
                          old);
    database_run(f.sql, "KILL %s", heart);
    free(heart);
    while (strcmp(tl_client_session(f.client), old) == 0 && crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_string_not_equal(tl_client_session(f.client), old);
    assert_int_equal(tl_mutex_remaining_ms(mine), 0);
    assert_int_equal(state_of(stayed), DB_SERVER_WHOLE);
    give_back(stayed);
    assert_status(ask_now(f.client, "stayed"), TL_ASK_CHANNEL);
    assert_int_equal(has_row(f.sql, "stayed"), 0);
    await_nobody_at(f.sql);
    /* Others end it there, by their own observing. */
    database_run(f.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE session_id = '%s'",
                 old);
    free(old);
    assert_status(mutex_lock(f.other, &theirs), TL_GRANTED);
    assert_int_equal(tl_mutex_remaining_ms(mine), 0);
    tl_mutex_free(theirs);
    tl_mutex_free(mine);
    close_pair();
}

/* Until the process is connected where the address leads: how that server renews the lease. */
static tl_status renewed(tl_status (*renew)(void *lock), void *lock)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    do {
        usleep(10 * 1000);
        status = renew(lock);
    } while ((status == TL_UNREACHABLE || status == TL_UNKNOWN) && crew_now_ms() < end_ms);
    return status;
}

static tl_status renew_mutex(void *lock)
{
    return tl_mutex_renew(lock, 500000);
}

static tl_status renew_rw(void *lock)
{
    return tl_rw_renew(lock, 500000);
}

/* A lease that a copy renewed would be over at the primary, where others take it: two holders. */
TEST(test_a_lease_is_renewed_at_home)
{
    tl_mutex_options mutex_options = TL_MUTEX_OPTIONS_INIT;
    tl_rw_options rw_options = TL_RW_OPTIONS_INIT;
    tl_mutex *mutex;
    tl_rw *rw;

    open_pair(SILENT);
    mutex_options.max_hold_ms = rw_options.max_hold_ms = 600000;
    mutex_options.lease_ms = rw_options.lease_ms = 300000;
    assert_status(tl_mutex_new(&mutex, f.client, "account", &mutex_options), TL_OK);
    assert_status(tl_rw_new(&rw, f.client, "table", &rw_options), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    assert_status(tl_rw_write(rw, 0), TL_GRANTED);
    promote();
    lead_all(copy);
    assert_status(renewed(renew_mutex, mutex), TL_ASK_CHANNEL);
    assert_status(renewed(renew_rw, rw), TL_ASK_CHANNEL);
    assert_in_range(tl_mutex_remaining_ms(mutex), 0, 300000);
    assert_in_range(tl_rw_remaining_ms(rw), 0, 300000);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM resource_log "
                                               "WHERE step = 'renew'"),
                     0);
    tl_rw_free(rw);
    tl_mutex_free(mutex);
    close_pair();
}

static int pass_over(void *context, const char *op_code)
{
    (void)context;
    (void)op_code;
    return 0;
}

/* What is read of a replica is read, as of any server.  Nothing is written there, not even by an
 * account that may; and once it takes writes, it is another server like any. */
TEST(test_a_replica_is_read)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_client *reader = NULL, *service;
    uint64_t beat_before;
    tl_status status;
    char *file;

    open_pair(SILENT);
    service = f.client;
    options.config_file = at_line;
    options.flags = TL_CLIENT_NO_JANITOR | TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&reader, &options), TL_OK);
    file = database_option_file_at(f.db, tap_socket(line), BEATING);
    f.client = open_at(file); /* by an account that may write there */
    await_beats(1);
    promote();
    beat_before = beat_at(sql_copy);
    database_run(sql_copy, "SET GLOBAL read_only = 1");
    lead_all(copy);
    assert_status(tl_operations(reader, pass_over, NULL), TL_OK);
    assert_int_equal(database_number(sql_copy,
                                     "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                     "WHERE USER = 'plain'"),
                     1);
    usleep(500 * 1000); /* some beats */
    assert_status(ask_now(f.client, "replica"), TL_READ_ONLY);
    assert_status(ask_with_rows("rows"), TL_READ_ONLY);
    assert_int_equal(database_number(sql_copy, "SELECT COUNT(*) FROM trade_lock"), 0);
    assert_int_equal(count_restores(sql_copy), 0);
    assert_int_equal(beat_at(sql_copy), beat_before);
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    while ((status = ask_now(f.client, "replica")) != TL_ASK_CHANNEL && crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_status(status, TL_ASK_CHANNEL);
    assert_int_equal(count_restores(sql_copy), 1);
    lead_all(primary);
    await_grant(f.client, "primary");
    tl_client_close(reader);
    tl_client_close(f.client);
    f.client = service;
    remove_file(file);
    close_pair();
}

/* The heart stayed at the old primary, and beats there after the copy was accepted: what it did
 * there meanwhile the copy lacks.  So the copy is found restored once more, and accepted once
 * more. */
TEST(test_a_beat_after_the_accepting)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_status status;

    open_pair(BEATING);
    promote();
    accept_copy();
    assert_status(ask_now(f.client, "late"), TL_GRANTED);
    await_beats(3);
    lead(copy);
    while ((status = ask_with_rows("met")) != TL_ASK_CHANNEL && status != TL_GRANTED &&
           crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_status(status, TL_ASK_CHANNEL);
    assert_int_equal(database_number(sql_copy, "SELECT tl_restored()"), 1);
    await_nobody_at(f.sql); /* nobody is left at the old one, the heart neither */
    await_beats(1);
    assert_status(ask_now(f.client, "late"), TL_ASK_CHANNEL);
    database_propose(sql_copy);
    assert_status(tl_restore_accept(ops, "bob", "late is paid", NULL), TL_OK);
    await_grant(f.client, "after");
    assert_int_equal(has_row(sql_copy, "after"), 1);
    close_pair();
}

/* An answer is lost, and who settles it is led to another server, which knows nothing of it: that
 * it is not there proves nothing. */
TEST(test_a_doubt_of_another_server)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_lock_options options = sync_options("x");
    tl_status status;
    tl_lock *lock;

    open_pair(SILENT);
    assert_status(ask_now(f.client, "before"), TL_GRANTED);
    promote();
    lead(copy);
    lock = lock_new(f.client, "lost", "c1", &options);
    tap_rule(line, "lost", 0, TAP_LOSE_ANSWER, 0);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    assert_true(tap_done(line));
    assert_int_equal(has_row(f.sql, "lost"), 1);
    assert_int_equal(has_row(sql_copy, "lost"), 0);
    lead(primary);
    while ((status = tl_lock_ask(lock, 0)) != TL_GRANTED && crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_status(status, TL_GRANTED);
    tl_lock_free(lock);
    close_pair();
}

/* The same, but the other server is accepted meanwhile: what it does not have was not done. */
TEST(test_a_doubt_is_settled_by_its_successor)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_lock_options options = sync_options("x");
    tl_status status;
    tl_lock *lock;

    open_pair(SILENT);
    assert_status(ask_now(f.client, "before"), TL_GRANTED);
    promote();
    lead(copy);
    lock = lock_new(f.client, "lost", "c1", &options);
    tap_rule(line, "lost", 0, TAP_LOSE_ANSWER, 0);
    assert_status(tl_lock_ask(lock, 0), TL_UNKNOWN);
    accept_copy();
    while ((status = tl_lock_ask(lock, 0)) != TL_GRANTED && crew_now_ms() < end_ms)
        usleep(10 * 1000);
    assert_status(status, TL_GRANTED);
    assert_int_equal(has_row(sql_copy, "lost"), 1);
    tl_lock_free(lock);
    close_pair();
}

static void open_lanes(const char *const *serials, size_t count)
{
    tl_lock_options options = sync_options("x");

    for (size_t i = 0; i < count; i++) {
        tl_lock *lock = granted(f.client, serials[i], "c1", &options);

        assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
        tl_lock_free(lock);
    }
}

static tl_status claim_due(tl_lock **locks, size_t *count)
{
    tl_claim_options options = TL_CLAIM_OPTIONS_INIT;

    options.op_code = "WITHDRAW";
    options.max_hold_ms = 600000;
    return tl_claim_due(f.client, &options, locks, count);
}

/* The answer to a batch of claims is lost, and the address leads to a server that cannot tell.
 * Nobody waits for that, for each claim, as long as an answer may take: whoever is open has other
 * work.  None of them is forgotten. */
TEST(test_doubtful_claims_keep_nobody_waiting)
{
    static const char *const serials[] = {"due-1", "due-2", "due-3"};
    int64_t end_ms;
    tl_lock *locks[3];
    size_t count = 3, all = 0;

    open_pair(SILENT "pool_wait_ms=15s\n");
    assert_status(claim_due(locks, &count), TL_OK); /* has its connection */
    assert_int_equal(count, 0);
    open_lanes(serials, 3);
    promote();
    lead(copy);
    count = 3;
    tap_rule(line, "COMMIT", 0, TAP_LOSE_ANSWER, 0);
    end_ms = crew_now_ms() + PATIENCE_MS;
    assert_status(claim_due(locks, &count), TL_UNKNOWN);
    assert_true(tap_done(line));
    count = 3;
    assert_status(claim_due(locks, &count), TL_UNKNOWN);
    assert_true(crew_now_ms() < end_ms);
    lead(primary);
    end_ms = crew_now_ms() + PATIENCE_MS;
    while (all < 3 && crew_now_ms() < end_ms) {
        count = 3 - all;
        if (claim_due(locks + all, &count) == TL_OK)
            all += count;
    }
    assert_int_equal(all, 3);
    for (size_t i = 0; i < all; i++) {
        assert_status(finish(locks[i], TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(locks[i]);
    }
    close_pair();
}

/* Between two beats there is time to accept a server and to meet it: a beat that the old one still
 * confirms after the accepting makes the new one restored again. */
#define SELDOM "beat_ms=3s\nsession_ms=10m\n"

/* Some connections lead to a server that nobody accepted.  The heart does not leave a whole one for
 * it, or everything would be lost that is held there. */
TEST(test_the_heart_stays_at_a_whole_server)
{
    tl_mutex *mine;
    tl_lock *lock;
    size_t count = 1;
    char *before;

    open_pair(SELDOM);
    await_beats(1);
    before = strdup(tl_client_session(f.client));
    assert_status(mutex_lock(f.client, &mine), TL_GRANTED);
    promote();
    lead(copy);
    assert_status(claim_due(&lock, &count), TL_UNREACHABLE);
    await_beats(3);
    assert_string_equal(tl_client_session(f.client), before);
    assert_true(tl_mutex_remaining_ms(mine) > 0);
    accept_copy();
    await_grant_with_rows("copy");
    assert_int_equal(has_row(sql_copy, "copy"), 1);
    assert_string_not_equal(tl_client_session(f.client), before);
    assert_int_equal(tl_mutex_remaining_ms(mine), 0);
    tl_mutex_free(mine);
    free(before);
    close_pair();
}

static void note_accepted(unsigned number)
{
    database_run(f.sql,
                 "UPDATE tl_schema SET restore_no = %u, accepted_no = %u, "
                 "accepted_at = UTC_TIMESTAMP(6)",
                 number, number);
    tap_cut(line);
    await_nobody_at(f.sql);
}

/* A server is left once any other one was accepted after it, whatever was accepted before. */
TEST(test_earlier_than_one_of_several)
{
    open_pair(SILENT);
    note_accepted(5);
    await_grant(f.client, "fifth");
    note_accepted(3); /* an old backup, accepted later */
    await_grant(f.client, "third");
    promote();
    accept_copy();
    assert_int_equal(database_number(sql_copy, "SELECT accepted_no FROM tl_schema"), 4);
    lead_all(copy);
    await_grant(f.client, "fourth");
    lead_all(primary);
    assert_earlier(ask_now(f.client, "old"));
    assert_int_equal(has_row(f.sql, "old"), 0);
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 1);
    close_pair();
}

/* The same with an ending in a caller's transaction, which was committed. */
TEST(test_a_caller_is_settled_by_its_server)
{
    tl_lock_options options = sync_options("x");
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock;

    open_pair(SILENT);
    lock = granted(f.client, "caller", "c1", &options);
    promote();
    lead(copy);
    ending.outcome = TL_OUTCOME_SUCCESS;
    database_run(f.sql, "START TRANSACTION");
    assert_status(tl_lock_finish_in(lock, f.sql, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(f.sql, "COMMIT");
    assert_status(tl_lock_committed(lock, TL_COMMIT_UNANSWERED), TL_UNKNOWN);
    assert_int_equal(database_number(sql_copy, "SELECT status = 'P' FROM trade_lock "
                                               "WHERE serial_no = 'caller' AND lane = 'S'"),
                     1);
    lead(primary);
    assert_status(tl_lock_settle(lock), TL_SUCCEEDED);
    tl_lock_free(lock);
    close_pair();
}

/* A claim was made on a server that nobody had accepted, and its answer is lost.  That the process
 * uses a whole server now makes that one no successor: it does not know of the claim. */
TEST(test_a_doubt_of_a_server_not_accepted)
{
    static const char *const serials[] = {"lane-1", "lane-2"};
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_lock *first, *second;
    size_t count = 1;
    tl_status status;

    open_pair(SILENT);
    open_lanes(serials, 2);
    promote();
    lead_all(copy);
    while ((status = claim_due(&first, &count)) != TL_OK && crew_now_ms() < end_ms)
        count = 1;
    assert_status(status, TL_OK);
    assert_int_equal(count, 1);
    lead(primary);
    tap_rule(line, "COMMIT", 0, TAP_LOSE_ANSWER, 0);
    assert_status(claim_due(&second, &count), TL_UNKNOWN);
    assert_true(tap_done(line));
    lead(copy);
    while ((status = claim_due(&second, &count)) != TL_OK && crew_now_ms() < end_ms)
        count = 1;
    assert_status(status, TL_OK);
    assert_int_equal(count, 1);
    assert_status(finish(first, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_status(finish(second, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(first);
    tl_lock_free(second);
    close_pair();
}

/* As soon as some connection has shown that the session's server is left, nothing leaves under that
 * session any more, whenever the next beat comes. */
TEST(test_nothing_is_certain_on_a_server_that_is_left)
{
    db *first, *second;
    tl_mutex *mine;

    open_pair(SILENT);
    assert_status(mutex_lock(f.client, &mine), TL_GRANTED);
    promote();
    accept_copy();
    first = borrow();
    lead(copy);
    assert_true(tl_mutex_remaining_ms(mine) > 0);
    second = borrow();
    assert_int_equal(state_of(first), DB_SERVER_LEFT);
    assert_int_equal(tl_mutex_remaining_ms(mine), 0);
    give_back(first);
    give_back(second);
    await_grant(f.client, "after");
    assert_int_equal(has_row(sql_copy, "after"), 1);
    tl_mutex_free(mine);
    close_pair();
}

/* A look on a connection of its own. */
struct late_look {
    db *connection;
    tl_status status;
};

static void *look_late(void *argument)
{
    struct late_look *late = argument;

    late->status = restored_look(f.client, late->connection);
    return NULL;
}

/* The answer of an earlier look, which arrives last, does not take back when a restore was
 * accepted. */
TEST(test_a_late_answer)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    struct late_look late = {.status = TL_UNKNOWN};
    pthread_t thread;
    int64_t accepted_us;
    db *second;

    open_pair(SILENT);
    late.connection = borrow();
    assert_true(tl_restore_accepted_us(f.client) == 0);
    tap_rule(line, tl_client_session(f.client), 0, TAP_DELAY_ANSWER, 0);
    assert_int_equal(pthread_create(&thread, NULL, look_late, &late), 0);
    while (!tap_done(line) && crew_now_ms() < end_ms)
        usleep(1000);
    assert_true(tap_done(line));
    database_run(f.sql, "UPDATE tl_schema SET restore_no = 1, accepted_no = 1, "
                        "accepted_at = UTC_TIMESTAMP(6)");
    second = borrow();
    accepted_us = tl_restore_accepted_us(f.client);
    assert_true(accepted_us > 0);
    tap_release(line);
    pthread_join(thread, NULL);
    assert_status(late.status, TL_OK);
    assert_true(tl_restore_accepted_us(f.client) == accepted_us);
    give_back(late.connection);
    give_back(second);
    close_pair();
}

/* A look that began first reads last: it sees an accepting that the look after it did not see, and
 * does not take the server for one that was left for itself. */
TEST(test_a_late_request)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    struct late_look late = {.status = TL_UNKNOWN};
    pthread_t thread;
    db *second;

    open_pair(SILENT);
    late.connection = borrow();
    second = borrow();
    tap_rule(line, tl_client_session(f.client), 0, TAP_DELAY_REQUEST, 0);
    assert_int_equal(pthread_create(&thread, NULL, look_late, &late), 0);
    while (!tap_done(line) && crew_now_ms() < end_ms)
        usleep(1000);
    assert_true(tap_done(line));
    assert_status(restored_look(f.client, second), TL_OK);
    database_run(f.sql, "UPDATE tl_schema SET restore_no = 1, accepted_no = 1, "
                        "accepted_at = UTC_TIMESTAMP(6)");
    tap_release(line);
    pthread_join(thread, NULL);
    assert_status(late.status, TL_OK);
    assert_int_equal(state_of(late.connection), DB_SERVER_WHOLE);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_restore"), 0);
    give_back(late.connection);
    give_back(second);
    close_pair();
}

/* A replica's clock need not be the one by which rows are written, and what is recorded with the
 * rights of the schema's owner is written on a read-only server too: its replication would end
 * there.  The one that takes writes is judged when it is met. */
TEST(test_a_replicas_clock_is_not_recorded)
{
    clock_watch *watch;

    open_pair(SILENT);
    watch = &f.client->clock;
    assert_status(clock_watch_look(f.client), TL_OK);
    database_run(f.sql, "SET GLOBAL read_only = 1");
    restored_look_again(f.client);
    watch->steady.least_us -= 30000000;
    watch->steady.most_us -= 30000000;
    assert_status(clock_watch_look(f.client), TL_OK);
    assert_status(clock_watch_search(f.client), TL_OK);
    assert_int_equal(database_number(f.sql, "SELECT steps FROM tl_clock"), 0);
    database_run(f.sql, "UPDATE tl_clock SET steps = 1");
    assert_status(clock_watch_adjust(f.client, 100), TL_READ_ONLY);
    assert_int_equal(database_number(f.sql, "SELECT settled FROM tl_clock"), 0);
    database_run(f.sql, "UPDATE tl_clock SET steps = 0; SET GLOBAL read_only = 0");
    restored_look_again(f.client);
    assert_status(clock_watch_look(f.client), TL_OK);
    assert_int_equal(database_number(f.sql, "SELECT steps FROM tl_clock"), 1);
    close_pair();
}

TESTS_OF(two_servers, NULL, NULL)
