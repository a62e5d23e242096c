/* The wall clock, its text form, and pauses that end when the program is told to stop. */
#include "sim_time.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define US_PER_SECOND INT64_C(1000000)

int64_t time_now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * US_PER_SECOND + now.tv_nsec / 1000;
}

int64_t time_now_ms(void)
{
    return time_now_us() / 1000;
}

/* Milliseconds of the clock that nobody sets. */
static int64_t time_steady_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void time_write(int64_t at_us, char text[TIME_TEXT_SIZE])
{
    time_t seconds = (time_t)(at_us / US_PER_SECOND);
    unsigned micros = (unsigned)(at_us % US_PER_SECOND);
    char date[24];
    struct tm parts;

    gmtime_r(&seconds, &parts);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, TIME_TEXT_SIZE, "%.19s.%06uZ", date, micros);
}

bool time_read(const char *text, int64_t *at_us)
{
    char again[TIME_TEXT_SIZE];
    struct tm parts;
    int64_t result;
    const char *rest;
    unsigned micros;

    memset(&parts, 0, sizeof(parts));
    rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest || sscanf(rest, ".%6uZ", &micros) != 1)
        return false;
    result = (int64_t)timegm(&parts) * US_PER_SECOND + micros;
    if (result < 0)
        return false;
    /* Writing it again refuses everything that strptime() lets pass too generously. */
    time_write(result, again);
    if (strcmp(text, again) != 0)
        return false;
    *at_us = result;
    return true;
}

void time_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

void time_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t wait_ms)
{
    int64_t until = time_steady_ms() + (wait_ms > 0 ? wait_ms : 0);
    struct timespec at = {(time_t)(until / 1000), (long)(until % 1000) * 1000000L};

    pthread_cond_timedwait(condition, mutex, &at);
}

bool stop_init(struct stop_signal *stop)
{
    stop->failed = false;
    stop->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return stop->event >= 0;
}

void stop_raise(struct stop_signal *stop, bool failed)
{
    if (failed)
        stop->failed = true;
    /* Fails only when the counter is full, that is when it was raised long ago. */
    eventfd_write(stop->event, 1);
}

bool stop_sleep(struct stop_signal *stop, int64_t wait_ms)
{
    int64_t until = time_steady_ms() + (wait_ms > 0 ? wait_ms : 0);
    struct pollfd event = {stop->event, POLLIN, 0};

    for (;;) {
        int64_t left = until - time_steady_ms();
        int slice = left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;

        if (poll(&event, 1, slice) > 0)
            return false;
        if (left <= 0)
            return true;
    }
}

bool stop_raised(struct stop_signal *stop)
{
    return !stop_sleep(stop, 0);
}
