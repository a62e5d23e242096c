/*
 * Lists the holds of one client that others must find: other handles of the same thread, and the
 * watcher, which tells a holder that its lock is not certain any more.
 *
 * The watcher is one thread, started with the first hold that has a loss callback.  It follows the
 * deadlines by this machine's clock, and asks nobody, so a silent server delays no word.  In the
 * round after each beat the rows are read as well, since an operator may take a lock away at any
 * time; what is found there the watcher tells.  A hold that it tells of is neither freed nor given
 * back; whoever wants to do that waits.  Touches its list, and reads resource_lock.
 */
#include "lease_mutex/mutex.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* How long a round waits for a connection before it leaves the rows for later. */
#define READ_WAIT_MS 100

struct leases {
    client_part part; /* first; the client knows only this */
    /* Fixed after it is made. */
    tl_client *client;
    unsigned generation;
    /* Under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake, looked_away;
    hold *first;
    pthread_t thread;
    int thread_started, stopping;
    /* The round's alone: a copy of the hold whose rows it reads, which may be freed meanwhile. */
    struct {
        char names[TL_RESOURCES_MAX][TL_RESOURCE_MAX + 1];
        size_t count;
        uint8_t token[LOCK_TOKEN];
    } read;
};

static void look_at_rows(client_part *part);

static void free_leases(client_part *part)
{
    leases *l = (leases *)part;

    /* In a child of a fork there is no watcher, and the mutex may be held for ever. */
    if (l->generation == process_generation()) {
        pthread_mutex_lock(&l->mutex);
        l->stopping = 1;
        pthread_cond_broadcast(&l->wake);
        pthread_mutex_unlock(&l->mutex);
        if (l->thread_started)
            pthread_join(l->thread, NULL);
        pthread_cond_destroy(&l->wake);
        pthread_cond_destroy(&l->looked_away);
        pthread_mutex_destroy(&l->mutex);
    }
    memory_free(l);
}

tl_status leases_of(tl_client *client, leases **out)
{
    client_part *there = atomic_load(&client->leases);
    leases *l;

    if (there == NULL) {
        l = memory_new(sizeof *l);
        if (l == NULL || clock_condition_init(&l->wake) != 0) {
            memory_free(l);
            return error_set(TL_NO_MEMORY, "out of memory for the client's mutexes");
        }
        pthread_cond_init(&l->looked_away, NULL);
        pthread_mutex_init(&l->mutex, NULL);
        l->part.free = free_leases;
        l->part.round = look_at_rows;
        l->client = client;
        l->generation = client->generation;
        if (atomic_compare_exchange_strong(&client->leases, &there, &l->part))
            there = &l->part;
        else
            free_leases(&l->part);
    }
    *out = (leases *)there;
    return TL_OK;
}

void leases_lock(leases *l)
{
    pthread_mutex_lock(&l->mutex);
}

void leases_unlock(leases *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* -------------------------------------------------------------------- watching -- */

static int is_watched(const hold *h)
{
    return h->loss != NULL && !h->reported && !h->paused;
}

/* Why a hold is not certain any more, as far as this process knows; TL_OK when it is.  While its
 * session is between two servers the holder may count on nothing, but has lost nothing either: it
 * is told once the heartbeat has decided. */
static tl_status why_lost(const hold *h)
{
    if (h->is_taken)
        return TL_LOST;
    if (grant_left_ms(&h->grant) > 0)
        return TL_OK;
    if (clock_left_ms(h->grant.until_ms) == 0)
        return TL_TIMEOUT;
    if (life_is_between(h->grant.life))
        return TL_OK;
    return life_is_over(h->grant.life) ? TL_SESSION_LOST : TL_UNREACHABLE;
}

/* Needs: the mutex held; it is released meanwhile. */
static void tell(leases *l, hold *h, tl_status why)
{
    const char *resource = h->grant.names[h->is_taken ? h->taken : 0];

    h->in_hand = 1;
    h->reported = 1;
    atomic_store(&h->grant.lost, 1);
    pthread_mutex_unlock(&l->mutex);
    log_line(&l->client->logger, TL_WARNING, NULL, h->fences[0],
             "the lock of %s is not certain any more: %s", resource, tl_status_text(why));
    h->loss(h->loss_context, resource, why);
    pthread_mutex_lock(&l->mutex);
    h->in_hand = 0;
    pthread_cond_broadcast(&l->looked_away);
}

/* Tells of one hold that is lost; 0: none is.  *wake_ms: when the next one may be, a beat from now
 * at the latest, since a session may be declared dead.  Needs: the mutex held. */
static int tell_one(leases *l, int64_t *wake_ms)
{
    *wake_ms = CLOCK_NEVER;
    for (hold *h = l->first; h != NULL; h = h->next) {
        const tl_status why = is_watched(h) ? why_lost(h) : TL_OK;
        int64_t left_ms = grant_left_ms(&h->grant), until_ms;

        if (why != TL_OK) {
            tell(l, h, why);
            return 1;
        }
        if (left_ms == 0 || left_ms > l->client->config.beat_ms)
            left_ms = l->client->config.beat_ms;
        until_ms = clock_deadline(left_ms);
        if (is_watched(h) && until_ms < *wake_ms)
            *wake_ms = until_ms;
    }
    return 0;
}

static void *watch(void *argument)
{
    leases *l = argument;
    int64_t wake_ms;

    pthread_mutex_lock(&l->mutex);
    while (!l->stopping)
        if (!tell_one(l, &wake_ms))
            clock_wait(&l->wake, &l->mutex, wake_ms);
    pthread_mutex_unlock(&l->mutex);
    return NULL;
}

/* ----------------------------------------------------------------- the rows -- */

/* Copies the watched hold that was looked at longest ago, before since_ms; 0: there is none.
 * Needs: the mutex held. */
static int copy_next(leases *l, int64_t since_ms)
{
    hold *next = NULL;

    for (hold *h = l->first; h != NULL; h = h->next)
        if (is_watched(h) && h->looked_ms < since_ms &&
            (next == NULL || h->looked_ms < next->looked_ms))
            next = h;
    if (next == NULL)
        return 0;
    next->looked_ms = clock_boottime_ms();
    l->read.count = next->grant.count;
    memcpy(l->read.token, next->grant.token, sizeof l->read.token);
    for (size_t i = 0; i < next->grant.count; i++)
        text_copy(l->read.names[i], sizeof l->read.names[i], next->grant.names[i]);
    return 1;
}

/* Whether the row still carries this hold's token; 1 also when the server cannot be asked now. */
static int row_is_mine(db *connection, const leases *l, size_t i)
{
    db_result result = DB_RESULT_INIT;
    int mine = 1;

    if (store_resource_now(connection, l->read.names[i], l->read.token, &result) == DB_DONE)
        mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    db_result_free(&result);
    return mine;
}

/* The index of the first resource that is not this hold's any more; count: there is none. */
static size_t find_taken(const leases *l)
{
    size_t i = 0;
    db *connection;

    if (pool_get(l->client->connections, POOL_QUICK, READ_WAIT_MS, &connection) != TL_OK)
        return l->read.count;
    while (i < l->read.count && db_usable(connection) && row_is_mine(connection, l, i))
        i++;
    if (!db_usable(connection))
        i = l->read.count;
    pool_put(l->client->connections, connection);
    return i;
}

/* The hold may be gone, or its holder be giving it back, and what was read be its own unlock.
 * Needs: the mutex held. */
static void mark_taken(leases *l, size_t taken)
{
    for (hold *h = l->first; h != NULL; h = h->next)
        if (is_watched(h) && memcmp(h->grant.token, l->read.token, sizeof l->read.token) == 0) {
            h->is_taken = 1;
            h->taken = taken;
            pthread_cond_broadcast(&l->wake);
        }
}

static void look_at_rows(client_part *part)
{
    leases *l = (leases *)part;
    const int64_t since_ms = clock_boottime_ms();
    const int64_t end_ms = clock_deadline(l->client->config.beat_ms / 2);

    pthread_mutex_lock(&l->mutex);
    while (clock_left_ms(end_ms) > 0 && copy_next(l, since_ms)) {
        size_t taken;

        pthread_mutex_unlock(&l->mutex);
        taken = find_taken(l);
        pthread_mutex_lock(&l->mutex);
        if (taken < l->read.count)
            mark_taken(l, taken);
    }
    pthread_mutex_unlock(&l->mutex);
}

/* Needs: the mutex held. */
static tl_status start_watcher(leases *l)
{
    sigset_t all, before;
    int failed;

    if (l->thread_started)
        return TL_OK;
    /* Signals are for the program's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&l->thread, NULL, watch, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(TL_NO_MEMORY, "the thread that watches locks could not be started");
    l->thread_started = 1;
    return TL_OK;
}

/* ------------------------------------------------------------------- the list -- */

tl_status leases_add(leases *l, hold *h)
{
    tl_status status = TL_OK;

    if (h->loss == NULL && !h->by_thread)
        return TL_OK;
    pthread_mutex_lock(&l->mutex);
    if (h->loss != NULL)
        status = start_watcher(l);
    if (status == TL_OK && !h->listed) {
        h->next = l->first;
        l->first = h;
        h->listed = 1;
    }
    h->paused = h->reported = h->is_taken = 0;
    h->looked_ms = clock_boottime_ms();
    pthread_cond_broadcast(&l->wake);
    pthread_mutex_unlock(&l->mutex);
    return status;
}

void leases_pause(leases *l, hold *h)
{
    pthread_mutex_lock(&l->mutex);
    h->paused = 1;
    while (h->in_hand)
        pthread_cond_wait(&l->looked_away, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
}

void leases_resume(leases *l, hold *h)
{
    pthread_mutex_lock(&l->mutex);
    h->paused = 0;
    pthread_cond_broadcast(&l->wake);
    pthread_mutex_unlock(&l->mutex);
}

void leases_drop(leases *l, hold *h)
{
    hold **link = &l->first;

    pthread_mutex_lock(&l->mutex);
    while (h->in_hand)
        pthread_cond_wait(&l->looked_away, &l->mutex);
    if (h->listed) {
        while (*link != h)
            link = &(*link)->next;
        *link = h->next;
        h->listed = 0;
    }
    pthread_mutex_unlock(&l->mutex);
}

void leases_wake(leases *l)
{
    pthread_mutex_lock(&l->mutex);
    pthread_cond_broadcast(&l->wake);
    pthread_mutex_unlock(&l->mutex);
}

hold *leases_find(leases *l, const char *resource, uint64_t thread)
{
    for (hold *h = l->first; h != NULL; h = h->next)
        if (h->by_thread && h->depth > 0 && !h->paused && h->owner == thread &&
            strcmp(h->grant.names[0], resource) == 0)
            return h;
    return NULL;
}
