/* Amounts of money from text. */
#ifndef WITHDRAW_AMOUNT_H
#define WITHDRAW_AMOUNT_H

#include <stdint.h>

/*
 * Whole minor units: digits only, no sign, no blanks, no leading zero, 1 to INT64_MAX. NULL and
 * *amount_minor, or what is wrong in a few words.
 */
const char *amount_read(int64_t *amount_minor, const char *text);

#endif
