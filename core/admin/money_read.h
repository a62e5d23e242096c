/* Money as people write it.  Pure. */
#ifndef TL_ADMIN_MONEY_READ_H
#define TL_ADMIN_MONEY_READ_H

#include <tradelock/money.h>

#include <stdint.h>

#define MONEY_UNREAD "amount: is not written as 1,250.00 EUR, 1250.00, or 125000 EUR minor units"

struct money {
    char currency[TL_CURRENCY + 1]; /* "": none was named */
    int64_t number;                 /* with its decimals: 125050 of 1,250.50 */
    int decimals;
    int is_minor; /* the number counts minor units */
};

/* Reads "1,250.00 EUR", "EUR 1250.5", "1.250,00", "1 250" or "125000 EUR minor units".  1.250 has
 * three decimals, and 1,250 none.  0: it is no such text. */
int money_read(struct money *money, const char *text);
/* How many minor units of this currency that is; -1: it is none of it, or beyond INT64_MAX. */
int64_t money_minor(const struct money *money, const char *currency);

#endif
