/* Reads and checks payment orders and other JSON fields. */
#include "order.h"

#include <inttypes.h>
#include <string.h>

bool name_valid(const char *text)
{
    size_t length = strlen(text);

    if (length < 1 || length > ORDER_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return true;
}

/* The field, or NULL; *fine says whether NULL is allowed. */
static const json_t *field_find(const json_t *object, const char *field, enum field_need need,
                                bool *fine, struct problem *problem)
{
    const json_t *value = json_object_get(object, field);

    *fine = value || need == FIELD_MAY;
    if (!*fine)
        problem_set(problem, "%s is missing", field);
    return value;
}

bool field_name(const json_t *object, const char *field, enum field_need need,
                char text[ORDER_NAME_MAX + 1], struct problem *problem)
{
    bool fine;
    const json_t *value = field_find(object, field, need, &fine, problem);

    if (!value)
        return fine;
    if (!json_is_string(value) || !name_valid(json_string_value(value)))
        return problem_set(problem,
                           "%s must be a string of 1 to %d visible ASCII characters "
                           "without blanks",
                           field, ORDER_NAME_MAX);
    strcpy(text, json_string_value(value));
    return true;
}

bool field_text(const json_t *object, const char *field, enum field_need need, char *text,
                size_t size, struct problem *problem)
{
    bool fine;
    const json_t *value = field_find(object, field, need, &fine, problem);
    const char *found;

    if (!value)
        return fine;
    found = json_string_value(value);
    fine = found && *found && strlen(found) < size;
    for (size_t i = 0; fine && found[i]; i++)
        fine = (unsigned char)found[i] >= ' ' && found[i] != 0x7f;
    if (!fine)
        return problem_set(problem,
                           "%s must be a string of 1 to %zu bytes without control "
                           "characters",
                           field, size - 1);
    strcpy(text, found);
    return true;
}

bool field_int(const json_t *object, const char *field, enum field_need need, int64_t lowest,
               int64_t highest, int64_t *number, struct problem *problem)
{
    bool fine;
    const json_t *value = field_find(object, field, need, &fine, problem);
    int64_t found;

    if (!value)
        return fine;
    found = json_integer_value(value);
    if (!json_is_integer(value) || found < lowest || found > highest)
        return problem_set(problem, "%s must be a whole number from %" PRId64 " to %" PRId64, field,
                           lowest, highest);
    *number = found;
    return true;
}

bool field_bool(const json_t *object, const char *field, enum field_need need, bool *value,
                struct problem *problem)
{
    bool fine;
    const json_t *found = field_find(object, field, need, &fine, problem);

    if (!found)
        return fine;
    if (!json_is_boolean(found))
        return problem_set(problem, "%s must be true or false", field);
    *value = json_is_true(found);
    return true;
}

bool fields_known(const json_t *object, const char *const known[], struct problem *problem)
{
    const char *field;
    json_t *value;

    /* The iteration macro wants a pointer that it may change. */
    json_object_foreach((json_t *)(uintptr_t)object, field, value)
    {
        size_t i = 0;

        while (known[i] && strcmp(known[i], field) != 0)
            i++;
        if (!known[i])
            return problem_set(problem, "there is no field \"%.64s\" here", field);
    }
    return true;
}

static bool currency_read(const json_t *body, char currency[4], struct problem *problem)
{
    const char *text = json_string_value(json_object_get(body, "currency"));

    if (!text || strlen(text) != 3 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 3)
        return problem_set(problem, "currency must be three capital letters");
    strcpy(currency, text);
    return true;
}

bool order_read(const json_t *body, struct order *order, struct problem *problem)
{
    static const char *const known[] = {"channel_key", "serial_no",     "cust_no",
                                        "op_code",     "amount_minor",  "currency",
                                        "payee",       "expires_at_ms", NULL};

    memset(order, 0, sizeof(*order));
    if (!json_is_object(body))
        return problem_set(problem, "the body must be one JSON object");
    return fields_known(body, known, problem) &&
           field_name(body, "channel_key", FIELD_MUST, order->channel_key, problem) &&
           field_name(body, "serial_no", FIELD_MUST, order->serial_no, problem) &&
           field_name(body, "cust_no", FIELD_MUST, order->cust_no, problem) &&
           field_name(body, "op_code", FIELD_MUST, order->op_code, problem) &&
           field_int(body, "amount_minor", FIELD_MUST, 1, INT64_MAX, &order->amount_minor,
                     problem) &&
           currency_read(body, order->currency, problem) &&
           field_text(body, "payee", FIELD_MUST, order->payee, sizeof(order->payee), problem) &&
           field_int(body, "expires_at_ms", FIELD_MAY, 1, INT64_MAX, &order->expires_at_ms,
                     problem);
}

const char *order_difference(const struct order *left, const struct order *right)
{
    if (strcmp(left->serial_no, right->serial_no) != 0)
        return "serial_no";
    if (strcmp(left->cust_no, right->cust_no) != 0)
        return "cust_no";
    if (strcmp(left->op_code, right->op_code) != 0)
        return "op_code";
    if (left->amount_minor != right->amount_minor)
        return "amount_minor";
    if (strcmp(left->currency, right->currency) != 0)
        return "currency";
    if (strcmp(left->payee, right->payee) != 0)
        return "payee";
    return NULL;
}
