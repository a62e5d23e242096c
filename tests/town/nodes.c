#include "nodes.h"

#include "nets.h"

#include "support/crew.h"
#include "support/database.h"
#include "support/galera.h"

#include "support/theme.h"

/* "UUID:NUMBER", as the log of a start says it that recovers, and no more.  Its end is not waited
 * for: now and then MariaDB 10.11 waits there for its own purge, for ever. */
static void recover(const server *self, char *position, size_t space)
{
    const char *dir = server_dir(self);
    char path[512];
    FILE *file;

    /* The log of the start before would be read as this one's. */
    crew_shell("cd %s && rm -f recover.log && PATH=$PATH:/usr/sbin && { "
               "mariadbd --no-defaults --datadir=%s/data --tmpdir=%s/tmp --user=$(id -un) "
               "--innodb-log-file-size=64M --skip-networking --socket=$(mktemp -u) "
               "--wsrep-on=1 %s --wsrep-cluster-address=gcomm:// "
               "--binlog-format=ROW --wsrep-recover >recover.log 2>&1 & } && pid=$! && "
               "until grep -qs 'Recovered position' recover.log || ! kill -0 $pid; do sleep 0.05; "
               "done; kill -9 $pid; wait $pid; grep -q 'Recovered position' recover.log || "
               "{ tail -n 20 recover.log; false; }",
               dir, dir, dir, galera_provider());
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

long long node_position(const server *self)
{
    char position[128];
    const char *number;

    recover(self, position, sizeof position);
    number = strrchr(position, ':');
    assert_non_null(number);
    return strtoll(number + 1, NULL, 10);
}

static int is_of_a_cluster(const server *self)
{
    char path[512];

    snprintf(path, sizeof path, "%s/data/grastate.dat", server_dir(self));
    return access(path, R_OK) == 0;
}

server *node_join(server *self, unsigned machine, unsigned first)
{
    char position[128];
    galera_node node = {.id = machine, .address = nets_address(machine)};

    if (self != NULL && is_of_a_cluster(self)) {
        recover(self, position, sizeof position);
        node.position = position;
    }
    nets_enter(machine);
    self = galera_join(self, &node, nets_address(first));
    nets_enter(NETS_HERE);
    return self;
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
