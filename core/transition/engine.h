/* The engine itself, as the files of this room share it. */
#ifndef TL_TRANSITION_ENGINE_H
#define TL_TRANSITION_ENGINE_H

#include "transition/task.h"

#include <semaphore.h>

struct task_engine {
    /* Fixed after start. */
    pool *connections;
    const struct logger *logger;
    commit_marks *noted;
    group_queue *groups;
    sem_t settlers; /* members of a lost batch that may settle for themselves at once */
    /* Atomic. */
    atomic_int is_waiting; /* a commit was seen to wait for a replica, and may do so yet */
    transition_counters counters;
};

static inline void engine_count(atomic_uint_fast64_t *counter, uint64_t number)
{
    atomic_fetch_add_explicit(counter, number, memory_order_relaxed);
}

#endif
