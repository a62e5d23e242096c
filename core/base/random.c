#include "base/random.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <uuid/uuid.h>

void random_bytes(void *to, size_t size)
{
    unsigned char *next = to;

    while (size > 0) {
        ssize_t got = getrandom(next, size, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort();
        next += got;
        size -= (size_t)got;
    }
}

void random_token(uint8_t token[RANDOM_TOKEN])
{
    random_bytes(token, RANDOM_TOKEN);
}

int64_t random_jitter_ms(int64_t base_ms, unsigned percent)
{
    uint64_t number;

    if (base_ms <= 0 || percent == 0)
        return base_ms;
    /* Divided first: base_ms * percent could overflow. */
    uint64_t base = (uint64_t)base_ms;
    uint64_t span = base / 100 * percent + base % 100 * percent / 100;
    if (span > (uint64_t)(INT64_MAX - base_ms))
        span = (uint64_t)(INT64_MAX - base_ms);
    random_bytes(&number, sizeof(number));
    return base_ms + (int64_t)(number % (span + 1));
}

void random_uuid(char to[RANDOM_UUID])
{
    uuid_t uuid;

    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, to);
}
