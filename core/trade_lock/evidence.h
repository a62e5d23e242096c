/* Filing evidence for an operator, who leaves a record of it. */
#ifndef TL_TRADE_LOCK_EVIDENCE_H
#define TL_TRADE_LOCK_EVIDENCE_H

#include <tradelock/tradelock.h>

/* A filing as a row of an act, bound to what the operator saw (status ' ': there was no row); or,
 * act_no 0, as an act of its own. */
typedef struct evidence_act {
    uint64_t act_no, row_no, fence;
    char status;
    uint32_t epoch;
    const char *actor;
} evidence_act;

/* As tl_evidence_add(), and on record in the same transaction.  TL_LOST: the trade has moved on
 * since, and nothing was filed. */
tl_status evidence_file(tl_client *client, const tl_evidence *evidence, const evidence_act *act);

#endif
