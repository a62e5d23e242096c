/*
 * Workflows over a fleet: a registry for each shard, and calls that go to the shard of their
 * customer.  Touches registries and memory; whose customer is whose the fleet says.
 *
 * What could go wrong is that a call goes to a shard that has given the customer away.  An ask is
 * refused there by the database in its own transaction, with nothing written, so it is made again
 * where the map, which was read anew, says.  It is the same request, with the same key; of a trade
 * that went along, that shard has the row.
 */
#include "fleet.h"

#include "memory.h"
#include "run.h"
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A customer that is moved again and again is told so. */
#define REDIRECTS_MAX 3
/* So long it takes to hand a customer over, who is then asked for again. */
#define HANDED_OVER_MS 20
/* So long a start waits for what has to be registered at a shard that answers. */
#define FIRST_WAIT_MS 10000
#define SENTENCE 640

static tl_status keep_sentence(tl_status status, char sentence[SENTENCE])
{
    snprintf(sentence, SENTENCE, "%s",
             tl_error_message()[0] != '\0' ? tl_error_message() : tl_status_text(status));
    return status;
}

/* ------------------------------------------------------------------ registries -- */

static tl_status register_at(tl_fleet_workflows *all, size_t shard, tl_client *client,
                             fleet_site *made)
{
    tl_status status = tl_workflows_new(&made->registry, client);

    if (status != TL_OK)
        return status;
    status = all->given.open(all->given.context, tl_fleet_shard(all->fleet, shard), client,
                             made->registry, &made->state);
    if (status != TL_OK)
        return status;
    if (tl_workflow_operation(made->registry, 0) != NULL)
        return TL_OK;
    if (all->given.close != NULL)
        all->given.close(all->given.context, made->state);
    return tl_error_report(TL_INVALID, "no workflow was registered");
}

/* On the thread of the shard, or on that of whoever makes it. */
static tl_status on_up(void *context, size_t shard, tl_client *client)
{
    tl_fleet_workflows *all = context;
    fleet_site made = {NULL, NULL, 0};
    char sentence[SENTENCE];
    tl_status status = register_at(all, shard, client, &made);

    if (status != TL_OK) {
        (void)keep_sentence(status, sentence);
        tl_workflows_free(made.registry);
        return tl_error_report(status, "%s", sentence);
    }
    pthread_mutex_lock(&all->mutex);
    all->sites[shard].registry = made.registry;
    all->sites[shard].state = made.state;
    pthread_mutex_unlock(&all->mutex);
    return TL_OK;
}

tl_workflows *fleet_registry(tl_fleet_workflows *all, size_t shard)
{
    tl_workflows *registry;

    pthread_mutex_lock(&all->mutex);
    registry = all->sites[shard].registry;
    pthread_mutex_unlock(&all->mutex);
    return registry;
}

void fleet_stand(tl_fleet_workflows *all, int stands)
{
    pthread_mutex_lock(&all->mutex);
    if (stands)
        all->workers++;
    else
        all->workers--;
    pthread_mutex_unlock(&all->mutex);
}

static void free_sites(tl_fleet_workflows *all)
{
    tl_fleet_watch_free(all->watch);
    for (size_t i = 0; i < all->count; i++) {
        fleet_site *site = &all->sites[i];

        if (site->registry == NULL)
            continue;
        tl_workflows_free(site->registry);
        if (all->given.close != NULL)
            all->given.close(all->given.context, site->state);
    }
    pthread_mutex_destroy(&all->mutex);
    free(all);
}

tl_status tl_fleet_workflows_new(tl_fleet_workflows **out,
                                 const tl_fleet_workflows_options *options)
{
    char sentence[SENTENCE];
    tl_fleet_workflows *all;
    size_t count;
    tl_status status;

    workflow_call_begins();
    if (out == NULL || options == NULL || options->version != TL_FLEET_WORKFLOWS_OPTIONS_VERSION ||
        options->fleet == NULL || options->open == NULL)
        return tl_error_report(TL_INVALID,
                               "workflows over a fleet need a place, and options made "
                               "with TL_FLEET_WORKFLOWS_OPTIONS_INIT: a fleet, and open()");
    count = tl_fleet_size(options->fleet);
    all = workflow_memory(sizeof *all + count * sizeof all->sites[0]);
    if (all == NULL || pthread_mutex_init(&all->mutex, NULL) != 0) {
        free(all);
        return tl_error_report(TL_NO_MEMORY, "no memory for the workflows of a fleet");
    }
    all->given = *options;
    all->fleet = options->fleet;
    all->count = count;
    status = tl_fleet_watch_new(&all->watch, all->fleet, on_up, all, FIRST_WAIT_MS);
    if (status != TL_OK) {
        (void)keep_sentence(status, sentence);
        free_sites(all);
        return tl_error_report(status, "%s", sentence);
    }
    *out = all;
    workflow_call_begins(); /* clears the sentence of a shard that is tried again */
    return TL_OK;
}

void tl_fleet_workflows_free(tl_fleet_workflows *all)
{
    unsigned calls = 0, workers;

    workflow_call_begins();
    if (all == NULL)
        return;
    pthread_mutex_lock(&all->mutex);
    workers = all->workers;
    for (size_t i = 0; i < all->count; i++)
        calls += all->sites[i].calls;
    pthread_mutex_unlock(&all->mutex);
    if (workers > 0 || calls > 0) {
        (void)tl_error_report(
            TL_WRONG_STATE,
            "the registries of the fleet are not freed: %u workers stand on them, "
            "and %u calls are under way",
            workers, calls);
        return;
    }
    free_sites(all);
}

/* ----------------------------------------------------------------------- calls -- */

static tl_status check(const tl_fleet_workflows *all)
{
    workflow_call_begins();
    return all != NULL ? TL_OK : tl_error_report(TL_INVALID, "the workflows of the fleet are NULL");
}

tl_status tl_fleet_workflows_at(tl_fleet_workflows *all, size_t shard, tl_workflows **registry)
{
    tl_client *client = NULL;
    tl_workflows *found;
    tl_status status = check(all);

    if (status == TL_OK)
        status = tl_fleet_shard_client(all->fleet, shard, &client);
    if (status != TL_OK)
        return status;
    if (registry == NULL)
        return tl_error_report(TL_INVALID, "registry is NULL");
    found = fleet_registry(all, shard);
    if (found == NULL)
        return tl_error_report(TL_UNREACHABLE, "shard %s: its workflows are not registered yet",
                               tl_fleet_shard(all->fleet, shard));
    *registry = found;
    return TL_OK;
}

tl_status tl_fleet_workflows_of(tl_fleet_workflows *all, const char *cust_no,
                                tl_workflows **registry)
{
    size_t shard = 0;
    tl_status status = check(all);

    if (status == TL_OK)
        status = tl_fleet_owner(all->fleet, cust_no, &shard);
    return status == TL_OK ? tl_fleet_workflows_at(all, shard, registry) : status;
}

/* A call that is under way at a shard. */
typedef struct visit {
    tl_fleet_workflows *all;
    size_t shard;
    tl_workflows *registry; /* NULL: it was not let in */
} visit;

#define VISIT __attribute__((cleanup(leave))) visit

static void leave(const visit *v)
{
    if (v->registry == NULL)
        return;
    pthread_mutex_lock(&v->all->mutex);
    v->all->sites[v->shard].calls--;
    pthread_mutex_unlock(&v->all->mutex);
}

static tl_status enter(visit *v, const char *cust_no)
{
    tl_fleet_workflows *all = v->all;
    tl_workflows *registry = NULL;
    unsigned calls;
    tl_status status = tl_fleet_owner(all->fleet, cust_no, &v->shard);

    if (status == TL_OK)
        status = tl_fleet_workflows_at(all, v->shard, &registry);
    if (status != TL_OK)
        return status;
    pthread_mutex_lock(&all->mutex);
    calls = all->sites[v->shard].calls;
    if (all->given.calls == 0 || calls < all->given.calls) {
        all->sites[v->shard].calls++;
        v->registry = registry;
    }
    pthread_mutex_unlock(&all->mutex);
    return v->registry != NULL
               ? TL_OK
               : tl_error_report(TL_OVERLOADED,
                                 "shard %s: %u calls are under way there, and no more "
                                 "are let in",
                                 tl_fleet_shard(all->fleet, v->shard), calls);
}

static tl_status check_run(const tl_fleet_workflows *all, const tl_request *request,
                           const tl_answer *answer)
{
    tl_status status = check(all);

    if (status != TL_OK)
        return status;
    if (request == NULL || request->version != TL_REQUEST_VERSION || answer == NULL ||
        answer->version != TL_ANSWER_VERSION || answer->run != NULL)
        return tl_error_report(TL_INVALID,
                               "a run needs a request made with TL_REQUEST_INIT, and an "
                               "answer made with TL_ANSWER_INIT and cleared since its "
                               "last use");
    return TL_OK;
}

static tl_status run_once(tl_fleet_workflows *all, const tl_request *request, tl_answer *answer,
                          size_t *shard)
{
    VISIT v = {.all = all, .shard = *shard};
    tl_status status = enter(&v, request->key.cust_no);

    *shard = v.shard;
    return status == TL_OK ? tl_workflow_run(v.registry, request, answer)
                           : (answer->status = status);
}

tl_status tl_fleet_workflow_run(tl_fleet_workflows *all, const tl_request *request,
                                tl_answer *answer)
{
    tl_status status = check_run(all, request, answer);
    size_t before = SIZE_MAX;

    if (status != TL_OK)
        return status;
    for (unsigned i = 0;; i++) {
        size_t shard = SIZE_MAX;

        status = run_once(all, request, answer, &shard);
        if (status != TL_MISDIRECTED || i == REDIRECTS_MAX || (i > 0 && shard == before))
            return status;
        before = shard;
        (void)tl_fleet_look_again(all->fleet); /* a shard that is not read may not be the one */
        tl_answer_clear(answer);
    }
}

/* The answer knows its registry: what it began is at that shard alone. */
tl_status tl_fleet_workflow_settle(tl_fleet_workflows *all, tl_answer *answer)
{
    tl_status status = check(all);

    if (status != TL_OK)
        return status;
    if (answer == NULL)
        return tl_error_report(TL_INVALID, "answer is NULL");
    if (answer->run == NULL)
        return tl_error_report(TL_WRONG_STATE, "this answer has nothing left to settle");
    return tl_workflow_settle(answer->run->workflows, answer);
}

static tl_status confirm(const await_question *self)
{
    return tl_fleet_confirm(self->of, self->cust_no, self->at);
}

/* A wait is for its shard's database no longer than it is for anything else. */
static tl_status look_once(tl_fleet_workflows *all, const tl_key *key, int64_t wait_ms,
                           tl_trade *trade, size_t *shard)
{
    VISIT v = {.all = all, .shard = *shard};
    tl_status status = enter(&v, key->cust_no);

    *shard = v.shard;
    if (status == TL_OK && wait_ms > 0) {
        await_question first = {.ask = confirm, .of = all->fleet, .at = v.shard};

        snprintf(first.cust_no, sizeof first.cust_no, "%s", key->cust_no);
        return workflow_await(v.registry, key, wait_ms, &first, trade);
    }
    if (status == TL_OK)
        status = tl_fleet_confirm(all->fleet, key->cust_no, v.shard);
    return status == TL_OK ? tl_workflow_look(v.registry, key, trade) : status;
}

/* What a shard said that no longer has the customer is not told: the row there is of the past.  But
 * what is final was so while this call asked, since the shard confirmed before that it had it. */
static int is_elsewhere(tl_fleet_workflows *all, const char *cust_no, tl_status said, size_t shard)
{
    size_t now = shard;

    if (said == TL_MISDIRECTED || said == TL_SUCCEEDED || said == TL_FAILED)
        return said == TL_MISDIRECTED;
    return tl_fleet_owner(all->fleet, cust_no, &now) == TL_OK && now != shard;
}

/* Where a question is put next.  Between "gone" and "owned" nobody has the customer: the shard that
 * is to have it is asked for that one slot each time, and all maps are read ever more seldom, so that
 * many who wait do not have every shard read all of its slots. */
static void look_for_owner(tl_fleet_workflows *all, tl_status said, unsigned turn)
{
    if (said != TL_MISDIRECTED)
        return;
    if (turn < REDIRECTS_MAX || (turn & (turn - 1)) == 0)
        (void)tl_fleet_look_again(all->fleet);
    if (turn >= REDIRECTS_MAX)
        usleep(HANDED_OVER_MS * 1000);
}

tl_status tl_fleet_workflow_await(tl_fleet_workflows *all, const tl_key *key, int64_t wait_ms,
                                  tl_trade *trade)
{
    const int64_t end_ms = schedule_now_ms() + (wait_ms > 0 ? wait_ms : 0);
    char sentence[SENTENCE];
    tl_status status = check(all), before = TL_OK;

    if (status == TL_OK && key == NULL)
        status = tl_error_report(TL_INVALID, "key is NULL");
    if (status == TL_OK && wait_ms < 0)
        status = tl_error_report(TL_INVALID, "wait_ms is negative");
    for (unsigned i = 0; status == TL_OK; i++) {
        const int64_t left_ms = end_ms - schedule_now_ms();
        size_t shard = SIZE_MAX;
        const int64_t now_ms = wait_ms > 0 && left_ms < 1 ? 1 : left_ms;
        tl_status said = look_once(all, key, wait_ms > 0 ? now_ms : 0, trade, &shard);

        /* Too little of the wait may be left to ask again: what was said before stands. */
        if (said == TL_UNREACHABLE && before == TL_MISDIRECTED && schedule_now_ms() >= end_ms)
            said = before;
        else
            (void)keep_sentence(said, sentence);
        before = said;
        if (!is_elsewhere(all, key->cust_no, said, shard) || (i >= REDIRECTS_MAX && left_ms <= 0))
            return tl_error_report(said, "%s", sentence);
        look_for_owner(all, said, i);
    }
    return status;
}

tl_status tl_fleet_workflow_look(tl_fleet_workflows *all, const tl_key *key, tl_trade *trade)
{
    return tl_fleet_workflow_await(all, key, 0, trade);
}
