/* Random bytes, tokens and UUIDs from the kernel.  Touches the calling thread's own store of random
 * bytes. */
#include "base/random.h"

#include "base/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <uuid/uuid.h>

/* Each step needs a token, and a system call costs as much as the rest of a step's preparation.
 * So a thread fetches several in advance.  The child of a fork() has the same bytes and discards
 * them. */
#define IN_ADVANCE (32 * RANDOM_TOKEN)

static _Thread_local struct {
    unsigned generation;
    size_t used;
    uint8_t tokens[IN_ADVANCE];
} own = {0, IN_ADVANCE, {0}};

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
    unsigned generation = process_generation();

    if (own.used == IN_ADVANCE || own.generation != generation) {
        random_bytes(own.tokens, IN_ADVANCE);
        own.generation = generation;
        own.used = 0;
    }
    memcpy(token, own.tokens + own.used, RANDOM_TOKEN);
    own.used += RANDOM_TOKEN;
}

int64_t random_jitter_ms(int64_t base_ms, unsigned percent)
{
    uint64_t number;

    if (base_ms <= 0 || percent == 0)
        return base_ms;
    /* The division comes first, since base_ms * percent could overflow. */
    uint64_t base = (uint64_t)base_ms;
    uint64_t span = base / 100 * percent + base % 100 * percent / 100;
    if (span > (uint64_t)(INT64_MAX - base_ms))
        span = (uint64_t)(INT64_MAX - base_ms);
    random_bytes(&number, sizeof(number));
    return base_ms + (int64_t)(number % (span + 1));
}

/* As uuid_generate_random(), but without the two generators that it seeds each time. */
void random_uuid(char to[RANDOM_UUID])
{
    uuid_t uuid;

    _Static_assert(sizeof uuid == RANDOM_TOKEN, "a UUID is as long as a token");
    random_token(uuid);
    uuid[6] = (unsigned char)((uuid[6] & 0x0f) | 0x40); /* version 4 */
    uuid[8] = (unsigned char)((uuid[8] & 0x3f) | 0x80); /* of RFC 9562 */
    uuid_unparse_lower(uuid, to);
}
