/* One compensating attempt, from the claim to its ending. */
#ifndef TL_WORKFLOWS_COMPENSATE_H
#define TL_WORKFLOWS_COMPENSATE_H

#include "registry.h"

typedef struct compensate_calls {
    unsigned queries, cancels, sends;
} compensate_calls;

/*
 * Brings a claimed trade as far as it can be brought now.  `lock` is granted on the retry lane; the
 * caller frees it.  TL_SUCCEEDED, TL_FAILED, TL_IN_DOUBT, TL_QUEUED, TL_PARKED, TL_LOST; anything
 * else: the end of the hold opens the lane again.
 */
tl_status compensate(tl_client *client, const workflow *of, tl_lock *lock, compensate_calls *calls);

/* Deaths alone with a trade before it is parked: the first death may have been another trade's
 * doing, so a claim that follows `poison` more of them is one too many. */
int compensate_is_poison(uint32_t claims, unsigned poison);

#endif
