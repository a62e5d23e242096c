/*
 * A task is one piece of database work that the engine carries out to its end: it is run, run again
 * while the server undoes it, and settled when its answer is lost.  What it does, its kind says, a
 * table of functions; whatever is repeated, counted or settled, the engine does for all kinds.
 *
 *     static const task_kind renewing = {.run = run_renewal};
 *     task t = {.kind = &renewing, .name = "renew", .context = &r, .doubt = handle->doubt};
 *
 *     task_run(engine, &t, budget_ms);
 *     handle->doubt = t.doubt;
 *     switch (t.verdict) ...
 */
#ifndef TL_TRANSITION_TASK_H
#define TL_TRANSITION_TASK_H

#include "base/life.h"
#include "base/log.h"
#include "base/random.h"
#include "pool/pool.h"

#include <stdatomic.h>

/* A row lock that this statement would have had to wait for; only it was undone. */
#define ERROR_LOCK_WAIT 1205

/* What became of a task. */
typedef enum verdict {
    VERDICT_APPLIED,       /* committed, or there was nothing to do */
    VERDICT_REFUSED,       /* the row is not what it rests on; nothing was written */
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

/* What is in doubt: a statement whose answer was lost, as the task that ran it leaves it.  A handle
 * keeps it, and gives it back in with the next task of the same token; starts as zeroes. */
typedef struct doubt {
    int is_open;                  /* it may have been committed */
    char connection[RANDOM_UUID]; /* by name, that may still be at it; "": none is */
    business_rows rows;           /* that ride along with it, in doubt or settled since */
    char words[192];              /* why, in the server's words or the client library's */
    unsigned failed_with;         /* not 0: the server's error, which will not pass by itself */
} doubt;

/* It was committed or not, as its connection has answered, and what is not known its row says:
 * nothing is to be ended. */
void doubt_row(doubt *d);

/* Where the engine is with a task. */
typedef enum task_stage {
    TASK_NEW,   /* to be run; not tried yet, or not in a way that counts */
    TASK_AGAIN, /* it was tried, and is tried again after a pause */
    TASK_OVER   /* it has its verdict */
} task_stage;

typedef struct task {
    /* Set by whoever makes it; the rest as zeroes. */
    const struct task_kind *kind;
    const char *name; /* for sentences */
    void *context;    /* its kind's own */
    int asks;         /* a row that an open transaction holds is an answer: VERDICT_DECIDING */
    int once;         /* it is not run again, though what is lost is settled */
    const life *life; /* of the session that it asks or holds under; NULL: of none */

    /* Given back in, what is in doubt is settled before anything is run. */
    doubt doubt;

    verdict verdict;
    tl_status status; /* with VERDICT_FAILED and VERDICT_UNKNOWN */
    int settled;      /* the verdict was found out afterwards, by `read` */
    task_stage stage; /* the engine's own */
} task;

typedef struct transition_engine transition_engine;

/* Which tasks may share one statement and one commit: those whose kind names the same one. */
typedef struct batch_kind {
    /* About how many bytes of the statement the task takes. */
    size_t (*size)(const task *t);
    /* By key, and what gives a row back before what asks for it. */
    int (*order)(const task *a, const task *b);
    /* NULL: a statement may have several of one key.  Else only the first of them is in it, and
     * once that has its verdict, this says what becomes of another: 1 when t->verdict is set, 0
     * when it goes on alone. */
    int (*follow)(const task *written, task *t);
    /* One statement and one commit for all of them, in that order.  DB_DONE: each has its verdict,
     * or was sent on its way alone with task_send_back(). */
    db_answer (*run)(task **tasks, size_t count, db *connection);
} batch_kind;

typedef struct task_kind {
    pool_kind pool; /* POOL_QUICK, unless it says otherwise */
    int reads;      /* it writes nothing: a lost answer leaves nothing in doubt, and is asked for
                     * again */
    /* Whether it may be begun on the server that the connection leads to, which may be what has
     * shown that it may not, and under its session: asked directly before each run that does not
     * follow a doubt.  TL_OK, or why not.  NULL: always. */
    tl_status (*check)(const transition_engine *engine, const task *t);
    /* Runs the statements and their commit.  DB_DONE: the verdict is APPLIED, unless this has set
     * another; or it is AGAIN in t->stage, FAILED; or it is left in doubt with task_doubt().  A
     * transaction that it leaves open is rolled back. */
    db_answer (*run)(task *t, db *connection);
    /* What an error of the server means to this kind, where it is not what it means to all: 1 when
     * the verdict is set, and the stage where it is not over.  NULL: nothing else. */
    int (*judge)(task *t, const db *connection);
    /* Once the connection that the answer was lost on is gone: what became of it.  DB_DONE: the
     * verdict is APPLIED, LOST, or as it was before, REFUSED, when it did not happen.  NULL:
     * running it again does no harm, so nobody needs to know; it is run again once that connection
     * is gone, so that the run that is answered is the last one. */
    db_answer (*read)(task *t, db *connection);
    /* The run is over, committed or rolled back; the connection is about to be given back.  NULL:
     * nothing is to be done. */
    void (*after)(task *t, db *connection);
    /* It proved not to have happened.  Verdict, status and sentence are set for one that is tried
     * again; this may say something else.  NULL: nothing else. */
    void (*undone)(task *t);
    /* Where it may share a statement; NULL, or NULL from it: it goes alone. */
    const batch_kind *(*batch)(const task *t);
} task_kind;

/* Counters of everything a client does; relaxed, for statistics. */
typedef struct transition_counters {
    atomic_uint_fast64_t repeats, settled, killed, groups, grouped;
} transition_counters;

/* restored: not 0 while commits may be missing in the database, as each new connection
 * shows.  Then no step is begun that money may be sent after, no trade is ended as failed
 * (TL_ASK_CHANNEL), and nothing that locks a resource. */
tl_status transition_engine_new(transition_engine **out, pool *connections,
                                const struct logger *logger, const atomic_int *restored);
void transition_engine_free(transition_engine *engine);
transition_counters *transition_count(transition_engine *engine);
pool *transition_pool(const transition_engine *engine);
int transition_is_restored(const transition_engine *engine);

/* Carries the task out, alone or together with those of other threads, within the budget. */
void task_run(transition_engine *engine, task *t, int64_t budget_ms);
/* The same for all of them; those that may share statements do.  Their order changes. */
void task_run_all(transition_engine *engine, task **tasks, size_t count, int64_t budget_ms);

/* Finds out what became of a task that is in doubt, and runs nothing: ends the connection, waits
 * until its rollback is finished, then reads.  APPLIED, LOST, REFUSED when it did not happen, or
 * UNKNOWN, still in doubt. */
void task_settle(transition_engine *engine, task *t, int64_t budget_ms);

/* The same for a transaction of a caller's, which has changed the row of that key.  thread_id: of
 * its connection; witness: the name of a connection of ours that was held before the step and is
 * held as long as the server runs, "" for none. */
void task_settle_caller(transition_engine *engine, task *t, const tl_key *key, uint64_t thread_id,
                        const char *witness, int64_t budget_ms);

/* Only ends the connection: nothing of what is in doubt happens later.  1 once it is gone, and its
 * rollback is finished. */
int task_end(transition_engine *engine, doubt *d, int64_t budget_ms);

/* -- for kinds -- */

/* A check that fits whatever locks a resource. */
tl_status task_check_lock(const transition_engine *engine, const task *t);
/* A judge that fits what is patient: an error of the server that ends the connection, or says that
 * it is overloaded, is tried again as an outage is. */
int task_judge_passing(task *t, const db *connection);
/* From `judge`: this run wrote nothing; but what may have happened before stays in doubt. */
void task_fail(task *t, tl_status status);
/* From `run`: whether it was committed is not known.  The connection is done with. */
void task_doubt(task *t, db *connection);
/* From a batch's `run`: it goes on alone, on its own thread, which finds words of its own; nothing
 * was written for it there. */
void task_send_back(task *t);

#endif
