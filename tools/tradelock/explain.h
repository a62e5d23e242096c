/* What a trade's row means, for people. */
#ifndef TRADELOCK_EXPLAIN_H
#define TRADELOCK_EXPLAIN_H

#include <tradelock/tradelock.h>

#define EXPLANATION 1024

/* Why the trade is where it is and what happens next.  view: of the sync row, or of a retry row
 * that stands alone. */
void explain(char to[EXPLANATION], const tl_view *view);

/* Whether nothing is sent for it any more. */
int is_past_deadline(const tl_view *view);

/* Whether the trade waits to be found out, or for a person. */
int is_in_doubt_or_parked(const tl_view *view);

#endif
