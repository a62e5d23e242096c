/*
 * admin/report.h - counts and sums of trades by day, channel, operation, currency and state, and the
 * trades behind them.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_REPORT_H
#define TRADELOCK_ADMIN_REPORT_H

#include <tradelock/admin/trades.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which moment of a trade counts. */
typedef enum tl_report_at {
    TL_REPORT_ASKED, /* it was asked for first: every trade has one */
    TL_REPORT_PAID,  /* it became known that the channel paid, by an answer or by evidence */
    TL_REPORT_BOOKED /* its end, success or failure, was written with the business rows */
} tl_report_at;

/* By what trades are counted; a currency always stands for itself. */
#define TL_REPORT_DAY 1u /* of UTC */
#define TL_REPORT_CHANNEL 2u
#define TL_REPORT_OPERATION 4u
#define TL_REPORT_CURRENCY 8u
#define TL_REPORT_STATE 16u

/* Which trades a report counts, and by what. */
typedef struct tl_report_scope {
    unsigned version; /* TL_REPORT_SCOPE_VERSION */
    /* From the first moment on and before the second, by the server's clock, in microseconds since
     * 1970; until_us 0: no end. */
    int64_t since_us, until_us;
    tl_report_at at;
    unsigned by; /* TL_REPORT_... */
    /* Each trade is read and added here, in the place of sums by the server: so that one confirms
     * the other. */
    int one_by_one;
} tl_report_scope;

#define TL_REPORT_SCOPE_VERSION 1u
#define TL_REPORT_SCOPE_INIT TL_INITIAL(tl_report_scope, TL_REPORT_SCOPE_VERSION)

/* The trades of one kind; what the report is not by is "".  What stands behind the end of a text is
 * 0. */
typedef struct tl_report_row {
    char day[11]; /* "2026-03-01" */
    char channel[TL_CHANNEL_MAX + 1], op_code[TL_OP_MAX + 1];
    char currency[TL_CURRENCY + 1]; /* "": they told no amount */
    char state[16];                 /* succeeded, failed, in process */
    uint64_t trades;
    char sum_minor[TL_SUM_TEXT];
} tl_report_row;

/* One trade; a text is "" where there is none, a moment 0. */
typedef struct tl_report_line {
    const char *serial_no, *cust_no, *op_code;
    const char *channel, *channel_key, *channel_ref;
    int64_t amount_minor;
    char currency[TL_CURRENCY + 1];
    const char *state, *batch, *label;
    int64_t asked_us, paid_us, booked_us;
} tl_report_line;

/* What a purge has removed since: trades that ended before these moments are not in the report; 0:
 * nothing that could be of its range. */
typedef struct tl_report_gaps {
    int64_t purged_us;   /* without an archive */
    int64_t archived_us; /* into one */
} tl_report_gaps;

/* A callback returns 0 to go on. */
typedef int (*tl_report_row_fn)(void *context, const tl_report_row *row);
typedef int (*tl_report_line_fn)(void *context, const tl_report_line *line);

/*
 * Counts trades, each of whose fields is as it is now, sorted by day, channel, operation, currency
 * and state.  Mutexes and locks for reading and writing are no trades, and of a fleet rows that a
 * slot left behind count where the slot is.  In pages of some ten thousand it reads the rows that
 * were asked for in the range, or, by another moment or one by one, every row of trade_lock; so a
 * trade that moves on meanwhile is told as it was before or after.
 * Needs an operator's or a reader's account.
 */
TL_EXPORT tl_status tl_report(tl_client *client, const tl_report_scope *scope,
                              tl_report_row_fn each, void *context, tl_report_gaps *gaps);
/* The same trades one by one, by customer and serial number; `by` counts for nothing. */
TL_EXPORT tl_status tl_report_lines(tl_client *client, const tl_report_scope *scope,
                                    tl_report_line_fn each, void *context, tl_report_gaps *gaps);

#ifdef __cplusplus
}
#endif
#endif
