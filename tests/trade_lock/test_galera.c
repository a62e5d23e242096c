/* A Galera cluster of three nodes.  Its nodes share all rows, so also the word of which server was
 * accepted: that one grants, and a process at another node grants nothing and stops nobody.  The
 * names of connections (GET_LOCK) are of one node alone. */
#include "fixture.h"

#include "store/position.h"
#include "support/crew.h"
#include "support/galera.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>
#include <tradelock/lane.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define NODES 3
#define TIMES "beat_ms=100ms\nread_timeout_s=2\nconnect_timeout_s=4\n"
#define BEATING TIMES "session_ms=6s\n"
/* Of those that live on at the next writer, however slow the machine is. */
#define LASTING TIMES "session_ms=30s\n"

static fixture f; /* its client and sql are the first node's */
static struct node {
    server *server;
    char address[16];  /* its own, so that nobody else has its ports */
    char also[16];     /* a second one that it is bound to, or "" */
    char incoming[24]; /* where clients reach it, if it says so itself */
    MYSQL *sql;
} nodes[NODES];
static tl_client *ops;
static char *paths[32];
static size_t path_count;

/* ------------------------------------------------------------------------- the cluster -- */

/* first: it makes the cluster. */
static void join(struct node *n, const struct node *first)
{
    const galera_node node = {
        .id = 1 + (unsigned)(n - nodes),
        .address = n->address,
        .also = n->also[0] != '\0' ? n->also : NULL,
        .incoming = n->incoming[0] != '\0' ? n->incoming : NULL,
    };

    n->server = galera_join(n->server, &node, first->address);
}

/* What the node says of itself; while the nodes find out who is gone, a read that waits for them
 * may fail. */
static void await_status(MYSQL *sql, const char *name, const char *value)
{
    AWAIT_WHILE(database_number(sql,
                                "SET STATEMENT wsrep_sync_wait = 0 FOR "
                                "SELECT COUNT(*) FROM information_schema.GLOBAL_STATUS "
                                "WHERE VARIABLE_NAME = '%s' AND VARIABLE_VALUE = '%s'",
                                name, value) == 0);
}

static void start_nodes(void)
{
    galera_prepare();
    for (int i = 0; i < NODES; i++) {
        struct node *n = &nodes[i];

        snprintf(n->address, sizeof n->address, "127.%u.%u.%d", 1 + (unsigned)getpid() / 250 % 250,
                 (unsigned)getpid() % 250, i + 1);
        join(n, &nodes[0]);
        n->sql = server_connect(n->server);
        await_status(n->sql, "WSREP_LOCAL_STATE_COMMENT", "Synced");
    }
}

static const char *keep_path(char *path)
{
    assert_true(path_count < sizeof paths / sizeof paths[0]);
    return paths[path_count++] = path;
}

static const char *file_with(const char *hosts, const char *settings)
{
    char *path = database_option_file_at(f.db, "/nowhere", settings);
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nuser=plain\npassword=plain\nhost=%s\n", hosts);
    fclose(file);
    return keep_path(path);
}

static const char *file_of(const char *hosts)
{
    return file_with(hosts, BEATING);
}

static tl_client *open_with(const char *option_file, unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = option_file;
    options.flags = TL_CLIENT_NO_JANITOR | flags;
    if (tl_client_open(&client, &options) != TL_OK)
        fail_msg("%s", tl_error_message());
    return client;
}

/* Of one node, as a service has it whose settings know no other. */
static tl_client *open_at(int node)
{
    char host[64];

    snprintf(host, sizeof host, "%s:3306", nodes[node].address);
    return open_with(file_of(host), 0);
}

static void open_town(void)
{
    start_nodes();
    f.db = database_new(nodes[0].server, BEATING);
    database_note_server(f.db);
    f.sql = database_connect(f.db);
    database_run(f.sql,
                 "CREATE USER plain@'%%' IDENTIFIED BY 'plain'; "
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@'%%'",
                 database_name(f.db));
    for (int i = 0; i < NODES; i++) {
        database_run(nodes[i].sql, "SET SESSION wsrep_sync_wait = 15; USE %s", database_name(f.db));
        /* A read waits until the account is there. */
        assert_int_equal(
            database_number(nodes[i].sql,
                            "SELECT COUNT(*) FROM mysql.global_priv WHERE user = 'plain'"),
            1);
    }
}

static void close_town(void)
{
    MYSQL *first = f.sql;

    f.sql = nodes[1].sql; /* the first node may be gone */
    assert_log_whole(&f);
    f.sql = NULL;
    mysql_close(first);
    tl_client_close(ops);
    ops = NULL;
    tl_client_close(f.client);
    f.client = NULL;
    while (path_count > 0) {
        remove(paths[--path_count]);
        free(paths[path_count]);
    }
    database_forget(f.db);
    for (int i = NODES; i-- > 0;) {
        mysql_close(nodes[i].sql);
        server_free(nodes[i].server);
        nodes[i].server = NULL;
    }
    memset(&f, 0, sizeof f);
}

static void operate_at(int node)
{
    tl_client_close(ops);
    ops = open_with(
        keep_path(database_option_file_at(f.db, server_socket(nodes[node].server), BEATING)),
        TL_CLIENT_NO_SESSION);
}

/* As two operators at a node do, who know that it is the writer from now on. */
static void accept_node(int node)
{
    tl_status status;

    operate_at(node);
    assert_status(tl_restore_declare(ops, "ann", "another node writes now"), TL_OK);
    database_propose(nodes[node].sql);
    status = tl_restore_accept(ops, "bob", "the cluster lost nothing", NULL);
    if (status != TL_OK)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
}

/* The process has looked at its server in a round since now. */
static void await_rounds(tl_client *client)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    tl_stats stats = {.version = TL_STATS_VERSION};
    uint64_t wanted = 0;

    do {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
        assert_status(tl_client_stats(client, &stats), TL_OK);
        wanted = wanted == 0 ? stats.beats + 4 : wanted;
    } while (stats.beats < wanted);
    usleep(200 * 1000);
}

/* As a hook does when the writer has left the cluster. */
static void promote_node(int node)
{
    operate_at(node);
    assert_status(tl_promote(ops, 0, "hook", "the writer has left the cluster"), TL_OK);
}

static void await_proved(int node)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;

    while (database_number(nodes[node].sql, "SELECT tl_restored()") != 0) {
        if (crew_now_ms() > end_ms)
            fail_msg("node %d is not accepted: %s", node,
                     database_text(nodes[node].sql,
                                   "SELECT GROUP_CONCAT(CONCAT_WS(' ', x.program, x.ended_at, "
                                   "x.alive_until, a.attested_at, a.missing, a.kept, m.step) "
                                   "SEPARATOR '; ') FROM tl_attestation a "
                                   "LEFT JOIN tl_attestation_missing m USING (restore_no, "
                                   "session_id) LEFT JOIN tl_session x USING (session_id)"));
        usleep(10 * 1000);
    }
    assert_int_equal(database_number(nodes[node].sql, "SELECT COUNT(*) FROM tl_restore "
                                                      "WHERE step = 'confirmed'"),
                     0);
}

static const char *all_nodes(void)
{
    static char hosts[128];

    snprintf(hosts, sizeof hosts, "%s:3306, %s:3306, %s:3306", nodes[0].address, nodes[1].address,
             nodes[2].address);
    return file_with(hosts, LASTING);
}

static int64_t restores_at(int node)
{
    return database_number(nodes[node].sql, "SELECT COUNT(*) FROM tl_restore WHERE step <> 'kept'");
}

static int refuse_all(void *context, const char *op_code)
{
    (void)context;
    (void)op_code;
    return 0;
}

/* ------------------------------------------------------------------------------- tests -- */

/* Services at three nodes by mistake: one of them is the writer, by the record that all share.
 * Whoever is at another node grants nothing, and does not stop the writer either. */
TEST(test_one_node_is_the_writer)
{
    tl_client *second, *reader;
    int64_t restores;

    open_town();
    f.client = open_at(0);
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    second = open_at(1);
    assert_status(ask_now(second, "s2"), TL_ASK_CHANNEL);
    assert_int_not_equal(ask_now(second, "s1"), TL_GRANTED);
    reader = open_with(paths[path_count - 1], TL_CLIENT_NO_SESSION);
    assert_status(tl_operations(reader, refuse_all, NULL), TL_OK);
    crew_sleep_ms(500); /* some beats, and a look with each */
    assert_int_equal(restores_at(0), 0);
    assert_status(ask_now(f.client, "s3"), TL_GRANTED);
    assert_false(has_row(f.sql, "s2"));
    /* The second node is made the writer.  The first one grants nothing from then on. */
    accept_node(1);
    restores = restores_at(1);
    await_grant(second, "s4");
    crew_sleep_ms(500);
    assert_status(ask_now(f.client, "s5"), TL_ASK_CHANNEL);
    assert_false(has_row(nodes[1].sql, "s5"));
    assert_int_equal(restores_at(1), restores);
    assert_status(ask_now(second, "s6"), TL_GRANTED);
    /* What was in process when the writer changed is in doubt, and granted to nobody. */
    assert_int_not_equal(ask_now(second, "s1"), TL_GRANTED);
    assert_int_equal(database_number(nodes[1].sql, "SELECT tl_restored()"), 0);
    assert_int_equal(database_number(nodes[0].sql, "SELECT tl_restored()"), 1);
    tl_client_close(reader);
    tl_client_close(second);
    close_town();
}

/* The writer falls silent in the middle of a step, and dies.  The other nodes have all that it
 * acknowledged, and know none of the names of its connections.  Its list leads the process to
 * another node, which is not the writer before it is accepted; nothing is written down meanwhile.
 * Then the lost step is settled there, without waiting for anybody. */
TEST(test_the_writer_dies)
{
    tl_lock_options options = sync_options("x");
    char hosts[128];
    tl_status status = TL_UNKNOWN;
    int64_t begun_ms;
    tl_lock *lock;

    open_town();
    snprintf(hosts, sizeof hosts, "%s:3306, %s:3306, %s:3306", nodes[0].address, nodes[1].address,
             nodes[2].address);
    f.client = open_with(file_of(hosts), 0);
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    assert_true(has_row(f.sql, "s1"));
    lock = lock_new(f.client, "lost", "c1", &options);
    server_freeze(nodes[0].server);
    status = tl_lock_ask(lock, 0);
    assert_true(status == TL_UNKNOWN || status == TL_UNREACHABLE);
    server_kill9(nodes[0].server);
    await_status(nodes[1].sql, "WSREP_CLUSTER_SIZE", "2");
    crew_sleep_ms(1000);
    assert_int_not_equal(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_int_not_equal(ask_now(f.client, "s2"), TL_GRANTED);
    assert_int_equal(restores_at(1), 0);
    accept_node(1);
    begun_ms = crew_now_ms();
    while ((status = tl_lock_ask(lock, 0)) != TL_GRANTED && crew_now_ms() < begun_ms + PATIENCE_MS)
        usleep(10 * 1000);
    assert_status(status, TL_GRANTED);
    print_message("granted %lld ms after the next writer was accepted\n",
                  (long long)(crew_now_ms() - begun_ms));
    assert_int_equal(database_number(nodes[1].sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                   "serial_no = 'lost' AND lane = 'S'"),
                     1);
    tl_lock_free(lock);
    await_grant(f.client, "s3");
    assert_true(has_row(nodes[2].sql, "s3"));
    assert_int_equal(database_number(nodes[1].sql, "SELECT tl_restored()"), 0);
    close_town();
}

/* The writer is killed; the others are one cluster still.  Whatever it had answered they have, so
 * the promoted node is accepted without a person, and who holds a lock keeps it. */
TEST(test_promoted_by_itself)
{
    tl_lock_options options = sync_options("x");
    int64_t since_ms;
    tl_client *second;
    char session[64];
    tl_lock *lock;

    open_town();
    f.client = open_with(all_nodes(), 0);
    second = open_with(all_nodes(), 0);
    lock = granted(f.client, "held", "c1", &options);
    assert_status(ask_now(second, "s1"), TL_GRANTED);
    await_rounds(f.client);
    await_rounds(second);
    /* They have known the other nodes for longer than they wait for a promotion. */
    crew_sleep_ms(6000);
    snprintf(session, sizeof session, "%s", tl_client_session(f.client));
    server_kill9(nodes[0].server);
    since_ms = crew_now_ms();
    await_status(nodes[1].sql, "WSREP_CLUSTER_SIZE", "2");
    assert_int_not_equal(ask_now(f.client, "early"), TL_GRANTED);
    promote_node(1);
    await_proved(1);
    await_grant(f.client, "s2");
    print_message("killed, promoted and granted again after %lld ms, without a person\n",
                  (long long)(crew_now_ms() - since_ms));
    await_grant(second, "s3");
    assert_string_equal(tl_client_session(f.client), session);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_true(has_row(nodes[2].sql, "s2"));
    tl_lock_free(lock);
    tl_client_close(second);
    close_town();
}

/* Nobody promotes a node for so long that sessions are lost, and begun anew at the first node of the
 * list that is left; then another one is promoted.  What was told at the first one, where nothing was
 * granted, says nothing of what the old writer kept. */
TEST(test_promoted_late)
{
    tl_lock_options options = sync_options("x");
    int64_t end_ms;
    char before[64];
    tl_lock *lock;

    open_town();
    f.client = open_with(all_nodes(), 0);
    lock = granted(f.client, "held", "c1", &options);
    await_rounds(f.client);
    snprintf(before, sizeof before, "%s", tl_client_session(f.client));
    server_kill9(nodes[0].server);
    end_ms = crew_now_ms() + PATIENCE_MS;
    while (strcmp(tl_client_session(f.client), before) == 0) {
        assert_true(crew_now_ms() < end_ms);
        usleep(10 * 1000);
    }
    await_rounds(f.client);
    promote_node(2);
    await_proved(2);
    await_grant(f.client, "s1");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_LOST);
    tl_lock_free(lock);
    close_town();
}

/* Both nodes live: the first one is to be stopped, and the writer moves before that. */
TEST(test_the_writer_moves)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock;

    open_town();
    f.client = open_with(all_nodes(), 0);
    lock = granted(f.client, "held", "c1", &options);
    await_rounds(f.client);
    promote_node(2);
    await_proved(2);
    await_grant(f.client, "s1");
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    assert_int_equal(database_number(nodes[0].sql, "SELECT tl_restored()"), 1);
    tl_lock_free(lock);
    close_town();
}

static int hear_nothing(void *context, const tl_finding *finding)
{
    (void)context;
    (void)finding;
    return 0;
}

/* A node that is not part of the primary component answers only what is read of itself, unless it is
 * told to answer all reads. */
static void expect_cut_off(int node)
{
    database_run(nodes[node].sql, "SET SESSION wsrep_sync_wait = 0");
    await_status(nodes[node].sql, "WSREP_CLUSTER_STATUS", "non-Primary");
    assert_status(tl_doctor(ops, hear_nothing, NULL), TL_READ_ONLY);
    assert_non_null(strstr(tl_error_message(), "not part of a working cluster"));
    database_run(nodes[node].sql, "SET GLOBAL wsrep_dirty_reads = 1");
    operate_at(node);
    expect_finding(ops, "mode", TL_FINDING_UNSAFE, "Galera, 1 node, non-Primary, Initialized",
                   "it may be cut off");
}

/* The cluster is made anew from a node that lacks what the others had answered: a person decides. */
TEST(test_a_node_that_was_behind)
{
    open_town();
    f.client = open_with(all_nodes(), 0);
    await_rounds(f.client);
    server_kill9(nodes[2].server);
    await_status(nodes[1].sql, "WSREP_CLUSTER_SIZE", "2");
    assert_status(ask_now(f.client, "s1"), TL_GRANTED);
    await_rounds(f.client);
    operate_at(1);
    server_kill9(nodes[0].server);
    expect_cut_off(1);
    server_kill9(nodes[1].server);
    mysql_close(nodes[2].sql);
    join(&nodes[2], &nodes[2]);
    nodes[2].sql = server_connect(nodes[2].server);
    database_run(nodes[2].sql, "USE %s", database_name(f.db));
    assert_false(has_row(nodes[2].sql, "s1"));
    promote_node(2);
    while (database_number(nodes[2].sql, "SELECT COUNT(*) FROM tl_attestation "
                                         "WHERE attested_at IS NOT NULL AND missing > 0") == 0)
        usleep(20 * 1000);
    crew_sleep_ms(500);
    assert_int_equal(database_number(nodes[2].sql, "SELECT tl_restored()"), 1);
    assert_int_not_equal(ask_now(f.client, "s2"), TL_GRANTED);
    mysql_close(nodes[1].sql);
    nodes[1].sql = server_connect(nodes[2].server);
    database_run(nodes[1].sql, "USE %s", database_name(f.db));
    close_town();
}

/* The writer dies, another node is promoted, and the old one comes back alone, writable, and without
 * what was done since.  Then it is made anew, and has all again: it is promoted like any other. */
TEST(test_a_zombie_is_made_anew)
{
    char at[40];
    const char *const alone[] = {
        "--wsrep-on=0", "--skip-networking=0", "--port=3306", "--server-id=1", at, NULL};

    open_town();
    f.client = open_with(all_nodes(), 0);
    await_rounds(f.client);
    crew_sleep_ms(6000);
    server_kill9(nodes[0].server);
    await_status(nodes[1].sql, "WSREP_CLUSTER_SIZE", "2");
    promote_node(1);
    await_proved(1);
    await_grant(f.client, "s1");
    snprintf(at, sizeof at, "--bind-address=%s", nodes[0].address);
    server_restart_with(nodes[0].server, alone);
    await_rounds(f.client);
    assert_status(ask_now(f.client, "s2"), TL_GRANTED);
    server_kill9(nodes[0].server);
    galera_forget(nodes[0].server);
    join(&nodes[0], &nodes[1]);
    mysql_close(nodes[0].sql);
    nodes[0].sql = server_connect(nodes[0].server);
    database_run(nodes[0].sql, "USE %s", database_name(f.db));
    await_status(nodes[0].sql, "WSREP_LOCAL_STATE_COMMENT", "Synced");
    assert_true(has_row(nodes[0].sql, "s2"));
    await_rounds(f.client);
    server_kill9(nodes[1].server);
    await_status(nodes[0].sql, "WSREP_CLUSTER_SIZE", "2");
    promote_node(0);
    await_proved(0);
    await_grant(f.client, "s3");
    mysql_close(nodes[1].sql);
    nodes[1].sql = server_connect(nodes[0].server);
    database_run(nodes[1].sql, "USE %s", database_name(f.db));
    close_town();
}

/* What the node itself says. */
static int keeps(int node)
{
    db_options options = {
        .option_file = database_option_file_at(f.db, server_socket(nodes[node].server), BEATING),
        .group = "tradelock-client",
        .connect_timeout_s = 10,
        .read_timeout_s = 10};
    db *connection = NULL;
    store_kept kept;

    keep_path((char *)options.option_file);
    assert_status(db_open(&connection, &options), TL_OK);
    assert_int_equal(store_attest_kept(connection, &kept), DB_DONE);
    assert_string_not_equal(kept.cluster, "");
    db_close(connection);
    return kept.kept;
}

static pid_t start_arbitrator(void)
{
    char program[512], members[64], options[160];
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(program, sizeof program, "%s/tools/dev/uninstalled", test_source_dir());
    snprintf(members, sizeof members, "gcomm://%s:4567", nodes[0].address);
    snprintf(options, sizeof options,
             "base_port=4567;gmcast.listen_addr=tcp://127.%u.%u.%d:4567;base_host=127.%u.%u.%d",
             1 + (unsigned)getppid() / 250 % 250, (unsigned)getppid() % 250, NODES + 1,
             1 + (unsigned)getppid() / 250 % 250, (unsigned)getppid() % 250, NODES + 1);
    if (chdir(server_dir(nodes[0].server)) != 0) /* it leaves a file */
        _exit(127);
    execl(program, program, "garbd", "--address", members, "--group", "my_wsrep_cluster",
          "--options", options, "--log", "/dev/null", (char *)NULL);
    _exit(127);
}

static void stop_node(int node)
{
    mysql_close(nodes[node].sql);
    server_stop(nodes[node].server);
    nodes[node].sql = server_connect(nodes[0].server);
    database_run(nodes[node].sql, "USE %s", database_name(f.db));
}

static tl_status count_up(void *context, MYSQL *connection)
{
    (void)context;
    if (mysql_query(connection, "UPDATE counted SET n = n + 1") == 0)
        return TL_OK;
    return mysql_errno(connection) == 1213 || mysql_errno(connection) == 1205 ? TL_TRY_AGAIN
                                                                              : TL_CALLBACK_FAILED;
}

static struct {
    atomic_int ends;
    int64_t done;
} other;

/* Somebody's job at another node, which changes the same row. */
static void *count_elsewhere(void *argument)
{
    MYSQL *sql = argument;

    while (!atomic_load(&other.ends)) {
        other.done += mysql_query(sql, "UPDATE counted SET n = n + 1") == 0;
        usleep(1000);
    }
    return NULL;
}

/* What another node changed at the same time fails at the commit (1213), or before; the step is
 * done again with its business rows, and counts once. */
TEST(test_certification_fails)
{
    enum { STEPS = 100 };
    tl_lock_options options = sync_options("x");
    long long conflicts;
    pthread_t thread;

    open_town();
    database_run(f.sql, "CREATE TABLE counted (one INT PRIMARY KEY, n BIGINT) ENGINE=InnoDB; "
                        "INSERT INTO counted VALUES (1, 0)");
    f.client = open_at(0);
    assert_int_equal(pthread_create(&thread, NULL, count_elsewhere, nodes[1].sql), 0);
    for (int i = 0; i < STEPS; i++) {
        char serial[16];
        tl_status status;
        tl_lock *lock;

        snprintf(serial, sizeof serial, "s%d", i);
        lock = lock_new(f.client, serial, "c1", &options);
        status = tl_lock_ask_with(lock, count_up, NULL, 0);
        if (status != TL_GRANTED)
            fail_msg("%s: %s", tl_status_name(status), tl_error_message());
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
    atomic_store(&other.ends, 1);
    pthread_join(thread, NULL);
    conflicts = database_counter(f.sql, "Wsrep_local_cert_failures") +
                database_counter(f.sql, "Wsrep_local_bf_aborts");
    print_message("%d steps and %lld changes at another node, %lld conflicts\n", STEPS,
                  (long long)other.done, conflicts);
    assert_true(conflicts > 0);
    assert_int_equal(database_number(nodes[2].sql, "SELECT n FROM counted"), STEPS + other.done);
    assert_int_equal(database_number(nodes[2].sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                   "lane = 'S' AND status = 'Y'"),
                     STEPS);
    close_town();
}

static long long aborted(void)
{
    return database_counter(nodes[0].sql, "Wsrep_local_bf_aborts");
}

/* The transaction that accepts has written its half, and waits for the row of a trade.  Each change
 * of the schema's row that comes from another node aborts it then. */
static void accept_or_change(void *context, int number)
{
    const int64_t end_ms = crew_now_ms() + PATIENCE_MS;
    MYSQL *holder = context;
    long long before;

    if (number == 0) {
        CREW_STATUS(tl_restore_accept(ops, "bob", "the cluster lost nothing", NULL), TL_OK);
        return;
    }
    before = aborted();
    do {
        CREW_CHECK(crew_now_ms() < end_ms);
        while (database_transactions(nodes[0].sql, "LOCK WAIT", "1") == 0)
            CREW_CHECK(crew_now_ms() < end_ms);
        database_run(nodes[1].sql, "UPDATE tl_schema SET shard = HEX(RANDOM_BYTES(8))");
        crew_sleep_ms(100);
    } while (aborted() == before);
    database_run(holder, "ROLLBACK");
}

/* Another node changes at the same time what accepting changes: it is done again, once. */
TEST(test_accepting_is_aborted)
{
    tl_lock_options options = sync_options("x");
    tl_stats before = {.version = TL_STATS_VERSION}, after = {.version = TL_STATS_VERSION};
    MYSQL *holder;

    open_town();
    f.client = open_at(0);
    tl_lock_free(granted(f.client, "held", "c1", &options));
    operate_at(0);
    assert_status(tl_restore_declare(ops, "ann", "to be looked at"), TL_OK);
    database_propose(nodes[0].sql);
    holder = database_connect(f.db);
    database_run(holder, "BEGIN; SELECT rev FROM trade_lock WHERE serial_no = 'held' FOR UPDATE");
    assert_status(tl_client_stats(ops, &before), TL_OK);
    crew_threads(2, accept_or_change, holder);
    assert_status(tl_client_stats(ops, &after), TL_OK);
    assert_true(after.repeats > before.repeats);
    assert_int_equal(database_number(nodes[2].sql, "SELECT COUNT(*) FROM tl_restore "
                                                   "WHERE step = 'confirmed'"),
                     1);
    assert_int_equal(database_number(nodes[0].sql, "SELECT tl_restored()"), 0);
    mysql_close(holder);
    await_grant(f.client, "s1");
    close_town();
}

/* An arbitrator votes, and has no row: with one node beside it nothing is kept when that is lost. */
TEST(test_an_arbitrator_keeps_nothing)
{
    pid_t arbitrator;

    open_town();
    assert_true(keeps(0));
    operate_at(0);
    expect_finding(ops, "mode", TL_FINDING_OK, "Galera, 3 nodes, Primary, Synced",
                   "is on every node of the component");
    arbitrator = start_arbitrator();
    await_status(f.sql, "WSREP_CLUSTER_SIZE", "4");
    assert_true(keeps(0));
    stop_node(2);
    await_status(f.sql, "WSREP_CLUSTER_SIZE", "3");
    assert_true(keeps(0));
    expect_finding(ops, "mode", TL_FINDING_OK, "Galera, 3 nodes, Primary, Synced",
                   "is on every node of the component");
    stop_node(1);
    await_status(f.sql, "WSREP_CLUSTER_SIZE", "2");
    assert_false(keeps(0));
    expect_finding(ops, "mode", TL_FINDING_WARNING, "Galera, 2 nodes, Primary, Synced",
                   "the only one that keeps rows");
    assert_int_equal(kill(arbitrator, SIGTERM), 0);
    assert_int_equal(waitpid(arbitrator, NULL, 0), arbitrator);
    await_status(f.sql, "WSREP_CLUSTER_SIZE", "1");
    assert_false(keeps(0));
    close_town();
}

/* A node that is bound to two addresses gives both to the others as they stand in its settings, with
 * the comma between them.  They do not count as two nodes. */
TEST(test_two_addresses_are_one_node)
{
    snprintf(nodes[0].also, sizeof nodes[0].also, "127.%u.%u.%d",
             1 + (unsigned)getpid() / 250 % 250, (unsigned)getpid() % 250, NODES + 2);
    open_town();
    operate_at(0);
    stop_node(2);
    await_status(f.sql, "WSREP_CLUSTER_SIZE", "2");
    assert_false(keeps(0));
    expect_finding(ops, "mode", TL_FINDING_WARNING, "Galera, 2 nodes, Primary, Synced",
                   "set wsrep_node_incoming_address");
    stop_node(1);
    await_status(f.sql, "WSREP_CLUSTER_SIZE", "1");
    assert_false(keeps(0));
    expect_finding(ops, "mode", TL_FINDING_WARNING, "Galera, 1 node, Primary, Synced",
                   "set wsrep_node_incoming_address");
    /* As the doctor says. */
    snprintf(nodes[0].incoming, sizeof nodes[0].incoming, "%s:3306", nodes[0].address);
    server_stop(nodes[0].server);
    join(&nodes[0], &nodes[0]);
    for (int i = 0; i < NODES; i++) {
        mysql_close(nodes[i].sql);
        nodes[i].sql = server_connect(nodes[0].server);
        database_run(nodes[i].sql, "USE %s", database_name(f.db));
    }
    await_status(nodes[0].sql, "WSREP_LOCAL_STATE_COMMENT", "Synced");
    assert_false(keeps(0));
    operate_at(0);
    expect_finding(ops, "mode", TL_FINDING_WARNING, "Galera, 1 node, Primary, Synced",
                   "fewer than three");
    close_town();
    nodes[0].also[0] = nodes[0].incoming[0] = '\0';
}

TESTS_OF(galera, NULL, NULL)
