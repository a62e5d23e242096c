/* SHA-256, by nettle. */
#ifndef TL_BASE_SHA256_H
#define TL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

void sha256_of(uint8_t digest[SHA256_SIZE], const void *data, size_t size);

#endif
