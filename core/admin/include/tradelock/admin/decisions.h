/*
 * admin/decisions.h - what two operators decide about a trade that no rule can decide.
 *
 * One operator proposes, another confirms: two accounts of the database, told apart by the server
 * (sql/object/operator.sql).  A proposal that nobody confirms changes nothing, ever.
 *
 * The confirmation raises the fence, and clears the conflict or makes the retry lane due.  Then
 * whoever has the workflow registered carries the decision out, with the business rows in the
 * transaction that ends the trade.  Nothing is sent for it any more.
 *
 * A channel that can be asked is asked before a failure is booked.  What it paid becomes Y.  What
 * it calls pending is not booked (tl_resolution_refuse()), unless the confirmation said
 * although_pending.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_DECISIONS_H
#define TRADELOCK_ADMIN_DECISIONS_H

#include <tradelock/lane.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an operator proposes or confirms. */
typedef struct tl_resolution {
    unsigned version; /* TL_RESOLUTION_VERSION */
    tl_key key;
    uint64_t fence; /* of the sync row, as it was seen */
    tl_decision decision;
    const char *actor, *reason; /* mandatory; for the record, and for no customer */
    /* Confirming a failure: book it although the channel calls the payment pending. */
    int although_pending;
} tl_resolution;

#define TL_RESOLUTION_VERSION 1u
#define TL_FORGET_NAME 32
#define TL_RESOLUTION_INIT TL_INITIAL(tl_resolution, TL_RESOLUTION_VERSION)

/*
 * Proposes a decision, or confirms one.  Each half is bound to the row that its operator saw, and
 * may be repeated without harm.  Needs an operator's account.
 *
 *     TL_OK              This half is on record; a confirmation is carried out by a worker.
 *     TL_LOST            The row's fence or revision has moved since.  Nothing happened.
 *     TL_NOT_FOUND       There is no such trade, or nothing was proposed of this fence.
 *     TL_REFUSED         This cannot be decided of this row, or this account proposed it itself.
 *     TL_BUSY            Somebody holds the trade, may still send for it, or has proposed already.
 *     TL_ALREADY_DONE    The trade succeeded, which is final.
 *     TL_FAILED          The trade failed already.
 *     TL_EVIDENCE        A failure: evidence says that money moved.  A worker ends it as paid.
 *     TL_CUSTOMER_BUSY   Another trade of an exclusive customer is in process; confirm after it.
 *     TL_UNKNOWN         The answer was lost.  The same call again finds out.
 */
TL_EXPORT tl_status tl_resolution_propose(tl_client *client, const tl_resolution *resolution);
TL_EXPORT tl_status tl_resolution_confirm(tl_client *client, const tl_resolution *resolution);

/* What of a customer was seen, or forgotten. */
typedef struct tl_forgotten {
    char name[TL_FORGET_NAME + 1]; /* what acts call the customer, whose number they do not keep */
    uint64_t trades;               /* which the customer has */
    uint64_t blanked;              /* of these, by this call */
} tl_forgotten;

/*
 * Proposes to forget what a customer's trades hold of a person, or confirms that, as another account
 * within seven days: payload, result, label, trace context, remarks and reasons are blanked of all that
 * had ended when it was proposed.  Money, references, fingerprints, moments and accounts stay, and an
 * ask for such a trade is answered as before.  Both leave an act.  A confirmation that broke off goes
 * on when it is called again.  Needs an operator's account; forgotten may be NULL.
 *
 *     TL_OK          It is on record; confirmed, all is blanked.
 *     TL_NOT_FOUND   The customer has no trade, or nobody has proposed it.
 *     TL_REFUSED     A trade is in process, parked, in conflict or may be tried anew, or this account
 *                    proposed it itself.
 *     TL_INVALID     The reason names the customer.
 */
TL_EXPORT tl_status tl_forget_propose(tl_client *client, const char *cust_no, const char *actor,
                                      const char *reason, tl_forgotten *forgotten);
TL_EXPORT tl_status tl_forget_confirm(tl_client *client, const char *cust_no, const char *actor,
                                      const char *reason, tl_forgotten *forgotten);

#ifdef __cplusplus
}
#endif
#endif
