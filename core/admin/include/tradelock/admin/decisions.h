/*
 * admin/decisions.h - what two operators decide about a trade that no rule can decide.
 */
#ifndef TRADELOCK_ADMIN_DECISIONS_H
#define TRADELOCK_ADMIN_DECISIONS_H

#include <tradelock/lane.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tl_resolution {
    unsigned version; /* TL_RESOLUTION_VERSION */
    tl_key key;
    uint64_t fence; /* of the sync row, as it was seen */
    tl_decision decision;
    const char *actor, *reason; /* mandatory; for the record, and for no customer */
    /* The confirmation of a failure: it is to be booked although the channel calls the payment
     * pending. */
    int although_pending;
} tl_resolution;

#define TL_RESOLUTION_VERSION 2u
#define TL_RESOLUTION_INIT TL_INITIAL(tl_resolution, TL_RESOLUTION_VERSION)

/*
 * One operator proposes, another confirms: two accounts of the database, told apart by the server
 * (sql/schema/0004_resolution.sql).  Both are bound to the row that they saw: when its fence or
 * revision has moved since, TL_LOST and nothing happens.  Repeating either is harmless, and a
 * proposal that nobody confirms changes nothing, ever.
 *
 * The confirmation raises the fence and clears the conflict, or makes the retry lane due: then
 * whoever has the workflow registered carries the decision out, with the business rows in the
 * transaction that ends the trade.  Nothing is sent for it any more.  A channel that can be asked
 * is asked before a failure is booked: one that it paid becomes Y, and of one that it calls pending
 * the decision is not carried out (tl_resolution_refuse()).
 *
 * TL_OK.  TL_LOST.  TL_NOT_FOUND: no such trade, or nothing proposed.  TL_REFUSED: the row
 * is not one that this can be decided of, or this account has proposed it itself.  TL_BUSY:
 * somebody holds it, may still send, or has proposed it already.  TL_ALREADY_DONE: it
 * succeeded, and nobody turns that into anything.  TL_FAILED: it failed already.
 * TL_EVIDENCE: evidence says that money moved.  TL_CUSTOMER_BUSY: another trade of an
 * exclusive customer is in process.  TL_UNKNOWN: the same call finds out.
 */
TL_EXPORT tl_status tl_resolution_propose(tl_client *client, const tl_resolution *resolution);
TL_EXPORT tl_status tl_resolution_confirm(tl_client *client, const tl_resolution *resolution);

#ifdef __cplusplus
}
#endif
#endif
