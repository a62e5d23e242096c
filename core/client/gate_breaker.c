/* Counts what the channels with a breaker answer, and keeps this process's probes.  Touches
 * trade_channel_breaker, by two procedures. */
#include "client/gate_inside.h"

#include "base/clock.h"
#include "base/error.h"
#include "store/bind.h"

#include <inttypes.h>
#include <stdio.h>

/* Says once what this process does differently from now on. */
static void say(struct tl_client *client, struct gate *one)
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

/* What was counted is told, or void. */
static void forget(struct gate *one)
{
    one->tail = one->fails = one->ended = 0;
    one->answered = 0;
}

void gate_set_standing(struct tl_client *client, struct gate *one, int is_open, uint64_t era,
                       uint64_t in_a_row, int64_t again_ms)
{
    if (one->era != era)
        forget(one);
    one->era = era;
    one->is_open = is_open;
    one->in_a_row = in_a_row;
    one->next_probe_ms = clock_boottime_ms() + again_ms;
    say(client, one);
}

void gate_end_breaker(struct tl_client *client, struct gate *one)
{
    one->unknowns = 0;
    one->is_open = 0;
    say(client, one);
}

int gate_is_broken(const struct gate *one)
{
    return one->unknowns > 0 &&
           (one->is_open || (one->answered ? 0 : one->in_a_row) + one->tail >= one->unknowns);
}

/* Another try is worth it not before the next probe; where that is due, not before its answer may be
 * known. */
tl_status gate_refuse_broken(const struct tl_client *client, gate_pass *pass,
                             const struct gate *one)
{
    const int64_t left_ms = one->is_open ? one->next_probe_ms - clock_boottime_ms() : one->probe_ms;
    const int64_t beat_ms = client->config.beat_ms;

    return gate_refuse(pass, left_ms > beat_ms ? left_ms : beat_ms,
                       "channel %s does not answer%s%s, and its breaker is open: nothing was "
                       "written; try again later",
                       one->channel, one->op_code[0] != '\0' ? " for " : "", one->op_code);
}

void gate_count(struct gate *one, gate_heard heard)
{
    /* What was under way when it opened says nothing of what comes after. */
    if (one == NULL || one->unknowns == 0 || one->is_open)
        return;
    one->ended++;
    if (heard == GATE_ANSWER) {
        one->answered = 1;
        one->tail = 0;
    } else {
        one->fails++;
        one->tail++;
    }
}

/* --------------------------------------------------------------------------- telling -- */

/* An answer is told where it ends a row of unknown ones; all, where a share counts. */
static int has_something(const struct gate *one)
{
    if (one->is_over)
        return 1;
    return one->unknowns > 0 && !one->is_open &&
           (one->fails > 0 || (one->answered && one->in_a_row > 0) ||
            (one->share > 0 && one->ended > 0));
}

/* What the database may have taken is not told again: then fewer are counted than there were. */
static void tell(struct tl_client *client, struct gate *one)
{
    /* As tl_channel_told() takes it. */
    static const int told_of[] = {[GATE_UNKNOWN] = 0, [GATE_ANSWER] = 1, [GATE_NOTHING] = 2};
    const struct gate was = *one;
    const uint64_t probe = was.is_over ? was.probe : 0;
    const int answered = was.is_over ? told_of[was.came_to] : was.answered;
    uint64_t era, in_a_row;
    int64_t again_ms;
    int is_open;
    char text[GATE_TEXT] = "";
    db *connection = NULL;
    tl_status status = TL_OVERLOADED; /* no connection is free */

    one->tells = 1;
    if (probe == 0) {
        /* Whoever asks meanwhile goes by what is being told. */
        one->in_a_row = (answered ? 0 : was.in_a_row) + was.tail;
        forget(one);
    }
    pthread_mutex_unlock(&client->gates.mutex);
    if (pool_get(client->connections, POOL_BUSINESS, client->config.beat_ms, &connection) == TL_OK)
        status =
            gate_called(client, connection,
                        SQL_RUN(connection, NULL, channel_told, .channel = db_text(was.channel),
                                .op_code = db_text(was.op_code), .era = db_uint(was.era),
                                .probe = db_uint(probe), .answered = db_int(answered),
                                .tail = db_uint(was.tail), .unknowns = db_uint(was.fails),
                                .sends = db_uint(was.ended)),
                        "telling the breaker of a channel", text);
    pthread_mutex_lock(&client->gates.mutex);
    client_note(client, WORK_BREAKERS, status);
    one->tells = 0;
    if (probe != 0) {
        /* A probe that is told twice is told once. */
        if (status == TL_OK && one->probe == probe) {
            one->probe = 0;
            one->is_over = 0;
        }
    } else if ((status == TL_OVERLOADED || status == TL_TRY_AGAIN) && one->era == was.era) {
        /* Nothing was told: what was counted meanwhile comes after it. */
        one->in_a_row = was.in_a_row;
        one->tail += one->answered ? 0 : was.tail;
        one->answered |= was.answered;
        one->fails += was.fails;
        one->ended += was.ended;
    }
    if (status == TL_OK && sscanf(text, "%d %" SCNu64 " %" SCNu64 " %" SCNd64, &is_open, &era,
                                  &in_a_row, &again_ms) == 4)
        gate_set_standing(client, one, is_open, era, in_a_row, again_ms);
}

void gate_tell(struct tl_client *client, struct gate *one)
{
    if (one->tells)
        return;
    if (has_something(one))
        tell(client, one);
    else if (!gate_is_broken(one))
        forget(one);
}

/* ---------------------------------------------------------------------------- probing -- */

/* Whether a hold of this process has the probe, or it is not told yet.  A callback that hangs keeps
 * it no longer than it has it in the database. */
static int has_probe(const struct gate *one)
{
    return one->probe != 0 && (one->is_over || clock_boottime_ms() < one->probe_until_ms);
}

/* The next probe is an ask's, after so many of the lane without an answer: the lane may have just
 * one trade, which never has one.  The database counts them. */
#define PROBES_OF_LANE 3

/* Most turns are the lane's; at the other's turn, each may only where the probe has been free for so
 * long that the other one has nothing to probe with.  Of two breakers, one is enough for the asks'
 * turn: else a row of turns that never meet would leave asks none. */
int gate_probe_is_free(struct tl_client *client, const char *channel, const char *op_code,
                       int is_ask)
{
    int64_t free_ms = INT64_MIN, late_ms = 0;
    int is_broken = 0, asks = 0;

    for (unsigned i = 0; i < GATES_OF_ONE; i++) {
        const struct gate *one = gate_find(&client->gates, channel, op_code, i);

        if (one == NULL || !gate_is_broken(one))
            continue;
        if (!one->is_open || has_probe(one))
            return 0;
        is_broken = 1;
        asks |= one->in_a_row % (PROBES_OF_LANE + 1) == PROBES_OF_LANE;
        if (one->next_probe_ms > free_ms)
            free_ms = one->next_probe_ms;
        if (one->probe_ms > late_ms)
            late_ms = one->probe_ms;
    }
    late_ms += 2 * client->config.beat_ms;
    return is_broken && free_ms + (is_ask != asks ? late_ms : 0) <= clock_boottime_ms();
}

/* GATE_NOTHING: nothing was called, and the next one need not wait. */
void gate_end_probes(gate_pass *pass, gate_heard heard)
{
    for (unsigned i = 0; i < GATES_OF_ONE; i++) {
        struct gate *one = pass->probe[i];

        if (one != NULL && one->probe == pass->number[i]) {
            one->is_over = 1;
            one->came_to = heard;
        }
        pass->probe[i] = NULL;
    }
}

static tl_status probe_one(struct tl_client *client, gate_pass *pass, unsigned i,
                           const gate_send *send)
{
    struct gate *one = gate_find(&client->gates, send->channel, send->op_code, i);
    const int has = pass->probe[i] != NULL;
    /* The ending is written after the call. */
    const int64_t hold_ms = send->hold_ms + client->config.commit_ms;
    uint64_t number = 0;
    int64_t in_ms = 0;
    int is_open = 0;
    char text[GATE_TEXT] = "";
    db *connection = NULL;
    tl_status status = TL_OVERLOADED; /* no connection is free */

    if (one == NULL || one->unknowns == 0 || (!has && !gate_is_broken(one)))
        return TL_OK;
    if (!has) {
        /* One that is not told yet has no probe; and of one process only one hold has it. */
        if (!one->is_open || has_probe(one) || one->next_probe_ms > clock_boottime_ms())
            return gate_refuse_broken(client, pass, one);
        /* Nobody else of this process asks meanwhile, nor soon after an answer that was lost. */
        one->next_probe_ms = clock_boottime_ms() + client->config.beat_ms;
    }
    pthread_mutex_unlock(&client->gates.mutex);
    if (pool_get(client->connections, POOL_BUSINESS, client->config.pool_wait_ms, &connection) ==
        TL_OK)
        status = gate_called(
            client, connection,
            SQL_RUN(connection, NULL, channel_probe, .channel = db_text(one->channel),
                    .op_code = db_text(one->op_code), .probe = db_uint(has ? pass->number[i] : 0),
                    .hold_ms = db_int(hold_ms), .latest_us = db_int(clock_watch_latest_us(client))),
            "probing the breaker of a channel", text);
    pthread_mutex_lock(&client->gates.mutex);
    if (status != TL_OK)
        return status == TL_OVERLOADED || status == TL_TRY_AGAIN
                   ? gate_refuse_broken(client, pass, one)
                   : status;
    if (sscanf(text, "%d %" SCNu64 " %" SCNd64, &is_open, &number, &in_ms) != 3 || !is_open) {
        one->is_open = 0; /* closed meanwhile, or taken away */
        one->in_a_row = 0;
        forget(one);
        say(client, one);
        return TL_OK;
    }
    one->next_probe_ms = clock_boottime_ms() + in_ms;
    if (number == 0)
        return gate_refuse_broken(client, pass, one);
    one->probe = number;
    one->probe_until_ms = clock_boottime_ms() + hold_ms;
    one->is_over = 0;
    pass->probe[i] = one;
    pass->number[i] = number;
    return TL_OK;
}

/* While a breaker is open, an ask is refused.  Only at a turn of asks, or where nothing in the retry
 * lane has probed for long, since nothing is due there, an ask is let through as the probe. */
static tl_status check_ask(struct tl_client *client, gate_pass *pass, const gate_send *send)
{
    for (unsigned i = 0; i < GATES_OF_ONE; i++) {
        const struct gate *one = gate_find(&client->gates, send->channel, send->op_code, i);

        if (one == NULL || !gate_is_broken(one))
            continue;
        client_add(&client->counters.broken, 1);
        return send->wait_ms > 0 && gate_probe_is_free(client, send->channel, send->op_code, 1)
                   ? TL_OK
                   : gate_refuse_broken(client, pass, one);
    }
    return TL_OK;
}

/* Has the probe of each breaker that is open, or has none. */
tl_status gate_pass_breakers(struct tl_client *client, gate_pass *pass, const gate_send *send)
{
    tl_status status = TL_OK;

    if (send->kind == GATE_ASK && !gate_has_probe(pass))
        TRY(check_ask(client, pass, send));
    for (unsigned i = 0; i < GATES_OF_ONE && status == TL_OK; i++)
        status = probe_one(client, pass, i, send);
    if (status != TL_OK)
        gate_end_probes(pass, pass->heard);
    return status;
}
