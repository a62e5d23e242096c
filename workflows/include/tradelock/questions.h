/*
 * questions.h - what became of a trade, for whoever shows it to its customer.
 *
 * Questions only read.  They need no session and no registered workflow: a web front opens a client
 * with TL_CLIENT_NO_SESSION and makes a registry on it.  Its account needs SELECT on trade_lock,
 * trade_lock_state, tl_session, tl_schema and tl_restore, and EXECUTE on tl_restored and
 * tl_identity, which only read; the roles of sql/grants.sql have all that.
 *
 * A question answers about any trade whose key it is given.  That the one who asks is its customer
 * is for the service to know.
 */
#ifndef TRADELOCK_QUESTIONS_H
#define TRADELOCK_QUESTIONS_H

#include <tradelock/workflow.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A trade, as a front shows it. */
typedef struct tl_trade {
    unsigned version; /* TL_TRADE_VERSION, set by the caller */
    /* TL_SUCCEEDED, TL_FAILED, TL_IN_DOUBT, TL_QUEUED, TL_PARKED, TL_BUSY (an attempt is under
     * way), TL_IN_CONFLICT; each as tl_workflow_run() has it. */
    tl_status status;
    char serial_no[TL_SERIAL_MAX + 1];
    char cust_no[TL_CUST_MAX + 1];
    char op_code[TL_OP_MAX + 1];
    uint32_t epoch, sends, attempts; /* attempts: compensating ones, of this epoch */
    tl_proof proof;                  /* TL_FAILED: why it is certain */
    int retryable;                   /* TL_FAILED: request.reclaim_epoch = epoch may try it anew */
    int64_t next_look_ms;            /* TL_IN_DOUBT, TL_QUEUED: about when; 0: not known, or now */
    int64_t created_us, updated_us, now_us; /* now_us: when it was read */
    int64_t amount_minor;                   /* as the request told them; currency "": it did not */
    char currency[TL_CURRENCY + 1];
    char batch[TL_BATCH_MAX + 1], traceparent[TL_TRACEPARENT + 1], label[TL_LABEL_MAX + 1];
    char channel[TL_CHANNEL_MAX + 1];
    char channel_ref[TL_REF_MAX + 1];
    char remark[TL_REMARK_MAX + 1]; /* the reason: a decline's code and text, and the like */
    char parked[64];                /* TL_PARKED: why */
    size_t result_size;
    unsigned char result[TL_RESULT_MAX]; /* TL_SUCCEEDED: as the workflow replied */
} tl_trade;

#define TL_TRADE_VERSION 1u
#ifdef __cplusplus
inline tl_trade tl_trade_initial()
{
    tl_trade trade = tl_initial<tl_trade>(TL_TRADE_VERSION);
    trade.proof = TL_PROOF_NONE;
    return trade;
}
#define TL_TRADE_INIT tl_trade_initial()
#else
#define TL_TRADE_INIT {.version = TL_TRADE_VERSION, .proof = TL_PROOF_NONE}
#endif

/*
 * Looks at one trade: one statement by its key, which locks nothing.  Returns trade->status, or
 *
 *     TL_NOT_FOUND   There is no such trade.
 *     TL_INVALID     Registry, key or trade is missing or wrong.
 *
 * or what any look at the database may answer.  The trade is filled in only if it was read.
 */
TL_EXPORT tl_status tl_workflow_look(tl_workflows *workflows, const tl_key *key, tl_trade *trade);

/*
 * Waits until the trade has ended, at most wait_ms, and returns as tl_workflow_look(): what it was
 * when it was last read.  So a web request that waits three seconds for a trade in doubt hears
 * TL_SUCCEEDED or TL_FAILED if it ends by then, else TL_IN_DOUBT.  The wait is also over when a
 * person has to decide (TL_PARKED, TL_IN_CONFLICT).  A trade that is not there is waited for, too,
 * and wait_ms 0 looks once.
 *
 * A connection that is cut, or a server that restarts, is waited for as well.  If the last read of
 * the trade failed when wait_ms is over, the answer is why (TL_UNREACHABLE and the like), and
 * nothing is known; errors that no waiting mends (TL_ACCESS_DENIED) end it at once.
 *
 * All who wait on a registry share reads, on a thread that the first of them has made: every
 * 100 ms, 64 trades in one statement by key, each trade once, however many wait for it.  Of more
 * than 640 trades it reads less often, so that a process makes at most 100 statements a second;
 * while nobody waits it makes none.  An outcome is heard of so much later.
 *
 * A server that falls silent prolongs no wait: the answer is what was read last, or TL_UNREACHABLE
 * if nothing was.  A wait below a second goes on for a second until its trade was read once.
 * tl_workflows_free() may wait for the read under way, until that connection's own time-out.
 */
TL_EXPORT tl_status tl_workflow_await(tl_workflows *workflows, const tl_key *key, int64_t wait_ms,
                                      tl_trade *trade);

/* Which trades a list shows: those of a customer, or of a batch, or those of both. */
typedef struct tl_trades {
    unsigned version;    /* TL_TRADES_VERSION */
    const char *cust_no; /* or NULL */
    const char *batch;   /* or NULL; not both NULL */
    const char *op_code; /* a business operation; NULL: all */
    unsigned limit;      /* of a page; 0: 100 */
    const char *after;   /* the page before's `next`; NULL or "": the first page */
} tl_trades;

#define TL_TRADES_VERSION 1u
#define TL_TRADES_INIT TL_INITIAL(tl_trades, TL_TRADES_VERSION)
#define TL_TRADES_NEXT 640

/* Returns 0 to go on.  The trade lives until it returns. */
typedef int (*tl_trade_fn)(void *context, const tl_trade *trade);

/*
 * Shows a page of trades: those of a customer that are open first, then the others, each the
 * highest serial number first; those of a batch all by serial number.  Pages are read by an index.
 * next takes TL_TRADES_NEXT bytes: "" after the last page, else what `after` of the next one is.
 * It holds a customer's and a serial number, in printable ASCII that needs no quotes in a URL.  A
 * trade is shown once, unless it ends between two pages.
 *
 *     TL_OK        each() was called for each trade, maybe for none.  next is set.
 *     TL_INVALID   Something is missing or wrong; `after` is of another list.
 */
TL_EXPORT tl_status tl_workflow_list(tl_workflows *workflows, const tl_trades *which,
                                     tl_trade_fn each, void *context, char *next);

/* Trades of a batch with one status, and their money in one currency. */
typedef struct tl_batch_sum {
    tl_status status; /* as in tl_trade */
    uint64_t trades;
    char currency[TL_CURRENCY + 1]; /* "": these told no amount */
    char sum_minor[40];             /* digits, since it may be beyond INT64_MAX */
} tl_batch_sum;

typedef int (*tl_sum_fn)(void *context, const tl_batch_sum *sum);

/* What a batch comes to. */
typedef struct tl_batch_total {
    unsigned version; /* TL_BATCH_TOTAL_VERSION, set by the caller */
    uint64_t trades, succeeded, failed, open;
    int complete; /* none is open: each has succeeded, or failed without a conflict */
} tl_batch_total;

#define TL_BATCH_TOTAL_VERSION 1u
#define TL_BATCH_TOTAL_INIT TL_INITIAL(tl_batch_total, TL_BATCH_TOTAL_VERSION)

/*
 * Counts a batch, and its money by status and currency.  It reads each trade once, in pages, so
 * that it costs as many statements as a list of the whole batch.  each may be NULL.  A trade that
 * has succeeded, and that evidence contradicts, is one that operators have to look at: it counts as
 * succeeded, and as open.
 *
 *     TL_OK          total is set, and each() was called for each sum.
 *     TL_NOT_FOUND   No trade names this batch.
 */
TL_EXPORT tl_status tl_workflow_batch(tl_workflows *workflows, const char *batch,
                                      tl_batch_total *total, tl_sum_fn each, void *context);

#ifdef __cplusplus
}
#endif
#endif
