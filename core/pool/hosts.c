/* Chooses among several hosts, and remembers which of them answer.  Touches connections that are
 * being made, and its own memory. */
#include "pool/hosts.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* For so long a connection that leads to no writer is lent again: a failover is noticed soon, and
 * not every statement connects anew meanwhile. */
#define FALLBACK_MS 1000
/* For so long a host that did not answer is left out, at most. */
#define SILENT_MS 5000

/* From the worst to the best. */
enum rank { RANK_NONE, RANK_REPLICA, RANK_READ_ONLY, RANK_MAY_LACK, RANK_WRITER };

struct host {
    /* Fixed. */
    const db_host *at;
    /* Under the mutex. */
    int is_silent, has_fallen;
    int64_t silent_until_ms;
    uint64_t count;      /* rises when all connections to it are to be left */
    int is_seen;         /* it was looked at once */
    int64_t seen_ms;     /* for the first time then */
    char why[ERROR_MAX]; /* it was not */
    /* Under the looking mutex. */
    db *looking;
    tl_status told;
};

struct hosts {
    db_hosts list;
    tl_status (*opened)(void *context, db *connection, pool_opening what);
    void *context;
    int one_writer;
    int64_t silent_ms; /* how long a host that did not answer is left out */
    pthread_mutex_t mutex;
    struct host host[DB_HOSTS_MAX];
    size_t in_use; /* under the mutex */
    int64_t beat_silent_ms;
    pthread_mutex_t looking_mutex; /* of those who look around; taken before the other one */
    /* Under the mutex. */
    int looks;              /* somebody looks, because that is due */
    int64_t waits_until_ms; /* others wait for that one until then at most */
    int64_t looked_ms;      /* and then all that answer were looked at */
    pthread_cond_t looked;
};

tl_status hosts_new(hosts **out, const db_hosts *list, const pool_options *options)
{
    hosts *h = memory_new(sizeof *h);

    if (h == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the hosts");
    assert(options->opened_in_list != NULL);
    h->list = *list;
    h->opened = options->opened_in_list;
    h->context = options->opened_context;
    h->one_writer = options->one_writer;
    /* A beat that is lost leaves time for others in its session: they try again in it. */
    h->beat_silent_ms = (int64_t)options->beat_read_timeout_s * 1000;
    h->silent_ms = h->beat_silent_ms / 2;
    if (h->silent_ms == 0 || h->silent_ms > SILENT_MS)
        h->silent_ms = SILENT_MS;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_mutex_init(&h->looking_mutex, NULL);
    if (clock_condition_init(&h->looked) != 0) {
        pthread_mutex_destroy(&h->looking_mutex);
        pthread_mutex_destroy(&h->mutex);
        memory_free(h);
        return error_set(TL_NO_MEMORY, "a condition variable could not be made");
    }
    for (size_t i = 0; i < list->count; i++)
        h->host[i].at = &h->list.host[i];
    *out = h;
    return TL_OK;
}

void hosts_free(hosts *h, int here)
{
    if (h == NULL)
        return;
    if (here) { /* in a child they would wait for threads that only the parent has */
        pthread_cond_destroy(&h->looked);
        pthread_mutex_destroy(&h->looking_mutex);
        pthread_mutex_destroy(&h->mutex);
    }
    memory_free(h);
}

void hosts_close(hosts *h, int here)
{
    for (size_t i = 0; h != NULL && i < h->list.count; i++) {
        if (here)
            db_close(h->host[i].looking);
        else if (h->host[i].looking != NULL)
            db_abandon(h->host[i].looking);
        h->host[i].looking = NULL;
    }
}

/* ------------------------------------------------------------------ which ones answer -- */

static const char *name_of(const struct host *host, char *to, size_t space)
{
    if (host->at->port != 0)
        snprintf(to, space, "%s:%u", host->at->name, host->at->port);
    else
        text_copy(to, space, host->at->name);
    return to;
}

/* Puts the host's name before the sentence. */
static tl_status named(const struct host *host, tl_status status)
{
    char name[sizeof host->at->name + 12], sentence[ERROR_MAX];

    text_copy(sentence, sizeof sentence, tl_error_message());
    return error_set(status, "%s: %s", name_of(host, name, sizeof name), sentence);
}

/* Of those who find that a silent host may be tried again one does. */
static int may_try(hosts *h, struct host *host)
{
    int may;

    pthread_mutex_lock(&h->mutex);
    may = !host->is_silent || clock_left_ms(host->silent_until_ms) == 0;
    if (host->is_silent && may)
        host->silent_until_ms = clock_deadline(h->silent_ms);
    pthread_mutex_unlock(&h->mutex);
    return may;
}

static void answered(hosts *h, struct host *host, int did)
{
    pthread_mutex_lock(&h->mutex);
    host->has_fallen |= !did && !host->is_silent;
    host->count += !did && !host->is_silent;
    host->is_silent = !did;
    host->silent_until_ms = did ? 0 : clock_deadline(h->silent_ms);
    pthread_mutex_unlock(&h->mutex);
}

/* The time to connect is for all hosts together. */
static unsigned share_s(const hosts *h, const db_options *connect)
{
    const unsigned share = connect->connect_timeout_s / (unsigned)h->list.count;

    return share > 0 ? share : 1;
}

/* It has a server now; or why not, in the last sentence. */
static void note_look(hosts *h, struct host *host, int did)
{
    pthread_mutex_lock(&h->mutex);
    if (did && !host->is_seen)
        host->seen_ms = clock_boottime_ms();
    host->is_seen |= did;
    if (!host->is_seen)
        text_copy(host->why, sizeof host->why, tl_error_message());
    pthread_mutex_unlock(&h->mutex);
}

static tl_status connect_to(hosts *h, struct host *host, const db_options *connect,
                            pool_opening what, db **out)
{
    db_options options = *connect;
    int64_t began_ms;
    tl_status status;

    *out = NULL;
    if (!may_try(h, host))
        return named(host, error_set(TL_UNREACHABLE, "it did not answer a moment ago"));
    options.host = host->at;
    options.connect_timeout_s = share_s(h, connect);
    began_ms = clock_boottime_ms();
    status = db_open(out, &options);
    answered(h, host,
             status != TL_UNREACHABLE ||
                 clock_boottime_ms() - began_ms < (int64_t)options.connect_timeout_s * 900);
    if (status == TL_OK)
        status = h->opened(h->context, *out, what);
    if (status != TL_OK)
        status = named(host, status);
    note_look(h, host, *out != NULL && db_server_of(*out) != NULL);
    if (status == TL_OK)
        return TL_OK;
    db_drop(out);
    return status;
}

/* -------------------------------------------------------------------- which one is it -- */

static enum rank rank_of(const db *connection)
{
    const db_server *server = connection != NULL ? db_server_of(connection) : NULL;

    if (connection == NULL)
        return RANK_NONE;
    switch (db_state_of(server)) {
    case DB_SERVER_LEFT:
        return RANK_NONE;
    case DB_SERVER_WHOLE:
        return atomic_load(&server->takes_no_writes) ? RANK_READ_ONLY : RANK_WRITER;
    case DB_SERVER_REPLICA:
        return RANK_REPLICA;
    case DB_SERVER_MAY_LACK:
    case DB_SERVER_STALE:
    case DB_SERVER_RIVAL:
        break;
    }
    return server != NULL && atomic_load(&server->takes_no_writes) ? RANK_REPLICA : RANK_MAY_LACK;
}

static size_t in_use(hosts *h)
{
    size_t i;

    pthread_mutex_lock(&h->mutex);
    i = h->in_use;
    pthread_mutex_unlock(&h->mutex);
    return i;
}

/* What was reached.  `found` is at the place of its host. */
static void keep(hosts *h, size_t i, enum rank rank, reached *how)
{
    pthread_mutex_lock(&h->mutex);
    how->host = i;
    how->count = h->host[i].count;
    how->until_ms = rank == RANK_WRITER ? 0 : clock_deadline(FALLBACK_MS);
    if (rank == RANK_WRITER)
        h->in_use = i;
    pthread_mutex_unlock(&h->mutex);
}

/* All are looked at before one is taken: a look at a later one can show that an earlier one was
 * replaced. */
static size_t best_of(const hosts *h, db *const found[], size_t first)
{
    size_t best = first;

    for (size_t i = 0; i < h->list.count; i++)
        if (rank_of(found[i]) > rank_of(found[best]))
            best = i;
    return best;
}

/* Whether it is not known which of two servers that take writes is the right one. */
static int is_unclear(const hosts *h, db *const found[], size_t best)
{
    size_t count = 0;

    for (size_t i = 0; i < h->list.count; i++)
        count += rank_of(found[i]) == RANK_MAY_LACK;
    return h->one_writer && rank_of(found[best]) == RANK_MAY_LACK && count > 1;
}

static tl_status look_at_all(hosts *h, const db_options *connect, db *found[], size_t first)
{
    char sentence[ERROR_MAX] = "";
    tl_status why = TL_OK, status;

    for (size_t n = 0; n < h->list.count; n++) {
        const size_t i = (first + n) % h->list.count;

        status = connect_to(h, &h->host[i], connect, POOL_LOOKED, &found[i]);
        if (n == 0 && rank_of(found[i]) == RANK_WRITER)
            return TL_OK; /* it is the one in use */
        /* The sentence of a host that answered says more than that of one that did not. */
        if (status != TL_OK && (why == TL_OK || why == TL_UNREACHABLE)) {
            why = status;
            text_copy(sentence, sizeof sentence, tl_error_message());
        }
    }
    return why == TL_OK ? TL_OK : error_set(why, "%s", sentence);
}

tl_status hosts_open(hosts *h, const db_options *connect, db **out, reached *how)
{
    db *found[DB_HOSTS_MAX] = {NULL};
    const size_t first = in_use(h);
    tl_status status = look_at_all(h, connect, found, first);
    const size_t best = best_of(h, found, first);
    const int unclear = is_unclear(h, found, best);
    enum rank rank;

    *out = found[best];
    for (size_t i = 0; i < h->list.count; i++)
        if (i != best)
            db_close(found[i]);
    rank = unclear ? RANK_NONE : rank_of(*out);
    if (rank == RANK_NONE) {
        db_close(*out);
        *out = NULL;
        if (unclear)
            return error_set(TL_SERVER_UNSAFE,
                             "several hosts of the list take writes, and none of them is known as "
                             "the accepted one: name the one that is meant alone");
        return status != TL_OK ? status
                               : error_set(TL_UNREACHABLE, "no host of the list can be used");
    }
    error_clear();
    if (rank != RANK_WRITER)
        status = h->opened(h->context, *out, POOL_KEPT);
    else
        status = TL_OK;
    if (status != TL_OK) {
        status = named(&h->host[best], status);
        db_close(*out);
        *out = NULL;
        return status;
    }
    keep(h, best, rank_of(*out), how);
    return TL_OK;
}

int hosts_lends(hosts *h, const reached *how)
{
    int lends;

    if (h == NULL)
        return 1;
    pthread_mutex_lock(&h->mutex);
    lends = how->count == h->host[how->host].count &&
            (how->until_ms == 0 || clock_left_ms(how->until_ms) > 0);
    pthread_mutex_unlock(&h->mutex);
    return lends;
}

int hosts_fell_silent(hosts *h, size_t *host)
{
    int fell = 0;

    pthread_mutex_lock(&h->mutex);
    for (size_t i = 0; i < h->list.count && !fell; i++) {
        fell = h->host[i].has_fallen;
        h->host[i].has_fallen = 0;
        *host = i;
    }
    pthread_mutex_unlock(&h->mutex);
    return fell;
}

void hosts_note(hosts *h, const db *connection, const reached *how, int64_t silent_ms)
{
    struct host *host;

    if (h == NULL)
        return;
    host = &h->host[how->host];
    pthread_mutex_lock(&h->mutex);
    /* One that was made before the others were left says nothing new. */
    if (how->count == host->count)
        host->count += db_refused_writes(connection) || db_was_silent(connection, silent_ms);
    pthread_mutex_unlock(&h->mutex);
}

/* --------------------------------------------------------------------- looking around -- */

/* What is true of a server, and not of a network. */
static int is_about_the_server(tl_status status)
{
    switch (status) {
    case TL_BAD_CONFIG:
    case TL_ACCESS_DENIED:
    case TL_NO_SCHEMA:
    case TL_WRONG_SCHEMA:
    case TL_SERVER_UNSAFE:
        return 1;
    default:
        return 0;
    }
}

tl_status hosts_check(hosts *h, const db_options *connect)
{
    db *found = NULL;
    tl_status status = TL_OK;

    for (size_t i = 0; i < h->list.count && status == TL_OK; i++)
        status = db_host_known(&h->list.host[i]);
    for (size_t i = 0; i < h->list.count && status == TL_OK; i++) {
        status = connect_to(h, &h->host[i], connect, POOL_CHECKED, &found);
        db_close(found);
        if (!is_about_the_server(status))
            status = TL_OK;
    }
    pthread_mutex_lock(&h->mutex);
    h->looked_ms = clock_boottime_ms();
    pthread_mutex_unlock(&h->mutex);
    return status;
}

static tl_status look_at(hosts *h, struct host *host, const db_options *connect)
{
    tl_status status;

    if (host->looking != NULL && db_alive(host->looking)) {
        status = h->opened(h->context, host->looking, POOL_LOOKED);
        if (status == TL_OK)
            return TL_OK;
        status = named(host, status);
        db_drop(&host->looking);
        return status;
    }
    db_drop(&host->looking);
    return connect_to(h, host, connect, POOL_LOOKED, &host->looking);
}

/* Which of them a look is at. */
enum which { WHICH_ALL, WHICH_ANSWER, WHICH_SILENT };

static int is_looked_at(hosts *h, size_t i, enum which which)
{
    const struct host *host = &h->host[i];
    int is;

    pthread_mutex_lock(&h->mutex);
    is = (i != h->in_use || !host->is_seen) &&
         (which == WHICH_ALL || host->is_silent == (which == WHICH_SILENT));
    pthread_mutex_unlock(&h->mutex);
    return is;
}

/* Not TL_OK: what is new about one of them.  Needs: h->looking_mutex held. */
static tl_status look_around(hosts *h, const db_options *connect, enum which which)
{
    char sentence[ERROR_MAX] = "";
    tl_status new_one = TL_OK;

    for (size_t i = 0; i < h->list.count; i++) {
        struct host *host = &h->host[i];
        tl_status status;

        if (!is_looked_at(h, i, which))
            continue;
        status = look_at(h, host, connect);
        if (is_about_the_server(status) && status != host->told) {
            new_one = status;
            text_copy(sentence, sizeof sentence, tl_error_message());
        }
        host->told = is_about_the_server(status) ? status : TL_OK;
    }
    return new_one == TL_OK ? TL_OK : error_set(new_one, "%s", sentence);
}

tl_status hosts_look_around(hosts *h, const db_options *connect)
{
    tl_status status;

    pthread_mutex_lock(&h->looking_mutex);
    status = look_around(h, connect, WHICH_ALL);
    pthread_mutex_unlock(&h->looking_mutex);
    return status;
}

void hosts_glance(hosts *h)
{
    if (pthread_mutex_trylock(&h->looking_mutex) != 0)
        return;
    for (size_t i = 0; i < h->list.count; i++) {
        struct host *host = &h->host[i];

        if (is_looked_at(h, i, WHICH_ALL) && host->looking != NULL && db_alive(host->looking))
            (void)h->opened(h->context, host->looking, POOL_LOOKED);
    }
    pthread_mutex_unlock(&h->looking_mutex);
    error_clear();
}

/* 1: nobody did for so long, and nobody does: the caller looks now.  Else that is waited for, until
 * so long after the look began: one that lasts longer is not waited for again and again. */
static int takes_look(hosts *h, int64_t every_ms)
{
    int takes;

    pthread_mutex_lock(&h->mutex);
    takes = !h->looks && clock_boottime_ms() - h->looked_ms >= every_ms;
    if (takes) {
        h->looks = 1;
        h->waits_until_ms = clock_deadline(every_ms);
    }
    while (!takes && h->looks && clock_boottime_ms() - h->looked_ms >= every_ms &&
           clock_left_ms(h->waits_until_ms) > 0)
        clock_wait(&h->looked, &h->mutex, h->waits_until_ms);
    pthread_mutex_unlock(&h->mutex);
    return takes;
}

static void note_looked(hosts *h, int looks)
{
    pthread_mutex_lock(&h->mutex);
    h->looks = looks;
    h->looked_ms = clock_boottime_ms();
    pthread_cond_broadcast(&h->looked);
    pthread_mutex_unlock(&h->mutex);
}

/* Nobody waits for a look at a host that did not answer, which takes as long as connecting may; for
 * one that falls silent now they wait once.  Who goes on meanwhile goes by what was seen last, as
 * all threads of a process with a session do during each look. */
int hosts_look_if_due(hosts *h, const db_options *connect, int64_t every_ms)
{
    if (!takes_look(h, every_ms))
        return 0;
    pthread_mutex_lock(&h->looking_mutex);
    /* Who looks at it next says what is wrong with a host. */
    (void)look_around(h, connect, WHICH_ANSWER);
    note_looked(h, 1);
    (void)look_around(h, connect, WHICH_SILENT);
    pthread_mutex_unlock(&h->looking_mutex);
    note_looked(h, 0);
    error_clear();
    return 1;
}

int hosts_all_seen(hosts *h, const db_options *connect, hosts_unseen *unseen)
{
    int all = 1;
    int64_t silent = 0, count = 0;

    pthread_mutex_lock(&h->mutex);
    for (size_t i = 0; i < h->list.count; i++) {
        if (h->host[i].is_seen) {
            if (h->host[i].seen_ms > unseen->since_ms)
                unseen->since_ms = h->host[i].seen_ms;
            continue;
        }
        if (all)
            text_copy(unseen->why, sizeof unseen->why, h->host[i].why);
        all = 0;
        count++;
        silent += h->host[i].is_silent;
    }
    pthread_mutex_unlock(&h->mutex);
    unseen->leave_ms =
        (silent > 0 ? h->beat_silent_ms : 0) + h->silent_ms + count * 1000 * share_s(h, connect);
    return all;
}
