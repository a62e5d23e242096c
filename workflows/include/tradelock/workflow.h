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
 *     tl_workflow_submit ...    the same from an event loop
 *     tl_workflow_look ...      from any thread, and without a session: what became of a trade
 *     tl_worker_start ...       in the processes that compensate
 *     tl_workflows_free         after the workers and before the client
 *
 * OWNERSHIP AND THREADS
 *
 * The registry copies what it is given, except the callbacks' context pointer, which must outlive
 * it.  Any number of threads may use a registry.  Callbacks run on the calling thread or on a
 * worker's, many at once; what they are given is borrowed until they return.
 *
 * An answer belongs to the caller.  Start it with TL_ANSWER_INIT and clear it with
 * tl_answer_clear(); its pointers live until then.  After fork() the child needs a client and a
 * registry of its own.
 *
 * UNITS
 *
 * _ms are milliseconds, relative; _us microseconds since 1970 UTC by the server's clock.
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
#include <tradelock/fleet.h>

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
typedef enum tl_execute {
    TL_EXECUTE_UNKNOWN,
    TL_EXECUTE_SUCCEEDED,
    TL_EXECUTE_DECLINED,
    TL_EXECUTE_RETRY_LATER,
    TL_EXECUTE_NOT_SENT,
    TL_EXECUTE_ACCEPTED
} tl_execute;

/* query: what the channel says of this channel key.  Any other number is UNREACHABLE. */
typedef enum tl_query {
    TL_QUERY_UNREACHABLE, /* it could not be asked, or did not say */
    TL_QUERY_SUCCEEDED,
    TL_QUERY_FAILED, /* final: no money moves */
    TL_QUERY_PENDING,
    TL_QUERY_NOT_FOUND
} tl_query;

/* cancel: take the payment back before it happens.  Any other number is UNKNOWN. */
typedef enum tl_cancel {
    TL_CANCEL_UNKNOWN,
    TL_CANCEL_CANCELLED,
    TL_CANCEL_ALREADY_DONE /* it has been paid, or decided otherwise */
} tl_cancel;

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
 *     the row becomes P      book_prepare              prepare
 *     the row becomes Y      book_success              apply_success
 *     the row becomes F      book_failure              apply_failure
 *
 * Take the first unless a SELECT has to decide.
 *
 * book_prepare, book_success and book_failure write lines (<tradelock/books.h>) of the statements
 * that were registered with the workflow.  They compute and touch no database.  They run before the
 * transaction, and once more when an answer of the server was lost.
 *
 * prepare, apply_success and apply_failure run inside the library's transaction, on its connection,
 * under the rules of tl_tx_fn (<tradelock/callback.h>): autocommit is off; they may run again from
 * the start; they must not commit, roll back or ask for locks.  Lock order: the library holds the
 * trade's rows before it calls.  Take business rows in one order everywhere.
 *
 * All six return:
 *
 *     TL_OK          Go on, and commit.
 *     TL_REFUSED     book_prepare and prepare only, with a remark: no row is left behind, and the
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
 * All callbacks should return.  If an exception or a longjmp leaves one, tl_workflow_settle()
 * brings the answer to its end; an execute that was left counts as UNKNOWN.  On a worker's thread
 * nobody catches an exception, and C++ ends the process, so catch it yourself.  A worker's thread
 * that a callback ends is replaced, and its trade waits until its max_hold is over.
 */
typedef tl_status (*tl_prepare_fn)(void *context, const tl_attempt *attempt, tl_reply *reply,
                                   struct st_mysql *connection);
typedef tl_execute (*tl_execute_fn)(void *context, const tl_attempt *attempt, tl_reply *reply);
typedef tl_query (*tl_query_fn)(void *context, const tl_attempt *attempt, tl_reply *reply);
typedef tl_cancel (*tl_cancel_fn)(void *context, const tl_attempt *attempt, tl_reply *reply);
typedef tl_status (*tl_apply_success_fn)(void *context, const tl_attempt *attempt,
                                         const tl_reply *reply, struct st_mysql *connection);
typedef tl_status (*tl_apply_failure_fn)(void *context, const tl_attempt *attempt,
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

typedef struct tl_workflow {
    unsigned version;    /* TL_WORKFLOW_VERSION */
    const char *op_code; /* the business operation, such as "WITHDRAW" */
    tl_channel channel;
    tl_policy policy;      /* a field that is 0: the client's settings */
    int exclusive;         /* at most one trade of this operation in process for a customer */
    void *context;         /* for every callback */
    tl_prepare_fn prepare; /* or NULL */
    tl_execute_fn execute; /* must */
    tl_query_fn query;     /* must, or the channel is idempotent */
    tl_cancel_fn cancel;   /* or NULL */
    tl_apply_success_fn apply_success; /* or NULL */
    tl_apply_failure_fn apply_failure; /* or NULL */
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

typedef struct tl_answer {
    unsigned version;     /* TL_ANSWER_VERSION */
    tl_status status;     /* what tl_workflow_run() returned */
    int own;              /* this call was the attempt; 0: the trade belongs to another one */
    uint32_t epoch;       /* of the row; 0: there is none */
    tl_proof proof;       /* TL_FAILED: why it is certain */
    int retryable;        /* TL_FAILED: request.reclaim_epoch = epoch may try it anew */
    int64_t next_look_ms; /* TL_IN_DOUBT, TL_QUEUED: about when; TL_OVERLOADED: in about
                             how long to try again; 0: not known */
    char channel_key[TL_CHANNEL_KEY_MAX + 1];
    char channel_ref[TL_REF_MAX + 1];
    char remark[TL_REMARK_MAX + 1];
    char parked[64];    /* TL_PARKED: why */
    const void *result; /* TL_SUCCEEDED, TL_ALREADY_DONE: as the workflow replied */
    size_t result_size;
    const tl_view *view; /* the row as it was last seen; NULL when it never was */
    struct tl_run *run;  /* the library's */
} tl_answer;

#define TL_ANSWER_VERSION 1u
#ifdef __cplusplus
inline tl_answer tl_answer_initial()
{
    tl_answer answer = tl_initial<tl_answer>(TL_ANSWER_VERSION);
    answer.proof = TL_PROOF_NONE;
    return answer;
}
#define TL_ANSWER_INIT tl_answer_initial()
#else
#define TL_ANSWER_INIT {.version = TL_ANSWER_VERSION, .proof = TL_PROOF_NONE}
#endif

/*
 * One payment, from the ask to its answer.  Clear the answer afterwards, whatever the status.
 *
 *     TL_SUCCEEDED      It is paid now, and booked.
 *     TL_ALREADY_DONE   It had been paid before; the answer has the stored result.
 *     TL_FAILED         It is proven that it was not paid, now or earlier (answer.own tells);
 *                       answer.proof says why.  answer.retryable: it may be tried anew.
 *     TL_IN_DOUBT       Money may have moved.  The retry lane finds out.
 *     TL_QUEUED         Nothing was sent yet.  The retry lane sends.
 *     TL_PARKED         It waits for a person; answer.parked says why.
 *     TL_BUSY           Another attempt of this trade is in process.
 *     TL_CUSTOMER_BUSY  Another trade of this customer is in process.
 *     TL_MISMATCH       This key was used for a payment with other contents.
 *     TL_REFUSED        prepare or a statement refused; answer.remark says why.  There is no row.
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

/* ------------------------------------------------------------------ event loops -- */

/*
 * The same payment for a service with an event loop.  Its thread waits neither for the database nor
 * for the channel, since the service makes the call of the channel itself:
 *
 *     tl_workflow_submit        the ask, with the lines of book_prepare, goes out with others
 *       completion TL_GRANTED   P is committed: the payment may be sent now
 *     tl_workflow_send_begin    directly before the request leaves
 *       ... the service sends, and waits for the answer in its loop ...
 *     tl_workflow_send_end      what execute would have answered; the ending goes out with others
 *       completion, any other   it is over: answer->status, as tl_workflow_run() returns it
 *
 * Completions are taken with tl_client_completed(), when the descriptor of tl_client_completed_fd()
 * is readable (<tradelock/tradelock.h>): lock is NULL, context is what was submitted, and status is
 * TL_GRANTED or that of the answer.  A run that is not granted has one completion, any other two.
 *
 * execute is not called by these runs: it is what a worker sends with, and may block there.
 *
 * Ownership.  The request may go once tl_workflow_submit() has returned.  The answer is the
 * library's from then until TL_GRANTED, and from tl_workflow_send_end() until the last completion;
 * it stays where it is and is not read meanwhile.  Attempt and reply are borrowed from
 * tl_workflow_send_begin() until tl_workflow_send_end().
 *
 * Threads.  Any thread may call, one at a time for each answer.  book_prepare runs within
 * tl_workflow_submit(), book_success and book_failure within tl_workflow_send_end(): no callback
 * runs on a thread of the library.  If an exception leaves book_prepare, nothing was asked, and the
 * answer is cleared; after one that leaves the others, call tl_workflow_send_end() again: its first
 * answer counts.  The client makes three threads for all steps, the registry one for what is tried
 * again or put back; signals come to none of them.
 *
 * Time.  A hold runs from TL_GRANTED on (max_hold_ms), so take completions and send soon.  What is
 * granted is always ended: whoever closes, or gives a payment up, calls tl_workflow_send_begin()
 * and tl_workflow_send_end() with NOT_SENT, or with UNKNOWN if anything may have left, and takes
 * the last completion.  If that never comes, the row stays P until max_hold is over or the session
 * ends, and the retry lane finds out.  After fork() the child has none of the parent's runs: each
 * call with them answers TL_WRONG_PROCESS.
 *
 * Steps that come together share a transaction.  One whose rows somebody else has locked is tried
 * again after a pause, for the policy's commit_ms at most, and no other waits for it; lines of
 * shared statements wait in the server, with each other.  An ask that is refused since its channel
 * is paused, or that takes a share of its channel's limit, goes out after the others.
 */

/*
 * Submits a run.  TL_OK: it is completed as above.  Anything else: not submitted, nothing was
 * written, and the answer is as it was.
 *
 *     TL_INVALID             As tl_workflow_run(); wait_ms or reclaim_epoch is not 0; or the
 *                            workflow's business rows are written through a connection.
 *     TL_UNKNOWN_OPERATION   No workflow of this operation is registered.
 *     TL_NO_MEMORY           There is no memory, or no thread could be made.
 *
 * The completions' statuses are those of tl_workflow_run().  TL_UNKNOWN: tl_workflow_settle() may
 * be called, which waits and pays by execute; or leave it, and the retry lane finds out.
 */
TL_EXPORT tl_status tl_workflow_submit(tl_workflows *workflows, const tl_request *request,
                                       tl_answer *answer, void *context);

/*
 * Begins the send of a run that was granted.
 *
 *     TL_OK            *attempt says what to send, until when (tl_attempt_left_ms()) and with which
 *                      channel key; *reply is empty, to be filled by tl_reply_ref() and the like.
 *                      The rules of execute hold.
 *     TL_TIMEOUT       Too little is left of the hold.  Send nothing: the trade is being put back,
 *                      and its last completion comes.
 *     TL_WRONG_STATE   The run was not granted, is being sent, or is over.
 *     TL_INVALID       Something is NULL.
 */
TL_EXPORT tl_status tl_workflow_send_begin(tl_workflows *workflows, tl_answer *answer,
                                           const tl_attempt **attempt, tl_reply **reply);

/* Ends the send: what became of it, chosen by proof as execute chooses.  TL_OK: the last completion
 * comes.  TL_WRONG_STATE: nothing is being sent; TL_INVALID: something is NULL. */
TL_EXPORT tl_status tl_workflow_send_end(tl_workflows *workflows, tl_answer *answer,
                                         tl_execute executed);

/* The sentence that belongs to the status of a completed run, as tl_error_message() has it after
 * tl_workflow_run(); "" of any other answer.  It lives until the answer is cleared. */
TL_EXPORT const char *tl_answer_sentence(const tl_answer *answer);

/* ------------------------------------------------------------------ questions -- */

/*
 * What became of a trade, for whoever shows it to its customer.  Questions only read.  They need no
 * session and no registered workflow: a web front opens a client with TL_CLIENT_NO_SESSION and
 * makes a registry on it.  Its account needs SELECT on trade_lock, trade_lock_state, tl_session,
 * tl_schema and tl_restore, and EXECUTE on tl_restored and tl_identity, which only read; the roles
 * of sql/grants.sql have all that.
 *
 * A question answers about any trade whose key it is given.  That the one who asks is its customer
 * is for the service to know.
 */
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

/* ----------------------------------------------------------------- the worker -- */

typedef struct tl_worker_options {
    unsigned version;     /* TL_WORKER_OPTIONS_VERSION */
    unsigned threads;     /* compensating attempts at once, 1 to 64; 0: 4 */
    int64_t idle_max_ms;  /* look for due work at least so often; 0: 1000 */
    int64_t unclaimed_ms; /* alarm for work that is overdue by this; 0: 60000 */
} tl_worker_options;

#define TL_WORKER_OPTIONS_VERSION 1u
#define TL_WORKER_OPTIONS_INIT TL_INITIAL(tl_worker_options, TL_WORKER_OPTIONS_VERSION)

typedef struct tl_worker tl_worker;

/*
 * Starts the threads that claim due work of the registered operations and bring it to an end.  It
 * claims no more than it has free threads for, now or in the next 50 ms.  A thread has an attempt
 * until its ending is chosen: endings, but those that callbacks with a connection write, are
 * written by the threads of submitted runs, about TL_CLAIM_MAX of them at a time.  A trade during
 * which a worker died is run with nothing else in flight; after `poison` more deaths alone with
 * that trade, it is parked.  While operators keep a channel paused, nothing of it is claimed:
 * what is due waits, no attempt is used up, and it goes on within a beat and idle_max_ms of the
 * resume.
 *
 *     TL_OK                  It runs.  tl_worker_free() stops and frees it.
 *     TL_UNKNOWN_OPERATION   No workflow is registered.
 *     TL_NO_MEMORY           Its threads could not be started.
 */
TL_EXPORT tl_status tl_worker_start(tl_worker **out, tl_workflows *workflows,
                                    const tl_worker_options *options);

/* The worker claims nothing from now on, and finishes what it holds.  Returns at once. */
TL_EXPORT void tl_worker_stop(tl_worker *worker);

/*
 * Waits until the worker has stopped.
 *
 *     TL_OK          It was told to stop, and everything it held is finished.
 *     TL_TIMEOUT     wait_ms is over, and it goes on.
 *     TL_NO_MEMORY   Callbacks ended its threads, and no others could be started.
 *
 * A session that is lost does not stop it: what it held is lost, and it claims under the client's
 * next session.
 */
TL_EXPORT tl_status tl_worker_wait(tl_worker *worker, int64_t wait_ms);

/*
 * Whether the worker works, for a watchdog and for whoever asks after its health.  No round trip.
 *
 *     TL_OK            The client's session is certain, and a round of claiming ended lately, also
 *                      one that found nothing due.
 *     TL_UNREACHABLE   Heartbeats are not confirmed, or claims fail.
 *     TL_TIMEOUT       No round ended for twice the longest hold and ten seconds: the thread that
 *                      claims hangs, or so many others do that nothing can be claimed.
 *     TL_WRONG_STATE   It was told to stop, or has stopped.
 *
 * The sentence says since when.
 */
TL_EXPORT tl_status tl_worker_check(tl_worker *worker);

/* Stops the worker, waits until it has finished what it holds, and frees it. */
TL_EXPORT void tl_worker_free(tl_worker *worker);

/* The counters of a worker, since its start. */
typedef struct tl_worker_counts {
    unsigned version; /* TL_WORKER_COUNTS_VERSION, set by the caller */
    uint64_t claimed, succeeded, failed, waiting, parked, lost, unknown;
    uint64_t queries, cancels, sends;
    unsigned in_flight; /* claimed, and not yet ended or put back */
} tl_worker_counts;

#define TL_WORKER_COUNTS_VERSION 1u
#define TL_WORKER_COUNTS_INIT TL_INITIAL(tl_worker_counts, TL_WORKER_COUNTS_VERSION)

/* Copies the counters.  TL_OK, or TL_INVALID when counts->version is not set. */
TL_EXPORT tl_status tl_worker_count(tl_worker *worker, tl_worker_counts *counts);

/* ---------------------------------------------------------------- over a fleet -- */

/*
 * The same workflows at every shard of a fleet (<tradelock/fleet.h>), each with a client and a
 * registry of its own.  A call goes to the shard that has its customer; if that was just moved away
 * (TL_MISDIRECTED), the map is read anew and the call goes there.  A refused ask has written
 * nothing, so that never pays twice.
 */
typedef struct tl_fleet_workflows tl_fleet_workflows;

typedef struct tl_fleet_workflows_options {
    unsigned version; /* TL_FLEET_WORKFLOWS_OPTIONS_VERSION */
    tl_fleet *fleet;  /* it must outlive them */
    /*
     * Registers the workflows of one shard with tl_workflow_register(), the same ones at each.
     * Called once for each shard that can be used: within tl_fleet_workflows_new(), or later on the
     * thread of a shard that comes up, perhaps for two shards at once.  *state is NULL before, and
     * handed to close().  TL_OK; or another status with a sentence, after it has freed what it made;
     * then close() is not called, and for class RETRY open() is called again later.
     */
    tl_status (*open)(void *context, const char *shard, tl_client *client, tl_workflows *workflows,
                      void **state);
    /* After the shard's registry was freed, and before its client is closed; or NULL. */
    void (*close)(void *context, void *state);
    void *context;
    /* How many calls may be under way at one shard at once, so that one that does not answer cannot
     * take all threads of a service; those beyond hear TL_OVERLOADED at once.  0: any number. */
    unsigned calls;
} tl_fleet_workflows_options;

#define TL_FLEET_WORKFLOWS_OPTIONS_VERSION 1u
#define TL_FLEET_WORKFLOWS_OPTIONS_INIT                                                            \
    TL_INITIAL(tl_fleet_workflows_options, TL_FLEET_WORKFLOWS_OPTIONS_VERSION)

/* Registers them at each shard that can be used, and at the others when they come up.  TL_OK; or
 * what open() said of a shard, but class RETRY, which is tried again. */
TL_EXPORT tl_status tl_fleet_workflows_new(tl_fleet_workflows **out,
                                           const tl_fleet_workflows_options *options);

/* Frees all registries.  While a call is under way or a worker stands on them nothing is freed, and
 * tl_error_message() says so. */
TL_EXPORT void tl_fleet_workflows_free(tl_fleet_workflows *workflows);

/* As tl_workflow_run(), and TL_UNREACHABLE at once where the customer's shard is down;
 * TL_MISDIRECTED: no shard of the settings has this customer, for a moment while he is handed over
 * to another one.  Ask again later: it may be paid there. */
TL_EXPORT tl_status tl_fleet_workflow_run(tl_fleet_workflows *workflows, const tl_request *request,
                                          tl_answer *answer);
TL_EXPORT tl_status tl_fleet_workflow_settle(tl_fleet_workflows *workflows, tl_answer *answer);
/* The shard's database is asked first whether it has the customer; if it has not, the map is read
 * anew.  TL_MISDIRECTED as above; one that waits asks again until its time is over,
 * which is not prolonged by a shard that falls silent. */
TL_EXPORT tl_status tl_fleet_workflow_look(tl_fleet_workflows *workflows, const tl_key *key,
                                           tl_trade *trade);
TL_EXPORT tl_status tl_fleet_workflow_await(tl_fleet_workflows *workflows, const tl_key *key,
                                            int64_t wait_ms, tl_trade *trade);

/* The registry of the shard that has this customer, for all other calls.  It stays valid until
 * tl_fleet_workflows_free().  After TL_MISDIRECTED tl_fleet_look_again(), and ask anew. */
TL_EXPORT tl_status tl_fleet_workflows_of(tl_fleet_workflows *workflows, const char *cust_no,
                                          tl_workflows **registry);
/* That of a shard; TL_UNREACHABLE: it is not usable, or has none yet. */
TL_EXPORT tl_status tl_fleet_workflows_at(tl_fleet_workflows *workflows, size_t shard,
                                          tl_workflows **registry);

/*
 * A worker for all shards: each has a share of its threads for itself, and a thread that claims, so
 * that one that is down holds up no other.  A shard that comes up later is served from then on.
 */
typedef struct tl_fleet_worker tl_fleet_worker;

/* threads: of all shards together; each has at least one. */
TL_EXPORT tl_status tl_fleet_worker_start(tl_fleet_worker **out, tl_fleet_workflows *workflows,
                                          const tl_worker_options *options);
TL_EXPORT void tl_fleet_worker_stop(tl_fleet_worker *worker);
/* As tl_worker_wait(), for all shards. */
TL_EXPORT tl_status tl_fleet_worker_wait(tl_fleet_worker *worker, int64_t wait_ms);
/* As tl_worker_check().  TL_UNREACHABLE: no shard is served; one that is down while others are
 * served is TL_OK, since ending the process would help nobody. */
TL_EXPORT tl_status tl_fleet_worker_check(tl_fleet_worker *worker);
/* The sum over all shards, or that of one: zeroes where it was not served yet. */
TL_EXPORT tl_status tl_fleet_worker_count(tl_fleet_worker *worker, tl_worker_counts *counts);
TL_EXPORT tl_status tl_fleet_worker_count_at(tl_fleet_worker *worker, size_t shard,
                                             tl_worker_counts *counts);
TL_EXPORT void tl_fleet_worker_free(tl_fleet_worker *worker);

#ifdef __cplusplus
}
#endif
#endif
