/* The fields of a form that was sent, or of an address. */
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

/* "" where it is not there. */
const char *form_get(const struct form *form, const char *name);

#endif
