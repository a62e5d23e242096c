/* Money and counts as text.  Touches no state, and calculates with digits alone. */
#include <tradelock/money.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ISO 4217 by digits, with codes that were withdrawn lately: old trades have them.  Metals, funds
 * and test codes have no minor unit there. */
static const char *const codes[] = {
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF ", "",
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP "
    "GBP GEL GHS GIP GMD GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT "
    "LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO "
    "NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS "
    "SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST "
    "XCD XCG YER ZAR ZMW ZWG ZWL ",
    "BHD IQD JOD KWD LYD OMR TND ", "CLF UYW "};

int tl_currency_digits(const char *currency)
{
    if (currency == NULL || strlen(currency) != TL_CURRENCY)
        return -1;
    for (size_t digits = 0; digits < sizeof codes / sizeof codes[0]; digits++)
        for (const char *code = codes[digits]; *code != '\0'; code += TL_CURRENCY + 1)
            if (memcmp(code, currency, TL_CURRENCY) == 0)
                return (int)digits;
    return -1;
}

/* The digits with a point and marks; zeros stand before what is less than one unit. */
static size_t mark(char to[TL_AMOUNT_TEXT], const char *minor, size_t behind)
{
    const size_t size = strspn(minor, "0123456789");
    size_t at = 0;

    for (size_t left = size > behind ? size : behind + 1; left > 0 && at < 64; left--) {
        to[at++] = left > size ? '0' : minor[size - left];
        if (left == behind + 1 && behind > 0)
            to[at++] = '.';
        else if (left > behind + 1 && (left - behind - 1) % 3 == 0)
            to[at++] = ',';
    }
    to[at] = '\0';
    return at;
}

const char *tl_sum_text(char to[TL_AMOUNT_TEXT], const char *sum_minor, const char *currency)
{
    const int digits = tl_currency_digits(currency);
    size_t size = 0;

    if (to == NULL)
        return "";
    to[0] = '\0';
    if (sum_minor == NULL || (currency != NULL && currency[0] == '\0'))
        return to;
    if (sum_minor[0] == '-')
        to[size++] = '-';
    size += mark(to + size, sum_minor + size, digits > 0 ? (size_t)digits : 0);
    snprintf(to + size, TL_AMOUNT_TEXT - size, "%s%.*s%s", currency != NULL ? " " : "", TL_CURRENCY,
             currency != NULL ? currency : "", digits < 0 ? " minor units" : "");
    return to;
}

const char *tl_amount_text(char to[TL_AMOUNT_TEXT], int64_t minor, const char *currency)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%" PRId64, minor);
    return tl_sum_text(to, digits, currency);
}

const char *tl_count_text(char to[TL_AMOUNT_TEXT], uint64_t count)
{
    char digits[24];

    if (to == NULL)
        return "";
    snprintf(digits, sizeof digits, "%" PRIu64, count);
    mark(to, digits, 0);
    return to;
}
