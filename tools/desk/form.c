/* Reads forms.  Touches only the text that it is given. */
#include "form.h"

#include <string.h>

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes one name or value, which ends with a NUL; 0: it cannot be decoded. */
static int decode(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        if (*text == '+') {
            *to++ = ' ';
        } else if (*text != '%') {
            *to++ = *text;
        } else {
            const int high = digit(text[1]);
            const int low = high < 0 ? -1 : digit(text[2]);

            if (low < 0 || high * 16 + low == 0)
                return 0;
            *to++ = (char)(high * 16 + low);
            text += 2;
        }
    }
    *to = '\0';
    return 1;
}

int form_read(struct form *form, char *text, size_t size)
{
    form->count = 0;
    if (strlen(text) != size)
        return 0;
    while (*text != '\0') {
        char *end = text + strcspn(text, "&");
        char *next = *end == '&' ? end + 1 : end;
        char *value;

        *end = '\0';
        value = text + strcspn(text, "=");
        if (*value == '=')
            *value++ = '\0';
        if (form->count == FORM_FIELDS || !decode(text) || !decode(value))
            return 0;
        form->fields[form->count].name = text;
        form->fields[form->count++].value = value;
        text = next;
    }
    return 1;
}

const char *form_get(const struct form *form, const char *name)
{
    for (unsigned i = 0; i < form->count; i++)
        if (strcmp(form->fields[i].name, name) == 0)
            return form->fields[i].value;
    return "";
}
