/* A statement's count and sums beside those of the trades it is about. */
#ifndef TRADELOCK_STATEMENT_PRINT_H
#define TRADELOCK_STATEMENT_PRINT_H

#include "statement.h"

#include <jansson.h>

/* After fleet_begin(): asks every database whose payments they are of which the bank names no
 * customer.  The exit code; name is the file's, for messages. */
int statement_find(struct statement *self, int is_filed, const char *name);

/* Of these of its payments, and of the trades that they pay. */
void statement_print(const struct statement *self, const tl_payment *payments, size_t count,
                     const tl_list_end *trades);
json_t *statement_json(const struct statement *self, const tl_payment *payments, size_t count,
                       const tl_list_end *trades);

#endif
