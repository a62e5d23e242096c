/* Reads money as people write it.  Touches no state. */
#include "admin/money_read.h"

#include "base/error.h"

#include <tradelock/admin/trades.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define DIGITS_MOST 18u
#define NUMBER_MOST 40u

/* The sign before the decimals; NULL: there are none.  A sign that stands twice groups digits, and
 * so does a comma before three of them, unless a point groups. */
static const char *point_of(const char *number)
{
    const char *dot = strrchr(number, '.'), *comma = strrchr(number, ',');
    const char *last = dot == NULL || (comma != NULL && comma > dot) ? comma : dot;

    if (last == NULL || strchr(number, *last) != last ||
        (last == comma && dot == NULL && strlen(last + 1) == 3))
        return NULL;
    return last;
}

/* Digits, in groups of three where a sign stands between them, then the decimals. */
static int read_number(struct money *money, const char *number)
{
    const char *point = point_of(number);
    size_t since = 0, digits = 0;
    char group = '\0';

    for (const char *at = number; *at != '\0'; at++) {
        const int is_fraction = point != NULL && at > point;

        if (isdigit((unsigned char)*at)) {
            if (++digits > DIGITS_MOST)
                return 0;
            money->number = money->number * 10 + (*at - '0');
            money->decimals += is_fraction;
            since++;
            continue;
        }
        if (is_fraction || (group != '\0' ? since != 3 : since == 0))
            return 0;
        if (at != point) {
            if (strchr(" ,.'", *at) == NULL || (group != '\0' && group != *at) || since > 3)
                return 0;
            group = *at;
        }
        since = 0;
    }
    return since > 0 && (point != NULL ? money->decimals <= 4 : group == '\0' || since == 3);
}

static int read_word(struct money *money, const char *word, size_t size)
{
    if (size == TL_CURRENCY && money->currency[0] == '\0') {
        for (size_t i = 0; i < size; i++)
            money->currency[i] = (char)toupper((unsigned char)word[i]);
        return 1;
    }
    if (size != strlen("minor") ||
        (strncasecmp(word, "minor", size) != 0 && strncasecmp(word, "units", size) != 0))
        return 0;
    return money->is_minor = 1;
}

/* The bytes of a blank there: of U+00A0 and U+202F too, which pages put between digits. */
static size_t blank_size(const char *at)
{
    return *at == ' '                            ? 1
           : strncmp(at, "\xc2\xa0", 2) == 0     ? 2
           : strncmp(at, "\xe2\x80\xaf", 3) == 0 ? 3
                                                 : 0;
}

int money_read(struct money *money, const char *text)
{
    char number[NUMBER_MOST];
    size_t size = 0;
    int is_over = 0; /* a word stood behind the number */

    memset(money, 0, sizeof *money);
    while (*text != '\0') {
        const size_t blank = blank_size(text);
        size_t word = 0;

        while (isalpha((unsigned char)text[word]))
            word++;
        if (word > 0) {
            if (!read_word(money, text, word))
                return 0;
            is_over = size > 0;
        } else if (blank == 0 || (size > 0 && !is_over)) {
            if (is_over || size + 1 >= sizeof number)
                return 0;
            number[size++] = blank > 0 ? ' ' : *text;
        }
        text += word > 0 ? word : blank > 0 ? blank : 1;
    }
    while (size > 0 && number[size - 1] == ' ')
        size--;
    number[size] = '\0';
    return read_number(money, number) && (!money->is_minor || money->decimals == 0);
}

int64_t money_minor(const struct money *money, const char *currency)
{
    const int decimals = money->is_minor ? 0 : tl_currency_digits(currency);
    int64_t minor = money->number;

    if (money->decimals > decimals ||
        (money->currency[0] != '\0' && strcmp(money->currency, currency) != 0))
        return -1;
    for (int i = money->decimals; i < decimals; i++)
        if (__builtin_mul_overflow(minor, 10, &minor))
            return -1;
    return minor;
}

/* A bare whole number may be meant in minor units, as programs write it: not where money is filed. */
static int is_ambiguous(const struct money *money, const char *currency)
{
    return money->currency[0] == '\0' && !money->is_minor && money->decimals == 0 &&
           tl_currency_digits(currency) != 0;
}

tl_status tl_amount_read(const char *text, const char *currency, int64_t *minor,
                         char of[TL_CURRENCY + 1])
{
    struct money money;
    int64_t number;

    error_clear();
    if (text == NULL || minor == NULL || of == NULL)
        return error_set(TL_INVALID, "tl_amount_read: text, minor or of is NULL");
    if (!money_read(&money, text))
        return error_set(TL_INVALID, MONEY_UNREAD);
    if (currency == NULL || currency[0] == '\0')
        currency = money.currency;
    if (currency[0] == '\0')
        return error_set(TL_INVALID, "amount: of which currency, as in 1,250.00 EUR");
    if (is_ambiguous(&money, currency))
        return error_set(TL_INVALID,
                         "amount: %s may be whole or minor units: write 1,250.00 EUR, or 125000 "
                         "EUR minor units",
                         text);
    number = money_minor(&money, currency);
    if (number < 0 || strlen(currency) != TL_CURRENCY)
        return error_set(TL_INVALID, "amount: is none in %s", currency);
    *minor = number;
    memcpy(of, currency, TL_CURRENCY + 1);
    return TL_OK;
}
