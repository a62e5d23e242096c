/* Computes the delays between attempts and their jitter, sleeps and waits.  Touches no state. */
#include "schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define BACKOFF_FIRST_MS 5

int64_t schedule_step_ms(const tl_policy *policy, uint32_t attempts)
{
    unsigned last = policy->schedule_count - 1;

    return policy->schedule_ms[attempts < last ? attempts : last];
}

int64_t schedule_jitter_ms(int64_t base_ms, unsigned percent, uint32_t random)
{
    int64_t span_ms = base_ms / 100 * percent + base_ms % 100 * percent / 100;

    return span_ms > 0 ? base_ms + (int64_t)random % (span_ms + 1) : base_ms;
}

int64_t schedule_next_ms(const tl_policy *policy, uint32_t attempts, int64_t least_ms)
{
    int64_t step_ms = schedule_step_ms(policy, attempts);

    if (step_ms < least_ms)
        step_ms = least_ms;
    return schedule_jitter_ms(step_ms, SCHEDULE_JITTER_PERCENT, schedule_random());
}

int64_t schedule_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t schedule_now_ms(void)
{
    return schedule_now_us() / 1000;
}

int64_t schedule_left_ms(int64_t until_ms)
{
    const int64_t left_ms = until_ms - schedule_now_ms();

    return left_ms > 1 ? left_ms : 1;
}

void schedule_sleep_ms(int64_t wait_ms)
{
    struct timespec left = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};

    if (wait_ms <= 0)
        return;
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

int schedule_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);

    if (failed != 0)
        return failed;
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (failed == 0)
        failed = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return failed;
}

void schedule_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t wait_ms)
{
    struct timespec until;

    if (wait_ms < 0) {
        pthread_cond_wait(condition, mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(wait_ms / 1000);
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(condition, mutex, &until);
}

uint32_t schedule_random(void)
{
    uint32_t number;

    /* The kernel gives so few bytes at once; it can fail only early in the boot. */
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        abort();
    return number;
}

int64_t schedule_backoff_ms(int64_t *delay_ms, int64_t most_ms)
{
    *delay_ms = *delay_ms == 0 ? BACKOFF_FIRST_MS : *delay_ms * 2;
    if (*delay_ms > most_ms)
        *delay_ms = most_ms;
    return schedule_jitter_ms(*delay_ms, 50, schedule_random());
}
