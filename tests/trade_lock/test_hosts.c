/* A settings file that names several hosts: a primary and a copy of it, by real replication, and
 * servers that have no business in the list.  Connections go to the one that was accepted and takes
 * writes, and all of them leave it when another one was accepted after it. */
#include "fixture.h"

#include "client/client.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define BEATING "beat_ms=100ms\nsession_ms=6s\nread_timeout_s=2\nconnect_timeout_s=4\n"

static fixture f; /* its sql is the primary's */
static server *primary, *copy;
static unsigned port_primary, port_copy;
static MYSQL *sql_copy;
static tl_client *ops;
static char *paths[32];
static size_t path_count;

/* Where the primary is, if that is another network namespace than the test's. */
static int ns_here = -1, ns_primary = -1;
static const char *primary_address = "127.0.0.1";

/* ------------------------------------------------------------------- the two servers -- */

static server *start_at(unsigned number, unsigned *port)
{
    char at[64], id[64], bind[64];
    const char *const options[] = {"--log-bin=binlog",
                                   "--sync-binlog=1",
                                   "--log-slave-updates=1",
                                   "--skip-networking=0",
                                   bind,
                                   at,
                                   id,
                                   NULL};

    *port = server_free_port();
    snprintf(at, sizeof at, "--port=%u", *port);
    snprintf(id, sizeof id, "--server-id=%u", number);
    snprintf(bind, sizeof bind, "--bind-address=%s", number == 1 ? primary_address : "127.0.0.1");
    return server_start(options);
}

static void enter(int ns)
{
    assert_int_equal(setns(ns, CLONE_NEWNET), 0);
}

static void start_pair(void)
{
    MYSQL *sql;

    if (ns_primary >= 0)
        enter(ns_primary);
    primary = start_at(1, &port_primary);
    if (ns_primary >= 0)
        enter(ns_here);
    sql = server_connect(primary);
    database_run(sql, "CREATE USER replica@'%%'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'%%'");
    mysql_close(sql);
    copy = start_at(2, &port_copy);
    sql = server_connect(copy);
    database_run(sql,
                 "CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE; SET GLOBAL read_only = 1",
                 primary_address, port_primary);
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

/* The service's account, at these hosts. */
/* The line of settings that a host beyond this machine needs, or "". */
static char authority[600];

static const char *file_of(const char *hosts, const char *settings)
{
    char *path = database_option_file_at(f.db, "/nowhere", settings);
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nuser=plain\npassword=plain\nhost=%s\n%s", hosts, authority);
    fclose(file);
    assert_true(path_count < sizeof paths / sizeof paths[0]);
    paths[path_count++] = path;
    return path;
}

static const char *both(void)
{
    static char hosts[64];

    snprintf(hosts, sizeof hosts, "%s:%u, 127.0.0.1:%u", primary_address, port_primary, port_copy);
    return hosts;
}

/* The last warning of a client's log. */
static char warned[1024];

static void keep_warning(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level != TL_INFO && line->level != TL_DEBUG)
        snprintf(warned, sizeof warned, "%s", line->message);
}

static tl_status try_open_with(const char *option_file, unsigned flags, tl_client **out)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;

    *out = NULL;
    options.config_file = option_file;
    options.flags = TL_CLIENT_NO_JANITOR | flags;
    return tl_client_open(out, &options);
}

static tl_status try_open(const char *option_file, tl_client **out)
{
    return try_open_with(option_file, 0, out);
}

static tl_client *open_at(const char *option_file)
{
    tl_client *client;
    tl_status status = try_open(option_file, &client);

    if (status != TL_OK)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
    return client;
}

static void open_pair(void)
{
    ops = NULL;
    start_pair();
    f.db = database_new(primary, BEATING);
    database_note_server(f.db);
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
}

static void close_pair(void)
{
    assert_log_whole(&f);
    tl_client_close(ops);
    tl_client_close(f.client);
    f.client = NULL;
    mysql_close(sql_copy);
    mysql_close(f.sql);
    f.sql = NULL;
    while (path_count > 0) {
        remove(paths[--path_count]);
        free(paths[path_count]);
    }
    database_free(f.db);
    memset(&f, 0, sizeof f);
    ops = NULL;
    server_free(copy);
    server_free(primary);
}

static void promote(void)
{
    database_run(sql_copy, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static void accept_copy(void)
{
    if (ops == NULL) {
        paths[path_count] = database_option_file_at(f.db, server_socket(copy), BEATING);
        ops = open_at(paths[path_count++]);
    }
    database_propose(sql_copy);
    assert_status(tl_restore_accept(ops, "bob", "nothing is missing", NULL), TL_OK);
}

/* How many connections of the service there are, without those that only look around. */
static int64_t connections_at(MYSQL *sql)
{
    return database_number(sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                "WHERE USER = 'plain'");
}

static void await_connections_at(MYSQL *sql, int64_t most)
{
    AWAIT_WHILE(connections_at(sql) > most);
}

static void await_restored(MYSQL *sql)
{
    AWAIT_WHILE(database_number(sql, "SELECT tl_restored()") == 0);
}

static void expect_refused(const char *hosts, tl_status expected, const char *part)
{
    tl_client *client;
    const char *path = file_of(hosts, BEATING);
    tl_status status = try_open(path, &client);

    if (status != expected || strstr(tl_error_message(), part) == NULL)
        fail_msg("host = %s: %s: %s", hosts, tl_status_name(status), tl_error_message());
    assert_null(client);
}

/* ---------------------------------------------------------------------------- bad input -- */

/* No network is asked: each name has its answer here, for libmariadb too. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
                struct addrinfo **found)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    if (name != NULL && strcmp(name, "aways.example") == 0)
        return EAI_AGAIN;
    if (name != NULL && strcmp(name, "fails.example") == 0)
        return EAI_FAIL;
    if (name != NULL && strcmp(name, "gone.example") == 0)
        return EAI_NONAME;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, wanted, found);
}

/* Whoever asks for names is away for the moment: the others answer, and the log says so.  That a
 * name does not exist is a mistake in the settings. */
TEST(late_names_that_are_not_known)
{
    static const char *const passing[] = {"aways.example", "fails.example"};
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    char list[256];

    open_pair();
    snprintf(list, sizeof list, "gone.example, 127.0.0.1:%u", port_primary);
    expect_refused(list, TL_BAD_CONFIG, "no host of the name 'gone.example' is known");
    expect_refused("gone.example:3307", TL_SERVER_UNSAFE, "ssl-ca");
    snprintf(authority, sizeof authority, "ssl-ca=%s/LICENSE\n", test_source_dir());
    expect_refused("gone.example:3307", TL_UNREACHABLE, "gone.example");
    for (int i = 0; i < 2; i++) {
        char serial[16];
        tl_client *client = NULL;

        snprintf(list, sizeof list, "%s, 127.0.0.1:%u", passing[i], port_primary);
        options.config_file = file_of(list, BEATING);
        options.log = keep_warning;
        warned[0] = '\0';
        if (tl_client_open(&client, &options) != TL_OK)
            fail_msg("%s: %s", passing[i], tl_error_message());
        assert_non_null(strstr(warned, passing[i]));
        snprintf(serial, sizeof serial, "s%d", i);
        assert_status(ask_now(client, serial), TL_GRANTED);
        tl_client_close(client);
    }
    expect_refused("aways.example, fails.example", TL_UNREACHABLE, "s.example");
    authority[0] = '\0';
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"),
                     0);
    close_pair();
}

TEST(test_lists_that_cannot_be_used)
{
    char list[256];

    open_pair();
    expect_refused("127.0.0.1:1,,127.0.0.1:2", TL_BAD_CONFIG, "an item of the list is empty");
    expect_refused("127.0.0.1:1,", TL_BAD_CONFIG, "an item of the list is empty");
    expect_refused(":3307", TL_BAD_CONFIG, "an item of the list is empty");
    expect_refused("127.0.0.1:0", TL_BAD_CONFIG, "'0' is not a port");
    expect_refused("127.0.0.1:x, 127.0.0.1:2", TL_BAD_CONFIG, "'x' is not a port");
    expect_refused("127.0.0.1:65536", TL_BAD_CONFIG, "'65536' is not a port");
    expect_refused("[::1:3306", TL_BAD_CONFIG, "ends with ]");
    expect_refused("[db]:3306", TL_BAD_CONFIG, "'db' is not an IPv6 address");
    expect_refused("127.0.0.1:9, localhost, 127.0.0.1:9", TL_BAD_CONFIG, "stands there twice");
    expect_refused("Localhost, localhost", TL_BAD_CONFIG, "stands there twice");
    expect_refused("a,b,c,d,e,f,g,h,i", TL_BAD_CONFIG, "at most 8 hosts");
    snprintf(list, sizeof list, "127.0.0.1:%u, no_such_host!", port_primary);
    expect_refused(list, TL_BAD_CONFIG, "no host of the name 'no_such_host!' is known");
    /* "127.1" is not loopback by its name. */
    snprintf(list, sizeof list, "127.0.0.1:%u, 127.1:%u", port_primary, port_copy);
    expect_refused(list, TL_SERVER_UNSAFE, "127.1:");
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_session"), 0);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"),
                     0);
    close_pair();
}

/* As whoever runs `tradelock migrate` there. */
static void migrate_at(server *where)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    char *path = database_option_file_at(f.db, server_socket(where), BEATING);
    tl_client *client = NULL;
    tl_migrated migrated;

    options.config_file = path;
    options.flags = TL_CLIENT_NO_SCHEMA | TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    assert_status(tl_migrate(client, &migrated), TL_OK);
    tl_client_close(client);
    remove(path);
    free(path);
}

/* Another installation is not even told of a restore. */
TEST(test_hosts_that_do_not_belong)
{
    unsigned port;
    server *other = start_at(3, &port);
    MYSQL *sql = server_connect(other);
    char first[128], last[128];

    open_pair();
    database_run(sql,
                 "CREATE USER plain@'%%' IDENTIFIED BY 'plain'; GRANT ALL ON *.* TO plain@'%%'");
    snprintf(first, sizeof first, "127.0.0.1:%u, 127.0.0.1:%u", port, port_primary);
    snprintf(last, sizeof last, "127.0.0.1:%u, 127.0.0.1:%u", port_primary, port);
    expect_refused(last, TL_NO_SCHEMA, "there is no such database");
    database_run(sql, "CREATE DATABASE %s; USE %s", database_name(f.db), database_name(f.db));
    expect_refused(last, TL_NO_SCHEMA, "has no tradelock schema");
    migrate_at(other);
    expect_refused(last, TL_BAD_CONFIG, "another installation");
    expect_refused(first, TL_BAD_CONFIG, "another installation");
    assert_int_equal(database_number(sql, "SELECT tl_restored()"), 0);
    assert_int_equal(database_number(sql, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"),
                     0);
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 0);
    database_run(sql, "UPDATE tl_schema SET identity = NULL");
    expect_refused(last, TL_NO_SCHEMA, "not on record which server");
    mysql_close(sql);
    server_free(other);
    close_pair();
}

/* A schema that was not migrated, and a server that would forget commits once it is promoted. */
TEST(test_hosts_that_are_not_ready)
{
    char list[64];

    open_pair();
    database_run(sql_copy,
                 "SET SESSION sql_log_bin = 0; UPDATE tl_schema SET version = version - 1");
    /* Version 1 is the first: before it there was none. */
    expect_refused(both(), TL_NO_SCHEMA, "run `tradelock migrate`");
    database_run(sql_copy,
                 "UPDATE tl_schema SET version = version + 1; SET GLOBAL sync_binlog = 0");
    expect_refused(both(), TL_SERVER_UNSAFE, "sync_binlog is 0");
    database_run(sql_copy, "SET GLOBAL sync_binlog = 1");
    f.client = open_at(file_of(both(), BEATING));
    await_grant(f.client, "s1");
    tl_client_close(f.client);
    /* One host with a port is no list. */
    snprintf(list, sizeof list, "127.0.0.1:%u", port_primary);
    database_run(f.sql, "UPDATE tl_schema SET identity = NULL");
    f.client = open_at(file_of(list, BEATING));
    await_grant(f.client, "s2");
    snprintf(list, sizeof list, "127.0.0.1:%u", port_copy);
    expect_refused(list, TL_READ_ONLY, "read-only");
    close_pair();
}

/* ------------------------------------------------------------------------------ a failover -- */

/* The order of the list says nothing; a replica is neither written to nor kept. */
TEST(test_the_replica_stands_first)
{
    char list[128];

    open_pair();
    snprintf(list, sizeof list, "127.0.0.1:%u, 127.0.0.1:%u", port_copy, port_primary);
    f.client = open_at(file_of(list, BEATING));
    for (int i = 0; i < 20; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "s%d", i);
        assert_status(ask_now(f.client, serial), TL_GRANTED);
    }
    await_connections_at(sql_copy, 1); /* the one that looks around */
    close_pair();
}

/* By sockets too; and the tools' own way to a schema, which asks no accepted server, takes no
 * replica either. */
TEST(test_sockets_in_a_list)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_migrated migrated;
    tl_client *client = NULL;
    char list[256];

    open_pair();
    snprintf(list, sizeof list, "%s, %s", server_socket(copy), server_socket(primary));
    f.client = open_at(file_of(list, BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    assert_true(has_row(f.sql, "s1"));
    database_run(f.sql, "GRANT ALL ON *.* TO plain@localhost");
    await_copy();
    options.config_file = file_of(list, BEATING);
    options.flags = TL_CLIENT_NO_SCHEMA | TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    assert_status(tl_migrate(client, &migrated), TL_OK);
    tl_client_close(client);
    close_pair();
}

/* Killed, promoted and accepted: the process goes there by itself. */
TEST(test_the_primary_dies)
{
    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    server_kill9(primary);
    assert_int_not_equal(ask_now(f.client, "s2"), TL_GRANTED);
    promote();
    assert_int_not_equal(ask_now(f.client, "s3"), TL_GRANTED);
    await_finding(f.client, "one writer", TL_FINDING_UNSAFE, "none", "none was accepted");
    accept_copy();
    await_grant(f.client, "s4");
    assert_true(has_row(sql_copy, "s4"));
    expect_finding(f.client, "one writer", TL_FINDING_OK, "this server", "was accepted");
    /* It comes back, believes in itself, and is named first. */
    server_restart(primary);
    mysql_close(f.sql);
    f.sql = database_connect(f.db);
    for (int i = 0; i < 20; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "t%d", i);
        assert_status(ask_now(f.client, serial), TL_GRANTED);
        assert_true(has_row(sql_copy, serial));
        usleep(20 * 1000);
    }
    tl_client_close(f.client);
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "u1"), TL_GRANTED);
    assert_true(has_row(sql_copy, "u1"));
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 1);
    close_pair();
}

/* Its heartbeat, or a connection of the pool, has not yet come to the other server. */
static int is_moving(tl_status status)
{
    return status == TL_UNREACHABLE || status == TL_SESSION_LOST;
}

static int64_t beat_at(MYSQL *sql)
{
    return database_number(sql, "SELECT beat FROM tl_session WHERE session_id = '%s'",
                           tl_client_session(f.client));
}

/* The service cannot look at the copy, until further beats were confirmed at the old primary. */
static void accept_unseen(void)
{
    int64_t beat;

    database_run(sql_copy, "ALTER USER plain@'%%' ACCOUNT LOCK; ALTER USER plain@localhost ACCOUNT "
                           "LOCK; KILL USER plain@'%%'; KILL USER plain@localhost");
    accept_copy();
    beat = beat_at(f.sql);
    AWAIT_WHILE(beat_at(f.sql) < beat + 3);
    database_run(sql_copy,
                 "ALTER USER plain@'%%' ACCOUNT UNLOCK; ALTER USER plain@localhost ACCOUNT UNLOCK");
}

/* The old primary lives on and answers every beat: what was accepted elsewhere is heard of all the
 * same, within a beat and by all connections. */
TEST(test_the_primary_is_replaced_alive)
{
    tl_status status = TL_UNREACHABLE;
    int64_t begun_ms;

    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    promote();
    usleep(500 * 1000);
    /* Promoted is not accepted: nobody goes there, and nothing is written there. */
    assert_status(ask_now(f.client, "s2"), TL_GRANTED);
    assert_true(has_row(f.sql, "s2"));
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"), 0);
    accept_unseen();
    begun_ms = crew_now_ms();
    await_connections_at(f.sql, 1);
    print_message("the old primary was left %lld ms after the new one could be seen\n",
                  (long long)(crew_now_ms() - begun_ms));
    /* Beats were confirmed there meanwhile, and s2 was granted: the new one lacks both, whatever
     * was said when it was accepted. */
    await_restored(sql_copy);
    for (int i = 0; i < PATIENCE_MS / 10 && is_moving(status); i++) {
        status = ask_now(f.client, "s3");
        usleep(10 * 1000);
    }
    assert_status(status, TL_ASK_CHANNEL);
    accept_copy();
    await_grant(f.client, "s4");
    assert_true(has_row(sql_copy, "s4"));
    assert_false(has_row(f.sql, "s4"));
    close_pair();
}

/* A planned one: the old primary is made read-only first. */
TEST(test_a_planned_switch_over)
{
    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    database_run(f.sql, "SET GLOBAL read_only = 1");
    assert_status(ask_now(f.client, "s2"), TL_READ_ONLY);
    await_finding(f.client, "one writer", TL_FINDING_UNSAFE, "none", "is read-only");
    await_copy();
    promote();
    accept_copy();
    await_grant(f.client, "s3");
    assert_true(has_row(sql_copy, "s3"));
    close_pair();
}

/* Both were accepted, neither after the other: nobody knows, and nothing is granted. */
TEST(test_two_that_take_writes)
{
    tl_status status = TL_GRANTED;
    char serial[16];
    tl_client *client;

    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    database_run(sql_copy, "STOP SLAVE; RESET SLAVE ALL");
    /* Two copies of one primary, promoted and accepted under one number. */
    database_run(f.sql, "UPDATE tl_schema SET restore_no = 1, accepted_no = 1, "
                        "accepted_at = UTC_TIMESTAMP(6)");
    database_run(sql_copy, "CALL tl_restore_found(0, 'promoted'); "
                           "UPDATE tl_schema SET identity = tl_identity(), accepted_no = 1, "
                           "accepted_at = UTC_TIMESTAMP(6); "
                           "SET GLOBAL read_only = 0");
    for (int i = 0; i < PATIENCE_MS / 10 && status == TL_GRANTED; i++) {
        snprintf(serial, sizeof serial, "t%d", i);
        status = ask_now(f.client, serial);
        usleep(10 * 1000);
    }
    assert_status(ask_now(f.client, "s3"), TL_SERVER_UNSAFE);
    assert_non_null(strstr(tl_error_message(), "neither was accepted after"));
    expect_finding(f.client, "one writer", TL_FINDING_UNSAFE, "two",
                   "nothing is granted on either");
    assert_false(has_row(f.sql, "s3") || has_row(sql_copy, "s3"));
    assert_status(try_open(file_of(both(), BEATING), &client), TL_OK);
    {
        tl_lock_options options = sync_options("x");

        crew_sleep_ms(500); /* beats of its own prove nothing */
        tl_lock_free(ask(client, "s4", "c1", &options, &status));
        assert_status(status, TL_ASK_CHANNEL); /* it reads what was written down there */
    }
    tl_client_close(client);
    assert_int_equal(
        database_number(sql_copy, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"), 2);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"),
                     1);
    /* One of them steps back: what others may have been granted there is not here. */
    database_run(sql_copy, "SET GLOBAL read_only = 1");
    crew_sleep_ms(500);
    assert_status(ask_now(f.client, "s5"), TL_SERVER_UNSAFE);
    assert_false(has_row(f.sql, "s5"));
    ops = client_new(&f, TL_CLIENT_NO_SESSION);
    database_propose(f.sql);
    assert_status(tl_restore_accept(ops, "bob", "the other one stepped back", NULL), TL_OK);
    await_grant(f.client, "s6");
    assert_true(has_row(f.sql, "s6"));
    close_pair();
}

/* ------------------------------------------------------------- without a session -- */

static tl_status file_success(tl_client *client, const char *serial)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION};

    evidence.key = (tl_key){serial, "c1", "WITHDRAW"};
    evidence.outcome = "SUCCEEDED";
    evidence.channel_ref = "ref-1";
    evidence.source = "a web-hook";
    return tl_evidence_add(client, &evidence);
}

static int64_t evidence_at(MYSQL *sql, const char *serial)
{
    return database_number(sql, "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s'",
                           serial);
}

/* No heartbeat makes rounds for it.  The old primary still answers it, and what is filed there
 * nobody would see. */
TEST(late_a_client_without_a_session)
{
    tl_client *files;

    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    assert_status(ask_now(f.client, "s2"), TL_GRANTED);
    tl_client_close(f.client); /* nobody else is there who could tell the old primary */
    f.client = NULL;
    assert_status(try_open_with(file_of(both(), BEATING), TL_CLIENT_NO_SESSION, &files), TL_OK);
    assert_status(file_success(files, "s1"), TL_OK);
    assert_int_equal(evidence_at(f.sql, "s1"), 1);
    await_copy();
    promote();
    accept_copy();
    crew_sleep_ms(200); /* two beats */
    assert_status(file_success(files, "s2"), TL_OK);
    assert_int_equal(evidence_at(f.sql, "s2"), 0);
    assert_int_equal(evidence_at(sql_copy, "s2"), 1);
    await_connections_at(f.sql, 0);
    /* Threads share one look. */
    for (int i = 0; i < 5; i++) {
        assert_status(file_success(files, "s1"), TL_OK);
        crew_sleep_ms(150);
    }
    assert_int_equal(evidence_at(f.sql, "s1"), 1);
    tl_client_close(files);
    close_pair();
}

/* A host that takes connections and says nothing is waited for for 10 s, a look for 1 s. */
#define PATIENT "beat_ms=1s\nsession_ms=6s\nread_timeout_s=2\nconnect_timeout_s=20\n"
#define LONG_MS 5000
#define MOMENT_MS 500
#define READERS 4

static struct {
    tl_client *client;
    atomic_int is_over, waited; /* one reader waited for long; how many did */
    atomic_int held_up;         /* how many reads took longer than a moment */
} reading;

static int take_no_operation(void *context, const char *op_code)
{
    (void)context;
    (void)op_code;
    return 0;
}

static void *read_on(void *unused)
{
    for (; !atomic_load(&reading.is_over); usleep(5000)) {
        const int64_t begun_ms = crew_now_ms();

        CREW_STATUS(tl_operations(reading.client, take_no_operation, NULL), TL_OK);
        if (crew_now_ms() - begun_ms > MOMENT_MS)
            atomic_fetch_add(&reading.held_up, 1);
        if (crew_now_ms() - begun_ms > LONG_MS) {
            atomic_fetch_add(&reading.waited, 1);
            atomic_store(&reading.is_over, 1);
        }
    }
    return unused;
}

/* Of the threads of a client without a session one looks whether a dead host has come back.  The
 * others go on meanwhile.  They wait once when it falls silent, and once when it is connected to
 * first; not in each beat for as long as that takes. */
TEST(late_one_looks_at_a_dead_host)
{
    pthread_t readers[READERS];

    open_pair();
    assert_status(try_open_with(file_of(both(), PATIENT), TL_CLIENT_NO_SESSION, &reading.client),
                  TL_OK);
    server_freeze(copy);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_on, NULL), 0);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    server_thaw(copy);
    assert_int_equal(atomic_load(&reading.waited), 1);
    print_message("%d reads were held up\n", atomic_load(&reading.held_up));
    assert_true(atomic_load(&reading.held_up) <= 3 * READERS);
    tl_client_close(reading.client);
    close_pair();
}

/* ------------------------------------------------------------------ who begins later -- */

/* Sessions of 18 s: silence counts after 6 s. */
#define SLOWLY "beat_ms=100ms\nsession_ms=18s\nread_timeout_s=6\nconnect_timeout_s=4\n"

/* The accepted host is slow just when a process begins, and the old primary comes back that nobody
 * has told.  A running process knows better, and tells it as soon as the accepted one is silent. */
TEST(late_the_accepted_host_is_slow)
{
    tl_client *late;
    tl_status status;

    open_pair();
    f.client = open_at(file_of(both(), SLOWLY));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    server_kill9(primary);
    promote();
    accept_copy();
    await_grant(f.client, "s2");
    assert_true(has_row(sql_copy, "s2"));
    server_freeze(copy);
    server_restart(primary);
    mysql_close(f.sql);
    f.sql = database_connect(f.db);
    status = try_open(file_of(both(), SLOWLY), &late);
    if (status == TL_OK)
        assert_int_not_equal(ask_now(late, "s2"), TL_GRANTED);
    assert_false(has_row(f.sql, "s2"));
    assert_int_equal(database_number(f.sql, "SELECT tl_restored()"), 1);
    server_thaw(copy);
    if (late == NULL)
        late = open_at(file_of(both(), SLOWLY));
    await_grant(late, "s3");
    assert_true(has_row(sql_copy, "s3"));
    tl_client_close(late);
    close_pair();
}

/* A dead host keeps nobody from starting: what it costs is a moment. */
TEST(late_a_dead_host_stops_no_start)
{
    int64_t begun_ms;

    open_pair();
    server_kill9(copy);
    begun_ms = crew_now_ms();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    print_message("a client began after %lld ms beside a dead host\n",
                  (long long)(crew_now_ms() - begun_ms));
    assert_true(crew_now_ms() - begun_ms < 6000);
    server_restart(copy);
    mysql_close(sql_copy);
    sql_copy = server_connect(copy);
    close_pair();
}

/* Whoever meets two rivals writes it down at both: one of them is away when another process
 * begins. */
TEST(late_a_rival_that_is_away)
{
    tl_client *late;
    tl_lock_options options = sync_options("x");
    tl_status status;

    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    database_run(sql_copy, "STOP SLAVE; RESET SLAVE ALL");
    database_run(f.sql, "UPDATE tl_schema SET restore_no = 1, accepted_no = 1, "
                        "accepted_at = UTC_TIMESTAMP(6)");
    database_run(sql_copy, "UPDATE tl_schema SET identity = tl_identity(), restore_no = 1, "
                           "accepted_no = 1, accepted_at = UTC_TIMESTAMP(6); "
                           "SET GLOBAL read_only = 0");
    await_restored(f.sql);
    await_restored(sql_copy);
    assert_status(ask_now(f.client, "s2"), TL_SERVER_UNSAFE);
    tl_client_close(f.client);
    server_kill9(copy);
    f.client = open_at(file_of(both(), BEATING));
    late = f.client;
    tl_lock_free(ask(late, "s2", "c1", &options, &status));
    assert_status(status, TL_ASK_CHANNEL);
    assert_false(has_row(f.sql, "s2"));
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'"),
                     1);
    /* Two people accept the one that is left. */
    ops = client_new(&f, TL_CLIENT_NO_SESSION);
    database_propose(f.sql);
    assert_status(tl_restore_accept(ops, "bob", "the other one is gone", NULL), TL_OK);
    await_grant(late, "s3");
    assert_true(has_row(f.sql, "s3"));
    server_restart(copy);
    mysql_close(sql_copy);
    sql_copy = server_connect(copy);
    close_pair();
}

/* ----------------------------------------------------------------- a killed statement -- */

/* A statement that waited for long and is killed says nothing of its host. */
TEST(late_a_killed_statement)
{
    static const char *const ways[] = {"QUERY", "CONNECTION"};

    open_pair();
    database_run(f.sql, "CREATE TABLE waited (one INT PRIMARY KEY) ENGINE=InnoDB; "
                        "INSERT INTO waited VALUES (1)");
    f.client = open_at(file_of(both(), "beat_ms=100ms\nsession_ms=6s\nread_timeout_s=10\n"
                                       "connect_timeout_s=4\nbusiness_lock_wait_s=8\n"));
    for (int i = 0; i < 2; i++) {
        static const char wait[] = "UPDATE waited SET one = 2";
        db *quick = NULL, *waits = NULL;
        uint64_t quick_id;
        pid_t kills;

        assert_status(pool_get(f.client->connections, POOL_QUICK, 1000, &quick), TL_OK);
        quick_id = db_thread_id(quick);
        pool_put(f.client->connections, quick);
        assert_status(pool_get(f.client->connections, POOL_BUSINESS, 1000, &waits), TL_OK);
        database_run(f.sql, "START TRANSACTION; SELECT * FROM waited FOR UPDATE");
        kills = fork();
        if (kills == 0) {
            char command[128];

            crew_sleep_ms(3000); /* longer than silence may be */
            snprintf(command, sizeof command, "KILL %s %llu", ways[i],
                     (unsigned long long)db_thread_id(waits));
            MYSQL *sql = server_connect(primary);
            database_run(sql, "%s", command);
            _exit(0);
        }
        assert_int_not_equal(db_run_text(waits, "wait", wait, sizeof wait - 1, NULL), DB_DONE);
        (void)db_undo(waits);
        pool_put(f.client->connections, waits);
        waitpid(kills, NULL, 0);
        database_run(f.sql, "ROLLBACK");
        /* Its connections are used still.  The round after a beat may have that one just now, so
         * whoever comes may get another. */
        crew_sleep_ms(500);
        assert_int_equal(database_number(f.sql,
                                         "SELECT COUNT(*) FROM information_schema.processlist "
                                         "WHERE id = %llu",
                                         (unsigned long long)quick_id),
                         1);
    }
    database_run(f.sql, "DROP TABLE waited");
    close_pair();
}

/* ---------------------------------------------------------------------- a silent host -- */

/* The system takes connections for a process that stands still, so that its host swallows all that
 * is sent. */
TEST(test_a_host_that_swallows)
{
    char list[128];
    int64_t begun_ms, opened_ms, took_ms;

    open_pair();
    snprintf(list, sizeof list, "127.0.0.1:%u, 127.0.0.1:%u", port_copy, port_primary);
    server_freeze(copy);
    begun_ms = crew_now_ms();
    f.client = open_at(file_of(list, BEATING));
    opened_ms = crew_now_ms();
    for (int i = 0; i < 10; i++) {
        char serial[16];

        snprintf(serial, sizeof serial, "s%d", i);
        assert_status(ask_now(f.client, serial), TL_GRANTED);
        database_kill(f.sql, "USER = 'plain' LIMIT 1");
    }
    took_ms = crew_now_ms() - opened_ms;
    print_message("a host that swallows everything cost %lld ms at the start, and %lld ms of ten "
                  "asks\n",
                  (long long)(opened_ms - begun_ms), (long long)took_ms);
    /* Of 4 s it has a half; it was asked when the client opened, and not for each connection. */
    assert_true(took_ms < 4000);
    server_thaw(copy);
    close_pair();
}

/* The one in use falls silent while it is written to; another one was accepted. */
TEST(test_the_primary_falls_silent)
{
    int64_t begun_ms;

    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    server_freeze(primary);
    begun_ms = crew_now_ms();
    promote();
    accept_copy();
    await_grant(f.client, "s2");
    print_message("granted again %lld ms after the primary fell silent, of which accepting is a "
                  "part; silence counts after 2 s\n",
                  (long long)(crew_now_ms() - begun_ms));
    assert_true(has_row(sql_copy, "s2"));
    server_thaw(primary);
    close_pair();
}

/* --------------------------------------------------------------------- a network cut -- */

static int ns_now(void)
{
    return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/* Two namespaces with a cable between them; 0 where the kernel refuses that. */
static int make_networks(int *outside)
{
    *outside = ns_now();
    if (*outside < 0 || crew_network() != 0)
        return 0;
    ns_here = ns_now();
    assert_int_equal(unshare(CLONE_NEWNET), 0);
    ns_primary = ns_now();
    crew_shell("ip link set lo up && ip link add there type veth peer name here && "
               "ip link set here netns /proc/%ld/fd/%d && "
               "ip addr add 10.77.0.2/24 dev there && ip link set there up",
               (long)getpid(), ns_here);
    enter(ns_here);
    crew_shell("ip link set lo up && ip addr add 10.77.0.1/24 dev here && ip link set here up");
    return 1;
}

static void leave_networks(int outside)
{
    enter(outside);
    close(ns_here);
    close(ns_primary);
    close(outside);
    ns_here = ns_primary = -1;
    primary_address = "127.0.0.1";
}

/* The far end of the cable is down: all that is sent there is lost, and nobody is told. */
TEST(test_the_network_is_cut)
{
    const char *settings = BEATING "allow_insecure=1\n";
    int outside = -1;
    int64_t begun_ms;

    if (!make_networks(&outside)) {
        print_message("skipped: needs network namespaces\n");
        close(outside);
        skip();
    }
    primary_address = "10.77.0.2";
    open_pair();
    f.client = open_at(file_of(both(), settings));
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_copy();
    enter(ns_primary);
    assert_int_equal(system("ip link set there down"), 0);
    enter(ns_here);
    begun_ms = crew_now_ms();
    promote();
    accept_copy();
    await_grant(f.client, "s2");
    print_message("granted again %lld ms after the network was cut; silence counts after 2 s\n",
                  (long long)(crew_now_ms() - begun_ms));
    assert_true(has_row(sql_copy, "s2"));
    /* Back, and believing in itself. */
    enter(ns_primary);
    assert_int_equal(system("ip link set there up"), 0);
    enter(ns_here);
    crew_sleep_ms(1000);
    assert_status(ask_now(f.client, "s3"), TL_GRANTED);
    assert_true(has_row(sql_copy, "s3"));
    close_pair();
    leave_networks(outside);
}

/* ------------------------------------------------------------------------- the doctor -- */

static void await_clients(int count)
{
    AWAIT_WHILE(database_counter(f.sql, "Rpl_semi_sync_master_clients") != count);
}

/* The copy, as it replicates: read-only first, and then it takes writes as well. */
static void expect_a_replica(void)
{
    tl_client *there;

    paths[path_count] = database_option_file_at(f.db, server_socket(copy), BEATING);
    assert_status(
        try_open_with(paths[path_count++], TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA, &there),
        TL_OK);
    expect_finding(there, "mode", TL_FINDING_OK, "a replica", "nothing is granted here");
    expect_finding(there, "read_only of a replica", -1, "", "");
    database_run(sql_copy, "SET GLOBAL read_only = 0");
    expect_finding(there, "read_only of a replica", TL_FINDING_WARNING, "OFF",
                   "set read_only until it is promoted");
    database_run(sql_copy, "SET GLOBAL read_only = 1");
    tl_client_close(there);
}

/* The copy answers one commit too late.  A beat of the service may have begun to wait for it before
 * the time was set, and then waits until somebody else gives up. */
static void expect_a_fall(tl_client *here)
{
    server_freeze(copy);
    database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_timeout = 200; "
                        "CREATE TABLE late (one INT) ENGINE=InnoDB");
    expect_finding(here, "mode", TL_FINDING_WARNING, "semi-synchronous, 1 replica",
                   "it has fallen back to asynchronous");
    database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_timeout = 86400000");
    server_thaw(copy);
    await_finding(here, "mode", TL_FINDING_WARNING, "semi-synchronous, 1 replica",
                  "it fell back to asynchronous 1 times");
}

TEST(test_the_doctor_names_the_mode)
{
    tl_client *here;

    open_pair();
    f.client = open_at(file_of(both(), BEATING));
    here = client_new(&f, TL_CLIENT_NO_SESSION);
    expect_finding(f.client, "one writer", TL_FINDING_OK, "this server", "was accepted");
    expect_finding(here, "one writer", -1, "", "");
    expect_finding(here, "mode", TL_FINDING_WARNING, "primary, 1 asynchronous replica",
                   "may lack what was paid last");
    expect_finding(here, "gtid_strict_mode", TL_FINDING_WARNING, "OFF", "set it to ON");
    expect_finding(here, "read_only at start", TL_FINDING_WARNING, "COMPILE-TIME", "option file");
    database_run(f.sql, "SET GLOBAL read_only = 1; SET GLOBAL read_only = 0; "
                        "SET GLOBAL gtid_strict_mode = 1; "
                        "SET GLOBAL rpl_semi_sync_master_timeout = 10000; "
                        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_COMMIT'; "
                        "SET GLOBAL rpl_semi_sync_master_wait_no_slave = 0; "
                        "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    expect_finding(here, "read_only at start", TL_FINDING_OK, "SQL", "");
    expect_finding(here, "gtid_strict_mode", TL_FINDING_OK, "ON", "");
    expect_finding(here, "mode", TL_FINDING_WARNING, "semi-synchronous, 0 replicas",
                   "what is paid now no replica has");
    expect_finding(here, "rpl_semi_sync_master_timeout", TL_FINDING_WARNING, "10000", "paid again");
    expect_finding(here, "rpl_semi_sync_master_wait_point", TL_FINDING_WARNING, "AFTER_COMMIT",
                   "AFTER_SYNC");
    expect_finding(here, "rpl_semi_sync_master_wait_no_slave", TL_FINDING_WARNING, "OFF",
                   "set it to ON");
    database_run(sql_copy, "STOP SLAVE; SET GLOBAL rpl_semi_sync_slave_enabled = 1; START SLAVE");
    await_clients(1);
    database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_timeout = 86400000; "
                        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'; "
                        "SET GLOBAL rpl_semi_sync_master_wait_no_slave = 1; FLUSH STATUS");
    expect_finding(here, "mode", TL_FINDING_OK, "semi-synchronous, 1 replica", "furthest");
    expect_finding(here, "rpl_semi_sync_master_timeout", TL_FINDING_OK, "86400000", "");
    expect_finding(here, "rpl_semi_sync_master_wait_point", TL_FINDING_OK, "AFTER_SYNC", "");
    expect_finding(here, "rpl_semi_sync_master_wait_no_slave", TL_FINDING_OK, "ON", "");
    expect_a_fall(here);
    expect_a_replica();
    await_copy();
    database_run(sql_copy, "STOP SLAVE");
    await_clients(0);
    expect_finding(here, "mode", TL_FINDING_WARNING, "semi-synchronous, 0 replicas",
                   "no replica is connected, so commits wait");
    tl_client_close(here);
    database_run(f.sql, "SET GLOBAL rpl_semi_sync_master_enabled = 0");
    database_run(f.sql, "SET GLOBAL read_only = 1");
    here = client_new(&f, TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA);
    expect_finding(here, "mode", TL_FINDING_OK, "read-only", "nothing is granted");
    database_run(f.sql, "SET GLOBAL read_only = 0");
    expect_finding(here, "mode", TL_FINDING_OK, "one server", "the channel must be asked");
    tl_client_close(here);
    close_pair();
}

/* One node: a component of its own. */
TEST(test_the_doctor_knows_galera)
{
    char base[64];
    const char *const options[] = {"--wsrep-on=1",
                                   "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
                                   "--wsrep-cluster-address=gcomm://",
                                   "--wsrep-node-address=127.0.0.1",
                                   "--binlog-format=ROW",
                                   "--innodb-autoinc-lock-mode=2",
                                   base,
                                   NULL};
    fixture galera = {.db = NULL};
    server *node;
    tl_client *client;
    MYSQL *sql;

    snprintf(base, sizeof base, "--wsrep-provider-options=base_port=%u", server_free_port());
    node = server_start(options);
    galera.db = database_new(node, BEATING);
    client = client_new(&galera, TL_CLIENT_NO_SESSION);
    expect_finding(client, "mode", TL_FINDING_WARNING, "Galera, 1 node, Primary, Synced",
                   "fewer than three");
    expect_finding(client, "wsrep_on", TL_FINDING_WARNING, "ON", "one and the same node");
    expect_finding(client, "wsrep_sync_wait", TL_FINDING_OK, "0", "waits by itself");
    sql = server_connect(node);
    database_run(sql, "SET GLOBAL wsrep_desync = 1");
    await_finding(client, "mode", TL_FINDING_UNSAFE, "Galera, 1 node, Primary, Donor/Desynced",
                  "not a synced part");
    database_run(sql, "SET GLOBAL wsrep_desync = 0");
    await_finding(client, "mode", TL_FINDING_WARNING, "Galera, 1 node, Primary, Synced",
                  "fewer than three");
    mysql_close(sql);
    tl_client_close(client);
    database_free(galera.db);
    server_free(node);
}

/* --late: who begins, or goes on, while not all is well. */
TEST_MAIN(hosts)
{
    if (argc > 1 && strcmp(argv[1], "--late") == 0)
        cmocka_set_test_filter("late_*");
    else
        cmocka_set_skip_filter("late_*");
    return tests_run(NULL, NULL);
}
