/*
 * Sleeping until a word of memory has changed, and waking who sleeps: futex(2) as it is, of this
 * process only.  It is for places where many threads wait for one and the same news: one call of
 * the kernel wakes them all, and none has to take a mutex on its way out, as they would one after
 * the other behind a condition variable.
 *
 * A wait may end for no reason; the caller looks at the word again.  The order of memory is the
 * caller's: store with release before futex_wake(), load with acquire after a wait.
 */
#ifndef TL_BASE_FUTEX_H
#define TL_BASE_FUTEX_H

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#define FUTEX_ALL INT_MAX

/* Sleeps while the word is what was seen. */
void futex_wait(atomic_int *word, int seen);
/* The same until a deadline of clock.h; 0 when it is over.  The kernel's clock stands still while
 * the machine is suspended: the deadline is then noticed later by so much. */
int futex_wait_until(atomic_int *word, int seen, int64_t deadline_ms);
/* Wakes so many who sleep on this word, the first to come first.  Nothing of it is read. */
void futex_wake(atomic_int *word, int count);

#endif
