/* When a compensating attempt is due, and sleeping. */
#ifndef TL_WORKFLOWS_SCHEDULE_H
#define TL_WORKFLOWS_SCHEDULE_H

#include <tradelock/workflow.h>

#include <pthread.h>

/* At most so many hundredths of a delay are added to it. */
#define SCHEDULE_JITTER_PERCENT 25u

/* The delay after attempt number `attempts` (0: the first lane), without jitter.  The last entry of
 * the schedule repeats. */
int64_t schedule_step_ms(const tl_policy *policy, uint32_t attempts);

/*
 * base_ms plus up to `percent` of it, chosen by `random`.  So trades that failed together do not
 * come back together, and none comes back early.
 */
int64_t schedule_jitter_ms(int64_t base_ms, unsigned percent, uint32_t random);

/* The longer of schedule_step_ms() and least_ms, with random jitter. */
int64_t schedule_next_ms(const tl_policy *policy, uint32_t attempts, int64_t least_ms);

/* Milliseconds and microseconds of a clock that runs on while the machine is suspended. */
int64_t schedule_now_ms(void);
int64_t schedule_now_us(void);
void schedule_sleep_ms(int64_t wait_ms);
/* A condition for schedule_wait(); 0 or an errno. */
int schedule_condition(pthread_cond_t *condition);
/* Waits for a signal, for so long at most; negative: for ever.  It waits by CLOCK_MONOTONIC: after
 * a suspension a thread wakes late and then looks again, which is enough.  Needs: mutex held. */
void schedule_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t wait_ms);
/* What is left until then, at least 1. */
int64_t schedule_left_ms(int64_t until_ms);

uint32_t schedule_random(void);

/* A delay that doubles from 5 ms to most_ms, with jitter; *delay_ms starts at 0. */
int64_t schedule_backoff_ms(int64_t *delay_ms, int64_t most_ms);

#endif
