/*
 * The workflow `PAYOUT`: the house pays many payees out of one treasury account for each currency.
 * The service (main.c) and the worker's plug-in (plugin.c) register the same workflow from the same
 * settings, so that they cannot differ in what they believe of the channel.
 */
#ifndef PAYOUT_H
#define PAYOUT_H

#include <tradelock/workflow.h>

#define PAYOUT_OP "PAYOUT"
/* The customer of every trade is the house itself.  So the serial number alone says which payout it
 * is, and another payee or amount under it is a mismatch, not a second payout. */
#define PAYOUT_CUST "HOUSE"
#define PAYOUT_IBAN_MAX 34
#define PAYOUT_TEXT 80 /* room for an order as the payload of a trade */

typedef struct payout_order {
    int64_t amount_minor; /* at least 1 */
    char currency[TL_CURRENCY + 1];
    char iban[PAYOUT_IBAN_MAX + 1]; /* of the payee */
} payout_order;

/* Takes currency and payee as they stand in a file.  NULL, or what is wrong in a few words. */
const char *payout_order_take(payout_order *order, const char *currency, const char *iban);
/* The payload: one fixed form, so that equal orders have equal fingerprints. */
void payout_order_write(const payout_order *order, char text[PAYOUT_TEXT]);
/* 1; 0: the bytes are no order. */
int payout_order_read(payout_order *order, const void *payload, size_t size);

typedef struct payout payout;

/* Registers the workflow; the section [service-payout] of the settings file names the channel. */
tl_status payout_open(payout **out, tl_client *client, tl_workflows *workflows,
                      const char *config_file);
/* After the registry is freed. */
void payout_close(payout *self);

#endif
