/* The fields of rows that people see, as data (tradelock/record.h), and their values in words and in
 * JSON. */
#ifndef TRADELOCK_FIELDS_H
#define TRADELOCK_FIELDS_H

#include <tradelock/admin.h>
#include <tradelock/record.h>

#include <jansson.h>

enum field_type {
    FIELD_TEXT,
    FIELD_STRING,
    FIELD_LETTER,
    FIELD_LANE,
    FIELD_PROOF,
    FIELD_STATE,
    FIELD_MUTEX,
    FIELD_HOLDER,
    FIELD_MODE,
    FIELD_DECISION,
    FIELD_FLAG,
    FIELD_COUNT,
    FIELD_NUMBER,
    FIELD_TIME,
    FIELD_MONEY,
    FIELD_HASH,
    FIELD_BYTES,
    FIELD_MADE /* of several fields, by whoever shows it */
};

/* Of a trade's view: what stands together. */
enum field_group {
    GROUP_NONE,
    GROUP_TROUBLE,
    GROUP_REQUEST,
    GROUP_COUNTS,
    GROUP_HOLDER,
    GROUP_SESSION,
    GROUP_WORK,
    GROUP_TIMES,
    GROUP_CHANNEL,
    GROUP_FOUND,
    GROUP_REMARK,
    GROUP_CONTENTS
};

struct field {
    enum field_type type;
    enum field_group group;
    size_t offset;
    const char *json, *column, *heading, *label, *fact; /* NULL: not there */
};

#define FIELD_ONE(...) +1
enum { VIEW_FIELDS = 0 TL_VIEW_MAP(FIELD_ONE) };

extern const struct field view_fields[VIEW_FIELDS];

#define FIELD_SPACE 64
/* The value in words, "" for none: of the row, or in `space`.  Money and bytes have none. */
const char *field_words(char space[FIELD_SPACE], const struct field *field, const void *row);
int64_t field_time(const struct field *field, const void *row);
/* *size becomes how many there are. */
const void *field_bytes(const struct field *field, const void *row, size_t *size);

/* A row; every field is always there. */
json_t *json_view(const tl_view *view);
json_t *json_step(const tl_step *step);
json_t *json_evidence(const tl_evidence_row *row);
json_t *json_resolution(const tl_resolution_row *row);
json_t *json_resource(const tl_resource_view *view);
json_t *json_holder(const tl_holder_view *view);

#endif
