/*
 * lane.h - what drives the retry lane: claiming due work, arming a send, putting a trade back.
 */
#ifndef TRADELOCK_LANE_H
#define TRADELOCK_LANE_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The committed step before a compensating attempt sends: sends + 1, a new max_hold and
 * send_until.  TL_OK: the send may go out (while tl_may_send()).  TL_LOST.  TL_EVIDENCE:
 * conflict, success evidence, a tried cancel, what operators decided or the deadline forbid it;
 * still held.  TL_UNKNOWN: nothing may be sent; the same call again, or an ending, finds out.
 * An ending as NOT_SENT or RETRY_LATER takes the last arming back, and with the only one of
 * this hold what it added to send_until. */
TL_EXPORT tl_status tl_lock_arm(tl_lock *lock, int64_t max_hold_ms);

/* What a compensating attempt learned besides the outcome; with tl_lock_put_back(). */
typedef struct tl_findings {
    int not_found_first; /* "no such payment" after send_until: the grace starts */
    int not_found_reset; /* the channel knew it after all */
    int seen_by_channel; /* a later "no such payment" contradicts */
    int cancel_tried;    /* nothing is sent again in this epoch */
    int apply_failed;    /* a database callback failed: by schedule, whatever is on file */
    int not_counted;     /* TL_ASK_CHANNEL let it do nothing: it is no attempt */
} tl_findings;

/* tl_lock_finish() for the outcomes that open the lane, with findings. */
TL_EXPORT tl_status tl_lock_put_back(tl_lock *lock, const tl_ending *ending,
                                     const tl_findings *findings);

typedef struct tl_claim_options {
    unsigned version; /* TL_CLAIM_OPTIONS_VERSION */
    const char *op_code;
    int64_t max_hold_ms;
    /* 1: only rows whose last holder died at them, to be run with nothing else in flight; 0: only
     * the others. */
    int suspects;
} tl_claim_options;

#define TL_CLAIM_OPTIONS_VERSION 1u
#define TL_CLAIM_OPTIONS_INIT TL_INITIAL(tl_claim_options, TL_CLAIM_OPTIONS_VERSION)
#define TL_CLAIM_MAX 64

/*
 * Claims due work of one operation, oldest first: at most *count handles (at most TL_CLAIM_MAX),
 * each TL_GRANTED on the retry lane with its view and payload.  *count becomes how many there are.
 * TL_OK with 0: nothing is due.  Rows that others are at are stepped over.  An error is never
 * "nothing to do".  TL_UNKNOWN: claims may have been made; the next call finds out and gives them.
 */
TL_EXPORT tl_status tl_claim_due(tl_client *client, const tl_claim_options *options,
                                 tl_lock **locks, size_t *count);

/* When the next row of this operation becomes due: ms from now, 0 when one is due, -1 when none
 * waits.  For a worker's sleep and for "still waiting for" messages. */
TL_EXPORT tl_status tl_next_due_ms(tl_client *client, const char *op_code, int64_t *due_ms);

/* What stands in a retry lane and nobody claims. */
typedef struct tl_overdue {
    unsigned count;  /* compensating attempts, TL_OVERDUE_MAX at most */
    int64_t late_ms; /* how long the oldest of them has been due; 0: there is none */
} tl_overdue;

#define TL_OVERDUE_MAX 100

/* Attempts of this operation that have been due for late_ms or longer. */
TL_EXPORT tl_status tl_lane_overdue(tl_client *client, const char *op_code, int64_t late_ms,
                                    tl_overdue *overdue);

/* The operation codes that have rows, retry lanes included; for those who look for due work that
 * nobody serves. */
typedef int (*tl_operation_fn)(void *context, const char *op_code);
TL_EXPORT tl_status tl_operations(tl_client *client, tl_operation_fn each, void *context);

/* The janitor's round, once: ends sessions that were observed expired, opens the lanes of P rows
 * without a living holder, frees the dead holders of read-write locks.  Any number may run at once.
 * Needs a service's account: operators write no trades. */
typedef struct tl_reaped {
    uint64_t sessions, opened, freed;
} tl_reaped;
TL_EXPORT tl_status tl_reap(tl_client *client, tl_reaped *reaped);

/* What two operators can decide together. */
typedef enum tl_decision {
    /* The conflict is cleared: the evidence was wrong, or is dealt with elsewhere. */
    TL_DECISION_CLEAR = 'C',
    /* A failure in conflict was paid after all: F -> Y, with apply_success. */
    TL_DECISION_PAID = 'Y',
    /* A trade in doubt failed: P -> F, proof TL_PROOF_OPERATORS, with apply_failure. */
    TL_DECISION_FAILED = 'F'
} tl_decision;

/* "clear", "paid", "failed"; "" for any other number. */
TL_EXPORT const char *tl_decision_name(tl_decision decision);

typedef struct tl_resolution_row {
    uint64_t rev, fence; /* of the row that was decided about */
    uint32_t epoch;
    tl_decision decision;
    int confirms; /* 0: the proposal, 1: its confirmation */
    int own;      /* by the account that asks now */
    const char *reason, *actor, *account;
    int64_t decided_us;
    int refused; /* neither: a worker did not carry out what was confirmed */
    int although_pending;
} tl_resolution_row;

/* Proposals and confirmations of a trade, in the order of its revisions; a refusal follows what it
 * refuses. */
typedef int (*tl_resolution_fn)(void *context, const tl_resolution_row *row);
TL_EXPORT tl_status tl_resolution_list(tl_client *client, const tl_key *key, tl_resolution_fn each,
                                       void *context);

/* For whoever carries decisions out: the failure that was decided about this revision is not
 * booked, since the channel says that the payment lives.  The decision is over with that; repeating
 * it is harmless. */
TL_EXPORT tl_status tl_resolution_refuse(tl_client *client, const tl_key *key, uint64_t rev,
                                         const char *reason);

/* When the last restore was accepted, as this client's last look has it: microseconds by the
 * server's clock, 0 for never.  A failure that is older may have been tried anew in what was
 * lost. */
TL_EXPORT int64_t tl_restore_accepted_us(const tl_client *client);

#ifdef __cplusplus
}
#endif
#endif
