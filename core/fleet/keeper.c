/*
 * The thread of one shard: opens its client, reads its map with each beat, and tells those who watch
 * that it can be used.  Touches the shard's client, and what it leaves under the fleet's mutex.
 *
 * A client stays open once it is: whether its database answers is for each call to find out, and for
 * its heartbeat.  So what a shard that is down costs is one connect at a time on this thread.
 */
#include "fleet/fleet.h"

#include "base/clock.h"
#include "base/text.h"
#include "client/client.h"
#include "client/read.h"
#include "store/server.h"

#include <stdio.h>
#include <string.h>

int fleet_may_pass(tl_status status)
{
    return tl_status_class(status) == TL_CLASS_RETRY || tl_status_class(status) == TL_CLASS_UNKNOWN;
}

int keeper_is_silent(const shard *s)
{
    const struct config *config = &s->fleet->config;
    const int64_t left_ms = tl_client_alive_ms(s->client);
    const int64_t may_ms = config->session_ms / 3;

    /* alive_ms runs down from session_ms: what is gone of it is how long nothing was confirmed. */
    if (left_ms > config->session_ms - may_ms)
        return 0;
    return clock_boottime_ms() - s->answered_ms > may_ms;
}

/* ------------------------------------------------------------------ what it found -- */

/* What tl_fleet_open() answers is not told besides.  Needs: fleet->mutex held. */
static int is_news(const shard *s, tl_status status)
{
    if (!s->fleet->is_open && !fleet_may_pass(status))
        return 0;
    return !s->is_tried || s->status != status;
}

/* The sentence of this thread says why. */
static void leave_status(shard *s, tl_status status)
{
    tl_fleet *fleet = s->fleet;
    char sentence[ERROR_MAX];
    int news;

    text_copy(sentence, sizeof sentence, status != TL_OK ? tl_error_message() : "");
    pthread_mutex_lock(&fleet->mutex);
    news = is_news(s, status) && !fleet->is_closing;
    s->status = status;
    s->is_tried = 1;
    text_copy(s->sentence, sizeof s->sentence, sentence);
    pthread_cond_broadcast(&fleet->changed);
    pthread_mutex_unlock(&fleet->mutex);
    if (!news)
        return;
    if (status == TL_OK)
        log_line(&fleet->logger, TL_INFO, NULL, 0, "shard %s: it can be used", s->name);
    else
        log_line(&fleet->logger, fleet_may_pass(status) ? TL_WARNING : TL_ALARM, NULL, 0,
                 "shard %s: it cannot be used: %s", s->name, sentence);
}

static tl_status read_slots(tl_client *client, db_result *rows)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    return read_status(at.connection, store_slots(at.connection, rows), "reading the slots");
}

/* `look` began before the statement, so whoever wanted it before that has it. */
static tl_status read_map(shard *s, uint64_t look)
{
    tl_fleet *fleet = s->fleet;
    RESULT rows = DB_RESULT_INIT;
    tl_status status;

    READ_REPEATED(status, read_slots(s->client, &rows));
    if (status == TL_OK) {
        pthread_mutex_lock(&fleet->mutex);
        if (map_take(&s->map, &rows, fleet->names, fleet->count)) {
            s->answered_ms = clock_boottime_ms();
            s->looked = look;
        } else {
            status = error_set(TL_SERVER_ERROR, "tl_slot has a row that is no slot");
        }
        pthread_mutex_unlock(&fleet->mutex);
    }
    return status;
}

/* ------------------------------------------------------------------- those who watch -- */

/* One that is not content yet, and was not told in this round. */
static tl_fleet_watch *next_watch(shard *s, uint64_t round)
{
    tl_fleet *fleet = s->fleet;
    tl_fleet_watch *watch;

    pthread_mutex_lock(&fleet->mutex);
    for (watch = fleet->watches; watch != NULL; watch = watch->next)
        if (!watch->is_leaving && watch->told[s->number] != round &&
            !(watch->called[s->number] && watch->status[s->number] == TL_OK))
            break;
    if (watch != NULL) {
        watch->told[s->number] = round;
        watch->running++;
    }
    pthread_mutex_unlock(&fleet->mutex);
    return watch;
}

static void tell_watch(shard *s, tl_fleet_watch *watch)
{
    tl_fleet *fleet = s->fleet;
    char sentence[ERROR_MAX] = "";
    tl_status status, before;
    int is_new;

    error_clear();
    status = watch->up(watch->context, s->number, s->client);
    if (status != TL_OK)
        text_copy(sentence, sizeof sentence, tl_error_message());
    pthread_mutex_lock(&fleet->mutex);
    before = watch->called[s->number] ? watch->status[s->number] : TL_OK;
    is_new = status != before && !watch->is_leaving;
    watch->called[s->number] = 1;
    watch->status[s->number] = status;
    if (status != TL_OK)
        snprintf(watch->sentence, sizeof watch->sentence, "shard %s: %.900s", s->name, sentence);
    watch->running--;
    pthread_cond_broadcast(&fleet->changed);
    pthread_mutex_unlock(&fleet->mutex);
    if (is_new && status != TL_OK)
        log_line(&fleet->logger, fleet_may_pass(status) ? TL_WARNING : TL_ALARM, NULL, 0,
                 "shard %s: nothing works there: %s", s->name, sentence);
}

/* ------------------------------------------------------------------------ the thread -- */

/* The number of the newest look; 0: the fleet is being closed. */
static uint64_t begin_round(shard *s)
{
    tl_fleet *fleet = s->fleet;
    uint64_t look;

    pthread_mutex_lock(&fleet->mutex);
    look = fleet->is_closing ? 0 : fleet->looks;
    pthread_mutex_unlock(&fleet->mutex);
    return look;
}

/* Until the next beat, or somebody wants a look, or the fleet is closed. */
static void wait_for_round(shard *s, uint64_t look)
{
    tl_fleet *fleet = s->fleet;
    const int64_t until_ms = clock_deadline(fleet->config.beat_ms);

    pthread_mutex_lock(&fleet->mutex);
    while (!fleet->is_closing && fleet->looks == look &&
           clock_wait(&fleet->changed, &fleet->mutex, until_ms) == 0)
        ;
    pthread_mutex_unlock(&fleet->mutex);
}

tl_status keeper_stands_apart(const shard *s)
{
    if (s->twin == NULL)
        return TL_OK;
    return error_set(TL_BAD_CONFIG,
                     "it leads to the database of shard %s, or to a copy of it (installation %s): "
                     "take the copy out of the settings, then restart all that have them",
                     s->twin->name, s->installation);
}

static const shard *twin_of(const shard *s)
{
    const tl_fleet *fleet = s->fleet;

    for (size_t i = 0; i < fleet->count && s->installation[0] != '\0'; i++)
        if (&fleet->shards[i] != s && strcmp(fleet->shards[i].installation, s->installation) == 0)
            return &fleet->shards[i];
    return NULL;
}

/* The names of two shards tell them apart, unless one is a copy of the other that was named by hand:
 * then both have what was paid before, and which is the copy nobody can tell.  So nothing begins at
 * either, whoever has their clients by now.  Needs: fleet->mutex held. */
static void note_installation(shard *s, tl_client *client, const char *installation)
{
    tl_fleet *fleet = s->fleet;

    s->client = client;
    text_copy(s->installation, sizeof s->installation, installation);
    for (size_t i = 0; i < fleet->count; i++) {
        shard *one = &fleet->shards[i];

        one->twin = twin_of(one);
        if (one->client != NULL)
            atomic_store(&one->client->gates.is_copy, one->twin != NULL);
    }
}

/* With each round, since a host may lead to another database after a failover. */
static tl_status look_which(shard *s, tl_client *client)
{
    char installation[SHARD_INSTALLATION] = "";
    tl_status status;

    READ_REPEATED(status, shard_installation(client, installation));
    TRY(status);
    pthread_mutex_lock(&s->fleet->mutex);
    note_installation(s, client, installation);
    pthread_mutex_unlock(&s->fleet->mutex);
    return TL_OK;
}

static tl_status open_new(shard *s)
{
    char sentence[ERROR_MAX];
    tl_client_options options;
    tl_client *client = NULL;
    tl_status status;

    fleet_client_options(s, &options);
    TRY(tl_client_open(&client, &options));
    status = look_which(s, client);
    if (status == TL_OK)
        return TL_OK;
    text_copy(sentence, sizeof sentence, tl_error_message());
    tl_client_close(client);
    return error_set(status, "%s", sentence);
}

/* Also the map of one that has a twin is read: what it alone has is not "not reached yet". */
static tl_status do_round(shard *s, uint64_t look)
{
    const int is_new = s->client == NULL;
    tl_status status;

    if (is_new)
        TRY(open_new(s));
    TRY(read_map(s, look));
    if (!is_new)
        TRY(look_which(s, s->client));
    pthread_mutex_lock(&s->fleet->mutex);
    status = keeper_stands_apart(s);
    pthread_mutex_unlock(&s->fleet->mutex);
    return status;
}

void *keeper_main(void *argument)
{
    shard *s = argument;
    tl_fleet_watch *watch;
    uint64_t look, round = 0;

    while ((look = begin_round(s)) != 0) {
        const tl_status status = do_round(s, look);

        leave_status(s, status);
        if (status == TL_OK) {
            round++;
            while ((watch = next_watch(s, round)) != NULL)
                tell_watch(s, watch);
        }
        wait_for_round(s, look);
    }
    return NULL;
}
