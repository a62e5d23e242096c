/* What service and worker share: opens client and registry, has a plug-in register its workflows. */
#include "host.h"

#include "log_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static tl_status open_plugin(const host_options *options, tl_client *client,
                             tl_workflows *workflows, void **state)
{
    const tl_plugin *plugin = options->plugin;
    tl_status status;

    (void)tl_error_report(TL_OK, "%s", "");
    status = plugin->open(client, workflows, options->config_file, state);
    if (status != TL_OK) {
        char sentence[512];

        snprintf(sentence, sizeof sentence, "%s",
                 tl_error_message()[0] != '\0' ? tl_error_message() : tl_status_text(status));
        return tl_error_report(status, "plug-in %s: %s", plugin->name, sentence);
    }
    return TL_OK;
}

static tl_status open_alone(host *self, const host_options *options)
{
    tl_status status = open_plugin(options, self->client, self->workflows, &self->state);

    self->is_open = status == TL_OK;
    if (self->is_open && tl_workflow_operation(self->workflows, 0) == NULL)
        return tl_error_report(TL_INVALID, "plug-in %s registered no workflow",
                               options->plugin->name);
    return status;
}

/* The same at each shard, as it comes up: a plug-in cannot tell, and need not know. */
static tl_status open_at_shard(void *context, const char *shard, tl_client *client,
                               tl_workflows *workflows, void **state)
{
    (void)shard;
    return open_plugin(context, client, workflows, state);
}

static void close_plugin(void *context, void *state)
{
    const host_options *options = context;

    if (options->plugin->close != NULL)
        options->plugin->close(state);
}

/* A shard that does not answer leaves the others their part of the threads. */
static unsigned calls_of(const host_options *options, size_t shards)
{
    const unsigned share = options->threads / (unsigned)shards;

    return shards > 1 && share > 0 ? options->threads - share : 0;
}

static tl_status open_fleet(host *self, const host_options *options,
                            const tl_client_options *client)
{
    tl_fleet_options fleet = TL_FLEET_OPTIONS_INIT;
    tl_fleet_workflows_options all = TL_FLEET_WORKFLOWS_OPTIONS_INIT;
    tl_status status;

    fleet.client = client;
    status = tl_fleet_open(&self->fleet, &fleet);
    if (status != TL_OK)
        return status;
    all.fleet = self->fleet;
    all.open = open_at_shard;
    all.close = close_plugin;
    all.context = (void *)(uintptr_t)options;
    all.calls = calls_of(options, tl_fleet_size(self->fleet));
    return tl_fleet_workflows_new(&self->all, &all);
}

/* Closing ends the sentence of what failed before. */
static tl_status close_failed(host *self, tl_status status)
{
    char sentence[640];

    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    host_close(self);
    return tl_error_report(status, "%s", sentence);
}

static tl_status open_here(host *self, const host_options *options, const tl_client_options *client)
{
    tl_status status = tl_client_open(&self->client, client);

    if (status == TL_OK)
        status = tl_workflows_new(&self->workflows, self->client);
    return status == TL_OK ? open_alone(self, options) : status;
}

tl_status host_open(host *self, const host_options *options)
{
    tl_client_options client = TL_CLIENT_OPTIONS_INIT;
    size_t shards = 0;
    tl_status status;

    memset(self, 0, sizeof *self);
    self->options = options;
    client.flags = options->client_flags;
    client.config_file = options->config_file;
    client.program = options->program;
    client.operations = options->plugin->name;
    client.group_suffix = options->group_suffix;
    client.shard = options->shard;
    client.log = log_print;
    log_begin(options->program, options->least, options->config_file);
    status = tl_fleet_count(options->config_file, &shards);
    if (status == TL_OK)
        status = shards > 0 && options->shard == NULL && options->serves_fleets
                     ? open_fleet(self, options, &client)
                     : open_here(self, options, &client);
    return status == TL_OK ? TL_OK : close_failed(self, status);
}

void host_close(host *self)
{
    tl_fleet_workflows_free(self->all);
    tl_fleet_close(self->fleet);
    tl_workflows_free(self->workflows);
    if (self->is_open)
        close_plugin((void *)(uintptr_t)self->options, self->state);
    tl_client_close(self->client);
    memset(self, 0, sizeof *self);
}

/* ------------------------------------------------------------- calls of either kind -- */

tl_status host_run(const host *self, const tl_request *request, tl_answer *answer)
{
    return self->all != NULL ? tl_fleet_workflow_run(self->all, request, answer)
                             : tl_workflow_run(self->workflows, request, answer);
}

tl_status host_settle(const host *self, tl_answer *answer)
{
    return self->all != NULL ? tl_fleet_workflow_settle(self->all, answer)
                             : tl_workflow_settle(self->workflows, answer);
}

/* TL_BUSY without a trade that could be looked at: another attempt is just about to begin, or whoever
 * moves the slot has the row locked of a failure that is tried anew. */
tl_status host_moving(const host *self, const tl_key *key, tl_status status)
{
    tl_trade trade = TL_TRADE_INIT;

    if (self->all == NULL || (status != TL_MISDIRECTED && status != TL_BUSY))
        return TL_OK;
    if (status == TL_BUSY)
        status = tl_fleet_workflow_look(self->all, key, &trade);
    return status == TL_MISDIRECTED || status == TL_NOT_FOUND ? status : TL_OK;
}

static tl_status find_shard(const host *self, const char *cust_no, size_t *shard)
{
    tl_status status = tl_fleet_owner(self->fleet, cust_no, shard);

    return status == TL_OK ? tl_fleet_confirm(self->fleet, cust_no, *shard) : status;
}

tl_status host_client(const host *self, const char *cust_no, tl_client **client)
{
    size_t shard = 0;
    tl_status status;

    if (self->fleet == NULL) {
        *client = self->client;
        return TL_OK;
    }
    status = find_shard(self, cust_no, &shard);
    if (status == TL_MISDIRECTED) {
        (void)tl_fleet_look_again(self->fleet);
        status = find_shard(self, cust_no, &shard);
    }
    return status == TL_OK ? tl_fleet_shard_client(self->fleet, shard, client) : status;
}

int host_exit_code(tl_status status)
{
    switch (status) {
    case TL_OK:
        return EXIT_DONE;
    case TL_BAD_CONFIG:
    case TL_INVALID:
    case TL_UNSAFE:
        return EXIT_USAGE;
    case TL_UNREACHABLE:
    case TL_ACCESS_DENIED:
    case TL_OVERLOADED:
    case TL_TIMEOUT:
    case TL_TRY_AGAIN:
    case TL_SESSION_LOST:
        return EXIT_SERVER;
    case TL_NO_SCHEMA:
    case TL_WRONG_SCHEMA:
        return EXIT_SCHEMA;
    case TL_SERVER_UNSAFE:
    case TL_READ_ONLY:
    case TL_ASK_CHANNEL:
        return EXIT_UNSAFE;
    case TL_UNKNOWN:
        return EXIT_DOUBT;
    default:
        return EXIT_INTERNAL;
    }
}

int host_read_number(int64_t *number, const char *text, int64_t least, int64_t most)
{
    char *end;
    long long value;

    if (text[0] < '0' || text[0] > '9')
        return 0;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < least || value > most)
        return 0;
    *number = value;
    return 1;
}
