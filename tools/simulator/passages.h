/* What a proxy's ledger says, put together from its lines: each request with what came of it. */
#ifndef SIM_PASSAGES_H
#define SIM_PASSAGES_H

#include "record.h"

#include <stddef.h>
#include <stdio.h>

struct passages;

struct passages *passages_new(void);
void passages_free(struct passages *passages);

/* Each record of a proxy's ledger, in order. */
bool passages_add(struct passages *passages, const struct record *record, struct problem *problem);

/*
 * Whether this record, which was added, is the first word of a payment: an answer 2xx with a
 * channel_ref that was not told before.  The order is that of the request itself, else of the
 * latest request before it that had this key and an order.
 */
bool passages_paid(struct passages *passages, const struct record *record, struct order *order);

/* As CSV, a line each: seq,at,method,path,channel_key,body_sha256,forwarded,status,fault. */
void passages_print(const struct passages *passages, FILE *csv);

#endif
