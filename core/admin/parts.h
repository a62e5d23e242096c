/* The triggers, functions, procedures and views of the schema. */
#ifndef TL_ADMIN_PARTS_H
#define TL_ADMIN_PARTS_H

#include <stddef.h>

/* Whether "kind name" is a line of the text. */
int parts_has(const char *there, const char *kind, const char *name);
/* How many are not there; their names, as many as there is space for. */
unsigned parts_missing(const char *there, char *names, size_t space);

#endif
