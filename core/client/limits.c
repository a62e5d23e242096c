/* Keeps this process's share of each limited channel.  Touches trade_channel_limit and
 * trade_channel_permit, by one procedure. */
#include "client/limits.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "client/client.h"
#include "store/bind.h"
#include "store/channel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Nothing was free: another try after this time. */
#define AGAIN_MS 50
/* A client that closes tries again to give back what it has, after this time. */
#define LEAVE_AGAIN_MS 10
/* A moment that was not used by then is let go, so that what was saved up never comes at once. */
#define LATE_US 100000
/* For how long a process takes moments ahead. */
#define AHEAD_US 100000

struct channel_limit {
    struct channel_limit *next;
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1]; /* "": all operations together */
    uint64_t sends, per_second;                               /* 0: any number */

    /* The share of one session.  era: another one for each, so that what an earlier session held is
     * not given back to this one. */
    char session_id[RANDOM_UUID];
    unsigned era;
    atomic_uint_fast64_t used; /* sends under way; written under the mutex */
    uint64_t may;              /* up to so many may be */
    uint64_t waiting, peak;
    int64_t hold_ms;
    int has_row;     /* the database may have permits of this session */
    int asks;        /* a thread takes a share now */
    int64_t next_ms; /* nothing was free: no earlier is another share taken */

    /* Moments at which a send may begin, by the clock of the boot. */
    int64_t slot_us, interval_us;
    int64_t next_slot_ms; /* as next_ms */
    uint64_t slots, batch;

    /* Atomic. */
    atomic_uint_fast64_t refused[LIMITS_LANES][LIMITS_NUMBERS];
};

void limits_init(channel_limits *all)
{
    pthread_mutex_init(&all->mutex, NULL);
    (void)clock_condition_init(&all->changed);
}

void limits_end(channel_limits *all, int here)
{
    struct channel_limit *one;

    while ((one = all->list) != NULL) {
        all->list = one->next;
        memory_free(one);
    }
    if (!here) /* it would wait for threads that only the parent has */
        return;
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->mutex);
}

/* ------------------------------------------------------------------------- the limits -- */

/* Needs: the mutex held. */
static struct channel_limit *find(channel_limits *all, const char *channel, const char *op_code)
{
    struct channel_limit *one = all->list;

    while (one != NULL &&
           (strcmp(one->channel, channel) != 0 || strcmp(one->op_code, op_code) != 0))
        one = one->next;
    return one;
}

/* Needs: the mutex held.  NULL: no memory. */
static struct channel_limit *find_or_add(channel_limits *all, const char *channel,
                                         const char *op_code)
{
    struct channel_limit *one = find(all, channel, op_code);

    if (one != NULL)
        return one;
    one = memory_new(sizeof *one);
    if (one == NULL)
        return NULL;
    text_copy(one->channel, sizeof one->channel, channel);
    text_copy(one->op_code, sizeof one->op_code, op_code);
    one->next = all->list;
    all->list = one;
    return one;
}

static const char *number_text(char to[24], uint64_t number)
{
    if (number == 0)
        return "any number";
    snprintf(to, 24, "%" PRIu64, number);
    return to;
}

/* Needs: the mutex held. */
static void set(struct tl_client *client, struct channel_limit *one, uint64_t sends,
                uint64_t per_second)
{
    char most[24], rate[24];

    if (one->sends == sends && one->per_second == per_second)
        return;
    log_line(&client->logger, TL_WARNING, NULL, 0,
             "channel %s%s%s is limited to %s of sends at a time, and %s a second", one->channel,
             one->op_code[0] != '\0' ? " for " : "", one->op_code, number_text(most, sends),
             number_text(rate, per_second));
    one->sends = sends;
    one->per_second = per_second;
    one->slots = 0;
}

static int is_read(const db_result *r, const struct channel_limit *one)
{
    for (size_t row = 0; row < r->rows; row++)
        if (strcmp(db_get_text(r, row, LIMITS_CHANNEL), one->channel) == 0 &&
            strcmp(db_get_text(r, row, LIMITS_OP), one->op_code) == 0)
            return 1;
    return 0;
}

/* Needs: the mutex held. */
static tl_status take_rows(struct tl_client *client, const db_result *r)
{
    channel_limits *all = &client->limits;

    for (size_t row = 0; row < r->rows; row++) {
        struct channel_limit *one =
            find_or_add(all, db_get_text(r, row, LIMITS_CHANNEL), db_get_text(r, row, LIMITS_OP));

        if (one == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for the limits of channels");
        set(client, one, db_get_uint(r, row, LIMITS_SENDS), db_get_uint(r, row, LIMITS_PER_SECOND));
    }
    for (struct channel_limit *one = all->list; one != NULL; one = one->next)
        if (!is_read(r, one))
            set(client, one, 0, 0);
    atomic_store(&all->any, r->rows > 0);
    pthread_cond_broadcast(&all->changed);
    return TL_OK;
}

tl_status limits_look(struct tl_client *client, db *connection)
{
    channel_limits *all = &client->limits;
    db_result r = DB_RESULT_INIT;
    tl_status status =
        db_read_status(connection, db_run(connection, &sql_channel_limits, NULL, 0, &r),
                       "reading the limits of channels");

    pthread_mutex_lock(&all->mutex);
    if (status == TL_OK)
        status = take_rows(client, &r);
    if (status != TL_OK && !all->fails)
        log_line(&client->logger, TL_ALARM, NULL, 0,
                 "the limits of channels cannot be read, so what was read last holds: %s",
                 tl_error_message());
    all->fails = status != TL_OK;
    pthread_mutex_unlock(&all->mutex);
    db_result_free(&r);
    return status;
}

const struct channel_limit *limits_next(const channel_limits *all,
                                        const struct channel_limit *after, limit_counts *counts)
{
    struct channel_limit *one = after != NULL ? after->next : atomic_load(&all->list);

    if (one == NULL)
        return NULL;
    counts->channel = one->channel;
    counts->op_code = one->op_code;
    counts->used = atomic_load(&one->used);
    for (int lane = 0; lane < LIMITS_LANES; lane++)
        for (int number = 0; number < LIMITS_NUMBERS; number++)
            counts->refused[lane][number] = atomic_load(&one->refused[lane][number]);
    return one;
}

/* ------------------------------------------------------------------------- the share -- */

struct share {
    char session_id[RANDOM_UUID];
    uint64_t used, wanted, claims;
    int64_t hold_ms;
};

/* What a share came to; all 0 if there is no such limit any more. */
struct shared {
    uint64_t may, slots;
    int64_t ahead_us, interval_us;
    int is_limited;
};

static tl_status ask_database(struct tl_client *client, const struct channel_limit *one,
                              const struct share *wanted, struct shared *shared)
{
    db_result r = DB_RESULT_INIT;
    db *connection = NULL;
    const char *text;
    db_answer answer;
    /* One that waits: another process may be taking its share. */
    tl_status status =
        pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms, &connection);

    if (status != TL_OK)
        return status;
    answer = SQL_RUN(connection, NULL, channel_share, .channel = db_text(one->channel),
                     .op_code = db_text(one->op_code), .session_id = db_text(wanted->session_id),
                     .used = db_uint(wanted->used), .wanted = db_uint(wanted->wanted),
                     .hold_ms = db_int(wanted->hold_ms), .claims = db_uint(wanted->claims),
                     .latest_us = db_int(clock_watch_latest_us(client)));
    answer = store_called(connection, answer, &sql_channel_share_result, &r);
    status = db_read_status(connection, answer, "taking a share of a limited channel");
    text = status == TL_OK && r.rows == 1 ? db_get_text(&r, 0, 0) : "none";
    if (status == TL_OK && text[0] != '\0') {
        shared->is_limited =
            sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, &shared->may,
                   &shared->slots, &shared->ahead_us, &shared->interval_us) == 4;
        if (!shared->is_limited)
            status =
                error_set(TL_INTERNAL, "a share of a limited channel cannot be read: %.40s", text);
    }
    db_result_free(&r);
    pool_put(client->connections, connection);
    return status;
}

/* Needs: the mutex held. */
static void take_shared(struct channel_limit *one, const struct shared *shared, uint64_t claims)
{
    if (!shared->is_limited) {
        /* Lifted since: what was read last goes until the next look. */
        one->may = one->used + one->waiting;
        one->slot_us = clock_boottime_us();
        one->interval_us = 0;
        one->slots = one->waiting;
        return;
    }
    one->may = shared->may;
    /* Who claimed no moments keeps those that it has. */
    if (shared->interval_us == 0 || claims == 0)
        return;
    /* Counted from the answer, which is later than the moment that the server means. */
    one->slot_us = clock_boottime_us() + shared->ahead_us;
    one->interval_us = shared->interval_us;
    one->slots = shared->slots;
}

/*
 * Takes a share anew.  Needs: the mutex held, and nobody else asks; lets go of it meanwhile.  While
 * it asks, no more sends begin than it says are under way, and so it stays if the answer is lost:
 * the database may have given the others what this process had.
 */
static tl_status take_share(struct tl_client *client, struct channel_limit *one, uint64_t wanted,
                            uint64_t claims)
{
    channel_limits *all = &client->limits;
    const unsigned era = one->era;
    struct share share = {
        .used = one->used, .wanted = wanted, .claims = claims, .hold_ms = one->hold_ms};
    struct shared shared = {0};
    tl_status status;

    memcpy(share.session_id, one->session_id, sizeof share.session_id);
    one->asks = 1;
    one->may = one->used;
    one->has_row |= one->sends > 0;
    pthread_mutex_unlock(&all->mutex);
    status = ask_database(client, one, &share, &shared);
    pthread_mutex_lock(&all->mutex);
    one->asks = 0;
    if (era == one->era) {
        if (status == TL_OK)
            take_shared(one, &shared, claims);
        if (status == TL_OK && share.wanted == 0 && share.used == 0)
            one->has_row = 0;
        /* The row knows of no such hold yet. */
        if (one->hold_ms > share.hold_ms)
            one->may = one->used;
    }
    /* Others were at it for longer than a statement waits: nothing was free, and nothing done. */
    if (status == TL_TRY_AGAIN)
        status = TL_OK;
    one->next_ms = one->may > one->used ? 0 : clock_boottime_ms() + AGAIN_MS;
    if (claims > 0)
        one->next_slot_ms = one->slots > 0 ? 0 : clock_boottime_ms() + AGAIN_MS;
    pthread_cond_broadcast(&all->changed);
    return status;
}

/* The share is one session's; another one begins with none.  Needs: the mutex held. */
static void see_session(struct channel_limit *one, const life *own)
{
    const char *session_id = life_session_id(own);

    if (strcmp(one->session_id, session_id) == 0)
        return;
    text_copy(one->session_id, sizeof one->session_id, session_id);
    one->era++;
    one->used = one->may = one->peak = one->slots = 0;
    one->has_row = 0;
    one->next_ms = one->next_slot_ms = 0;
}

static tl_status refuse(struct channel_limit *one, const limit_ask *ask, limits_number number)
{
    atomic_fetch_add_explicit(&one->refused[ask->is_retry != 0][number], 1, memory_order_relaxed);
    return error_set(TL_OVERLOADED,
                     "channel %s is at the limit that operators set%s%s: nothing was written; try "
                     "again later",
                     one->channel, ask->op_code != NULL ? " for " : "",
                     ask->op_code != NULL ? ask->op_code : "");
}

/* TL_OK: one more send may be under way.  Needs: the mutex held. */
static tl_status take_permit(struct tl_client *client, struct channel_limit *one,
                             const limit_ask *ask, int64_t until_ms, int64_t *again_ms)
{
    channel_limits *all = &client->limits;
    tl_status status = TL_OK;

    one->waiting++;
    while (status == TL_OK && one->sends > 0 && one->used >= one->may) {
        const int64_t now_ms = clock_boottime_ms();

        if (!one->asks && now_ms >= one->next_ms) {
            status = take_share(client, one, one->used + one->waiting, 0);
        } else if (now_ms >= until_ms || life_is_over(ask->life)) {
            *again_ms = client->config.beat_ms;
            status = refuse(one, ask, LIMITS_BY_SENDS);
        } else {
            clock_wait(&all->changed, &all->mutex,
                       one->asks || until_ms < one->next_ms ? until_ms : one->next_ms);
        }
    }
    one->waiting--;
    return status;
}

/* How many moments to take: more, the faster they are used up. */
static uint64_t batch_of(struct channel_limit *one)
{
    const uint64_t most = one->per_second * AHEAD_US / 1000000;

    one->batch = one->batch == 0 ? 1 : one->batch * 2;
    if (one->batch > most)
        one->batch = most;
    return one->batch > one->waiting ? one->batch : one->waiting;
}

/* Lets go of moments that are over.  Needs: the mutex held. */
static void drop_late(struct channel_limit *one)
{
    const int64_t now_us = clock_boottime_us();

    while (one->slots > 0 && one->slot_us + LATE_US < now_us) {
        one->slots--;
        one->slot_us += one->interval_us;
        one->batch = 0;
    }
}

/* TL_OK: *at_us is the moment.  Needs: the mutex held. */
static tl_status take_slot(struct tl_client *client, struct channel_limit *one,
                           const limit_ask *ask, int64_t until_ms, int64_t *at_us,
                           int64_t *again_ms)
{
    channel_limits *all = &client->limits;
    tl_status status = TL_OK;

    one->waiting++;
    while (status == TL_OK && one->per_second > 0) {
        const int64_t now_ms = clock_boottime_ms();

        drop_late(one);
        if (one->slots > 0 && one->slot_us / 1000 <= until_ms) {
            *at_us = one->slot_us;
            one->slot_us += one->interval_us;
            one->slots--;
            break;
        }
        if (one->slots == 0 && !one->asks && now_ms >= one->next_slot_ms) {
            status = take_share(client, one, one->peak > one->used ? one->peak : one->used,
                                batch_of(one));
        } else if (one->slots > 0 || now_ms >= until_ms) {
            *again_ms = one->slots > 0 ? one->slot_us / 1000 - now_ms : AGAIN_MS;
            status = refuse(one, ask, LIMITS_BY_RATE);
        } else {
            clock_wait(&all->changed, &all->mutex,
                       one->asks || until_ms < one->next_slot_ms ? until_ms : one->next_slot_ms);
        }
    }
    one->waiting--;
    return status;
}

/* ------------------------------------------------------------------------- one send -- */

/* Needs: the mutex held. */
static void release(limit_permit *permit)
{
    for (unsigned i = 0; i < LIMITS_OF_ONE; i++) {
        struct channel_limit *one = permit->of[i];

        if (one != NULL && permit->era[i] == one->era && one->used > 0)
            one->used--;
        permit->of[i] = NULL;
    }
}

/* A send without a permit would be one too many under the session that begins next. */
static tl_status session_is_over(void)
{
    return error_set(TL_SESSION_LOST, "the session ended while the channel's limit was asked for: "
                                      "nothing was written");
}

/* What the permit then holds is released by whoever asked, whatever the answer.  *at_us: the send
 * begins no earlier.  Needs: the mutex held. */
static tl_status take_one(struct tl_client *client, struct channel_limit *one, const limit_ask *ask,
                          int64_t until_ms, limit_permit *permit, int64_t *at_us, int64_t *again_ms)
{
    const unsigned i = permit->of[0] != NULL;
    int64_t own_us = 0;
    tl_status status;

    if (one == NULL || (one->sends == 0 && one->per_second == 0))
        return TL_OK;
    /* Under the mutex: another life begins only when this one is over, so nobody has that one's
     * share before. */
    if (life_is_over(ask->life))
        return session_is_over();
    see_session(one, ask->life);
    if (one->hold_ms < ask->max_hold_ms) {
        /* The database is to know it before such a send begins. */
        one->hold_ms = ask->max_hold_ms;
        one->may = one->used;
    }
    status = take_permit(client, one, ask, until_ms, again_ms);
    if (status != TL_OK)
        return status;
    if (strcmp(one->session_id, life_session_id(ask->life)) != 0)
        return session_is_over();
    one->used++;
    if (one->peak < one->used)
        one->peak = one->used;
    permit->of[i] = one;
    permit->era[i] = one->era;
    status = take_slot(client, one, ask, until_ms, &own_us, again_ms);
    if (own_us > *at_us)
        *at_us = own_us;
    return status;
}

tl_status limits_take(struct tl_client *client, const limit_ask *ask, limit_permit *permit,
                      int64_t *again_ms)
{
    channel_limits *all = &client->limits;
    const int64_t until_ms = clock_boottime_ms() + ask->wait_ms;
    int64_t at_us = 0;
    tl_status status;

    *again_ms = 0;
    if (!atomic_load_explicit(&all->any, memory_order_relaxed) || permit->of[0] != NULL)
        return TL_OK;
    pthread_mutex_lock(&all->mutex);
    /* Always in this order, so that no two sends wait for each other's; and what is left to an
     * operation keeps nothing of the others' while it waits. */
    status = take_one(client, find(all, ask->channel, ask->op_code), ask, until_ms, permit, &at_us,
                      again_ms);
    if (status == TL_OK)
        status =
            take_one(client, find(all, ask->channel, ""), ask, until_ms, permit, &at_us, again_ms);
    if (status != TL_OK)
        release(permit);
    /* Also where no connection was free, and where the moment has come meanwhile. */
    if (status == TL_OVERLOADED && *again_ms <= 0)
        *again_ms = AGAIN_MS;
    pthread_mutex_unlock(&all->mutex);
    if (status == TL_OK && at_us > clock_boottime_us())
        clock_sleep_until_ms(at_us / 1000 + 1);
    return status;
}

void limits_release(struct tl_client *client, limit_permit *permit)
{
    channel_limits *all = &client->limits;

    if (permit->of[0] == NULL)
        return;
    /* A handle may outlive its client, and a child has its parent's handles. */
    if (atomic_load(&client->closed) || client->generation != process_generation()) {
        memset(permit, 0, sizeof *permit);
        return;
    }
    pthread_mutex_lock(&all->mutex);
    release(permit);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
}

/* --------------------------------------------------------------------------- the rounds -- */

/* Needs: the mutex held.  The list only grows at its front, so a walk may go on after a share was
 * taken.  1: others were at it, and nothing was done. */
static int give_back(struct tl_client *client, struct channel_limit *one, uint64_t wanted)
{
    /* The session's own row is of today's session alone. */
    if (!one->has_row || one->asks || life_is_over(session_life(client->session)) ||
        strcmp(one->session_id, session_id(client->session)) != 0)
        return 0;
    return take_share(client, one, wanted, 0) == TL_OK && one->has_row && one->used + wanted == 0;
}

void limits_keep(struct tl_client *client)
{
    channel_limits *all = &client->limits;

    pthread_mutex_lock(&all->mutex);
    for (struct channel_limit *one = all->list; one != NULL; one = one->next) {
        const uint64_t peak = one->peak > one->used ? one->peak : one->used;

        one->peak = one->used;
        (void)give_back(client, one, peak + one->waiting);
    }
    pthread_mutex_unlock(&all->mutex);
}

void limits_leave(struct tl_client *client)
{
    channel_limits *all = &client->limits;
    const int64_t until_ms = clock_boottime_ms() + client->config.session_ms;

    pthread_mutex_lock(&all->mutex);
    for (struct channel_limit *one = all->list; one != NULL; one = one->next) {
        /* The round that is under way may be taking a share, and others may be at it too. */
        while (one->asks && clock_boottime_ms() < until_ms)
            clock_wait(&all->changed, &all->mutex, until_ms);
        while (give_back(client, one, 0) && clock_boottime_ms() < until_ms)
            clock_wait(&all->changed, &all->mutex, clock_boottime_ms() + LEAVE_AGAIN_MS);
    }
    pthread_mutex_unlock(&all->mutex);
}
