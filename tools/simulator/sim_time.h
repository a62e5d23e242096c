/*
 * Time as the simulated channel knows it: the wall clock, because windows, expiry and due times
 * must mean the same after a restart.  Pauses use the monotonic clock and end early when the
 * program is told to stop.
 */
#ifndef SIM_TIME_H
#define SIM_TIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "2026-01-31T23:59:59.123456Z" and its NUL. */
#define TIME_TEXT_SIZE 28

int64_t time_now_us(void);
int64_t time_now_ms(void);

void time_write(int64_t at_us, char text[TIME_TEXT_SIZE]);
/* False, and at_us untouched, when the text is not a time as time_write() makes it. */
bool time_read(const char *text, int64_t *at_us);

/* A condition variable that time_wait() can use. */
void time_condition_init(pthread_cond_t *condition);
/* Waits for a signal, wait_ms at most.  Needs: mutex held. */
void time_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t wait_ms);

/* The one signal to stop, for the program and everybody who sleeps in it. */
struct stop_signal {
    int event; /* readable for ever once raised; poll() it */
    atomic_bool failed;
};

bool stop_init(struct stop_signal *stop);
/* failed: the program ends with a failure status. */
void stop_raise(struct stop_signal *stop, bool failed);
bool stop_raised(struct stop_signal *stop);
/* False when the program was told to stop before the time was over. */
bool stop_sleep(struct stop_signal *stop, int64_t wait_ms);

#endif
