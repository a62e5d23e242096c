/* What one session remembers of the others. */
#ifndef TL_SESSION_OBSERVER_H
#define TL_SESSION_OBSERVER_H

#include "base/log.h"
#include "pool/pool.h"

typedef struct observer observer;

/* own_id: the observer's session, "" without one. */
tl_status observer_new(observer **out, const char *own_id, const struct logger *logger);
void observer_free(observer *o);

/* The observer's own beats were interrupted: nothing seen before counts. */
void observer_interrupt(observer *o);
/* The same, and its process goes on under another session. */
void observer_go_on(observer *o, const char *own_id);

/* Looks once, right after a confirmed beat; ends the sessions that were unchanged for one of their
 * time-outs.  ended is increased. */
tl_status observer_look(observer *o, db *connection, uint64_t *ended);

#endif
