/*
 * A failover town: servers on machines of their own (network namespaces), services, workers and a
 * channel that goes wrong on another one.  The primary is killed, stands still, or is cut off in
 * either direction; the replica is promoted meanwhile, and the old primary comes back and takes
 * writes.  A town goes through several such events: after each the old primary is made anew as the
 * replica; a node of Galera joins again by itself, from its own data, or by a copy.  Where the primary waited
 * for its one replica, or a primary component of Galera is left, nobody is asked: that is asserted,
 * and so is that two people are asked everywhere else, who do what tools/RESTORE.md says.  The ledger of
 * the channel decides: nobody paid twice, nothing lost, no failure with money moved.
 *
 * TL_TOWN_SEED=N repeats a run's events.
 */
#include "clock/stepping.h"
#include "crash/crowd.h"
#include "nets.h"
#include "nodes.h"

#include "support/crew.h"
#include "support/galera.h"
#include "support/theme.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LIMIT_MS 600000
#define SKIPPED 77
#define SERVERS 3
#define AHEAD "+30s"

/* How a primary and its replica are tied together. */
enum tie {
    TIE_SEMI_SYNC, /* a commit is answered when the replica has it, however long that takes */
    TIE_ASYNC,     /* it is answered at once, whatever its two replicas have */
    TIE_TWO,       /* it is answered when one of two replicas has it, and nobody knows which */
    TIE_GALERA     /* three nodes, of which one is written to */
};

static const char *const ties[] = {"semi-sync", "asynchronous", "two replicas", "Galera"};

enum event {
    EVENT_KILLED,    /* kill -9 */
    EVENT_BACK,      /* the same, and it comes back writable once the other one was promoted */
    EVENT_CUT,       /* from everybody, both ways; promoted meanwhile, then it can be reached */
    EVENT_DEAF,      /* what is sent to it is lost, from everybody */
    EVENT_DUMB,      /* what it sends is lost, to everybody */
    EVENT_SPLIT,     /* from other servers alone: services go on reaching it */
    EVENT_SILENT,    /* it stands still, and goes on later */
    EVENT_BEHIND,    /* killed while the replica has not applied what it received */
    EVENT_FORGETS,   /* the same, and the replica throws away what it has not applied */
    EVENT_UNREACHED, /* killed, and promoted while nobody reaches the replica */
    EVENT_RESTARTED, /* all are killed, and begin anew as they were */
    EVENT_AHEAD,     /* killed, and the clock of the promoted one is ahead */
    EVENT_TWICE,     /* killed, and each of the two others is promoted */
    /* Of nodes alone: */
    EVENT_ZOMBIE, /* cut from the others; once one was promoted, a cluster of its own, and writable */
    EVENT_SIDES, /* killed, and the others, cut from each other, are a cluster and promoted each */
    EVENT_ANEW,  /* all are killed, and the one that was first makes the cluster anew */
    EVENTS
};

static const char *const names[EVENTS] = {"killed",
                                          "killed, back writable",
                                          "cut off",
                                          "deaf",
                                          "dumb",
                                          "cut from its replica",
                                          "stands still",
                                          "killed, replica behind",
                                          "killed, relay log thrown away",
                                          "killed, replica cut off",
                                          "all restarted",
                                          "killed, the other's clock is ahead",
                                          "both others promoted",
                                          "cut from the nodes, back writable",
                                          "promoted on both sides",
                                          "all killed, one behind begins"};

/* What a run of the fast suite takes of them; a long one takes them at random. */
static const enum event few_semi_sync[] = {EVENT_BACK, EVENT_CUT, EVENT_FORGETS};
static const enum event few_async[] = {EVENT_BACK};
static const enum event few_two[] = {EVENT_TWICE};
static const enum event few_galera[] = {EVENT_CUT, EVENT_ZOMBIE, EVENT_SIDES};

static struct machine {
    unsigned number;
    int is_dead;     /* a node of a cluster: killed */
    int is_strange;  /* a node: it has what the others have not */
    long long steps; /* a node that came back strange: how many it had on record */
    server *server;
    MYSQL *sql;
} machines[SERVERS];

typedef struct house {
    crowd crowd;
    enum tie tie;
    struct machine *primary, *replica, *third; /* third: NULL where there are two */
} house;

static struct {
    unsigned events, persons, towns;
    long long trades, paid, failed, parked, filed;
    int64_t longest_ms;
} sum;

/* ---------------------------------------------------------------------- the servers -- */

/* waits: a primary's commits wait for a replica from the start, also where there is none. */
static void start_at(struct machine *m, int waits, int read_only)
{
    char at[64], id[64];
    const char *const options[] = {"--log-bin=binlog",
                                   "--sync-binlog=1",
                                   "--binlog-format=ROW",
                                   "--log-slave-updates=1",
                                   "--gtid-strict-mode=1",
                                   "--skip-slave-start=1",
                                   "--skip-networking=0",
                                   "--port=3306",
                                   "--rpl-semi-sync-master-timeout=31536000000",
                                   "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
                                   "--rpl-semi-sync-slave-enabled=1",
                                   waits ? "--rpl-semi-sync-master-enabled=1"
                                         : "--rpl-semi-sync-master-enabled=0",
                                   read_only ? "--read-only=1" : "--read-only=0",
                                   at,
                                   id,
                                   NULL};

    snprintf(at, sizeof at, "--bind-address=%s", nets_address(m->number));
    snprintf(id, sizeof id, "--server-id=%u", m->number);
    nets_enter(m->number);
    if (m->server == NULL)
        m->server = server_start(options);
    else
        server_restart_with(m->server, options);
    nets_enter(NETS_HERE);
    if (m->sql != NULL)
        mysql_close(m->sql);
    m->sql = server_connect(m->server);
}

static void follow(const house *self, const struct machine *replica)
{
    database_run(
        replica->sql,
        "SET @pos = @@gtid_binlog_pos; RESET MASTER; SET GLOBAL gtid_slave_pos = @pos; "
        "CHANGE MASTER TO MASTER_HOST = '%s', MASTER_PORT = 3306, MASTER_USER = 'replica', "
        "MASTER_SSL = 0, MASTER_CONNECT_RETRY = 1, MASTER_USE_GTID = slave_pos; START SLAVE; "
        "SET GLOBAL read_only = 1",
        nets_address(self->primary->number));
}

static void await_gtid(MYSQL *sql, const char *gtid)
{
    if (database_number(sql, "SELECT MASTER_GTID_WAIT('%s', %d)", gtid, PATIENCE_MS / 1000) != 0) {
        char *why = database_replication(sql, "Last_SQL_Error"),
             *io = database_replication(sql, "Last_IO_Error");

        fail_msg("the replica does not apply %s: %s %s", gtid, why, io);
    }
}

/* From then on the primary waits for its replica, if it is to. */
static void tie(house *self)
{
    char *has = database_text(self->primary->sql, "SELECT @@gtid_binlog_pos");
    const long long count = self->third != NULL ? 2 : 1;

    await_gtid(self->replica->sql, has);
    if (self->third != NULL)
        await_gtid(self->third->sql, has);
    free(has);
    if (self->tie == TIE_ASYNC)
        return;
    database_run(self->primary->sql, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    AWAIT_WHILE(database_counter(self->primary->sql, "Rpl_semi_sync_master_clients") != count);
}

/* ------------------------------------------------------------------------ the nodes -- */

static void kill_node(struct machine *m)
{
    if (!m->is_dead)
        server_kill9(m->server);
    m->is_dead = 1;
}

/* From its own data, at the cluster that it finds there. */
static void join(struct machine *m, const struct machine *first)
{
    m->server = node_join(m->server, m->number, first->number);
    m->is_dead = 0;
    if (m->sql != NULL)
        mysql_close(m->sql);
    m->sql = server_connect(m->server);
}

static void await_nodes(unsigned count)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (!machines[i].is_dead)
            node_await(machines[i].sql, count, PATIENCE_MS);
}

static void start_nodes(void)
{
    for (unsigned i = 0; i < SERVERS; i++)
        join(&machines[i], &machines[0]);
    await_nodes(SERVERS);
}

static long long steps_at(house *self, const struct machine *m)
{
    return database_number(m->sql, "SELECT COUNT(*) FROM %s.trade_lock_log",
                           database_name(self->crowd.town.db));
}

/* Who lives comes back by itself, who was killed with its own data; who went another way than the
 * others is killed before it meets them, and has a copy.  Nobody had it do anything. */
static void make_nodes_whole(house *self)
{
    struct machine *others[] = {self->replica, self->third};

    for (unsigned i = 0; i < 2; i++)
        if (others[i]->is_strange) {
            if (!others[i]->is_dead)
                assert_int_equal(steps_at(self, others[i]), others[i]->steps);
            kill_node(others[i]);
        }
    nets_heal();
    for (unsigned i = 0; i < 2; i++) {
        if (others[i]->is_strange)
            galera_forget(others[i]->server);
        others[i]->is_strange = 0;
        if (others[i]->is_dead)
            join(others[i], self->primary);
    }
    await_nodes(SERVERS);
}

/* The one that was killed first makes the cluster, without what was done since. */
static void make_cluster_anew(house *self)
{
    kill_node(self->primary);
    kill_node(self->third);
    join(self->replica, self->replica);
    node_await(self->replica->sql, 1, PATIENCE_MS);
    self->primary->is_strange = self->third->is_strange = 1;
}

static void lose_nodes(const struct machine *m)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (&machines[i] != m) {
            nets_lose(m->number, machines[i].number);
            nets_lose(machines[i].number, m->number);
        }
}

/* A node without the others is told that it is the cluster. */
static void be_a_cluster(struct machine *m)
{
    AWAIT_WHILE(database_number(m->sql,
                                "SELECT COUNT(*) FROM information_schema.GLOBAL_STATUS WHERE "
                                "VARIABLE_NAME = 'WSREP_CLUSTER_STATUS' AND "
                                "VARIABLE_VALUE = 'non-Primary'") == 0);
    database_run(m->sql, "SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'");
    node_await(m->sql, 1, PATIENCE_MS);
}

/* --------------------------------------------------------------- the replicas anew -- */

/* A copy of the new primary, taken while that stands still. */
static void make_anew(const house *self, struct machine *replica)
{
    const char *from = server_dir(self->primary->server), *to = server_dir(replica->server);

    server_freeze(self->primary->server);
    crew_shell("rm -rf %s/data && cp -a --reflink=auto --sparse=always %s/data %s/data", to, from,
               to);
    server_thaw(self->primary->server);
    start_at(replica, 0, 1);
    follow(self, replica);
}

static void make_replicas_anew(house *self)
{
    if (self->tie == TIE_GALERA) {
        make_nodes_whole(self);
        return;
    }
    server_kill9(self->replica->server);
    if (self->third != NULL)
        server_kill9(self->third->server);
    nets_heal();
    make_anew(self, self->replica);
    if (self->third != NULL)
        make_anew(self, self->third);
    tie(self);
}

/* ------------------------------------------------------------------------ the house -- */

static const char *operator_file(house *self, const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s.cnf", self->crowd.town.dir, name);
    return path;
}

/* The people of the page, at that server. */
static void lead_operator(house *self, const char *name, struct machine *at)
{
    FILE *file = fopen(operator_file(self, name), "we");

    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    fprintf(file,
            "[tradelock-client]\nsocket=%s\nuser=%s\npassword=secret\ndatabase=%s\n"
            "[tradelock]\n" TOWN_SETTINGS,
            server_socket(at->server), name, database_name(self->crowd.town.db));
    fclose(file);
    /* What stands against others' work is repeated for as long as the settings say that come along. */
    crew_shell("sed -i 's/^commit_ms=.*/commit_ms=10s/; s/^max_hold_ms=.*/max_hold_ms=12s/' %s",
               operator_file(self, name));
}

static void make_operator(house *self, const char *name)
{
    const char *schema = database_name(self->crowd.town.db);

    database_run(self->primary->sql,
                 "CREATE USER %s@localhost IDENTIFIED BY 'secret'; "
                 "GRANT %s_operator TO %s@localhost; "
                 "SET DEFAULT ROLE %s_operator FOR %s@localhost",
                 name, schema, name, schema, name);
    lead_operator(self, name, self->primary);
}

static void name_hosts(const house *self, char *path)
{
    FILE *file = fopen(path, "ae");

    assert_non_null(file);
    fprintf(file,
            "[tradelock-client]\nuser=plain\npassword=plain\nhost=%s:3306, %s:3306%s%s\n"
            "[tradelock]\nallow_insecure=1\n",
            nets_address(1), nets_address(2), self->third != NULL ? ", " : "",
            self->third != NULL ? nets_address(3) : "");
    fclose(file);
    /* Whether the primary waits for its replica is seen once a beat, and believed for a session: long
     * enough for a machine that is busy.  One that outlasts Galera's search for who is there goes on
     * at the next writer. */
    crew_shell("sed -i 's/^session_ms=.*/session_ms=%us/; s/^max_hold_ms=.*/max_hold_ms=%us/' %s",
               self->tie == TIE_GALERA ? 15 : 5, self->tie == TIE_GALERA ? 16 : 6, path);
}

/* Where the test itself looks, and the books. */
static void look_at_primary(house *self)
{
    town *t = &self->crowd.town;
    const char *socket = server_socket(self->primary->server);
    FILE *file = fopen(database_option_file(t->db), "ae");

    assert_non_null(file);
    fprintf(file, "[tradelock-client]\nsocket=%s\n[client]\nsocket=%s\n", socket, socket);
    fclose(file);
    mysql_close(t->sql);
    t->sql = server_connect(self->primary->server);
    database_run(t->sql, "USE %s", database_name(t->db));
    lead_operator(self, "ann", self->primary);
    lead_operator(self, "bob", self->primary);
}

static void load_for(house *self, unsigned ms)
{
    const int64_t end_ms = now_ms() + ms;

    while (now_ms() < end_ms) {
        crowd_look_after(&self->crowd, 1);
        usleep(20000);
    }
}

static int64_t payments(house *self)
{
    return sim_stat(&self->crowd.town.sim, "payments");
}

/* Until money moves again. */
static void await_payments(house *self, int64_t more)
{
    const int64_t end_ms = now_ms() + PATIENCE_MS, before = payments(self);

    while (payments(self) < before + more) {
        load_for(self, 50);
        if (now_ms() > end_ms)
            fail_msg("nothing is paid any more");
    }
}

static void start_servers(house *self)
{
    for (unsigned i = 0; i < SERVERS; i++)
        machines[i] = (struct machine){.number = i + 1};
    self->primary = &machines[0];
    self->replica = &machines[1];
    self->third = self->tie == TIE_SEMI_SYNC ? NULL : &machines[2];
    if (self->tie == TIE_GALERA)
        start_nodes();
    for (unsigned i = 0; i < SERVERS && self->tie != TIE_GALERA; i++)
        if (i < 2 || self->third != NULL)
            start_at(&machines[i], 0, 0);
    database_run(self->primary->sql,
                 "CREATE USER replica@'%%'; GRANT REPLICATION SLAVE ON *.* TO replica@'%%'; "
                 "CREATE USER plain@'%%' IDENTIFIED BY 'plain'");
    for (unsigned i = 1; i < SERVERS && machines[i].server != NULL && self->tie != TIE_GALERA;
         i++) {
        database_run(machines[i].sql, "RESET MASTER");
        follow(self, &machines[i]);
    }
}

static void open_house(house *self, const char *kind, enum tie how, unsigned trades, uint64_t seed)
{
    memset(self, 0, sizeof *self);
    self->tie = how;
    self->crowd =
        (crowd){.services = 2, .workers = 2, .threads = 4, .trades = trades, .faults = 0.1};
    start_servers(self);
    crowd_open_on(&self->crowd, kind, self->primary->server, "10m");
    self->crowd.random = seed;
    crew_shell("%s/bin/tradelock migrate --grants --config %s >/dev/null", test_build_dir(),
               database_option_file(self->crowd.town.db));
    database_run(self->primary->sql,
                 "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON %s.* TO plain@'%%'",
                 database_name(self->crowd.town.db));
    make_operator(self, "ann");
    make_operator(self, "bob");
    name_hosts(self, self->crowd.town.service_config);
    name_hosts(self, self->crowd.town.worker_config);
    if (how != TIE_GALERA)
        tie(self);
    crowd_start(&self->crowd);
    await_payments(self, 20);
}

/* ---------------------------------------------------------------------- what happens -- */

/* The longest time without a payment, seen from the channel. */
static struct {
    town *of;
    atomic_int ends;
    int64_t longest_ms;
    pthread_t thread;
} gap;

static void *watch(void *argument)
{
    int64_t seen = sim_stat(&gap.of->sim, "payments"), last_ms = now_ms();

    (void)argument;
    while (!atomic_load(&gap.ends)) {
        int64_t now = sim_stat(&gap.of->sim, "payments");

        if (now > seen) {
            seen = now;
            last_ms = now_ms();
        } else if (now_ms() - last_ms > gap.longest_ms) {
            gap.longest_ms = now_ms() - last_ms;
        }
        usleep(20000);
    }
    return NULL;
}

static void begin_watch(house *self)
{
    memset(&gap, 0, sizeof gap);
    gap.of = &self->crowd.town;
    assert_int_equal(pthread_create(&gap.thread, NULL, watch, NULL), 0);
}

static void end_watch(void)
{
    atomic_store(&gap.ends, 1);
    pthread_join(gap.thread, NULL);
}

/* What is another thing with nodes of a cluster; 0 where it is not. */
static int lose_writer(house *self, enum event what)
{
    switch (what) {
    case EVENT_SPLIT:
    case EVENT_ZOMBIE:
        lose_nodes(self->primary);
        return 1;
    case EVENT_SIDES:
        lose_nodes(self->replica);
        kill_node(self->primary);
        be_a_cluster(self->replica);
        be_a_cluster(self->third);
        /* What was on its way when they were cut the one killed may have written, and not they. */
        self->primary->is_strange = self->third->is_strange = 1;
        return 1;
    case EVENT_ANEW:
        kill_node(self->replica);
        node_await(self->primary->sql, 2, PATIENCE_MS);
        await_payments(self, 20);
        return 1;
    case EVENT_UNREACHED:
        nets_lose(NETS_HERE, self->replica->number);
        nets_lose(self->replica->number, NETS_HERE);
        kill_node(self->primary);
        return 1;
    case EVENT_CUT:
    case EVENT_DEAF:
    case EVENT_DUMB:
    case EVENT_SILENT:
        return 0;
    default:
        kill_node(self->primary);
        return 1;
    }
}

static void lose_primary(house *self, enum event what)
{
    const unsigned number = self->primary->number;

    if (self->tie == TIE_GALERA && lose_writer(self, what))
        return;

    switch (what) {
    case EVENT_CUT:
        nets_cut(number);
        break;
    case EVENT_DEAF:
    case EVENT_DUMB:
        for (unsigned i = 0; i <= NETS_MACHINES; i++)
            if (i != number && what == EVENT_DEAF)
                nets_lose(i, number);
            else if (i != number)
                nets_lose(number, i);
        break;
    case EVENT_SPLIT:
        nets_lose(number, self->replica->number);
        nets_lose(self->replica->number, number);
        break;
    case EVENT_SILENT:
        server_freeze(self->primary->server);
        break;
    case EVENT_BEHIND:
    case EVENT_FORGETS:
        database_run(self->replica->sql, "STOP SLAVE SQL_THREAD");
        await_payments(self, 20);
        server_kill9(self->primary->server);
        break;
    case EVENT_UNREACHED:
        nets_cut(self->replica->number);
        server_kill9(self->primary->server);
        break;
    default:
        server_kill9(self->primary->server);
    }
}

/* As the page says: all that was received is applied; forgets: or thrown away. */
static void take_writes(const struct machine *replica, int forgets)
{
    MYSQL *sql = replica->sql;

    /* With both threads stopped the server would throw away what was not applied. */
    if (!forgets)
        database_run(sql, "START SLAVE SQL_THREAD");
    database_run(sql, "STOP SLAVE IO_THREAD");
    if (!forgets) {
        char *has = database_replication(sql, "Gtid_IO_Pos");

        assert_non_null(has);
        await_gtid(sql, has);
        free(has);
    }
    database_run(sql, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
}

static void lead(house *self, enum event what)
{
    struct machine *old = self->primary;

    if (what == EVENT_ANEW)
        make_cluster_anew(self);
    else if (self->tie == TIE_GALERA)
        node_await(self->replica->sql, what == EVENT_SIDES ? 1 : 2, PATIENCE_MS);
    else
        take_writes(self->replica, what == EVENT_FORGETS);
    self->primary = self->replica;
    self->replica = old;
    look_at_primary(self);
}

/* Whether it was accepted by itself within so long. */
static int promote(house *self, unsigned wait_s)
{
    const char *dir = self->crowd.town.dir;
    char command[1024];
    int code;

    snprintf(command, sizeof command,
             "%s/bin/tradelock promote --config %s --reason 'primary does not answer' "
             "--wait %us >%s/promote.log 2>&1",
             test_build_dir(), operator_file(self, "ann"), wait_s, dir);
    code = system(command);
    if (!WIFEXITED(code) || (WEXITSTATUS(code) != 0 && WEXITSTATUS(code) != 5)) {
        crew_shell("cat %s/promote.log", dir);
        fail_msg("promote: %x", code);
    }
    return WEXITSTATUS(code) == 0;
}

/* Two people, by the commands of the page. */
static void follow_the_page(house *self)
{
    town *t = &self->crowd.town;

    crew_shell("%s/bin/tradelock-simulator --export-csv %s >%s/statement.csv", test_build_dir(),
               t->sim.ledger, t->dir);
    crew_shell(
        "awk '/^```console/ { on = 1; next } /^```/ { on = 0 } "
        "on && /^[$>] / { print substr($0, 3) }' %s/tools/RESTORE.md | grep -v 'tradelock promote'"
        " >%s/page.sh && cd %s && export TRADELOCK_CONFIG=ann.cnf && "
        "PATH=%s/bin:$PATH timeout 300 bash -x page.sh >page.log 2>&1 || "
        "{ cat page.log; false; }",
        test_source_dir(), t->dir, t->dir, test_build_dir());
    if (database_number(t->sql, "SELECT tl_restored()") != 0) {
        crew_shell("cat %s/page.log", t->dir);
        fail_msg("the page was followed, and the server is not accepted");
    }
}

/* Nobody needs to be asked where the old primary answered nothing before the replica had it, and
 * the replica kept it. */
static int is_kept(const house *self, enum event what)
{
    return what == EVENT_RESTARTED || (self->tie == TIE_SEMI_SYNC && what != EVENT_FORGETS) ||
           (self->tie == TIE_GALERA && what != EVENT_TWICE && what != EVENT_SIDES &&
            what != EVENT_ANEW);
}

/* A node that makes a cluster of its own, and takes writes, while services reach it; until it is made
 * anew the others do not. */
static void node_comes_back(house *self, enum event what)
{
    struct machine *old = self->replica;

    if (what == EVENT_BACK) {
        lose_nodes(old);
        join(old, old);
        node_await(old->sql, 1, PATIENCE_MS);
    } else {
        be_a_cluster(old);
    }
    old->is_strange = 1;
    old->steps = steps_at(self, old);
    database_run(old->sql, "CREATE DATABASE written");
}

static void comes_back(house *self, enum event what)
{
    if (self->tie == TIE_GALERA && (what == EVENT_BACK || what == EVENT_ZOMBIE)) {
        node_comes_back(self, what);
        return;
    }
    if (what == EVENT_SILENT)
        server_thaw(self->replica->server);
    else if (what == EVENT_BACK)
        start_at(self->replica, 0, 0);
    nets_heal();
}

/* One after the other dies, the writer last.  Whose data reach furthest makes the cluster. */
static void restart_nodes(house *self)
{
    struct machine *all[] = {self->primary, self->replica, self->third}, *first = all[0];
    long long most = -1;

    kill_node(self->third);
    node_await(self->primary->sql, 2, PATIENCE_MS);
    await_payments(self, 20);
    kill_node(self->replica);
    kill_node(self->primary);
    for (unsigned i = 0; i < SERVERS; i++) {
        const long long position = node_position(all[i]->server);

        if (position > most) {
            first = all[i];
            most = position;
        }
    }
    assert_ptr_not_equal(first, self->third);
    join(first, first);
    for (unsigned i = 0; i < SERVERS; i++)
        if (all[i] != first)
            join(all[i], first);
    await_nodes(SERVERS);
}

static void restart_all(house *self)
{
    const int waits = self->tie != TIE_ASYNC;

    if (self->tie == TIE_GALERA) {
        restart_nodes(self);
        look_at_primary(self);
        return;
    }
    server_kill9(self->primary->server);
    server_kill9(self->replica->server);
    if (self->third != NULL)
        server_kill9(self->third->server);
    start_at(self->primary, waits, 0);
    start_at(self->replica, 0, 1);
    if (self->third != NULL)
        start_at(self->third, 0, 1);
    look_at_primary(self);
    database_run(self->replica->sql, "START SLAVE");
    if (self->third != NULL)
        database_run(self->third->sql, "START SLAVE");
    tie(self);
}

/* Another hook, for another server. */
static void promote_too(house *self, struct machine *other)
{
    lead_operator(self, "ann", other);
    assert_int_equal(promote(self, 2), 0);
    lead_operator(self, "ann", self->primary);
}

/* Some processes come to see the one promoted, and the others the other one. */
static void promote_nodes(house *self, int apart)
{
    const child *stopped[] = {&self->crowd.running[0], &self->crowd.running[self->crowd.services]};

    for (unsigned i = 0; i < 2; i++)
        child_signal(stopped[i], SIGSTOP);
    promote_too(self, self->third);
    assert_true(database_number(self->third->sql,
                                "SELECT COUNT(*) FROM %s.tl_attestation JOIN %s.tl_schema USING "
                                "(restore_no) WHERE attested_at IS NOT NULL",
                                database_name(self->crowd.town.db),
                                database_name(self->crowd.town.db)) > 0);
    if (apart) {
        nets_lose(NETS_HERE, self->third->number);
        nets_lose(self->third->number, NETS_HERE);
    }
    assert_int_equal(promote(self, 1), 0);
    for (unsigned i = 0; i < 2; i++)
        child_signal(stopped[i], SIGCONT);
}

/* Without a person unless one is needed, then with two; 1 when they were. */
static int fail_over(house *self, enum event what)
{
    const int kept = is_kept(self, what);
    int accepted;

    lose_primary(self, what);
    lead(self, what);
    if (what == EVENT_UNREACHED) {
        assert_int_equal(promote(self, 2), 0);
        nets_heal();
    }
    if (what == EVENT_SIDES || (what == EVENT_TWICE && self->tie == TIE_GALERA)) {
        promote_nodes(self, what == EVENT_SIDES);
    } else if (what == EVENT_TWICE) {
        take_writes(self->third, 0);
        promote_too(self, self->third);
    }
    accepted = promote(self, kept ? PATIENCE_MS / 1000 : 6);
    if (accepted != kept) {
        crew_shell("cat %s/promote.log; %s/bin/tradelock restore status --config %s",
                   self->crowd.town.dir, test_build_dir(), operator_file(self, "ann"));
        fail_msg("%s, %s: accepted %s a person", ties[self->tie], names[what],
                 accepted ? "without" : "not without");
    }
    if (!accepted) {
        /* The page's first step. */
        if (self->tie == TIE_GALERA)
            kill_node(self->replica);
        else
            server_kill9(self->replica->server);
        if (what == EVENT_SIDES)
            kill_node(self->third);
        else if (what == EVENT_TWICE && self->tie != TIE_GALERA)
            server_kill9(self->third->server);
        load_for(self, 2000);
        follow_the_page(self);
        /* Not before all have met the new one: who is led back to the old one earlier may be told
         * there of a beat, and then the new one is restored once more. */
        if (what == EVENT_BACK) {
            await_payments(self, 20);
            load_for(self, 2000);
            comes_back(self, what);
        }
    } else {
        comes_back(self, what);
    }
    return !accepted;
}

/* The clock of whom it starts is ahead; when that one is made anew, it is no more. */
static void restart_ahead(house *self)
{
    char library[128];

    stepping_library(library, sizeof library);
    setenv("FAKETIME", AHEAD, 1);
    setenv("DONT_FAKE_MONOTONIC", "1", 1);
    setenv("LD_PRELOAD", library, 1);
    if (self->tie == TIE_GALERA) {
        server_stop(self->replica->server);
        join(self->replica, self->primary);
        unsetenv("LD_PRELOAD");
        await_nodes(SERVERS);
        return;
    }
    start_at(self->replica, 0, 1);
    unsetenv("LD_PRELOAD");
    database_run(self->replica->sql, "START SLAVE");
    tie(self);
}

static void one_event(house *self, enum event what)
{
    const char *kind = self->crowd.town.kind;
    int64_t twice;
    int person = 0;

    if (what == EVENT_AHEAD)
        restart_ahead(self);
    /* All see that the primary waits for its replica: a beat, which takes a second at most, and the
     * look after it, and a beat's time before. */
    load_for(self, 3000);
    begin_watch(self);
    if (what == EVENT_RESTARTED)
        restart_all(self);
    else
        person = fail_over(self, what);
    await_payments(self, 20);
    load_for(self, 2000);
    end_watch();
    twice = sim_stat(&self->crowd.town.sim, "paid_twice");
    print_message("%-12s %-10s %-34s %6.1f s without payments, %s; paid twice %lld\n",
                  ties[self->tie], kind, names[what], (double)gap.longest_ms / 1000,
                  person ? "two persons" : "no person", (long long)twice);
    assert_int_equal(twice, 0);
    sum.events++;
    sum.persons += (unsigned)person;
    if (!person && gap.longest_ms > sum.longest_ms)
        sum.longest_ms = gap.longest_ms;
    if (what != EVENT_RESTARTED)
        make_replicas_anew(self);
}

/* Lines to which nobody came are left out, so that the rest is asked again in no time. */
static void drop_what_was_not_begun(house *self)
{
    town *t = &self->crowd.town;

    crew_shell("%s/bin/tradelock-simulator --export-csv %s >%s/paid.csv", test_build_dir(),
               t->sim.ledger, t->dir);
    for (unsigned i = 0; i < self->crowd.services; i++)
        crew_shell(
            "mariadb --defaults-file=%s -BNe \"SELECT serial_no FROM trade_lock\" >%s/begun && "
            "awk -F, 'FILENAME ~ /begun$/ { known[$1]; next } FILENAME ~ /paid.csv$/ "
            "{ for (i = 1; i <= NF; i++) known[$i]; next } FNR == 1 || $1 in known' "
            "%s/begun %s/paid.csv %s >%s/rest && mv %s/rest %s",
            database_option_file(t->db), t->dir, t->dir, t->dir, self->crowd.rows[i], t->dir,
            t->dir, self->crowd.rows[i]);
}

/* What a payment that was filed changed in the books is nobody's but the people's to book; the audit
 * compares all others with the channel's statement, and its row. */
static int is_wrong(house *self, town_figures *figures)
{
    town *t = &self->crowd.town;
    const long long filed =
        database_number(t->sql, "SELECT COUNT(*) FROM trade_lock_log WHERE step = 'filed'");
    char *audit;
    int wrong;

    if (filed == 0)
        return town_check(t, figures);
    wrong = town_audit(t, &audit) != 0;
    memset(figures, 0, sizeof *figures);
#define COUNT_OF(from) database_number(t->sql, "SELECT COUNT(*) FROM " from)
    figures->trades = COUNT_OF("trade_lock WHERE lane = 'S'");
    figures->paid = COUNT_OF("trade_lock WHERE lane = 'S' AND status = 'Y'");
    figures->failed = COUNT_OF("trade_lock WHERE lane = 'S' AND status = 'F'");
    figures->parked = COUNT_OF("trade_lock_state WHERE lane = 'S' AND state = 'parked'");
    figures->payments = sim_stat(&t->sim, "payments");
    wrong |= figures->paid > figures->payments;
    wrong |= figures->paid + figures->parked < figures->payments;
    wrong |= figures->payments - COUNT_OF("ledger") > filed;
#undef COUNT_OF
    if (wrong)
        print_error("%s%lld paid, %lld payments, %lld filed\n", audit, figures->paid,
                    figures->payments, filed);
    free(audit);
    sum.filed += filed;
    return wrong;
}

static void close_house(house *self)
{
    town *t = &self->crowd.town;
    town_figures figures;

    crowd_end(&self->crowd);
    town_no_rules(t);
    drop_what_was_not_begun(self);
    crowd_ask_all_again(&self->crowd);
    town_finish(t, 300000);
    if (is_wrong(self, &figures) || sim_stat(&t->sim, "paid_twice") != 0)
        fail_msg("%s: paid twice %lld", t->kind, (long long)sim_stat(&t->sim, "paid_twice"));
    print_message(
        "%-12s %-10s %lld trades, %lld paid, %lld failed, %lld parked; paid twice 0, books "
        "equal\n",
        ties[self->tie], t->kind, figures.trades, figures.paid, figures.failed, figures.parked);
    sum.towns++;
    sum.trades += figures.trades;
    sum.paid += figures.paid;
    sum.failed += figures.failed;
    sum.parked += figures.parked;
    for (unsigned i = 0; i < SERVERS && machines[i].server != NULL; i++) {
        mysql_close(machines[i].sql);
        if (machines[i].server != t->own)
            server_free(machines[i].server);
    }
    crowd_close(&self->crowd);
}

/* -------------------------------------------------------------------------- the runs -- */

static uint64_t seed;

static size_t may_happen(enum tie how, enum event what)
{
    switch (how) {
    case TIE_SEMI_SYNC:
        return what < EVENT_TWICE;
    case TIE_GALERA:
        return what != EVENT_BEHIND && what != EVENT_FORGETS;
    default:
        return what <= EVENT_TWICE;
    }
}

static void run_town(const char *kind, enum tie how, const enum event *events, size_t count)
{
    house self;

    open_house(&self, kind, how, 40000, ++seed);
    for (size_t i = 0; i < count; i++)
        one_event(&self, events[i]);
    close_house(&self);
}

/* Towns of ten events each. */
static void run_long(enum tie how, unsigned towns)
{
    static const char *const kinds[] = {"plain", "idempotent", "window"};

    for (unsigned i = 0; i < towns; i++) {
        crowd chance = {.random = seed * 1000 + i};
        enum event events[10];

        for (size_t j = 0; j < 10;) {
            events[j] = (enum event)crowd_random(&chance, EVENTS);
            j += may_happen(how, events[j]);
        }
        run_town(kinds[i % 3], how, events, 10);
    }
}

/* TL_TOWN_EVENTS="2 0": these, by number, in place of what a run takes; TL_TOWN_KIND: by which kind of
 * channel. */
static int run_given(enum tie how)
{
    const char *given = getenv("TL_TOWN_EVENTS"), *kind = getenv("TL_TOWN_KIND");
    enum event events[64];
    size_t count = 0;
    char *end;

    if (given == NULL)
        return 0;
    for (; count < 64 && *given != '\0'; given = end) {
        events[count] = (enum event)(strtoul(given, &end, 10) % EVENTS);
        count += may_happen(how, events[count]);
    }
    run_town(kind != NULL ? kind : "plain", how, events, count);
    return 1;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

TEST(a_replica_that_is_waited_for)
{
    if (run_given(TIE_SEMI_SYNC))
        return;
    if (tier_is_long())
        run_long(TIE_SEMI_SYNC, 15);
    else
        run_town("plain", TIE_SEMI_SYNC, few_semi_sync, COUNT(few_semi_sync));
}

TEST(a_replica_that_is_not)
{
    if (run_given(TIE_ASYNC))
        return;
    if (tier_is_long())
        run_long(TIE_ASYNC, 9);
    else
        run_town("window", TIE_ASYNC, few_async, COUNT(few_async));
}

TEST(two_replicas)
{
    if (run_given(TIE_TWO))
        return;
    if (tier_is_long())
        run_long(TIE_TWO, 6);
    else
        run_town("idempotent", TIE_TWO, few_two, COUNT(few_two));
}

TEST(nodes_of_a_cluster)
{
    if (run_given(TIE_GALERA))
        return;
    if (tier_is_long())
        run_long(TIE_GALERA, 9);
    else
        run_town("plain", TIE_GALERA, few_galera, COUNT(few_galera));
}

TEST_MAIN(failover)
{
    const char *given = getenv("TL_TOWN_SEED");
    int failed;

    if (nets_open() != 0) {
        printf("skipped: needs network namespaces\n");
        return SKIPPED;
    }
    galera_prepare();
    seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)now_ms() / 1000;
    print_message("TL_TOWN_SEED=%llu\n", (unsigned long long)seed);
    failed = tests_run(NULL, NULL);
    print_message(
        "%u towns, %u events, %u with persons, else at most %.1f s without payments; "
        "%lld trades: %lld paid, %lld failed, %lld parked; %lld payments without a row were "
        "filed; paid twice 0\n",
        sum.towns, sum.events, sum.persons, (double)sum.longest_ms / 1000, sum.trades, sum.paid,
        sum.failed, sum.parked, sum.filed);
    return server_report(failed);
}
