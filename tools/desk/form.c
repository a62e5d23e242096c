/* Finds fields.  Touches only the form that it is given. */
#include "form.h"

#include <string.h>

const char *form_get(const struct form *form, const char *name)
{
    for (unsigned i = 0; i < form->count; i++)
        if (strcmp(form->fields[i].name, name) == 0)
            return form->fields[i].value;
    return "";
}
