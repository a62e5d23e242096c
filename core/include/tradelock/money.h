/*
 * money.h - money and counts as people read them: 1,250.00 EUR.  Programs go on with minor units.
 */
#ifndef TRADELOCK_MONEY_H
#define TRADELOCK_MONEY_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many digits of an amount stand behind the point, by ISO 4217: 2 of EUR, 0 of JPY, 3 of KWD.
 * -1: the standard has no such code, or gives it no minor unit. */
TL_EXPORT int tl_currency_digits(const char *currency);

/* "1,250.00 EUR" of 125000 and EUR.  A currency without digits says what is counted: "125,000 XTS
 * minor units".  NULL: the currency is not known, "125,000 minor units".  "": no amount was
 * recorded, and there is no text. */
#define TL_AMOUNT_TEXT 96
TL_EXPORT const char *tl_amount_text(char to[TL_AMOUNT_TEXT], int64_t minor, const char *currency);
/* The same of a sum, whose digits may be beyond 64 bits; '-' before them is a minus. */
TL_EXPORT const char *tl_sum_text(char to[TL_AMOUNT_TEXT], const char *sum_minor,
                                  const char *currency);
/* "1,250". */
TL_EXPORT const char *tl_count_text(char to[TL_AMOUNT_TEXT], uint64_t count);

#ifdef __cplusplus
}
#endif
#endif
