#include "session/session.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "session/observer.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Beats further apart than this many beat times are an interruption for the observer. */
#define INTERRUPTED_BEATS 3

struct session {
    /* Fixed after start. */
    char id[RANDOM_UUID];
    char program[64], host[64], operations[256];
    unsigned generation;
    pool *connections;
    session_options options;
    pthread_t beating, following;
    int loss_fd, beating_started, following_started;
    observer *others;

    /* Atomic. */
    atomic_int_fast64_t alive_until_ms; /* boot time */
    atomic_int lost;
    atomic_uint_fast64_t beats, unreachable, ended_others;

    /* Under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;      /* of the beating thread */
    pthread_cond_t round_due; /* of the following thread */
    int stop_beating, stop_following, round_is_due;
    char witness[RANDOM_UUID]; /* the name of the connection, "" without one */

    /* The beating thread's own. */
    db *connection;
    int64_t last_confirmed_ms;
};

enum beat { BEAT_CONFIRMED, BEAT_LOST, BEAT_UNREACHABLE };

static void set_witness(session *s, const char *name)
{
    pthread_mutex_lock(&s->mutex);
    text_copy(s->witness, sizeof s->witness, name);
    pthread_mutex_unlock(&s->mutex);
}

static tl_status open_connection(session *s)
{
    tl_status status = pool_open_extra(s->connections, POOL_BEAT, &s->connection);

    if (status == TL_OK)
        set_witness(s, db_name(s->connection));
    return status;
}

static void close_connection(session *s)
{
    set_witness(s, "");
    pool_close_extra(s->connections, s->connection);
    s->connection = NULL;
}

/* Life is counted from before the request left: however long the answer took, no observer
 * can have begun to count earlier. */
static void confirm(session *s, uint64_t number, int64_t before_ms)
{
    atomic_store(&s->alive_until_ms, before_ms + s->options.timeout_ms);
    if (s->options.confirmed != NULL)
        s->options.confirmed(s->options.confirmed_context, s->id, number, before_ms);
}

static enum beat beat(session *s)
{
    db_result result = DB_RESULT_INIT;
    int64_t before_ms;
    enum beat answer = BEAT_UNREACHABLE;
    db_answer sent;

    error_clear();
    if (s->connection == NULL && open_connection(s) != TL_OK)
        return BEAT_UNREACHABLE;
    before_ms = clock_boottime_ms();
    sent = store_session_beat(s->connection, s->id, &result);
    if (sent == DB_DONE) {
        answer = result.affected == 1 ? BEAT_CONFIRMED : BEAT_LOST;
        if (answer == BEAT_CONFIRMED)
            confirm(s, result.insert_id, before_ms);
    } else {
        /* For the log; a beat that did arrive does no harm. */
        (void)db_read_status(s->connection, sent, "the heartbeat");
        if (!db_usable(s->connection))
            close_connection(s);
    }
    db_result_free(&result);
    return answer;
}

static void lose(session *s)
{
    uint64_t one = 1;

    if (atomic_exchange(&s->lost, 1))
        return;
    atomic_store(&s->alive_until_ms, 0);
    log_line(s->options.logger, TL_ALARM, NULL, 0,
             "session %s was declared dead: all its locks are lost; open a new client",
             s->id);
    if (write(s->loss_fd, &one, sizeof one) != (ssize_t)sizeof one)
        log_line(s->options.logger, TL_WARNING, NULL, 0,
                 "the loss descriptor could not be written");
    if (s->options.loss != NULL)
        s->options.loss(s->options.loss_context);
}

static void wake_following(session *s)
{
    pthread_mutex_lock(&s->mutex);
    s->round_is_due = 1;
    pthread_cond_signal(&s->round_due);
    pthread_mutex_unlock(&s->mutex);
}

/* What follows a confirmed beat: looking at the others, on the heartbeat's own connection,
 * which does not wait for a silent server, and the round, which is another thread's. */
static void after_confirmed(session *s)
{
    int64_t now_ms = clock_boottime_ms();
    uint64_t ended = 0;

    if (now_ms - s->last_confirmed_ms > INTERRUPTED_BEATS * s->options.beat_ms)
        observer_interrupt(s->others);
    s->last_confirmed_ms = now_ms;
    if (observer_look(s->others, s->connection, &ended) != TL_OK &&
        !db_usable(s->connection))
        close_connection(s);
    atomic_fetch_add(&s->ended_others, ended);
    wake_following(s);
}

static void round_once(session *s)
{
    switch (beat(s)) {
    case BEAT_CONFIRMED:
        atomic_fetch_add(&s->beats, 1);
        after_confirmed(s);
        break;
    case BEAT_LOST:
        wake_following(s); /* perhaps its row went with a restore */
        lose(s);
        break;
    case BEAT_UNREACHABLE:
        if (atomic_fetch_add(&s->unreachable, 1) == 0)
            log_line(s->options.logger, TL_WARNING, NULL, 0,
                     "a heartbeat was not confirmed: %s", tl_error_message());
        observer_interrupt(s->others);
        break;
    }
}

static void *beat_on(void *argument)
{
    session *s = argument;
    int64_t next_ms = clock_deadline(s->options.beat_ms);

    pthread_mutex_lock(&s->mutex);
    while (!s->stop_beating && !atomic_load(&s->lost)) {
        if (clock_left_ms(next_ms) > 0) {
            clock_wait(&s->wake, &s->mutex, next_ms);
            continue;
        }
        pthread_mutex_unlock(&s->mutex);
        round_once(s);
        next_ms = clock_deadline(s->options.beat_ms);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* The rounds have a thread of their own: their statements go over the pool, and a
 * connection of it that died in silence is waited for longer than a session lives.  Beats
 * that were confirmed while a round ran make one more round, not many. */
static void *follow(void *argument)
{
    session *s = argument;

    pthread_mutex_lock(&s->mutex);
    while (!s->stop_following) {
        if (!s->round_is_due) {
            pthread_cond_wait(&s->round_due, &s->mutex);
            continue;
        }
        s->round_is_due = 0;
        pthread_mutex_unlock(&s->mutex);
        s->options.round(s->options.round_context);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static tl_status insert_row(session *s)
{
    store_session row = {
        .session_id = s->id,
        .program = s->program,
        .host = s->host,
        .operations = s->operations[0] != '\0' ? s->operations : NULL,
        .pid = (uint32_t)getpid(),
        .timeout_ms = s->options.timeout_ms,
    };
    int64_t before_ms;
    tl_status status = open_connection(s);
    db_answer answer;

    if (status != TL_OK)
        return status;
    row.connection_name = db_name(s->connection);
    before_ms = clock_boottime_ms();
    answer = store_session_insert(s->connection, &row);
    if (answer != DB_DONE)
        return db_error_status(s->connection, answer, "beginning the session");
    s->last_confirmed_ms = before_ms;
    confirm(s, 0, before_ms);
    return TL_OK;
}

static tl_status start_threads(session *s)
{
    if (s->options.round != NULL) {
        if (thread_context_start(&s->following, follow, s) != 0)
            return error_set(TL_NO_MEMORY, "the janitor's thread could not be started");
        s->following_started = 1;
    }
    if (thread_context_start(&s->beating, beat_on, s) != 0)
        return error_set(TL_NO_MEMORY, "the heartbeat thread could not be started");
    s->beating_started = 1;
    return TL_OK;
}

static tl_status prepare(session *s, pool *connections, const session_options *options)
{
    s->loss_fd = -1;
    s->connections = connections;
    s->options = *options;
    s->generation = thread_context_generation();
    text_copy(s->program, sizeof s->program, options->program);
    text_copy(s->operations, sizeof s->operations, options->operations);
    if (gethostname(s->host, sizeof s->host - 1) != 0)
        text_copy(s->host, sizeof s->host, "unknown");
    random_uuid(s->id);
    pthread_mutex_init(&s->mutex, NULL);
    if (clock_condition_init(&s->wake) != 0 || clock_condition_init(&s->round_due) != 0)
        return error_set(TL_NO_MEMORY, "a condition variable could not be made");
    s->loss_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->loss_fd < 0)
        return error_set(TL_NO_MEMORY, "the loss descriptor could not be made");
    return observer_new(&s->others, s->id, options->logger);
}

tl_status session_start(session **out, pool *connections, const session_options *options)
{
    static const atomic_uint_fast64_t none;
    session *s = memory_new(sizeof *s);
    tl_status status;

    if (s == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the session");
    status = prepare(s, connections, options);
    if (status == TL_OK)
        status = insert_row(s);
    if (status == TL_OK)
        status = start_threads(s);
    if (status != TL_OK) {
        session_stop(s, &none);
        return status;
    }
    *out = s;
    return TL_OK;
}

static void stop_thread(session *s, pthread_t thread, int *stop, pthread_cond_t *wake)
{
    pthread_mutex_lock(&s->mutex);
    *stop = 1;
    pthread_cond_signal(wake);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(thread, NULL);
}

/* The beat goes on until nothing else of the session runs: the last round may have to wait
 * for a silent connection. */
static void stop_threads(session *s)
{
    if (s->following_started)
        stop_thread(s, s->following, &s->stop_following, &s->round_due);
    if (s->beating_started)
        stop_thread(s, s->beating, &s->stop_beating, &s->wake);
}

void session_stop(session *s, const atomic_uint_fast64_t *may_hold)
{
    if (s == NULL)
        return;
    /* A child after fork has none of the threads, and the row is its parent's. */
    if (s->generation == thread_context_generation()) {
        stop_threads(s);
        if (s->connection != NULL && !atomic_load(&s->lost)) {
            db_result result = DB_RESULT_INIT;

            (void)store_session_end(s->connection, s->id, atomic_load(may_hold) == 0,
                                    &result);
            db_result_free(&result);
        }
        pthread_cond_destroy(&s->round_due);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->mutex);
    }
    pool_close_extra(s->connections, s->connection);
    if (s->loss_fd >= 0)
        close(s->loss_fd);
    observer_free(s->others);
    memory_free(s);
}

const char *session_id(const session *s)
{
    return s != NULL ? s->id : "";
}

void session_witness(session *s, char name[RANDOM_UUID])
{
    pthread_mutex_lock(&s->mutex);
    memcpy(name, s->witness, RANDOM_UUID);
    pthread_mutex_unlock(&s->mutex);
}

int64_t session_alive_ms(const session *s)
{
    return s != NULL ? clock_left_ms(atomic_load(&s->alive_until_ms)) : 0;
}

int session_lost(const session *s)
{
    return s != NULL && atomic_load(&s->lost);
}

int session_loss_fd(const session *s)
{
    return s != NULL ? s->loss_fd : -1;
}

void session_count(const session *s, session_counters *counters)
{
    memset(counters, 0, sizeof *counters);
    if (s == NULL)
        return;
    counters->beats = atomic_load(&s->beats);
    counters->unreachable = atomic_load(&s->unreachable);
    counters->ended_others = atomic_load(&s->ended_others);
}

tl_status session_observe_once(pool *connections, const struct logger *logger,
                               int64_t timeout_ms, int64_t beat_ms, uint64_t *ended)
{
    int64_t deadline_ms = 0;
    observer *o = NULL;
    db *connection = NULL;
    tl_status status = observer_new(&o, "", logger);

    if (status == TL_OK)
        status = pool_open_extra(connections, POOL_QUICK, &connection);
    while (status == TL_OK) {
        status = observer_look(o, connection, ended);
        /* Silence begins with the first look, however long it was in coming. */
        if (deadline_ms == 0)
            deadline_ms = clock_deadline(timeout_ms + beat_ms);
        /* Somebody else is ending it, or it shows life just now: the next look tells. */
        if (status == TL_TRY_AGAIN && clock_left_ms(deadline_ms + timeout_ms) > 0)
            status = TL_OK;
        else if (status != TL_OK || clock_left_ms(deadline_ms) == 0)
            break;
        clock_sleep_until_ms(clock_deadline(beat_ms));
    }
    pool_close_extra(connections, connection);
    observer_free(o);
    return status;
}
