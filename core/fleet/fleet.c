/* Opens and closes a fleet, and tells whose customer is whose.  Touches memory under the fleet's
 * mutex; databases are touched by the shards' own threads (keeper.c). */
#include "fleet/fleet.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "client/client.h"
#include "client/read.h"
#include "store/bind.h"
#include "store/server.h"

#include <stdio.h>
#include <string.h>

static tl_status check(const tl_fleet *fleet)
{
    error_clear();
    if (fleet == NULL)
        return error_set(TL_INVALID, "fleet is NULL");
    if (fleet->generation != process_generation())
        return error_set(TL_WRONG_PROCESS, "this fleet was opened before fork(); the child process "
                                           "must open one of its own");
    return TL_OK;
}

/* ------------------------------------------------------------------ making, freeing -- */

/* So that a line tells of which shard it is. */
static void log_of_shard(void *context, const tl_log_line *line)
{
    const shard *s = context;
    tl_log_line named = *line;
    char message[LOG_MESSAGE + CONFIG_SHARD_MAX + 16];

    snprintf(message, sizeof message, "shard %s: %s", s->name, line->message);
    named.message = message;
    s->fleet->client.log(s->fleet->client.log_context, &named);
}

void fleet_client_options(const shard *s, tl_client_options *options)
{
    *options = s->fleet->client;
    options->shard = s->name;
    if (options->log != NULL) {
        options->log = log_of_shard;
        options->log_context = (void *)(uintptr_t)s;
    }
}

static int keep_text(const char **to)
{
    const char *from = *to;

    *to = memory_dup_text(from);
    return from == NULL || *to != NULL;
}

/* All texts are copied, or NULL. */
static int keep_texts(tl_client_options *client)
{
    int all = 1;

    all &= keep_text(&client->config_file);
    all &= keep_text(&client->program);
    all &= keep_text(&client->operations);
    all &= keep_text(&client->group_suffix);
    all &= keep_text(&client->database);
    all &= keep_text(&client->user);
    all &= keep_text(&client->password);
    return all;
}

static void free_text(const char *text)
{
    memory_free((void *)(uintptr_t)text);
}

static void free_texts(tl_client_options *client)
{
    if (client->password != NULL)
        explicit_bzero((void *)(uintptr_t)client->password, strlen(client->password));
    free_text(client->config_file);
    free_text(client->program);
    free_text(client->operations);
    free_text(client->group_suffix);
    free_text(client->database);
    free_text(client->user);
    free_text(client->password);
}

static void fleet_free(tl_fleet *fleet)
{
    free_texts(&fleet->client);
    if (fleet->generation == process_generation()) {
        pthread_cond_destroy(&fleet->changed);
        pthread_mutex_destroy(&fleet->mutex);
    }
    memory_free(fleet);
}

static tl_status load(struct config *config, const tl_client_options *client)
{
    tl_status status = config_load_for(config, client->config_file, client->group_suffix);

    if (status == TL_OK && config->shards.count == 0)
        return error_set(TL_BAD_CONFIG, "%s: this file names no shards: it is of no fleet",
                         config_file_name(client->config_file));
    return status;
}

static void set_up(tl_fleet *fleet, const tl_fleet_options *options, const struct config *config)
{
    fleet->generation = process_generation();
    fleet->config = *config;
    fleet->logger.fn = options->client->log;
    fleet->logger.context = options->client->log_context;
    fleet->logger.cust_key =
        config->log_cust == CONFIG_CUST_HASHED ? fleet->config.log_cust_key : NULL;
    fleet->logger.least = config->log_level;
    fleet->slot = options->slot;
    fleet->slot_context = options->slot_context;
    fleet->looks = 1;
    fleet->count = config->shards.count;
    for (size_t i = 0; i < fleet->count; i++) {
        fleet->names[i] = fleet->config.shards.name[i];
        fleet->shards[i].fleet = fleet;
        fleet->shards[i].number = i;
        fleet->shards[i].name = fleet->names[i];
    }
}

static tl_status make(tl_fleet **out, const tl_fleet_options *options, const struct config *config)
{
    tl_fleet *fleet = memory_new(sizeof *fleet);

    if (fleet == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the fleet");
    if (pthread_mutex_init(&fleet->mutex, NULL) != 0 ||
        clock_condition_init(&fleet->changed) != 0) {
        memory_free(fleet);
        return error_set(TL_NO_MEMORY, "no mutex for the fleet");
    }
    set_up(fleet, options, config);
    fleet->client = *options->client;
    if (!keep_texts(&fleet->client)) {
        fleet_free(fleet);
        return error_set(TL_NO_MEMORY, "out of memory for the fleet");
    }
    *out = fleet;
    return TL_OK;
}

static void stop(tl_fleet *fleet)
{
    pthread_mutex_lock(&fleet->mutex);
    fleet->is_closing = 1;
    pthread_cond_broadcast(&fleet->changed);
    pthread_mutex_unlock(&fleet->mutex);
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->shards[i].has_keeper)
            pthread_join(fleet->shards[i].keeper, NULL);
}

/* Needs: the keepers have ended. */
static void close_all(tl_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++)
        tl_client_close(fleet->shards[i].client);
    fleet_free(fleet);
}

static tl_status start(tl_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        shard *s = &fleet->shards[i];

        if (thread_context_start(&s->keeper, keeper_main, s) != 0)
            return error_set(TL_NO_MEMORY, "no thread for shard %s", s->name);
        s->has_keeper = 1;
    }
    return TL_OK;
}

/* Needs: fleet->mutex held. */
static int all_tried(const tl_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++)
        if (!fleet->shards[i].is_tried)
            return 0;
    return 1;
}

/* Why a shard may not be used, and would not be by waiting. */
static tl_status refused(const tl_fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const shard *s = &fleet->shards[i];

        if (s->is_tried && s->status != TL_OK && !fleet_may_pass(s->status))
            return error_set(s->status, "shard %s: %.900s", s->name, s->sentence);
    }
    return TL_OK;
}

/* A server that takes connections and says nothing shall not hold up the others. */
static tl_status await_first(tl_fleet *fleet)
{
    const int64_t until_ms = clock_deadline((int64_t)fleet->config.connect_timeout_s * 1000);
    tl_status status;

    pthread_mutex_lock(&fleet->mutex);
    while (!all_tried(fleet) && clock_wait(&fleet->changed, &fleet->mutex, until_ms) == 0)
        ;
    status = refused(fleet);
    fleet->is_open = status == TL_OK;
    pthread_mutex_unlock(&fleet->mutex);
    return status;
}

tl_status tl_fleet_open(tl_fleet **out, const tl_fleet_options *options)
{
    struct config config;
    tl_fleet *fleet = NULL;
    char sentence[ERROR_MAX];
    tl_status status;

    error_clear();
    if (out == NULL || options == NULL || options->version != TL_FLEET_OPTIONS_VERSION ||
        options->client == NULL || options->client->version != TL_CLIENT_OPTIONS_VERSION)
        return error_set(TL_INVALID, "tl_fleet_open: out, options or its client is NULL, or not "
                                     "made with its INIT");
    if (options->client->shard != NULL)
        return error_set(TL_INVALID, "the options of a fleet's clients name a shard");
    TRY(load(&config, options->client));
    TRY(make(&fleet, options, &config));
    status = start(fleet);
    if (status == TL_OK)
        status = await_first(fleet);
    if (status == TL_OK) {
        *out = fleet;
        return error_over(status);
    }
    text_copy(sentence, sizeof sentence, tl_error_message());
    stop(fleet);
    close_all(fleet);
    return error_set(status, "%s", sentence);
}

tl_status tl_fleet_count(const char *config_file, size_t *shards)
{
    struct config config;
    tl_status status;

    error_clear();
    if (config_file == NULL || shards == NULL)
        return error_set(TL_INVALID, "config_file or shards is NULL");
    status = config_load(&config, config_file);
    if (status == TL_OK)
        *shards = config.shards.count;
    return status;
}

/* What keeps the fleet from being closed, or NULL. */
static const char *in_use(tl_fleet *fleet)
{
    const char *what = NULL;

    pthread_mutex_lock(&fleet->mutex);
    if (fleet->watches != NULL)
        what = "a registry of workflows";
    for (size_t i = 0; i < fleet->count && what == NULL; i++)
        if (fleet->shards[i].client != NULL && atomic_load(&fleet->shards[i].client->attached) > 0)
            what = "a registry, a mutex or a read-write lock";
    pthread_mutex_unlock(&fleet->mutex);
    return what;
}

void tl_fleet_close(tl_fleet *fleet)
{
    const char *what;

    error_clear();
    if (fleet == NULL)
        return;
    if (fleet->generation != process_generation()) {
        close_all(fleet);
        return;
    }
    what = in_use(fleet);
    if (what != NULL) {
        (void)error_set(TL_WRONG_STATE,
                        "the fleet is not closed: %s stands on it, and is to be "
                        "freed first",
                        what);
        log_line(&fleet->logger, TL_ALARM, NULL, 0, "%s", tl_error_message());
        return;
    }
    stop(fleet);
    close_all(fleet);
}

/* ------------------------------------------------------------------------- questions -- */

const char *tl_fleet_name(const tl_fleet *fleet)
{
    return fleet != NULL ? fleet->config.fleet : "";
}

size_t tl_fleet_size(const tl_fleet *fleet)
{
    return fleet != NULL ? fleet->count : 0;
}

const char *tl_fleet_shard(const tl_fleet *fleet, size_t i)
{
    return fleet != NULL && i < fleet->count ? fleet->names[i] : NULL;
}

/* Needs: fleet->mutex held. */
static tl_status twin_refused(const shard *s)
{
    char sentence[ERROR_MAX];
    const tl_status status = keeper_stands_apart(s);

    text_copy(sentence, sizeof sentence, tl_error_message());
    return status == TL_OK ? status : error_set(status, "shard %s: %.900s", s->name, sentence);
}

/* Needs: fleet->mutex held. */
static tl_status client_of(const shard *s, tl_client **client)
{
    TRY(twin_refused(s));
    if (s->client == NULL && !s->is_tried)
        return error_set(TL_UNREACHABLE, "shard %s: it was not reached yet", s->name);
    if (s->client == NULL || (s->status != TL_OK && !fleet_may_pass(s->status)))
        return error_set(s->status, "shard %s: %.900s", s->name, s->sentence);
    if (keeper_is_silent(s))
        return error_set(TL_UNREACHABLE, "shard %s: it does not answer", s->name);
    *client = s->client;
    return TL_OK;
}

tl_status tl_fleet_shard_client(tl_fleet *fleet, size_t i, tl_client **client)
{
    tl_status status;

    TRY(check(fleet));
    if (client == NULL || i >= fleet->count)
        return error_set(TL_INVALID, "client is NULL, or there is no shard %zu", i);
    pthread_mutex_lock(&fleet->mutex);
    status = client_of(&fleet->shards[i], client);
    pthread_mutex_unlock(&fleet->mutex);
    return status;
}

unsigned tl_fleet_slot(const tl_fleet *fleet, const char *cust_no)
{
    unsigned slot;

    if (check(fleet) != TL_OK || text_check_name("cust_no", cust_no, TL_CUST_MAX) != TL_OK)
        return TL_FLEET_SLOTS;
    slot = fleet->slot != NULL ? fleet->slot(fleet->slot_context, cust_no) : map_slot(cust_no);
    return slot < TL_FLEET_SLOTS ? slot : TL_FLEET_SLOTS;
}

/* Needs: fleet->mutex held. */
static tl_status owner_of(const tl_fleet *fleet, unsigned slot, size_t *owner)
{
    const slot_map *maps[CONFIG_SHARDS_MAX];
    size_t found, unread;

    for (size_t i = 0; i < fleet->count; i++)
        maps[i] = &fleet->shards[i].map;
    found = map_owner(maps, fleet->count, slot, &unread);
    if (found != MAP_NOBODY) {
        *owner = found;
        return twin_refused(&fleet->shards[found]);
    }
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->shards[i].twin != NULL && maps[i]->slot[slot].claim == SLOT_HAD)
            return twin_refused(&fleet->shards[i]);
    if (unread != MAP_NOBODY)
        return error_set(TL_UNREACHABLE,
                         "whose slot %u is may be known to shard %s alone, which was "
                         "not reached yet",
                         slot, fleet->names[unread]);
    return error_set(TL_MISDIRECTED, "no shard that the settings name has slot %u alone", slot);
}

static tl_status slot_of(const tl_fleet *fleet, const char *cust_no, unsigned *slot)
{
    TRY(check(fleet));
    TRY(text_check_name("cust_no", cust_no, TL_CUST_MAX));
    *slot = tl_fleet_slot(fleet, cust_no);
    return *slot < TL_FLEET_SLOTS
               ? TL_OK
               : error_set(TL_INVALID, "the rule of the slots gave none below %d", TL_FLEET_SLOTS);
}

tl_status tl_fleet_owner(tl_fleet *fleet, const char *cust_no, size_t *owner)
{
    unsigned slot;
    tl_status status;

    TRY(slot_of(fleet, cust_no, &slot));
    if (owner == NULL)
        return error_set(TL_INVALID, "shard is NULL");
    pthread_mutex_lock(&fleet->mutex);
    status = owner_of(fleet, slot, owner);
    pthread_mutex_unlock(&fleet->mutex);
    return status;
}

tl_status tl_fleet_client(tl_fleet *fleet, const char *cust_no, tl_client **client)
{
    size_t owner = 0;

    TRY(tl_fleet_owner(fleet, cust_no, &owner));
    return tl_fleet_shard_client(fleet, owner, client);
}

static tl_status read_version(tl_client *client, unsigned slot, db_result *rows)
{
    READING at = {.client = client};

    TRY(read_begin(&at));
    return read_status(at.connection,
                       SQL_RUN(at.connection, rows, slot_version, .slot = db_uint(slot)),
                       "asking whether a slot is here");
}

tl_status tl_fleet_confirm(tl_fleet *fleet, const char *cust_no, size_t at)
{
    RESULT rows = DB_RESULT_INIT;
    tl_client *client = NULL;
    unsigned slot = 0;
    tl_status status;

    TRY(slot_of(fleet, cust_no, &slot));
    TRY(tl_fleet_shard_client(fleet, at, &client));
    READ_REPEATED(status, read_version(client, slot, &rows));
    if (status == TL_OK && rows.rows == 0)
        status =
            error_set(TL_MISDIRECTED, "shard %s does not have slot %u now", fleet->names[at], slot);
    return status;
}

/* Needs: fleet->mutex held.  A shard that does not answer is not waited for. */
static int all_looked(const tl_fleet *fleet, uint64_t look)
{
    for (size_t i = 0; i < fleet->count; i++) {
        const shard *s = &fleet->shards[i];

        if (s->client != NULL && s->looked < look && s->status == TL_OK && !keeper_is_silent(s))
            return 0;
    }
    return 1;
}

tl_status tl_fleet_look_again(tl_fleet *fleet)
{
    tl_status status = TL_OK;
    int64_t until_ms;
    uint64_t look;

    TRY(check(fleet));
    until_ms = clock_deadline(fleet->config.beat_ms);
    pthread_mutex_lock(&fleet->mutex);
    look = ++fleet->looks;
    pthread_cond_broadcast(&fleet->changed);
    while (!all_looked(fleet, look) && clock_wait(&fleet->changed, &fleet->mutex, until_ms) == 0)
        ;
    if (!all_looked(fleet, look))
        status = error_set(TL_TIMEOUT, "a shard was not read anew within a beat");
    pthread_mutex_unlock(&fleet->mutex);
    return status;
}

/* ----------------------------------------------------------------- layers above -- */

/* Needs: fleet->mutex held.  Whether nobody need be waited for. */
static int was_called(const tl_fleet_watch *watch)
{
    const tl_fleet *fleet = watch->fleet;

    for (size_t i = 0; i < fleet->count; i++) {
        const shard *s = &fleet->shards[i];

        if (!watch->called[i] && s->client != NULL && s->status == TL_OK && !keeper_is_silent(s))
            return 0;
    }
    return 1;
}

/* Needs: fleet->mutex held. */
static tl_status said_no(const tl_fleet_watch *watch)
{
    for (size_t i = 0; i < watch->fleet->count; i++)
        if (watch->called[i] && watch->status[i] != TL_OK && !fleet_may_pass(watch->status[i]))
            return error_set(watch->status[i], "%s", watch->sentence);
    return TL_OK;
}

tl_status tl_fleet_watch_new(tl_fleet_watch **out, tl_fleet *fleet, tl_shard_fn up, void *context,
                             int64_t wait_ms)
{
    const int64_t until_ms = clock_deadline(wait_ms);
    char sentence[ERROR_MAX];
    tl_fleet_watch *watch, **at;
    tl_status status;

    TRY(check(fleet));
    if (out == NULL || up == NULL)
        return error_set(TL_INVALID, "out or up is NULL");
    watch = memory_new(sizeof *watch);
    if (watch == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for who watches the fleet");
    watch->fleet = fleet;
    watch->up = up;
    watch->context = context;
    pthread_mutex_lock(&fleet->mutex);
    /* At the end: a later one may build on what an earlier one did at that shard. */
    for (at = &fleet->watches; *at != NULL; at = &(*at)->next)
        ;
    *at = watch;
    fleet->looks++;
    pthread_cond_broadcast(&fleet->changed);
    while (!was_called(watch) && said_no(watch) == TL_OK &&
           clock_wait(&fleet->changed, &fleet->mutex, until_ms) == 0)
        ;
    status = said_no(watch);
    pthread_mutex_unlock(&fleet->mutex);
    if (status == TL_OK) {
        *out = watch;
        return error_over(status);
    }
    text_copy(sentence, sizeof sentence, tl_error_message());
    tl_fleet_watch_free(watch);
    return error_set(status, "%s", sentence);
}

void tl_fleet_watch_free(tl_fleet_watch *watch)
{
    tl_fleet *fleet;
    tl_fleet_watch **at;

    error_clear();
    if (watch == NULL)
        return;
    fleet = watch->fleet;
    if (fleet->generation == process_generation()) {
        pthread_mutex_lock(&fleet->mutex);
        watch->is_leaving = 1;
        while (watch->running > 0)
            clock_wait(&fleet->changed, &fleet->mutex, CLOCK_NEVER);
        for (at = &fleet->watches; *at != watch; at = &(*at)->next)
            ;
        *at = watch->next;
        pthread_mutex_unlock(&fleet->mutex);
    }
    memory_free(watch);
}
