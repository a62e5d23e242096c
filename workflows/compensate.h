/* One compensating attempt, from the claim to its ending. */
#ifndef TL_WORKFLOWS_COMPENSATE_H
#define TL_WORKFLOWS_COMPENSATE_H

#include "registry.h"

typedef struct compensate_calls {
    unsigned queries, cancels, sends;
} compensate_calls;

typedef struct compensate_call {
    tl_client *client;
    tl_lock *lock; /* granted on the retry lane; over() frees it */
    const workflow *of;
    compensate_calls *calls; /* are added to before the ending is written */
    /* NULL: the ending is written before compensate() returns. */
    later *all;
    /*
     * Called once, on this thread or on one of the library, which it must not block.  TL_SUCCEEDED,
     * TL_FAILED: the trade is ended.  TL_IN_DOUBT, TL_QUEUED: it was put back.  TL_PARKED: it waits
     * for a person.  TL_LOST: somebody else has it.  After any other answer the lane opens again
     * when the hold is over.
     */
    void (*over)(void *context, tl_status status);
    /* With `all`: has item->run(item) called on a thread that may wait for the database. */
    void (*hand_back)(void *context, later_item *item);
    void *context;
} compensate_call;

/*
 * Brings a claimed trade as far as it can be brought now.  With `all` an ending is submitted, and
 * this does not wait for it, unless a callback with a connection writes its rows, or it cannot be
 * submitted.
 */
void compensate(const compensate_call *call);

/* Puts a claimed trade back for which nothing was begun, due as it was.  That is no attempt. */
tl_status compensate_give_back(tl_lock *lock);

/* Whether so many claims ended with their holder's death that the trade is to be parked.  Another
 * trade may have caused the first death, so it takes `poison` more. */
int compensate_is_poison(uint32_t claims, unsigned poison);

#endif
