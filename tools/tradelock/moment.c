/* Reads moments.  Pure, but for the clock of "2h ago". */
#include "moment.h"

#include "command.h"

#include <tradelock/admin/explain.h>

#include <time.h>

#define US INT64_C(1000000)

int read_moment_us(const char *text, int64_t *us)
{
    struct timespec now;
    int64_t ago_ms;

    if (!read_duration_ms(text, &ago_ms))
        return tl_moment_read(us, text);
    clock_gettime(CLOCK_REALTIME, &now);
    *us = (int64_t)now.tv_sec * US + now.tv_nsec / 1000;
    if (ago_ms >= *us / 1000)
        return 0;
    *us -= ago_ms * 1000;
    return 1;
}

int64_t steady_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}
