/*
 * admin/explain.h - all that is known of a trade, and why it is where it is, in plain sentences.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_EXPLAIN_H
#define TRADELOCK_ADMIN_EXPLAIN_H

#include <tradelock/admin/trades.h>
#include <tradelock/lane.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a sentence is about; they are told in this order. */
typedef enum tl_topic {
    TL_TOPIC_STATE,   /* why it is where it is, and who holds it until when */
    TL_TOPIC_CHANNEL, /* what the channel was asked, and what it said */
    TL_TOPIC_BEFORE,  /* who tried before, and what people said */
    TL_TOPIC_NEXT,    /* what happens next, and when */
    TL_TOPIC_END,     /* what would make it Y or F */
    TL_TOPIC_ACT      /* what an operator may do now */
} tl_topic;

/* "state", "channel", "before", "next", "end", "act"; "" for any other number. */
TL_EXPORT const char *tl_topic_name(tl_topic topic);

/* Writes what a shell takes for exactly this text; space 4 * strlen(text) + 3 is always enough.
 * As snprintf() it returns how long that is; when it is `space` or more, nothing was written but
 * "". */
TL_EXPORT size_t tl_shell_quote(char *to, size_t space, const char *text);

/* "2026-03-01T09:30:00.125Z": microseconds since 1970, with 0 to 6 digits behind the point; "" for
 * 0. */
#define TL_MOMENT_TEXT 40
TL_EXPORT const char *tl_moment_text(char to[TL_MOMENT_TEXT], int64_t us, int digits);
/* The other way: "2026-03-01", "2026-03-01 09:30", "2026-03-01T09:30:00.125Z", UTC.  0: it is no
 * moment of any calendar. */
TL_EXPORT int tl_moment_read(int64_t *us, const char *text);

/* A negative span counts as none, but in the short form. */
typedef enum tl_span_form {
    TL_SPAN_WORDS, /* "0.3 s", "14 s", "3 min 10 s", "2 h 4 min", "3 d 4 h" */
    TL_SPAN_FINE,  /* the same with "14.125 s" */
    TL_SPAN_SHORT  /* "14s", "3m", "2h04m", "3d04h", "-3m" */
} tl_span_form;
#define TL_SPAN_TEXT 48
TL_EXPORT const char *tl_span_text(char to[TL_SPAN_TEXT], int64_t us, tl_span_form form);

/* One sentence, or a few; lives until the callback returns.  Remarks of channels and people stand
 * in it as they were told: a terminal or a page has to make them harmless. */
typedef struct tl_sentence {
    tl_topic topic;
    const char *text;
    const char *command; /* that does what the text says, quoted for a shell; "": none */
    const tl_view *view; /* the row that it is about; without payload and result */
} tl_sentence;

/* Returns 0 to go on. */
typedef int (*tl_sentence_fn)(void *context, const tl_sentence *sentence);

/* Who is told what of a trade, in this order.  NULL: nobody asks.  A function that returns other
 * than 0 is not called again; the others are all the same. */
typedef struct tl_trade_each {
    unsigned version; /* TL_TRADE_EACH_VERSION */
    tl_view_fn row;   /* as tl_show(): the retry row, then the sync row, where they are there */
    tl_step_fn step;  /* as tl_timeline(), and so on */
    tl_evidence_fn evidence;
    tl_resolution_fn resolution;
    /* Explains the trade.  The highest number of attempts is that of the client's settings. */
    tl_sentence_fn sentence;
    /* As it was at this moment, as tl_show_as_of() has it: what came later is left out, and there
     * are no sentences, which are about now.  0: as it is. */
    int64_t as_of_us;
} tl_trade_each;

#define TL_TRADE_EACH_VERSION 1u
#define TL_TRADE_EACH_INIT TL_INITIAL(tl_trade_each, TL_TRADE_EACH_VERSION)

/*
 * Reads all that is known of a trade, or of a retry row that stands alone, once, and tells it.
 * *has_history, unless NULL, is 0 for an account that may not read history; it is told the rest.
 *
 *     TL_OK          It was told.
 *     TL_NOT_FOUND   There is no such trade, or was none at that moment.
 */
TL_EXPORT tl_status tl_trade_read(tl_client *client, const tl_key *key, const tl_trade_each *each,
                                  void *context, int *has_history);

#ifdef __cplusplus
}
#endif
#endif
