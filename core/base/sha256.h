/* SHA-256, by nettle. */
#ifndef TL_BASE_SHA256_H
#define TL_BASE_SHA256_H

#include <nettle/sha2.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

/* Of data that comes in pieces. */
typedef struct sha256 {
    struct sha256_ctx context;
} sha256;
void sha256_begin(sha256 *self);
void sha256_add(sha256 *self, const void *data, size_t size);
void sha256_end(sha256 *self, uint8_t digest[SHA256_SIZE]);

void sha256_of(uint8_t digest[SHA256_SIZE], const void *data, size_t size);
/* The HMAC of a text. */
void sha256_keyed(uint8_t digest[SHA256_SIZE], const char *key, const char *text);

#endif
