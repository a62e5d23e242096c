/*
 * Fields of JSON objects as tables: by the same one an object is read, checked and written.  Bodies,
 * ledger lines and fault rules have theirs.
 */
#ifndef SIM_FIELDS_H
#define SIM_FIELDS_H

#include "problem.h"

#include <jansson.h>
#include <stdint.h>

#define NAME_MAX_BYTES 128

enum field_kind {
    FIELD_NAME,     /* visible ASCII without blanks, 1 to NAME_MAX_BYTES characters */
    FIELD_TEXT,     /* without control characters */
    FIELD_CURRENCY, /* three capital letters; where it may be missing, what somebody else said */
    FIELD_INT,      /* an int64_t */
    FIELD_BOOL,
    FIELD_OTHER /* known, and read elsewhere */
};

struct field {
    const char *name; /* NULL: the end of the table */
    enum field_kind kind;
    size_t offset, size; /* of the member */
    unsigned must, may; /* the objects that have it, as bits: always, or where there is something */
    int64_t lowest, highest;
};

#define FIELD_AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

/* Reads what an object of this kind (one bit) has.  What may be missing and is leaves the default
 * that is already there. */
bool fields_read(const json_t *object, const struct field *fields, unsigned of, void *to,
                 struct problem *problem);
/* Refuses every field that is not in the table. */
bool fields_known(const json_t *object, const struct field *fields, struct problem *problem);
void fields_write(json_t *object, const struct field *fields, unsigned of, const void *from);
/* Adds the value under the name; takes it. */
void field_add(json_t *object, const char *name, json_t *value);

const char *field_text(const struct field *field, const void *of);
int64_t field_int(const struct field *field, const void *of);

bool name_valid(const char *text);
/* What fits into so many bytes, with its end, and is a text. */
bool text_valid(const char *text, size_t size);

#endif
