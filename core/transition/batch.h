/* Tasks that share one statement and one commit: see batch.c. */
#ifndef TL_TRANSITION_BATCH_H
#define TL_TRANSITION_BATCH_H

#include "store/group.h"
#include "transition/engine.h"

/* In one statement at most: tasks, and bytes. */
#define BATCH_ROWS STORE_GROUP_MAX
#define BATCH_BYTES STORE_GROUP_BYTES

/* The kind of the batch that the task may join now, or NULL. */
const batch_kind *batch_kind_of(const task *t);

/* Carries them out together, all of one kind and at most BATCH_ROWS, on the calling thread.  What
 * this leaves in doubt, the thread of each task settles with batch_settle().  1: the task is over;
 * 0: it goes on alone. */
void batch_run(task_engine *engine, const batch_kind *kind, task **tasks, size_t count,
               int64_t deadline_ms);
int batch_settle(task_engine *engine, task *t, int64_t deadline_ms);

#endif
