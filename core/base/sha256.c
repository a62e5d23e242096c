/* SHA-256 by nettle.  Touches no state. */
#include "base/sha256.h"

#include <nettle/hmac.h>
#include <string.h>

_Static_assert(SHA256_SIZE == SHA256_DIGEST_SIZE, "one size of digest");

void sha256_begin(sha256 *self)
{
    sha256_init(&self->context);
}

void sha256_add(sha256 *self, const void *data, size_t size)
{
    if (size > 0)
        sha256_update(&self->context, size, data);
}

void sha256_end(sha256 *self, uint8_t digest[SHA256_SIZE])
{
    sha256_digest(&self->context, SHA256_SIZE, digest);
}

void sha256_of(uint8_t digest[SHA256_SIZE], const void *data, size_t size)
{
    sha256 whole;

    sha256_begin(&whole);
    sha256_add(&whole, data, size);
    sha256_end(&whole, digest);
}

void sha256_keyed(uint8_t digest[SHA256_SIZE], const char *key, const char *text)
{
    struct hmac_sha256_ctx keyed;

    hmac_sha256_set_key(&keyed, strlen(key), (const uint8_t *)key);
    hmac_sha256_update(&keyed, strlen(text), (const uint8_t *)text);
    hmac_sha256_digest(&keyed, SHA256_SIZE, digest);
}
