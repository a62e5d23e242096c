/* Random words from the kernel, and marks made by HMAC-SHA256 (nettle). */
#include "secret.h"

#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BYTES 16

void secret_random(void *to, size_t size)
{
    if (getrandom(to, size, 0) != (ssize_t)size) {
        fputs("tradelock-desk: the system gives no random numbers\n", stderr);
        abort();
    }
}

static void write_text(char to[SECRET_TEXT], const unsigned char bytes[BYTES])
{
    char text[BASE64_ENCODE_RAW_LENGTH(BYTES)];

    base64_encode_raw(text, BYTES, bytes);
    for (size_t i = 0; i < SECRET_TEXT - 1; i++)
        to[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    to[SECRET_TEXT - 1] = '\0';
}

void secret_word(char to[SECRET_TEXT])
{
    unsigned char bytes[BYTES];

    secret_random(bytes, sizeof bytes);
    write_text(to, bytes);
}

void secret_mark(char to[SECRET_TEXT], const unsigned char key[SECRET_KEY], const void *data,
                 size_t size)
{
    unsigned char bytes[BYTES];
    struct hmac_sha256_ctx hmac;

    hmac_sha256_set_key(&hmac, SECRET_KEY, key);
    hmac_sha256_update(&hmac, size, data);
    hmac_sha256_digest(&hmac, sizeof bytes, bytes);
    write_text(to, bytes);
}

int secret_equal(const char *one, const char *other)
{
    const size_t size = strlen(one);

    return size > 0 && strlen(other) == size && memeql_sec(one, other, size);
}
