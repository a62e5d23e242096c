/* Every trade that was tried against the channel's ledger: what the rows say is what was paid. */
#ifndef TRY_AUDIT_H
#define TRY_AUDIT_H

#include "plan.h"

/* A trade as its case left it.  `where`: where its process was killed, or "". */
void audit_note(const char *title, const char *where);

/* Reads the simulator's ledger.  currency NULL: amounts are not compared.  Returns how many trades
 * were compared; -1: it cannot be read. */
int audit_ledger(const char *path, int64_t amount_minor, const char *currency);

#endif
