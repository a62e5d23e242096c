/*
 * Who is alive.  One row for each running process, renewed by one statement a beat from a thread
 * and a connection of its own, whatever the number of locks.
 *
 * A beat has three answers.  Confirmed: the session certainly lives until one time-out after the
 * moment *before* the beat was sent, by CLOCK_BOOTTIME.  Unreachable: it may live or not; the
 * certain time runs down.  Lost: somebody declared it dead, for good; the process is told, and goes
 * on under a session of a new name, as often as that happens. What was held under the old one keeps
 * its life (base/life.h), which is over.
 *
 * Each session observes the others: one that shows no new beat at any of the observer's own
 * confirmed beats during one whole time-out of the observer's clock is ended, in a transaction of
 * its own, before any of its locks is touched.  When the observer's own beats are interrupted it
 * starts to count anew, so that a server that was away for a while does not make everybody look
 * dead.
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

/* Called after each confirmed beat, on a thread of its own; the janitor's place.  However long it
 * takes, it delays no beat; it is called again when a beat was confirmed since. */
typedef void (*session_round_fn)(void *context);

typedef struct session_options {
    const char *program, *operations; /* copied */
    int64_t beat_ms, timeout_ms;
    const struct logger *logger;
    tl_loss_fn loss;
    void *loss_context;
    session_round_fn round; /* or NULL */
    void *round_context;
    /* Called with each confirmed beat, on the thread that sent it: the session, the number of the
     * beat as the database has it, the moment before it was sent.  Or NULL. */
    void (*confirmed)(void *context, const char *id, uint64_t beat, int64_t before_ms);
    void *confirmed_context;
    /* What a session's row tells of the server's clock, at its begin and with each beat. */
    void (*clock)(void *context, struct store_session_clock *kept);
    void *clock_context;
    /* Called before each session is begun, on its connection: what the last one knew of the
     * database is judged before the next one is believed.  Or NULL. */
    tl_status (*before)(void *context, db *connection);
    void *before_context;
} session_options;

/* Writes the row and starts the threads. */
tl_status session_start(session **out, pool *connections, const session_options *options);

/* Waits for the round under way, stops the threads, ends the row (best effort), frees all
 * lives.  Where none of its handles may hold a trade and *untracked is 0 too, no trade of it is in
 * process, and nobody needs to look for one. */
void session_stop(session *s, const atomic_uint_fast64_t *untracked);

/* Of the session as it is now: what is asked for keeps it.  NULL without a session. */
life *session_life(const session *s);
/* The name of that; it stays what it was until the session is stopped. */
const char *session_id(const session *s);

/* The name of a connection that is held now and as long as the server runs and the line stands, ""
 * without one: while it is held, it is the same run of the server. */
void session_witness(session *s, char name[RANDOM_UUID]);

/* Becomes readable at each loss. */
int session_loss_fd(const session *s);

typedef struct session_counters {
    uint64_t beats, unreachable, ended_others;
} session_counters;
void session_count(const session *s, session_counters *counters);

/* One observation outside the heartbeat's is meaningless without time passing; this observes for
 * one time-out and ends whom it found expired.  For `reap` without waiting for a service.  Returns
 * how many were ended. */
tl_status session_observe_once(pool *connections, const struct logger *logger, int64_t timeout_ms,
                               int64_t beat_ms, uint64_t *ended);

#endif
