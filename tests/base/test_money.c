/* Amounts, sums and counts as people read them. */
#include "support/theme.h"

#include <tradelock/money.h>

#define assert_amount(minor, currency, is)                                                         \
    assert_string_equal(tl_amount_text((char[TL_AMOUNT_TEXT]){"x"}, minor, currency), is)
#define assert_sum(digits, currency, is)                                                           \
    assert_string_equal(tl_sum_text((char[TL_AMOUNT_TEXT]){"x"}, digits, currency), is)

TEST(the_point_stands_where_the_currency_has_it)
{
    assert_amount(125000, "EUR", "1,250.00 EUR");
    assert_amount(125000, "JPY", "125,000 JPY");
    assert_amount(125000, "KWD", "125.000 KWD");
    assert_amount(125000, "CLF", "12.5000 CLF");
    assert_amount(100000000, "CHF", "1,000,000.00 CHF");
    assert_amount(0, "EUR", "0.00 EUR");
    assert_amount(5, "EUR", "0.05 EUR");
    assert_amount(99999, "EUR", "999.99 EUR");
    assert_amount(999, "JPY", "999 JPY");
}

TEST(a_currency_without_digits_says_what_is_counted)
{
    assert_amount(125000, "XTS", "125,000 XTS minor units");
    assert_amount(125000, "XAU", "125,000 XAU minor units");
    assert_amount(125000, "UR ", "125,000 UR  minor units");
    assert_amount(125000, NULL, "125,000 minor units");
    assert_amount(125000, "", "");
}

TEST(extremes_and_negative_amounts)
{
    assert_amount(INT64_MAX, "EUR", "92,233,720,368,547,758.07 EUR");
    assert_amount(INT64_MIN, "EUR", "-92,233,720,368,547,758.08 EUR");
    assert_amount(-5, "EUR", "-0.05 EUR");
    assert_amount(-100, "JPY", "-100 JPY");
    assert_amount(-100000, "JPY", "-100,000 JPY");
    assert_sum("18000000000000000012", "EUR", "180,000,000,000,000,000.12 EUR");
    assert_sum("-18000000000000000012", "KWD", "-18,000,000,000,000,000.012 KWD");
    assert_sum("99999999999999999999999999999999999999999", "JPY",
               "99,999,999,999,999,999,999,999,999,999,999,999,999,999 JPY");
    assert_sum(NULL, "EUR", "");
}

TEST(digits_are_those_of_the_standard)
{
    assert_int_equal(tl_currency_digits("EUR"), 2);
    assert_int_equal(tl_currency_digits("ISK"), 0);
    assert_int_equal(tl_currency_digits("TND"), 3);
    assert_int_equal(tl_currency_digits("UYW"), 4);
    assert_int_equal(tl_currency_digits("ZWL"), 2);
    assert_int_equal(tl_currency_digits("AED"), 2);
    assert_int_equal(tl_currency_digits("eur"), -1);
    assert_int_equal(tl_currency_digits("EURO"), -1);
    assert_int_equal(tl_currency_digits("UR "), -1);
    assert_int_equal(tl_currency_digits(""), -1);
    assert_int_equal(tl_currency_digits(NULL), -1);
}

TEST(counts_have_their_thousands_marked)
{
    char to[TL_AMOUNT_TEXT];

    assert_string_equal(tl_count_text(to, 0), "0");
    assert_string_equal(tl_count_text(to, 999), "999");
    assert_string_equal(tl_count_text(to, 1000), "1,000");
    assert_string_equal(tl_count_text(to, UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST_MAIN(money)
{
    return tests_run(NULL, NULL);
}
