/* Compares the schema objects that should be there with a list of those that are.  Touches no
 * database: the list is a text. */
#include "admin/schema_objects.h"

#include "sql_text.h"

#include <stdio.h>
#include <string.h>

int schema_objects_have(const char *there, const char *kind, const char *name)
{
    char line[128];
    size_t size = (size_t)snprintf(line, sizeof line, "%s %s", kind, name);

    for (const char *at = there; (at = strstr(at, line)) != NULL; at += size)
        if ((at == there || at[-1] == '\n') && (at[size] == '\n' || at[size] == '\0'))
            return 1;
    return 0;
}

unsigned schema_objects_missing(const char *there, char *names, size_t space)
{
    unsigned count = 0;
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < sql_objects_count; i++) {
        const struct sql_object *object = &sql_objects[i];

        if (schema_objects_have(there, object->kind, object->name))
            continue;
        if (used < space)
            used += (size_t)snprintf(names + used, space - used, "%s%s %s", count > 0 ? ", " : "",
                                     object->kind, object->name);
        count++;
    }
    return count;
}
