/*
 * A payment order as a client sends it, and the reading of JSON fields that orders, ledger lines
 * and fault rules share.
 */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include "problem.h"

#include <jansson.h>
#include <stdint.h>

#define ORDER_NAME_MAX 128 /* channel_key, serial_no, cust_no, op_code */
#define ORDER_PAYEE_MAX 256

struct order {
    char channel_key[ORDER_NAME_MAX + 1];
    char serial_no[ORDER_NAME_MAX + 1];
    char cust_no[ORDER_NAME_MAX + 1];
    char op_code[ORDER_NAME_MAX + 1];
    char currency[4];
    char payee[ORDER_PAYEE_MAX + 1];
    int64_t amount_minor;
    int64_t expires_at_ms; /* 0: never; no part of the order's identity */
};

/* Reads the body of a pay request; unknown fields are refused, since a misspelt expires_at_ms that
 * is silently ignored would pay after the expiry. */
bool order_read(const json_t *body, struct order *order, struct problem *problem);

/* The name of the first field in which two orders differ, or NULL. */
const char *order_difference(const struct order *left, const struct order *right);

/* Visible ASCII without blanks, 1 to ORDER_NAME_MAX characters. */
bool name_valid(const char *text);

/* Fields of an object.  A missing field leaves the default that is already there when it is
 * optional, and is a problem otherwise. */
enum field_need { FIELD_MUST, FIELD_MAY };

bool field_name(const json_t *object, const char *field, enum field_need need,
                char text[ORDER_NAME_MAX + 1], struct problem *problem);
bool field_text(const json_t *object, const char *field, enum field_need need, char *text,
                size_t size, struct problem *problem);
bool field_int(const json_t *object, const char *field, enum field_need need, int64_t lowest,
               int64_t highest, int64_t *number, struct problem *problem);
bool field_bool(const json_t *object, const char *field, enum field_need need, bool *value,
                struct problem *problem);
/* Refuses every field that is not in the NULL-terminated list. */
bool fields_known(const json_t *object, const char *const known[], struct problem *problem);

#endif
