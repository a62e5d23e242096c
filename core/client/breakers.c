/* Counts what the channels with a breaker answer, and keeps this process's probes.  Touches
 * trade_channel_breaker, by two procedures. */
#include "client/breakers.h"

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

struct channel_breaker {
    struct channel_breaker *next;
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1]; /* "": all operations together */

    /* As read last. */
    uint64_t unknowns, share; /* 0: there is no such breaker, or no share */
    int64_t probe_ms;         /* from one probe to the next */
    uint64_t era, in_a_row;
    int is_open;
    int64_t next_ms; /* open: no earlier is a probe free, by the clock of the boot */

    /* Not told yet, and of this era. */
    uint64_t tail, fails, ended; /* unknown ones since the last answer, unknown ones, all */
    int answered;

    /* The probe of this process; 0: none.  One that is not over by then is nobody's. */
    uint64_t probe;
    int64_t probe_until_ms;
    int is_over; /* and not told yet */
    breaker_heard came_to;
    int tells;   /* a thread tells now */
    int is_said; /* the log says that it is open */
};

void breakers_init(channel_breakers *all)
{
    pthread_mutex_init(&all->mutex, NULL);
}

void breakers_end(channel_breakers *all)
{
    struct channel_breaker *one;

    while ((one = all->list) != NULL) {
        all->list = one->next;
        memory_free(one);
    }
    pthread_mutex_destroy(&all->mutex);
}

/* ----------------------------------------------------------------------- the breakers -- */

/* Needs: the mutex held. */
static struct channel_breaker *find(channel_breakers *all, const char *channel, const char *op_code)
{
    struct channel_breaker *one = all->list;

    while (one != NULL &&
           (strcmp(one->channel, channel) != 0 || strcmp(one->op_code, op_code) != 0))
        one = one->next;
    return one;
}

/* Needs: the mutex held.  NULL: no memory. */
static struct channel_breaker *find_or_add(channel_breakers *all, const char *channel,
                                           const char *op_code)
{
    struct channel_breaker *one = find(all, channel, op_code);

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

/* Says once what this process does differently from now on.  Needs: the mutex held. */
static void say(struct tl_client *client, struct channel_breaker *one)
{
    if (one->is_open == one->is_said)
        return;
    one->is_said = one->is_open;
    log_line(&client->logger, TL_WARNING, NULL, 0,
             one->is_open ? "the breaker of channel %s%s%s is open, since its outcomes are "
                            "unknown: nothing new is sent but one probe at a time"
                          : "the breaker of channel %s%s%s is closed again",
             one->channel, one->op_code[0] != '\0' ? " for " : "", one->op_code);
}

/* Whether a hold of this process has the probe, or it is not told yet.  A callback that hangs keeps
 * it no longer than it has it in the database.  Needs: the mutex held. */
static int has_probe(const struct channel_breaker *one)
{
    return one->probe != 0 && (one->is_over || clock_boottime_ms() < one->probe_until_ms);
}

/* What was counted is told, or void.  Needs: the mutex held. */
static void forget(struct channel_breaker *one)
{
    one->tail = one->fails = one->ended = 0;
    one->answered = 0;
}

/* How the database says that a breaker stands. */
struct standing {
    int is_open;
    uint64_t era, in_a_row;
    int64_t again_ms;
};

/* Needs: the mutex held. */
static void take_standing(struct tl_client *client, struct channel_breaker *one,
                          const struct standing *is)
{
    if (one->era != is->era)
        forget(one);
    one->era = is->era;
    one->is_open = is->is_open;
    one->in_a_row = is->in_a_row;
    one->next_ms = clock_boottime_ms() + is->again_ms;
    say(client, one);
}

static int is_read(const db_result *r, const struct channel_breaker *one)
{
    for (size_t row = 0; row < r->rows; row++)
        if (strcmp(db_get_text(r, row, BREAKERS_CHANNEL), one->channel) == 0 &&
            strcmp(db_get_text(r, row, BREAKERS_OP), one->op_code) == 0)
            return 1;
    return 0;
}

/* Needs: the mutex held. */
static tl_status take_rows(struct tl_client *client, const db_result *r)
{
    channel_breakers *all = &client->breakers;

    for (size_t row = 0; row < r->rows; row++) {
        struct channel_breaker *one = find_or_add(all, db_get_text(r, row, BREAKERS_CHANNEL),
                                                  db_get_text(r, row, BREAKERS_OP));
        const struct standing is = {.is_open = db_get_int(r, row, BREAKERS_IS_OPEN) != 0,
                                    .era = db_get_uint(r, row, BREAKERS_ERA),
                                    .in_a_row = db_get_uint(r, row, BREAKERS_IN_A_ROW),
                                    .again_ms = db_get_int(r, row, BREAKERS_AGAIN_MS)};

        if (one == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for the breakers of channels");
        one->unknowns = db_get_uint(r, row, BREAKERS_UNKNOWNS);
        one->share = db_get_uint(r, row, BREAKERS_SHARE);
        one->probe_ms = db_get_int(r, row, BREAKERS_PROBE_S) * 1000;
        take_standing(client, one, &is);
    }
    for (struct channel_breaker *one = all->list; one != NULL; one = one->next)
        if (!is_read(r, one)) {
            one->unknowns = 0;
            one->is_open = 0;
            say(client, one);
        }
    atomic_store(&all->any, r->rows > 0);
    return TL_OK;
}

tl_status breakers_look(struct tl_client *client, db *connection)
{
    channel_breakers *all = &client->breakers;
    db_result r = DB_RESULT_INIT;
    tl_status status =
        db_read_status(connection, db_run(connection, &sql_channel_breakers, NULL, 0, &r),
                       "reading the breakers of channels");

    pthread_mutex_lock(&all->mutex);
    if (status == TL_OK)
        status = take_rows(client, &r);
    if (status != TL_OK && !all->fails)
        log_line(&client->logger, TL_ALARM, NULL, 0,
                 "the breakers of channels cannot be read, so what was read last holds: %s",
                 tl_error_message());
    all->fails = status != TL_OK;
    pthread_mutex_unlock(&all->mutex);
    db_result_free(&r);
    return status;
}

/* Whether nothing new is sent: it is open, or will be once this process has told.  Needs: the mutex
 * held. */
static int refuses(const struct channel_breaker *one)
{
    return one->unknowns > 0 &&
           (one->is_open || (one->answered ? 0 : one->in_a_row) + one->tail >= one->unknowns);
}

static int fits(const struct channel_breaker *one, const char *channel, const char *op_code)
{
    return (channel == NULL || strcmp(one->channel, channel) == 0) &&
           (one->op_code[0] == '\0' || strcmp(one->op_code, op_code) == 0);
}

static tl_status refuse(const struct channel_breaker *one)
{
    return error_set(TL_OVERLOADED,
                     "channel %s does not answer%s%s, and its breaker is open: nothing was "
                     "written; try again later",
                     one->channel, one->op_code[0] != '\0' ? " for " : "", one->op_code);
}

static int is_any(struct tl_client *client)
{
    return atomic_load_explicit(&client->breakers.any, memory_order_relaxed);
}

/* Not before the next probe; where that is due, until its answer may be known.  Needs: the mutex
 * held. */
static int64_t again_in_ms(const struct tl_client *client, const struct channel_breaker *one)
{
    const int64_t left_ms = one->is_open ? one->next_ms - clock_boottime_ms() : one->probe_ms;

    return left_ms > client->config.beat_ms ? left_ms : client->config.beat_ms;
}

tl_status breakers_check(struct tl_client *client, const char *channel, const char *op_code,
                         int64_t *again_ms)
{
    channel_breakers *all = &client->breakers;
    tl_status status = TL_OK;

    if (!is_any(client))
        return TL_OK;
    pthread_mutex_lock(&all->mutex);
    for (const struct channel_breaker *one = all->list; one != NULL && status == TL_OK;
         one = one->next)
        if (fits(one, channel, op_code) && refuses(one)) {
            status = refuse(one);
            if (again_ms != NULL) {
                *again_ms = again_in_ms(client, one);
                client_add(&client->counters.broken, 1);
            }
        }
    pthread_mutex_unlock(&all->mutex);
    return status;
}

/* The next probe is an ask's, after so many of the lane without an answer: the lane may have just
 * one trade, which never has one.  The database counts them.  Needs: the mutex held. */
#define PROBES_OF_LANE 3

/* Of two breakers, one is enough for the asks' turn: else a row of turns that never meet would
 * leave asks none.  Whose turn it is not comes late. */
int breakers_may_probe(struct tl_client *client, const char *channel, const char *op_code,
                       int is_ask)
{
    channel_breakers *all = &client->breakers;
    int64_t free_ms = INT64_MIN, late_ms = 0;
    int open = 0, may = 1, asks = 0;

    if (!is_any(client))
        return 0;
    pthread_mutex_lock(&all->mutex);
    for (const struct channel_breaker *one = all->list; one != NULL; one = one->next)
        if (fits(one, channel, op_code) && refuses(one)) {
            open = 1;
            may = may && one->is_open && !has_probe(one);
            asks |= one->in_a_row % (PROBES_OF_LANE + 1) == PROBES_OF_LANE;
            if (one->next_ms > free_ms)
                free_ms = one->next_ms;
            if (one->probe_ms > late_ms)
                late_ms = one->probe_ms;
        }
    pthread_mutex_unlock(&all->mutex);
    if (!open || !may)
        return 0;
    late_ms += 2 * client->config.beat_ms;
    return free_ms + (is_ask != asks ? late_ms : 0) <= clock_boottime_ms();
}

/* --------------------------------------------------------------------------- telling -- */

/* Tells what was counted, or asks for the probe (sql/object/channel.sql). */
struct call {
    const char *channel, *op_code;
    int tells;      /* else it asks for the probe */
    uint64_t probe; /* its number; 0: none */
    int64_t hold_ms, latest_us;
    uint64_t era;
    int answered;
    uint64_t tail, unknowns, sends;
};

/* Runs one of the procedures on a connection of its own; text "": there is no such breaker. */
static tl_status call(struct tl_client *client, int64_t wait_ms, const struct call *what,
                      char text[80])
{
    db_result r = DB_RESULT_INIT;
    db *connection = NULL;
    db_answer answer;
    /* One that waits: another process may be at the breaker. */
    tl_status status = pool_get(client->connections, POOL_BUSINESS, wait_ms, &connection);

    if (status != TL_OK)
        return TL_OVERLOADED;
    answer = what->tells
                 ? SQL_RUN(connection, NULL, channel_told, .channel = db_text(what->channel),
                           .op_code = db_text(what->op_code), .era = db_uint(what->era),
                           .probe = db_uint(what->probe), .answered = db_int(what->answered),
                           .tail = db_uint(what->tail), .unknowns = db_uint(what->unknowns),
                           .sends = db_uint(what->sends))
                 : SQL_RUN(connection, NULL, channel_probe, .channel = db_text(what->channel),
                           .op_code = db_text(what->op_code), .probe = db_uint(what->probe),
                           .hold_ms = db_int(what->hold_ms), .latest_us = db_int(what->latest_us));
    answer = store_called(connection, answer, &sql_channel_breaker_result, &r);
    status = db_read_status(connection, answer, "telling or probing the breaker of a channel");
    if (status == TL_OK)
        text_copy(text, 80, r.rows == 1 ? db_get_text(&r, 0, 0) : "");
    db_result_free(&r);
    pool_put(client->connections, connection);
    return status;
}

/* An answer is told where it ends a row of unknown ones; all, where a share counts.  Needs: the
 * mutex held. */
static int has_something(const struct channel_breaker *one)
{
    if (one->is_over)
        return 1;
    return one->unknowns > 0 && !one->is_open &&
           (one->fails > 0 || (one->answered && one->in_a_row > 0) ||
            (one->share > 0 && one->ended > 0));
}

/* Needs: the mutex held; lets go of it meanwhile.  What the database may have taken is not told
 * again: then fewer are counted than there were. */
static void tell(struct tl_client *client, struct channel_breaker *one)
{
    channel_breakers *all = &client->breakers;
    /* As tl_channel_told() takes it. */
    static const int told_of[] = {
        [BREAKER_UNKNOWN] = 0, [BREAKER_ANSWER] = 1, [BREAKER_NOTHING] = 2};
    const struct call what = {.channel = one->channel,
                              .op_code = one->op_code,
                              .tells = 1,
                              .era = one->era,
                              .probe = one->is_over ? one->probe : 0,
                              .answered = one->is_over ? told_of[one->came_to] : one->answered,
                              .tail = one->tail,
                              .unknowns = one->fails,
                              .sends = one->ended};
    const int answered = one->answered;
    const uint64_t was_in_a_row = one->in_a_row;
    struct standing is = {0};
    char text[80] = "";
    tl_status status;

    one->tells = 1;
    if (what.probe == 0) {
        /* Whoever asks meanwhile goes by what is being told. */
        one->in_a_row = (answered ? 0 : was_in_a_row) + what.tail;
        forget(one);
    }
    pthread_mutex_unlock(&all->mutex);
    status = call(client, client->config.beat_ms, &what, text);
    pthread_mutex_lock(&all->mutex);
    one->tells = 0;
    if (what.probe != 0) {
        /* A probe that is told twice is told once. */
        if (status == TL_OK) {
            one->probe = 0;
            one->is_over = 0;
        }
    } else if ((status == TL_OVERLOADED || status == TL_TRY_AGAIN) && one->era == what.era) {
        /* Nothing was told: what was counted meanwhile comes after it. */
        one->in_a_row = was_in_a_row;
        one->tail += one->answered ? 0 : what.tail;
        one->answered |= answered;
        one->fails += what.unknowns;
        one->ended += what.sends;
    }
    if (status == TL_OK && sscanf(text, "%d %" SCNu64 " %" SCNu64 " %" SCNd64, &is.is_open, &is.era,
                                  &is.in_a_row, &is.again_ms) == 4)
        take_standing(client, one, &is);
}

void breakers_keep(struct tl_client *client)
{
    channel_breakers *all = &client->breakers;

    pthread_mutex_lock(&all->mutex);
    /* The list only grows at its front. */
    for (struct channel_breaker *one = all->list; one != NULL; one = one->next)
        if (!one->tells && has_something(one))
            tell(client, one);
        else if (!one->tells && !refuses(one))
            forget(one);
    pthread_mutex_unlock(&all->mutex);
}

void breakers_count(struct tl_client *client, const char *channel, const char *op_code,
                    breaker_heard heard)
{
    channel_breakers *all = &client->breakers;

    if (heard == BREAKER_NOTHING || !is_any(client))
        return;
    pthread_mutex_lock(&all->mutex);
    for (struct channel_breaker *one = all->list; one != NULL; one = one->next) {
        /* What was under way when it opened says nothing of what comes after. */
        if (one->unknowns == 0 || one->is_open || !fits(one, channel, op_code))
            continue;
        one->ended++;
        if (heard == BREAKER_ANSWER) {
            one->answered = 1;
            one->tail = 0;
        } else {
            one->fails++;
            one->tail++;
        }
    }
    pthread_mutex_unlock(&all->mutex);
}

/* ---------------------------------------------------------------------------- probing -- */

/* BREAKER_NOTHING: nothing was called, and the next one need not wait.  Needs: the mutex held. */
static void release(breaker_probe *probe, breaker_heard heard)
{
    for (unsigned i = 0; i < BREAKERS_OF_ONE; i++) {
        struct channel_breaker *one = probe->of[i];

        if (one != NULL && one->probe == probe->number[i]) {
            one->is_over = 1;
            one->came_to = heard;
        }
        probe->of[i] = NULL;
    }
}

/* Needs: the mutex held; lets go of it meanwhile. */
static tl_status probe_one(struct tl_client *client, struct channel_breaker *one, int64_t hold_ms,
                           breaker_probe *probe, unsigned i, int64_t *again_ms)
{
    channel_breakers *all = &client->breakers;
    const int has = i < BREAKERS_OF_ONE && probe->of[i] != NULL;
    struct call what = {.hold_ms = hold_ms, .latest_us = clock_watch_latest_us(client)};
    uint64_t number = 0;
    int64_t in_ms = 0;
    int is_open = 0;
    char text[80] = "";
    tl_status status;

    if (one == NULL || one->unknowns == 0 || (!has && !refuses(one)))
        return TL_OK;
    /* One that is not told yet has no probe; and of one process only one hold has it. */
    if (!has && (!one->is_open || has_probe(one) || one->next_ms > clock_boottime_ms())) {
        *again_ms = again_in_ms(client, one);
        return refuse(one);
    }
    what.channel = one->channel;
    what.op_code = one->op_code;
    what.probe = has ? probe->number[i] : 0;
    if (!has)
        /* Nobody else of this process asks meanwhile, nor soon after an answer that was lost. */
        one->next_ms = clock_boottime_ms() + client->config.beat_ms;
    pthread_mutex_unlock(&all->mutex);
    status = call(client, client->config.pool_wait_ms, &what, text);
    pthread_mutex_lock(&all->mutex);
    if (status != TL_OK) {
        *again_ms = again_in_ms(client, one);
        return status == TL_OVERLOADED || status == TL_TRY_AGAIN ? refuse(one) : status;
    }
    if (sscanf(text, "%d %" SCNu64 " %" SCNd64, &is_open, &number, &in_ms) != 3 || !is_open) {
        one->is_open = 0; /* closed meanwhile, or taken away */
        one->in_a_row = 0;
        forget(one);
        say(client, one);
        return TL_OK;
    }
    one->next_ms = clock_boottime_ms() + in_ms;
    if (number == 0) {
        *again_ms = again_in_ms(client, one);
        return refuse(one);
    }
    one->probe = number;
    one->probe_until_ms = clock_boottime_ms() + hold_ms;
    one->is_over = 0;
    probe->of[i] = one;
    probe->number[i] = number;
    return TL_OK;
}

tl_status breakers_probe(struct tl_client *client, const char *channel, const char *op_code,
                         int64_t hold_ms, breaker_heard heard, breaker_probe *probe,
                         int64_t *again_ms)
{
    channel_breakers *all = &client->breakers;
    tl_status status;

    *again_ms = 0;
    if (!is_any(client))
        return TL_OK;
    /* The ending is written after the call. */
    hold_ms += client->config.commit_ms;
    pthread_mutex_lock(&all->mutex);
    status = probe_one(client, find(all, channel, op_code), hold_ms, probe, 0, again_ms);
    if (status == TL_OK)
        status = probe_one(client, find(all, channel, ""), hold_ms, probe, 1, again_ms);
    if (status != TL_OK)
        release(probe, heard);
    pthread_mutex_unlock(&all->mutex);
    return status;
}

void breakers_release(struct tl_client *client, breaker_probe *probe, breaker_heard heard)
{
    channel_breakers *all = &client->breakers;

    if (probe->of[0] == NULL && probe->of[1] == NULL)
        return;
    /* A handle may outlive its client, and a child has its parent's handles. */
    if (atomic_load(&client->closed) || client->generation != process_generation()) {
        memset(probe, 0, sizeof *probe);
        return;
    }
    pthread_mutex_lock(&all->mutex);
    /* Whoever got no further had its turn: else it might take each. */
    release(probe, heard != BREAKER_NOTHING ? heard : BREAKER_UNKNOWN);
    pthread_mutex_unlock(&all->mutex);
}

void breakers_each(struct tl_client *client,
                   void (*each)(void *context, const char *channel, const char *op_code,
                                int is_open),
                   void *context)
{
    channel_breakers *all = &client->breakers;

    pthread_mutex_lock(&all->mutex);
    for (const struct channel_breaker *one = all->list; one != NULL; one = one->next)
        if (one->unknowns > 0)
            each(context, one->channel, one->op_code, one->is_open);
    pthread_mutex_unlock(&all->mutex);
}
