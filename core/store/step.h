/*
 * One step of one trade, as data: what a transition wants to write, and what the server
 * said.  The store binds it to its statement; it decides nothing.
 */
#ifndef TL_STORE_STEP_H
#define TL_STORE_STEP_H

#include "base/life.h"

#include <tradelock/lane.h>

struct db_result;

#define STEP_TOKEN 16
#define STEP_OP_SPACE (TL_OP_MAX + 1)

typedef enum step_kind {
    STEP_ASK,            /* sync row absent -> P */
    STEP_ASK_REPEATABLE, /* absent, finished or dead -> P; mutexes and standalone rows */
    STEP_RECLAIM,        /* F -> P, next epoch */
    STEP_FINISH_SYNC,    /* P -> Y or F, one row */
    STEP_FINISH_RETRY,   /* P -> Y or F, both rows */
    STEP_OPEN,           /* the holder gives back: P stays, retry row waiting or parked */
    STEP_RELEASE,        /* the same for a row without a retry lane */
    STEP_REAP,           /* an observer opens a dead holder's row */
    STEP_CLAIM,          /* waiting -> working, both rows */
    STEP_ARM,            /* one more send */
    STEP_CLOSE,          /* a retry row left open beside a finished trade */
    STEP_OPERATOR_RETRY, /* a person makes a waiting or parked lane due */
    STEP_KINDS
} step_kind;

typedef struct step {
    step_kind kind;

    /* The row.  op_code is the sync row's, or the standalone retry row's own. */
    const char *cust_no, *serial_no, *op_code;
    const char *retry_op; /* of the kinds that write both rows */

    /* Who does it: a fresh token for this step, and the hold it rests on. */
    uint8_t token[STEP_TOKEN];
    uint8_t held_token[STEP_TOKEN];
    uint64_t held_fence; /* REAP: the fence that was seen; ASK_REPEATABLE: of a dead holder */
    const char *thread_no, *log_no, *session_id;
    const life *life; /* of the session that asks, or that holds; NULL: no holder's step */

    /* What it writes; which fields count depends on the kind. */
    char lane, status; /* status: of the ending */
    uint32_t sends;
    int64_t max_hold_ms, deadline_ms; /* deadline_ms < 0: none */
    int64_t least_us, most_us;        /* of ARM: between which the server's clock must be */
    /* Of FINISH_RETRY: a failure that rests on moments of the row, and how many jumps of the
     * server's clock were known before the row was claimed. */
    int by_time;
    uint32_t clock_steps;
    int exclusive, retryable;
    int once; /* of FINISH_SYNC: a trade, and no mutex, which forgets its holder */
    uint32_t reclaim_epoch;
    uint64_t reclaim_fence; /* 0: any */
    int claim_as;           /* a step_claim */
    const char *new_log_no; /* of CLAIM: where neither the thread nor the trade has one */
    uint64_t override_fence;
    const unsigned char *fingerprint;
    const char *channel, *channel_key, *channel_ref, *remark, *actor;
    const void *payload, *result;
    size_t payload_size, result_size;
    int64_t amount_minor; /* of an ask, with the currency */
    const char *currency; /* NULL: not said */
    char proof;
    int64_t next_run_ms;            /* < 0: none */
    const char *park_reason, *name; /* name: the step's word in the log */
    int unsend, keep_claims;
    /* Of an opening that takes a send off: how many sends the row has if nobody else counted one,
     * and what send_until was before it, in us since 1970; 0: none.  known_sends 0: send_until
     * stays as it is. */
    uint32_t known_sends;
    uint64_t send_before_us;
    int in_caller; /* an ending in the caller's own transaction */
    tl_findings findings;

    /* CLAIM, RECLAIM: where the row goes as it is after the step, for view_read(), once that is
     * committed.  NULL: it is not read; so within a transaction. */
    struct db_result *row;

    /* What the server said. */
    int changed; /* the compare-and-set, or the insert, took effect */
    /* After ASK, ASK_REPEATABLE (RETURNING), ARM, and where the step knew it before or has a row;
     * 0: it has to be read. */
    uint64_t fence;
    uint32_t epoch;
} step;

/* By whom a waiting row is claimed: who may take parked ones, and not yet due ones. */
enum step_claim { CLAIM_BY_KEY = 0, CLAIM_OVERRIDE = 1, CLAIM_BATCH = 2 };

/* Whether an answer that was lost and turns out committed still needs a living P: asks, claims and
 * armings, whose value is what may be done after them. */
int step_is_grant(step_kind kind);
/* An ending, or an arming: it rests on a hold. */
int step_is_holders(step_kind kind);
/* Of ASK and FINISH_SYNC of a trade: nothing is told but key, hold, fingerprint and payload, of
 * what may be sent at once, or success; so the short form of the statement will do. */
int step_is_short(const step *s);
/* What an opening makes of the first "no such payment": 1 set, 2 cleared, 0 kept. */
int step_not_found(const step *s);
/* After a RECLAIM: whoever named the fence knows the one that was written. */
void step_know_reclaim(step *s);
const char *step_name(step_kind kind);

#endif
