/* Compares the schema objects that should be there with a list of those that are.  Touches no
 * database: the list is a text. */
#include "admin/schema_objects.h"

#include "base/memory.h"
#include "base/sha256.h"
#include "base/text.h"

#include "sql_text.h"

#include <stdio.h>
#include <string.h>

size_t schema_objects_count(int of_fleet)
{
    return sql_objects_count + (of_fleet ? sql_fleet_objects_count : 0);
}

static const struct sql_object *object_at(size_t i)
{
    return i < sql_objects_count ? &sql_objects[i] : &sql_fleet_objects[i - sql_objects_count];
}

int schema_objects_is_rule(const struct sql_object *object)
{
    return strcmp(object->name, "tl_customer_slot") == 0;
}

int schema_objects_have(const char *there, const char *kind, const char *name)
{
    char line[128];
    size_t size = (size_t)snprintf(line, sizeof line, "%s %s", kind, name);

    for (const char *at = there; (at = strstr(at, line)) != NULL; at += size)
        if ((at == there || at[-1] == '\n') && (at[size] == '\n' || at[size] == '\0'))
            return 1;
    return 0;
}

static void add_name(char *names, size_t space, const struct sql_object *object)
{
    char name[128];

    snprintf(name, sizeof name, "%s%s %s", names[0] != '\0' ? ", " : "", object->kind,
             object->name);
    (void)text_add(names, space, name);
}

unsigned schema_objects_missing(const char *there, int of_fleet, char *names, size_t space)
{
    unsigned count = 0;

    names[0] = '\0';
    for (size_t i = 0; i < schema_objects_count(of_fleet); i++) {
        if (schema_objects_have(there, object_at(i)->kind, object_at(i)->name))
            continue;
        add_name(names, space, object_at(i));
        count++;
    }
    return count;
}

/* What tl_parts_made() takes into the hash: all of a trigger, of others what follows on the
 * header. The server leaves the character set of literals out.  The caller frees it; NULL: out
 * of memory. */
static char *text_made(const struct sql_object *object)
{
    static const char charset[] = "_ascii ", header[] = "SQL SECURITY ";
    const int trigger = strcmp(object->kind, "trigger") == 0;
    const char *from = trigger ? object->text : strstr(object->text, header), *at;
    char *text = memory_new(strlen(object->text) + 1), *end = text;

    if (text == NULL || from == NULL)
        return text;
    while ((at = strstr(from, charset)) != NULL) {
        memcpy(end, from, (size_t)(at - from));
        end += at - from;
        *end++ = ' ';
        from = at + sizeof charset - 1;
    }
    strcpy(end, from);
    return text;
}

/* -1: out of memory. */
static int is_changed(const struct sql_object *object, const char *made)
{
    char line[160], hash[2 * SHA256_SIZE + 1], *text;
    uint8_t digest[SHA256_SIZE];
    const char *at;

    snprintf(line, sizeof line, "%s %s ", object->kind, object->name);
    at = strstr(made, line);
    while (at != NULL && at != made && at[-1] != '\n')
        at = strstr(at + 1, line);
    if (at == NULL)
        return 0;
    text = text_made(object);
    if (text == NULL)
        return -1;
    sha256_of(digest, text, strlen(text));
    text_hex(hash, digest, sizeof digest);
    memory_free(text);
    return strncmp(at + strlen(line), hash, strlen(hash)) != 0;
}

int schema_objects_changed(const char *made, int of_fleet, char *names, size_t space)
{
    int count = 0;

    names[0] = '\0';
    for (size_t i = 0; i < schema_objects_count(of_fleet); i++) {
        const struct sql_object *object = object_at(i);
        const int changed = schema_objects_is_rule(object) ? 0 : is_changed(object, made);

        if (changed < 0)
            return -1;
        if (changed)
            add_name(names, space, object);
        count += changed;
    }
    return count;
}
