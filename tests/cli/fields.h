/* The names of JSON fields: those that were printed, and those that tools/README.md lists between
 * its comments "json NAME" and "end".  A name may be several: "ls+row". */
#ifndef TESTS_CLI_FIELDS_H
#define TESTS_CLI_FIELDS_H

#include <jansson.h>

/* Adds every name in the document, at any depth, to the set. */
void fields_add(json_t *set, json_t *document);
/* Fails the test when the set and the list differ, in either direction. */
void fields_expect(json_t *set, const char *name);
/* Fails the test when the set has what neither list has, or lacks what `more` adds. */
void fields_expect_more(json_t *set, const char *name, const char *more);

#endif
