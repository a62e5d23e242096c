/* What became of work whose answer was lost: see settle.c. */
#ifndef TL_TRANSITION_SETTLE_H
#define TL_TRANSITION_SETTLE_H

#include "transition/engine.h"

/* All of these are in doubt, and on the same connection.  What can be known of each is in its
 * verdict, as task_settle() leaves it; 1 when all of it is. */
int settle_tasks(task_engine *engine, task **tasks, size_t count, int64_t deadline_ms);

/* The tasks were committed together, and that was answered; began: marks_begin() from before it was
 * sent.  0: their server is left, so the answer is as good as lost. */
int settle_note(task_engine *engine, const task *const *tasks, size_t count,
                const db_server *server, uint64_t began);

/* Whether a task may begin on this connection.  A commit that waits for a replica keeps its connection
 * at the server until it is answered.  So while one is seen to wait for seconds nothing more
 * is asked for: else each try would leave one more behind, until the server takes none. */
tl_status settle_check_wait(task_engine *engine, const task *t, db *connection);

/* The sentence for a task that stays in doubt. */
void settle_not_knowable(task *t);

#endif
