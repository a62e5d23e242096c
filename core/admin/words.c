/* Moments, spans and quoted words, as text.  Touches no state. */
#include "admin/words.h"

#include <tradelock/admin/explain.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define US INT64_C(1000000)
#define DAY_US (86400 * US)

const char *words_moment(char to[WORDS], int64_t now_us, int64_t us)
{
    const time_t seconds = (time_t)(us / US);
    struct tm parts;

    to[0] = '\0';
    if (gmtime_r(&seconds, &parts) != NULL)
        strftime(to, WORDS, us / DAY_US == now_us / DAY_US ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S",
                 &parts);
    return to;
}

const char *words_span(char to[WORDS], int64_t us)
{
    const long long s = us > 0 ? us / US : 0;

    if (s < 3)
        snprintf(to, WORDS, "%lld.%lld s", s, us > 0 ? (long long)(us % US / 100000) : 0);
    else if (s < 60)
        snprintf(to, WORDS, "%lld s", s);
    else if (s < 3600)
        snprintf(to, WORDS, "%lld min %lld s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(to, WORDS, "%lld h %lld min", s / 3600, s % 3600 / 60);
    else
        snprintf(to, WORDS, "%lld d %lld h", s / 86400, s % 86400 / 3600);
    return to;
}

const char *words_when(char to[2 * WORDS], int64_t now_us, int64_t us)
{
    char moment[WORDS], span[WORDS];

    words_moment(moment, now_us, us);
    if (us <= now_us)
        snprintf(to, 2 * WORDS, "%s (%s ago)", moment, words_span(span, now_us - us));
    else
        snprintf(to, 2 * WORDS, "%s (in %s)", moment, words_span(span, us - now_us));
    return to;
}

size_t tl_shell_quote(char *to, size_t space, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+=,-";
    static const char quote[] = "'\\''";
    const size_t given = text != NULL ? strlen(text) : 0;
    const int is_plain = given > 0 && text[0] != '-' && strspn(text, plain) == given;
    size_t size = is_plain ? given : given + 2;
    char *end = to;

    for (size_t i = 0; i < given && !is_plain; i++)
        size += text[i] == '\'' ? sizeof quote - 2 : 0;
    if (to == NULL || size >= space) {
        if (to != NULL && space > 0)
            to[0] = '\0';
        return size;
    }
    if (is_plain) {
        memcpy(to, text, size + 1);
        return size;
    }
    *end++ = '\'';
    for (size_t i = 0; i < given; i++) {
        if (text[i] == '\'')
            end = (char *)memcpy(end, quote, sizeof quote - 1) + sizeof quote - 1;
        else
            *end++ = text[i];
    }
    memcpy(end, "'", 2);
    return size;
}
