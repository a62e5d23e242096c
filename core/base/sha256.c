/* SHA-256 by nettle.  Touches no state. */
#include "base/sha256.h"

#include <nettle/sha2.h>

_Static_assert(SHA256_SIZE == SHA256_DIGEST_SIZE, "one size of digest");

void sha256_of(uint8_t digest[SHA256_SIZE], const void *data, size_t size)
{
    struct sha256_ctx context;

    sha256_init(&context);
    if (size > 0)
        sha256_update(&context, size, data);
    sha256_digest(&context, SHA256_SIZE, digest);
}
