/*
 * The simulated channel itself: which keys it knows, what was paid, declined, accepted and
 * cancelled.  It decides under one mutex and writes each decision to the ledger; its whole state is
 * rebuilt from there.  It knows nothing of HTTP and injects no faults: a caller that wants one says
 * how a payment is to be taken (struct pay_way).
 *
 * A verdict may be told to a client only after channel_durable() said yes to its seq.
 */
#ifndef SIM_CHANNEL_H
#define SIM_CHANNEL_H

#include "order.h"
#include "problem.h"
#include "record.h"
#include "sim_time.h"

#include <stdint.h>

enum channel_kind {
    KIND_IDEMPOTENT, /* a key replays its first answer for ever */
    KIND_WINDOW,     /* ... for window_ms after its first send, then it pays again */
    KIND_PLAIN       /* every send pays again */
};

const char *kind_name(enum channel_kind kind);
bool kind_find(const char *name, enum channel_kind *kind);

enum endpoint { ENDPOINT_PAY, ENDPOINT_QUERY, ENDPOINT_CANCEL };
#define ENDPOINT_COUNT 3
/* "pay", "query", "cancel" */
const char *endpoint_name(enum endpoint endpoint);

enum outcome {
    OUTCOME_NONE,
    OUTCOME_SUCCEEDED,
    OUTCOME_DECLINED,
    OUTCOME_ACCEPTED,    /* to be settled later; a query calls it pending */
    OUTCOME_IN_PROGRESS, /* an earlier send under this key is still being worked on */
    OUTCOME_MISMATCH,    /* code: the field that differs */
    OUTCOME_NOT_FOUND,
    OUTCOME_CANCELLED,
    OUTCOME_ALREADY_DONE,
    OUTCOME_COUNT
};

struct verdict {
    enum outcome outcome;
    int64_t seq; /* durable before this may be told; 0: nothing to wait for */
    int64_t amount_minor;
    char channel_ref[REF_MAX + 1];
    char code[CODE_MAX + 1];
    char reason[REASON_MAX + 1];
    bool as_asked;        /* pay: the way asked for was taken, not a replay or refusal */
    int64_t accepted_seq; /* pay, accepted now: the name of what will be settled */
    int64_t payments;     /* query: how often this key was paid */
    int64_t age_ms;       /* query: since the first record of this key */
    int told;             /* query: the most that a client was told before, TOLD_... */
};

/* How a new payment is taken.  All zero: paid at once. */
struct pay_way {
    bool later;   /* settled settle_ms from now instead of at once */
    bool replied; /* later: the client is told "accepted" now */
    int64_t settle_ms;
    const char *code; /* declined with this code and reason instead of paid */
    const char *reason;
};

/* What clients were told about a key, so that chance faults do not contradict it. */
enum { TOLD_NOTHING, TOLD_KNOWN, TOLD_FINAL };

struct channel_counts {
    int64_t payments, declines, cancels, accepted_open, keys;
    int64_t trades_paid; /* distinct (serial_no, cust_no) */
    int64_t paid_twice;  /* of these, how many were paid more than once */
    int64_t last_seq;    /* of the last record counted here */
};

struct channel;

struct channel *channel_open(const char *ledger_path, enum channel_kind kind, int64_t window_ms,
                             struct stop_signal *stop, struct problem *problem);
/* Wakes everybody who waits for a settlement; they return false. */
void channel_stop(struct channel *channel);
/* Accepted payments that are not due stay in the ledger.  Accepts NULL. Needs: channel_stop() was
 * called, no other call is running. */
void channel_close(struct channel *channel);

/* Counts a request: which one is it at this endpoint with this key, from 1.  Fills in the serial
 * and customer when the key is known, else leaves them empty. */
int64_t channel_count_request(struct channel *channel, enum endpoint endpoint,
                              const char *channel_key, char serial_no[ORDER_NAME_MAX + 1],
                              char cust_no[ORDER_NAME_MAX + 1]);

/* The name of the first field in which this send differs from the first one of its key since the
 * start, also one that was lost; "" when there is none. */
const char *channel_differs(struct channel *channel, const struct order *order);

void channel_pay(struct channel *channel, const struct order *order, const struct pay_way *way,
                 struct verdict *verdict);
/* Waits for the settling of what was accepted without telling the client.  Changes the verdict to
 * the final one; false when the program stops before. */
bool channel_settled(struct channel *channel, struct verdict *verdict);
void channel_query(struct channel *channel, const char *channel_key, struct verdict *verdict);
void channel_cancel(struct channel *channel, const char *channel_key, struct verdict *verdict);

/* Notes what a client was told about the key. */
void channel_told(struct channel *channel, const char *channel_key, int told);

/* Waits until the record is durable.  False when the ledger cannot be written any more: the program
 * was told to stop, and nothing may be answered. */
bool channel_durable(struct channel *channel, int64_t seq);
void channel_count(struct channel *channel, struct channel_counts *counts);

struct ledger *channel_ledger(struct channel *channel);

#endif
