/*
 * The doctor's examination of the mode: one server, a primary with replicas, or a Galera node; and
 * whether a promotion could forget what was paid.  Reads only.
 *
 * Nothing here proves that a promoted server has everything: only a comparison with the channel
 * does.  So the best that is said of a mode is what it cannot lose as long as it goes on like this.
 */
#include "admin/doctor.h"
#include "store/bind.h"
#include "store/position.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A wait that is given up after a day is given up by a person before. */
#define LONG_WAIT_MS INT64_C(86400000)
/* The account of a definer has no right to that. */
#define MAY_NOT 1227

struct mode {
    doctor *d;
    db_result variables, status;
};

static const char *find(const db_result *r, const char *name)
{
    for (size_t row = 0; row < r->rows; row++)
        if (strcmp(db_get_text(r, row, 0), name) == 0)
            return db_get_text(r, row, 1);
    return "";
}

static const char *variable(const struct mode *m, const char *name)
{
    return find(&m->variables, name);
}

static const char *status_of(const struct mode *m, const char *name)
{
    return find(&m->status, name);
}

static int64_t count_of(const struct mode *m, const char *name)
{
    return atoll(status_of(m, name));
}

static int is_on(const char *value)
{
    return strcasecmp(value, "ON") == 0 || strcmp(value, "1") == 0;
}

static void judge(const struct mode *m, int is_good, const char *check, const char *found,
                  const char *good, const char *bad)
{
    doctor_tell(m->d, is_good ? TL_FINDING_OK : TL_FINDING_WARNING, check, found, "%s",
                is_good ? good : bad);
}

static void judge_wait(const struct mode *m)
{
    const char *timeout = variable(m, "rpl_semi_sync_master_timeout");
    const char *point = variable(m, "rpl_semi_sync_master_wait_point");
    const char *no_slave = variable(m, "rpl_semi_sync_master_wait_no_slave");

    judge(
        m, atoll(timeout) >= LONG_WAIT_MS, "rpl_semi_sync_master_timeout", timeout,
        "a commit waits for a replica until somebody comes",
        "when no replica answers for this many milliseconds, commits are answered that no replica "
        "has: a promotion forgets them, and they are paid again when they are asked for again; "
        "set it to a day or more, so that payments stop instead");
    judge(m, strcasecmp(point, "AFTER_SYNC") == 0, "rpl_semi_sync_master_wait_point", point,
          "nobody sees a commit before a replica has it",
          "others see a commit before a replica has it, and may pay for what a promotion forgets: "
          "set it to AFTER_SYNC");
    judge(m, is_on(no_slave), "rpl_semi_sync_master_wait_no_slave", no_slave,
          "commits wait also while no replica is connected",
          "commits are answered at once while no replica is connected, and a promotion forgets "
          "them: set it to ON");
}

static void judge_semi_sync(const struct mode *m)
{
    const int64_t clients = count_of(m, "rpl_semi_sync_master_clients");
    const int64_t no_times = count_of(m, "rpl_semi_sync_master_no_times");
    const int waits = is_on(status_of(m, "rpl_semi_sync_master_status"));
    char found[96];

    snprintf(found, sizeof found, "semi-synchronous, %" PRId64 " replica%s", clients,
             clients == 1 ? "" : "s");
    if (!waits || clients == 0)
        doctor_tell(m->d, TL_FINDING_WARNING, "mode", found, "%s: what is paid now no replica has",
                    !waits ? "it has fallen back to asynchronous"
                           : "no replica is connected, so commits wait, or do not wait, as "
                             "rpl_semi_sync_master_wait_no_slave says");
    else if (no_times > 0)
        doctor_tell(m->d, TL_FINDING_WARNING, "mode", found,
                    "it fell back to asynchronous %" PRId64 " times since the server started or "
                    "the count was set back: ask the channel before a replica is accepted that was "
                    "not connected since",
                    no_times);
    else
        doctor_tell(m->d, TL_FINDING_OK, "mode", found,
                    "what was answered at least one replica has, in its log if not in its tables: "
                    "promote the one whose log reaches furthest, once all of it is applied; "
                    "`tradelock promote` says whether operators have to accept it");
    judge_wait(m);
}

/* A database without this schema, or an account without the right, cannot be asked. */
static void judge_keeper(const struct mode *m)
{
    store_kept k;
    char found[64];

    if (m->d->schema != TL_OK || !m->d->is_newest ||
        store_attest_kept(m->d->connection, &k) != DB_DONE)
        return;
    if (store_attest_keeper(m->d->connection, &k) != DB_DONE || k.keeper == STORE_NOBODY) {
        doctor_tell(m->d, TL_FINDING_WARNING, "promotion", "by operators",
                    "nobody can tell that one server has each commit before it is answered, so "
                    "none is accepted by itself after this one: there has to be one replica, and a "
                    "semi-synchronous one, with the settings above; a log without filters; and the "
                    "rights REPLICATION MASTER ADMIN, BINLOG MONITOR and SLAVE MONITOR for the "
                    "account that ran `tradelock migrate`");
        return;
    }
    snprintf(found, sizeof found, "server %" PRId64, k.keeper);
    if (k.on_record != STORE_NOBODY && k.on_record != k.keeper)
        doctor_tell(m->d, TL_FINDING_WARNING, "promotion", found,
                    "since this server was accepted the one that has each commit before it is "
                    "answered was server %" PRId64
                    ": operators accept the next one; a replica that "
                    "takes the place of another takes its server_id too",
                    k.on_record);
    else
        doctor_tell(m->d, TL_FINDING_OK, "promotion", found,
                    "it has each commit before it is answered: if it is promoted it can be "
                    "accepted by itself, and no other one can");
}

static void judge_replicated(const struct mode *m, int semi)
{
    const char *gtid = variable(m, "gtid_strict_mode");
    const char *origin = status_of(m, "read_only_origin");
    const int64_t replicas = count_of(m, "slaves_connected");
    char found[96];

    if (semi) {
        judge_semi_sync(m);
    } else {
        snprintf(found, sizeof found, "primary, %" PRId64 " asynchronous replica%s", replicas,
                 replicas == 1 ? "" : "s");
        doctor_tell(m->d, TL_FINDING_WARNING, "mode", found,
                    "a replica that is promoted may lack what was paid last: compare with the "
                    "channel before it is accepted, for what nobody knows of is paid again when it "
                    "is asked for again; semi-synchronous replication makes that not happen");
    }
    if (semi)
        judge_keeper(m);
    judge(m, is_on(gtid), "gtid_strict_mode", gtid,
          "what was written on a wrong server stops its replication",
          "what was written on a wrong server, such as an old primary, mixes with the rest and is "
          "not noticed: set it to ON");
    /* What stands in its option file shows only as long as nobody changed it. */
    judge(m, strcasecmp(origin, "SQL") == 0, "read_only at start", origin,
          "somebody who knew that this is the primary switched it off, or on and off, after the "
          "start",
          "this server takes writes as soon as it starts, also when another one was promoted "
          "meanwhile, and a program that begins then cannot know: put read_only into its option "
          "file, and let whoever promotes a server switch it off there");
}

/* Whether another node has what this one answers: an arbitrator has no address for clients, and keeps
 * no rows. */
static int has_another_node(const struct mode *m)
{
    const char *nodes = status_of(m, "wsrep_incoming_addresses");

    nodes += strspn(nodes, ",");
    nodes += strcspn(nodes, ",");
    return nodes[strspn(nodes, ",")] != '\0';
}

/* Whether each item of that list is one node: one that is bound to several addresses has commas in
 * its own. */
static int are_told_apart(const struct mode *m, int64_t nodes)
{
    int64_t items = 1;

    for (const char *c = status_of(m, "wsrep_incoming_addresses"); *c != '\0'; c++)
        items += *c == ',';
    return items == nodes;
}

static void judge_galera(const struct mode *m)
{
    const char *status = status_of(m, "wsrep_cluster_status");
    const char *state = status_of(m, "wsrep_local_state_comment");
    const char *wait = variable(m, "wsrep_sync_wait");
    const int works = strcasecmp(status, "Primary") == 0 && strcasecmp(state, "Synced") == 0 &&
                      is_on(status_of(m, "wsrep_ready"));
    const int64_t nodes = count_of(m, "wsrep_cluster_size");
    char found[160];

    snprintf(found, sizeof found, "Galera, %" PRId64 " node%s, %s, %s", nodes,
             nodes == 1 ? "" : "s", status, state);
    if (!works)
        doctor_tell(m->d, TL_FINDING_UNSAFE, "mode", found,
                    "this node is not a synced part of the primary component: it may be cut off "
                    "from those who go on, and takes no writes");
    else if (!are_told_apart(m, nodes))
        doctor_tell(m->d, TL_FINDING_WARNING, "mode", found,
                    "a node has several addresses for clients, so nobody can tell which members "
                    "keep rows, and no promotion is accepted by itself: set "
                    "wsrep_node_incoming_address to one host and port at each node, and start it "
                    "anew");
    else if (nodes > 1 && !has_another_node(m))
        doctor_tell(m->d, TL_FINDING_WARNING, "mode", found,
                    "this is the only one that keeps rows, the others are arbitrators: when it is "
                    "lost, so is what it has answered");
    else if (nodes < 3)
        doctor_tell(m->d, TL_FINDING_WARNING, "mode", found,
                    "with fewer than three nodes or arbitrators one that dies can stop the other, "
                    "or leave each alone");
    else
        doctor_tell(m->d, TL_FINDING_OK, "mode", found,
                    "what was answered is on every node of the component; another node is still "
                    "another server, where nothing is granted before it is accepted: `tradelock "
                    "promote` says whether operators have to");
    doctor_tell(m->d, TL_FINDING_OK, "wsrep_sync_wait", wait,
                "tradelock reads where it writes, and waits by itself before it says what a node "
                "lacks, so any value serves; whoever else reads at another node with 0 may see "
                "what was before");
}

static void judge_mode(const struct mode *m)
{
    const int semi = is_on(variable(m, "rpl_semi_sync_master_enabled"));

    if (is_on(variable(m, "wsrep_on")))
        judge_galera(m);
    else if (is_on(variable(m, "read_only")))
        doctor_tell(m->d, TL_FINDING_OK, "mode",
                    count_of(m, "slaves_running") > 0 ? "a replica" : "read-only",
                    "it is read, and nothing is granted here");
    else if (semi || count_of(m, "slaves_connected") > 0)
        judge_replicated(m, semi);
    else
        doctor_tell(m->d, TL_FINDING_OK, "mode", "one server",
                    "a crash forgets nothing; without its disk all that no backup has is lost, and "
                    "the channel must be asked");
}

static void judge_replica(const struct mode *m)
{
    if (count_of(m, "slaves_running") > 0 && !is_on(variable(m, "wsrep_on")) &&
        !is_on(variable(m, "read_only")))
        doctor_tell(m->d, TL_FINDING_WARNING, "read_only of a replica", "OFF",
                    "this server replicates and takes writes: processes that lose the primary wait "
                    "here before all has arrived, and the server is then not accepted by itself; "
                    "set read_only until it is promoted");
}

#define LEAVES_OUT                                                                                 \
    "a replica with this leaves out some of what its primary commits, and cannot be promoted: "    \
    "take it back, and make the replica anew"

static tl_finding_level passing_over(const struct mode *m)
{
    return count_of(m, "slaves_running") > 0 || is_on(variable(m, "read_only"))
               ? TL_FINDING_UNSAFE
               : TL_FINDING_WARNING;
}

static tl_status judge_connections(const struct mode *m)
{
    char filter[STORE_FILTER_SPACE];
    db_answer answer;
    int has_name;

    if (m->d->schema != TL_OK || !m->d->is_newest)
        return TL_OK;
    answer = store_connection_filter(m->d->connection, filter, sizeof filter, &has_name);
    if (answer == DB_DONE && filter[0] != '\0')
        doctor_tell(m->d, passing_over(m), "replication", filter,
                    has_name
                        ? "a connection with a name may have filters that are not seen, so this "
                          "server cannot be promoted: use the unnamed one alone"
                        : LEAVES_OUT);
    else if (answer == DB_ERROR && db_errno(m->d->connection) == MAY_NOT)
        doctor_tell(m->d, TL_FINDING_WARNING, "replication", "unknown",
                    "this server cannot be promoted before the account that ran `tradelock "
                    "migrate` has the right SLAVE MONITOR");
    return answer == DB_DONE || answer == DB_ERROR
               ? TL_OK
               : read_status(m->d->connection, answer, "asking whom this server replicates");
}

/* Where the function is gone, or not this account's to call, another check says so. */
static tl_status judge_passes_over(const struct mode *m)
{
    RESULT row = DB_RESULT_INIT;
    db_answer answer;

    if (m->d->schema != TL_OK || !m->d->is_newest)
        return TL_OK;
    answer = db_run(m->d->connection, &sql_doctor_passes_over, NULL, 0, &row);
    if (answer == DB_DONE && !db_is_null(&row, 0, 0))
        doctor_tell(m->d, passing_over(m), "replication", db_get_text(&row, 0, 0), LEAVES_OUT);
    return answer == DB_DONE || answer == DB_ERROR
               ? TL_OK
               : read_status(m->d->connection, answer, "asking for what replication leaves out");
}

/* With a list of hosts: whether one of them alone is the writer. */
static void judge_hosts(doctor *d)
{
    const db_server_state is = db_state_of(db_server_of(d->connection));

    if (!pool_has_list(d->client->connections))
        return;
    if (is == DB_SERVER_RIVAL)
        doctor_tell(d, TL_FINDING_UNSAFE, "one writer", "two",
                    "two hosts of the list take writes, and neither was accepted after the other: "
                    "nothing is granted on either; make one unreachable and accept the other anew");
    else if (is == DB_SERVER_WHOLE && atomic_load(&db_server_of(d->connection)->takes_no_writes))
        doctor_tell(d, TL_FINDING_UNSAFE, "one writer", "none",
                    "the host that was accepted is read-only: nothing is granted");
    else if (is == DB_SERVER_WHOLE)
        doctor_tell(d, TL_FINDING_OK, "one writer", "this server",
                    "of the hosts of the list that answer one was accepted, and takes writes");
    else
        doctor_tell(d, TL_FINDING_UNSAFE, "one writer", "none",
                    "of the hosts of the list that answer none was accepted: nothing is granted");
}

static tl_status judge_all(struct mode *m)
{
    db *connection = m->d->connection;

    TRY(read_run(connection, &sql_doctor_variables, &m->variables,
                 "reading the server's settings"));
    TRY(read_run(connection, &sql_doctor_mode, &m->status, "asking the server for its replicas"));
    judge_mode(m);
    judge_replica(m);
    TRY(judge_passes_over(m));
    TRY(judge_connections(m));
    if (m->d->schema == TL_OK)
        judge_hosts(m->d);
    return TL_OK;
}

tl_status doctor_mode(doctor *d)
{
    struct mode m = {.d = d, .variables = DB_RESULT_INIT, .status = DB_RESULT_INIT};
    const tl_status status = judge_all(&m);

    db_result_free(&m.variables);
    db_result_free(&m.status);
    return status;
}
