/* The fields of rows that people see, from their maps.  Decides nothing. */
#include "fields.h"

#include "print.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON(name) .json = name
#define LIST(name, title) .column = name, .heading = title
#define SHOW(name) .label = name
#define DESK(name) .fact = name
#define IN(name) .group = GROUP_##name
#define FIELD(record, type_, member, ...)                                                          \
    {.type = FIELD_##type_, .offset = offsetof(record, member), __VA_ARGS__},
#define VIEW_FIELD(...) FIELD(tl_view, __VA_ARGS__)

const struct field view_fields[VIEW_FIELDS] = {TL_VIEW_MAP(VIEW_FIELD)};

_Static_assert(offsetof(tl_view, currency) == offsetof(tl_view, amount_minor) + sizeof(int64_t) &&
                   offsetof(tl_view, payload_size) == offsetof(tl_view, payload) + sizeof(void *) &&
                   offsetof(tl_view, result_size) == offsetof(tl_view, result) + sizeof(void *) &&
                   offsetof(tl_resource_view, payload_size) ==
                       offsetof(tl_resource_view, payload) + sizeof(void *),
               "a currency stands behind its amount, a size behind its bytes");

static const void *at(const struct field *field, const void *row)
{
    return (const char *)row + field->offset;
}

/* A member of this type. */
#define AS(type) (*(const type *)at(field, row))

int64_t field_time(const struct field *field, const void *row)
{
    return AS(int64_t);
}

const void *field_bytes(const struct field *field, const void *row, size_t *size)
{
    const void *const *bytes = at(field, row);

    *size = *(const size_t *)(const void *)(bytes + 1);
    return *bytes;
}

static const char *number_words(char space[FIELD_SPACE], uint64_t number)
{
    snprintf(space, FIELD_SPACE, "%" PRIu64, number);
    return space;
}

static const char *letter_words(char space[FIELD_SPACE], char letter)
{
    space[0] = letter;
    space[1] = '\0';
    return space;
}

const char *field_words(char space[FIELD_SPACE], const struct field *field, const void *row)
{
    switch (field->type) {
    case FIELD_TEXT:
        return at(field, row);
    case FIELD_STRING:
        return AS(char *) != NULL ? AS(char *) : "";
    case FIELD_LETTER:
        return letter_words(space, AS(char));
    case FIELD_LANE:
        return AS(char) == 'R' ? "retry" : "sync";
    case FIELD_PROOF:
        return AS(char) == TL_PROOF_NONE ? "" : tl_proof_name((tl_proof)AS(char));
    case FIELD_STATE:
        return tl_state_name(AS(tl_state));
    case FIELD_MUTEX:
        return tl_resource_state_name(AS(tl_resource_state));
    case FIELD_HOLDER:
        return tl_holder_state_name(AS(tl_holder_state));
    case FIELD_MODE:
        return AS(tl_rw_mode) == TL_RW_WRITE ? "write" : "read";
    case FIELD_DECISION:
        return tl_decision_name(AS(tl_decision));
    case FIELD_FLAG:
        return AS(int) ? "yes" : "";
    case FIELD_COUNT:
        return number_words(space, AS(uint32_t));
    case FIELD_NUMBER:
        return number_words(space, AS(uint64_t));
    case FIELD_TIME:
        return time_text(space, AS(int64_t));
    default:
        return "";
    }
}

static json_t *json_hash(const unsigned char *hash)
{
    static const unsigned char none[TL_FINGERPRINT];

    return memcmp(hash, none, sizeof none) == 0 ? json_null() : json_hex(hash, sizeof none);
}

static json_t *field_json(const struct field *field, const void *row)
{
    char space[FIELD_SPACE];
    const void *bytes;
    size_t size;

    switch (field->type) {
    case FIELD_LETTER:
        return json_char(AS(char));
    case FIELD_FLAG:
        return json_boolean(AS(int));
    case FIELD_COUNT:
        return json_unsigned(AS(uint32_t));
    case FIELD_NUMBER:
        return json_unsigned(AS(uint64_t));
    case FIELD_MONEY:
        return ((const char *)at(field, row))[sizeof(int64_t)] != '\0' ? json_integer(AS(int64_t))
                                                                       : json_null();
    case FIELD_HASH:
        return json_hash(at(field, row));
    case FIELD_BYTES:
        bytes = field_bytes(field, row, &size);
        return json_bytes(bytes, size);
    default:
        return json_text(field_words(space, field, row));
    }
}

static json_t *json_record(const struct field *fields, size_t count, const void *row)
{
    json_t *object = json_object();

    for (size_t i = 0; i < count; i++)
        if (fields[i].json != NULL)
            json_object_set_new(object, fields[i].json, field_json(&fields[i], row));
    return object;
}

json_t *json_view(const tl_view *view)
{
    return json_record(view_fields, VIEW_FIELDS, view);
}

#define FIELD_OF_RECORD(...) FIELD(record, __VA_ARGS__)
#define JSON_OF(name, type, MAP)                                                                   \
    json_t *name(const type *row)                                                                  \
    {                                                                                              \
        typedef type record;                                                                       \
        static const struct field fields[] = {MAP(FIELD_OF_RECORD)};                               \
        return json_record(fields, sizeof fields / sizeof fields[0], row);                         \
    }

static json_t *json_filed(const tl_evidence_row *row);

json_t *json_evidence(const tl_evidence_row *row)
{
    json_t *o = json_filed(row);

    json_object_set_new(o, "paid_minor",
                        row->amount.is_told ? json_integer(row->amount.amount_minor) : json_null());
    json_object_set_new(o, "paid_currency", json_text(row->amount.currency));
    json_object_set_new(o, "contradicts", json_boolean(row->contradicts));
    return o;
}

JSON_OF(json_step, tl_step, TL_STEP_MAP)
JSON_OF(json_resolution, tl_resolution_row, TL_RESOLUTION_MAP)
JSON_OF(json_resource, tl_resource_view, TL_RESOURCE_MAP)
JSON_OF(json_holder, tl_holder_view, TL_HOLDER_MAP)
static JSON_OF(json_filed, tl_evidence_row, TL_EVIDENCE_MAP)
