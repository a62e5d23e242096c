/* One attempt at a trade, and the calls of its callbacks. */
#ifndef TL_WORKFLOWS_ATTEMPT_H
#define TL_WORKFLOWS_ATTEMPT_H

#include "registry.h"

/*
 * What the callbacks are shown.  It owns copies of everything: a view is valid only until the
 * lock's next call, and an arming comes between a query and a send.
 */
typedef struct attempt {
    const workflow *workflow;
    tl_attempt seen; /* points into the members below */
    char serial_no[TL_SERIAL_MAX + 1];
    char cust_no[TL_CUST_MAX + 1];
    char channel_key[TL_CHANNEL_KEY_MAX + 1];
    char channel_ref[TL_REF_MAX + 1];
    tl_said said;
    void *payload;
    tl_book *book;          /* NULL: the workflow declares no statements */
    int64_t deadline_at_ms; /* by schedule_now_ms(); 0: none */
    tl_reply reply;         /* of the callback that was called last */
} attempt;

/* Needs: a key that was checked. */
tl_status attempt_init(attempt *a, const workflow *of, const tl_key *key, const void *payload,
                       size_t payload_size);
void attempt_free(attempt *a);

/* About when the hold began, by schedule_now_ms().  It is never later than the true moment, however
 * long this process was stopped since. */
int64_t attempt_since_ms(const workflow *of, const tl_lock *lock);

/* For how long the channel, by its last answer, is not asked again; 0: it did not say.  Beyond the
 * deadline nobody waits. */
int64_t attempt_come_again_ms(const attempt *a);

/* Shows what the row says of itself, or the request that will make it. */
void attempt_show_said(attempt *a, const tl_said *said);
void attempt_show_row(attempt *a, const tl_view *row);
/* Shows what the row said at since_ms, from which its deadline is counted. */
void attempt_show(attempt *a, const tl_view *view, int64_t since_ms);

/*
 * Call the callbacks outside transactions, with an empty reply.  Whatever a callback returns
 * becomes a known answer, and its reply becomes text and sizes that can be stored.  until_ms is the
 * moment by which a send must be over, computed before tl_may_send() was asked.  If it has come,
 * execute is not called, and the answer is NOT_SENT.
 */
tl_execute_result attempt_execute(attempt *a, int64_t until_ms);
/* The same for whoever sends it without that callback.  attempt_send_begin(): 0 if nothing is to be
 * sent. start_us: when it was called. */
int attempt_send_begin(attempt *a, int64_t until_ms);
tl_execute_result attempt_send_end(attempt *a, tl_execute_result answer, int64_t start_us);
tl_query_result attempt_query(attempt *a, int64_t timeout_ms);
tl_cancel_result attempt_cancel(attempt *a, int64_t timeout_ms);

/* A tl_tx_fn each, with the attempt as context.  attempt_sql_prepare() empties the reply each time. */
tl_status attempt_sql_prepare(void *context, struct st_mysql *connection);
tl_status attempt_sql_success(void *context, struct st_mysql *connection);

/* Has a book callback write its lines into the attempt's book, from the start.  If it cannot, the
 * book is one that is not written. */
void attempt_book_prepare(attempt *a);
void attempt_book_success(attempt *a);
void attempt_book_failure(attempt *a, tl_proof proof);

/* Bounds and cleans what a callback wrote. */
void reply_clean(tl_reply *reply);

#endif
