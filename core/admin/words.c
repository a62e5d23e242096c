/* Moments, spans, quoted words and bytes, as text.  Touches no state. */
#include "admin/words.h"

#include <tradelock/admin/explain.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define US INT64_C(1000000)
#define DAY_US (86400 * US)

const char *tl_moment_text(char to[TL_MOMENT_TEXT], int64_t us, int digits)
{
    const time_t seconds = (time_t)(us / US);
    int64_t fraction = us % US;
    struct tm parts;
    size_t size;

    if (to == NULL)
        return "";
    to[0] = '\0';
    if (us == 0 || gmtime_r(&seconds, &parts) == NULL)
        return to;
    size = strftime(to, TL_MOMENT_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
    for (int i = digits; i < 6; i++)
        fraction /= 10;
    if (digits > 0)
        size += (size_t)snprintf(to + size, TL_MOMENT_TEXT - size, ".%0*d", digits, (int)fraction);
    snprintf(to + size, TL_MOMENT_TEXT - size, "Z");
    return to;
}

/* ".125" and so on: up to six digits.  The rest of the text, or NULL. */
static const char *read_fraction(const char *text, int64_t *us)
{
    int64_t scale = US;

    *us = 0;
    if (*text != '.')
        return text;
    for (text++; *text >= '0' && *text <= '9'; text++) {
        scale /= 10;
        *us += scale * (*text - '0');
    }
    return scale < US && scale > 0 ? text : NULL;
}

int tl_moment_read(int64_t *us, const char *text)
{
    static const char *const formats[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
                                          "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"};

    for (size_t i = 0; us != NULL && text != NULL && i < sizeof formats / sizeof formats[0]; i++) {
        struct tm parts = {.tm_mday = 1};
        const char *const read = strptime(text, formats[i], &parts), *end = read;
        char again[32];
        int64_t fraction = 0;

        if (end != NULL && i < 2)
            end = read_fraction(end, &fraction);
        if (end == NULL || (*end != '\0' && strcmp(end, "Z") != 0))
            continue;
        *us = (int64_t)timegm(&parts) * US + fraction;
        /* Writing it again refuses what is on no calendar, and all that strptime() lets pass. */
        (void)strftime(again, sizeof again, "%Y-%m-%dT%H:%M:%S", &parts);
        again[10] = formats[i][8];
        return *us > 0 && strncmp(again, text, (size_t)(read - text)) == 0;
    }
    return 0;
}

const char *tl_span_text(char to[TL_SPAN_TEXT], int64_t us, tl_span_form form)
{
    static const struct {
        long long s;
        const char *name, *letter;
    } units[] = {{1, " s", "s"}, {60, " min", "m"}, {3600, " h", "h"}, {86400, " d", "d"}};
    const int is_short = form == TL_SPAN_SHORT;
    const int64_t length = us >= 0 ? us : is_short ? -us : 0;
    const long long s = length / US;
    const int unit = (s >= 60) + (s >= 3600) + (s >= 86400);
    char rest[32] = "";

    if (to == NULL)
        return "";
    if (unit == 0 && form == TL_SPAN_FINE)
        snprintf(rest, sizeof rest, ".%03d", (int)(length % US / 1000));
    else if (unit == 0 && form == TL_SPAN_WORDS && s < 3)
        snprintf(rest, sizeof rest, ".%d", (int)(length % US / 100000));
    if (unit == 0) {
        snprintf(to, TL_SPAN_TEXT, "%s%lld%s%s", us < 0 && is_short ? "-" : "", s, rest,
                 is_short ? units[0].letter : units[0].name);
        return to;
    }
    if (!is_short)
        snprintf(rest, sizeof rest, " %lld%s", s % units[unit].s / units[unit - 1].s,
                 units[unit - 1].name);
    else if (unit > 1)
        snprintf(rest, sizeof rest, "%02lld%s", s % units[unit].s / units[unit - 1].s,
                 units[unit - 1].letter);
    snprintf(to, TL_SPAN_TEXT, "%s%lld%s%s", us < 0 && is_short ? "-" : "", s / units[unit].s,
             is_short ? units[unit].letter : units[unit].name, rest);
    return to;
}

const char *words_moment(char to[WORDS], int64_t now_us, int64_t us)
{
    char text[TL_MOMENT_TEXT] = "";

    tl_moment_text(text, us, 0);
    if (us / DAY_US == now_us / DAY_US)
        snprintf(to, WORDS, "%.8s UTC", text + 11);
    else
        snprintf(to, WORDS, "%.10s %.8s UTC", text, text + 11);
    return to;
}

const char *words_when(char to[2 * WORDS], int64_t now_us, int64_t us)
{
    char moment[WORDS], span[TL_SPAN_TEXT];

    words_moment(moment, now_us, us);
    if (us <= now_us)
        snprintf(to, 2 * WORDS, "%s (%s ago)", moment,
                 tl_span_text(span, now_us - us, TL_SPAN_WORDS));
    else
        snprintf(to, 2 * WORDS, "%s (in %s)", moment,
                 tl_span_text(span, us - now_us, TL_SPAN_WORDS));
    return to;
}

const char *words_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int words_hex_byte(const char *text)
{
    const int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);

    return low < 0 ? -1 : high << 4 | low;
}

int words_from_hex(void *to, size_t size, const char *text)
{
    unsigned char *bytes = to;

    for (size_t i = 0; i < size; i++, text += 2) {
        const int byte = words_hex_byte(text);

        if (byte < 0)
            return 0;
        bytes[i] = (unsigned char)byte;
    }
    return *text == '\0';
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
