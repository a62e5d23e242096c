/* One compensating attempt, from the claim to its ending. */
#ifndef TL_WORKFLOWS_COMPENSATE_H
#define TL_WORKFLOWS_COMPENSATE_H

#include "registry.h"

typedef struct compensate_calls {
    unsigned queries, cancels, sends;
} compensate_calls;

/*
 * Brings a claimed trade as far as it can be brought now.  `lock` is granted on the retry lane; the
 * caller frees it.  TL_SUCCEEDED, TL_FAILED: the trade is ended.  TL_IN_DOUBT, TL_QUEUED: it was
 * put back.  TL_PARKED: it waits for a person.  TL_LOST: somebody else has it.  After any other
 * answer the lane opens again when the hold is over.
 */
tl_status compensate(tl_client *client, const workflow *of, tl_lock *lock, compensate_calls *calls);

/* Puts a claimed trade back for which nothing was begun, due as it was.  That is no attempt. */
tl_status compensate_give_back(tl_lock *lock);

/* Whether so many claims ended with their holder's death that the trade is to be parked.  Another
 * trade may have caused the first death, so it takes `poison` more. */
int compensate_is_poison(uint32_t claims, unsigned poison);

#endif
