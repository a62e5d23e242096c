/* The triggers, functions, procedures and views of the schema. */
#ifndef TL_ADMIN_SCHEMA_OBJECTS_H
#define TL_ADMIN_SCHEMA_OBJECTS_H

#include <stddef.h>

/* Whether the text has the line "kind name". */
int schema_objects_have(const char *there, const char *kind, const char *name);
/* How many of this library's objects are not in the text; `names` gets as many as fit. */
unsigned schema_objects_missing(const char *there, char *names, size_t space);
/* How many of them have another hash in the text than this library's ("kind name HASH", one a line;
 * not views); `names` gets as many as fit.  -1: out of memory. */
int schema_objects_changed(const char *made, char *names, size_t space);

#endif
