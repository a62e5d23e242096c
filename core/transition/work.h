/*
 * A task (transition/task.h) in an older form, whose functions stand in the struct itself.
 */
#ifndef TL_TRANSITION_WORK_H
#define TL_TRANSITION_WORK_H

#include "transition/task.h"

/* How work of one row shares a statement with work of other threads. */
typedef struct work_group {
    /* Rows are given in the order of their keys.  Of one key there may be several; each is judged
     * by what those before it have left, and what gives back comes before what asks. */
    const char *(*key)(const void *row);
    /* About how many bytes of the statement the row takes. */
    size_t (*size)(const void *row);
    /* One statement and one commit for all of them; DB_DONE: each has its verdict. */
    db_answer (*run)(void **rows, size_t count, db *connection);
} work_group;

typedef struct work {
    const char *name; /* for sentences */
    /* Runs the statements and their commit on this connection; may be called again after a call
     * that committed nothing.  DB_DONE: committed, or there was nothing to do. */
    db_answer (*run)(void *context, db *connection);
    /* Once the connection that the answer was lost on is gone: whether it was committed. NULL:
     * running it again does no harm, so nobody needs to know; it is run again only once that
     * connection is gone, so that the run that is answered is the last one. */
    db_answer (*read)(void *context, db *connection, int *committed);
    void *context;
    /* Where it may share a statement; NULL: it goes alone.  `row` is what the group gets of it.
     * After a group's DB_DONE `take`, on any thread, looks at the row's verdict: 1 when that was
     * all, 0 when `run` goes on from there, alone. */
    const work_group *group;
    void *row;
    int (*take)(void *context);
    /* A row that an open transaction holds is an answer (VERDICT_DECIDING), not a reason to come
     * again. */
    int asks;
    const life *life; /* of the session that an ask is for; NULL: of none */
    /* The answer to an earlier run was lost, and nobody could settle it: what fails now is still
     * UNKNOWN. */
    int doubtful;

    /* Given back in after VERDICT_UNKNOWN, it is settled before anything is run. */
    char lost_connection[RANDOM_UUID];

    /* APPLIED: `run`, its group or, when settled, `read` said so.  DECIDING, UNKNOWN, FAILED. */
    verdict verdict;
    int settled;
    tl_status status; /* with UNKNOWN and FAILED */
} work;

void work_run(transition_engine *engine, work *w, int64_t budget_ms);

/* What a handle remembers of such work whose answer was lost, until it is run again. */
typedef struct work_doubt {
    int doubtful;
    char lost_connection[RANDOM_UUID];
} work_doubt;

/* work_run() of work without `read`, with what is in doubt taken along and brought back. */
void work_run_again(transition_engine *engine, work *w, work_doubt *left, int64_t budget_ms);

#endif
