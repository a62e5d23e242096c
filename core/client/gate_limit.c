/* Keeps this process's share of each limited channel: permits to send at a time, and moments at
 * which a send may begin.  Touches trade_channel_limit and trade_channel_permit, by one procedure. */
#include "client/gate_inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "store/bind.h"

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

static const char *number_text(char to[24], uint64_t number)
{
    if (number == 0)
        return "any number";
    snprintf(to, 24, "%" PRIu64, number);
    return to;
}

void gate_set_limit(struct tl_client *client, struct gate *one, uint64_t sends, uint64_t per_second)
{
    char most[24], rate[24];

    if (one->sends == sends && one->per_second == per_second)
        return;
    log_line(&client->logger, TL_WARNING, NULL, 0,
             "channel %s%s%s is limited to %s of sends at a time, and %s a second", one->channel,
             one->op_code[0] != '\0' ? " for " : "", one->op_code, number_text(most, sends),
             number_text(rate, per_second));
    one->was_limited = 1;
    one->sends = sends;
    one->per_second = per_second;
    one->slots = 0;
}

/* ------------------------------------------------------------------------- the share -- */

/* The text tells what the share came to. */
static tl_status keep_share(struct gate *one, const char *text, uint64_t claims)
{
    uint64_t may, slots;
    int64_t ahead_us, interval_us;

    if (text[0] == '\0') {
        /* Lifted since: what was read last goes until the next look. */
        one->may = one->used + one->waiting;
        one->slot_us = clock_boottime_us();
        one->interval_us = 0;
        one->slots = one->waiting;
        return TL_OK;
    }
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64, &may, &slots, &ahead_us,
               &interval_us) != 4)
        return error_set(TL_INTERNAL, "a share of a limited channel cannot be read: %.40s", text);
    one->may = may;
    /* Who claimed no moments keeps those that it has. */
    if (interval_us == 0 || claims == 0)
        return TL_OK;
    /* Counted from the answer, which is later than the moment that the server means. */
    one->slot_us = clock_boottime_us() + ahead_us;
    one->interval_us = interval_us;
    one->slots = slots;
    return TL_OK;
}

/*
 * Takes a share anew, on a connection that waits: another process may be taking its own.  Needs:
 * nobody else of this one asks.  While it asks, no more sends begin than it says are under way, and
 * so it stays if the answer is lost: the database may have given the others what this process had.
 */
static tl_status take_share(struct tl_client *client, struct gate *one, uint64_t wanted,
                            uint64_t claims)
{
    channel_gates *all = &client->gates;
    const struct gate was = *one;
    char text[GATE_TEXT] = "";
    db *connection = NULL;
    tl_status status;

    one->asks = 1;
    one->may = one->used;
    one->has_row |= one->sends > 0;
    pthread_mutex_unlock(&all->mutex);
    status = pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms, &connection);
    if (status == TL_OK)
        status = gate_called(
            client, connection,
            SQL_RUN(connection, NULL, channel_share, .channel = db_text(was.channel),
                    .op_code = db_text(was.op_code), .session_id = db_text(was.session_id),
                    .used = db_uint(was.used), .wanted = db_uint(wanted),
                    .hold_ms = db_int(was.hold_ms), .claims = db_uint(claims),
                    .latest_us = db_int(clock_watch_latest_us(client))),
            "taking a share of a limited channel", text);
    pthread_mutex_lock(&all->mutex);
    one->asks = 0;
    if (was.share_era == one->share_era) {
        if (status == TL_OK)
            status = keep_share(one, text, claims);
        if (status == TL_OK && wanted == 0 && was.used == 0)
            one->has_row = 0;
        /* The row knows of no such hold yet. */
        if (one->hold_ms > was.hold_ms)
            one->may = one->used;
    }
    /* Others were at it for longer than a statement waits: nothing was free, and nothing done. */
    if (status == TL_TRY_AGAIN)
        status = TL_OK;
    one->next_share_ms = one->may > one->used ? 0 : clock_boottime_ms() + AGAIN_MS;
    if (claims > 0)
        one->next_slot_ms = one->slots > 0 ? 0 : clock_boottime_ms() + AGAIN_MS;
    pthread_cond_broadcast(&all->changed);
    return status;
}

/* The share is one session's; another one begins with none. */
static void see_session(struct gate *one, const life *own)
{
    const char *session_id = life_session_id(own);

    if (strcmp(one->session_id, session_id) == 0)
        return;
    text_copy(one->session_id, sizeof one->session_id, session_id);
    one->share_era++;
    one->used = one->may = one->peak = one->slots = 0;
    one->has_row = 0;
    one->next_share_ms = one->next_slot_ms = 0;
}

/* ------------------------------------------------------------------------- one send -- */

static tl_status refuse(struct gate *one, gate_pass *pass, const gate_send *send,
                        gate_number number, int64_t again_ms)
{
    one->refused[send->kind == GATE_ARM][number]++;
    return gate_refuse(pass, again_ms,
                       "channel %s is at the limit that operators set for %s: nothing was written; "
                       "try again later",
                       one->channel, send->op_code);
}

/* TL_OK: one more send may be under way. */
static tl_status take_permit(struct tl_client *client, struct gate *one, gate_pass *pass,
                             const gate_send *send, int64_t until_ms)
{
    channel_gates *all = &client->gates;
    tl_status status = TL_OK;

    one->waiting++;
    while (status == TL_OK && one->sends > 0 && one->used >= one->may) {
        const int64_t now_ms = clock_boottime_ms();

        if (!one->asks && now_ms >= one->next_share_ms)
            status = take_share(client, one, one->used + one->waiting, 0);
        else if (now_ms >= until_ms || life_is_over(send->life))
            status = refuse(one, pass, send, GATE_BY_SENDS, client->config.beat_ms);
        else
            clock_wait(&all->changed, &all->mutex,
                       one->asks || until_ms < one->next_share_ms ? until_ms : one->next_share_ms);
    }
    one->waiting--;
    return status;
}

/* How many moments to take: more, the faster they are used up. */
static uint64_t batch_of(struct gate *one)
{
    const uint64_t most = one->per_second * AHEAD_US / 1000000;

    one->batch = one->batch == 0 ? 1 : one->batch * 2;
    if (one->batch > most)
        one->batch = most;
    return one->batch > one->waiting ? one->batch : one->waiting;
}

static uint64_t peak_of(const struct gate *one)
{
    return one->peak > one->used ? one->peak : one->used;
}

/* Lets go of moments that are over. */
static void drop_late(struct gate *one)
{
    const int64_t now_us = clock_boottime_us();

    while (one->slots > 0 && one->slot_us + LATE_US < now_us) {
        one->slots--;
        one->slot_us += one->interval_us;
        one->batch = 0;
    }
}

/* TL_OK: *at_us is the moment. */
static tl_status take_slot(struct tl_client *client, struct gate *one, gate_pass *pass,
                           const gate_send *send, int64_t until_ms, int64_t *at_us)
{
    channel_gates *all = &client->gates;
    tl_status status = TL_OK;

    one->waiting++;
    while (status == TL_OK && one->per_second > 0) {
        const int64_t now_ms = clock_boottime_ms();

        drop_late(one);
        if (one->slots > 0 && one->slot_us / 1000 <= until_ms) {
            if (one->slot_us > *at_us)
                *at_us = one->slot_us;
            one->slot_us += one->interval_us;
            one->slots--;
            break;
        }
        if (one->slots == 0 && !one->asks && now_ms >= one->next_slot_ms)
            status = take_share(client, one, peak_of(one), batch_of(one));
        else if (one->slots > 0 || now_ms >= until_ms)
            status = refuse(one, pass, send, GATE_BY_RATE,
                            one->slots > 0 ? one->slot_us / 1000 - now_ms : AGAIN_MS);
        else
            clock_wait(&all->changed, &all->mutex,
                       one->asks || until_ms < one->next_slot_ms ? until_ms : one->next_slot_ms);
    }
    one->waiting--;
    return status;
}

/* A send without a permit would be one too many under the session that begins next. */
static tl_status session_is_over(void)
{
    return error_set(TL_SESSION_LOST, "the session ended while the channel's limit was asked for: "
                                      "nothing was written");
}

static tl_status take_one(struct tl_client *client, gate_pass *pass, unsigned i,
                          const gate_send *send, int64_t until_ms, int64_t *at_us)
{
    struct gate *one = gate_find(&client->gates, send->channel, send->op_code, i);

    if (one == NULL || (one->sends == 0 && one->per_second == 0))
        return TL_OK;
    /* Under the mutex: another life begins only when this one is over, so nobody has that one's
     * share before. */
    if (life_is_over(send->life))
        return session_is_over();
    see_session(one, send->life);
    if (one->hold_ms < send->hold_ms) {
        /* The database is to know it before such a send begins. */
        one->hold_ms = send->hold_ms;
        one->may = one->used;
    }
    TRY(take_permit(client, one, pass, send, until_ms));
    if (strcmp(one->session_id, life_session_id(send->life)) != 0)
        return session_is_over();
    one->used++;
    one->peak = peak_of(one);
    pass->permit[i] = one;
    pass->era[i] = one->share_era;
    return take_slot(client, one, pass, send, until_ms, at_us);
}

/* Always in this order, so that no two sends wait for each other's; and what is left to an
 * operation keeps nothing of the others' while it waits. */
tl_status gate_take_permits(struct tl_client *client, gate_pass *pass, const gate_send *send,
                            int64_t *at_us)
{
    const int64_t until_ms = clock_boottime_ms() + send->wait_ms;
    tl_status status = TL_OK;

    if (gate_has_permit(pass))
        return TL_OK;
    pass->life = send->life;
    for (unsigned i = 0; i < GATES_OF_ONE && status == TL_OK; i++)
        status = take_one(client, pass, i, send, until_ms, at_us);
    if (status != TL_OK)
        gate_free_permits(pass);
    /* Also where no connection was free, and where the moment has come meanwhile. */
    if (status == TL_OVERLOADED && pass->again_ms <= 0)
        pass->again_ms = AGAIN_MS;
    return status;
}

void gate_free_permits(gate_pass *pass)
{
    for (unsigned i = 0; i < GATES_OF_ONE; i++) {
        struct gate *one = pass->permit[i];

        if (one != NULL && pass->era[i] == one->share_era && one->used > 0)
            one->used--;
        pass->permit[i] = NULL;
    }
}

/* --------------------------------------------------------------------------- the rounds -- */

/* 1: others were at it, and nothing was done. */
static int give_back(struct tl_client *client, struct gate *one, uint64_t wanted)
{
    /* The session's own row is of today's session alone. */
    if (!one->has_row || one->asks || life_is_over(session_life(client->session)) ||
        strcmp(one->session_id, session_id(client->session)) != 0)
        return 0;
    return take_share(client, one, wanted, 0) == TL_OK && one->has_row && one->used + wanted == 0;
}

void gate_keep_share(struct tl_client *client, struct gate *one)
{
    const uint64_t peak = peak_of(one);

    one->peak = one->used;
    (void)give_back(client, one, peak + one->waiting);
}

void gate_leave_share(struct tl_client *client, struct gate *one, int64_t until_ms)
{
    channel_gates *all = &client->gates;

    /* The round that is under way may be taking a share, and others may be at it too. */
    while (one->asks && clock_boottime_ms() < until_ms)
        clock_wait(&all->changed, &all->mutex, until_ms);
    while (give_back(client, one, 0) && clock_boottime_ms() < until_ms)
        clock_wait(&all->changed, &all->mutex, clock_boottime_ms() + LEAVE_AGAIN_MS);
}
