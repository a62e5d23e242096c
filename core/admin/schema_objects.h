/* The triggers, functions, procedures and views of the schema. */
#ifndef TL_ADMIN_SCHEMA_OBJECTS_H
#define TL_ADMIN_SCHEMA_OBJECTS_H

#include <stddef.h>

struct sql_object;

/* What a schema consists of: that of a fleet's database has a few objects more. */
size_t schema_objects_count(int of_fleet);

/* The rule by which customers belong to slots: made where it is missing, and a service's own. */
int schema_objects_is_rule(const struct sql_object *object);

/* Whether the text has the line "kind name". */
int schema_objects_have(const char *there, const char *kind, const char *name);
/* How many of this library's objects are not in the text; `names` gets as many as fit. */
unsigned schema_objects_missing(const char *there, int of_fleet, char *names, size_t space);
/* How many of them have another hash in the text than this library's ("kind name HASH", one a line;
 * not views); `names` gets as many as fit.  -1: out of memory. */
int schema_objects_changed(const char *made, int of_fleet, char *names, size_t space);

#endif
