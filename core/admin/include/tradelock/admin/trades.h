/*
 * admin/trades.h - trades, listed and told step by step; a waiting one made due.
 */
#ifndef TRADELOCK_ADMIN_TRADES_H
#define TRADELOCK_ADMIN_TRADES_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tl_filter {
    unsigned version; /* TL_FILTER_VERSION */
    char lane;        /* 'S', 'R'; 0: both */
    char status;      /* 'P', 'F', 'Y'; 0: all */
    const char *op;   /* business operation; its retry rows too unless lane says S */
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

TL_EXPORT tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each,
                            void *context);

/* One committed step of a row: its last one, or one of those before, which no application account
 * can alter. */
typedef struct tl_step {
    const char *op_code, *step, *thread_no, *log_no, *session_id, *parked, *channel_key;
    const char *channel_ref, *remark, *actor, *account;
    char status, proof;
    uint64_t rev, fence;
    uint32_t epoch, attempts, claims, sends;
    int conflict;
    int64_t logged_us, send_until_us, max_hold_until_us, next_run_us; /* 0: none */
} tl_step;

typedef int (*tl_step_fn)(void *context, const tl_step *step);
/* Both lanes, oldest first.  Needs an operator's or reader's account. */
TL_EXPORT tl_status tl_timeline(tl_client *client, const tl_key *key, tl_step_fn each,
                                void *context);

/* Makes a waiting or parked lane due now; parking is lifted.  Bound to the fence that was seen:
 * TL_LOST when the trade has moved on since.  The reason goes on record. */
TL_EXPORT tl_status tl_retry_now(tl_client *client, const tl_key *key, uint64_t fence,
                                 const char *actor, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
