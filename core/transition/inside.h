/* What the files of this room share. */
#ifndef TL_TRANSITION_INSIDE_H
#define TL_TRANSITION_INSIDE_H

#include "transition/group.h"
#include "transition/transition.h"

#include <semaphore.h>

#define ERROR_NO_SUCH_THREAD 1094
#define ERROR_KILL_DENIED 1095

struct transition_engine {
    /* Fixed after start. */
    pool *connections;
    const struct logger *logger;
    const atomic_int *restored;
    group_queue *groups;
    sem_t settlers; /* members of a lost group that may settle for themselves at once */
    /* Atomic. */
    transition_counters counters;
};

/* batch.c: steps in groups.  The class of a step that may share a statement, or NULL. */
const group_class *batch_class(const step *s);
/* These together, at most GROUP_ROWS and of one class; or this one once, alone.  What either leaves
 * open batch_rest() brings to its end, alone: a lost answer that was settled and did not happen, or
 * a statement that was undone; or what could not be settled yet, the leader's time being over,
 * where there is time left. */
void batch_run_array(transition_engine *engine, transition **items, size_t count,
                     int64_t deadline_ms);
void batch_run_single(transition_engine *engine, transition *t, int64_t deadline_ms);
int batch_is_open(const transition *t); /* nothing was written, and no answer is lost */
void batch_rest(transition_engine *engine, transition *t, int64_t deadline_ms);
/* Whether the halves of a group may do better on this connection, whose server undid the
 * whole.  A lock of the whole table keeps each of them waiting, however few there are. */
int batch_may_split(const db *connection, db_answer answer, int64_t deadline_ms);
/* Waits for one of the places of those who settle for themselves; 0 when the deadline came
 * first. */
int batch_settler_enter(transition_engine *engine, int64_t deadline_ms);
void batch_settler_leave(transition_engine *engine);

/* One try; 0 when it has to be settled or tried again. */
int transition_attempt(transition_engine *engine, transition *t, int64_t deadline_ms);

/* Whether this step may not be begun now; see transition_engine_new(). */
int transition_is_forbidden(const transition_engine *engine, const step *s);

/* One transition on a connection of its own, to the end. */
void transition_run_one(transition_engine *engine, transition *t, int64_t deadline_ms);

/* transition_settle() for all rows of one statement: the connection is ended once. */
void transition_settle_many(transition_engine *engine, transition **items, size_t count,
                            const char *connection_name, int64_t deadline_ms);

#endif
