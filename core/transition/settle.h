/* What became of work whose answer was lost: see settle.c. */
#ifndef TL_TRANSITION_SETTLE_H
#define TL_TRANSITION_SETTLE_H

#include "transition/engine.h"

/* All of these are in doubt, and on the same connection.  What can be known of each is in its
 * verdict, as task_settle() leaves it; 1 when all of it is. */
int settle_tasks(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms);

/* The sentence for a task that stays in doubt. */
void settle_not_knowable(task *t);

#endif
