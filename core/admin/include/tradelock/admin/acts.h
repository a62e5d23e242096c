/*
 * admin/acts.h - what operators did, on record; many trades at once.
 *
 * An act of many rows is begun, done row by row, and ended.  Each row is done under the fence that
 * was seen before, and on record in the transaction that does it; so an act that was stopped in the
 * middle tells what it did.  To repeat one, begin another with what is left.
 *
 * Acts are purged with trades of the same age (tl_purge()).  They need an operator's account, and
 * reading them an operator's or a reader's.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_ACTS_H
#define TRADELOCK_ADMIN_ACTS_H

#include <tradelock/admin/audit.h>
#include <tradelock/admin/decisions.h>
#include <tradelock/admin/trades.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What somebody is about to do.  The server adds the account and the moment. */
typedef struct tl_act {
    unsigned version;   /* TL_ACT_VERSION */
    const char *what;   /* a word or two, such as "retry"; at most 31 letters */
    const char *said;   /* what was asked for; at most 1023 bytes; NULL: nothing */
    const char *actor;  /* at most 63 bytes */
    const char *reason; /* at most 255 bytes; NULL: none, of "purge" and "audit" only */
    uint64_t planned;   /* how many rows it is about */
} tl_act;

#define TL_ACT_VERSION 1u
#define TL_ACT_INIT TL_INITIAL(tl_act, TL_ACT_VERSION)

/*
 * Begins an act; the server gives it a number.
 *
 *     TL_OK        *act_no is its number.
 *     TL_UNKNOWN   The answer was lost.  An act without rows may be on record; nothing was done.
 */
TL_EXPORT tl_status tl_act_begin(tl_client *client, const tl_act *act, uint64_t *act_no);

/* As tl_retry_now(), as row `row_no` (from 1) of the act.  What was left alone is on record too,
 * with the reason why. */
TL_EXPORT tl_status tl_act_retry(tl_client *client, uint64_t act_no, uint64_t row_no,
                                 const tl_key *key, uint64_t fence);

/*
 * As tl_resolution_propose(), or with `proposed_by` as tl_resolution_confirm(), as row `row_no` of the
 * act, which is "resolve propose" or "resolve confirm".  proposed_by: the act that proposed it, whose
 * proposal alone is confirmed; 0: it is a proposal.  What was left alone is on record too.
 */
TL_EXPORT tl_status tl_act_resolve(tl_client *client, uint64_t act_no, uint64_t row_no,
                                   const tl_resolution *resolution, uint64_t proposed_by);

/* A row of an act of proposals. */
typedef struct tl_proposed {
    uint64_t row_no, fence; /* of the trade, as it was seen */
    tl_key key;
    tl_decision decision;
    const char *reason, *account;
    int own;              /* by the account that asks now, which cannot confirm it */
    int stands;           /* the trade is as it was seen, and nobody has confirmed it */
    int confirmed;        /* somebody has */
    int64_t amount_minor; /* of the trade */
    const char *currency; /* "": it told no amount */
} tl_proposed;

typedef int (*tl_proposed_fn)(void *context, const tl_proposed *proposed);
/* Tells what the act proposed, each as it is now, in its order. */
TL_EXPORT tl_status tl_proposed_list(tl_client *client, uint64_t act_no, tl_proposed_fn each,
                                     void *context);

/* Ends the act.  counts: what it came to, as "filed=3 left=1"; may be NULL. */
TL_EXPORT tl_status tl_act_end(tl_client *client, uint64_t act_no, const char *counts);

/* An act without rows that is over: begun and ended. */
TL_EXPORT tl_status tl_act_note(tl_client *client, const tl_act *act, const char *counts);

/* As tl_evidence_add(), for a person: an act of its own. */
TL_EXPORT tl_status tl_evidence_file(tl_client *client, const tl_evidence *evidence,
                                     const char *actor);

/* TL_LOST, with the sentence who moved the trade on since this fence was seen, and how long ago. */
TL_EXPORT tl_status tl_moved_on(tl_client *client, const tl_key *key, uint64_t fence);

/* What the database has of a payment that a statement tells. */
typedef struct tl_payment_view {
    size_t number;        /* of the payment: 0 is the first */
    uint64_t fence;       /* of its trade; 0: there is no trade */
    char status;          /* of the trade; ' ' without one */
    uint32_t epoch;       /* of the trade: which payment of it is meant */
    int known;            /* it is the success of the trade, or the very same was filed before */
    int contradicts;      /* to file it sets the conflict, or has set it */
    int64_t amount_minor; /* of the trade */
    const char *currency; /* "": it told no amount; valid during the call */
} tl_payment_view;

typedef int (*tl_paid_fn)(void *context, const tl_payment_view *paid);

/* Tells of each payment what the database has; reads only, a few dozen payments at a time.  Each
 * payment names its op_code. */
TL_EXPORT tl_status tl_paid_list(tl_client *client, const tl_payment *payments, size_t count,
                                 tl_paid_fn each, void *context);

/* Finds the trades of payments whose cust_no is NULL, since the bank knows no customer: by channel
 * key; where none is told, by the channel's reference; else by serial number.  Of this channel, and
 * of the payment's operation, where those are told.  each() is called for every trade that fits:
 * one payment may fit several, or none.  Reads all trades in pages, which takes seconds where there
 * are a million. */
typedef int (*tl_payment_trade_fn)(void *context, size_t number, const tl_key *trade);
TL_EXPORT tl_status tl_payment_find(tl_client *client, const tl_payment *payments, size_t count,
                                    const char *channel, tl_payment_trade_fn each, void *context);

/* As tl_evidence_add(), as row `row_no` of the act, bound to what tl_paid_list() told of the payment.
 * TL_LOST: the trade has ended or begun another payment since, was made or is gone, and nothing was
 * filed.  One more attempt at the same payment is not in its way; nor is a decision about a trade in
 * process, which is overruled as by any evidence. */
TL_EXPORT tl_status tl_act_evidence(tl_client *client, uint64_t act_no, uint64_t row_no,
                                    const tl_evidence *evidence, const tl_payment_view *seen);

/* -------------------------------------------------------------------- reading -- */

/* Which acts are listed. */
typedef struct tl_act_filter {
    unsigned version;  /* TL_ACT_FILTER_VERSION */
    unsigned limit;    /* 0: 100 */
    int64_t since_us;  /* begun at this moment or later; 0: all */
    const char *by;    /* the name of an account, without the host; NULL: all */
    const char *after; /* the `next` of a list with the same filter, which goes on behind it */
} tl_act_filter;

#define TL_ACT_FILTER_VERSION 1u
#define TL_ACT_FILTER_INIT TL_INITIAL(tl_act_filter, TL_ACT_FILTER_VERSION)

/* One act.  No text is NULL. */
typedef struct tl_act_view {
    /* "retry", "evidence add", "resource unlock", "purge", "audit", "resolve propose",
     * "resolve confirm", "resolve refused" (by a worker), "audit close propose",
     * "audit close confirm", "restore declare", "restore found" (by a program),
     * "restore accept propose", "restore accept confirm", or what else was begun */
    const char *what, *said, *reason, *actor, *account, *counts;
    tl_key key; /* of an act about one trade; "" */
    uint64_t fence;
    uint64_t act_no; /* 0: it has no rows of its own */
    uint64_t planned, done, skipped;
    int64_t begun_us, ended_us; /* ended_us 0: under way, or stopped */
} tl_act_view;

typedef int (*tl_act_fn)(void *context, const tl_act_view *act);

/*
 * Lists acts, the latest first, from every table that tells one.  Each page is read by index, in
 * short statements; where `by` leaves few of many, many are looked at.  `next` is "" when there are
 * no more, else a place to go on from in TL_NEXT_TEXT bytes; NULL: nobody asks.
 */
TL_EXPORT tl_status tl_act_list(tl_client *client, const tl_act_filter *filter, tl_act_fn each,
                                void *context, char *next);

/* A row of an act. */
typedef struct tl_act_row {
    uint64_t row_no, fence;
    tl_key key;
    /* "done", of a retry; "filed", "conflict" or "made", of evidence; "proposed" or "confirmed"; or
     * why it was left alone: "moved on", "busy", "succeeded", "failed", "not found", "no lane",
     * "refused", "evidence", "customer busy" */
    const char *result;
    int64_t acted_us;
} tl_act_row;

typedef int (*tl_acted_fn)(void *context, const tl_act_row *row);

/* Tells the rows of an act behind `after_row` (0: from the first), at most `limit` (0: 100). */
TL_EXPORT tl_status tl_act_row_list(tl_client *client, uint64_t act_no, uint64_t after_row,
                                    unsigned limit, tl_acted_fn each, void *context);

#ifdef __cplusplus
}
#endif
#endif
