/* SHA-256 by nettle.  Touches no state. */
#include "base/sha256.h"

#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <string.h>

_Static_assert(SHA256_SIZE == SHA256_DIGEST_SIZE, "one size of digest");
_Static_assert(sizeof(struct sha256_ctx) <= sizeof(sha256), "nettle's context has its room");

static struct sha256_ctx *context_of(sha256 *self)
{
    return (struct sha256_ctx *)(void *)self->state;
}

void sha256_begin(sha256 *self)
{
    sha256_init(context_of(self));
}

void sha256_add(sha256 *self, const void *data, size_t size)
{
    if (size > 0)
        sha256_update(context_of(self), size, data);
}

void sha256_end(sha256 *self, uint8_t digest[SHA256_SIZE])
{
    sha256_digest(context_of(self), SHA256_SIZE, digest);
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
