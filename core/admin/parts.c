#include "admin/parts.h"

#include "sql_text.h"

#include <stdio.h>
#include <string.h>

int parts_has(const char *there, const char *kind, const char *name)
{
    char line[128];
    size_t size = (size_t)snprintf(line, sizeof line, "%s %s", kind, name);

    for (const char *at = there; (at = strstr(at, line)) != NULL; at += size)
        if ((at == there || at[-1] == '\n') && (at[size] == '\n' || at[size] == '\0'))
            return 1;
    return 0;
}

unsigned parts_missing(const char *there, char *names, size_t space)
{
    unsigned count = 0;
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < sql_objects_count; i++) {
        const struct sql_object *part = &sql_objects[i];

        if (parts_has(there, part->kind, part->name))
            continue;
        if (used < space)
            used += (size_t)snprintf(names + used, space - used, "%s%s %s", count > 0 ? ", " : "",
                                     part->kind, part->name);
        count++;
    }
    return count;
}
