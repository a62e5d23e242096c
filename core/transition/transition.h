/*
 * Carrying out steps: each one commits on its own or did not happen, and its verdict is known or is
 * honestly UNKNOWN.  The array is there from the first day, so that steps of many threads can share
 * a statement and a commit without their callers noticing.
 */
#ifndef TL_TRANSITION_TRANSITION_H
#define TL_TRANSITION_TRANSITION_H

#include "base/log.h"
#include "base/random.h"
#include "pool/pool.h"
#include "store/step.h"

#include <stdatomic.h>

/* A row lock that this statement would have had to wait for; only it was undone. */
#define ERROR_LOCK_WAIT 1205

/* The unique key that lets one trade of a customer be in process. */
#define KEY_ONE_PER_CUSTOMER "one_per_customer"

typedef enum verdict {
    VERDICT_APPLIED,       /* committed */
    VERDICT_REFUSED,       /* the row is not what the step rests on; nothing was written */
    VERDICT_CUSTOMER_BUSY, /* the unique key of exclusive operations refused */
    VERDICT_DECIDING,      /* an open transaction holds the row; nothing was written */
    VERDICT_LOST,          /* committed, and superseded since, or no longer worth anything */
    VERDICT_UNKNOWN,       /* not knowable now */
    VERDICT_FAILED         /* nothing was written; status says why */
} verdict;

/* What was to ride along with a step. */
typedef enum business_rows {
    ROWS_NONE,     /* nothing, as far as this handle tried */
    ROWS_NOT_SENT, /* business rows; the commit behind them was not sent */
    ROWS_SENT      /* the same, and it was */
} business_rows;

typedef struct transition {
    step step;
    verdict verdict;
    tl_status status; /* with VERDICT_FAILED and VERDICT_UNKNOWN */
    /* The connection that the answer was lost on, "" when none was.  Given back in with the same
     * token, it is settled before anything is written. */
    char lost_connection[RANDOM_UUID];
    business_rows rows;
    char lost_because[192]; /* in the server's words, or the client library's */
    unsigned failed_with;   /* not 0: the server's error, which will not pass by itself */
    int settled;            /* the verdict was found out afterwards */
} transition;

/* Counters of everything a client does; relaxed, for statistics. */
typedef struct transition_counters {
    atomic_uint_fast64_t repeats, settled, killed, groups, grouped;
} transition_counters;

typedef struct transition_engine transition_engine;

/* restored: not 0 while commits may be missing in the database, as each new connection
 * shows.  Then no step is begun that money may be sent after, no trade is ended as failed
 * (TL_ASK_CHANNEL), and nothing that locks a resource. */
tl_status transition_engine_new(transition_engine **out, pool *connections,
                                const struct logger *logger, const atomic_int *restored);
void transition_engine_free(transition_engine *engine);
transition_counters *transition_count(transition_engine *engine);
pool *transition_pool(transition_engine *engine);
/* TL_OK, or TL_ASK_CHANNEL: to be asked once the connection is there, since it may be the one that
 * shows it. */
tl_status transition_check_restored(const transition_engine *engine, const step *s);
/* TL_OK, or why the step's session is none to begin it under, to be asked directly before:
 * TL_SESSION_LOST or TL_UNREACHABLE of what asks, TL_LOST of a hold whose session is over. */
tl_status transition_check_life(const step *s);

/*
 * Carries out every transition of the array.  Database work that the server undid (1213,
 * 1020, and 1205 where the step may wait) is repeated, with jitter, until budget_ms is
 * over.  An answer that was lost is settled by the token (settle.c) before this returns.
 * The order of the array changes.
 */
void transition_run(transition_engine *engine, transition **items, size_t count, int64_t budget_ms);

/*
 * Finds out what became of a step whose connection, by name, may still be at work: ends that
 * connection, waits until its rollback is finished, then reads by the key. Sets the verdict:
 * APPLIED, LOST, REFUSED (it did not happen) or UNKNOWN.
 */
void transition_settle(transition_engine *engine, transition *t, const char *connection_name,
                       int64_t budget_ms);

/* The same for a transaction of a caller's, which has changed the step's row.  thread_id: of its
 * connection; witness: the name of a connection of ours that was held before the step and is held
 * as long as the server runs, "" for none. */
void transition_settle_caller(transition_engine *engine, transition *t, uint64_t thread_id,
                              const char *witness, int64_t budget_ms);

/* For a step that met somebody else's row: whether an earlier try of it, with the same token, had
 * been carried out after all.  The same verdicts. */
void transition_look(transition_engine *engine, transition *t, int64_t budget_ms);

/* Reads what became of work whose connection is gone; DB_DONE when it is known. */
typedef db_answer (*settle_read_fn)(void *context, db *connection);

/* The same for work that is no step of a trade: ends the connection of that name, waits until
 * its rollback is finished, then lets `read` look, until it knows.  0: not knowable within the
 * budget. */
int settle_connection(transition_engine *engine, const char *connection_name, settle_read_fn read,
                      void *context, int64_t budget_ms);

/* Ends the connection of that name; 1 once it is gone, and its rollback is finished. */
int transition_end(transition_engine *engine, const char *connection_name, int64_t budget_ms);

#endif
