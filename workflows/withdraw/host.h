/* What every program that hosts workflows needs: client, registry, and a plug-in that registers
 * them, at one database or at each shard of a fleet. */
#ifndef WITHDRAW_HOST_H
#define WITHDRAW_HOST_H

#include <tradelock/fleet_workflow.h>
#include <tradelock/plugin.h>

typedef struct host_options {
    const char *program;      /* on the session row, and before each log line */
    const char *config_file;  /* settings and connection; "": those of the environment alone */
    const char *group_suffix; /* or NULL */
    const char *shard;        /* of a file that names shards, this one alone; or NULL */
    const tl_plugin *plugin;
    int serves_fleets; /* settings that name shards are for this program, all of them */
    unsigned threads;  /* that call host_run(): one shard never takes those of the others */
    unsigned client_flags;
    tl_level least; /* log lines below this level are not printed */
} host_options;

/* Over a fleet `fleet` and `all` are set, and the rest is NULL: each shard has its own. */
typedef struct host {
    tl_client *client;
    tl_workflows *workflows;
    int is_open; /* the plug-in, with this state */
    void *state;
    tl_fleet *fleet;
    tl_fleet_workflows *all;
    const host_options *options;
} host;

/* The options must outlive the host. */
tl_status host_open(host *self, const host_options *options);
void host_close(host *self);

/* tl_workflow_run() and the like, over the fleet if there is one. */
tl_status host_run(const host *self, const tl_request *request, tl_answer *answer);
tl_status host_settle(const host *self, tl_answer *answer);
/* Over a fleet, whether that was answered since the trade is there: TL_OK; else the same request may
 * be made again, and nobody may pay by other means.  TL_MISDIRECTED: no shard has the customer now,
 * and tl_error_message() says why.  TL_NOT_FOUND: busy, and no trade is seen; either the customer is
 * being handed over, or another attempt's transaction is open. */
tl_status host_moving(const host *self, const tl_key *key, tl_status status);
/* The client that has this customer, for questions: over a fleet the database said so. */
tl_status host_client(const host *self, const char *cust_no, tl_client **client);

/* Exit codes, the same as those of the command `tradelock` (tools/README.md). */
enum {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,
    EXIT_USAGE = 2,
    EXIT_SERVER = 3,
    EXIT_SCHEMA = 4,
    EXIT_UNSAFE = 5,
    EXIT_DOUBT = 6,
    EXIT_INTERNAL = 70
};
int host_exit_code(tl_status status);

/* Reads a whole number; 1, or 0: the text is none, or it is out of range. */
int host_read_number(int64_t *number, const char *text, int64_t least, int64_t most);

#endif
