/* The queue in which tasks of many threads find each other: see group.c. */
#ifndef TL_TRANSITION_GROUP_H
#define TL_TRANSITION_GROUP_H

#include "transition/engine.h"

/* connections: at most so many groups can be under way.  alone: while the peak of tasks is at most
 * this, each runs alone; 0: all meet at one row.  TL_OK or TL_NO_MEMORY. */
#define GROUP_ALONE 4
tl_status group_queue_new(group_queue **out, unsigned connections, unsigned alone);
/* For the two queues of books, which are freed together: while both are used, each has one group
 * under way at a time. */
void group_queue_pair(group_queue *one, group_queue *other);
void group_queue_free(group_queue *queue);

/* Tries the task: alone if a permit is free, else together with others that wait.  1: it was in a
 * group, or waited for one, and batch_settle() settles what this left in doubt. */
int group_try(task_engine *engine, const batch_kind *kind, task *t, int64_t deadline_ms);

/* Counts, for the statistics, so many tasks that shared a statement. */
void group_count(task_engine *engine, size_t count);

#endif
