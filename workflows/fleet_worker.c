/*
 * A worker over a fleet: a tl_worker for each shard, with a share of the threads.  Touches those.
 *
 * They share nothing, neither threads nor connections.  So what hangs at one shard, its claims or
 * the attempts of its trades, takes nothing from another one.
 */
#include "fleet.h"

#include "memory.h"
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_DEFAULT 4u
#define FIRST_WAIT_MS 10000
#define SENTENCE 640

struct tl_fleet_worker {
    /* Fixed. */
    tl_fleet_workflows *all;
    tl_worker_options given; /* threads: of all shards */
    pid_t process;
    tl_fleet_watch *watch;
    size_t count;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    int stopping;
    tl_worker *workers[]; /* NULL: that shard was not served yet; it stays once it is */
};

/* What the division leaves goes to the first ones. */
static unsigned share_of(const tl_fleet_worker *worker, size_t shard)
{
    const unsigned threads = worker->given.threads, count = (unsigned)worker->count;
    const unsigned share = threads / count + (shard < threads % count);

    return share > 0 ? share : 1;
}

static tl_status on_up(void *context, size_t shard, tl_client *client)
{
    tl_fleet_worker *worker = context;
    tl_worker_options options = worker->given;
    tl_workflows *registry = fleet_registry(worker->all, shard);
    tl_status status = TL_OK;

    (void)client;
    if (registry == NULL)
        return tl_error_report(TL_UNREACHABLE, "its workflows are not registered yet");
    options.threads = share_of(worker, shard);
    pthread_mutex_lock(&worker->mutex);
    if (!worker->stopping)
        status = tl_worker_start(&worker->workers[shard], registry, &options);
    pthread_mutex_unlock(&worker->mutex);
    return status;
}

static tl_worker *worker_at(tl_fleet_worker *worker, size_t shard)
{
    tl_worker *at;

    pthread_mutex_lock(&worker->mutex);
    at = worker->workers[shard];
    pthread_mutex_unlock(&worker->mutex);
    return at;
}

/* Needs: nobody watches. */
static void worker_free(tl_fleet_worker *worker)
{
    tl_fleet_watch_free(worker->watch);
    for (size_t i = 0; i < worker->count; i++)
        tl_worker_free(worker->workers[i]);
    if (worker->process == getpid())
        pthread_mutex_destroy(&worker->mutex);
    fleet_stand(worker->all, 0);
    free(worker);
}

static tl_status make(tl_fleet_worker **out, tl_fleet_workflows *all,
                      const tl_worker_options *options)
{
    tl_fleet_worker *worker =
        workflow_memory(sizeof *worker + all->count * sizeof worker->workers[0]);

    if (worker == NULL || pthread_mutex_init(&worker->mutex, NULL) != 0) {
        free(worker);
        return tl_error_report(TL_NO_MEMORY, "no memory for a worker");
    }
    worker->all = all;
    worker->given = *options;
    if (worker->given.threads == 0)
        worker->given.threads = THREADS_DEFAULT;
    worker->process = getpid();
    worker->count = all->count;
    fleet_stand(all, 1);
    *out = worker;
    return TL_OK;
}

tl_status tl_fleet_worker_start(tl_fleet_worker **out, tl_fleet_workflows *all,
                                const tl_worker_options *options)
{
    char sentence[SENTENCE];
    tl_fleet_worker *worker = NULL;
    tl_status status;

    workflow_call_begins();
    if (out == NULL || all == NULL || options == NULL ||
        options->version != TL_WORKER_OPTIONS_VERSION)
        return tl_error_report(TL_INVALID, "a worker needs a place, the workflows of a fleet, and "
                                           "options made with TL_WORKER_OPTIONS_INIT");
    status = make(&worker, all, options);
    if (status != TL_OK)
        return status;
    status = tl_fleet_watch_new(&worker->watch, all->fleet, on_up, worker, FIRST_WAIT_MS);
    if (status != TL_OK) {
        snprintf(sentence, sizeof sentence, "%s", tl_error_message());
        worker_free(worker);
        return tl_error_report(status, "%s", sentence);
    }
    *out = worker;
    workflow_call_begins();
    return TL_OK;
}

void tl_fleet_worker_stop(tl_fleet_worker *worker)
{
    if (worker == NULL)
        return;
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = 1;
    for (size_t i = 0; i < worker->count; i++)
        tl_worker_stop(worker->workers[i]);
    pthread_mutex_unlock(&worker->mutex);
}

static int is_stopping(tl_fleet_worker *worker)
{
    int stopping;

    pthread_mutex_lock(&worker->mutex);
    stopping = worker->stopping;
    pthread_mutex_unlock(&worker->mutex);
    return stopping;
}

/* One that has ended without being told to is heard of first. */
static tl_status wait_all(tl_fleet_worker *worker, int64_t wait_ms)
{
    const int64_t end_ms = schedule_now_ms() + wait_ms;
    tl_status all = TL_OK;

    for (size_t i = 0; i < worker->count; i++) {
        const int64_t left_ms = end_ms - schedule_now_ms();
        tl_worker *at = worker_at(worker, i);
        tl_status status = at != NULL ? tl_worker_wait(at, left_ms > 0 ? left_ms : 0) : TL_OK;

        if (status != TL_OK && status != TL_TIMEOUT)
            return status;
        if (status == TL_TIMEOUT)
            all = status;
    }
    return all;
}

tl_status tl_fleet_worker_wait(tl_fleet_worker *worker, int64_t wait_ms)
{
    const int64_t end_ms = schedule_now_ms() + wait_ms;
    tl_status status;

    workflow_call_begins();
    if (worker == NULL)
        return tl_error_report(TL_INVALID, "worker is NULL");
    for (;;) {
        status = wait_all(worker, end_ms - schedule_now_ms());
        if (status != TL_OK || is_stopping(worker))
            return status;
        /* No shard is served yet. */
        if (schedule_now_ms() >= end_ms)
            return TL_TIMEOUT;
        usleep(10000);
    }
}

tl_status tl_fleet_worker_check(tl_fleet_worker *worker)
{
    char sentence[SENTENCE] = "no shard was reached yet";
    int works = 0;

    workflow_call_begins();
    if (worker == NULL)
        return tl_error_report(TL_INVALID, "worker is NULL");
    for (size_t i = 0; i < worker->count; i++) {
        tl_worker *at = worker_at(worker, i);
        tl_status status = at != NULL ? tl_worker_check(at) : TL_UNREACHABLE;

        works |= status == TL_OK;
        if (status == TL_OK || at == NULL)
            continue;
        snprintf(sentence, sizeof sentence, "shard %s: %.560s",
                 tl_fleet_shard(worker->all->fleet, i), tl_error_message());
        if (status != TL_UNREACHABLE)
            return tl_error_report(status, "%s", sentence);
    }
    if (works)
        workflow_call_begins();
    return works ? TL_OK : tl_error_report(TL_UNREACHABLE, "%s", sentence);
}

static void add(tl_worker_counts *to, const tl_worker_counts *more)
{
    to->claimed += more->claimed;
    to->succeeded += more->succeeded;
    to->failed += more->failed;
    to->waiting += more->waiting;
    to->parked += more->parked;
    to->lost += more->lost;
    to->unknown += more->unknown;
    to->queries += more->queries;
    to->cancels += more->cancels;
    to->sends += more->sends;
    to->in_flight += more->in_flight;
}

static tl_status count(tl_fleet_worker *worker, size_t from, size_t end, tl_worker_counts *counts)
{
    tl_worker_counts sum = TL_WORKER_COUNTS_INIT;

    for (size_t i = from; i < end; i++) {
        tl_worker_counts one = TL_WORKER_COUNTS_INIT;
        tl_worker *at = worker_at(worker, i);
        tl_status status = at != NULL ? tl_worker_count(at, &one) : TL_OK;

        if (status != TL_OK)
            return status;
        add(&sum, &one);
    }
    *counts = sum;
    return TL_OK;
}

static tl_status check_counts(const tl_fleet_worker *worker, const tl_worker_counts *counts)
{
    workflow_call_begins();
    if (worker == NULL || counts == NULL || counts->version != TL_WORKER_COUNTS_VERSION)
        return tl_error_report(TL_INVALID, "counts need a worker and a known version");
    return TL_OK;
}

tl_status tl_fleet_worker_count(tl_fleet_worker *worker, tl_worker_counts *counts)
{
    tl_status status = check_counts(worker, counts);

    return status == TL_OK ? count(worker, 0, worker->count, counts) : status;
}

tl_status tl_fleet_worker_count_at(tl_fleet_worker *worker, size_t shard, tl_worker_counts *counts)
{
    tl_status status = check_counts(worker, counts);

    if (status == TL_OK && shard >= worker->count)
        status = tl_error_report(TL_INVALID, "there is no shard %zu", shard);
    return status == TL_OK ? count(worker, shard, shard + 1, counts) : status;
}

void tl_fleet_worker_free(tl_fleet_worker *worker)
{
    if (worker == NULL)
        return;
    if (worker->process == getpid())
        tl_fleet_worker_stop(worker);
    worker_free(worker);
}
