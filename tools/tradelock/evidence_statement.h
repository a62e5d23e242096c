/* Filing every payment of a channel's statement as evidence of success. */
#ifndef TRADELOCK_EVIDENCE_STATEMENT_H
#define TRADELOCK_EVIDENCE_STATEMENT_H

#include "command.h"
#include "statement.h"

/* op_code: of payments that name none, or NULL.  Prints the totals; returns the exit code. */
int evidence_statement(tl_client *client, const struct common *common,
                       const struct statement *statement, const char *op_code, const char *source);

#endif
