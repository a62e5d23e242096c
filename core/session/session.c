/* The session of this process: its heartbeat, on a thread and a connection of its own; the round
 * after each confirmed beat, on another thread; and a new session when the old one was ended.  It
 * writes the process' own row of tl_session; observer.c ends those of others. */
#include "session/session.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/life.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "base/trouble.h"
#include "session/observer.h"
#include "store/bind.h"
#include "store/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* If beats are further apart than so many beat times, the observer starts anew. */
#define INTERRUPTED_BEATS 3
#define ROW_TAKEN_MS 2
/* So many sessions that only began are remembered. */
#define GIVEN_UP_MOST 16
/* Between two looks where the address leads, and two tries to be where a promoted server is. */
#define SEEK_MS 1000
/* From beat to beat while somebody waits for what this process sees or says next; and from look to
 * look while no beat is confirmed. */
#define HURRY_MS 100

struct session {
    /* Fixed after start. */
    char program[64], host[64], operations[256];
    unsigned generation;
    pool *connections;
    session_options options;
    pthread_t beating, following;
    int loss_fd, beating_started, following_started;
    observer *others;

    /* Atomic. */
    _Atomic(life *) now; /* the life; its `before` leads to those that are over */
    atomic_uint_fast64_t beats, unreachable, ended_others;
    atomic_int waits; /* at a promoted server, which may yet be accepted */

    /* Under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;      /* of the beating thread */
    pthread_cond_t round_due; /* of the following thread */
    int stop_beating, stop_following, round_is_due, look_is_due, glance_is_due;
    int seeks;                 /* some connection leads to another server than the heartbeat's */
    int is_hurried;            /* the last round has read a drain that hurries */
    char witness[RANDOM_UUID]; /* the name of the connection, "" without one */

    /* The beating thread's own. */
    db *connection;
    int64_t last_confirmed_ms;
    int64_t may_seek_ms, may_observe_ms;
    int is_unanswered; /* the last beat was not confirmed, or no new session could be begun */
    int had_left;      /* its server was left when that was tried */
    trouble observing, obeying;
    int64_t obeys_us;       /* of which drain the row says so; 0: of none that is known */
    unsigned given_up;      /* sessions that only began, since the last one under which it lived */
    int was_refused;        /* a new session could not be begun, and the log says so */
    int64_t waits_since_ms; /* first answered elsewhere; 0: confirmed since */
    int64_t away_since_ms;  /* of the first beat that was not confirmed; 0: the last one was */
};

enum beat {
    BEAT_CONFIRMED,
    BEAT_ENDED, /* somebody ended the session */
    BEAT_GONE,  /* its row, which was there at the last beat, is not */
    BEAT_MOVED, /* the session's server is left, or the connection leads to another one */
    BEAT_WAITS, /* that one may yet be accepted by itself */
    BEAT_UNREACHABLE
};

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
    s->obeys_us = 0;
}

static int is_at_replica(const db *connection)
{
    return db_state_of(db_server_of(connection)) == DB_SERVER_REPLICA;
}

/* Nobody lives at a replica, whatever its account may write there. */
static tl_status check_replica(session *s)
{
    if (!is_at_replica(s->connection))
        return TL_OK;
    close_connection(s);
    return error_set(TL_READ_ONLY, "the server is read-only, and not the one that was accepted: "
                                   "perhaps a replica");
}

/* Its server may have been left since the last beat. */
static tl_status have_connection(session *s)
{
    tl_status status = TL_OK;

    if (s->connection != NULL && !db_usable(s->connection))
        close_connection(s);
    if (s->connection == NULL)
        status = open_connection(s);
    return status == TL_OK ? check_replica(s) : status;
}

static uint64_t sending(const session *s)
{
    return s->options.sending != NULL ? s->options.sending(s->options.confirmed_context) : 0;
}

/* Extends the life, counted from before the request left: no observer can have begun to count
 * earlier, however long the answer took.  0: the server is left, and its answer says nothing. */
static int confirm(const session *s, life *of, session_beat *beat)
{
    beat->server = db_server_of(s->connection);
    beat->session_id = of->session_id;
    if (s->options.confirmed != NULL && !s->options.confirmed(s->options.confirmed_context, beat))
        return 0;
    life_confirm(of, beat->before_ms + s->options.timeout_ms);
    return 1;
}

/* What a request that failed leaves: a sentence, and perhaps no connection. */
static tl_status note_failure(session *s, db_answer answer, const char *what)
{
    const tl_status status = db_read_status(s->connection, answer, what);

    if (!db_usable(s->connection))
        close_connection(s);
    return status;
}

/* What became of a beat.  If the row is there and not ended, but took none, the next beat tries
 * again. */
static enum beat find_out(session *s, const life *mine, int is_taken, session_beat *sent)
{
    enum { ENDED, BEAT };
    RESULT result = DB_RESULT_INIT;
    db_answer answer =
        SQL_RUN(s->connection, &result, session_seen, .session_id = db_text(mine->session_id));
    enum beat found = is_taken ? BEAT_CONFIRMED : BEAT_UNREACHABLE;

    if (answer != DB_DONE) {
        note_failure(s, answer, "looking for the session");
        found = BEAT_UNREACHABLE;
    } else if (result.rows == 0) {
        found = BEAT_GONE;
    } else if (db_get_int(&result, 0, ENDED)) {
        found = BEAT_ENDED;
    } else {
        sent->number = db_get_uint(&result, 0, BEAT);
    }
    return found;
}

static store_session_clock known_clock(const session *s)
{
    store_session_clock clock = {.boot_id = NULL};

    if (s->options.clock != NULL)
        s->options.clock(s->options.clock_context, &clock);
    return clock;
}

/* A commit that waits for a replica keeps its connection at the server, and each one more would. */
static tl_status check_wait(session *s)
{
    int is_awaited = 0;
    const db_answer answer =
        store_replica_awaited(s->connection, s->options.timeout_ms, &is_awaited);

    if (answer == DB_DONE && !is_awaited)
        return TL_OK;
    if (answer == DB_ERROR && db_usable(s->connection))
        return TL_OK;
    if (is_awaited)
        (void)error_set(TL_UNREACHABLE, "the server answers no commit before a replica has it, and "
                                        "one has waited for long");
    else
        (void)db_read_status(s->connection, answer, "looking whether commits wait for a replica");
    close_connection(s); /* the next one may lead elsewhere */
    return TL_UNREACHABLE;
}

/* One beat on the session's row; waits: it waits there, and the beat's number stays. */
static enum beat send_beat(session *s, life *mine, int waits, session_beat *sent)
{
    const store_session_clock clock = known_clock(s);
    RESULT result = DB_RESULT_INIT;
    enum beat found = BEAT_UNREACHABLE;
    db_answer answer;

    if (s->is_unanswered && check_wait(s) != TL_OK)
        return BEAT_UNREACHABLE;
    sent->sent = sending(s);
    sent->before_ms = clock_boottime_ms();
    /* Who settles a lost answer holds the row for a moment (settle.c). */
    while ((answer = store_session_beat(s->connection, mine->session_id, waits, &clock, &result)) ==
               DB_ERROR &&
           db_row_is_taken(s->connection) &&
           clock_left_ms(sent->before_ms + s->options.beat_ms) > 0)
        clock_sleep_until_ms(clock_deadline(ROW_TAKEN_MS));
    /* A beat that arrived nevertheless does no harm. */
    if (answer != DB_DONE)
        note_failure(s, answer, "the heartbeat");
    else
        found = find_out(s, mine, result.affected != 0, sent);
    return found;
}

/* It waits no longer than it was certain to live: then the process goes on anew, and its workers
 * ask the channel until operators decide. */
static session_stay stay_of(const session *s, const life *mine, const db_server *to)
{
    session_stay stay = SESSION_LEAVES;

    if (s->options.follow != NULL)
        stay = s->options.follow(s->options.confirmed_context, life_server(mine), to,
                                 s->waits_since_ms);
    if (stay == SESSION_WAITS && clock_left_ms(atomic_load(&mine->certain_until_ms)) == 0)
        stay = SESSION_LEAVES;
    return stay;
}

/* The session's server is not the one to which the connection leads.  Its row is kept alive where
 * the session may go on: nobody there is to end it. */
static enum beat beat_elsewhere(session *s, life *mine, session_stay stay)
{
    session_beat sent = {.number = 0};
    enum beat answer;

    if (stay == SESSION_LEAVES)
        return BEAT_MOVED;
    answer = send_beat(s, mine, stay == SESSION_WAITS, &sent);
    if (answer != BEAT_CONFIRMED)
        return answer;
    if (stay == SESSION_WAITS)
        return BEAT_WAITS;
    if (!confirm(s, mine, &sent))
        return BEAT_UNREACHABLE;
    life_move(mine, db_server_of(s->connection));
    log_line(s->options.logger, TL_WARNING, NULL, 0,
             "session %s goes on at another server, where nothing is missing", mine->session_id);
    return BEAT_CONFIRMED;
}

static enum beat beat(session *s, life *mine)
{
    const int is_left = mine->is_left(life_server(mine));
    session_beat sent = {.number = 0};
    enum beat answer;

    error_clear();
    if (is_left && stay_of(s, mine, NULL) == SESSION_LEAVES)
        return BEAT_MOVED; /* wherever the address leads */
    if (have_connection(s) != TL_OK)
        return BEAT_UNREACHABLE;
    if (is_left || !life_is_at(mine, db_server_of(s->connection)))
        return beat_elsewhere(s, mine, stay_of(s, mine, db_server_of(s->connection)));
    answer = send_beat(s, mine, 0, &sent);
    if (answer == BEAT_CONFIRMED && !confirm(s, mine, &sent))
        answer = BEAT_UNREACHABLE;
    return answer;
}

/* Ends the life for good, before anybody is told. */
static void lose(session *s, life *mine, enum beat how)
{
    static const char *const words[] = {
        [BEAT_ENDED] = "was declared dead",
        [BEAT_GONE] = "has no row any more, by hand or by a restored database",
        [BEAT_MOVED] = "is of another server than the one that is used now",
    };
    uint64_t one = 1;

    life_end(mine);
    log_line(s->options.logger, TL_ALARM, NULL, 0, "session %s %s: all its locks are lost",
             mine->session_id, words[how]);
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

/* Tells `tradelock drain`. */
static void say_that_it_obeys(session *s, const life *mine)
{
    const int64_t since_us =
        s->options.obeys != NULL ? s->options.obeys(s->options.before_context) : 0;
    db_answer answer;
    tl_status status;

    if (since_us == 0 || since_us == s->obeys_us || s->connection == NULL)
        return;
    answer = SQL_RUN(s->connection, NULL, drain_obeyed, .session_id = db_text(mine->session_id),
                     .since_us = db_int(since_us));
    status = answer == DB_DONE ? TL_OK : note_failure(s, answer, "its answer");
    trouble_note(s->options.logger, &s->obeying, status, "saying that a drain is obeyed");
    if (status == TL_OK)
        s->obeys_us = since_us;
}

static void look_around(session *s)
{
    if (pool_look_around(s->connections, NULL) == TL_OK)
        return;
    /* It is said once of each host, so here or never. */
    log_line(s->options.logger, TL_ALARM, NULL, 0,
             "a host of the list cannot be used, and is not: %s", tl_error_message());
    error_clear();
}

/* A primary that is cut off from its replica takes connections and answers reads as ever, and it
 * confirms no beat: that another one was promoted meanwhile is seen there alone.  The other thread
 * looks; if it did not come to that since the last beat, it waits itself for such a server. */
static void look_elsewhere(session *s)
{
    int waits;

    pthread_mutex_lock(&s->mutex);
    waits = s->look_is_due;
    s->look_is_due = 1;
    pthread_cond_signal(&s->round_due);
    pthread_mutex_unlock(&s->mutex);
    if (waits)
        look_around(s);
}

/* Each look reads the rows of all. */
static void observe(session *s)
{
    uint64_t ended = 0;
    const tl_status status = observer_look(s->others, s->connection, &ended);

    trouble_note(s->options.logger, &s->observing, status, "observing other sessions");
    if (status != TL_OK && !db_usable(s->connection))
        close_connection(s);
    atomic_fetch_add(&s->ended_others, ended);
}

/* The pool may lend nothing for longer than a session lives. */
static void look_freshly(session *s)
{
    if (s->options.look == NULL || s->connection == NULL)
        return;
    s->options.look(s->options.before_context, s->connection);
    if (!db_usable(s->connection))
        close_connection(s);
}

/* After a confirmed beat: observes the others, and looks, on the heartbeat's own connection, which does
 * not wait for a silent server; and wakes the other thread for the round. */
static void after_confirmed(session *s)
{
    int64_t now_ms = clock_boottime_ms();

    if (now_ms - s->last_confirmed_ms > INTERRUPTED_BEATS * s->options.beat_ms)
        observer_interrupt(s->others);
    s->last_confirmed_ms = now_ms;
    /* However fast beats come. */
    if (clock_left_ms(s->may_observe_ms) == 0) {
        s->may_observe_ms = clock_deadline(s->options.beat_ms);
        observe(s);
        look_freshly(s);
    }
    say_that_it_obeys(s, atomic_load(&s->now));
    wake_following(s);
}

static tl_status insert_row(session *s, life *of, int *is_there)
{
    store_session row = {
        .session_id = of->session_id,
        .program = s->program,
        .host = s->host,
        .operations = s->operations[0] != '\0' ? s->operations : NULL,
        .connection_name = db_name(s->connection),
        .pid = (uint32_t)getpid(),
        .timeout_ms = s->options.timeout_ms,
        .clock = known_clock(s),
    };
    session_beat sent = {.sent = sending(s), .before_ms = clock_boottime_ms()};
    db_answer answer = store_session_insert(s->connection, &row);

    *is_there = answer == DB_DONE || answer == DB_UNANSWERED;
    if (answer != DB_DONE)
        return db_error_status(s->connection, answer, "beginning the session");
    if (!confirm(s, of, &sent))
        return error_set(TL_UNREACHABLE, "the session was begun at a server that is left");
    s->last_confirmed_ms = sent.before_ms;
    return TL_OK;
}

static int write_end(session *s, const life *of, int settled, int is_told)
{
    RESULT result = DB_RESULT_INIT;
    const db_answer answer =
        SQL_RUN(s->connection, &result, session_end, .told = db_int(is_told),
                .settled = db_int(settled), .session_id = db_text(of->session_id));

    return answer == DB_DONE;
}

static int is_left(const struct db_server *server)
{
    return db_state_of(server) == DB_SERVER_LEFT;
}

/* A session whose row is there, and under which nobody lives: the INSERT was not answered, or the
 * decisions could not be read after it.  Where the server died in that moment, the row stays, and a
 * replica may have it.  Who promotes that one has this session asked, too, what it was told, and
 * nobody else could answer: it was asked for nothing.  So it is one of the lives of this process that
 * are over, for which the process attests.  That goes for the first few, since a server that is cut
 * off may take one after the other, which no replica has.
 *
 * Of the first session of a process nothing is kept: the process ends, and that session is ended as
 * one that died. */
static void give_up_begun(session *s, life *of)
{
    life *before = atomic_load(&s->now);
    /* Nobody asked for anything under this name, nor was told of anything, whatever this process
     * was told under others: so it is asked for nothing where the server is promoted. */
    const int has_ended =
        s->connection != NULL && db_usable(s->connection) && write_end(s, of, 1, 0);

    if (has_ended || before == NULL || s->given_up >= GIVEN_UP_MOST) {
        memory_free(of);
        return;
    }
    s->given_up++;
    assert(life_is_over(before));
    of->is_left = is_left;
    life_move(of, life_server(before));
    life_end(of);
    of->before = before;
    atomic_store(&s->now, of);
}

/* Any thread: a connection leads to another server than the session's, or that one is left; then
 * `server` is NULL. */
static void seek(void *seeker, const struct db_server *server)
{
    session *s = seeker;

    if (life_is_at(atomic_load(&s->now), server))
        return; /* it has moved there meanwhile */
    pthread_mutex_lock(&s->mutex);
    s->seeks = 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
}

static int is_whole(const db *connection)
{
    return db_state_of(db_server_of(connection)) == DB_SERVER_WHOLE;
}

/* Nobody leaves a whole server for one that may lack commits: all that is held would be lost.  The
 * look at the next one has told whether the last one is left. */
static int keeps_last(const session *s, const db *next)
{
    return is_at_replica(next) || (s->connection != NULL && db_usable(s->connection) &&
                                   is_whole(s->connection) && !is_whole(next));
}

/* The heartbeat goes where the address leads: its own connection may have stayed elsewhere.  Keeps
 * that one if no better can be had. */
static void seek_connection(session *s)
{
    db *next = NULL;

    if (pool_open_extra(s->connections, POOL_BEAT, &next) == TL_OK && keeps_last(s, next)) {
        pool_close_extra(s->connections, next);
    } else if (next != NULL) {
        close_connection(s);
        s->connection = next;
        set_witness(s, db_name(next));
    }
    error_clear();
    s->may_seek_ms = clock_deadline(SEEK_MS);
}

/* Makes a session of a new name, which nobody sees yet. */
static tl_status begin(session *s, life **out)
{
    life *of = memory_new(sizeof *of);
    tl_status status;
    int is_there = 0;

    if (of == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the session");
    random_uuid(of->session_id);
    s->obeys_us = 0; /* the new row does not say so yet */
    status = have_connection(s);
    if (status == TL_OK && s->options.before != NULL)
        status = s->options.before(s->options.before_context, s->connection);
    if (status == TL_OK)
        status = check_replica(s);
    if (status == TL_OK)
        status = check_wait(s);
    if (status == TL_OK)
        status = insert_row(s, of, &is_there);
    /* What is decided while a session begins is decided before its row is there, and then it is
     * read now; or after that, and then whoever decided waits for this session. */
    if (status == TL_OK && s->options.begun != NULL)
        status = s->options.begun(s->options.before_context, s->connection, of->session_id);
    if (status == TL_OK) {
        s->given_up = 0;
        life_move(of, db_server_of(s->connection));
        of->seek = seek;
        of->seeker = s;
        of->is_left = is_left;
        *out = of;
        return TL_OK;
    }
    if (s->connection != NULL && !db_usable(s->connection))
        close_connection(s);
    if (is_there)
        give_up_begun(s, of);
    else
        memory_free(of);
    return status;
}

/* Makes `next` the life of the process; the last one, if any, is over. */
static void live_as(session *s, life *next)
{
    life *before = atomic_load(&s->now);

    assert(!life_is_over(next) && next->before == NULL);
    assert(before == NULL || life_is_over(before));
    next->before = before;
    atomic_store(&s->now, next);
}

/* Goes on under a new session, to which all new asks and holds belong.  If the INSERT was not
 * answered, its row shows no beat and holds nothing. */
static void go_on_anew(session *s)
{
    life *next;

    error_clear();
    s->is_unanswered = begin(s, &next) != TL_OK;
    if (s->is_unanswered) {
        if (!s->was_refused)
            log_line(s->options.logger, TL_WARNING, NULL, 0,
                     "no new session could be begun yet: %s", tl_error_message());
        s->was_refused = 1;
        return;
    }
    s->was_refused = 0;
    observer_go_on(s->others, next->session_id);
    live_as(s, next);
    log_line(s->options.logger, TL_WARNING, NULL, 0, "this process goes on as session %s",
             next->session_id);
}

/* Tells once that the server is away, and once that it is back. */
static void note_away(session *s)
{
    if (s->away_since_ms != 0)
        return;
    s->away_since_ms = clock_boottime_ms();
    log_line(s->options.logger, TL_WARNING, NULL, 0, "a heartbeat was not confirmed: %s",
             tl_error_message());
}

static void note_back(session *s)
{
    if (s->away_since_ms == 0)
        return;
    log_line(s->options.logger, TL_WARNING, NULL, 0, "the server is back after %lld s",
             (long long)((clock_boottime_ms() - s->away_since_ms + 500) / 1000));
    s->away_since_ms = 0;
}

/* The server of the life, or of the last one that is over, is left: whatever comes next is at another
 * one. */
static int has_left(const session *s)
{
    const life *mine = atomic_load(&s->now);

    return mine->is_left(life_server(mine));
}

static void round_once(session *s)
{
    life *mine = atomic_load(&s->now);
    enum beat answer;

    s->had_left = has_left(s);
    if (life_is_over(mine)) {
        go_on_anew(s);
        return;
    }
    answer = beat(s, mine);
    atomic_store(&s->waits, answer == BEAT_WAITS);
    s->is_unanswered = answer == BEAT_UNREACHABLE;
    switch (answer) {
    case BEAT_CONFIRMED:
        s->waits_since_ms = 0;
        atomic_fetch_add(&s->beats, 1);
        note_back(s);
        after_confirmed(s);
        break;
    case BEAT_ENDED:
    case BEAT_GONE:
    case BEAT_MOVED:
        s->waits_since_ms = 0;
        lose(s, mine, answer);
        go_on_anew(s);
        break;
    case BEAT_WAITS:
        if (s->waits_since_ms == 0)
            s->waits_since_ms = clock_boottime_ms();
        /* Nobody is observed from here, and the round looks whether it was accepted. */
        observer_interrupt(s->others);
        wake_following(s);
        break;
    case BEAT_UNREACHABLE:
        atomic_fetch_add(&s->unreachable, 1);
        note_away(s);
        observer_interrupt(s->others);
        look_elsewhere(s);
        break;
    }
}

static int drain_hurries(const session *s)
{
    return s->options.hurries != NULL && s->options.hurries(s->options.before_context);
}

/* While a drain waits for this process, or its session is between two servers, all goes on by beats
 * and their rounds. */
static int hurries(const session *s)
{
    return atomic_load(&s->waits) || life_is_between(atomic_load(&s->now)) || drain_hurries(s);
}

/* One that is not confirmed hurries to nothing: what it would tell, nobody there can write down, and
 * each needs a connection.  A server that is about to be left takes no writes for as long as people
 * need, and all processes are there. */
static int64_t until_next_beat_ms(const session *s)
{
    return !s->is_unanswered && s->options.beat_ms > HURRY_MS && hurries(s) ? HURRY_MS
                                                                            : s->options.beat_ms;
}

/* Then what is hurried for is seen at another host: that one was promoted. */
static int glances(const session *s)
{
    return s->is_unanswered && hurries(s);
}

/* As soon as its server is left, whoever saw that, the next one is tried, and then again and again:
 * what is not there in time is lost, and a promoted server may be full for a moment. */
static int64_t until_next_server_ms(const session *s)
{
    return s->is_unanswered && s->had_left ? SEEK_MS : HURRY_MS;
}

/* When the next beat is sent, since a moment; each of them for a reason of its own. */
struct due {
    int64_t next_ms;
    int64_t server_ms; /* the server is left */
    int64_t hurry_ms;  /* the round after the last beat has read a drain that hurries */
};

static int64_t earlier_ms(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* Needs: s->mutex held. */
static int64_t beat_due_ms(const session *s, const struct due *due)
{
    int64_t due_ms = due->next_ms;

    if (has_left(s))
        due_ms = earlier_ms(due_ms, due->server_ms);
    if (s->is_hurried)
        due_ms = earlier_ms(due_ms, due->hurry_ms);
    return s->seeks ? earlier_ms(due_ms, s->may_seek_ms) : due_ms;
}

/* Sleeps until a beat is due, or it is to stop; has the other thread look meanwhile. */
static void await_beat(session *s)
{
    const struct due due = {
        .next_ms = clock_deadline(until_next_beat_ms(s)),
        .server_ms = clock_deadline(until_next_server_ms(s)),
        .hurry_ms = s->is_unanswered ? INT64_MAX : clock_deadline(HURRY_MS),
    };
    int64_t glance_ms = glances(s) ? clock_deadline(HURRY_MS) : INT64_MAX, due_ms;

    pthread_mutex_lock(&s->mutex);
    while (!s->stop_beating && clock_left_ms(due_ms = beat_due_ms(s, &due)) > 0) {
        clock_wait(&s->wake, &s->mutex, earlier_ms(due_ms, glance_ms));
        if (clock_left_ms(glance_ms) > 0)
            continue;
        s->glance_is_due = 1;
        pthread_cond_signal(&s->round_due);
        glance_ms = clock_deadline(HURRY_MS);
    }
    pthread_mutex_unlock(&s->mutex);
}

static void *beat_on(void *argument)
{
    session *s = argument;
    int seeks, stops;

    for (;;) {
        await_beat(s);
        pthread_mutex_lock(&s->mutex);
        seeks = s->seeks;
        s->seeks = 0;
        stops = s->stop_beating;
        pthread_mutex_unlock(&s->mutex);
        if (stops)
            return NULL;
        if (seeks)
            seek_connection(s);
        round_once(s);
    }
}

static void look_as_due(session *s, int round, int look)
{
    if (round)
        s->options.round(s->options.round_context);
    if (look)
        look_around(s);
    else if (!round)
        pool_glance(s->connections);
}

/* The thread of the rounds.  They use the pool, where a silent connection is awaited for longer
 * than a session lives; so they must not delay beats.  Beats confirmed during a round make one more
 * round, not many.  Without a confirmed beat there is no round, only the look at the other hosts.
 * A round ends with one, unless it came early: so after a beat that was not confirmed it is done for
 * itself, though a round is due too. */
static void *follow(void *argument)
{
    session *s = argument;
    int round, look, is_hurried;

    pthread_mutex_lock(&s->mutex);
    while (!s->stop_following) {
        if (!s->round_is_due && !s->look_is_due && !s->glance_is_due) {
            pthread_cond_wait(&s->round_due, &s->mutex);
            continue;
        }
        round = s->round_is_due;
        look = s->look_is_due;
        s->round_is_due = s->look_is_due = s->glance_is_due = 0;
        pthread_mutex_unlock(&s->mutex);
        look_as_due(s, round, look);
        is_hurried = drain_hurries(s);
        pthread_mutex_lock(&s->mutex);
        /* The next beat is sent to the server that was promoted or accepted; or it says what others
         * wait for: that this process obeys the drain that was just read. */
        if (has_left(s) || (is_hurried && !s->is_hurried))
            pthread_cond_signal(&s->wake);
        s->is_hurried = is_hurried;
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
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
    s->generation = process_generation();
    text_copy(s->program, sizeof s->program, options->program);
    text_copy(s->operations, sizeof s->operations, options->operations);
    if (gethostname(s->host, sizeof s->host - 1) != 0)
        text_copy(s->host, sizeof s->host, "unknown");
    pthread_mutex_init(&s->mutex, NULL);
    if (clock_condition_init(&s->wake) != 0 || clock_condition_init(&s->round_due) != 0)
        return error_set(TL_NO_MEMORY, "a condition variable could not be made");
    s->loss_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->loss_fd < 0)
        return error_set(TL_NO_MEMORY, "the loss descriptor could not be made");
    return observer_new(&s->others, "", options->logger);
}

/* Begins the first session of the process. */
static tl_status begin_first(session *s)
{
    life *first = NULL;
    tl_status status = begin(s, &first);

    if (status == TL_OK) {
        observer_go_on(s->others, first->session_id);
        live_as(s, first);
    }
    return status;
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
        status = begin_first(s);
    if (status == TL_OK) {
        *out = s; /* the rounds of its threads ask for it */
        status = start_threads(s);
    }
    if (status != TL_OK) {
        session_stop(s, &none);
        session_free(s);
        *out = NULL;
    }
    return status;
}

static void stop_thread(session *s, pthread_t thread, int *stop, pthread_cond_t *wake)
{
    pthread_mutex_lock(&s->mutex);
    *stop = 1;
    pthread_cond_signal(wake);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(thread, NULL);
}

/* Stops the beat last: the last round may have to wait for a silent connection. */
static void stop_threads(session *s)
{
    if (s->following_started)
        stop_thread(s, s->following, &s->stop_following, &s->round_due);
    if (s->beating_started)
        stop_thread(s, s->beating, &s->stop_beating, &s->wake);
}

/* Whether somebody is promoted, perhaps, and then asks this session what it was told; nobody else
 * could answer.  As long as it was certain to live. */
static int has_to_answer(const session *s, const life *mine)
{
    return s->options.has_to_answer != NULL &&
           clock_left_ms(atomic_load(&mine->certain_until_ms)) > 0 &&
           s->options.has_to_answer(s->options.confirmed_context, life_server(mine));
}

static int is_told(const session *s)
{
    return s->options.is_told == NULL ||
           s->options.is_told(s->options.confirmed_context, db_server_of(s->connection));
}

/* 1: somewhere, once it has answered. */
static int try_to_end(session *s, const life *mine, int settled)
{
    return s->connection != NULL && db_usable(s->connection) &&
           (life_is_at(mine, db_server_of(s->connection)) || !has_to_answer(s, mine)) &&
           write_end(s, mine, settled, is_told(s));
}

/* Who ends while the server is lost, or takes no writes since its replica is about to be promoted,
 * goes on as the heartbeat did, whose threads are over.  Each new connection looks, and attests. */
static void end_row(session *s, const atomic_uint_fast64_t *untracked)
{
    life *mine = atomic_load(&s->now);
    enum beat answer;
    int settled;

    assert(mine == NULL || !s->beating_started || s->stop_beating); /* no beat comes beside */
    if (life_is_over(mine))
        return;
    settled = atomic_load(&mine->may_hold) == 0 && atomic_load(untracked) == 0;
    while (!try_to_end(s, mine, settled) && has_to_answer(s, mine)) {
        clock_sleep_until_ms(clock_deadline(HURRY_MS));
        answer = beat(s, mine);
        if (answer == BEAT_ENDED || answer == BEAT_GONE || answer == BEAT_MOVED)
            return;
        if (answer == BEAT_UNREACHABLE)
            look_around(s);
        else if (answer == BEAT_WAITS && has_to_answer(s, mine))
            close_connection(s);
    }
}

static void free_lives(session *s)
{
    life *next = atomic_load(&s->now);

    while (next != NULL) {
        life *before = next->before;

        memory_free(next);
        next = before;
    }
}

void session_stop(session *s, const atomic_uint_fast64_t *untracked)
{
    if (s == NULL)
        return;
    /* In a child after fork the threads do not exist, and the row is the parent's. */
    if (s->generation == process_generation()) {
        stop_threads(s);
        end_row(s, untracked);
    }
    pool_close_extra(s->connections, s->connection);
    s->connection = NULL;
}

void session_free(session *s)
{
    if (s == NULL)
        return;
    if (s->generation == process_generation()) {
        pthread_cond_destroy(&s->round_due);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->mutex);
    }
    if (s->loss_fd >= 0)
        close(s->loss_fd);
    observer_free(s->others);
    free_lives(s);
    memory_free(s);
}

life *session_life(const session *s)
{
    return s != NULL ? atomic_load(&s->now) : NULL;
}

int session_waits(const session *s)
{
    return s != NULL && atomic_load(&s->waits);
}

const char *session_id(const session *s)
{
    return life_session_id(session_life(s));
}

void session_witness(session *s, char name[RANDOM_UUID])
{
    pthread_mutex_lock(&s->mutex);
    memcpy(name, s->witness, RANDOM_UUID);
    pthread_mutex_unlock(&s->mutex);
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

tl_status session_observe_once(pool *connections, const struct logger *logger, int64_t timeout_ms,
                               int64_t beat_ms, uint64_t *ended)
{
    int64_t deadline_ms = 0;
    observer *o = NULL;
    db *connection = NULL;
    tl_status status = observer_new(&o, "", logger);

    if (status == TL_OK)
        status = pool_open_extra(connections, POOL_QUICK, &connection);
    while (status == TL_OK) {
        status = observer_look(o, connection, ended);
        /* Silence counts from the first look, however late that was. */
        if (deadline_ms == 0)
            deadline_ms = clock_deadline(timeout_ms + beat_ms);
        /* Somebody else ends it, or it is just beating: the next look tells. */
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
