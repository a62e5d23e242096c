/*
 * workflow.h - a payment as a workflow: one call for the service, a worker for the rest.
 *
 * THE STORY
 *
 * A service that pays through a channel writes down three things, once, at its start: what the
 * channel promises (tl_channel), how patient it is (tl_policy), and a handful of callbacks
 * (tl_workflow).  From then on it makes one call for each payment:
 *
 *     tl_workflow_run(workflows, &request, &answer)
 *
 *       transaction 1    the lock row becomes P, and with it is written what must be there
 *                        before money can move (an order, frozen funds)          commit
 *       no transaction   `execute` calls the channel, with the channel key and a time-out
 *       transaction 2    the lock row becomes Y or F, and the books are written  commit
 *
 * Whatever cannot be decided there (a time-out, a crash, a lost answer) is left to the *retry
 * lane*. A worker (tl_worker_start), in this process or another one, claims what is due and asks
 * the channel with `query`.  It sends again, with the same channel key, only where that cannot pay
 * twice.  It ends each trade with the same books, or parks it for a person.  It never guesses.
 *
 * CALLING ORDER
 *
 *     tl_client_open            see <tradelock/tradelock.h>
 *     tl_workflows_new          a registry for that client
 *     tl_workflow_register      once for each operation, before the first run
 *     tl_workflow_run           from any thread; tl_answer_clear afterwards
 *     tl_workflows_free         after the workers and before the client
 *
 * This header is what a payment service needs.  Others are for
 *
 *     <tradelock/books.h>            the lines that callbacks write
 *     <tradelock/worker.h>           processes that run the retry lane themselves
 *     <tradelock/questions.h>        fronts that show what became of a trade
 *     <tradelock/submit.h>           services with an event loop
 *     <tradelock/plugin.h>           workflows that tradelock-worker loads
 *     <tradelock/struct.h>           languages that read no header of C
 *     <tradelock/fleet_workflow.h>   customers over several databases
 *
 * OWNERSHIP AND THREADS
 *
 * The registry copies what it is given, except the callbacks' context pointer, which must outlive
 * it.  Any number of threads may use a registry.  Callbacks run on the calling thread or on a
 * worker's, many at once; what they are given is borrowed until they return.
 *
 * An answer belongs to the caller.  Start it with TL_ANSWER_INIT and clear it with
 * tl_answer_clear(); its pointers live until then.  After fork() make client and registry anew.
 *
 * UNITS
 *
 * _ms are milliseconds, relative, but for tl_attempt.until_ms; _us microseconds since 1970 UTC by
 * the server's clock.
 *
 * ERRORS
 *
 * As in <tradelock/tradelock.h>: every call returns a tl_status, tl_status_class() says what to do
 * next, and tl_error_message() is one sentence.  The answers that every call may give stand there.
 *
 * WHAT A DYING PROCESS LEAVES
 *
 * Before transaction 1 is committed it leaves nothing.  After that it leaves a row P under a dead
 * session, which the janitor of any other process opens to the retry lane.  Whether the request had
 * left, the answer had come, or transaction 2 was under way makes no difference: the worker asks
 * the channel.
 */
#ifndef TRADELOCK_WORKFLOW_H
#define TRADELOCK_WORKFLOW_H

#include <tradelock/books.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------- what a callback sees -- */

/* Read only, and only until the callback returns. */
typedef struct tl_attempt {
    tl_key key;
    tl_lane lane;
    uint32_t epoch;          /* 1, or higher when a proven failure is tried anew */
    uint32_t number;         /* 0: the first lane; n: the n-th compensating attempt */
    uint32_t sends;          /* sends that may have left, this one included; in prepare 1 */
    const char *channel_key; /* the one key this payment may be sent with */
    const char *channel_ref; /* the channel's name of the payment so far, or "" */
    const void *payload;     /* as in the request */
    size_t payload_size;
    int64_t timeout_ms;  /* execute, query, cancel: return before this is over; a channel
                            that can is told not to pay later than that */
    int64_t deadline_ms; /* what was left, when the callback was called, until nothing is
                            sent for this trade any more */
    /* In the ending of a success: two operators found that a failure was paid after all.  So the
     * failure has been booked before, in this epoch; take what that gave back. */
    int after_failure;
    /* The moment at which timeout_ms is over, in ms of CLOCK_BOOTTIME, which every process of this
     * machine has.  That of execute was computed before tl_may_send() was asked. */
    int64_t until_ms;
    /* What the request that made the trade said of itself, in every process and every epoch;
     * currency "": it said nothing, and amount_minor is 0. */
    int64_t amount_minor;
    const char *currency;
    int64_t created_us;              /* of the trade; 0 in the prepare that comes with its making */
    const char *batch, *traceparent; /* as currency */
    const char *label;
} tl_attempt;

/*
 * What is left until attempt->until_ms; 0 when it is over.
 *
 * A process may be stopped at any moment, so execute asks directly before its request leaves.  When
 * nothing is left it sends nothing and answers NOT_SENT.  Else this is the time-out of the request;
 * and a wall clock that was read before, plus this, is the expiry that goes with it.
 */
TL_EXPORT int64_t tl_attempt_left_ms(const tl_attempt *attempt);

/*
 * What a callback answers besides its return value.  The functions below check and bound what they
 * are given; the fields are for reading.
 */
typedef struct tl_reply {
    char channel_ref[TL_REF_MAX + 1];
    char remark[TL_REMARK_MAX + 1]; /* a decline's code and reason, a refusal's reason */
    int retryable; /* this failure may be tried anew (TL_ASK_RECLAIM); default no */
    size_t result_size;
    unsigned char result[TL_RESULT_MAX]; /* kept with Y, given to every later ask */
    int64_t retry_after_ms;              /* the channel is asked again no earlier; 0: not said */
} tl_reply;

/* Sets the channel's reference, or the result.  TL_OK, or TL_INVALID with the reply unchanged: it
 * is too long, NULL, or a reference that is not UTF-8 without control characters, which would not
 * be stored as it is. */
TL_EXPORT tl_status tl_reply_ref(tl_reply *reply, const char *channel_ref);
TL_EXPORT tl_status tl_reply_result(tl_reply *reply, const void *result, size_t size);
/*
 * Sets when the channel wants to be asked again, as HTTP's Retry-After does.  If this answer leaves
 * the trade to the retry lane, the next attempt is due no earlier than that, nor earlier than the
 * schedule says.  More than TL_RETRY_AFTER_MAX_MS counts as that, and nobody waits beyond the
 * deadline: nothing is sent after it.  TL_OK, or TL_INVALID with the reply unchanged: the time is
 * negative.
 */
#define TL_RETRY_AFTER_MAX_MS (INT64_C(60) * 60 * 1000)
TL_EXPORT tl_status tl_reply_retry_after(tl_reply *reply, int64_t after_ms);
/* Sets the remark.  It is cut when too long, never inside a character. */
TL_EXPORT void tl_reply_remark(tl_reply *reply, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;

/*
 * execute.  Choose by proof, not by hope:
 *   SUCCEEDED    the channel said so
 *   DECLINED     an answer that the channel documents as final: no money moves
 *   UNKNOWN      everything else: time-out, broken connection, 5xx, duplicate, nonsense
 *   RETRY_LATER  the channel provably did nothing and may be asked again (rate limit)
 *   NOT_SENT     not one byte of the request can have reached the channel
 *   ACCEPTED     the channel took it and will pay later
 * Any other number is UNKNOWN.
 */
typedef enum tl_execute_result {
    TL_EXECUTE_UNKNOWN,
    TL_EXECUTE_SUCCEEDED,
    TL_EXECUTE_DECLINED,
    TL_EXECUTE_RETRY_LATER,
    TL_EXECUTE_NOT_SENT,
    TL_EXECUTE_ACCEPTED
} tl_execute_result;

/* query: what the channel says of this channel key.  Any other number is UNREACHABLE. */
typedef enum tl_query_result {
    TL_QUERY_UNREACHABLE, /* it could not be asked, or did not say */
    TL_QUERY_SUCCEEDED,
    TL_QUERY_FAILED, /* final: no money moves */
    TL_QUERY_PENDING,
    TL_QUERY_NOT_FOUND
} tl_query_result;

/* cancel: take the payment back before it happens.  Any other number is UNKNOWN. */
typedef enum tl_cancel_result {
    TL_CANCEL_UNKNOWN,
    TL_CANCEL_CANCELLED,
    TL_CANCEL_ALREADY_DONE /* it has been paid, or decided otherwise */
} tl_cancel_result;

/*
 * The callbacks.
 *
 * execute, query and cancel run outside any transaction, with no connection of the library's pools
 * held.  They must return within attempt->timeout_ms.  What comes later is fenced out; a warning in
 * the log says how long it took, and for an execute without a remark the row says so too.
 *
 * Business rows have two forms, and a workflow chooses one for each of the three moments:
 *
 *                            declared statements       a connection
 *     the row becomes P      book_prepare              sql_prepare
 *     the row becomes Y      book_success              sql_success
 *     the row becomes F      book_failure              sql_failure
 *
 * Take the first unless a SELECT has to decide.
 *
 * book_prepare, book_success and book_failure write lines (<tradelock/books.h>) of the statements
 * that were registered with the workflow.  They compute and touch no database.  They run before the
 * transaction, and once more when an answer of the server was lost.
 *
 * sql_prepare, sql_success and sql_failure run inside the library's transaction, on its connection,
 * under the rules of tl_tx_fn (<tradelock/callback.h>): autocommit is off; they may run again from
 * the start; they must not commit, roll back or ask for locks.  Lock order: the library holds the
 * trade's rows before it calls.  Take business rows in one order everywhere.
 *
 * All six return:
 *
 *     TL_OK          Go on, and commit.
 *     TL_REFUSED     book_prepare and sql_prepare only, with a remark: no row is left behind, and the
 *                    caller of tl_workflow_run() hears TL_REFUSED.
 *     TL_TRY_AGAIN   Those with a connection only: a statement met error 1213, 1205 or 1020, and
 *                    the transaction is run again.
 *     other          They cannot.  Nothing is written, the lock's row included.
 *
 * Those of success and failure get the reply of whichever callback learned the outcome.  When the
 * outcome came as evidence (a web-hook, a statement), the reply holds its reference and remark
 * only. When two operators decided it, the reply holds the reference of the evidence, if there is
 * one.
 *
 * All callbacks return.  One that is left by an exception, a longjmp or the end of its thread ends
 * the process, with one sentence on standard error.  The trade is then brought to its end as after
 * any crash.  <tradelock/tradelock.hpp> catches exceptions.
 */
typedef tl_status (*tl_sql_prepare_fn)(void *context, const tl_attempt *attempt, tl_reply *reply,
                                       struct st_mysql *connection);
typedef tl_execute_result (*tl_execute_fn)(void *context, const tl_attempt *attempt,
                                           tl_reply *reply);
typedef tl_query_result (*tl_query_fn)(void *context, const tl_attempt *attempt, tl_reply *reply);
typedef tl_cancel_result (*tl_cancel_fn)(void *context, const tl_attempt *attempt, tl_reply *reply);
typedef tl_status (*tl_sql_success_fn)(void *context, const tl_attempt *attempt,
                                       const tl_reply *reply, struct st_mysql *connection);
typedef tl_status (*tl_sql_failure_fn)(void *context, const tl_attempt *attempt,
                                       const tl_reply *reply, tl_proof proof,
                                       struct st_mysql *connection);
typedef tl_status (*tl_book_prepare_fn)(void *context, const tl_attempt *attempt, tl_reply *reply,
                                        tl_book *book);
typedef tl_status (*tl_book_success_fn)(void *context, const tl_attempt *attempt,
                                        const tl_reply *reply, tl_book *book);
typedef tl_status (*tl_book_failure_fn)(void *context, const tl_attempt *attempt,
                                        const tl_reply *reply, tl_proof proof, tl_book *book);

/* ------------------------------------------------------------- registration -- */

/* The channel's contract, as data.  Declare less when in doubt: all of it is believed, and nothing
 * of it is ever tried out. */
typedef struct tl_channel {
    const char *name;         /* part of every channel key; printable ASCII without blanks */
    int idempotent;           /* a key pays once, however often it is sent ... */
    int64_t window_ms;        /* ... within this time of the first send; 0: for ever */
    int replays_first_answer; /* a repeated key gets the first answer, declines too */
    int can_query;            /* query knows a payment by its channel key */
    int not_found_final;      /* a "no such payment" that outlasts the grace is final: a request
                            on its way can no longer arrive and be paid */
    int cancel_final;         /* a cancelled key can never be paid any more */
    unsigned key_chars;       /* hexadecimal digits of key the channel takes, 20 to 64; 0: 64 */
    int64_t latency_ms;       /* how long the channel may take to know a request it received */
} tl_channel;

/*
 * A channel to which the operation's trades went in an earlier release.  A trade stays with the
 * channel that its row names: that one is asked, and its contract decides.  Where it is neither the
 * workflow's channel nor one of these, nobody is called, and the trade waits, with an alarm.
 */
typedef struct tl_former_channel {
    tl_channel channel;
    void *context;         /* for the callbacks below */
    tl_execute_fn execute; /* NULL: nothing is sent there any more.  What was never sent then fails
                              as TL_PROOF_NEVER_LEFT, and may be paid under a new serial number */
    tl_query_fn query;     /* must, or the channel is idempotent and has execute */
    tl_cancel_fn cancel;   /* or NULL */
} tl_former_channel;

#define TL_FORMER_MAX 8

/* One operation: its channel, its patience and its callbacks. */
typedef struct tl_workflow {
    unsigned version;    /* TL_WORKFLOW_VERSION */
    const char *op_code; /* the business operation, such as "WITHDRAW" */
    tl_channel channel;
    tl_policy policy; /* a field that is 0: the client's settings */
    int exclusive;    /* at most one trade of this operation in process for a customer */
    void *context;    /* for every callback */
    tl_sql_prepare_fn sql_prepare; /* or NULL */
    tl_execute_fn execute;         /* must */
    tl_query_fn query;             /* must, or the channel is idempotent */
    tl_cancel_fn cancel;           /* or NULL */
    tl_sql_success_fn sql_success; /* or NULL */
    tl_sql_failure_fn sql_failure; /* or NULL */
    /* Business rows that are declared: the statements, and the callbacks that write lines of them,
     * each instead of the one above that takes a connection.  Or NULL and 0. */
    const tl_statement *statements;
    size_t statement_count;
    tl_book_prepare_fn book_prepare;
    tl_book_success_fn book_success;
    tl_book_failure_fn book_failure;
    const tl_former_channel *former; /* copied; at most TL_FORMER_MAX */
    size_t former_count;
} tl_workflow;

#define TL_WORKFLOW_VERSION 1u
#define TL_WORKFLOW_INIT TL_INITIAL(tl_workflow, TL_WORKFLOW_VERSION)

/* The registry of the operations of a client. */
typedef struct tl_workflows tl_workflows;

/* Makes an empty registry.  TL_OK.  The client must outlive it; tl_workflows_free() frees it. */
TL_EXPORT tl_status tl_workflows_new(tl_workflows **out, tl_client *client);

/* Frees the registry.  No run may be under way.  While a worker uses it, somebody awaits a trade,
 * or a submitted run is not completed, nothing is freed, and an alarm says so. */
TL_EXPORT void tl_workflows_free(tl_workflows *workflows);

/*
 * Registers one operation.
 *
 *     TL_OK        It is registered, and copied.
 *     TL_INVALID   A field is missing, out of range, or contradicts another; or a statement cannot
 *                  be used (tl_books_new()).
 *     TL_UNSAFE    It is complete, but it could pay twice or lose a payment.  Refused are
 *                    - a channel that is neither idempotent nor can be queried,
 *                    - max_hold shorter than the execute time-out and the commit budget together,
 *                    - deadline, max_hold, the channel's latency and what the server's clock may be
 *                      off (clock_margin and a thousandth of the deadline) together beyond its
 *                      window,
 *                    - a grace shorter than the channel's latency and clock_margin,
 *                    - fewer than 80 bits of channel key,
 *                    - another contract of a channel than that of a process that lives, or than
 *                      that under which a trade was sent that is in process (tl_channel_add()).
 *     other        The database could not be asked.
 *
 * The message names the field, and what would do.  Operators can pause the channel from now on.
 */
TL_EXPORT tl_status tl_workflow_register(tl_workflows *workflows, const tl_workflow *workflow);

/* The operation that was registered as number n, from 0 on; NULL: there are no more.  It lives as
 * long as the registry. */
TL_EXPORT const char *tl_workflow_operation(tl_workflows *workflows, unsigned n);

/* ------------------------------------------------------------------- running -- */

/* A payment as the service asks for it. */
typedef struct tl_request {
    unsigned version;    /* TL_REQUEST_VERSION */
    tl_key key;          /* op_code: a registered one */
    const void *payload; /* what execute needs; kept with the trade, at most 64 KiB */
    size_t payload_size;
    const unsigned char *fingerprint; /* TL_FINGERPRINT bytes; NULL: SHA-256 of payload */
    int64_t wait_ms;                  /* a conflict that may pass is asked again for so long */
    uint32_t reclaim_epoch; /* not 0: try a proven, retryable failure of this epoch anew */
    const char *remark;
    const char *actor;
    /* What it says of itself, both or neither; for operators and callbacks, and no part of the
     * fingerprint.  The trade keeps what its first request said. */
    int64_t amount_minor; /* 0 or more, in minor units */
    const char *currency; /* three letters A to Z; NULL: not said */
    /* Likewise, each alone or not at all (NULL). */
    const char *batch; /* UTF-8 without control characters, at most TL_BATCH_MAX bytes */
    /* W3C trace context of version 00, in small letters.  Anything else, such as what others sent,
     * refuses nothing: it is left out, and a warning in the log says so. */
    const char *traceparent;
    const char *label; /* what people call it, such as an order's number; as batch */
} tl_request;

#define TL_REQUEST_VERSION 1u
#define TL_REQUEST_INIT TL_INITIAL(tl_request, TL_REQUEST_VERSION)

/* What became of a payment. */
typedef struct tl_answer {
    unsigned version;     /* TL_ANSWER_VERSION */
    tl_status status;     /* what tl_workflow_run() returned */
    int own;              /* this call was the attempt; 0: the trade belongs to another one */
    int64_t next_look_ms; /* TL_IN_DOUBT, TL_QUEUED: about when; TL_OVERLOADED: in about
                             how long to try again; 0: not known */
    /* The row as it was last seen, with what this call learned; epoch 0: there is none.  Of
     * TL_MISMATCH it has no reference, remark, proof, payload or result of the other payment. */
    tl_view view;
    struct tl_run *run; /* the library's */
} tl_answer;

#define TL_ANSWER_VERSION 1u
#define TL_ANSWER_INIT TL_INITIAL(tl_answer, TL_ANSWER_VERSION)

/*
 * One payment, from the ask to its answer.  Clear the answer afterwards, whatever the status.
 *
 *     TL_SUCCEEDED      It is paid now, and booked.
 *     TL_ALREADY_DONE   It had been paid before; the view has the stored result.
 *     TL_FAILED         It is proven that it was not paid, now or earlier (answer.own tells); the
 *                       view's proof says why.  If it is retryable, reclaim_epoch tries it anew.
 *     TL_IN_DOUBT       Money may have moved.  The retry lane finds out.
 *     TL_QUEUED         Nothing was sent yet.  The retry lane sends.
 *     TL_PARKED         It waits for a person; view.parked says why.
 *     TL_BUSY           Another attempt of this trade is in process.
 *     TL_CUSTOMER_BUSY  Another trade of this customer is in process.
 *     TL_MISMATCH       This key was used for a payment with other contents.
 *     TL_REFUSED        prepare or a statement refused; view.remark says why.  There is no row.
 *     TL_IN_CONFLICT    The channel knows of money that the row denies.  Operators decide.
 *     TL_ASK_CHANNEL    The server was restored or replaced.  Nothing is paid before operators have
 *                       accepted it.
 *     TL_MISDIRECTED    The customer belongs to another shard of the fleet, where the payment may
 *                       be.  Nothing was written and nothing sent here: ask there.
 *     TL_LOST           It was held too long, and another took over.  What was learned is filed.
 *     TL_CALLBACK_FAILED
 *                       The rows of prepare failed.  Nothing was written, unless it committed.
 *     TL_UNKNOWN_OPERATION
 *                       No workflow of this operation is registered.
 *     TL_UNKNOWN        An answer of the server was lost.  Call tl_workflow_settle() with this
 *                       answer, or leave it: the retry lane finds out in any case.
 *     TL_OVERLOADED     Operators have paused the channel or limit it (<tradelock/layer.h>), or
 *                       there is no room now.  Nothing was written and nothing sent: try again
 *                       later.  A trade that is there answers as above, also while its channel is
 *                       paused.
 *     class RETRY       This call did nothing.  It may be made again.
 *
 * Pay by other means only when tl_not_paid(status), which is TL_FAILED and TL_REFUSED.  Any other
 * status that is not tl_paid() may belong to a trade that an earlier call has paid, or that is paid
 * later: also class RETRY (the database is away), CALLER (this request is wrong) and BROKEN.  Then
 * make the same call again, or look (tl_workflow_await()).
 */
TL_EXPORT tl_status tl_workflow_run(tl_workflows *workflows, const tl_request *request,
                                    tl_answer *answer);

/*
 * Goes on where TL_UNKNOWN stopped.  It asks the server again whether the lock was granted, and
 * then goes on to pay; or whether the ending was committed.  Any answer of tl_workflow_run(), and
 * TL_WRONG_STATE when there is nothing to settle.
 */
TL_EXPORT tl_status tl_workflow_settle(tl_workflows *workflows, tl_answer *answer);

/* Frees what the answer owns and makes it TL_ANSWER_INIT again.  Of a submitted run that is not
 * completed nothing is freed, and an alarm says so. */
TL_EXPORT void tl_answer_clear(tl_answer *answer);

#ifdef __cplusplus
}
#endif
#endif
