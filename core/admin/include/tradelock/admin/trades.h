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

/* Which rows a list shows: those that match every field that is given.  Moments are the server's,
 * in microseconds since 1970. */
typedef struct tl_filter {
    unsigned version; /* TL_FILTER_VERSION */
    char lane;        /* 'S', 'R'; 0: both */
    char status;      /* 'P', 'F', 'Y'; 0: all */
    const char *op;   /* business operation; its retry rows too, unless lane says S */
    const char *cust;
    const char *serial;
    int64_t older_ms; /* made that long ago, or longer; 0: all */
    int parked, in_doubt, conflict;
    unsigned limit; /* 0: 100 */
    /* Rows of which a step was written under this log UUID; needs an operator's or reader's
     * account. */
    const char *log_uuid;
    int64_t idle_ms;           /* not changed for that long, or longer; 0: all */
    const char *serial_prefix; /* serial numbers that begin with it; not together with serial */
    /* Of these a row on the retry lane has none; so both find sync rows alone. */
    const char *channel;
    const char *amount_over;    /* more than so much, as tl_amount_read() takes it; NULL: all */
    int64_t since_us, until_us; /* made at this moment or later; made before this one; 0: all */
    /* Rows as they were at this moment, by their history; 0: as they are.  Needs an operator's or
     * reader's account. */
    int64_t as_of_us;
    const char *after; /* the `next` of a list with the same filter, which goes on behind it */
    /* Stops after so many rows were looked at, or somewhat more, however few of them passed; 0:
     * looks at all.  `next` then names the last of them.  With in_doubt, held rows are then looked
     * at if their hold is over, and others only while a session that ended is not cleared up: not
     * found is what a process wrote after its session was. */
    unsigned look_most;
    const char *currency;    /* as channel */
    const char *batch;       /* as channel */
    const char *channel_ref; /* as channel: the channel's name of the payment */
    /* Held rows stand among the finished ones, where these are shown too, and what was asked for
     * last comes first, not what hangs; in_doubt ignores that.  All trades of a batch stand by
     * serial number, whether open or ended. */
    int newest_first;
    /* Only rows that some process holds, or held when it died; not together with newest_first.
     * What waits is not read. */
    int held;
    /* As channel_ref: what people call the trade; the id of a W3C trace, 32 digits; and exactly so
     * much money, as people write it: "1,250.00 EUR", "1250 EUR", "1250" of any currency, "125000
     * EUR minor units". */
    const char *label, *trace, *amount;
    /* What somebody looks for, whatever it is: see tl_find_kinds().  Trades that are called exactly
     * so come first, each once.  Not together with as_of_us. */
    const char *find;
} tl_filter;

#define TL_FILTER_VERSION 1u
#define TL_FILTER_INIT TL_INITIAL(tl_filter, TL_FILTER_VERSION)

/*
 * Reads money as people write it: "1,250.00 EUR", "1250.5 EUR", "125000 EUR minor units"; `currency`
 * is that of a text that names none, or NULL.  TL_INVALID, and nothing is written: it is no such
 * text; it is of no currency, of another, or finer than the currency is; or it is a bare whole
 * number, which may be meant in minor units, of a currency that has them.
 */
TL_EXPORT tl_status tl_amount_read(const char *text, const char *currency, int64_t *minor,
                                   char of[TL_CURRENCY + 1]);

/* A sum of money as digits, since it may be beyond INT64_MAX. */
#define TL_SUM_TEXT 40
/* Adds digits to digits. */
TL_EXPORT void tl_sum_add(char sum[TL_SUM_TEXT], const char *digits);

/* The money that sync rows of one currency told. */
typedef struct tl_money {
    char currency[TL_CURRENCY + 1];
    uint64_t trades;
    char sum_minor[TL_SUM_TEXT];
} tl_money;

#define TL_MONEY_MAX 200
#define TL_NEXT_TEXT 640

/* What was shown.  `next` names the last row that was shown, or looked at, in printable ASCII that
 * needs no quotes in a shell or a URL.  It holds a customer's and a serial number, so it is as
 * confidential. */
typedef struct tl_list_end {
    unsigned version; /* TL_LIST_END_VERSION */
    uint64_t rows;
    uint64_t trades; /* of them, those on the sync lane */
    int more;        /* there are more rows, or may be: a limit was reached, or each() stopped it */
    char next[TL_NEXT_TEXT]; /* "" unless more */
    unsigned money_count;    /* further currencies are left out */
    tl_money money[TL_MONEY_MAX];
} tl_list_end;

#define TL_LIST_END_VERSION 1u
#define TL_LIST_END_INIT TL_INITIAL(tl_list_end, TL_LIST_END_VERSION)

/* Adds the money of one trade; currency "": it told no amount. */
TL_EXPORT void tl_list_end_add(tl_list_end *end, const char *currency, int64_t amount_minor);

/*
 * Shows rows: those in conflict and parked ones, then what else is in process, then what is
 * finished, the newest first.  So a limit cuts off what nobody has to look at.  Waiting lanes come
 * in the order in which they are due, held rows by when their hold ends, a customer's rows, those
 * of a batch and those of a prefix by serial number.  Of a batch or a channel's reference those in
 * conflict are not brought to the front: one that is F or Y stands where it ended.  TL_OK also when
 * there are none.
 *
 * Every page is read by an index, in short statements, and rows are shown as they are read.  A row
 * is shown once, unless it moves on meanwhile.  Where a filter leaves few rows of many (channel,
 * amount, log UUID), many are looked at; moments (since_us, until_us) limit that, and so does
 * look_most.
 *
 * `as_of_us` shows rows in the same order, by what they are now.  What a purge removed is not among
 * them, and of a session that is forgotten it counts as alive until its max_hold was over.
 *
 * `end` is filled in also when the list broke off; NULL: nobody asks.
 */
TL_EXPORT tl_status tl_list_page(tl_client *client, const tl_filter *filter, tl_view_fn each,
                                 void *context, tl_list_end *end);
/* The same without an end. */
TL_EXPORT tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each,
                            void *context);

/*
 * What the text of filter->find may be, as people call it, with commas between: "serial number,
 * beginning of a serial number, customer, ... ".  Blanks around it do not count; capital and small
 * letters do.  Each is looked for by an index: whole, but for the beginning; an amount of any
 * currency unless it names one, and with a day behind it ("1,250.00 EUR 2026-03-01") made on that
 * day, in UTC.
 */
#define TL_FIND_KINDS_TEXT 256
TL_EXPORT tl_status tl_find_kinds(const tl_filter *filter, char to[TL_FIND_KINDS_TEXT]);
/* A serial number that differs from filter->find in blanks, or in capital and small letters, alone;
 * "": there is none. */
TL_EXPORT tl_status tl_find_near(tl_client *client, const tl_filter *filter,
                                 char to[TL_SERIAL_MAX + 1]);

/* The trades of a batch in one state, with amounts in one currency. */
typedef struct tl_batch_part {
    tl_state state;
    int conflict;   /* of these, operators have to decide first */
    tl_money money; /* currency "": they told no amount, and sum_minor is "0" */
} tl_batch_part;

typedef int (*tl_batch_fn)(void *context, const tl_batch_part *part);

/*
 * Counts the trades of a batch, and their money, by state, conflict and currency, in this order.
 * The batch is complete when none of them is open: each has succeeded or failed, and none is in
 * conflict.  It reads every trade once, in pages, so that a trade that moves on meanwhile is told
 * as it was before or after; as_of_us as in tl_filter.  Of a batch of more than `most` trades (0:
 * any number) it reads hardly more than so many.
 *
 *     TL_OK          each() was called for each part.
 *     TL_NOT_FOUND   No trade names this batch.
 *     TL_OVERLOADED  More trades than `most` name it; nothing is told.
 */
TL_EXPORT tl_status tl_batch(tl_client *client, const char *batch, int64_t as_of_us, unsigned most,
                             tl_batch_fn each, void *context);
/* Whether these trades keep their batch from being complete. */
TL_EXPORT int tl_batch_part_is_open(const tl_batch_part *part);

/*
 * As tl_show(), but as the row was at a moment, by its history.  The view's now_us is that moment.
 * What no history keeps is as it is now (contents, amount, channel, deadline), or empty where it
 * may have changed since (result, retryable, what compensating attempts found).  Needs an
 * operator's or a reader's account.
 *
 *     TL_OK          each() was called once.
 *     TL_NOT_FOUND   There was no such row then, or a purge has removed it since.
 */
TL_EXPORT tl_status tl_show_as_of(tl_client *client, const tl_key *key, tl_lane lane,
                                  int64_t as_of_us, tl_view_fn each, void *context);

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
