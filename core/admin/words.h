/* Moments, spans and counts in words, for sentences that people read; and what texts say. */
#ifndef TL_ADMIN_WORDS_H
#define TL_ADMIN_WORDS_H

#include "base/text.h"

#include <tradelock/admin/explain.h>
#include <tradelock/money.h>

#define WORDS 48
/* A text that ends with its block: TEXT sql = {.size = 0}; */
#define TEXT __attribute__((cleanup(text_buffer_free))) struct text_buffer
/* tl_count_text(), for the arguments of one call. */
#define WORDS_COUNT(count) tl_count_text((char[TL_AMOUNT_TEXT]){""}, (uint64_t)(count))

/* "23:31:36" on the day of now_us, else "2026-03-01 23:31:36"; UTC. */
const char *words_moment(char to[WORDS], int64_t now_us, int64_t us);
/* "23:31:36 (14 s ago)", "23:32:00 (in 10 s)". */
const char *words_when(char to[2 * WORDS], int64_t now_us, int64_t us);

/* NULL for "". */
const char *words_or_null(const char *text);

/* The byte of two hexadecimal digits in small letters; -1: they are none. */
int words_hex_byte(const char *text);
/* The bytes of the text, all of which is 2 * size such digits.  0: it is not. */
int words_from_hex(void *to, size_t size, const char *text);

#endif
