/*
 * Lists the holds of one client that others must find: other handles of the same thread, and the
 * watcher, which tells a holder that its lock is not certain any more.
 *
 * The watcher is one thread, started with the first hold that has a loss callback.  It follows the
 * deadlines by this machine's clock.  Once in a beat it also reads the rows, since an operator may
 * take a lock away at any time.  A hold that it works on is neither freed nor given back; whoever
 * wants to do that waits.  Touches its list, and reads resource_lock.
 */
#include "lease_mutex/mutex.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

/* How long the watcher waits for a connection before it leaves the rows for later. */
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
};

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

/* Whether the row still carries this hold's token and fence; 1 also when the server cannot be asked
 * now. */
static int row_is_mine(db *connection, const hold *h, size_t i)
{
    db_result result = DB_RESULT_INIT;
    int mine = 1;

    if (store_resource_now(connection, h->grant.names[i], h->grant.token, &result) == DB_DONE)
        mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    db_result_free(&result);
    return mine;
}

/* The first resource that is not this hold's any more, or NULL. */
static const char *find_lost(const leases *l, const hold *h)
{
    const char *lost = NULL;
    db *connection;

    if (pool_get(l->client->connections, POOL_QUICK, READ_WAIT_MS, &connection) != TL_OK)
        return NULL;
    for (size_t i = 0; i < h->grant.count && lost == NULL && db_usable(connection); i++)
        if (!row_is_mine(connection, h, i))
            lost = h->grant.names[i];
    pool_put(l->client->connections, connection);
    return lost;
}

/* Why a hold is not certain any more, as far as this process knows; TL_OK when it is.  While its
 * session is between two servers the holder may count on nothing, but has lost nothing either: it
 * is told once the heartbeat has decided. */
static tl_status local_loss(const hold *h)
{
    if (grant_left_ms(&h->grant) > 0)
        return TL_OK;
    if (clock_left_ms(h->grant.until_ms) == 0)
        return TL_TIMEOUT;
    if (life_is_between(h->grant.life))
        return TL_OK;
    return life_is_over(h->grant.life) ? TL_SESSION_LOST : TL_UNREACHABLE;
}

/* Looks at one hold.  Needs: the mutex held; it is released meanwhile. */
static void look_at(leases *l, hold *h)
{
    const char *resource = h->grant.names[0];
    tl_status why = local_loss(h);

    h->in_hand = 1;
    h->looked_ms = clock_boottime_ms();
    pthread_mutex_unlock(&l->mutex);
    if (why == TL_OK) {
        resource = find_lost(l, h);
        if (resource != NULL)
            why = TL_LOST;
    }
    pthread_mutex_lock(&l->mutex);
    /* Its holder is giving it back: what was read may be the holder's own unlock. */
    if (why != TL_OK && !h->paused) {
        h->reported = 1;
        atomic_store(&h->grant.lost, 1);
        pthread_mutex_unlock(&l->mutex);
        log_line(&l->client->logger, TL_WARNING, NULL, h->fences[0],
                 "the lock of %s is not certain any more: %s", resource, tl_status_text(why));
        h->loss(h->loss_context, resource, why);
        pthread_mutex_lock(&l->mutex);
    }
    h->in_hand = 0;
    pthread_cond_broadcast(&l->looked_away);
}

/* When the watcher has to look at this hold next. */
static int64_t due_ms(const leases *l, const hold *h)
{
    int64_t due = h->looked_ms + l->client->config.beat_ms;

    return h->grant.until_ms < due ? h->grant.until_ms : due;
}

/* The hold that is due first, or NULL.  Needs: the mutex held. */
static hold *next_due(const leases *l)
{
    hold *first = NULL;

    for (hold *h = l->first; h != NULL; h = h->next)
        if (h->loss != NULL && !h->reported && !h->paused &&
            (first == NULL || due_ms(l, h) < due_ms(l, first)))
            first = h;
    return first;
}

static void *watch(void *argument)
{
    leases *l = argument;

    pthread_mutex_lock(&l->mutex);
    while (!l->stopping) {
        hold *h = next_due(l);

        if (h != NULL && clock_left_ms(due_ms(l, h)) == 0)
            look_at(l, h);
        else
            clock_wait(&l->wake, &l->mutex, h != NULL ? due_ms(l, h) : CLOCK_NEVER);
    }
    pthread_mutex_unlock(&l->mutex);
    return NULL;
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
    h->paused = 0;
    h->reported = 0;
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
