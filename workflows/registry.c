/* Keeps the table of registered operations: makes it, adds copies, looks up, frees.  registration.c
 * decides what may be registered.  Touches the table only. */
#include "registry.h"

#include "memory.h"
#include "schedule.h"

#include <tradelock/layer.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void free_entry(workflow *entry)
{
    for (unsigned i = 0; i < entry->former_count; i++)
        free(entry->former[i]);
    free(entry);
}

tl_status tl_workflows_new(tl_workflows **out, tl_client *client)
{
    tl_workflows *workflows;
    tl_status status;

    workflow_call_begins();
    if (out == NULL || client == NULL)
        return tl_error_report(TL_INVALID, "a workflow registry needs a client");
    workflows = workflow_memory(sizeof *workflows);
    if (workflows == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a workflow registry");
    if (pthread_mutex_init(&workflows->mutex, NULL) != 0) {
        free(workflows);
        return tl_error_report(TL_NO_MEMORY, "no mutex for a workflow registry");
    }
    status = awaits_init(&workflows->awaits, workflows);
    if (status != TL_OK) {
        pthread_mutex_destroy(&workflows->mutex);
        free(workflows);
        return status;
    }
    status = later_init(&workflows->later);
    if (status == TL_OK && (status = tl_client_attach(client)) != TL_OK)
        later_destroy(&workflows->later);
    if (status != TL_OK) {
        awaits_destroy(&workflows->awaits);
        pthread_mutex_destroy(&workflows->mutex);
        free(workflows);
        return status;
    }
    workflows->client = client;
    *out = workflows;
    return TL_OK;
}

void tl_workflows_free(tl_workflows *workflows)
{
    unsigned workers;

    if (workflows == NULL)
        return;
    pthread_mutex_lock(&workflows->mutex);
    workers = workflows->workers;
    pthread_mutex_unlock(&workflows->mutex);
    if (workers > 0) {
        (void)tl_error_report(TL_WRONG_STATE,
                              "the registry is not freed: %u workers stand on it, and are "
                              "to be freed first",
                              workers);
        tl_client_log(workflows->client, TL_ALARM, NULL, 0, "%s", tl_error_message());
        return;
    }
    if (awaits_any(&workflows->awaits)) {
        (void)tl_error_report(TL_WRONG_STATE, "the registry is not freed: somebody awaits a trade");
        tl_client_log(workflows->client, TL_ALARM, NULL, 0, "%s", tl_error_message());
        return;
    }
    if (later_any(&workflows->later)) {
        (void)tl_error_report(TL_WRONG_STATE,
                              "the registry is not freed: runs that were submitted are under way");
        tl_client_log(workflows->client, TL_ALARM, NULL, 0, "%s", tl_error_message());
        return;
    }
    later_destroy(&workflows->later);
    awaits_destroy(&workflows->awaits);
    tl_client_detach(workflows->client);
    for (unsigned i = 0; i < workflows->count; i++)
        free_entry(workflows->entries[i]);
    pthread_mutex_destroy(&workflows->mutex);
    free(workflows);
}

/* Needs: workflows->mutex held. */
static const workflow *find_locked(const tl_workflows *workflows, const char *op_code)
{
    for (unsigned i = 0; i < workflows->count; i++)
        if (strcmp(workflows->entries[i]->op_code, op_code) == 0)
            return workflows->entries[i];
    return NULL;
}

const workflow *workflows_find(tl_workflows *workflows, const char *op_code)
{
    const workflow *found;

    pthread_mutex_lock(&workflows->mutex);
    found = find_locked(workflows, op_code);
    pthread_mutex_unlock(&workflows->mutex);
    return found;
}

const workflow *workflows_at(tl_workflows *workflows, unsigned i)
{
    const workflow *found;

    pthread_mutex_lock(&workflows->mutex);
    found = i < workflows->count ? workflows->entries[i] : NULL;
    pthread_mutex_unlock(&workflows->mutex);
    return found;
}

tl_status workflow_check_paused(const workflow *of)
{
    return tl_channel_check(of->client, of->channel, of->op_code);
}

size_t workflow_may_claim_of(const workflow *of, size_t most)
{
    if (workflow_check_paused(of) == TL_OK)
        return most;
    return most > 0 && tl_channel_may_probe(of->client, of->channel, of->op_code) ? 1 : 0;
}

size_t workflow_may_claim(const workflow *of, size_t most)
{
    size_t claims = workflow_may_claim_of(of, most);

    for (unsigned i = 0; i < of->former_count; i++) {
        const size_t former = workflow_may_claim_of(of->former[i], most);

        claims = former > claims ? former : claims;
    }
    return claims;
}

const workflow *workflow_of_channel(const workflow *of, const char *channel)
{
    if (strcmp(of->channel, channel) == 0)
        return of;
    for (unsigned i = 0; i < of->former_count; i++)
        if (strcmp(of->former[i]->channel, channel) == 0)
            return of->former[i];
    return NULL;
}

/* An alarm a minute for all of them; each has its own line besides. */
#define STRANGE_EVERY_MS 60000

void workflow_tell_strange(const workflow *of, const tl_view *view)
{
    static const char *const answers[] = {"NOT_REGISTERED"};
    const tl_key key = {view->serial_no, view->cust_no, of->op_code};
    const tl_calls_names names = {view->channel[0] != '\0' ? view->channel : "unknown", of->op_code,
                                  "nobody", answers, 1};
    const int64_t now_ms = schedule_now_ms();
    int64_t told_ms = atomic_load(&of->watch->strange_ms);
    tl_calls *counted = NULL;

    if (tl_calls_of(&counted, of->client, &names) == TL_OK)
        tl_calls_count(counted, 0, 0);
    if ((told_ms == 0 || now_ms - told_ms >= STRANGE_EVERY_MS) &&
        atomic_compare_exchange_strong(&of->watch->strange_ms, &told_ms, now_ms))
        tl_client_log(of->client, TL_ALARM, &key, 0,
                      "a trade of channel \"%s\" waits, and perhaps others: this process has "
                      "registered %s for %s alone, and calls nobody",
                      view->channel, of->channel, of->op_code);
    else
        tl_client_log(
            of->client, TL_WARNING, &key, 0,
            "put back: channel \"%s\" is not registered for %s here, and nobody is called",
            view->channel, of->op_code);
}

tl_policy policy_complete(const tl_policy *given, const tl_policy *defaults)
{
    tl_policy policy = *given;

    if (policy.max_hold_ms == 0)
        policy.max_hold_ms = defaults->max_hold_ms;
    if (policy.execute_ms == 0)
        policy.execute_ms = defaults->execute_ms;
    if (policy.commit_ms == 0)
        policy.commit_ms = defaults->commit_ms;
    if (policy.deadline_ms == 0)
        policy.deadline_ms = defaults->deadline_ms;
    if (policy.grace_ms == 0)
        policy.grace_ms = defaults->grace_ms;
    if (policy.clock_margin_ms == 0)
        policy.clock_margin_ms = defaults->clock_margin_ms;
    if (policy.attempts == 0)
        policy.attempts = defaults->attempts;
    if (policy.poison == 0)
        policy.poison = defaults->poison;
    if (policy.schedule_count == 0) {
        policy.schedule_count = defaults->schedule_count;
        memcpy(policy.schedule_ms, defaults->schedule_ms, sizeof policy.schedule_ms);
    }
    return policy;
}

/* Copies a name into the entry.  TL_INVALID: the name is missing or too long. */
static tl_status copy_name(char *to, size_t space, const char *what, const char *from)
{
    if (from == NULL || from[0] == '\0')
        return tl_error_report(TL_INVALID, "a workflow needs %s", what);
    if (strlen(from) >= space)
        return tl_error_report(TL_INVALID, "%s \"%.40s\" is longer than %zu characters", what, from,
                               space - 1);
    memcpy(to, from, strlen(from) + 1);
    return TL_OK;
}

/* The statements are checked and copied; they are the client's until it is closed. */
static tl_status make_books(workflow *entry)
{
    const tl_statement *statements = entry->given.statements;

    entry->given.statements = NULL;
    if (entry->given.statement_count == 0)
        return TL_OK;
    return tl_books_new(&entry->books, entry->client, statements, entry->given.statement_count);
}

/* The operation with a channel of before: all but the channel and its callbacks is the same. */
static tl_status add_former(workflow *of, const tl_former_channel *former)
{
    workflow *entry = workflow_memory(sizeof *entry);
    tl_status status;

    if (entry == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a former channel");
    *entry = *of;
    entry->former_count = 0;
    entry->watch = &entry->watched;
    memset(&entry->watched, 0, sizeof entry->watched);
    entry->given.op_code = entry->op_code;
    status = copy_name(entry->channel, sizeof entry->channel, "a former channel's name",
                       former->channel.name);
    entry->channel_context = former->context;
    entry->given.channel = former->channel;
    entry->given.channel.name = entry->channel;
    entry->given.execute = former->execute;
    entry->given.query = former->query;
    entry->given.cancel = former->cancel;
    if (entry->given.channel.key_chars == 0)
        entry->given.channel.key_chars = TL_CHANNEL_KEY_MAX;
    if (status == TL_OK &&
        (of->former_count == TL_FORMER_MAX || workflow_of_channel(of, entry->channel) != NULL))
        status = tl_error_report(TL_INVALID,
                                 "operation %s: channel %s is named twice, or there are more than "
                                 "%d former ones",
                                 of->op_code, entry->channel, TL_FORMER_MAX);
    if (status == TL_OK)
        status = workflow_check_former(&entry->given);
    if (status == TL_OK)
        status = attempt_count_calls(entry);
    if (status == TL_OK)
        of->former[of->former_count++] = entry;
    else
        free(entry);
    return status;
}

static tl_status make_entry(workflow **out, const tl_workflow *given, tl_client *client)
{
    workflow *entry = workflow_memory(sizeof *entry);
    tl_status status;

    if (entry == NULL)
        return tl_error_report(TL_NO_MEMORY, "no memory for a workflow");
    status = copy_name(entry->op_code, sizeof entry->op_code, "an operation code", given->op_code);
    if (status != TL_OK)
        goto out;
    status =
        copy_name(entry->channel, sizeof entry->channel, "a channel name", given->channel.name);
    if (status != TL_OK)
        goto out;
    entry->client = client;
    entry->watch = &entry->watched;
    entry->channel_context = given->context;
    entry->given = *given;
    entry->given.op_code = entry->op_code;
    entry->given.channel.name = entry->channel;
    entry->given.policy = policy_complete(&given->policy, tl_client_policy(client));
    if (entry->given.channel.key_chars == 0)
        entry->given.channel.key_chars = TL_CHANNEL_KEY_MAX;
    status = workflow_check(&entry->given);
    if (status == TL_OK)
        status = make_books(entry);
    if (status == TL_OK)
        status = attempt_count_calls(entry);
    for (size_t i = 0; status == TL_OK && i < given->former_count; i++)
        status = add_former(entry, &given->former[i]);
out:
    if (status != TL_OK) {
        free_entry(entry);
        return status;
    }
    *out = entry;
    return TL_OK;
}

/* Needs: workflows->mutex held. */
static tl_status add_locked(tl_workflows *workflows, workflow *entry)
{
    if (find_locked(workflows, entry->op_code) != NULL)
        return tl_error_report(TL_INVALID, "operation %s is registered already", entry->op_code);
    if (workflows->count == WORKFLOWS_MAX)
        return tl_error_report(TL_INVALID, "a registry takes %d operations at most", WORKFLOWS_MAX);
    workflows->entries[workflows->count++] = entry;
    return TL_OK;
}

/* Declares the contracts of its channels to the installation. */
static tl_status declare(const workflow *entry)
{
    const tl_channel *channel = &entry->given.channel;
    const tl_promises promises = {.idempotent = channel->idempotent,
                                  .replays_first_answer = channel->replays_first_answer,
                                  .can_query = channel->can_query,
                                  .not_found_final = channel->not_found_final,
                                  .cancel_final = channel->cancel_final,
                                  .key_chars = channel->key_chars,
                                  .window_ms = channel->window_ms,
                                  .latency_ms = channel->latency_ms,
                                  .grace_ms = entry->given.policy.grace_ms};
    tl_status status = tl_channel_add(entry->client, entry->channel, entry->op_code, &promises);

    for (unsigned i = 0; status == TL_OK && i < entry->former_count; i++)
        status = declare(entry->former[i]);
    return status;
}

tl_status tl_workflow_register(tl_workflows *workflows, const tl_workflow *given)
{
    workflow *entry = NULL;
    tl_status status;

    workflow_call_begins();
    if (workflows == NULL || given == NULL)
        return tl_error_report(TL_INVALID, "registering needs a registry and a workflow");
    if (given->version != TL_WORKFLOW_VERSION)
        return tl_error_report(TL_INVALID, "this library does not know version %u of tl_workflow",
                               given->version);
    status = make_entry(&entry, given, workflows->client);
    if (status != TL_OK)
        return status;
    if (workflows_find(workflows, entry->op_code) == NULL)
        status = declare(entry);
    pthread_mutex_lock(&workflows->mutex);
    if (status == TL_OK)
        status = add_locked(workflows, entry);
    pthread_mutex_unlock(&workflows->mutex);
    if (status != TL_OK)
        free_entry(entry);
    return status;
}

const char *tl_workflow_operation(tl_workflows *workflows, unsigned n)
{
    const workflow *entry;

    workflow_call_begins();
    if (workflows == NULL) {
        (void)tl_error_report(TL_INVALID, "workflows is NULL");
        return NULL;
    }
    entry = workflows_at(workflows, n);
    return entry != NULL ? entry->op_code : NULL;
}
