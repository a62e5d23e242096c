/*
 * futex(2) within one process: threads sleep until a word of memory has changed.  It is for places
 * where many threads wait for the same news.  One system call wakes them all; behind a condition
 * variable each would first have to take the mutex, one after the other.
 *
 * A wait may end for no reason, so the caller looks at the word again.  The caller sees to the
 * order of memory: store with release before futex_wake(), load with acquire after a wait.
 */
#ifndef TL_BASE_FUTEX_H
#define TL_BASE_FUTEX_H

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

#define FUTEX_ALL INT_MAX

/* Sleeps while the word is what was seen. */
void futex_wait(atomic_int *word, int seen);
/* The same, at most until a deadline of clock.h; 0: the deadline is over.  The clock of this wait
 * stands still while the machine is suspended, so the deadline is noticed later by that time. */
int futex_wait_until(atomic_int *word, int seen, int64_t deadline_ms);
/* The same, for so long at most. */
void futex_wait_for(atomic_int *word, int seen, int64_t wait_us);
/* Wakes up to `count` threads that sleep on this word, in the order in which they came.  The word
 * itself is not read. */
void futex_wake(atomic_int *word, int count);

#endif
