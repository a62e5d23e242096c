/* One task, on its own thread and on connections of its own. */
#ifndef TL_TRANSITION_ALONE_H
#define TL_TRANSITION_ALONE_H

#include "transition/engine.h"

/* One try.  Afterwards the task is over; or it has to be tried again, or is lost, and
 * alone_finish() brings it to its end. */
void alone_try(task_engine *engine, task *t, int64_t deadline_ms);
/* Whether it may be run on this connection now: TL_OK, or why not.  Nothing is written at a
 * replica, whatever the account may do there. */
tl_status alone_check(const task *t, const db *connection);
/* Over, with nothing of it in doubt that could be settled. */
int alone_is_over(const task *t);
/* In doubt, and something can be done about that before it is run again. */
int alone_is_lost(const task *t);
/* Settles what is lost: then the task is over, still in doubt perhaps, or may be tried again. */
void alone_settle(task_engine *engine, task *t, int64_t deadline_ms);
/* Goes on until a pause is due, and returns how long it is; the next call comes when it is over.
 * 0: the task is over, or its time is.  *pause_ms: 0 at first, and then this function's own. */
int64_t alone_go_on(task_engine *engine, task *t, int64_t *pause_ms, int64_t deadline_ms);
/* To the end: settles what is lost, and tries as often as it takes and the time allows. */
void alone_finish(task_engine *engine, task *t, int64_t deadline_ms);

#endif
