/* Makes the key under which a channel knows one payment of one trade.  Touches no state. */
#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"

#include <string.h>

#define CHARS_MIN 20 /* 80 bits; shorter keys could be equal by chance */

static size_t put_number(uint8_t *to, size_t used, uint32_t number)
{
    to[used] = (uint8_t)(number >> 24);
    to[used + 1] = (uint8_t)(number >> 16);
    to[used + 2] = (uint8_t)(number >> 8);
    to[used + 3] = (uint8_t)number;
    return used + 4;
}

/* The length goes first, so that two different lists of parts never make the same bytes. */
static size_t put_part(uint8_t *to, size_t used, const char *part)
{
    size_t size = strlen(part);

    used = put_number(to, used, (uint32_t)size);
    memcpy(to + used, part, size);
    return used + size;
}

static tl_status check(const char *out, unsigned chars, const char *site, const char *channel,
                       const tl_key *key, uint32_t epoch)
{
    if (out == NULL)
        return error_set(TL_INVALID, "channel key: there is no place for it");
    if (chars < CHARS_MIN || chars > TL_CHANNEL_KEY_MAX)
        return error_set(TL_INVALID, "channel key: has %d to %d characters, not %u", CHARS_MIN,
                         TL_CHANNEL_KEY_MAX, chars);
    if (epoch == 0)
        return error_set(TL_INVALID, "channel key: epochs are counted from 1");
    tl_status status = text_check_name("site", site, TEXT_SITE_MAX);
    if (status == TL_OK)
        status = text_check_name("channel", channel, TL_CHANNEL_MAX);
    return status == TL_OK ? key_check(key) : status;
}

tl_status tl_channel_key(char *out, unsigned chars, const char *site, const char *channel,
                         const tl_key *key, uint32_t epoch)
{
    uint8_t bytes[6 * 4 + TEXT_SITE_MAX + TL_CHANNEL_MAX + TL_SERIAL_MAX + TL_CUST_MAX + TL_OP_MAX];
    uint8_t digest[SHA256_SIZE];
    char digits[2 * SHA256_SIZE + 1];

    error_clear();
    TRY(check(out, chars, site, channel, key, epoch));
    size_t used = put_part(bytes, 0, site);
    used = put_part(bytes, used, channel);
    used = put_part(bytes, used, key->serial_no);
    used = put_part(bytes, used, key->cust_no);
    used = put_part(bytes, used, key->op_code);
    used = put_number(bytes, used, epoch);
    sha256_of(digest, bytes, used);
    text_hex(digits, digest, sizeof(digest));
    text_copy(out, (size_t)chars + 1, digits);
    return TL_OK;
}
