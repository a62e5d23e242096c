/* One attempt at a trade, and the calls of its callbacks. */
#ifndef TL_WORKFLOWS_ATTEMPT_H
#define TL_WORKFLOWS_ATTEMPT_H

#include "registry.h"

/*
 * What the callbacks are shown.  It owns copies of everything, since a view is only good until the
 * lock's next call, and an arming lies between a query and a send.
 */
typedef struct attempt {
    const workflow *workflow;
    tl_attempt seen; /* points into the members below */
    char serial_no[TL_SERIAL_MAX + 1];
    char cust_no[TL_CUST_MAX + 1];
    char channel_key[TL_CHANNEL_KEY_MAX + 1];
    char channel_ref[TL_REF_MAX + 1];
    char currency[TL_CURRENCY + 1];
    void *payload;
    tl_book *book;          /* NULL: the workflow declares no statements */
    int64_t deadline_at_ms; /* by schedule_now_ms(); 0: none */
    tl_reply reply;         /* of the callback that was called last */
} attempt;

/* The key must have been checked. */
tl_status attempt_init(attempt *a, const workflow *of, const tl_key *key, const void *payload,
                       size_t payload_size);
void attempt_free(attempt *a);

/* About when the hold began, by schedule_now_ms(); never later than it did, whatever this process
 * was stopped for since. */
int64_t attempt_since_ms(const workflow *of, const tl_lock *lock);

/* What the row says, or the request that is about to make it; currency NULL or "": nothing. */
void attempt_show_amount(attempt *a, int64_t amount_minor, const char *currency);
/* Takes over what the row says, which it said since then. */
void attempt_show(attempt *a, const tl_view *view, int64_t since_ms);

/*
 * The callbacks outside transactions, with a fresh reply.  Whatever they return is mapped to a
 * known answer, and their reply to text and sizes that can be stored.  A send names the moment by
 * which it must be over, from before tl_may_send() was asked: when nothing is left of it, it is
 * NOT_SENT.
 */
tl_execute attempt_execute(attempt *a, int64_t until_ms);
tl_query attempt_query(attempt *a, int64_t timeout_ms);
tl_cancel attempt_cancel(attempt *a, int64_t timeout_ms);

/* As tl_tx_fn with the attempt as context; prepare empties the reply each time. */
tl_status attempt_prepare(void *context, struct st_mysql *connection);
tl_status attempt_apply_success(void *context, struct st_mysql *connection);

/* Has a book callback write its lines into the attempt's book, from the start.  If it cannot, the
 * book is one that is not written. */
void attempt_book_prepare(attempt *a);
void attempt_book_success(attempt *a);
void attempt_book_failure(attempt *a, tl_proof proof);

/* Bounds and cleans what a callback wrote. */
void reply_clean(tl_reply *reply);

#endif
