/* Randomness from the kernel. */
#ifndef TL_BASE_RANDOM_H
#define TL_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#define RANDOM_TOKEN 16
#define RANDOM_UUID 37 /* the text and its end */

/* Never fails, and never gives weak bytes.  If the kernel gives no random bytes, the process ends:
 * a token that repeats could pay twice. */
void random_bytes(void *to, size_t size);

/* 128 random bits, for one step of a row.  Never the same twice, nor in the child of a fork(). */
void random_token(uint8_t token[RANDOM_TOKEN]);

/* base_ms plus a random part of up to `percent` of it.  So many waiters do not come back at the
 * same moment, and none comes back early. */
int64_t random_jitter_ms(int64_t base_ms, unsigned percent);

/* A random UUID as lower-case text. */
void random_uuid(char to[RANDOM_UUID]);

#endif
