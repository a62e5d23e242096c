/*
 * The sample workflow `WITHDRAW`.  It freezes a customer's money, pays it through a channel over
 * HTTP (tradelock-simulator speaks the same protocol), and books or releases it.  The customer of a
 * batch of the house's own payments is the house.  Read it and copy it; the comments say why each
 * answer of the channel means what it means.
 */
#ifndef WITHDRAW_H
#define WITHDRAW_H

#include <tradelock/workflow.h>

#include <jansson.h>

#define WITHDRAW_OP "WITHDRAW"
#define WITHDRAW_CURRENCY 3
#define WITHDRAW_PAYEE_MAX 128 /* bytes of UTF-8 */

/* What is to be paid: the payload of a trade as a struct. */
typedef struct withdraw_order {
    int64_t amount_minor; /* at least 1 */
    char currency[WITHDRAW_CURRENCY + 1];
    char payee[WITHDRAW_PAYEE_MAX + 1]; /* a name; or an IBAN, whose check digits are right */
} withdraw_order;

/* Whole minor units: digits only, no sign, no blanks, no leading zero, 1 to INT64_MAX.  NULL and
 * *amount_minor, or what is wrong in a few words. */
const char *withdraw_amount_read(int64_t *amount_minor, const char *text);

/* NULL: the order can be taken; else a few words about what is wrong with it. */
const char *withdraw_order_problem(const withdraw_order *order);

/* The payload: JSON in one fixed form, so that equal orders have equal fingerprints.  The caller
 * frees it with free().  NULL: no memory. */
char *withdraw_order_write(const withdraw_order *order);
/* 1; 0: the bytes are no order. */
int withdraw_order_read(withdraw_order *order, const void *payload, size_t size);

/* What the channel promises; see contract.c. */
typedef enum withdraw_kind {
    WITHDRAW_IDEMPOTENT, /* a key pays once, for ever */
    WITHDRAW_WINDOW,     /* a key pays once within window_ms */
    WITHDRAW_PLAIN       /* every send pays; can be asked by key */
} withdraw_kind;

/* 1; 0: the name is not idempotent, window or plain. */
int withdraw_kind_find(const char *name, withdraw_kind *kind);
void withdraw_contract(tl_channel *promises, withdraw_kind kind, int64_t window_ms);

typedef struct channel withdraw;

typedef struct withdraw_options {
    tl_client *client;       /* for alarms; outlives the workflow */
    const char *channel_url; /* http://host:port, without a path */
    withdraw_kind kind;
    int64_t window_ms; /* WITHDRAW_WINDOW */
    int exclusive;     /* one withdrawal of a customer at a time */
} withdraw_options;

/* Makes the workflow and registers it.  Free it after the registry. */
tl_status withdraw_new(withdraw **out, tl_workflows *workflows, const withdraw_options *options);
void withdraw_free(withdraw *self);

#endif
