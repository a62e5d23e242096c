/*
 * admin/explain.h - why a trade is where it is, in plain sentences.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_EXPLAIN_H
#define TRADELOCK_ADMIN_EXPLAIN_H

#include <tradelock/tradelock.h>

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

/*
 * Explains a trade, or a retry row that stands alone.  An account that may not read history is told
 * what the rows say.  The highest number of attempts is that of the client's settings.
 *
 *     TL_OK          Every sentence was told, or each() stopped it.
 *     TL_NOT_FOUND   There is no such trade.
 */
TL_EXPORT tl_status tl_explain(tl_client *client, const tl_key *key, tl_sentence_fn each,
                               void *context);

#ifdef __cplusplus
}
#endif
#endif
