/*
 * Lends connections, first come first served.  Touches connections, and its own memory.
 *
 * Each connection that may exist has a place.  A place is EMPTY; or somebody is FILLING it, that is
 * connecting, or closing what was in it; or its connection is IDLE or LENT.  One function changes
 * that state.  Connecting, rolling back, asking and closing happen outside the mutex.
 *
 * A thread that finds no place queues at the end of its kind's queue, and sleeps on a condition
 * variable of its own.  A free connection, or an empty place, is handed directly to the first of
 * the queue, so that no later thread can take it.
 */
#include "pool/pool.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "pool/glance.h"
#include "pool/hosts.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

/* A connection that was idle for longer is pinged before it is lent. */
#define POOL_STALE_MS 30000

enum place_state { PLACE_EMPTY, PLACE_FILLING, PLACE_IDLE, PLACE_LENT };

struct place {
    pool_kind kind;
    enum place_state state;
    db *connection; /* if IDLE or LENT */
    reached how;    /* the same */
    int64_t idle_since_ms;
    struct place *next; /* if EMPTY or IDLE */
};

struct waiter {
    pthread_cond_t given;
    struct place *place; /* FILLING or LENT, once it was given one; else NULL */
    struct waiter *next;
};

struct queue {
    struct place *idle, *empty; /* stacks: the place that was put last is taken first */
    struct waiter *first, **end;
    pool_waits waits;
};

struct extra {
    db *connection;
    pool_kind kind;
    reached how;
    struct extra *next;
};

struct pool {
    /* fixed after pool_new() */
    db_options connect[POOL_KINDS];
    char *option_file, *group, *over_group, *database, *user, *password;
    unsigned generation;
    tl_status (*opened)(void *context, db *connection, pool_opening what);
    void *opened_context;
    db_hosts named;
    hosts *hosts; /* NULL: there is one */
    glance at_one;
    int64_t look_every_ms;
    struct place *places;
    size_t place_count;

    pthread_mutex_t mutex;
    pthread_t holder;
    int held;
    /* under the mutex */
    struct queue queues[POOL_KINDS];
    struct extra *extras;
    db_counters closed;
    uint64_t lost, reconnects; /* connections lost and not replaced yet; replaced */
};

/* ------------------------------------------------------------- the mutex -- */

static void lock(pool *p)
{
    pthread_mutex_lock(&p->mutex);
    p->holder = pthread_self();
    p->held = 1;
}

static void unlock(pool *p)
{
    p->held = 0;
    pthread_mutex_unlock(&p->mutex);
}

/* Others may hold the mutex during clock_wait(). */
static int wait_for(pool *p, struct waiter *waiter, int64_t deadline_ms)
{
    int result;

    p->held = 0;
    result = clock_wait(&waiter->given, &p->mutex, deadline_ms);
    p->holder = pthread_self();
    p->held = 1;
    return result;
}

#define ASSERT_HELD(p) assert((p)->held &&pthread_equal((p)->holder, pthread_self()))

/* ------------------------------------------------------------ the places -- */

/* Needs: pool->mutex held. */
static void place_move(pool *p, struct place *place, enum place_state state, db *connection)
{
    struct queue *queue = &p->queues[place->kind];

    ASSERT_HELD(p);
    assert(place->state != state);
    assert((state == PLACE_IDLE || state == PLACE_LENT) == (connection != NULL));
    assert(state != PLACE_EMPTY || place->state == PLACE_FILLING);
    assert(state != PLACE_IDLE || place->state == PLACE_LENT);
    place->state = state;
    place->connection = connection;
    if (state == PLACE_EMPTY) {
        place->next = queue->empty;
        queue->empty = place;
    } else if (state == PLACE_IDLE) {
        place->idle_since_ms = clock_boottime_ms();
        place->next = queue->idle;
        queue->idle = place;
    }
}

/* Takes an idle connection or, without one, an empty place to fill. Needs: pool->mutex held. */
static struct place *place_take(pool *p, pool_kind kind)
{
    struct queue *queue = &p->queues[kind];
    struct place *place = queue->idle;

    ASSERT_HELD(p);
    if (place) {
        queue->idle = place->next;
        place_move(p, place, PLACE_LENT, place->connection);
        return place;
    }
    place = queue->empty;
    if (place) {
        queue->empty = place->next;
        place_move(p, place, PLACE_FILLING, NULL);
    }
    return place;
}

/* Gives the place, LENT or FILLING, to the first in the queue. Needs: pool->mutex held. */
static int place_hand_over(pool *p, struct place *place)
{
    struct queue *queue = &p->queues[place->kind];
    struct waiter *waiter = queue->first;

    ASSERT_HELD(p);
    if (!waiter)
        return 0;
    queue->first = waiter->next;
    if (!queue->first)
        queue->end = &queue->first;
    waiter->place = place;
    pthread_cond_signal(&waiter->given);
    return 1;
}

/* Needs: pool->mutex held. */
static struct place *place_of(pool *p, const db *connection)
{
    size_t i;

    ASSERT_HELD(p);
    for (i = 0; i < p->place_count; i++)
        if (p->places[i].connection == connection && p->places[i].state == PLACE_LENT)
            return &p->places[i];
    return NULL;
}

static void note_host(pool *p, pool_kind kind, const db *connection, const reached *how)
{
    const db_options *o = &p->connect[kind];
    const unsigned silent_s =
        o->silent_s > 0 && o->silent_s < o->read_timeout_s ? o->silent_s : o->read_timeout_s;

    hosts_note(p->hosts, connection, how, (int64_t)silent_s * 900);
}

/* Closes the connection of a place that is LENT to the calling thread, and leaves the place
 * FILLING. */
static void place_close(pool *p, struct place *place)
{
    db *connection = place->connection;

    note_host(p, place->kind, connection, &place->how);
    lock(p);
    db_count_add(&p->closed, connection);
    p->lost++;
    place_move(p, place, PLACE_FILLING, NULL);
    unlock(p);
    db_close(connection);
}

/* The same, and the place goes to the next of the queue. */
static void place_give_up(pool *p, struct place *place)
{
    place_close(p, place);
    lock(p);
    if (!place_hand_over(p, place))
        place_move(p, place, PLACE_EMPTY, NULL);
    unlock(p);
}

/* Whoever waits at a host that takes no connection any more hears of it now. */
static void cut_silent(pool *p)
{
    struct extra *extra;
    size_t host;

    while (hosts_fell_silent(p->hosts, &host)) {
        lock(p);
        for (size_t i = 0; i < p->place_count; i++)
            if (p->places[i].connection != NULL && p->places[i].how.host == host)
                db_cut(p->places[i].connection);
        for (extra = p->extras; extra != NULL; extra = extra->next)
            if (extra->how.host == host)
                db_cut(extra->connection);
        unlock(p);
    }
}

/* No answer of a server that is left is believed, so nobody waits for one: a primary that is cut off
 * from its replica would let each commit wait for as long as an answer may take, a heartbeat's and
 * that of a settled answer too. */
static void cut_left(pool *p)
{
    struct extra *extra;

    lock(p);
    for (extra = p->extras; extra != NULL; extra = extra->next)
        if (db_state_of(db_server_of(extra->connection)) == DB_SERVER_LEFT)
            db_cut(extra->connection);
    for (size_t i = 0; i < p->place_count; i++)
        if (p->places[i].state == PLACE_LENT &&
            db_state_of(db_server_of(p->places[i].connection)) == DB_SERVER_LEFT)
            db_cut(p->places[i].connection);
    unlock(p);
}

static tl_status open_connection(pool *p, pool_kind kind, db **out, reached *how)
{
    tl_status status;

    memset(how, 0, sizeof *how);
    if (p->hosts != NULL) {
        status = hosts_open(p->hosts, &p->connect[kind], out, how);
        cut_silent(p);
        return status;
    }
    status = db_open(out, &p->connect[kind]);
    if (status != TL_OK || p->opened == NULL)
        return status;
    status = p->opened(p->opened_context, *out, POOL_KEPT);
    if (status != TL_OK) {
        db_close(*out);
        *out = NULL;
    }
    return status;
}

/* Connects for a place that is FILLING; after a failure the place goes to the next of the queue. */
static tl_status place_open(pool *p, struct place *place)
{
    db *connection = NULL;
    reached how;
    tl_status status = open_connection(p, place->kind, &connection, &how);

    lock(p);
    if (status == TL_OK) {
        place->how = how;
        place_move(p, place, PLACE_LENT, connection);
        if (p->lost) {
            p->lost--;
            p->reconnects++;
        }
    } else if (!place_hand_over(p, place)) {
        place_move(p, place, PLACE_EMPTY, NULL);
    }
    unlock(p);
    return status;
}

/* --------------------------------------------------------- making, freeing -- */

static int keep_text(char **to, const char *from)
{
    *to = memory_dup_text(from);
    return from && !*to;
}

static int keep_options(pool *p, const pool_options *options)
{
    int kind;

    if (keep_text(&p->option_file, options->connect.option_file) ||
        keep_text(&p->group, options->connect.group) ||
        keep_text(&p->over_group, options->connect.over_group) ||
        keep_text(&p->database, options->connect.database) ||
        keep_text(&p->user, options->connect.user) ||
        keep_text(&p->password, options->connect.password))
        return 1;
    for (kind = 0; kind < POOL_KINDS; kind++) {
        p->connect[kind] = options->connect;
        p->connect[kind].option_file = p->option_file;
        p->connect[kind].group = p->group;
        p->connect[kind].over_group = p->over_group;
        p->connect[kind].database = p->database;
        p->connect[kind].user = p->user;
        p->connect[kind].password = p->password;
    }
    p->connect[POOL_BUSINESS].lock_wait_s = options->business_lock_wait_s;
    p->connect[POOL_BOOKS].is_for_books = 1;
    p->connect[POOL_BOOKS].books_lock_wait_s = options->business_lock_wait_s;
    if (options->beat_read_timeout_s > 0)
        p->connect[POOL_BEAT].read_timeout_s = options->beat_read_timeout_s;
    return 0;
}

/* A machine that is gone is left as early as a silent heartbeat is. */
static tl_status make_hosts(pool *p, const pool_options *options)
{
    tl_status status = db_hosts_read(&p->named, &options->connect);

    if (status == TL_OK && p->named.count > 1)
        status = hosts_new(&p->hosts, &p->named, options);
    for (int kind = 0; kind < POOL_KINDS; kind++) {
        p->connect[kind].host = p->named.count == 1 ? &p->named.host[0] : NULL;
        p->connect[kind].silent_s = p->hosts != NULL ? options->beat_read_timeout_s : 0;
    }
    return status;
}

/* A password is not left in memory that others get. */
static void free_texts(pool *p)
{
    if (p->password)
        explicit_bzero(p->password, strlen(p->password));
    memory_free(p->password);
    memory_free(p->user);
    memory_free(p->option_file);
    memory_free(p->group);
    memory_free(p->over_group);
    memory_free(p->database);
}

static int make_places(pool *p, const pool_options *options)
{
    struct place *place;
    int kind;
    unsigned i;

    for (kind = 0; kind < POOL_KINDS; kind++)
        p->place_count += options->size[kind];
    p->places = memory_new_array(p->place_count, sizeof(*p->places));
    if (!p->places)
        return 1;
    place = p->places;
    for (kind = 0; kind < POOL_KINDS; kind++) {
        p->queues[kind].end = &p->queues[kind].first;
        for (i = 0; i < options->size[kind]; i++, place++) {
            place->kind = (pool_kind)kind;
            place->next = p->queues[kind].empty;
            p->queues[kind].empty = place;
        }
    }
    return 0;
}

tl_status pool_new(pool **out, const pool_options *options)
{
    pool *p;
    tl_status status;

    if (!options->size[POOL_QUICK] || !options->size[POOL_BUSINESS])
        return error_set(TL_INVALID, "a pool needs at least one connection of each kind");
    p = memory_new(sizeof(*p));
    if (!p)
        return error_set(TL_NO_MEMORY, "out of memory for the connections");
    p->generation = process_generation();
    p->opened = options->opened;
    p->opened_context = options->opened_context;
    p->look_every_ms = options->look_every_ms;
    status = keep_options(p, options) || make_places(p, options)
                 ? error_set(TL_NO_MEMORY, "out of memory for the connections")
                 : make_hosts(p, options);
    if (status == TL_OK && pthread_mutex_init(&p->mutex, NULL))
        status = error_set(TL_NO_MEMORY, "out of memory for the connections");
    if (status == TL_OK &&
        glance_init(&p->at_one, &p->connect[POOL_BEAT], p->opened, p->opened_context)) {
        pthread_mutex_destroy(&p->mutex);
        status = error_set(TL_NO_MEMORY, "out of memory for the connections");
    }
    if (status != TL_OK) {
        hosts_free(p->hosts, 1);
        memory_free(p->places);
        free_texts(p);
        memory_free(p);
        return status;
    }
    *out = p;
    return TL_OK;
}

/* In the child of a fork the mutex may be held for ever by a thread that does not exist here, and a
 * connection that was lent may be half way through an answer. */
static void free_connections(pool *p, int here)
{
    size_t i;
    struct extra *extra;

    for (i = 0; i < p->place_count; i++) {
        struct place *place = &p->places[i];

        assert(!here || place->state == PLACE_IDLE || place->state == PLACE_EMPTY);
        if (here || place->state == PLACE_IDLE)
            db_close(place->connection);
        else
            db_abandon(place->connection);
    }
    assert(!here || !p->extras);
    while ((extra = p->extras) != NULL) {
        p->extras = extra->next;
        if (!here)
            db_abandon(extra->connection);
        memory_free(extra);
    }
}

void pool_free(pool *p)
{
    int here;

    if (!p)
        return;
    here = p->generation == process_generation();
    free_connections(p, here);
    hosts_close(p->hosts, here);
    glance_end(&p->at_one, here);
    if (here)
        pthread_mutex_destroy(&p->mutex);
    hosts_free(p->hosts, here);
    memory_free(p->places);
    free_texts(p);
    memory_free(p);
}

int pool_has_list(const pool *p)
{
    return p->hosts != NULL;
}

tl_status pool_check_hosts(pool *p)
{
    return p->hosts != NULL ? hosts_check(p->hosts, &p->connect[POOL_BEAT]) : TL_OK;
}

static int leads_elsewhere(const db *connection, const life *home)
{
    const db_server *server = db_server_of(connection);

    return home != NULL && server != NULL && !life_is_at(home, server);
}

/* Takes an idle connection that would not be lent again, or leads elsewhere; NULL: there is
 * none. */
static struct place *take_left(pool *p, const life *home)
{
    struct place *left = NULL, **link;

    lock(p);
    for (int kind = 0; kind < POOL_KINDS && left == NULL; kind++) {
        link = &p->queues[kind].idle;
        while (*link != NULL && db_usable((*link)->connection) &&
               hosts_lends(p->hosts, &(*link)->how) && !leads_elsewhere((*link)->connection, home))
            link = &(*link)->next;
        left = *link;
        if (left != NULL) {
            *link = left->next;
            place_move(p, left, PLACE_LENT, left->connection);
        }
    }
    unlock(p);
    return left;
}

static void close_left(pool *p, const life *home)
{
    struct place *place;

    while ((place = take_left(p, home)) != NULL)
        place_give_up(p, place);
}

tl_status pool_look_around(pool *p, const life *home)
{
    tl_status status = TL_OK;

    if (p->hosts != NULL) {
        status = hosts_look_around(p->hosts, &p->connect[POOL_BEAT]);
        cut_silent(p);
        cut_left(p);
    } else if (home != NULL) {
        glance_rest(&p->at_one);
    }
    close_left(p, home);
    return status;
}

void pool_glance(pool *p)
{
    if (p->hosts == NULL)
        glance_once(&p->at_one);
    else
        hosts_glance(p->hosts);
    cut_left(p);
}

int pool_all_seen(pool *p, hosts_unseen *unseen)
{
    return p->hosts == NULL || hosts_all_seen(p->hosts, &p->connect[POOL_BEAT], unseen);
}

/* Another server may have been accepted while the one in use still answers.  Before a connection is
 * taken: what is idle is judged with what was seen. */
static void look_at_use(pool *p)
{
    if (p->hosts == NULL || p->look_every_ms == 0)
        return;
    if (!hosts_look_if_due(p->hosts, &p->connect[POOL_BEAT], p->look_every_ms))
        return;
    cut_silent(p);
    close_left(p, NULL);
}

/* ------------------------------------------------------------ get and put -- */

/* Sleeps in the queue until a place is given or the deadline is over. Needs: pool->mutex held. */
static struct place *queue_up(pool *p, pool_kind kind, int64_t deadline_ms)
{
    const int64_t since_us = clock_boottime_us();
    struct queue *queue = &p->queues[kind];
    struct waiter self, **link;

    ASSERT_HELD(p);
    memset(&self, 0, sizeof(self));
    if (clock_condition_init(&self.given))
        return NULL;
    *queue->end = &self;
    queue->end = &self.next;
    while (!self.place && wait_for(p, &self, deadline_ms) == 0)
        ;
    if (!self.place) {
        for (link = &queue->first; *link != &self; link = &(*link)->next)
            ;
        *link = self.next;
        if (!self.next)
            queue->end = link;
    }
    pthread_cond_destroy(&self.given);
    queue->waits.waits++;
    queue->waits.waited_us += (uint64_t)(clock_boottime_us() - since_us);
    return self.place;
}

static int still_there(pool *p, const struct place *place)
{
    if (!db_usable(place->connection) || !hosts_lends(p->hosts, &place->how) ||
        !db_alive(place->connection))
        return 0;
    return clock_boottime_ms() - place->idle_since_ms < POOL_STALE_MS || db_ping(place->connection);
}

const char *pool_kind_name(pool_kind kind)
{
    static const char *const names[POOL_KINDS] = {"quick", "business", "books", "beat"};

    return names[kind];
}

tl_status pool_get(pool *p, pool_kind kind, int64_t wait_ms, db **out)
{
    struct place *place = NULL;
    tl_status status;
    int filled;

    if (p->generation != process_generation())
        return error_set(TL_WRONG_PROCESS, "the connections belong to the parent process");
    look_at_use(p);
    lock(p);
    if (!p->queues[kind].first)
        place = place_take(p, kind);
    if (!place && wait_ms > 0)
        place = queue_up(p, kind, clock_deadline(wait_ms));
    filled = place && place->state == PLACE_LENT;
    p->queues[kind].waits.timeouts += place == NULL;
    unlock(p);
    if (!place)
        return error_set(TL_OVERLOADED,
                         "none of the %s connections became free within "
                         "%lld ms",
                         pool_kind_name(kind), (long long)wait_ms);
    if (filled && still_there(p, place)) {
        *out = place->connection;
        return TL_OK;
    }
    if (filled)
        place_close(p, place);
    status = place_open(p, place);
    if (status == TL_OK)
        *out = place->connection;
    return status;
}

void pool_put(pool *p, db *connection)
{
    struct place *place;

    if (!connection)
        return;
    /* In a child of a fork it stays in its place; pool_free() abandons it with the others. */
    if (p->generation != process_generation())
        return;
    if (!db_usable(connection) && (!db_in_transaction(connection) ||
                                   db_rollback(connection) != DB_DONE || !db_usable(connection))) {
        lock(p);
        place = place_of(p, connection);
        unlock(p);
        assert(place);
        place_give_up(p, place);
        return;
    }
    lock(p);
    place = place_of(p, connection);
    assert(place);
    place->idle_since_ms = clock_boottime_ms();
    if (!place_hand_over(p, place))
        place_move(p, place, PLACE_IDLE, connection);
    unlock(p);
}

void pool_put_lost(pool *p, db *connection)
{
    db_spoil(connection);
    pool_put(p, connection);
}

unsigned pool_lent(pool *p)
{
    const struct extra *extra;
    unsigned count = 0;

    if (p->generation != process_generation())
        return 0;
    lock(p);
    for (size_t i = 0; i < p->place_count; i++)
        count += p->places[i].state == PLACE_LENT || p->places[i].state == PLACE_FILLING;
    for (extra = p->extras; extra; extra = extra->next)
        count++;
    unlock(p);
    return count;
}

/* ----------------------------------------------------- outside the bounds -- */

tl_status pool_open_extra(pool *p, pool_kind kind, db **out)
{
    struct extra *extra;
    tl_status status;

    if (p->generation != process_generation())
        return error_set(TL_WRONG_PROCESS, "the connections belong to the parent process");
    extra = memory_new(sizeof(*extra));
    if (!extra)
        return error_set(TL_NO_MEMORY, "out of memory for a connection");
    look_at_use(p);
    extra->kind = kind;
    status = open_connection(p, kind, &extra->connection, &extra->how);
    if (status != TL_OK) {
        memory_free(extra);
        return status;
    }
    lock(p);
    extra->next = p->extras;
    p->extras = extra;
    unlock(p);
    *out = extra->connection;
    return TL_OK;
}

void pool_close_extra(pool *p, db *connection)
{
    struct extra **link, *extra;

    if (!connection)
        return;
    /* In a child of a fork another thread of the parent may have been using it; pool_free()
     * abandons it. */
    if (p->generation != process_generation())
        return;
    lock(p);
    for (link = &p->extras; *link && (*link)->connection != connection; link = &(*link)->next)
        ;
    extra = *link;
    assert(extra);
    *link = extra->next;
    db_count_add(&p->closed, connection);
    unlock(p);
    note_host(p, extra->kind, connection, &extra->how);
    memory_free(extra);
    db_close(connection);
}

void pool_count(pool *p, db_counters *sum, uint64_t *reconnects)
{
    struct extra *extra;
    size_t i;

    memset(sum, 0, sizeof(*sum));
    *reconnects = 0;
    if (p->generation != process_generation())
        return;
    lock(p);
    *sum = p->closed;
    *reconnects = p->reconnects;
    for (i = 0; i < p->place_count; i++)
        if (p->places[i].connection)
            db_count_add(sum, p->places[i].connection);
    for (extra = p->extras; extra; extra = extra->next)
        db_count_add(sum, extra->connection);
    unlock(p);
}

pool_waits pool_count_waits(pool *p, pool_kind kind)
{
    pool_waits waits = {0, 0, 0};

    if (p->generation != process_generation())
        return waits;
    lock(p);
    waits = p->queues[kind].waits;
    unlock(p);
    return waits;
}

unsigned pool_size(const pool *p, pool_kind kind)
{
    unsigned count = 0;

    for (size_t i = 0; i < p->place_count; i++)
        count += p->places[i].kind == kind;
    return count;
}

unsigned pool_waiting(pool *p, pool_kind kind)
{
    const struct waiter *waiter;
    unsigned count = 0;

    if (p->generation != process_generation())
        return 0;
    lock(p);
    for (waiter = p->queues[kind].first; waiter; waiter = waiter->next)
        count++;
    unlock(p);
    return count;
}
