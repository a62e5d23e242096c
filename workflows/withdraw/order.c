/* What an order may be, and its form as the payload of a trade.  Touches no state. */
#include "withdraw.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define IBAN_MIN 15
#define IBAN_MAX 34
#define DIGITS "0123456789"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static int only(const char *text, const char *characters)
{
    return text[0] != '\0' && text[strspn(text, characters)] == '\0';
}

const char *withdraw_amount_read(int64_t *amount_minor, const char *text)
{
    int64_t value = 0;

    if (text[0] == '\0')
        return "the amount is empty";
    if (text[0] == '-' && only(text + 1, DIGITS))
        return "the amount is negative";
    if (!only(text, DIGITS))
        return "the amount is not a whole number of minor units";
    if (text[0] == '0')
        return text[1] == '\0' ? "the amount is zero" : "the amount begins with a zero";
    for (const char *at = text; *at != '\0'; at++) {
        int digit = *at - '0';

        if (value > (INT64_MAX - digit) / 10)
            return "the amount is too large";
        value = value * 10 + digit;
    }
    *amount_minor = value;
    return NULL;
}

/* However it is written: as large as an IBAN, two letters, two digits, and more of both.  `to` is
 * the text in capitals and without blanks. */
static int looks_like_iban(char to[IBAN_MAX + 1], const char *text)
{
    size_t size = 0;

    for (; *text != '\0' && size < IBAN_MAX; text++)
        if (*text != ' ')
            to[size++] = (char)toupper((unsigned char)*text);
    to[size] = '\0';
    return *text == '\0' && size >= IBAN_MIN && only(to, DIGITS CAPITALS) &&
           strspn(to, CAPITALS) == 2 && strspn(to + 2, DIGITS) >= 2;
}

/* ISO 13616: with its first four characters put last, and letters read as 10 to 35, the number
 * leaves 1 when divided by 97.  Check digits are 02 to 98: 00 would pass for 97. */
static int is_iban(const char *text)
{
    const size_t size = strlen(text);
    unsigned rest = 0;

    if (strncmp(text + 2, "02", 2) < 0 || strncmp(text + 2, "98", 2) > 0)
        return 0;
    for (size_t i = 0; i < size; i++) {
        const char character = text[(i + 4) % size];
        const unsigned value =
            (unsigned)(character <= '9' ? character - '0' : character - 'A' + 10);

        rest = (rest * (value > 9 ? 100 : 10) + value) % 97;
    }
    return rest == 1;
}

static int has_control(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if (*at < 0x20 || *at == 0x7f)
            return 1;
    return 0;
}

/* jansson accepts only valid UTF-8. */
static int is_utf8(const char *text)
{
    json_t *string = json_string(text);

    json_decref(string);
    return string != NULL;
}

const char *withdraw_order_problem(const withdraw_order *order)
{
    char iban[IBAN_MAX + 1];

    if (order->amount_minor <= 0)
        return "the amount must be at least 1";
    if (strlen(order->currency) != WITHDRAW_CURRENCY || !only(order->currency, CAPITALS))
        return "the currency must be three capital letters";
    if (order->payee[0] == '\0')
        return "the payee is empty";
    if (has_control(order->payee))
        return "the payee has a control character";
    if (!is_utf8(order->payee))
        return "the payee is not UTF-8";
    if (looks_like_iban(iban, order->payee) && !is_iban(iban))
        return "the payee is no IBAN: its check digits are wrong";
    return NULL;
}

char *withdraw_order_write(const withdraw_order *order)
{
    json_t *json = json_pack("{s:I, s:s, s:s}", "amount_minor", (json_int_t)order->amount_minor,
                             "currency", order->currency, "payee", order->payee);
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(json);
    return text;
}

int withdraw_order_read(withdraw_order *order, const void *payload, size_t size)
{
    json_t *json = json_loadb(payload, size, JSON_REJECT_DUPLICATES, NULL);
    json_int_t amount_minor;
    const char *currency, *payee;
    int good = 0;

    memset(order, 0, sizeof *order);
    if (json == NULL || json_unpack(json, "{s:I, s:s, s:s}", "amount_minor", &amount_minor,
                                    "currency", &currency, "payee", &payee) != 0)
        goto out;
    if (strlen(currency) > WITHDRAW_CURRENCY || strlen(payee) > WITHDRAW_PAYEE_MAX)
        goto out;
    order->amount_minor = amount_minor;
    strcpy(order->currency, currency);
    strcpy(order->payee, payee);
    /* What may be asked for can become stricter; what was asked for is brought to its end. */
    good = amount_minor > 0;
out:
    json_decref(json);
    return good;
}
