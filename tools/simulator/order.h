/* A payment order as a client sends it. */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include "fields.h"

#define ORDER_NAME_MAX NAME_MAX_BYTES /* channel_key, serial_no, cust_no, op_code */
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

/* What says something of an order. */
enum order_part {
    ORDER_BODY = 1 << 0, /* of a pay request */
    ORDER_WHOLE = 1 << 1,
    ORDER_KEY = 1 << 2,  /* its channel_key */
    ORDER_SOME = 1 << 3, /* what a proxy found of it */
};

#define ORDER_FACTS 6

/* The channel_key; ORDER_FACTS that make another order of it where they differ, serial_no to payee,
 * in the order of ledgers and exports; what only a body has. */
extern const struct field order_fields[];

/* Reads the body of a pay request; unknown fields are refused, since a misspelt expires_at_ms that
 * is silently ignored would pay after the expiry. */
bool order_read(const json_t *body, struct order *order, struct problem *problem);

/* The name of the first fact in which two orders differ, or NULL. */
const char *order_difference(const struct order *left, const struct order *right);

#endif
