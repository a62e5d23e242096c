/* Moments, spans and quoted words, as text.  Touches no state. */
#include "admin/words.h"

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

const char *words_quoted(char *to, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+=,-";
    char *end = to;

    if (text[0] != '\0' && text[0] != '-' && text[strspn(text, plain)] == '\0')
        return strcpy(to, text);
    *end++ = '\'';
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            memcpy(end, "'\\''", 4);
            end += 4;
        } else {
            *end++ = *text;
        }
    }
    strcpy(end, "'");
    return to;
}
