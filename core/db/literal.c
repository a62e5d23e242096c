/* Writes values as literals for text statements of many rows.  They are true on the library's own
 * connections only, whose sql_mode (no NO_BACKSLASH_ESCAPES) and character set (utf8mb4) are fixed.
 * Touches no state. */
#include "db/db_internal.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

db_value db_text(const char *text)
{
    db_value value = {text ? DB_TEXT : DB_NULL, 0, text, text ? strlen(text) : 0};

    return value;
}

db_value db_ascii(const char *text)
{
    return db_bytes(text, text ? strlen(text) : 0);
}

db_value db_uuid(const char *text, unsigned char to[DB_UUID])
{
    _Static_assert(TEXT_UUID == DB_UUID, "a UUID has 16 bytes");

    /* A text that is no UUID goes as it is; the server refuses it and says so. */
    if (text == NULL || !text_from_uuid(to, text))
        return db_text(text);
    return db_bytes(to, DB_UUID);
}

size_t db_literal_size(const db_value *value)
{
    switch (value->type) {
    case DB_NULL:
        return sizeof("NULL");
    case DB_INT:
    case DB_UINT:
        return 24;
    case DB_TEXT:
    case DB_BYTES:
        break;
    }
    return value->size * 2 + sizeof("x''");
}

static char *quote(char *to, const char *from, size_t size)
{
    size_t i;

    *to++ = '\'';
    for (i = 0; i < size; i++) {
        char c = from[i];

        if (c == '\'' || c == '\\') {
            *to++ = '\\';
        } else if (c == '\0') {
            *to++ = '\\';
            c = '0';
        } else if (c == '\032') {
            *to++ = '\\';
            c = 'Z';
        }
        *to++ = c;
    }
    *to++ = '\'';
    return to;
}

char *db_literal(char *to, const db_value *value)
{
    switch (value->type) {
    case DB_NULL:
        memcpy(to, "NULL", 4);
        return to + 4;
    case DB_INT:
        return to + sprintf(to, "%lld", (long long)value->int_value);
    case DB_UINT:
        return to + sprintf(to, "%llu", (unsigned long long)(uint64_t)value->int_value);
    case DB_TEXT:
        return quote(to, value->data, value->size);
    case DB_BYTES:
        break;
    }
    *to++ = 'x';
    *to++ = '\'';
    text_hex(to, value->data, value->size);
    to += value->size * 2;
    *to++ = '\'';
    return to;
}
