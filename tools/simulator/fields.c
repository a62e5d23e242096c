/* Reads, checks and writes JSON objects by tables of fields. */
#include "fields.h"

#include <inttypes.h>
#include <string.h>

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

bool name_valid(const char *text)
{
    size_t length = strlen(text);

    if (length < 1 || length > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return true;
}

bool text_valid(const char *text, size_t size)
{
    size_t length = strlen(text);

    if (length < 1 || length >= size)
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    }
    return true;
}

const char *field_text(const struct field *field, const void *of)
{
    return (const char *)of + field->offset;
}

int64_t field_int(const struct field *field, const void *of)
{
    int64_t number;

    memcpy(&number, field_text(field, of), sizeof(number));
    return number;
}

static bool read_field(const struct field *field, const json_t *value, bool must, char *to,
                       struct problem *problem)
{
    const char *text = json_string_value(value);
    int64_t number = json_integer_value(value);
    bool is = json_is_true(value);

    switch (field->kind) {
    case FIELD_NAME:
        if (!text || !name_valid(text))
            return problem_set(problem,
                               "%s must be a string of 1 to %d visible ASCII characters "
                               "without blanks",
                               field->name, NAME_MAX_BYTES);
        break;
    case FIELD_CURRENCY:
    case FIELD_TEXT:
        if (must && field->kind == FIELD_CURRENCY &&
            (!text || strlen(text) != 3 || strspn(text, CAPITALS) != 3))
            return problem_set(problem, "currency must be three capital letters");
        if (!text || !text_valid(text, field->size))
            return problem_set(problem,
                               "%s must be a string of 1 to %zu bytes without control "
                               "characters",
                               field->name, field->size - 1);
        break;
    case FIELD_INT:
        if (!json_is_integer(value) || number < field->lowest || number > field->highest)
            return problem_set(problem, "%s must be a whole number from %" PRId64 " to %" PRId64,
                               field->name, field->lowest, field->highest);
        memcpy(to, &number, sizeof(number));
        return true;
    case FIELD_BOOL:
        if (!json_is_boolean(value))
            return problem_set(problem, "%s must be true or false", field->name);
        memcpy(to, &is, sizeof(is));
        return true;
    case FIELD_OTHER:
        return true;
    }
    strcpy(to, text);
    return true;
}

bool fields_read(const json_t *object, const struct field *fields, unsigned of, void *to,
                 struct problem *problem)
{
    for (const struct field *field = fields; field->name; field++) {
        const json_t *value = json_object_get(object, field->name);
        bool must = field->must & of;

        if (!value && must && field->kind != FIELD_CURRENCY)
            return problem_set(problem, "%s is missing", field->name);
        if ((must || (value && field->may & of)) &&
            !read_field(field, value, must, (char *)to + field->offset, problem))
            return false;
    }
    return true;
}

bool fields_known(const json_t *object, const struct field *fields, struct problem *problem)
{
    const char *name;
    json_t *value;

    /* The iteration macro wants a pointer that it may change. */
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct field *field = fields;

        while (field->name && strcmp(field->name, name) != 0)
            field++;
        if (!field->name)
            return problem_set(problem, "there is no field \"%.64s\" here", name);
    }
    return true;
}

void field_add(json_t *object, const char *name, json_t *value)
{
    if (json_object_set_new(object, name, memory_need(value)) != 0)
        memory_need(NULL);
}

void fields_write(json_t *object, const struct field *fields, unsigned of, const void *from)
{
    for (const struct field *field = fields; field->name; field++) {
        const char *text = field_text(field, from);
        bool must = field->must & of;

        if (!must && !(field->may & of))
            continue;
        if (field->kind == FIELD_INT) {
            if (must || field_int(field, from))
                field_add(object, field->name, json_integer(field_int(field, from)));
        } else if (field->kind == FIELD_BOOL) {
            if (must || *text)
                field_add(object, field->name, json_boolean(*text));
        } else if (must || *text) {
            field_add(object, field->name, json_string(text));
        }
    }
}
