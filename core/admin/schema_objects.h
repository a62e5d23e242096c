/* The triggers, functions, procedures and views of the schema. */
#ifndef TL_ADMIN_SCHEMA_OBJECTS_H
#define TL_ADMIN_SCHEMA_OBJECTS_H

#include <stddef.h>

/* Whether "kind name" is a line of the text. */
int schema_objects_have(const char *there, const char *kind, const char *name);
/* How many are not there; their names, as many as there is space for. */
unsigned schema_objects_missing(const char *there, char *names, size_t space);

#endif
