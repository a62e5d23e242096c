/*
 * lane.h - what drives the retry lane.
 *
 * A worker claims due work, asks the channel, arms a send where one is allowed, and ends the trade
 * or puts it back.  Workflows bring such a worker (tl_worker_start); whoever writes another one
 * uses these calls.
 *
 *     tl_claim_due          handles of due trades, each granted
 *       ... ask the channel ...
 *     tl_lock_arm           before each send; then send, while tl_may_send() is true
 *     tl_lock_finish        when the outcome is known; else
 *     tl_lock_put_back      with what was found, and when to look again
 *     tl_lock_free
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_LANE_H
#define TRADELOCK_LANE_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Arms a send of a compensating attempt.  This is committed before the send leaves: it counts one
 * send more, and sets max_hold and send_until anew.
 *
 *     TL_OK            The send may go out, while tl_may_send() is true.
 *     TL_LOST          The lock had been taken over.  Send nothing.
 *     TL_EVIDENCE      Send nothing: a conflict, filed success, a tried cancel, a decision of
 *                      operators or the deadline forbids it.  The lock is still held.
 *     TL_ASK_CHANNEL   A restore is open.  Send nothing.  The lock is still held.
 *     TL_MISMATCH      The handle was made for another channel than the trade's row names.  Send
 *                      nothing.  The lock is still held.
 *     TL_OVERLOADED    Operators have paused the channel (layer.h), or no connection became free.
 *                      Send nothing.  The lock is still held.
 *     TL_UNKNOWN       The answer was lost.  Send nothing; the same call again, or an ending, finds
 *                      out.
 *
 * An ending as NOT_SENT or RETRY_LATER takes the last arming back.  If that was the only one of
 * this hold, send_until goes back too.
 */
TL_EXPORT tl_status tl_lock_arm(tl_lock *lock, int64_t max_hold_ms);

/* What a compensating attempt learned besides the outcome.  All 0: nothing. */
typedef struct tl_findings {
    int not_found_first; /* the first "no such payment" after send_until: the grace starts */
    int not_found_reset; /* the channel knew it after all */
    int seen_by_channel; /* the channel knows it: a later "no such payment" contradicts */
    int cancel_tried;    /* nothing is sent again in this epoch */
    int apply_failed;    /* the outcome on file could not be booked: by schedule all the same */
    int not_counted;     /* a restore, a pause or a lack of connections stopped it: no attempt */
    int due_as_before;   /* with not_counted, of a claim of tl_claim_due(): nothing was begun. The
                            trade keeps what it is suspected of and, with next_run_ms 0, its place
                            among those that are due */
} tl_findings;

/* tl_lock_finish() for the outcomes that open the lane, with findings (NULL: none).  Any answer of
 * tl_lock_finish(); TL_INVALID for SUCCESS and FAILURE. */
TL_EXPORT tl_status tl_lock_put_back(tl_lock *lock, const tl_ending *ending,
                                     const tl_findings *findings);
/* The same for event loops, as tl_lock_finish_submit(): until the completion the library owns the
 * findings, too. */
TL_EXPORT tl_status tl_lock_put_back_submit(tl_lock *lock, const tl_ending *ending,
                                            const tl_findings *findings, tl_done_fn done,
                                            void *context);

/* What is submitted with this handle is tried for so long, in place of the client's commit_ms; 0:
 * the client's again.  Not while a submitted call is under way. */
TL_EXPORT void tl_lock_submit_within(tl_lock *lock, int64_t budget_ms);

/* What tl_claim_due() claims. */
typedef struct tl_claim_options {
    unsigned version; /* TL_CLAIM_OPTIONS_VERSION */
    const char *op_code;
    int64_t max_hold_ms;
    /* 1: only suspects, during whose last hold the holder died; run them with nothing else in
     * flight. 0: only the others. */
    int suspects;
} tl_claim_options;

#define TL_CLAIM_OPTIONS_VERSION 1u
#define TL_CLAIM_OPTIONS_INIT TL_INITIAL(tl_claim_options, TL_CLAIM_OPTIONS_VERSION)
#define TL_CLAIM_MAX 64

/*
 * Claims due work of one operation, oldest first.  *count is how many handles there is room for, at
 * most TL_CLAIM_MAX, and becomes how many there are.  Each is granted on the retry lane, with its
 * view and payload; the caller ends and frees it.  Rows that others are claiming are skipped.
 *
 *     TL_OK        *count handles; 0 means that nothing is due.
 *     TL_UNKNOWN   Claims may have been made.  The next call finds out, and gives them.
 *
 * An error is never "nothing to do".
 */
TL_EXPORT tl_status tl_claim_due(tl_client *client, const tl_claim_options *options,
                                 tl_lock **locks, size_t *count);

/* 0: when the claimed row was read, nothing was on file about its trade, neither evidence nor a
 * half of a decision, so that its holder need not ask for them.  No decision is made while the lane
 * is held; and evidence of a success that comes later changes the row, which then refuses failures
 * and sends.  1: there is something, or it is not known. */
TL_EXPORT int tl_lock_on_file(const tl_lock *lock);

/* TL_OK: *due_ms is when the next row of this operation becomes due, in ms from now; 0 when one is
 * due, -1 when none waits.  For a worker's sleep and for "still waiting for" messages. */
TL_EXPORT tl_status tl_next_due_ms(tl_client *client, const char *op_code, int64_t *due_ms);

/* TL_OK: *due is whether a suspect of this operation is due, so that a worker knows for what to let
 * its threads become free. */
TL_EXPORT tl_status tl_suspects_due(tl_client *client, const char *op_code, int *due);

/* Due work of a retry lane that nobody claims. */
typedef struct tl_overdue {
    unsigned count;  /* compensating attempts, TL_OVERDUE_MAX at most */
    int64_t late_ms; /* how long the oldest of them has been due; 0: there is none */
} tl_overdue;

#define TL_OVERDUE_MAX 100

/* TL_OK: *overdue tells of the attempts of this operation that have been due for late_ms or longer,
 * and were not touched meanwhile; not of trades whose channel operators have paused.  One
 * statement. It looks at the TL_OVERDUE_MAX oldest, and at the 10,000 oldest while a channel is
 * paused. */
TL_EXPORT tl_status tl_lane_overdue(tl_client *client, const char *op_code, int64_t late_ms,
                                    tl_overdue *overdue);

/* The size of an operation code without the "_RETRY" of a retry lane; as long as the code itself:
 * it names none.  0 for NULL. */
TL_EXPORT size_t tl_business_op_size(const char *op_code);

/* Tells the operation codes that have rows, retry lanes ("..._RETRY") included, so that due work is
 * found which nobody serves.  each() returns 0 to go on. */
typedef int (*tl_operation_fn)(void *context, const char *op_code);
TL_EXPORT tl_status tl_operations(tl_client *client, tl_operation_fn each, void *context);

/* What a janitor's round did. */
typedef struct tl_reaped {
    uint64_t sessions; /* sessions that were ended */
    uint64_t opened;   /* trades given to their retry lanes */
    uint64_t freed;    /* holders of read-write locks */
    uint64_t blanked;  /* trades whose contents were kept for long enough */
} tl_reaped;

/*
 * The janitor's round, once: it ends sessions that were observed expired, opens the lanes of P rows
 * without a living holder, frees the dead holders of read-write locks, and blanks contents as the
 * setting payload_keep_ms says.  Any number may run at once.  Needs a service's account, since operators write no trades.  reaped may be NULL.
 *
 *     TL_OK   The round is complete.  After any error the next round goes on with what is left.
 */
TL_EXPORT tl_status tl_reap(tl_client *client, tl_reaped *reaped);

/* What two operators can decide together. */
typedef enum tl_decision {
    /* The conflict is cleared: the evidence was wrong, or is dealt with elsewhere. */
    TL_DECISION_CLEAR = 'C',
    /* A failure in conflict was paid after all: F -> Y, with sql_success. */
    TL_DECISION_PAID = 'Y',
    /* A trade in doubt failed: P -> F, proof TL_PROOF_OPERATORS, with sql_failure. */
    TL_DECISION_FAILED = 'F'
} tl_decision;

/* "clear", "paid", "failed"; "" for any other number. */
TL_EXPORT const char *tl_decision_name(tl_decision decision);

/* A half of a decision, as it is on record. */
typedef struct tl_resolution_row {
    uint64_t rev, fence; /* of the row that was decided about */
    uint32_t epoch;
    tl_decision decision;
    int confirms; /* 0: the proposal, 1: its confirmation */
    int own;      /* by the account that asks now */
    const char *reason, *actor, *account;
    int64_t decided_us;
    int refused; /* 1: neither half; a worker did not carry out what was confirmed */
    int although_pending;
    int stands;      /* a proposal about the trade as it is: another operator may confirm it */
    uint64_t act_no; /* of the act of many trades that it is a row of; 0: none */
} tl_resolution_row;

/* Called once for each of them; returns 0 to go on. */
typedef int (*tl_resolution_fn)(void *context, const tl_resolution_row *row);
/* Shows the proposals and confirmations of a trade, in the order of its revisions; a refusal
 * follows what it refuses.  TL_OK also when there are none. */
TL_EXPORT tl_status tl_resolution_list(tl_client *client, const tl_key *key, tl_resolution_fn each,
                                       void *context);

/*
 * For whoever carries decisions out: puts on record that the failure decided about this revision is
 * not booked, since the channel says that the payment lives.  This ends the decision.
 *
 *     TL_OK        It is on record.  Repeating it is harmless.
 *     TL_UNKNOWN   The answer was lost.  Repeat it.
 */
TL_EXPORT tl_status tl_resolution_refuse(tl_client *client, const tl_key *key, uint64_t rev,
                                         const char *reason);

/* When the last restore was accepted, as this client's last look has it; 0 for never.  A failure
 * that is older may have been tried anew in what was lost. */
TL_EXPORT int64_t tl_restore_accepted_us(const tl_client *client);

#ifdef __cplusplus
}
#endif
#endif
