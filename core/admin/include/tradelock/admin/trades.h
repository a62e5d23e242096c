/*
 * admin/trades.h - trades, listed and told step by step; a waiting one made due.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_TRADES_H
#define TRADELOCK_ADMIN_TRADES_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which rows a list shows: those that match every field that is given. */
typedef struct tl_filter {
    unsigned version; /* TL_FILTER_VERSION */
    char lane;        /* 'S', 'R'; 0: both */
    char status;      /* 'P', 'F', 'Y'; 0: all */
    const char *op;   /* business operation; its retry rows too, unless lane says S */
    const char *cust;
    const char *serial;
    int64_t older_ms; /* not changed for that long; 0: all */
    int parked, in_doubt, conflict;
    unsigned limit; /* 0: 100 */
    /* Rows of which a step was written under this log UUID; needs an operator's or reader's
     * account. */
    const char *log_uuid;
} tl_filter;

#define TL_FILTER_VERSION 1u
#define TL_FILTER_INIT TL_INITIAL(tl_filter, TL_FILTER_VERSION)

/* Shows rows, those in process first, so that a limit cuts off what nobody has to look at.  TL_OK
 * also when there are none. */
TL_EXPORT tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each,
                            void *context);

/* One committed step of a row: its last one, or one before it, which no application account can
 * alter.  A text may be NULL where the step says nothing. */
typedef struct tl_step {
    const char *op_code, *step, *thread_no, *log_no, *session_id, *parked, *channel_key;
    const char *channel_ref, *remark, *actor, *account;
    char status, proof;
    uint64_t rev, fence;
    uint32_t epoch, attempts, claims, sends;
    int conflict;
    int64_t logged_us, send_until_us, max_hold_until_us, next_run_us; /* 0: none */
    const char *holder; /* "program pid@host" of the session; NULL: none, or not kept any more */
} tl_step;

typedef int (*tl_step_fn)(void *context, const tl_step *step);

/* Tells the steps of both lanes, oldest first.  TL_OK also when there are none.  Needs an
 * operator's or a reader's account. */
TL_EXPORT tl_status tl_timeline(tl_client *client, const tl_key *key, tl_step_fn each,
                                void *context);

/*
 * Makes a waiting or parked lane due now, and lifts the parking.  Bound to the fence of the sync
 * row that was seen; actor and reason go on record.  Needs an operator's account.
 *
 *     TL_OK             It is due; a worker claims it.
 *     TL_LOST           The trade has moved on since: its fence is another.  Look again.
 *     TL_BUSY           Somebody holds it, or a transaction is deciding it.  No lane waits.
 *     TL_ALREADY_DONE   The trade succeeded.  Nothing is to be done.
 *     TL_FAILED         The trade failed, with proof.  Nothing is to be done.
 *     TL_NO_TRADE       This lock has no retry lane; ask for it again.
 *     TL_NOT_FOUND      There is no such trade.
 *     TL_UNKNOWN        The answer was lost.  Look at the trade; the same call again is harmless.
 */
TL_EXPORT tl_status tl_retry_now(tl_client *client, const tl_key *key, uint64_t fence,
                                 const char *actor, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
