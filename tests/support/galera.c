#include "support/galera.h"

#include "support/crew.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void galera_prepare(void)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/tests/support/galera:%s", test_source_dir(), getenv("PATH"));
    setenv("PATH", path, 1);
    setenv("TL_MARIADB_WAIT_S", "180", 0); /* it answers when it has what the others do meanwhile */
}

const char *galera_provider(void)
{
    return "--wsrep-provider=/usr/lib/galera/libgalera_smm.so";
}

/* A node is asked whether it may make the cluster, since others may have come further. */
static void let_it_begin(const server *self)
{
    crew_shell("f=%s/data/grastate.dat; "
               "[ ! -f $f ] || sed -i 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' $f",
               server_dir(self));
}

server *galera_join(server *self, const galera_node *node, const char *first)
{
    char cluster[64] = "--wsrep-cluster-address=gcomm://", at[64], id[32], address[64],
         incoming[64], provider[512], position[160];
    const char *options[] = {"--wsrep-on=1",
                             galera_provider(),
                             "--wsrep-sst-method=copy",
                             "--binlog-format=ROW",
                             "--innodb-autoinc-lock-mode=2",
                             "--wsrep-slave-threads=8",
                             "--skip-networking=0",
                             "--port=3306",
                             cluster,
                             at,
                             id,
                             address,
                             incoming,
                             provider,
                             node->position != NULL ? position : NULL,
                             NULL};

    if (strcmp(node->address, first) != 0)
        snprintf(cluster, sizeof cluster, "--wsrep-cluster-address=gcomm://%s:4567", first);
    else if (self != NULL)
        let_it_begin(self);
    snprintf(at, sizeof at, "--bind-address=%s%s%s", node->address, node->also != NULL ? "," : "",
             node->also != NULL ? node->also : "");
    snprintf(id, sizeof id, "--server-id=%u", node->id);
    snprintf(address, sizeof address, "--wsrep-node-address=%s:4567", node->address);
    snprintf(incoming, sizeof incoming, "--wsrep-node-incoming-address=%s",
             node->incoming != NULL ? node->incoming : "AUTO");
    snprintf(provider, sizeof provider,
             "--wsrep-provider-options=base_port=4567;gmcast.listen_addr=tcp://%s:4567;"
             "ist.recv_addr=%s:4568;gcache.size=64M;pc.recovery=0;evs.keepalive_period=PT0.5S;"
             "evs.suspect_timeout=PT2S;evs.inactive_timeout=PT6S",
             node->address, node->address);
    snprintf(position, sizeof position, "--wsrep-start-position=%s",
             node->position != NULL ? node->position : "");
    if (self == NULL)
        return server_start(options);
    server_restart_with(self, options);
    return self;
}

void galera_forget(const server *self)
{
    crew_shell("cd %s/data && rm -f grastate.dat gvwstate.dat galera.cache", server_dir(self));
}
