/* The fields of a form that was sent (application/x-www-form-urlencoded). */
#ifndef DESK_FORM_H
#define DESK_FORM_H

#include <stddef.h>

#define FORM_FIELDS 32

struct form {
    unsigned count;
    struct form_field {
        const char *name, *value;
    } fields[FORM_FIELDS];
};

/* Decodes the text in place; the fields point into it.  0: it is no form, or has a byte 0, or too
 * many fields. */
int form_read(struct form *form, char *text, size_t size);
/* "" where it is not there. */
const char *form_get(const struct form *form, const char *name);

#endif
