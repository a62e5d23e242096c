/*
 * What a ledger says, as CSV.
 */
#ifndef SIM_EXPORT_H
#define SIM_EXPORT_H

#include "problem.h"

#include <stdint.h>
#include <stdio.h>

/*
 * Writes the payments of a ledger: those that a channel made, or those that a proxy was told of.
 * Reads the first `limit` bytes of the ledger, all of it with a negative limit. Payments that name
 * no serial_no and cust_no belong to no statement; *nameless is how many there were.
 */
bool export_csv(const char *ledger_path, int64_t limit, FILE *csv, int64_t *nameless,
                struct problem *problem);
/* Writes what a proxy forwarded or kept back. */
bool export_requests(const char *ledger_path, FILE *csv, struct problem *problem);

/* A comma and the text, quoted only where it has to be. */
void export_text(FILE *csv, const char *text);

#endif
