/* The ledger as an outsider wants it: payments only, as CSV (RFC 4180, "\n" line ends).
 */
#ifndef SIM_EXPORT_H
#define SIM_EXPORT_H

#include "problem.h"

#include <stdint.h>
#include <stdio.h>

/* Writes header and payments of the first `limit` bytes, or of all when it is negative. The ledger
 * may be in use. */
bool export_csv(const char *ledger_path, int64_t limit, FILE *csv, struct problem *problem);

#endif
