/*
 * Time of this machine, for waits and for how long something is certainly still true.
 * CLOCK_BOOTTIME runs on while the machine is suspended; by a clock that stands still meanwhile, a
 * lease would seem to last longer than it does.
 *
 * pthread condition variables cannot use CLOCK_BOOTTIME.  They use CLOCK_MONOTONIC here, in slices
 * of at most a second: after a suspension a waiter notices within a second that its deadline is
 * over.
 */
#ifndef TL_BASE_CLOCK_H
#define TL_BASE_CLOCK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A deadline that never comes. */
#define CLOCK_NEVER INT64_MAX

int64_t clock_boottime_ms(void);
int64_t clock_boottime_us(void);

/* Which boot of which machine CLOCK_BOOTTIME counts from, as a UUID; "" where the kernel does not
 * say. */
void clock_boot_id(char *id, size_t space);

/* Now plus wait_ms; never overflows; a negative wait is none. */
int64_t clock_deadline(int64_t wait_ms);

/* The time left until the deadline; 0 when it is over. */
int64_t clock_left_ms(int64_t deadline_ms);

/* Sleeps until the deadline; no signal ends the sleep. */
void clock_sleep_until_ms(int64_t deadline_ms);

/* A condition variable for clock_wait(); 0 or an errno, as pthread_cond_init(). */
int clock_condition_init(pthread_cond_t *condition);

/*
 * Waits for a signal, at most until the deadline.  ETIMEDOUT: the deadline is over; 0: the caller
 * checks again what it waits for, as after every wait.  Needs: mutex held, condition from
 * clock_condition_init().
 */
int clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline_ms);

#endif
