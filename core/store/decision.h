/* What two operators decided about a trade: a worker reads it, and may refuse to carry it out. */
#ifndef TL_STORE_DECISION_H
#define TL_STORE_DECISION_H

#include "db/db.h"

#include <tradelock/tradelock.h>

/* Which half of a decision a row is.  A refusal is neither: it says that a decision was not carried
 * out. */
enum store_half { STORE_PROPOSAL = 1, STORE_CONFIRMATION, STORE_REFUSAL };

/* One half of a decision; the second one carries it out. */
typedef struct store_resolution {
    const tl_key *key;
    uint64_t rev, fence;
    uint32_t epoch;
    char decision;
    int which; /* a store_half */
    int although_pending;
    const char *actor, *reason, *thread_no, *log_no;
    uint64_t act_no, act_row; /* the row of an act of many trades that it is; 0: of none */
} store_resolution;

db_answer store_resolve_list(db *connection, const tl_key *key, db_result *result);

#endif
