/*
 * A spreadsheet takes a cell that begins with one of = + - @, tab or CR for a formula.  A writer
 * puts a ' before it, which a spreadsheet does not show, and also before a text that begins with '
 * and then so.  A reader that drops one ' has the text again.  Numbers stay as they are.
 */
#ifndef CSV_GUARD_H
#define CSV_GUARD_H

#include <string.h>

static inline int csv_is_formula(const char *text, size_t size)
{
    while (size > 0 && *text == '\'')
        text++, size--;
    return size > 0 && *text != '\0' && strchr("=+-@\t\r", *text) != NULL;
}

/* Whether a writer puts a ' before it. */
static inline int csv_wants_guard(const char *text)
{
    const int is_number =
        text[0] == '-' && text[1] != '\0' && text[1 + strspn(text + 1, "0123456789")] == '\0';

    return csv_is_formula(text, strlen(text)) && !is_number;
}

/* Whether a reader drops the first byte. */
static inline int csv_is_guarded(const char *text, size_t size)
{
    return size > 0 && text[0] == '\'' && csv_is_formula(text, size);
}

#endif
