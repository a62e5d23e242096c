/* Looks whether a row of a prepared statement's answer is whole before libmariadb reads it: that goes
 * by the lengths of the cells alone, wherever the packet ends.  Touches no state. */
#include "db/db_internal.h"

/* How many bytes the cell takes; 0: a length stands before it. */
static size_t fixed_size(enum enum_field_types type)
{
    switch (type) {
    case MYSQL_TYPE_TINY:
        return 1;
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_YEAR:
        return 2;
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_FLOAT:
        return 4;
    case MYSQL_TYPE_LONGLONG:
    case MYSQL_TYPE_DOUBLE:
        return 8;
    default:
        return 0;
    }
}

/* Takes the length that stands at *at.  0: it is not whole, or larger than what is left. */
static int take_length(const unsigned char **at, const unsigned char *end, size_t *size)
{
    const unsigned first = *at < end ? *(*at)++ : 255;
    const size_t bytes = first <= 250 ? 0 : first == 252 ? 2 : first == 253 ? 3 : 8;

    *size = first;
    if (first == 251 || first == 255 || bytes > (size_t)(end - *at))
        return 0;
    if (bytes > 0)
        *size = 0;
    for (size_t i = 0; i < bytes; i++)
        *size |= (size_t)*(*at)++ << (8 * i);
    return *size <= (size_t)(end - *at);
}

int db_row_is_whole(const MYSQL_ROWS *row, const MYSQL_FIELD *fields, unsigned columns)
{
    /* A byte 0, a bit for each cell that is NULL, and two more. */
    const size_t head = 1 + (columns + 9) / 8;
    const unsigned char *begin = row != NULL ? (const unsigned char *)row->data : NULL;
    const unsigned char *at, *end;

    if (begin == NULL || row->length < head)
        return 0;
    at = begin + head;
    end = begin + row->length;
    for (unsigned i = 0; i < columns; i++) {
        size_t size = fixed_size(fields[i].type);

        if ((begin[1 + (i + 2) / 8] >> ((i + 2) % 8) & 1) != 0)
            continue;
        if (size > 0 ? size > (size_t)(end - at) : !take_length(&at, end, &size))
            return 0;
        at += size;
    }
    return 1;
}
