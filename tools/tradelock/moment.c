/* Reads moments.  Pure, but for the clock of "2h ago". */
#include "moment.h"

#include "command.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define US INT64_C(1000000)

/* ".125" and so on: up to six digits.  The rest of the text, or NULL. */
static const char *read_fraction(const char *text, int64_t *us)
{
    int64_t scale = US;

    *us = 0;
    if (*text != '.')
        return text;
    for (text++; *text >= '0' && *text <= '9'; text++) {
        scale /= 10;
        *us += scale * (*text - '0');
    }
    return scale < US && scale > 0 ? text : NULL;
}

static int read_date(const char *text, int64_t *us)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
                                          "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"};

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        struct tm parts = {.tm_mday = 1};
        const char *const read = strptime(text, formats[i], &parts), *end = read;
        char again[32];
        int64_t fraction = 0;

        if (end != NULL && i < 2)
            end = read_fraction(end, &fraction);
        if (end == NULL || (*end != '\0' && strcmp(end, "Z") != 0))
            continue;
        *us = (int64_t)timegm(&parts) * US + fraction;
        /* Writing it again refuses what is on no calendar, and all that strptime() lets pass. */
        (void)strftime(again, sizeof again, "%Y-%m-%dT%H:%M:%S", &parts);
        again[10] = formats[i][8];
        return *us > 0 && strncmp(again, text, (size_t)(read - text)) == 0;
    }
    return 0;
}

int read_moment_us(const char *text, int64_t *us)
{
    struct timespec now;
    int64_t ago_ms;

    if (!read_duration_ms(text, &ago_ms))
        return read_date(text, us);
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
