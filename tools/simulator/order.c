/* Reads and compares payment orders. */
#include "order.h"

#include <string.h>

#define AT(member) FIELD_AT(struct order, member)
#define FACT .must = ORDER_BODY | ORDER_WHOLE, .may = ORDER_SOME

const struct field order_fields[] = {
    {"channel_key", FIELD_NAME, AT(channel_key), .must = ORDER_BODY | ORDER_WHOLE | ORDER_KEY,
     .may = ORDER_SOME},
    {"serial_no", FIELD_NAME, AT(serial_no), FACT},
    {"cust_no", FIELD_NAME, AT(cust_no), FACT},
    {"op_code", FIELD_NAME, AT(op_code), FACT},
    {"amount_minor", FIELD_INT, AT(amount_minor), FACT, .lowest = 1, .highest = INT64_MAX},
    {"currency", FIELD_CURRENCY, AT(currency), FACT},
    {"payee", FIELD_TEXT, AT(payee), FACT},
    {"expires_at_ms", FIELD_INT, AT(expires_at_ms), .may = ORDER_BODY, .lowest = 1,
     .highest = INT64_MAX},
    {.name = NULL}};

bool order_read(const json_t *body, struct order *order, struct problem *problem)
{
    memset(order, 0, sizeof(*order));
    if (!json_is_object(body))
        return problem_set(problem, "the body must be one JSON object");
    return fields_known(body, order_fields, problem) &&
           fields_read(body, order_fields, ORDER_BODY, order, problem);
}

const char *order_difference(const struct order *left, const struct order *right)
{
    for (size_t i = 1; i <= ORDER_FACTS; i++) {
        const struct field *fact = &order_fields[i];
        bool same = fact->kind == FIELD_INT
                        ? field_int(fact, left) == field_int(fact, right)
                        : strcmp(field_text(fact, left), field_text(fact, right)) == 0;

        if (!same)
            return fact->name;
    }
    return NULL;
}
