/*
 * Who is alive.  Each running process has one row, renewed by one statement a beat on a thread and
 * a connection of its own, however many locks it holds.
 *
 * A beat has three answers.  Confirmed: the session certainly lives for one time-out, counted from
 * *before* the beat was sent, by CLOCK_BOOTTIME.  Unreachable: it may live or not, and the certain
 * time runs down.  Lost: somebody ended it, for good.  The process is told, and goes on under a
 * session of a new name, as often as that happens.  What was held under the old one keeps its life
 * (base/life.h), which is over.
 *
 * A session is of the server where it began.  When the heartbeat's connection leads to another one,
 * the session is lost, and the process goes on under one of that server; unless that was promoted,
 * and is accepted by itself since nothing is missing there: then the session goes on.  A grant that
 * meets another server than the session's is refused, and has the heartbeat look at once where the
 * address leads: wherever that is, heart and grants meet there.
 *
 * Each session observes the others.  It ends one whose beat stood still at all of the observer's
 * own confirmed beats for a whole time-out of the observer's clock; a transaction of its own does
 * that, before any of the dead session's locks is touched.  An observer whose own beats are
 * interrupted counts anew, so that an outage of the server does not make everybody look dead.
 */
#ifndef TL_SESSION_SESSION_H
#define TL_SESSION_SESSION_H

#include "base/life.h"
#include "base/log.h"
#include "base/random.h"
#include "pool/pool.h"

#include <stdatomic.h>

typedef struct session session;
struct store_session_clock;

/* Called after a confirmed beat, on a thread of its own: the round, in which the janitor works.
 * However long it takes, it delays no beat, unless one was not confirmed meanwhile: then the heartbeat
 * itself looks at the other hosts of a list, and waits for a look that is under way.  It is called
 * again once a later beat is confirmed. */
typedef void (*session_round_fn)(void *context);

typedef struct session_beat {
    const db_server *server; /* where it was sent */
    const char *session_id;
    uint64_t number;   /* in the database */
    uint64_t sent;     /* what `sending` returned */
    int64_t before_ms; /* the moment before it was sent */
} session_beat;

typedef enum session_stay {
    SESSION_LEAVES, /* it is lost, and the process goes on under a new one */
    SESSION_WAITS,  /* a promoted server may yet be accepted by itself: its row is kept alive there,
                     * and nothing is certain meanwhile */
    SESSION_MOVES   /* it was: the session goes on there */
} session_stay;

typedef struct session_options {
    const char *program, *operations; /* copied */
    int64_t beat_ms, timeout_ms;
    const struct logger *logger;
    tl_loss_fn loss;
    void *loss_context;
    session_round_fn round; /* or NULL */
    void *round_context;
    /* Called before each beat is sent; what it returns goes into that beat's confirmation.  May be
     * NULL, and so is `confirmed` then. */
    uint64_t (*sending)(void *context);
    /* Called with each beat that was answered, on the thread that sent it.  0: the answer came from
     * a server that was left meanwhile, and confirms nothing. */
    int (*confirmed)(void *context, const session_beat *beat);
    /* What becomes of a session at `from` whose connection leads to another server, or (NULL) to
     * none that can be used; since_ms: when it first waited at one, by the clock of the boot, with
     * no beat confirmed since; 0: it did not.  May be NULL: it is lost. */
    session_stay (*follow)(void *context, const db_server *from, const db_server *to,
                           int64_t since_ms);
    /* Whether this process may have been told of a commit that this server could lack; if not, its
     * session is asked for nothing when this server is promoted.  May be NULL: it may. */
    int (*is_told)(void *context, const db_server *here);
    /* Whether a server that is promoted in place of this one may still ask this process what it was
     * told: then session_stop() waits for that, as long as the session is certain.  May be NULL: none
     * does. */
    int (*has_to_answer)(void *context, const db_server *lived_at);
    void *confirmed_context; /* of these five */
    /* Tells what the session's row says of the server's clock, when it begins and with each
     * beat. */
    void (*clock)(void *context, struct store_session_clock *kept);
    void *clock_context;
    /* Called before each session begins, on its connection: compares what the last one knew of the
     * database before the next one is believed.  May be NULL. */
    tl_status (*before)(void *context, db *connection);
    /* Called once its row is there, before anything is asked for under its name: reads what has to
     * be read no earlier than that, and says what it goes by.  May be NULL. */
    tl_status (*begun)(void *context, db *connection, const char *session_id);
    /* With each beat: the drain that this process obeys now, by the moment of its decision; 0: none.
     * May be NULL. */
    int64_t (*obeys)(void *context);
    /* 1: what is next is awaited by many, so beats come faster, HURRY_MS apart, as long as they are
     * confirmed.  May be NULL. */
    int (*hurries)(void *context);
    /* Called after a confirmed beat, on its connection, once in beat_ms: looks at what is worth
     * something only while it is fresh.  May be NULL. */
    void (*look)(void *context, db *connection);
    void *before_context; /* of these five */
} session_options;

/* Writes the row and starts the threads. */
tl_status session_start(session **out, pool *connections, const session_options *options);

/* Waits for the round under way, stops the threads, ends the row (best effort).
 * While its server is lost, or takes no writes, it waits for a promoted one (has_to_answer).
 * If no handle may hold a trade and *untracked is 0, none of its trades is in process, and nobody
 * needs to look for one. */
void session_stop(session *s, const atomic_uint_fast64_t *untracked);
/* Frees it with all lives, once nobody is inside a call that has one. */
void session_free(session *s);

/* The life of the session as it is now; each ask keeps it.  NULL without a session. */
life *session_life(const session *s);
/* Whether it waits at a server that may yet be accepted by itself. */
int session_waits(const session *s);
/* The name of that life; the text stays valid until the session is stopped. */
const char *session_id(const session *s);

/* The name of a connection that is held until the server stops or the connection breaks; "" without
 * one.  While the name is held, the server has not restarted. */
void session_witness(session *s, char name[RANDOM_UUID]);

/* Becomes readable at each loss. */
int session_loss_fd(const session *s);

typedef struct session_counters {
    uint64_t beats, unreachable, ended_others;
} session_counters;
void session_count(const session *s, session_counters *counters);

/* Observes for one time-out, and ends sessions that were silent for all of it; *ended tells how
 * many.  For `tradelock reap`, which needs no service to run. */
tl_status session_observe_once(pool *connections, const struct logger *logger, int64_t timeout_ms,
                               int64_t beat_ms, uint64_t *ended);

#endif
