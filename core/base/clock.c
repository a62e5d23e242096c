/* Reads this machine's clock, and waits until a moment of it.  Touches no state. */
#include "base/clock.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 1000

static struct timespec read_clock(clockid_t id)
{
    struct timespec now;

    /* Without a clock no lease can be kept; there is nothing sensible left to do. */
    if (clock_gettime(id, &now) != 0)
        abort();
    return now;
}

int64_t clock_boottime_us(void)
{
    struct timespec now = read_clock(CLOCK_BOOTTIME);

    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_boottime_ms(void)
{
    return clock_boottime_us() / 1000;
}

/* Writes the first bytes of a file; "" where there is none. */
static void read_file(const char *path, char *text, size_t space)
{
    FILE *file = fopen(path, "re");
    size_t size = 0;

    if (file != NULL) {
        size = fread(text, 1, space - 1, file);
        (void)fclose(file);
    }
    text[size] = '\0';
}

/* The offsets are of the namespace, whose own name is given again when it is gone.  A process that
 * left its namespace for its children has other offsets than they: the name tells them apart. */
static uint32_t time_namespace(void)
{
    char text[512];
    ssize_t size = readlink("/proc/self/ns/time", text, 64);

    size = size > 0 ? size : 0;
    read_file("/proc/self/timens_offsets", text + size, sizeof text - (size_t)size);
    return text_hash(text);
}

void clock_boot_id(char *id, size_t space)
{
    char end[9];

    read_file("/proc/sys/kernel/random/boot_id", id, space);
    if (strlen(id) != space - 1) {
        id[0] = '\0';
        return;
    }
    /* The last eight digits are random, as all others are. */
    snprintf(end, sizeof end, "%08x",
             time_namespace() ^ (uint32_t)strtoul(id + strlen(id) - 8, NULL, 16));
    memcpy(id + strlen(id) - 8, end, 8);
}

int64_t clock_deadline(int64_t wait_ms)
{
    int64_t now_ms = clock_boottime_ms();

    if (wait_ms <= 0)
        return now_ms;
    if (wait_ms > CLOCK_NEVER - now_ms)
        return CLOCK_NEVER;
    return now_ms + wait_ms;
}

int64_t clock_left_ms(int64_t deadline_ms)
{
    int64_t now_ms = clock_boottime_ms();

    return deadline_ms > now_ms ? deadline_ms - now_ms : 0;
}

void clock_sleep_until_ms(int64_t deadline_ms)
{
    struct timespec until;

    if (deadline_ms <= 0)
        return;
    until.tv_sec = (time_t)(deadline_ms / 1000);
    until.tv_nsec = (long)(deadline_ms % 1000) * 1000000;
    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

int clock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);

    if (error != 0)
        return error;
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0)
        error = pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return error;
}

int clock_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline_ms)
{
    int64_t slice_ms = clock_left_ms(deadline_ms);

    if (slice_ms == 0)
        return ETIMEDOUT;
    if (slice_ms > SLICE_MS)
        slice_ms = SLICE_MS;

    struct timespec until = read_clock(CLOCK_MONOTONIC);
    until.tv_sec += (time_t)(slice_ms / 1000);
    until.tv_nsec += (long)(slice_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int error = pthread_cond_timedwait(condition, mutex, &until);
    if (error == ETIMEDOUT && clock_left_ms(deadline_ms) > 0)
        return 0; /* only the slice is over, not the wait */
    return error;
}
