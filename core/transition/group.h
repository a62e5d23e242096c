/* The queue in which tasks of many threads find each other: see group.c. */
#ifndef TL_TRANSITION_GROUP_H
#define TL_TRANSITION_GROUP_H

#include "transition/engine.h"

/* connections: more groups than these cannot be under way.  TL_OK or TL_NO_MEMORY. */
tl_status group_queue_new(group_queue **out, unsigned connections);
void group_queue_free(group_queue *queue);

/* Carries the task out, alone where a place is free for it, else together with what waits. */
void group_run(transition_engine *engine, const batch_kind *kind, task *t, int64_t deadline_ms);

/* For the statistics: so many went together. */
void group_count(transition_engine *engine, size_t count);

#endif
