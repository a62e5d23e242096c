/* Moments, as people type them. */
#ifndef TRADELOCK_MOMENT_H
#define TRADELOCK_MOMENT_H

#include <stdint.h>

/* "2026-03-01", "2026-03-01T09:30", "2026-03-01T09:30:00.125Z" (UTC), or how long ago: "90s", "2h",
 * by this machine's clock.  In microseconds since 1970; 1 when it is one. */
int read_moment_us(const char *text, int64_t *us);

/* Milliseconds of a clock that nobody sets, and that goes on while the machine sleeps; never 0. */
int64_t steady_ms(void);

#endif
