/* Moments and short durations, as people type and read them. */
#ifndef TRADELOCK_MOMENT_H
#define TRADELOCK_MOMENT_H

#include <stdint.h>

/* "2026-03-01", "2026-03-01T09:30", "2026-03-01T09:30:00.125Z" (UTC), or how long ago: "90s", "2h",
 * by this machine's clock.  In microseconds since 1970; 1 when it is one. */
int read_moment_us(const char *text, int64_t *us);

#define MOMENT_TEXT 40
/* "2026-03-01T09:30:00.125678Z", to the microsecond, which read_moment_us() reads. */
const char *moment_text(char to[MOMENT_TEXT], int64_t us);

#define SHORT_TEXT 24
/* "45s", "12m", "3h05m", "4d02h". */
const char *short_duration(char to[SHORT_TEXT], int64_t us);

/* Milliseconds of a clock that nobody sets, and that goes on while the machine sleeps; never 0. */
int64_t steady_ms(void);

#endif
