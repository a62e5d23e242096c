/*
 * A payment house whose settings name two hosts, a primary and a replica that has all that was
 * acknowledged (semi-synchronous, AFTER_SYNC, no fall-back), or one host that is HAProxy before
 * them.  The primary is killed, falls silent, or is replaced as planned, under load and with a
 * channel that goes wrong; the replica is promoted and accepted.  The ledger of the channel decides
 * at the end: nobody paid twice, the books are equal, nothing is stuck.
 */
#include "crowd.h"

#include "support/haproxy.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>
#include <stdatomic.h>

#define LIMIT_MS 600000

enum way {
    WAY_KILLED,  /* kill -9, and the replica is promoted */
    WAY_SILENT,  /* it stands still: its host takes connections and swallows what is sent */
    WAY_PLANNED, /* read-only first */
    WAY_ZOMBIE,  /* killed, and back when the other one was accepted */
    WAY_HAPROXY  /* killed, and HAProxy is told where the writer is */
};

static server *primary, *replica;
static unsigned port_primary, port_replica;
static MYSQL *sql_replica;
static haproxy *proxy;

/* ------------------------------------------------------------------- the two servers -- */

static server *start_at(unsigned number, unsigned *port, const char *role)
{
    char at[64], id[64];
    const char *const options[] = {"--log-bin=binlog",
                                   "--sync-binlog=1",
                                   "--log-slave-updates=1",
                                   "--gtid-strict-mode=1",
                                   "--skip-networking=0",
                                   "--bind-address=127.0.0.1",
                                   "--rpl-semi-sync-master-timeout=3600000",
                                   "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                                   role,
                                   at,
                                   id,
                                   NULL};

    *port = server_free_port();
    snprintf(at, sizeof at, "--port=%u", *port);
    snprintf(id, sizeof id, "--server-id=%u", number);
    return server_start(options);
}

static void start_pair(void)
{
    MYSQL *sql;

    primary = start_at(1, &port_primary, "--rpl-semi-sync-slave-enabled=0");
    sql = server_connect(primary);
    database_run(sql, "CREATE USER replica@'127.0.0.1'; "
                      "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'; "
                      "CREATE USER plain@'127.0.0.1' IDENTIFIED BY 'plain'");
    mysql_close(sql);
    replica = start_at(2, &port_replica, "--rpl-semi-sync-slave-enabled=1");
    sql_replica = server_connect(replica);
    database_run(sql_replica,
                 "RESET MASTER; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %u, "
                 "MASTER_SSL = 0, MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos; "
                 "START SLAVE; SET GLOBAL read_only = 1",
                 port_primary);
}

/* Not before the schema is there: it waits for the replica from then on. */
static void wait_for_replica(town *t)
{
    char command[1024];

    /* A list needs the server's name on record, and the town's schema was made without. */
    snprintf(command, sizeof command, "%s/bin/tradelock migrate --config %s >/dev/null",
             test_build_dir(), database_option_file(t->db));
    assert_int_equal(system(command), 0);
    database_run(t->sql,
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO "
                 "plain@'127.0.0.1'; SET GLOBAL rpl_semi_sync_master_enabled = 1",
                 database_name(t->db));
    AWAIT_WHILE(database_counter(t->sql, "Rpl_semi_sync_master_clients") != 1);
}

/* All that it has is applied. */
static void promote(void)
{
    char *has;

    database_run(sql_replica, "STOP SLAVE IO_THREAD");
    has = database_replication(sql_replica, "Gtid_IO_Pos");
    assert_non_null(has);
    assert_int_equal(
        database_number(sql_replica, "SELECT MASTER_GTID_WAIT('%s', %d)", has, PATIENCE_MS / 1000),
        0);
    free(has);
    database_run(sql_replica, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static tl_client *open_at(const char *path)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = path;
    options.flags = TL_CLIENT_NO_SESSION;
    if (tl_client_open(&client, &options) != TL_OK)
        fail_msg("%s", tl_error_message());
    return client;
}

/* Two people, who know that nothing is missing. */
static void accept_replica(town *t)
{
    char *path = database_option_file_at(t->db, server_socket(replica), TOWN_SETTINGS);
    tl_client *ops = open_at(path);

    database_run(sql_replica, "USE %s", database_name(t->db));
    database_propose(sql_replica);
    if (tl_restore_accept(ops, "bob", "semi-synchronous, and all is applied", NULL) != TL_OK)
        fail_msg("%s", tl_error_message());
    tl_client_close(ops);
    remove(path);
    free(path);
    /* From here on the town looks there. */
    mysql_close(t->sql);
    t->sql = server_connect(replica);
    database_run(t->sql, "USE %s", database_name(t->db));
}

/* ------------------------------------------------------------------------ the payments -- */

/* The longest time without a payment, seen from the channel. */
static struct {
    town *of;
    atomic_int ends;
    int64_t longest_ms, last_ms;
    int64_t seen;
} gap;

static void *watch(void *argument)
{
    (void)argument;
    gap.last_ms = now_ms();
    while (!atomic_load(&gap.ends)) {
        int64_t payments = sim_stat(&gap.of->sim, "payments");

        if (payments > gap.seen) {
            gap.seen = payments;
            gap.last_ms = now_ms();
        } else if (now_ms() - gap.last_ms > gap.longest_ms) {
            gap.longest_ms = now_ms() - gap.last_ms;
        }
        usleep(50000);
    }
    return NULL;
}

static void load_for(crowd *self, unsigned ms)
{
    int64_t end_ms = now_ms() + ms;

    while (now_ms() < end_ms) {
        crowd_look_after(self, 1);
        usleep(50000);
    }
}

/* Nobody has spoken against the new primary since. */
static void assert_accepted(void)
{
    if (database_number(sql_replica, "SELECT tl_restored()") == 0)
        return;
    fail_msg("%s", database_text(sql_replica,
                                 "SELECT GROUP_CONCAT(CONCAT_WS(' ', restore_no, step, reason, "
                                 "account, decided_at) ORDER BY restore_no SEPARATOR '; ') "
                                 "FROM tl_restore"));
}

/* Until trades have begun at the new primary, beside those that there were; on a quick machine all
 * begin before the other one is back. */
static void await_begun(crowd *self, long long before)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS;

    while (crowd_begun(self) <= before) {
        load_for(self, 50);
        if (now_ms() > end_ms)
            fail_msg("no trade begins any more");
    }
}

static void lead_to(char *path, const char *line)
{
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nuser=plain\npassword=plain\n%s\n", line);
    fclose(file);
}

static void name_hosts(town *t, enum way way)
{
    char line[128];

    if (way == WAY_HAPROXY)
        snprintf(line, sizeof line, "host=127.0.0.1\nport=%u\nprotocol=tcp", haproxy_port(proxy));
    else
        snprintf(line, sizeof line, "host=127.0.0.1:%u, 127.0.0.1:%u", port_primary, port_replica);
    lead_to(t->service_config, line);
    lead_to(t->worker_config, line);
}

static void lose_primary(crowd *self, enum way way)
{
    town *t = &self->town;

    switch (way) {
    case WAY_SILENT:
        server_freeze(primary);
        break;
    case WAY_PLANNED:
        database_run(t->sql, "SET GLOBAL read_only = 1");
        load_for(self, 500);
        break;
    case WAY_KILLED:
    case WAY_ZOMBIE:
    case WAY_HAPROXY:
        server_kill9(primary);
        break;
    }
}

/* The books are compared with what stands at the new primary. */
static void look_there(town *t)
{
    FILE *file = fopen(database_option_file(t->db), "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nsocket=%s\n[client]\nsocket=%s\n", server_socket(replica),
            server_socket(replica));
    fclose(file);
}

static void run_way(const char *kind, enum way way, const char *words)
{
    crowd self = {.services = 2, .workers = 2, .threads = 8, .trades = 600, .faults = 0.1};
    const int64_t end_ms = now_ms() + LIMIT_MS;
    town_figures figures;
    pthread_t watching;
    long long before;

    start_pair();
    crowd_open_on(&self, kind, primary, "10m");
    wait_for_replica(&self.town);
    if (way == WAY_HAPROXY)
        proxy = haproxy_start(port_primary, port_replica, 1);
    name_hosts(&self.town, way);
    crowd_start(&self);
    while (crowd_begun(&self) < 120) {
        load_for(&self, 20);
        assert_true(now_ms() < end_ms - LIMIT_MS + PATIENCE_MS);
    }
    memset(&gap, 0, sizeof gap);
    gap.of = &self.town;
    assert_int_equal(pthread_create(&watching, NULL, watch, NULL), 0);
    lose_primary(&self, way);
    promote();
    if (way == WAY_HAPROXY)
        haproxy_turn(proxy);
    load_for(&self, 500);
    accept_replica(&self.town);
    before = crowd_begun(&self);
    if (way == WAY_ZOMBIE) {
        load_for(&self, 1000);
        server_restart(primary);
    }
    if (way == WAY_SILENT) {
        load_for(&self, 3000);
        server_thaw(primary);
    }
    await_begun(&self, before);
    load_for(&self, 3000);
    atomic_store(&gap.ends, 1);
    pthread_join(watching, NULL);
    assert_accepted();
    crowd_end(&self);
    town_no_rules(&self.town);
    crowd_ask_all_again(&self);
    town_finish(&self.town, 300000);
    look_there(&self.town);
    if (town_check(&self.town, &figures) != 0 || sim_stat(&self.town.sim, "paid_twice") != 0)
        fail_msg("%s, %s: paid twice %lld", kind, words,
                 (long long)sim_stat(&self.town.sim, "paid_twice"));
    print_message("%s, the primary %s: %.1f s without payments, of which a person took 0.5 s; "
                  "%lld trades, %lld paid, %lld failed, %lld parked; paid twice 0, books equal\n",
                  kind, words, (double)gap.longest_ms / 1000, figures.trades, figures.paid,
                  figures.failed, figures.parked);
    assert_true(now_ms() < end_ms);
    haproxy_free(proxy);
    proxy = NULL;
    crowd_close(&self);
    mysql_close(sql_replica);
    server_free(replica);
}

TEST(is_killed)
{
    run_way("idempotent", WAY_KILLED, "killed");
}

TEST(falls_silent)
{
    run_way("plain", WAY_SILENT, "silent");
}

TEST(is_replaced)
{
    run_way("plain", WAY_PLANNED, "replaced as planned");
}

TEST(comes_back)
{
    run_way("window", WAY_ZOMBIE, "killed and back");
}

TEST(is_behind_haproxy)
{
    run_way("plain", WAY_HAPROXY, "killed behind HAProxy");
}

TESTS_OF(hosts, NULL, NULL)
