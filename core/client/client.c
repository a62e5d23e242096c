/* The client of a process: opens and closes its parts, runs the round after each beat, and sums
 * counters.  Touches the database only through the rooms below. */
#include "client/client.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "client/calls.h"
#include "client/clock_watch.h"
#include "client/open_clients.h"
#include "client/position.h"
#include "client/restored.h"
#include "client/schema.h"
#include "client/server.h"
#include "client/shard.h"
#include "janitor/janitor.h"
#include "store/server.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KNOWN_FLAGS (TL_CLIENT_NO_SESSION | TL_CLIENT_NO_JANITOR | TL_CLIENT_NO_SCHEMA)
#define CLIENT_GROUP "tradelock-client"
#define LOG_MESSAGE_SPACE 512
/* One round in this many looks for rows from the future. */
#define SEARCH_ROUNDS 8
/* The part of a beat that a round blanks contents for. */
#define BLANK_SHARE 16
/* A host that has come back is looked at in the round after a beat, by all who run. */
#define BEATS_TO_TELL 3

tl_status client_check(const tl_client *client)
{
    if (client == NULL)
        return error_set(TL_INVALID, "client is NULL");
    thread_context_come_in();
    if (client->generation != process_generation())
        return error_set(TL_WRONG_PROCESS,
                         "this client was opened before fork(); the child process must "
                         "open a client of its own");
    if (atomic_load_explicit(&client->closed, memory_order_relaxed))
        return error_set(TL_WRONG_STATE, "this client was closed");
    return TL_OK;
}

tl_client *client_keep(tl_client *client)
{
    atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
    return client;
}

void client_release(tl_client *client)
{
    unsigned before = atomic_fetch_sub(&client->refs, 1);

    assert(before > 0);
    if (before == 1) {
        calls_free(atomic_load(&client->calls));
        restored_free(&client->servers);
        memory_free(client);
    }
}

tl_status tl_client_attach(tl_client *client)
{
    tl_status status;

    error_clear();
    status = client_check(client);
    if (status == TL_OK)
        atomic_fetch_add(&client_keep(client)->attached, 1);
    return status;
}

void tl_client_detach(tl_client *client)
{
    if (client == NULL)
        return;
    atomic_fetch_sub(&client->attached, 1);
    client_release(client);
}

tl_status client_check_asking(const tl_client *client)
{
    TRY(client_check(client));
    if (thread_context_in_callback())
        return error_set(TL_IN_CALLBACK,
                         "a lock was asked for inside a database callback; it could wait "
                         "for its own transaction");
    if (client->session == NULL)
        return error_set(TL_WRONG_STATE, "this client was opened without a session and "
                                         "may look only");
    return life_check(session_life(client->session));
}

int client_keep_claim(tl_client *client, struct tl_lock *lock)
{
    int kept;

    pthread_mutex_lock(&client->claims_mutex);
    assert(client->claim_count <= TL_CLAIM_MAX);
    kept = client->claim_count < TL_CLAIM_MAX;
    if (kept)
        client->claims[client->claim_count++] = lock;
    pthread_mutex_unlock(&client->claims_mutex);
    return kept;
}

size_t client_take_claims(tl_client *client, struct tl_lock *claims[TL_CLAIM_MAX])
{
    size_t count;

    pthread_mutex_lock(&client->claims_mutex);
    count = client->claim_count;
    memcpy(claims, client->claims, count * sizeof *claims);
    client->claim_count = 0;
    pthread_mutex_unlock(&client->claims_mutex);
    return count;
}

/* What is locked just now is for a later round. */
static void blank(tl_client *client)
{
    uint64_t blanked = 0;
    tl_status status = TL_OK;

    if (client->config.payload_keep_ms > 0)
        status = janitor_blank(client->engine, client->config.beat_ms / BLANK_SHARE, 0, &blanked);
    if (blanked > 0)
        log_line(&client->logger, TL_INFO, NULL, 0,
                 "the contents of %" PRIu64 " trades were blanked", blanked);
    client_note(client, WORK_BLANKING, status);
}

/* Whether a drain was read of late: servers may be about to change places, and all payments wait for
 * it. */
#define HURRY_MS (INT64_C(10) * 60 * 1000)

static int hurries(void *context)
{
    const int64_t drained_ms = gates_drained_ms(context);

    return drained_ms >= 0 && drained_ms < HURRY_MS;
}

void client_note(tl_client *client, enum client_work work, tl_status status)
{
    static const char *const named[TROUBLES] = {
        [WORK_ACCEPTED] = "looking whether this server is the accepted one",
        [WORK_KEPT] = "looking whether this server waits for its replica",
        [WORK_RECEIPTS] = "removing the receipts of sends",
        [WORK_BREAKERS] = "telling the breakers of channels what was answered",
        [WORK_CLOCK] = "looking at the server's clock",
        [WORK_SEARCH] = "looking for a clock that was set back",
        [WORK_ADJUST] = "adjusting rows to the server's clock",
        [WORK_JANITOR] = "the janitor's round",
        [WORK_BLANKING] = "blanking what is kept too long"};

    trouble_note(&client->logger, &client->troubles[work], status, named[work]);
}

/* The round after a confirmed beat, on a thread of the session's that no beat waits for.  After a
 * clock jump nobody is overdue: rows are adjusted first. */
static void run_round(void *context)
{
    tl_client *client = context;
    uint64_t opened = 0, freed = 0;
    tl_status status = TL_OK;
    int64_t budget_ms = client->config.beat_ms / 2;
    client_part *holds = atomic_load(&client->holds);
    /* What comes faster than beats do is for whoever waits for a drain, or for its end. */
    const int comes_early = hurries(client) && clock_left_ms(client->next_round_ms) > 0;

    if (!comes_early || session_waits(client->session) ||
        life_is_between(session_life(client->session)))
        restored_look_again(client);
    gates_round(client);
    if (comes_early)
        return;
    client->next_round_ms = clock_deadline(client->config.beat_ms);
    if (holds != NULL)
        holds->round(holds);
    client_note(client, WORK_CLOCK, clock_watch_look(client));
    if (!client->config.janitor || (client->flags & TL_CLIENT_NO_JANITOR))
        return;
    if (client->rounds++ % SEARCH_ROUNDS == 0)
        client_note(client, WORK_SEARCH, clock_watch_search(client));
    if (clock_watch_check(client) != TL_OK)
        status = clock_watch_adjust(client, client->config.session_ms);
    client_note(client, WORK_ADJUST, status);
    if (status != TL_OK)
        return;
    client_note(client, WORK_JANITOR,
                janitor_round(client->engine, &client->logger, client->actor, budget_ms,
                              clock_watch_latest_us(client), &client->cursor, &opened, &freed));
    client_add(&client->counters.opened, opened);
    blank(client);
}

/* Each host of a list has to be fit for what may lead there after a failover; that it takes no
 * writes now is no fault. */
static tl_status check_host(db *connection)
{
    schema_found found;
    tl_status status = server_check_settings(connection);

    if (status != TL_OK && status != TL_READ_ONLY)
        return status;
    status = schema_read(connection, &found);
    return status == TL_OK ? schema_judge(&found) : status;
}

static tl_status look_at_new(void *context, db *connection, pool_opening what)
{
    tl_status status;

    TRY(shard_check(context, connection, 0));
    if (what == POOL_KEPT)
        return restored_look(context, connection);
    status = restored_compare(context, connection);
    return status == TL_OK && what == POOL_CHECKED ? check_host(connection) : status;
}

/* For a client that may make the schema.  Where there is none, whether the server takes writes
 * still counts among several hosts. */
static tl_status look_without_schema(void *context, db *connection, pool_opening what)
{
    static const db_server writer = {DB_SERVER_MAY_LACK, 0}, reader = {DB_SERVER_REPLICA, 1};
    tl_status status;

    TRY(shard_check(context, connection, 1));
    status = what == POOL_KEPT ? TL_OK : restored_compare(context, connection);
    if (status != TL_NO_SCHEMA && status != TL_WRONG_SCHEMA)
        return status;
    status = server_check_settings(connection);
    if (status == TL_OK || status == TL_READ_ONLY)
        db_set_server(connection, status == TL_OK ? &writer : &reader);
    return status == TL_READ_ONLY ? TL_OK : status;
}

static tl_status look_at_shard(void *context, db *connection, pool_opening what)
{
    (void)what;
    return shard_check(context, connection, 1);
}

static tl_status look_before_session(void *context, db *connection)
{
    const tl_status status = restored_look(context, connection);

    if (status == TL_OK)
        restored_look_whether_kept(context, connection); /* the session's row is a commit already */
    return status;
}

static void look_after_beat(void *context, db *connection)
{
    position_close(context, connection);
    if (db_usable(connection))
        restored_look_whether_kept(context, connection);
}

/* A process that begins, or was stopped for long, asks for nothing before it knows what was decided
 * meanwhile; a drain that is decided now waits for this session, or is read here.  An account without
 * the right to read all of that would obey none of it, and begins no session. */
static tl_status look_as_session(void *context, db *connection, const char *session_id)
{
    TRY(gates_look(context, connection));
    return contracts_declare(context, connection, session_id);
}

static int64_t obeyed_drain(void *context)
{
    return gates_obeyed(context);
}

/* A beat on a silent connection is given up early enough for two more on another connection before
 * the session is over. */
static unsigned beat_read_timeout_s(const tl_client *client)
{
    int64_t third_s = client->config.session_ms / 3000;

    if (third_s < 1)
        return 1;
    return third_s < client->config.read_timeout_s ? (unsigned)third_s
                                                   : client->config.read_timeout_s;
}

/* A host that did not answer yet may be the one that was accepted last, and the one that answers an
 * old primary that nobody has told.  Whoever runs and knows better tells it so, by writing it down
 * there: within a beat or two while the accepted one answers them, and once their heartbeat has
 * given that up while it is silent to them too.  So nothing begins here before they had that time,
 * at each host that answers: one that comes up late is looked at by them from then on.  Then a host
 * is dead for all who run, and keeps nobody from starting. */
static void await_word(tl_client *client, int64_t since_ms)
{
    hosts_unseen unseen = {.why = ""};
    int64_t left_ms;
    int is_told = 0;

    while (!pool_all_seen(client->connections, &unseen)) {
        const int64_t leave_ms = unseen.leave_ms + BEATS_TO_TELL * client->config.beat_ms;

        if (unseen.since_ms > since_ms)
            since_ms = unseen.since_ms;
        if (!is_told)
            log_line(&client->logger, TL_WARNING, NULL, 0,
                     "a host of the list did not answer, and may be the one that was accepted "
                     "last: %s",
                     unseen.why);
        is_told = 1;
        left_ms = clock_left_ms(since_ms + leave_ms);
        if (client->flags & TL_CLIENT_NO_SESSION || left_ms == 0)
            break; /* it grants nothing */
        clock_sleep_until_ms(
            clock_deadline(left_ms < client->config.beat_ms ? left_ms : client->config.beat_ms));
        if (pool_look_around(client->connections, NULL) != TL_OK)
            log_line(&client->logger, TL_ALARM, NULL, 0,
                     "a host of the list cannot be used, and is not: %s", tl_error_message());
    }
    error_clear();
}

static tl_status open_pool(tl_client *client, const tl_client_options *options)
{
    char group[64], over[sizeof CLIENT_GROUP + 1 + CONFIG_SHARD_MAX];
    pool_options wanted = {
        .connect = {.option_file = options->config_file[0] != '\0' ? options->config_file : NULL,
                    .group = group,
                    .over_group = client->shard != NULL ? over : NULL,
                    .database = options->database,
                    .user = options->user,
                    .password = options->password,
                    .idle_transaction_s = client->config.idle_transaction_s,
                    .connect_timeout_s = client->config.connect_timeout_s,
                    .read_timeout_s = client->config.read_timeout_s,
                    .allow_insecure = client->config.allow_insecure},
        .size = {[POOL_QUICK] = client->config.pool_size,
                 [POOL_BUSINESS] = client->config.business_pool_size,
                 [POOL_BOOKS] = client->config.business_pool_size},
        .business_lock_wait_s = client->config.business_lock_wait_s,
        .beat_read_timeout_s = beat_read_timeout_s(client),
        .opened = !(client->flags & TL_CLIENT_NO_SCHEMA) ? look_at_new
                  : client->shard != NULL                ? look_at_shard
                                                         : NULL,
        .opened_in_list = client->flags & TL_CLIENT_NO_SCHEMA ? look_without_schema : look_at_new,
        .opened_context = client,
        .look_every_ms = client->flags & TL_CLIENT_NO_SESSION ? client->config.beat_ms : 0,
        .one_writer = (client->flags & TL_CLIENT_NO_SCHEMA) != 0,
    };
    tl_status status;

    snprintf(group, sizeof group, "%s%s", CLIENT_GROUP,
             options->group_suffix != NULL ? options->group_suffix : "");
    snprintf(over, sizeof over, "%s-%s", CLIENT_GROUP, client->shard != NULL ? client->shard : "");
    status = pool_new(&client->connections, &wanted);
    client->servers.has_list = status == TL_OK && pool_has_list(client->connections);
    if (status == TL_OK)
        status = pool_check_hosts(client->connections);
    return status;
}

static tl_status start_session(tl_client *client, const tl_client_options *options)
{
    session_options wanted = {
        .program = options->program != NULL ? options->program : "tradelock",
        .operations = options->operations,
        .beat_ms = client->config.beat_ms,
        .timeout_ms = client->config.session_ms,
        .logger = &client->logger,
        .loss = options->loss,
        .loss_context = options->loss_context,
        .round = run_round,
        .round_context = client,
        .sending = restored_sending,
        .confirmed = restored_confirmed,
        .follow = restored_follow,
        .is_told = restored_is_told,
        .has_to_answer = restored_has_to_answer,
        .confirmed_context = client,
        .clock = clock_watch_keep,
        .clock_context = client,
        .before = client->flags & TL_CLIENT_NO_SCHEMA ? NULL : look_before_session,
        .begun = client->flags & TL_CLIENT_NO_SCHEMA ? NULL : look_as_session,
        .obeys = obeyed_drain,
        .hurries = hurries,
        .look = look_after_beat,
        .before_context = client,
    };

    return session_start(&client->session, client->connections, &wanted);
}

static tl_status find_shard(tl_client *client, const tl_client_options *options)
{
    const char *shard = options->shard;
    size_t i;

    if (shard == NULL && client->config.shards.count == 0)
        return TL_OK;
    TRY(config_find_shard(&client->config, options->config_file, shard, &i));
    client->shard = client->config.shards.name[i];
    return TL_OK;
}

static tl_status open_parts(tl_client *client, const tl_client_options *options)
{
    const int64_t since_ms = clock_boottime_ms();
    char host[32] = "unknown";

    TRY(config_load_for(&client->config, options->config_file, options->group_suffix));
    TRY(find_shard(client, options));
    config_policy(&client->policy, &client->config);
    client->logger.fn = options->log;
    client->logger.context = options->log_context;
    client->logger.cust_key =
        client->config.log_cust == CONFIG_CUST_HASHED ? client->config.log_cust_key : NULL;
    client->logger.least = client->config.log_level;
    (void)gethostname(host, sizeof host - 1);
    snprintf(client->actor, sizeof client->actor, "%.20s %ld@%s",
             options->program != NULL ? options->program : "tradelock", (long)getpid(), host);
    client->waiting = waiters_new();
    client->reads = shared_reads_new();
    if (client->waiting == NULL || client->reads == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the client");
    TRY(open_pool(client, options));
    await_word(client, since_ms);
    TRY(task_engine_new(&client->engine, client->connections, &client->logger,
                        &client->servers.noted));
    if (!(client->flags & TL_CLIENT_NO_SCHEMA))
        TRY(server_check(client->connections, client->config.pool_wait_ms));
    await_word(client, since_ms); /* of a host that has just come up */
    if (client->flags & TL_CLIENT_NO_SESSION)
        return TL_OK;
    TRY(clock_watch_open(client));
    return start_session(client, options);
}

/* Whether other threads may still use the client. */
static int is_in_use(tl_client *client)
{
    unsigned lent = client->connections != NULL ? pool_lent(client->connections) : 0;

    if (lent == 0)
        return 0;
    (void)error_set(TL_WRONG_STATE,
                    "%u connections of this client are in use: another thread is inside a "
                    "call; they stay until the process ends",
                    lent);
    log_line(&client->logger, TL_ALARM, NULL, 0, "%s", tl_error_message());
    return 1;
}

static void close_parts(tl_client *client)
{
    client_part *holds = atomic_load(&client->holds);
    client_part *books = atomic_load(&client->books);
    const int here = client->generation == process_generation();

    if (client->async != NULL)
        client->async_free(client->async);
    client->async = NULL;
    for (size_t i = 0; i < client->claim_count; i++)
        tl_lock_free(client->claims[i]);
    if (here)
        gates_leave(client);
    session_stop(client->session, &client->untracked);
    if (holds != NULL) /* which rounds look at */
        holds->free(holds);
    assert(!atomic_load(&client->closed));
    atomic_store(&client->closed, 1);
    if (is_in_use(client))
        return;
    session_free(client->session);
    client->session = NULL;
    task_engine_free(client->engine);
    pool_free(client->connections);
    if (books != NULL)
        books->free(books);
    shared_reads_free(client->reads);
    waiters_free(client->waiting);
    pthread_mutex_destroy(&client->async_mutex);
    clock_watch_end(&client->clock);
    gates_end(&client->gates, here);
    contracts_end(&client->contracts);
    restored_end(&client->servers);
    client_release(client);
}

/* *again_ms: for how long it is worth another try, since a statement was interrupted; 0: it is
 * not. */
static tl_status open_once(tl_client **out, const tl_client_options *options, int64_t *again_ms)
{
    tl_client *client = memory_new(sizeof *client);
    tl_status status;

    *again_ms = 0;
    if (client == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the client");
    pthread_mutex_init(&client->async_mutex, NULL);
    client->generation = process_generation();
    client->flags = options->flags;
    atomic_store(&client->refs, 1);
    pthread_mutex_init(&client->claims_mutex, NULL);
    due_marks_init(&client->due_marks);
    clock_watch_init(&client->clock);
    contracts_init(&client->contracts);
    gates_init(&client->gates);
    restored_init(&client->servers);
    status = open_parts(client, options);
    if (status != TL_OK) {
        if (error_is_interrupted())
            *again_ms = client->config.pool_wait_ms;
        close_parts(client);
        return status;
    }
    open_clients_add(client);
    *out = client;
    return TL_OK;
}

tl_status tl_client_open(tl_client **out, const tl_client_options *options)
{
    const int64_t since_ms = clock_boottime_ms();
    int64_t again_ms;
    tl_status status;

    error_clear();
    if (out == NULL || options == NULL || options->version != TL_CLIENT_OPTIONS_VERSION)
        return error_set(TL_INVALID, "tl_client_open: out or options is NULL, or options "
                                     "was not made with TL_CLIENT_OPTIONS_INIT");
    if (options->flags & ~KNOWN_FLAGS)
        return error_set(TL_INVALID, "flags 0x%x are not known", options->flags & ~KNOWN_FLAGS);
    if (text_check_utf8("program", options->program) != TL_OK ||
        text_check_utf8("operations", options->operations) != TL_OK)
        return TL_INVALID;
    if ((options->user == NULL) != (options->password == NULL) ||
        (options->user != NULL && options->user[0] == '\0'))
        return error_set(TL_INVALID, "an account is a user, who is named, and a password");
    if (options->config_file == NULL)
        return error_set(TL_BAD_CONFIG, "no settings file was named");
    do
        status = open_once(out, options, &again_ms);
    while (status != TL_OK && clock_boottime_ms() - since_ms < again_ms);
    return error_over(status);
}

void tl_client_close(tl_client *client)
{
    unsigned attached;

    error_clear();
    if (client == NULL)
        return;
    thread_context_come_in();
    if (!open_clients_has(client)) {
        (void)error_set(TL_INVALID, "this client was closed already");
        return;
    }
    /* In the child of a fork the parts that are attached are the parent's. */
    attached = atomic_load(&client->attached);
    if (attached > 0 && client->generation == process_generation()) {
        (void)error_set(TL_WRONG_STATE,
                        "the client is not closed: %u registries, mutexes or read-write "
                        "locks stand on it, and are to be freed first",
                        attached);
        log_line(&client->logger, TL_ALARM, NULL, 0, "%s", tl_error_message());
        return;
    }
    open_clients_remove(client);
    close_parts(client);
}

const char *tl_client_session(const tl_client *client)
{
    return client != NULL ? session_id(client->session) : "";
}

int64_t tl_client_alive_ms(const tl_client *client)
{
    return client_check(client) == TL_OK ? life_left_ms(session_life(client->session)) : 0;
}

int tl_client_loss_fd(const tl_client *client)
{
    return client != NULL ? session_loss_fd(client->session) : -1;
}

const tl_policy *tl_client_policy(const tl_client *client)
{
    static const tl_policy none;

    return client != NULL ? &client->policy : &none;
}

const char *tl_client_site(const tl_client *client)
{
    return client != NULL ? client->config.site : "";
}

void tl_client_log(tl_client *client, tl_level level, const tl_key *key, uint64_t fence,
                   const char *format, ...)
{
    char message[LOG_MESSAGE_SPACE];
    va_list arguments;

    if (client == NULL || format == NULL || !log_wanted(&client->logger, level))
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log_line(&client->logger, level, key, fence, "%s", message);
}

static uint64_t value_of(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void copy_counters(const tl_client *client, tl_stats *stats)
{
    const client_counters *c = &client->counters;

    stats->asks = value_of(&c->asks);
    stats->grants = value_of(&c->grants);
    stats->refusals = value_of(&c->refusals);
    stats->finishes = value_of(&c->finishes);
    stats->lost = value_of(&c->lost);
    stats->unknown = value_of(&c->unknown);
    stats->opened = value_of(&c->opened);
    stats->claimed = value_of(&c->claimed);
    stats->armed = value_of(&c->armed);
    stats->parked = value_of(&c->parked);
}

tl_status tl_client_stats(const tl_client *client, tl_stats *stats)
{
    transition_counters *t;
    session_counters beats;
    db_counters sum;

    error_clear();
    TRY(client_check(client));
    if (stats == NULL || stats->version != TL_STATS_VERSION)
        return error_set(TL_INVALID, "stats is NULL or its version is not set");
    copy_counters(client, stats);
    pool_count(client->connections, &sum, &stats->reconnects);
    stats->statements = sum.statements;
    stats->commits = sum.commits;
    stats->rollbacks = sum.rollbacks;
    stats->deadlocks = sum.deadlocks;
    stats->lock_waits = sum.lock_waits;
    stats->snapshot_conflicts = sum.snapshot_conflicts;
    t = transition_count(client->engine);
    stats->repeats = value_of(&t->repeats);
    stats->settled = value_of(&t->settled);
    stats->killed = value_of(&t->killed);
    stats->groups = value_of(&t->groups);
    stats->grouped = value_of(&t->grouped);
    session_count(client->session, &beats);
    stats->beats = beats.beats;
    stats->beats_unreachable = beats.unreachable;
    return TL_OK;
}

/* Operators write no trades; that is checked before a session is observed. */
static tl_status check_may_open(tl_client *client)
{
    db *connection = NULL;
    db_answer answer;
    tl_status status;

    TRY(pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection));
    answer = store_right(connection, STORE_RIGHT_ASK);
    status = db_read_status(connection, answer, "looking whether trades may be opened");
    pool_put(client->connections, connection);
    if (status == TL_ACCESS_DENIED)
        status = error_set(TL_ACCESS_DENIED,
                           "opening what the dead held is for an account with the role "
                           "DATABASE_application, as services have it; an operator opens "
                           "one trade with `tradelock retry`");
    return status;
}

tl_status tl_reap(tl_client *client, tl_reaped *reaped)
{
    tl_reaped done = {0, 0, 0, 0};
    janitor_cursor cursor = {.from_us = 0};
    tl_status status;

    error_clear();
    TRY(client_check(client));
    status = check_may_open(client);
    /* One look for a clock jump now, and one while the other sessions are observed. */
    if (status == TL_OK)
        status = clock_watch_open(client);
    if (status == TL_OK)
        status =
            session_observe_once(client->connections, &client->logger, client->config.session_ms,
                                 client->config.beat_ms, &done.sessions);
    if (status == TL_OK)
        status = clock_watch_look(client);
    if (status == TL_OK)
        status = clock_watch_search(client);
    if (status == TL_OK && clock_watch_check(client) != TL_OK)
        status = clock_watch_adjust(client, TL_HOLD_MAX_MS);
    if (status == TL_OK)
        status = janitor_round(client->engine, &client->logger, client->actor, TL_HOLD_MAX_MS,
                               clock_watch_latest_us(client), &cursor, &done.opened, &done.freed);
    if (status == TL_OK && client->config.payload_keep_ms > 0)
        status = janitor_blank(client->engine, TL_HOLD_MAX_MS, 1, &done.blanked);
    client_add(&client->counters.opened, done.opened);
    if (reaped != NULL)
        *reaped = done;
    return error_over(status);
}
