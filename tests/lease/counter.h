/*
 * A counter that many processes raise by reading it, pausing, and writing it back: only a lock
 * keeps it right.  Without the lock it must go wrong, or this would prove nothing.
 */
#ifndef TESTS_LEASE_COUNTER_H
#define TESTS_LEASE_COUNTER_H

#include "lease/fixture.h"

#define COUNTER_PROCESSES 8

/* One process' part, so many times; 1 when every step went well. */
typedef int (*counter_job)(const fixture *f, int with_lock, int times);

/* 10,000, and a twentieth of that in the fast run. */
int counter_times(void);
/* Makes the table `counter`. */
void counter_make(const fixture *f);
/* Reads, pauses, writes, each statement for itself; 1 when it went well. */
int counter_raise(MYSQL *connection);

/* All processes at once, with the lock and without it; says what they counted. */
void counter_is_right(const fixture *f, const char *lock, counter_job job);
void counter_is_wrong_without(const fixture *f, const char *lock, counter_job job);

#endif
