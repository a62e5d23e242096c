/* Reads an amount in minor units from text. */
#include "amount.h"

#include <string.h>

static int only_digits(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

const char *amount_read(int64_t *amount_minor, const char *text)
{
    int64_t value = 0;

    if (text[0] == '\0')
        return "the amount is empty";
    if (text[0] == '-' && only_digits(text + 1))
        return "the amount is negative";
    if (!only_digits(text))
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
