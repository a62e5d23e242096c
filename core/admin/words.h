/* Moments and spans in words, for sentences that people read. */
#ifndef TL_ADMIN_WORDS_H
#define TL_ADMIN_WORDS_H

#include <tradelock/tradelock.h>

#define WORDS 48

/* "23:31:36" on the day of now_us, else "2026-03-01 23:31:36"; UTC. */
const char *words_moment(char to[WORDS], int64_t now_us, int64_t us);
/* "0.3 s", "14 s", "3 min 10 s", "2 h 4 min", "3 d 4 h"; a negative span counts as none. */
const char *words_span(char to[WORDS], int64_t us);
/* "23:31:36 (14 s ago)", "23:32:00 (in 10 s)". */
const char *words_when(char to[2 * WORDS], int64_t now_us, int64_t us);

#endif
