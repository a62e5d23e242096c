/* What a list ends with: how many rows, how much money, and from where to go on.  Pure. */
#include "admin/list.h"

#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- money -- */

/* As by hand, from the last digit on. */
void tl_sum_add(char sum[TL_SUM_TEXT], const char *digits)
{
    char to[TL_SUM_TEXT];
    size_t left = sum != NULL ? strlen(sum) : 0, right = digits != NULL ? strlen(digits) : 0,
           at = sizeof to - 1;
    unsigned carry = 0;

    to[at] = '\0';
    while (sum != NULL && at > 0 && (left > 0 || right > 0 || carry > 0)) {
        const unsigned digit = (left > 0 ? (unsigned)(sum[--left] - '0') : 0) +
                               (right > 0 ? (unsigned)(digits[--right] - '0') : 0) + carry;

        to[--at] = (char)('0' + digit % 10);
        carry = digit / 10;
    }
    if (sum != NULL)
        memmove(sum, to + at, sizeof to - at);
}

static tl_money *money_of(tl_list_end *end, const char *currency)
{
    tl_money *money;

    for (unsigned i = 0; i < end->money_count; i++)
        if (strcmp(end->money[i].currency, currency) == 0)
            return &end->money[i];
    if (end->money_count == TL_MONEY_MAX)
        return NULL;
    money = &end->money[end->money_count++];
    *money = (tl_money){.sum_minor = "0"};
    text_copy(money->currency, sizeof money->currency, currency);
    return money;
}

void tl_list_end_add(tl_list_end *end, const char *currency, int64_t amount_minor)
{
    tl_money *money =
        end != NULL && currency != NULL && currency[0] != '\0' ? money_of(end, currency) : NULL;
    char digits[24];

    if (end == NULL)
        return;
    end->trades++;
    if (money == NULL)
        return;
    money->trades++;
    if (amount_minor > 0) {
        snprintf(digits, sizeof digits, "%" PRId64, amount_minor);
        tl_sum_add(money->sum_minor, digits);
    }
}

void list_end_add(tl_list_end *end, const tl_view *view)
{
    end->rows++;
    if (view->lane == 'S')
        tl_list_end_add(end, view->currency, view->amount_minor);
}

/* -------------------------------------------------------------------- next -- */

/* "c.1795175922322971.text.CUST.SERIAL.OP": the source as a letter, then the place.  Whatever is no
 * letter, digit, '-' or '_' is two digits behind a '~'. */
char *list_next_put(char *to, const char *from)
{
    *to++ = '.';
    for (; *from != '\0'; from++) {
        if (isalnum((unsigned char)*from) || *from == '-' || *from == '_')
            *to++ = *from;
        else
            to += sprintf(to, "~%02x", (unsigned)(unsigned char)*from);
    }
    *to = '\0';
    return to;
}

void list_next_write(char to[TL_NEXT_TEXT], enum list_source source, const store_list_place *place)
{
    char *end = to + sprintf(to, "%c.%" PRId64, 'a' + (int)source, place->us);

    _Static_assert(1 + 21 + 4 + 3 * (63 + TL_CUST_MAX + TL_SERIAL_MAX + TL_OP_MAX) < TL_NEXT_TEXT,
                   "there is room for every byte as three");
    end = list_next_put(end, place->text);
    end = list_next_put(end, place->cust_no);
    end = list_next_put(end, place->serial_no);
    list_next_put(end, place->op_code);
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads up to the next '.', or to the end; NULL: it is none of ours. */
const char *list_next_take(const char *from, char *to, size_t space)
{
    size_t size = 0;

    if (from == NULL || *from != '.')
        return NULL;
    for (from++; *from != '\0' && *from != '.'; from++) {
        int c = (unsigned char)*from;

        if (c == '~') {
            const int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);

            if (low < 0)
                return NULL;
            c = high * 16 + low;
            from += 2;
        }
        if (size + 1 >= space || c == '\0')
            return NULL;
        to[size++] = (char)c;
    }
    to[size] = '\0';
    return from;
}

int list_next_read(const char *next, enum list_source *source, store_list_place *place)
{
    const char letter = next[0];
    char *end;

    memset(place, 0, sizeof *place);
    if (letter < 'a' || letter >= 'a' + (int)LIST_SOURCES || next[1] != '.' ||
        !isdigit((unsigned char)next[2]))
        return 0;
    *source = (enum list_source)(letter - 'a');
    place->us = strtoll(next + 2, &end, 10);
    next = list_next_take(end, place->text, sizeof place->text);
    next = list_next_take(next, place->cust_no, sizeof place->cust_no);
    next = list_next_take(next, place->serial_no, sizeof place->serial_no);
    next = list_next_take(next, place->op_code, sizeof place->op_code);
    return next != NULL && *next == '\0' && place->us <= STRETCH_END_US;
}
