#include "nodes.h"

#include "nets.h"

#include "support/crew.h"
#include "support/database.h"

#include "workflows/cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WITH_PROVIDER "--wsrep-provider=/usr/lib/galera/libgalera_smm.so"

void nodes_prepare(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/support/galera:%s", test_source_dir(), getenv("PATH"));
    setenv("PATH", path, 1);
}

server *node_new(unsigned machine)
{
    server *self;

    nets_enter(machine);
    self = server_start(NULL);
    nets_enter(NETS_HERE);
    server_stop(self);
    return self;
}

/* "UUID:NUMBER", as the log of a start says it that recovers, and no more.  Its end is not waited
 * for: now and then MariaDB 10.11 waits there for its own purge, for ever. */
static void recover(const server *self, char *position, size_t space)
{
    const char *dir = server_dir(self);
    char path[512];
    FILE *file;

    crew_shell("cd %s && PATH=$PATH:/usr/sbin && { "
               "mariadbd --no-defaults --datadir=%s/data --tmpdir=%s/tmp --user=$(id -un) "
               "--innodb-log-file-size=64M --skip-networking --socket=$(mktemp -u) "
               "--wsrep-on=1 " WITH_PROVIDER " --wsrep-cluster-address=gcomm:// "
               "--binlog-format=ROW --wsrep-recover >recover.log 2>&1 & } && pid=$! && "
               "until grep -q 'Recovered position' recover.log || ! kill -0 $pid; do sleep 0.05; "
               "done; kill -9 $pid; wait $pid; grep -q 'Recovered position' recover.log || "
               "{ tail -n 20 recover.log; false; }",
               dir, dir, dir);
    crew_shell("sed -n 's/.*Recovered position:* *//p' %s/recover.log | tail -n 1 >%s/position",
               dir, dir);
    snprintf(path, sizeof path, "%s/position", dir);
    file = fopen(path, "re");
    assert_non_null(file);
    if (fgets(position, (int)space, file) == NULL) {
        crew_shell("tail -n 40 %s/recover.log", dir);
        fail_msg("no position in %s", dir);
    }
    position[strcspn(position, "\n")] = '\0';
    fclose(file);
}

/* A new one has no position, and makes the cluster. */
static void tell_position(const server *self, char *option, size_t space)
{
    const char *dir = server_dir(self);
    char position[128];

    recover(self, position, sizeof position);
    snprintf(option, space, "--wsrep-start-position=%s", position);
    crew_shell("printf 'uuid: %%s\\nseqno: %%s\\n' %.36s '%s' >%s/data/grastate.begin", position,
               strrchr(position, ':') + 1, dir);
}

void node_join(server *self, unsigned machine, unsigned first)
{
    char cluster[64] = "--wsrep-cluster-address=gcomm://", at[64], id[32], node[64], provider[512],
         position[160];
    const char *const options[] = {"--wsrep-on=1",
                                   WITH_PROVIDER,
                                   "--wsrep-sst-method=nothing",
                                   "--binlog-format=ROW",
                                   "--innodb-autoinc-lock-mode=2",
                                   "--skip-networking=0",
                                   "--port=3306",
                                   cluster,
                                   at,
                                   id,
                                   node,
                                   provider,
                                   position,
                                   NULL};

    if (machine != first)
        snprintf(cluster, sizeof cluster, "--wsrep-cluster-address=gcomm://%s:4567",
                 nets_address(first));
    snprintf(at, sizeof at, "--bind-address=%s", nets_address(machine));
    snprintf(id, sizeof id, "--server-id=%u", machine);
    snprintf(node, sizeof node, "--wsrep-node-address=%s:4567", nets_address(machine));
    snprintf(provider, sizeof provider,
             "--wsrep-provider-options=base_port=4567;gmcast.listen_addr=tcp://%s:4567;"
             "ist.recv_addr=%s:4568;gcache.size=64M;pc.recovery=0;evs.keepalive_period=PT0.5S;"
             "evs.suspect_timeout=PT2S;evs.inactive_timeout=PT6S",
             nets_address(machine), nets_address(machine));
    tell_position(self, position, sizeof position);
    if (machine == first)
        crew_shell("f=%s/data/grastate.dat; "
                   "[ ! -f $f ] || sed -i 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' $f",
                   server_dir(self));
    nets_enter(machine);
    server_restart_with(self, options);
    nets_enter(NETS_HERE);
}

void node_copy(const server *from, const server *to)
{
    const char *a = server_dir(from), *b = server_dir(to);
    const pid_t pid = (pid_t)server_pid(from);

    assert_int_equal(kill(pid, SIGSTOP), 0);
    crew_shell("rm -rf %s/data && cp -a --reflink=auto --sparse=always %s/data %s/data && "
               "rm -f %s/data/galera.cache %s/data/gvwstate.dat",
               b, a, b, b, b);
    assert_int_equal(kill(pid, SIGCONT), 0);
}

void node_await(MYSQL *sql, unsigned count, int patience_ms)
{
    const int64_t end_ms = crew_now_ms() + patience_ms;

    while (database_number(sql,
                           "SELECT COUNT(*) FROM information_schema.GLOBAL_STATUS WHERE "
                           "(VARIABLE_NAME = 'WSREP_LOCAL_STATE_COMMENT' AND VARIABLE_VALUE = "
                           "'Synced') OR (VARIABLE_NAME = 'WSREP_CLUSTER_STATUS' AND "
                           "VARIABLE_VALUE = 'Primary') OR (VARIABLE_NAME = 'WSREP_READY' AND "
                           "VARIABLE_VALUE = 'ON') OR (VARIABLE_NAME = 'WSREP_CLUSTER_SIZE' AND "
                           "VARIABLE_VALUE = '%u')",
                           count) != 4) {
        if (crew_now_ms() > end_ms)
            fail_msg("no node of a cluster of %u after %d ms", count, patience_ms);
        usleep(20 * 1000);
    }
}
