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
#include "lease/lease.h"

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

struct holds {
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

static void free_holds(client_part *part)
{
    holds *all = (holds *)part;

    /* In a child of a fork there is no watcher, and the mutex may be held for ever. */
    if (all->generation == process_generation()) {
        pthread_mutex_lock(&all->mutex);
        all->stopping = 1;
        pthread_cond_broadcast(&all->wake);
        pthread_mutex_unlock(&all->mutex);
        if (all->thread_started)
            pthread_join(all->thread, NULL);
        pthread_cond_destroy(&all->wake);
        pthread_cond_destroy(&all->looked_away);
        pthread_mutex_destroy(&all->mutex);
    }
    memory_free(all);
}

tl_status holds_of(tl_client *client, holds **out)
{
    client_part *there = atomic_load(&client->holds);
    holds *all;

    if (there == NULL) {
        all = memory_new(sizeof *all);
        if (all == NULL || clock_condition_init(&all->wake) != 0) {
            memory_free(all);
            return error_set(TL_NO_MEMORY, "out of memory for the client's mutexes");
        }
        pthread_cond_init(&all->looked_away, NULL);
        pthread_mutex_init(&all->mutex, NULL);
        all->part.free = free_holds;
        all->part.round = look_at_rows;
        all->client = client;
        all->generation = client->generation;
        if (atomic_compare_exchange_strong(&client->holds, &there, &all->part))
            there = &all->part;
        else
            free_holds(&all->part);
    }
    *out = (holds *)there;
    return TL_OK;
}

void holds_lock(holds *all)
{
    pthread_mutex_lock(&all->mutex);
}

void holds_unlock(holds *all)
{
    pthread_mutex_unlock(&all->mutex);
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
static void tell(holds *all, hold *h, tl_status why)
{
    const char *resource = h->grant.names[h->is_taken ? h->taken : 0];

    h->in_hand = 1;
    h->reported = 1;
    atomic_store(&h->grant.lost, 1);
    pthread_mutex_unlock(&all->mutex);
    log_line(&all->client->logger, TL_WARNING, NULL, h->fences[0],
             "the lock of %s is not certain any more: %s", resource, tl_status_text(why));
    h->loss(h->loss_context, resource, why);
    pthread_mutex_lock(&all->mutex);
    h->in_hand = 0;
    pthread_cond_broadcast(&all->looked_away);
}

/* Tells of one hold that is lost; 0: none is.  *wake_ms: when the next one may be, a beat from now
 * at the latest, since a session may be declared dead.  Needs: the mutex held. */
static int tell_one(holds *all, int64_t *wake_ms)
{
    *wake_ms = CLOCK_NEVER;
    for (hold *h = all->first; h != NULL; h = h->next) {
        const tl_status why = is_watched(h) ? why_lost(h) : TL_OK;
        int64_t left_ms = grant_left_ms(&h->grant), until_ms;

        if (why != TL_OK) {
            tell(all, h, why);
            return 1;
        }
        if (left_ms == 0 || left_ms > all->client->config.beat_ms)
            left_ms = all->client->config.beat_ms;
        until_ms = clock_deadline(left_ms);
        if (is_watched(h) && until_ms < *wake_ms)
            *wake_ms = until_ms;
    }
    return 0;
}

static void *watch(void *argument)
{
    holds *all = argument;
    int64_t wake_ms;

    pthread_mutex_lock(&all->mutex);
    while (!all->stopping)
        if (!tell_one(all, &wake_ms))
            clock_wait(&all->wake, &all->mutex, wake_ms);
    pthread_mutex_unlock(&all->mutex);
    return NULL;
}

/* ----------------------------------------------------------------- the rows -- */

/* Copies the watched hold that was looked at longest ago, before since_ms; 0: there is none.
 * Needs: the mutex held. */
static int copy_next(holds *all, int64_t since_ms)
{
    hold *next = NULL;

    for (hold *h = all->first; h != NULL; h = h->next)
        if (is_watched(h) && h->looked_ms < since_ms &&
            (next == NULL || h->looked_ms < next->looked_ms))
            next = h;
    if (next == NULL)
        return 0;
    next->looked_ms = clock_boottime_ms();
    all->read.count = next->grant.count;
    memcpy(all->read.token, next->grant.token, sizeof all->read.token);
    for (size_t i = 0; i < next->grant.count; i++)
        text_copy(all->read.names[i], sizeof all->read.names[i], next->grant.names[i]);
    return 1;
}

/* Whether the row still carries this hold's token; 1 also when the server cannot be asked now. */
static int row_is_mine(db *connection, const holds *all, size_t i)
{
    RESULT result = DB_RESULT_INIT;
    int mine = 1;

    if (store_mutexes.now(connection, all->read.names[i], 0, all->read.token, &result) == DB_DONE)
        mine = result.rows == 1 && db_get_int(&result, 0, 0) != 0;
    return mine;
}

/* The index of the first resource that is not this hold's any more; count: there is none. */
static size_t find_taken(const holds *all)
{
    size_t i = 0;
    db *connection;

    if (pool_get(all->client->connections, POOL_QUICK, READ_WAIT_MS, &connection) != TL_OK)
        return all->read.count;
    while (i < all->read.count && db_usable(connection) && row_is_mine(connection, all, i))
        i++;
    if (!db_usable(connection))
        i = all->read.count;
    pool_put(all->client->connections, connection);
    return i;
}

/* The hold may be gone, or its holder be giving it back, and what was read be its own unlock.
 * Needs: the mutex held. */
static void mark_taken(holds *all, size_t taken)
{
    for (hold *h = all->first; h != NULL; h = h->next)
        if (is_watched(h) && memcmp(h->grant.token, all->read.token, sizeof all->read.token) == 0) {
            h->is_taken = 1;
            h->taken = taken;
            pthread_cond_broadcast(&all->wake);
        }
}

static void look_at_rows(client_part *part)
{
    holds *all = (holds *)part;
    const int64_t since_ms = clock_boottime_ms();
    const int64_t end_ms = clock_deadline(all->client->config.beat_ms / 2);

    pthread_mutex_lock(&all->mutex);
    while (clock_left_ms(end_ms) > 0 && copy_next(all, since_ms)) {
        size_t taken;

        pthread_mutex_unlock(&all->mutex);
        taken = find_taken(all);
        pthread_mutex_lock(&all->mutex);
        if (taken < all->read.count)
            mark_taken(all, taken);
    }
    pthread_mutex_unlock(&all->mutex);
}

/* Needs: the mutex held. */
static tl_status start_watcher(holds *all)
{
    sigset_t every, before;
    int failed;

    if (all->thread_started)
        return TL_OK;
    /* Signals are for the program's threads. */
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    failed = pthread_create(&all->thread, NULL, watch, all);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return error_set(TL_NO_MEMORY, "the thread that watches locks could not be started");
    all->thread_started = 1;
    return TL_OK;
}

/* ------------------------------------------------------------------- the list -- */

tl_status holds_add(holds *all, hold *h)
{
    tl_status status = TL_OK;

    if (h->loss == NULL && !h->by_thread)
        return TL_OK;
    pthread_mutex_lock(&all->mutex);
    if (h->loss != NULL)
        status = start_watcher(all);
    if (status == TL_OK && !h->listed) {
        h->next = all->first;
        all->first = h;
        h->listed = 1;
    }
    h->paused = h->reported = h->is_taken = 0;
    h->looked_ms = clock_boottime_ms();
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->mutex);
    return status;
}

void holds_pause(holds *all, hold *h)
{
    pthread_mutex_lock(&all->mutex);
    h->paused = 1;
    while (h->in_hand)
        pthread_cond_wait(&all->looked_away, &all->mutex);
    pthread_mutex_unlock(&all->mutex);
}

void holds_resume(holds *all, hold *h)
{
    pthread_mutex_lock(&all->mutex);
    h->paused = 0;
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->mutex);
}

void holds_drop(holds *all, hold *h)
{
    hold **link = &all->first;

    pthread_mutex_lock(&all->mutex);
    while (h->in_hand)
        pthread_cond_wait(&all->looked_away, &all->mutex);
    if (h->listed) {
        while (*link != h)
            link = &(*link)->next;
        *link = h->next;
        h->listed = 0;
    }
    pthread_mutex_unlock(&all->mutex);
}

void holds_wake(holds *all)
{
    pthread_mutex_lock(&all->mutex);
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->mutex);
}

hold *holds_find(holds *all, const char *resource, uint64_t thread)
{
    for (hold *h = all->first; h != NULL; h = h->next)
        if (h->by_thread && h->depth > 0 && !h->paused && h->owner == thread &&
            strcmp(h->grant.names[0], resource) == 0)
            return h;
    return NULL;
}
