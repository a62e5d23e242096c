/* Moments, spans and counts in words, for sentences that people read. */
#ifndef TL_ADMIN_WORDS_H
#define TL_ADMIN_WORDS_H

#include <tradelock/admin/explain.h>
#include <tradelock/money.h>

#define WORDS 48
/* tl_count_text(), for the arguments of one call. */
#define WORDS_COUNT(count) tl_count_text((char[TL_AMOUNT_TEXT]){""}, (uint64_t)(count))

/* "23:31:36" on the day of now_us, else "2026-03-01 23:31:36"; UTC. */
const char *words_moment(char to[WORDS], int64_t now_us, int64_t us);
/* "23:31:36 (14 s ago)", "23:32:00 (in 10 s)". */
const char *words_when(char to[2 * WORDS], int64_t now_us, int64_t us);

#endif
