/* When a compensating attempt is due, and waiting that can be told to stop. */
#ifndef TL_WORKFLOWS_SCHEDULE_H
#define TL_WORKFLOWS_SCHEDULE_H

#include <tradelock/workflow.h>

/* Most that is added to a delay, in hundredths of it. */
#define SCHEDULE_JITTER_PERCENT 25u

/* The delay before the attempt that follows attempt number `attempts` (0: the first lane); the last
 * entry of the schedule repeats.  Without jitter. */
int64_t schedule_step_ms(const tl_policy *policy, uint32_t attempts);

/*
 * base_ms and up to `percent` of it more, never less, chosen by `random`: a storm of trades that
 * failed together must not come back together, and none may come back early.
 */
int64_t schedule_jitter_ms(int64_t base_ms, unsigned percent, uint32_t random);

/* The two together, with true randomness, and not before least_ms. */
int64_t schedule_next_ms(const tl_policy *policy, uint32_t attempts, int64_t least_ms);

/* Milliseconds that go on while the machine is suspended. */
int64_t schedule_now_ms(void);
void schedule_sleep_ms(int64_t wait_ms);

uint32_t schedule_random(void);

/* A delay that doubles from 5 ms to most_ms, with jitter; *delay_ms starts at 0. */
int64_t schedule_backoff_ms(int64_t *delay_ms, int64_t most_ms);

#endif
