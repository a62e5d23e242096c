/*
 * A task is database work that the engine carries out to its end: it runs the task, runs it again
 * while the server undoes it, and settles it when its answer is lost.  The task's kind, a table of
 * functions, says what it does.  The engine repeats, counts and settles for all kinds.
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
#include "base/metrics.h"
#include "base/random.h"
#include "pool/pool.h"
#include "transition/marks.h"

#include <stdatomic.h>

/* The statement would have had to wait for a row lock; only this statement was undone. */
#define ERROR_LOCK_WAIT 1205

/* What became of a task. */
typedef enum verdict {
    VERDICT_APPLIED,       /* committed, or there was nothing to do */
    VERDICT_REFUSED,       /* the row is not as the task needs it; nothing was written */
    VERDICT_CUSTOMER_BUSY, /* the unique key of exclusive operations refused */
    VERDICT_DECIDING,      /* an open transaction holds the row; nothing was written */
    VERDICT_LOST,          /* committed, but superseded since, or worth nothing any more */
    VERDICT_UNKNOWN,       /* not knowable now */
    VERDICT_FAILED         /* nothing was written; status says why */
} verdict;

/* Whether business rows were to be committed with a step. */
typedef enum business_rows {
    ROWS_NONE,     /* none, in any try of this handle */
    ROWS_NOT_SENT, /* they were, and their commit was not sent */
    ROWS_SENT      /* they were, and their commit was sent */
} business_rows;

/* What is in doubt: a statement whose answer was lost.  The task that ran it fills this in; a
 * handle keeps it, and hands it in with the next task of the same token.  Starts as zeroes. */
typedef struct doubt {
    int is_open;                  /* it may have been committed */
    char connection[RANDOM_UUID]; /* its name, while it may still run the statement; or "" */
    const db_server *server;      /* where it was sent; NULL: not known */
    int was_whole;                /* the server, then */
    business_rows rows;           /* to be committed with it */
    char words[192];              /* why, in the server's words or the client library's */
    unsigned failed_with;         /* not 0: a server error that will not pass by itself */
} doubt;

/* Marks as in doubt what only has to be read from the row: the connection has answered, so none is
 * to be ended. */
void doubt_row(doubt *d);

/* Where the engine is with a task. */
typedef enum task_stage {
    TASK_NEW,   /* to be run; no try of it counts yet */
    TASK_AGAIN, /* tried, and to be tried again after a pause */
    TASK_OVER   /* it has its verdict */
} task_stage;

/* A queue in which tasks of many threads find each other (group.h). */
typedef struct group_queue group_queue;

typedef struct task {
    /* Set by the maker; all else starts as zeroes. */
    const struct task_kind *kind;
    group_queue *groups; /* where it meets others of its batch kind; NULL: the engine's own queue */
    const char *name;    /* for sentences */
    void *context;       /* its kind's own */
    int asks;            /* if an open transaction holds the row: VERDICT_DECIDING, not a wait */
    int once;            /* never run again; a lost answer is still settled */
    int presses_on;      /* begins also behind a commit that waits for a replica */
    int permitted;       /* the engine's own: it has a permit now */
    int64_t until_ms;    /* the engine's own: so long its thread awaits answers; 0: no end */
    const life *life;    /* of the session that it asks or holds under, or NULL */

    /* If it is open when handed in, it is settled before anything is run. */
    doubt doubt;

    verdict verdict;
    tl_status status;       /* with VERDICT_FAILED and VERDICT_UNKNOWN */
    int settled;            /* `read` found the verdict out afterwards */
    int untold;             /* it stays unknown since all connections lead to another server */
    task_stage stage;       /* the engine's own */
    char left[RANDOM_UUID]; /* the engine's own: a connection that may still roll back; or "" */
} task;

typedef struct task_engine task_engine;

/* Tasks whose kinds name the same batch kind may share one statement and one commit. */
typedef struct batch_kind {
    pool_kind pool; /* 0 is POOL_QUICK */
    /* About how many bytes of the statement the task takes. */
    size_t (*size)(const task *t);
    /* Orders by key; of one key, a task that gives the row back comes before one that asks. */
    int (*order)(const task *a, const task *b);
    /* NULL: a statement may have several tasks of one key.  Else it has only the first of them.
     * Once that has its verdict, this is called for each other: 1: t->verdict is set, 0: it goes on
     * alone. */
    int (*follow)(const task *written, task *t);
    /* Runs one statement and one commit for all of them, in that order.  DB_DONE: each has its
     * verdict, or goes on alone by task_send_back(). */
    db_answer (*run)(task **tasks, size_t count, db *connection);
} batch_kind;

typedef struct task_kind {
    pool_kind pool; /* 0 is POOL_QUICK */
    int reads;      /* writes nothing: after a lost answer it is simply run again */
    /* Whether it may begin now: on the server of this connection, which may have been restored, and
     * under its session.  Called directly before each run, unless the task is in doubt.  TL_OK, or
     * why not.  NULL: always. */
    tl_status (*check)(const task *t, const db *connection);
    /* Runs the statements and their commit.  DB_DONE: the verdict is APPLIED, unless this set
     * another.  It may also set FAILED with TASK_AGAIN, or call task_doubt().  A transaction that
     * it leaves open is rolled back. */
    db_answer (*run)(task *t, db *connection);
    /* For errors of the server that mean something special to this kind.  1: this set the verdict,
     * and the stage if the task is not over.  0, or NULL: the error means what it means to all. */
    int (*judge)(task *t, const db *connection);
    /* Reads what became of the task, once the connection that the answer was lost on is gone.
     * DB_DONE: the verdict is APPLIED or LOST, or still REFUSED: it did not happen.  NULL: running
     * the task twice does no harm, so it is run again once that connection is gone; the answered
     * run is then the last one. */
    db_answer (*read)(task *t, db *connection);
    /* Called after a run, committed or rolled back, before the connection is given back.  May be
     * NULL. */
    void (*after)(task *t, db *connection);
    /* Called when the task proved not to have happened.  Verdict, status and sentence are set so
     * that it is tried again; this may set others.  May be NULL. */
    void (*undone)(task *t);
    /* The batch kind of the task.  NULL, or NULL returned: it goes alone. */
    const batch_kind *(*batch)(const task *t);
    /* What was committed when the verdict is APPLIED, as it can be looked up on another server: the
     * kind of the mark, and by what it is found.  NULL: nobody can look it up. */
    void (*mark)(const task *t, commit_mark *to);
} task_kind;

/* Counters of everything a client does; relaxed, for statistics. */
typedef struct transition_counters {
    atomic_uint_fast64_t repeats, settled, killed, groups, grouped;
    /* Tasks whose answer was lost: it had been committed, and counts or is superseded; it had not;
     * nobody could tell yet. */
    atomic_uint_fast64_t lost_applied, lost_superseded, lost_not_done, lost_unknown;
    histogram group_tasks;
} transition_counters;

/* marks: what was committed is noted there. */
tl_status task_engine_new(task_engine **out, pool *connections, const struct logger *logger,
                          commit_marks *noted);
void task_engine_free(task_engine *engine);
transition_counters *transition_count(task_engine *engine);
pool *transition_pool(const task_engine *engine);

/* Carries the task out within the budget, alone or together with tasks of other threads. */
void task_run(task_engine *engine, task *t, int64_t budget_ms);
/* For many at once: tries each once, those that may share statements together; their order changes.
 * Then those that are over have their verdict. */
void task_try_all(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms);
int task_is_over(const task *t);
/* Goes on with one of the others, and returns how long it is to be left alone before the next call:
 * meanwhile others may go on.  0: it has its verdict.  *pause_ms: 0 at first. */
int64_t task_go_on(task_engine *engine, task *t, int64_t *pause_ms, int64_t deadline_ms);

/* Finds out what became of a task that is in doubt, and does not run it: ends the connection, waits
 * until its rollback is finished, then reads.  The verdict is APPLIED, LOST, REFUSED if it did not
 * happen, or UNKNOWN if it is still in doubt. */
void task_settle(task_engine *engine, task *t, int64_t budget_ms);

/* The same for a caller's transaction that changed the row of the key.  thread_id: of the caller's
 * connection.  witness: the name of a connection of ours, which was held before the step and is
 * held until the server stops; "": none.  server: to which that connection leads. */
void task_settle_caller(task_engine *engine, task *t, const tl_key *key, uint64_t thread_id,
                        const char *witness, const db_server *server, int64_t budget_ms);

/* The caller says that this task was committed in a transaction of its own, on that server.  0: the
 * server is left, and whoever answered there is not believed. */
int task_note_caller(task_engine *engine, const task *t, const db_server *server);

/* Only ends the connection, so that nothing in doubt can happen later.  1 once it is gone and its
 * rollback is finished. */
int task_end(task_engine *engine, doubt *d, int64_t budget_ms);

/* -- for kinds -- */

/* A `check` for tasks that lock a resource. */
tl_status task_check_lock(const task *t, const db *connection);
/* A `check` for tasks that renew a lease: elsewhere it would go on while it is over at home. */
tl_status task_check_renewal(const task *t, const db *connection);
/* TL_OK on a server that was accepted.  On one that may lack commits TL_ASK_CHANNEL is the
 * answer to each step after which money may be sent, each ending as failed, and each lock of a
 * resource. */
tl_status task_check_server(const db_server *server, const char *name);
/* A `judge` for tasks that may wait: tries again, as after an outage, when the server ended the
 * connection or is overloaded. */
int task_judge_passing(task *t, const db *connection);
/* Called in `judge`: this run wrote nothing; an earlier one that is in doubt stays in doubt. */
void task_fail(task *t, tl_status status);
/* It is not known what became of what was sent on this connection: where that was. */
void doubt_at(doubt *d, const db *connection);
/* Called in `run`: it is not known whether the task was committed.  The connection is spoilt. */
void task_doubt(task *t, db *connection);
/* Called in a batch's `run`: nothing was written for this task, and it goes on alone, on its own
 * thread, which finds its own words. */
void task_send_back(task *t);

#endif
