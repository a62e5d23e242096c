/*
 * One step of one trade, as data: what is to be written, and what the server said.  The store binds
 * it to its statement, and decides nothing.
 */
#ifndef TL_STORE_STEP_H
#define TL_STORE_STEP_H

#include "base/life.h"

#include <tradelock/lane.h>

struct db_result;

#define STEP_TOKEN 16
#define STEP_NEVER_MS INT64_MIN

/*
 * The steps of a trade.  A grant counts, if its answer was lost and it turns out to be committed,
 * only while the row is P under a living session: its value is what may be done after it.  A
 * holder's step rests on a hold.  WHOLE: no commit that was answered may be missing on the server.
 *
 *     kind, word in the history, from, to, statement alone, what holds, with whom it shares one
 */
#define STEP_KIND_MAP(X)                                                                           \
    X(ASK, "ask", "no sync row", "P", ask_insert, GRANT | WHOLE, ROWS)                             \
    X(ASK_REPEATABLE, "ask", "none, ended or dead", "P", ask_repeatable, GRANT, ROWS)              \
    X(RECLAIM, "reclaim", "F", "P, next epoch", reclaim, GRANT | WHOLE, RECLAIMS)                  \
    X(FINISH_SYNC, "end", "P", "Y or F", finish_sync, HOLDERS | ENDS, ROWS)                        \
    X(FINISH_RETRY, "end", "P, retry row P", "both Y or F", finish_retry, HOLDERS | ENDS, ENDINGS) \
    X(OPEN, "open", "P", "P, retry row waits or is parked", open_now, HOLDERS, OPENINGS)           \
    X(RELEASE, "release", "P, no retry lane", "P, nobody's", open, HOLDERS, NOBODY)                \
    X(REAP, "reap", "P, holder dead", "P, retry row due", reap_now, 0, NOBODY)                     \
    X(CLAIM, "claim", "retry row due", "both P", claim, GRANT, CLAIMS)                             \
    X(ARM, "arm", "P", "P, one more send", arm, GRANT | HOLDERS | WHOLE, NOBODY)                   \
    X(CLOSE, "close", "retry row open, trade ended", "retry row ended", close_lane, 0, NOBODY)     \
    X(OPERATOR_RETRY, "operator", "retry row waits or is parked", "due", operator_retry, 0, NOBODY)

#define STEP_KIND_ENUM(kind, ...) STEP_##kind,
typedef enum step_kind { STEP_KIND_MAP(STEP_KIND_ENUM) STEP_KINDS } step_kind;

/* Only steps that share with the same may share a statement. */
typedef enum step_share {
    SHARE_ROWS,    /* asks that are not exclusive, and endings of one row */
    SHARE_ENDINGS, /* endings of both rows */
    SHARE_OPENINGS,
    SHARE_CLAIMS,   /* their rows are read as well (step.row) */
    SHARE_RECLAIMS, /* the same, if the caller named no fence */
    SHARES,
    SHARE_NOBODY = SHARES
} step_share;

struct sql_text;

typedef struct step_rule {
    const char *name;
    const struct sql_text *alone;
    int is_grant, is_holders, is_whole, ends;
    step_share share;
} step_rule;

const step_rule *step_rule_of(step_kind kind);

typedef struct step {
    step_kind kind;

    /* The row.  op_code is the sync row's, or the standalone retry row's own. */
    const char *cust_no, *serial_no, *op_code;
    const char *retry_op; /* for the kinds that write both rows */

    /* Who does it: a fresh token for this step, and the hold on which it rests. */
    uint8_t token[STEP_TOKEN];
    uint8_t held_token[STEP_TOKEN];
    uint64_t held_fence; /* REAP: the fence that was seen; ASK_REPEATABLE: that of a dead holder */
    const char *thread_no, *log_no, *session_id;
    const life *life; /* of the session that asks or holds; NULL: not a holder's step */

    /* What it writes; which fields count depends on the kind. */
    char lane, status; /* status: of the ending */
    uint32_t sends;
    int64_t max_hold_ms, deadline_ms; /* deadline_ms < 0: none */
    int64_t least_us, most_us;        /* of ARM: the server's clock must be between these */
    /* Of ARM: how many clock jumps its sender knows of.  Of FINISH_RETRY: how many were known
     * before the row was claimed.  by_time: a failure that rests on moments in the row. */
    uint32_t clock_jumps;
    int by_time;
    int exclusive, retryable;
    int once; /* of FINISH_SYNC: the row of a trade that happens once keeps its holder */
    uint32_t reclaim_epoch;
    uint64_t reclaim_fence; /* 0: any */
    int claim_as;           /* an enum step_claim */
    const char *new_log_no; /* of CLAIM: used if neither the thread nor the trade has one */
    uint64_t override_fence;
    const unsigned char *fingerprint;
    const char *channel, *channel_key, *channel_ref, *remark, *actor;
    const void *payload, *result;
    size_t payload_size, result_size;
    const tl_said *said; /* of an ask; NULL: nothing */
    char proof;
    int64_t next_run_ms;            /* from now; < 0: since when; STEP_NEVER_MS: none */
    const char *park_reason, *name; /* name: the step's word in the history */
    int unsend;
    enum { CLAIMS_CLEAR, CLAIMS_KEEP, CLAIMS_BEFORE_THIS } keep_claims; /* of an opening */
    /* Of an opening that takes a send back.  known_sends: how many sends the row has if nobody else
     * counted one; 0: send_until stays as it is.  send_before_us: send_until before that send, in
     * us since 1970; 0: there was none. */
    uint32_t known_sends;
    uint64_t send_before_us;
    /* Of an opening: the row's revision after it if nobody else wrote to the row since the grant;
     * 0: not known. */
    uint64_t known_rev;
    int in_caller;            /* an ending in the caller's own transaction */
    uint64_t act_no, act_row; /* of an operator's retry: a row of this act; 0: an act of its own */
    tl_findings findings;

    /* CLAIM, RECLAIM: the row after the step goes here, for view_read(), once the step is
     * committed. NULL, as within a transaction: the row is not read. */
    struct db_result *row;

    /* What the server said. */
    int changed; /* the compare-and-set, or the insert, took effect */
    int moves;   /* refused, since the customer's slot is being moved to another shard */
    /* Set after ASK, ASK_REPEATABLE (RETURNING) and ARM, and if the step knew it before or has a
     * row. 0: it has to be read. */
    uint64_t fence;
    uint32_t epoch;
} step;

/* Who claims a waiting row.  It decides whether parked rows, and rows that are not due, may be
 * taken. */
enum step_claim { CLAIM_BY_KEY = 0, CLAIM_OVERRIDE = 1, CLAIM_BATCH = 2 };

/* Whether an ending is a success of which nothing else is said: it has a short statement. */
int step_is_plain_success(const step *s);
/* What an opening makes of the first "no such payment": 1 set, 2 cleared, 0 kept. */
int step_not_found(const step *s);
/* After a RECLAIM: a caller that named the fence knows which one was written. */
void step_know_reclaim(step *s);
static inline const char *step_name(step_kind kind)
{
    return step_rule_of(kind)->name;
}
/* With whom this one shares a statement, by what it says as well. */
step_share step_shares(const step *s);

#endif
