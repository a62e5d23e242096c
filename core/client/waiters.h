/*
 * Who waits for which key in this process.  One waiter of a key asks the server; the others wait
 * for their turn.  A release in the same process wakes the one whose turn it is.
 */
#ifndef TL_CLIENT_WAITERS_H
#define TL_CLIENT_WAITERS_H

#include <stdint.h>

typedef struct waiters waiters;
typedef struct waiter waiter;

/* NULL when out of memory. */
waiters *waiters_new(void);
void waiters_free(waiters *w);

/* Joins the queue of a key; NULL when out of memory. */
waiter *waiters_join(waiters *w, const char *key);
/* Waits for the turn to ask: first come, first served.  1, or 0 when the deadline came. */
int waiters_turn(waiter *me, int64_t deadline_ms);
/* Called between two asks of the waiter whose turn it is: sleeps until the time, or a release. */
void waiters_pause(waiter *me, int64_t until_ms);
/* Leaves the queue; the next one's turn begins. */
void waiters_leave(waiter *me);

/* A lock of this key was released in this process. */
void waiters_released(waiters *w, const char *key);

#endif
