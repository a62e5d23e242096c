/* What the files of this room share. */
#ifndef TL_TRANSITION_INSIDE_H
#define TL_TRANSITION_INSIDE_H

#include "transition/transition.h"

#define ERROR_NO_SUCH_THREAD 1094
#define ERROR_KILL_DENIED 1095

/* Rows in one statement at most. */
#define GROUP_ROWS 256

typedef struct group_queue group_queue;

struct transition_engine {
    /* Fixed after start. */
    pool *connections;
    const struct logger *logger;
    const atomic_int *restored;
    group_queue *groups;
    /* Atomic. */
    transition_counters counters;
};

/* group.c: the steps of many threads in one statement. */
tl_status group_queue_new(group_queue **out, unsigned connections);
void group_queue_free(group_queue *queue);
/* Carries t out, alone where a place is free for it, else together with what waits. */
void group_run(transition_engine *engine, transition *t, int64_t deadline_ms);
/* One statement for these, at most GROUP_ROWS; then alone what it could not decide. */
void group_run_batch(transition_engine *engine, transition **items, size_t count,
                     int64_t deadline_ms);
/* batch.c: one statement for all of them.  Sorted by key, each key once.  A transition
 * that has to go on alone has VERDICT_FAILED with TL_TRY_AGAIN. */
void batch_run(transition_engine *engine, transition **items, size_t count,
               int64_t deadline_ms);

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
