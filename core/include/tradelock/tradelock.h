/*
 * tradelock.h - pay exactly once, from many threads in many processes.
 *
 * THE STORY
 *
 * A trade is one payment that a customer asked for.  Its key is (serial number, customer, operation
 * code).  Whoever originates the payment chooses the serial number and keeps it for every
 * repetition.  tradelock keeps one row for each key in MariaDB, with a status:
 *
 *     P  in process        somebody pays, or it is not yet known whether money moved
 *     F  failed            it is *proven* that no money moved; the proof is in the row
 *     Y  succeeded         money moved, once; final
 *
 * Two locks are rows of that table.  The *trade-sync lock* (operation `WITHDRAW`) lets one attempt
 * in.  The *retry-compensation lock* (operation `WITHDRAW_RETRY`) lets one compensating attempt in
 * after a time-out or a crash.  Every later attempt takes that row over again, F -> P -> Y or F.
 * Both come from the article "Java distributed lock: database implementation"; the rules that make
 * them safe against crashes, lost answers and sleeping processes were added here.
 *
 * CALLING ORDER
 *
 *     tl_client_open        once per process: connections, a session row, its heartbeat
 *     tl_lock_new           a handle for one key; nothing is written yet
 *     tl_lock_ask           TL_GRANTED, or the reason why not, with the row as it stood
 *       ... pay ...         only after TL_GRANTED, only while tl_may_send() is true
 *     tl_lock_finish        Y, F with a proof, or "I do not know"
 *     tl_lock_free
 *     tl_client_close       ends the session
 *
 * A service that registers a workflow (<tradelock/workflow.h>) makes one call instead.
 *
 * THE ONE RULE
 *
 * A time-out is not a failure.  An ending without an answer from the channel is TL_OUTCOME_UNKNOWN:
 * the row stays P, and the retry lane finds out.  Whoever turns the row into F must say which proof
 * there is.
 *
 * WHAT A DYING PROCESS LEAVES
 *
 * It leaves rows with status P under its session.  Nobody else is granted them until the session is
 * seen dead (10 s by default) or max_hold is over.  Then the janitor in any other process opens the
 * retry lane, and a compensating attempt asks the channel first.
 *
 * A service that uses bare locks, without workflows, writes its compensating job itself.  Two rules
 * are its own then: ask the channel before paying, and believe a "no such payment" only after the
 * view's send_until_us and the channel's own latency are over.  Until then the dead holder's
 * request may still be on its way.  Workflows keep both rules by themselves.
 *
 * A PROCESS THAT WAS TAKEN FOR DEAD
 *
 * A process may be stopped, or cut off, for longer than its session lives.  At its next heartbeat
 * it finds that others have ended that session; or that it is led to another server than the
 * session's, where nobody keeps that alive.  Every lock that it had been granted is lost for good:
 * tl_may_send() is false, and tl_lock_finish() answers TL_LOST and files what the holder knew.
 *
 * The loss callback says so.  Then the client takes a new session by itself, and what is asked for
 * from there on is granted as ever.  An ask between the two answers TL_SESSION_LOST: nothing
 * happened, ask again.  An ask that travelled meanwhile is never granted, since it was made under
 * the old session.
 *
 * THREADS, FORK, MEMORY
 *
 * Any number of threads may use a client.  A lock handle may move between threads, but one thread
 * uses it at a time.  After fork() the child may use neither: calls return TL_WRONG_PROCESS, and
 * the child opens a client of its own.  Freeing them there is allowed, and frees memory only.
 *
 * tl_client_open() makes the whole process ignore SIGPIPE, since libmariadb does, whatever its
 * action was before.  A program that sets another action keeps the signal blocked in threads that
 * call the library: writing over TLS to a server that has gone raises it there.  The library's own
 * threads block all signals.
 *
 * Pointers that a call returns are borrowed from the handle, and live until its next call.  A call
 * that fails leaves its outputs untouched.  NULL never ends the process: destructors accept it,
 * getters answer as if there were nothing, and all else is TL_INVALID.
 *
 * Every struct with a version is made with its TL_..._INIT.
 *
 * UNITS
 *
 * Names that end in _ms are milliseconds, relative.  Names that end in _us are microseconds since
 * 1970 UTC by the server's clock; 0 is "none".
 *
 * ANSWERS OF EVERY CALL
 *
 * A call returns a tl_status.  tl_status_class() says what to do next, and tl_error_message() says
 * in one sentence what happened.  Each call below explains the answers that are its own.  Besides
 * these, any call that takes a client or a handle may answer:
 *
 *     TL_INVALID         An argument is wrong; the message names it.  Nothing was done.
 *     TL_WRONG_PROCESS   The handle belongs to the parent of this process.
 *     TL_WRONG_STATE     The handle cannot do this now; the message says why.
 *     TL_IN_CALLBACK     Not allowed inside a database callback.
 *     TL_UNREACHABLE     The server cannot be reached.  Nothing was sent; call again later.
 *     TL_OVERLOADED      No connection became free within pool_wait, or the server has no room
 *                        (connections, disk, memory, prepared statements); or operators have paused
 *                        the channel (<tradelock/layer.h>); or the customer is being moved to
 *                        another shard.  Nothing was done.
 *     TL_TRY_AGAIN       The server undid the work, as after a deadlock.  Call again.
 *     TL_READ_ONLY       The server takes no writes.  Nothing was written; call again later.
 *     TL_ACCESS_DENIED   The account lacks a right.  Grant it (sql/grants.sql).
 *     TL_NO_MEMORY       No memory was left.  Nothing was done, unless the call says otherwise.
 *     TL_SERVER_ERROR    The server reported an error that nobody expected.  Read the message.
 */
#ifndef TRADELOCK_TRADELOCK_H
#define TRADELOCK_TRADELOCK_H

#include <stddef.h>
#include <stdint.h>

#define TL_VERSION_MAJOR 1
#define TL_VERSION_MINOR 0
#define TL_VERSION_PATCH 0
#define TL_VERSION_STRING "1.0.0"

#if defined(__GNUC__)
#define TL_EXPORT __attribute__((visibility("default")))
#else
#define TL_EXPORT
#endif

/*
 * For TL_..._INIT: sets the version of a struct, and leaves all else 0, which is the default.  In
 * C++ it is a value, since C++ has designators only since C++20.
 */
#ifdef __cplusplus
template <typename Struct> inline Struct tl_initial(unsigned version)
{
    Struct value = Struct();
    value.version = version;
    return value;
}
#define TL_INITIAL(type, number) tl_initial<type>(number)
#else
#define TL_INITIAL(type, number) {.version = (number)}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A connection of the caller's own: MYSQL in mysql.h.  Named here so that this header needs no
 * other. */
struct st_mysql;

/* ---------------------------------------------------------------- statuses -- */

/*
 * What to do next, by class:
 *   DONE       the call did what it was asked; read the answer
 *   CONFLICT   somebody or something else decides this trade now: do not pay
 *   RETRY      this call did nothing; it may be made again later
 *   UNKNOWN    it may have happened; ask again with the same handle, never assume "no"
 *   ROLL_BACK  the caller's own transaction must be rolled back
 *   CALLER     the call itself is wrong
 *   BROKEN     the library, the server or the machine needs a person
 *
 * No class says that a trade is not paid: a double tap may be refused although the first call paid.
 */
typedef enum tl_class {
    TL_CLASS_DONE,
    TL_CLASS_CONFLICT,
    TL_CLASS_RETRY,
    TL_CLASS_UNKNOWN,
    TL_CLASS_ROLL_BACK,
    TL_CLASS_CALLER,
    TL_CLASS_BROKEN
} tl_class;

/*
 * Number, name, class, payment, text.  Numbers are stable, even where a class changed.  A new
 * status goes to the end of its class's range.
 *
 * Payment: what the status proves, as the answer of an ask, an ending, a workflow or a look.
 *   PAID       the trade is paid
 *   NOT_PAID   no money moved for this trade, and none is under way: other means may be used
 *   OPEN       neither: the trade may be paid, now or later
 */
#define TL_STATUS_MAP(X)                                                                           \
    X(0, OK, DONE, OPEN, "done")                                                                   \
    X(1, GRANTED, DONE, OPEN, "the lock is yours")                                                 \
    X(2, SUCCEEDED, DONE, PAID, "the trade succeeded")                                             \
    X(3, FAILED, DONE, NOT_PAID, "the trade failed, with proof")                                   \
    X(4, ALREADY_DONE, DONE, PAID, "the trade had already succeeded")                              \
    X(20, BUSY, CONFLICT, OPEN, "another attempt is in process")                                   \
    X(21, CUSTOMER_BUSY, CONFLICT, OPEN, "another trade of this customer is in process")           \
    X(22, MISMATCH, CONFLICT, OPEN, "the same key was asked for with other contents")              \
    X(23, IN_DOUBT, CONFLICT, OPEN, "money may have moved; the retry lane will find out")          \
    X(24, QUEUED, CONFLICT, OPEN, "nothing was sent yet; the retry lane will send")                \
    X(25, PARKED, CONFLICT, OPEN, "the trade waits for a person")                                  \
    X(26, NOT_DUE, CONFLICT, OPEN, "the next compensating attempt is not due yet")                 \
    X(27, NO_TRADE, CONFLICT, OPEN, "there is no such trade to compensate")                        \
    X(28, LOST, CONFLICT, OPEN, "the lock is no longer yours; nothing was written")                \
    X(29, IN_CONFLICT, CONFLICT, OPEN, "evidence contradicts this row; operators must decide")     \
    X(30, REFUSED, CONFLICT, NOT_PAID, "the workflow refused; no row was left")                    \
    X(31, EVIDENCE, CONFLICT, OPEN, "evidence says that money moved; this failure is refused")     \
    X(32, NOT_HELD, CONFLICT, OPEN, "the lock is not held by this handle")                         \
    X(33, RELEASED, CONFLICT, OPEN, "the lock was already released by this handle")                \
    X(34, WOULD_UPGRADE, CONFLICT, OPEN, "a read lock is never upgraded to a write lock")          \
    X(35, ASK_CHANNEL, CONFLICT, OPEN, "the server was restored: ask the channel first")           \
    X(36, MISDIRECTED, CONFLICT, OPEN, "this customer belongs to another shard: ask there")        \
    X(40, TIMEOUT, RETRY, OPEN, "the time allowed for waiting is over")                            \
    X(41, UNREACHABLE, RETRY, OPEN, "the server cannot be reached; nothing was sent")              \
    X(42, OVERLOADED, RETRY, OPEN, "there is no room now, or the channel is paused")               \
    X(43, TRY_AGAIN, RETRY, OPEN, "the server undid the work; it may be repeated")                 \
    X(44, READ_ONLY, RETRY, OPEN, "the server is read-only")                                       \
    X(50, UNKNOWN, UNKNOWN, OPEN, "the answer was lost; it may have happened")                     \
    X(60, ROLL_BACK, ROLL_BACK, OPEN, "the caller's transaction must be rolled back")              \
    X(70, INVALID, CALLER, OPEN, "an argument is not valid")                                       \
    X(71, IN_CALLBACK, CALLER, OPEN, "not allowed inside a database callback")                     \
    X(72, WRONG_PROCESS, CALLER, OPEN, "the handle belongs to the parent process")                 \
    X(73, WRONG_STATE, CALLER, OPEN, "the handle is not in the state for this call")               \
    X(74, UNKNOWN_OPERATION, CALLER, OPEN, "no such operation is registered")                      \
    X(75, UNSAFE, CALLER, OPEN, "this registration could pay twice and is refused")                \
    X(76, BAD_CONFIG, CALLER, OPEN, "the settings file cannot be used")                            \
    X(77, NO_TRANSACTION, CALLER, OPEN, "the connection is not in a transaction")                  \
    X(78, NOT_FOUND, CALLER, OPEN, "there is no such row")                                         \
    X(90, NO_MEMORY, BROKEN, OPEN, "out of memory")                                                \
    X(91, ACCESS_DENIED, BROKEN, OPEN, "the server refused the account")                           \
    X(92, NO_SCHEMA, BROKEN, OPEN, "the schema is missing")                                        \
    X(93, WRONG_SCHEMA, BROKEN, OPEN, "the schema does not serve this version")                    \
    X(94, SERVER_UNSAFE, BROKEN, OPEN, "the server's settings are not safe for money")             \
    X(95, SESSION_LOST, RETRY, OPEN, "this process was declared dead; ask again")                  \
    X(96, SERVER_ERROR, BROKEN, OPEN, "the server reported an unexpected error")                   \
    X(97, INTERNAL, BROKEN, OPEN, "an internal check failed")                                      \
    X(98, CALLBACK_FAILED, BROKEN, OPEN, "a database callback failed")

/* What a call answers, by TL_STATUS_MAP. */
typedef enum tl_status {
#define TL_STATUS_ENUM(number, name, class_, payment, text) TL_##name = number,
    TL_STATUS_MAP(TL_STATUS_ENUM)
#undef TL_STATUS_ENUM
        TL_STATUS_LAST_
} tl_status;

/* For TL_GRANTED: "TL_GRANTED", "the lock is yours", TL_CLASS_DONE.  The texts are static, and any
 * number is accepted. */
TL_EXPORT const char *tl_status_name(tl_status status);
TL_EXPORT const char *tl_status_text(tl_status status);
TL_EXPORT tl_class tl_status_class(tl_status status);
/* Whether the status proves that the trade is paid; or that it is not.  Of most statuses both are
 * 0: see the map's column payment. */
TL_EXPORT int tl_paid(tl_status status);
TL_EXPORT int tl_not_paid(tl_status status);
TL_EXPORT const char *tl_class_name(tl_class class_);

/* The problem of the calling thread's last call, in one sentence; "" when it succeeded.  Valid
 * until the thread's next call into the library. */
TL_EXPORT const char *tl_error_message(void);

/* Leaves a sentence for tl_error_message(), and returns the status that it was given.  Callbacks
 * and layers above the locks report their problems with it. */
TL_EXPORT tl_status tl_error_report(tl_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
#if defined(__clang_analyzer__) && !defined(__cplusplus)
/* The static analyzer sees one file at a time; this shows it that the call returns `status`. */
#define tl_error_report(status, ...) ((void)tl_error_report((status), __VA_ARGS__), (status))
#endif

/* The version of the library that is linked, as TL_VERSION_STRING is that of the header.  All
 * libraries of one major version have one SONAME: a program that was built with an earlier one runs
 * with a later one, unchanged.  Structs grow at their end alone, by their member `version`. */
TL_EXPORT const char *tl_version(void);

/* ------------------------------------------------- threads, work and the log -- */

#define TL_UUID_TEXT 37 /* 36 characters and the end */

/* The random identity of the calling thread, made on first use and anew after fork().  Every row
 * and every log line carries it, for correlation; it proves nothing. */
TL_EXPORT const char *tl_thread_uuid(void);

/*
 * The log UUID names a piece of work.
 *
 * tl_work_begin() gives the thread one and returns 1.  When the thread has one already it returns 0
 * and changes nothing, so that nested entry points do not cut one piece of work in two; only the
 * caller that got 1 ends it.
 *
 * tl_work_adopt() lets a thread continue the piece of work of another: TL_OK, or TL_INVALID when
 * log_uuid is no UUID.
 *
 * tl_work_end() clears the log UUID.  With renew_thread it clears the thread's own UUID too, as a
 * pool does before it hands the thread to other work.
 */
TL_EXPORT int tl_work_begin(void);
TL_EXPORT tl_status tl_work_adopt(const char *log_uuid);
TL_EXPORT void tl_work_end(int renew_thread);
TL_EXPORT const char *tl_log_uuid(void); /* "" outside a piece of work */
/* "<uuid=...>" inside a piece of work, "" outside; for the caller's own log lines. */
TL_EXPORT const char *tl_log_prefix(void);

/*
 * The log tells of a trade, one line each: that it was granted, armed, answered by the channel
 * (workflows), ended or given back, and what a janitor did for a dead holder.  These lines are
 * INFO, or WARNING and ALARM if somebody should look.  A refusal is DEBUG, but TL_MISMATCH is a
 * WARNING: other contents under a known key may be fraud.  No line has a payload or a result. Lines
 * below the setting log_level are not made at all.
 *
 * A claim by a thread without a piece of work continues the trade's: the log UUID of its first ask,
 * which tl_lock_view() then shows.  If the trade has none, the claim begins one.  A worker
 * (tl_worker_start) works under it.  So one UUID leads through the service's log, the worker's, the
 * row and its history, and `tradelock ls --log UUID` finds the trade.
 */
typedef enum tl_level { TL_DEBUG, TL_INFO, TL_WARNING, TL_ALARM } tl_level;

/* A line of the log. */
typedef struct tl_log_line {
    tl_level level;
    const char *message;
    const char *thread_uuid;
    const char *log_uuid;  /* "" when there is none */
    const char *serial_no; /* "" when the line is not about a key */
    const char *cust_no;   /* hashed when the settings say so */
    const char *op_code;
    uint64_t fence; /* 0 when there is none */
    /* Of a line about a trade whose request named a trace context: the trace id in it; else "". */
    const char *trace_id;
    /* Likewise of a line about a trade whose request said its amount: in minor units, and in which
     * currency; else 0 and "". */
    int64_t amount_minor;
    const char *currency;
    /* Likewise its batch, or "".  At most TL_BATCH_MAX bytes of UTF-8 without control characters;
     * quotes, blanks and brackets may be among them. */
    const char *batch;
} tl_log_line;

/* Called from any thread, also from the library's own.  It must not call the library.  The library
 * itself never prints. */
typedef void (*tl_log_fn)(void *context, const tl_log_line *line);

/* The setting log_format: whether the program is asked to print its lines as JSON objects.  Where
 * the settings cannot be used, it is what the environment says. */
TL_EXPORT int tl_log_is_json(const char *config_file);

/* ------------------------------------------------------------ a trade's key -- */

#define TL_SERIAL_MAX 64
#define TL_CUST_MAX 32
#define TL_OP_MAX 32 /* of a row; business operations are shorter by "_RETRY" */
#define TL_RETRY_SUFFIX "_RETRY"
#define TL_PAYLOAD_MAX 65536
#define TL_RESULT_MAX 8192
#define TL_REMARK_MAX 255
#define TL_REF_MAX 128
#define TL_CHANNEL_MAX 32
#define TL_CHANNEL_KEY_MAX 64
#define TL_FINGERPRINT 32
#define TL_CURRENCY 3                     /* letters of an ISO 4217 code */
#define TL_BATCH_MAX 64                   /* bytes of UTF-8 */
#define TL_LABEL_MAX 64                   /* likewise */
#define TL_TRACEPARENT 55                 /* characters of a W3C trace context */
#define TL_HOLD_MAX_MS INT64_C(604800000) /* a week */

/* Printable ASCII without blanks; case matters.  op_code is the business one on both lanes. */
typedef struct tl_key {
    const char *serial_no;
    const char *cust_no;
    const char *op_code;
} tl_key;

/* ------------------------------------------------------------------ client -- */

/* A process at one database: its connections, session and heartbeat. */
typedef struct tl_client tl_client;

/* A client without a session: it may look, but not ask for locks. */
#define TL_CLIENT_NO_SESSION 1u
/* Do not run the janitor in this process's session thread. */
#define TL_CLIENT_NO_JANITOR 2u
/* Connect without looking at the schema: for migrate and doctor. */
#define TL_CLIENT_NO_SCHEMA 4u

/*
 * Called from the session thread each time a heartbeat finds that this process was declared dead.
 * Every lock that it was granted until now is lost for good, except mutexes and read-write locks
 * with a lease of their own.  The client takes a new session when the callback has returned.  The
 * callback must return quickly, and must not close the client.
 *
 * It is not called while heartbeats are merely unanswered: then tl_client_alive_ms() runs down to
 * 0, and tl_may_send() is false.
 */
typedef void (*tl_loss_fn)(void *context);

/* How a client is opened. */
typedef struct tl_client_options {
    unsigned version; /* TL_CLIENT_OPTIONS_VERSION */
    unsigned flags;   /* TL_CLIENT_... */
    /* Settings and connection; see config/tradelock.cnf.  "": those of the environment alone. */
    const char *config_file;
    const char *program;      /* on the session row; default "tradelock" */
    const char *operations;   /* on the session row: what this process serves; or NULL */
    const char *group_suffix; /* read [tradelock-client<suffix>]; NULL for none */
    const char *database;     /* instead of the one in the file; NULL keeps it */
    tl_log_fn log;            /* or NULL */
    void *log_context;
    tl_loss_fn loss; /* or NULL */
    void *loss_context;
    /* The account of a person who logs in with it, instead of the one in the file; both, or NULL.
     * With them no password of the file is used.  They are copied. */
    const char *user, *password;
    /* Of a settings file that names the shards of a fleet (<tradelock/fleet.h>), which one: the
     * lines of [tradelock-client-SHARD] count above those of [tradelock-client<suffix>].  A
     * database that says otherwise of itself is refused (TL_BAD_CONFIG).  NULL in any other file. */
    const char *shard;
} tl_client_options;

#define TL_CLIENT_OPTIONS_VERSION 1u
#define TL_CLIENT_OPTIONS_INIT TL_INITIAL(tl_client_options, TL_CLIENT_OPTIONS_VERSION)

/*
 * Reads the settings, connects, checks server and schema, writes the session row and starts its
 * heartbeat.  tl_client_close() frees the client.  If the server waits for a replica with each commit,
 * and is lost or takes no writes just then, closing waits until the next one was told what this
 * process knows: at most for as long as the session was certain to live.
 *
 *     TL_OK              The client is open.
 *     TL_BAD_CONFIG      The settings file cannot be used; the message names file and line.
 *     TL_UNREACHABLE     No server answers there, or none its commits.  Call again later.
 *     TL_ACCESS_DENIED   The account is refused, or may not ask for locks.
 *     TL_NO_SCHEMA       The database has no tables of tradelock: run `tradelock migrate`.
 *     TL_WRONG_SCHEMA    The schema is older than this library needs, or no longer serves it.
 *     TL_SERVER_UNSAFE   The server could lose commits, or is too old; the message says which
 *                        setting.
 *
 * The client is made only with TL_OK.
 */
TL_EXPORT tl_status tl_client_open(tl_client **out, const tl_client_options *options);

/*
 * Ends the session and frees the client.  Free every handle first.  If a handle left its trade in
 * process, the next janitor's round opens the trade to the retry lane; if all were ended, nobody
 * has to search.
 *
 * A close that comes too early is told by tl_error_message() and by an alarm in the log:
 *   - While a registry of workflows, a mutex or a read-write lock stands on the client, nothing is
 *     closed, and all goes on.  Free these, then close again.
 *   - A tl_lock that is freed later answers TL_WRONG_STATE until then.
 *   - While another thread is inside a call, the session ends, and the connections stay until the
 *     process does.
 *   - What was submitted is completed first.  Completions may submit nothing more: TL_WRONG_STATE.
 *
 * Closing twice in a row does nothing the second time, as long as no other client was opened in
 * between.
 */
TL_EXPORT void tl_client_close(tl_client *client);

/* The UUID of the session as it is now, "" without one.  After a loss it is another.  A returned
 * pointer stays valid, and its text unchanged, until the client is closed. */
TL_EXPORT const char *tl_client_session(const tl_client *client);

/* How long the session is certainly alive if no further heartbeat is confirmed; 0 between a loss
 * and the next session, and when there never was one.  No round trip. */
TL_EXPORT int64_t tl_client_alive_ms(const tl_client *client);

/* An eventfd(2) that becomes readable when a session is lost.  Read it to hear of the next loss
 * too. The client owns it; -1 without a session. */
TL_EXPORT int tl_client_loss_fd(const tl_client *client);

/* The counters of a client. */
typedef struct tl_stats {
    unsigned version; /* set to TL_STATS_VERSION by the caller */
    uint64_t asks, grants, refusals, finishes, lost, unknown;
    uint64_t opened, claimed, armed, parked;
    uint64_t statements, commits, rollbacks;
    uint64_t deadlocks, lock_waits, snapshot_conflicts; /* 1213, 1205, 1020 */
    uint64_t repeats, settled, reconnects, killed;
    uint64_t groups, grouped; /* groups that shared a commit, and the steps in them */
    uint64_t beats, beats_unreachable;
} tl_stats;

#define TL_STATS_VERSION 1u
#define TL_STATS_INIT TL_INITIAL(tl_stats, TL_STATS_VERSION)

/* Copies the counters of this client since it was opened.  TL_OK, or TL_INVALID when stats->version
 * is not set. */
TL_EXPORT tl_status tl_client_stats(const tl_client *client, tl_stats *stats);

#define TL_SCHEDULE_MAX 16

/* How patient compensating attempts are.  The settings file has the defaults, with the meaning of
 * each (config/tradelock.cnf); a workflow may have its own. */
typedef struct tl_policy {
    int64_t max_hold_ms, execute_ms, commit_ms, deadline_ms, grace_ms;
    int64_t schedule_ms[TL_SCHEDULE_MAX];
    unsigned schedule_count, attempts, poison;
    int64_t clock_margin_ms; /* how far the server's clock may be off unnoticed */
} tl_policy;

/* The defaults of the client's settings file; they live as long as the client. */
TL_EXPORT const tl_policy *tl_client_policy(const tl_client *client);

/* Writes a line through the client's log callback, with the thread's UUIDs.  key may be NULL, and
 * fence 0: the line is about no trade then. */
TL_EXPORT void tl_client_log(tl_client *client, tl_level level, const tl_key *key, uint64_t fence,
                             const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 5, 6)))
#endif
    ;

/* -------------------------------------------------------------- trade locks -- */

/* The lane of a lock: the first one, or the retry lane. */
typedef enum tl_lane { TL_LANE_SYNC, TL_LANE_RETRY } tl_lane;

/* What a trade is doing, derived from both rows and the holder's session. */
typedef enum tl_state {
    TL_STATE_ABSENT,
    TL_STATE_LIVE,     /* P, and its holder lives */
    TL_STATE_WORKING,  /* P, and its holder is a compensating attempt that lives */
    TL_STATE_IN_DOUBT, /* P, no living holder, something may have been sent */
    TL_STATE_QUEUED,   /* P, no living holder, nothing was sent */
    TL_STATE_PARKED,   /* P, no living holder, waits for a person */
    TL_STATE_FAILED,
    TL_STATE_SUCCEEDED,
    TL_STATE_WAITING, /* a retry row that is due at next_run */
    TL_STATE_CLOSED   /* a retry row of a trade that is finished, or was never needed */
} tl_state;

/* "live", "in doubt" and so on; "?" for any other number. */
TL_EXPORT const char *tl_state_name(tl_state state);

/* Why it is certain that no money moved.  Code, name, text. */
#define TL_PROOF_MAP(X)                                                                            \
    X('-', NONE, "no proof")                                                                       \
    X('D', DECLINED, "the channel declined")                                                       \
    X('L', NEVER_LEFT, "the request never left")                                                   \
    X('N', NOT_FOUND, "the channel's final word is that there is no such payment")                 \
    X('C', CANCELLED, "the channel cancelled it for good")                                         \
    X('S', DECLARED, "the service that held the lock declared it")                                 \
    X('O', OPERATORS, "two operators decided")

/* The letter of a proof, by TL_PROOF_MAP. */
typedef enum tl_proof {
#define TL_PROOF_ENUM(code, name, text) TL_PROOF_##name = code,
    TL_PROOF_MAP(TL_PROOF_ENUM)
#undef TL_PROOF_ENUM
} tl_proof;

/* The name and the text of a proof, by TL_PROOF_MAP. */
TL_EXPORT const char *tl_proof_name(tl_proof proof);
TL_EXPORT const char *tl_proof_text(tl_proof proof);

/* What a request says of itself, as its row keeps it.  A text that is "" was not said; currency "":
 * no amount was, and amount_minor is 0. */
typedef struct tl_said {
    int64_t amount_minor;
    char currency[TL_CURRENCY + 1];
    char batch[TL_BATCH_MAX + 1], traceparent[TL_TRACEPARENT + 1];
    char label[TL_LABEL_MAX + 1];
} tl_said;

/* A row as the server showed it, with what belongs to it on the other lane. */
typedef struct tl_view {
    unsigned version; /* TL_VIEW_VERSION */
    tl_state state;
    char lane;   /* 'S' or 'R'; of the row that was asked for */
    char status; /* 'P', 'F', 'Y'; ' ' when there is no row */
    char serial_no[TL_SERIAL_MAX + 1];
    char cust_no[TL_CUST_MAX + 1];
    char op_code[TL_OP_MAX + 1];
    uint64_t fence, rev;
    uint32_t epoch, sends, attempts, claims;
    char thread_no[TL_UUID_TEXT]; /* of the last step */
    char log_no[TL_UUID_TEXT];
    char session_id[TL_UUID_TEXT]; /* of the holder, "" without one */
    char holder[96];               /* "program pid@host" of that session */
    int64_t holder_silent_ms;      /* since its last beat; -1: no holder, or not asked */
    int being_decided;             /* an open transaction has the row locked; lists do not look */
    int retryable, conflict, exclusive, has_retry_row;
    int repeatable; /* a repeatable trade or a standalone row; never one that happens once */
    int seen_by_channel, cancel_tried; /* what compensating attempts found, this epoch */
    char retry_status;                 /* of the retry row, ' ' without one */
    char proof;                        /* a tl_proof */
    char parked[64];                   /* why; "" when not parked */
    char channel[TL_CHANNEL_MAX + 1];
    char channel_key[TL_CHANNEL_KEY_MAX + 1];
    char channel_ref[TL_REF_MAX + 1];
    char remark[TL_REMARK_MAX + 1];
    char actor[64];
    char other_serial[TL_SERIAL_MAX + 1]; /* TL_CUSTOMER_BUSY: which */
    tl_state other_state;
    int64_t created_us, updated_us, now_us;
    int64_t max_hold_until_us, send_until_us, next_run_us, deadline_us; /* 0: none */
    int64_t not_found_since_us;
    unsigned char fingerprint[TL_FINGERPRINT];
    const void *payload;
    size_t payload_size;
    const void *result;
    size_t result_size;
    /* Of the sync row: what its first ask said of itself.  currency "": it said nothing, and
     * amount_minor is 0; or it was not read, by a reclaim that names the fence. */
    int64_t amount_minor;
    char currency[TL_CURRENCY + 1];
    char batch[TL_BATCH_MAX + 1], traceparent[TL_TRACEPARENT + 1]; /* as currency */
    char label[TL_LABEL_MAX + 1];
} tl_view;

#define TL_VIEW_VERSION 1u

/* Every callback of a list returns 0 to go on.  What it is given lives until it returns. */
typedef int (*tl_view_fn)(void *context, const tl_view *view);

/*
 * Shows the row of one lane, payload and result included.  It reads only, and needs no session.
 *
 *     TL_OK          each() was called once.
 *     TL_NOT_FOUND   There is no such row.
 */
TL_EXPORT tl_status tl_show(tl_client *client, const tl_key *key, tl_lane lane, tl_view_fn each,
                            void *context);

/*
 * Shows the sync rows of many trades, in no order, with one statement for each 64 of them; no row
 * is locked.  A key that has no row is left out; one that is named twice may be shown twice.  What
 * only tl_show() looks for is as in a list: holder_silent_ms is -1, being_decided 0.  It reads
 * only, and needs no session.  TL_OK also when there are no rows; each() may have been called
 * before an error.
 */
TL_EXPORT tl_status tl_show_many(tl_client *client, const tl_key *keys, size_t count,
                                 tl_view_fn each, void *context);

/* At most one trade of this operation is in process for a customer. */
#define TL_ASK_EXCLUSIVE 1u
/* A repeatable trade: a finished row may be taken again, as the article does.  No retry lane. */
#define TL_ASK_REPEATABLE 2u
/* Retry lane only: there is no sync row, and the retry row alone decides. */
#define TL_ASK_STANDALONE 4u
/* Try a proven, retryable failure anew.  The options must name the epoch that was seen, and may
 * name the fence. */
#define TL_ASK_RECLAIM 8u
/* An operator's ask for a parked or not yet due row, bound to the fence that was seen. */
#define TL_ASK_OVERRIDE 16u

/* What a lock is asked for with. */
typedef struct tl_lock_options {
    unsigned version; /* TL_LOCK_OPTIONS_VERSION */
    unsigned flags;   /* TL_ASK_... */
    tl_lane lane;
    /* The longest hold; mandatory, at most TL_HOLD_MAX_MS.  A janitor opens a row that is held
     * longer, five seconds after its grant at the earliest. */
    int64_t max_hold_ms;
    int64_t deadline_ms;    /* after which nothing is sent any more; 0: none */
    uint32_t reclaim_epoch; /* with TL_ASK_RECLAIM */
    uint64_t override_fence;
    const void *payload; /* copied; what is needed to pay */
    size_t payload_size;
    const unsigned char *fingerprint; /* TL_FINGERPRINT bytes; NULL: SHA-256 of payload */
    const char *channel;              /* NULL: no channel key is made */
    unsigned channel_key_chars;       /* 20 to 64 hexadecimal digits; 0: 64 */
    int not_sent;                     /* P is made without a send: sends starts at 0 */
    const char *remark;
    const char *actor;
    uint64_t reclaim_fence; /* with TL_ASK_RECLAIM: of the failure that was seen; 0: any */
    /* What the request says of itself, both or neither; for operators and callbacks, and no part of
     * the fingerprint.  The row keeps what its first ask said.  Not for repeatable trades. */
    int64_t amount_minor; /* 0 or more, in minor units */
    const char *currency; /* three letters A to Z; NULL: not said */
    /* Likewise, each alone or not at all (NULL). */
    const char *batch; /* UTF-8 without control characters, at most TL_BATCH_MAX bytes */
    /* W3C trace context of version 00, in small letters; what is none is left out, with a warning
     * in the log. */
    const char *traceparent;
    const char *label; /* what people call it, such as an order's number; as batch */
} tl_lock_options;

#define TL_LOCK_OPTIONS_VERSION 1u
#define TL_LOCK_OPTIONS_INIT TL_INITIAL(tl_lock_options, TL_LOCK_OPTIONS_VERSION)

/* A handle for one lock of a trade. */
typedef struct tl_lock tl_lock;

/* Makes a handle and checks key and options; writes nothing.  TL_OK, or TL_INVALID with a sentence
 * that names the field.  The options are copied; tl_lock_free() frees the handle. */
TL_EXPORT tl_status tl_lock_new(tl_lock **out, tl_client *client, const tl_key *key,
                                const tl_lock_options *options);

/* Frees memory only: a lock that is held stays P until its session or max_hold ends.  So finish it
 * first, with TL_OUTCOME_UNKNOWN if nothing better is known. */
TL_EXPORT void tl_lock_free(tl_lock *lock);

/*
 * Asks for the lock.  wait_ms 0 asks once.  Else a conflict that may pass (TL_BUSY,
 * TL_CUSTOMER_BUSY, TL_NOT_DUE) is asked again, with a growing, jittered delay, until wait_ms is
 * over; in each process one of a key's waiters asks for all of them.  A server that has fallen
 * silent prolongs the wait to pool_wait_ms at most, and by a second where asks share a statement;
 * read_timeout_s counts without a wait, and where business rows are written.  A refusal writes
 * nothing.
 *
 *     TL_GRANTED         The lock is held under the handle.  Pay, while tl_may_send() is true, and
 *                        end it with tl_lock_finish().
 *     TL_BUSY            Another attempt holds it and lives.  Do not pay; ask again later.
 *     TL_CUSTOMER_BUSY   Sync lane, TL_ASK_EXCLUSIVE: another trade of this customer is in process;
 *                        the view's other_serial says which.
 *     TL_IN_DOUBT        Sync lane: something may have been sent, and nobody is at it.  Do not pay;
 *                        the retry lane finds out.
 *     TL_QUEUED          Sync lane: nothing was sent yet; the retry lane will send.  Do not pay.
 *     TL_PARKED          The trade waits for a person.  Do not pay.
 *     TL_NOT_DUE         Retry lane: the next attempt is due at the view's next_run_us.
 *     TL_ALREADY_DONE    The trade succeeded before; its result is in the view.  Do not pay.
 *     TL_FAILED          It failed before, with the view's proof.  It is tried anew only with
 *                        TL_ASK_RECLAIM, and only when the view says retryable.
 *     TL_IN_CONFLICT     Evidence contradicts the row.  Do not pay; operators decide.
 *     TL_MISMATCH        The key was asked for with other contents, or as the other kind of lock (a
 *                        repeatable or standalone one, and a trade that happens once).  Do not pay.
 *     TL_NO_TRADE        Retry lane: there is no such trade in doubt.
 *     TL_ASK_CHANNEL     The server was restored or replaced, and no operators have accepted it.
 *                        Nothing is granted until they have.
 *     TL_MISDIRECTED     This database is a shard of a fleet, and the customer belongs to another
 *                        one, where the trade may be.  Do not pay; ask there.
 *     TL_SESSION_LOST    This process was taken for dead.  Nothing happened; ask again.
 *     TL_UNKNOWN         The answer was lost.  Ask again with the same handle: if the first ask was
 *                        carried out, that answers TL_GRANTED.
 */
TL_EXPORT tl_status tl_lock_ask(tl_lock *lock, int64_t wait_ms);

/* The row as the last call saw it.  After the handle's own ending it is what that ending left; the
 * row is not read for that, so moments that the server chose are 0.  Never NULL. */
TL_EXPORT const tl_view *tl_lock_view(const tl_lock *lock);

/*
 * Whether a send may start now: 1 when the session certainly lives, and send_ms, the longest that
 * the send can take, fits into what is left of max_hold.  0 also once the lock is known lost.  No
 * round trip.
 *
 * The session need not be certain for the whole of send_ms.  Should it die meanwhile, nobody
 * believes a "no such payment" before send_until, which is the end of max_hold.
 *
 * A process may be stopped right after it asked.  So whoever sends computes the moment to send by,
 * now plus send_ms, before this call, and sends nothing after that moment.
 */
TL_EXPORT int tl_may_send(const tl_lock *lock, int64_t send_ms);

/* What is left of max_hold; 0 when the lock is lost or the session is not certainly alive.  No
 * round trip. */
TL_EXPORT int64_t tl_lock_remaining_ms(const tl_lock *lock);

/* What the holder of a lock found out. */
typedef enum tl_outcome {
    TL_OUTCOME_UNKNOWN,     /* stays P, retry lane opened; what was not filled in is this */
    TL_OUTCOME_SUCCESS,     /* P -> Y */
    TL_OUTCOME_FAILURE,     /* P -> F; needs a proof */
    TL_OUTCOME_ACCEPTED,    /* the channel took it and will pay later; P, lane opened */
    TL_OUTCOME_PENDING,     /* the channel is at it; P, lane opened */
    TL_OUTCOME_RETRY_LATER, /* the channel provably did nothing: this send does not count */
    TL_OUTCOME_NOT_SENT     /* nothing left this process: this send does not count */
} tl_outcome;

/* How a hold ends. */
typedef struct tl_ending {
    unsigned version; /* TL_ENDING_VERSION */
    tl_outcome outcome;
    tl_proof proof;          /* FAILURE: mandatory; else none */
    int retryable;           /* FAILURE: may be tried anew as another epoch */
    int64_t next_run_ms;     /* opened: when the next compensating attempt is due, unless parked */
    const char *park_reason; /* opened: wait for a person, because; then no attempt is due */
    const char *channel_ref; /* the channel's name of the payment; NULL keeps the row's */
    const void *result;      /* kept with Y and returned to every later ask */
    size_t result_size;
    const char *remark;
    const char *actor;
} tl_ending;

#define TL_ENDING_VERSION 1u
#ifdef __cplusplus
inline tl_ending tl_ending_initial()
{
    tl_ending ending = tl_initial<tl_ending>(TL_ENDING_VERSION);
    ending.proof = TL_PROOF_NONE;
    return ending;
}
#define TL_ENDING_INIT tl_ending_initial()
#else
#define TL_ENDING_INIT {.version = TL_ENDING_VERSION, .proof = TL_PROOF_NONE}
#endif

/*
 * Ends the hold.  The handle can be freed after any answer; a hold that it leaves open ends with
 * the session or max_hold.
 *
 *     TL_SUCCEEDED   The row is Y.
 *     TL_FAILED      The row is F, with the proof.
 *     TL_IN_DOUBT, TL_QUEUED, TL_PARKED
 *                    The row stays P, and the retry lane or a person has it.
 *     TL_LOST        The lock had been taken over, or lost with its session.  The row is unchanged;
 *                    what the ending knew is filed as evidence.
 *     TL_EVIDENCE    A failure was refused, since evidence says that money moved.  The lock is
 *                    still held: end it with TL_OUTCOME_UNKNOWN.
 *     TL_ASK_CHANNEL A failure was refused.  Either a restore is open.  Or a compensating attempt's
 *                    failure rests on moments of the row (not found, never left, a decline that
 *                    this hold's own send did not hear, operators), and the server's clock was set
 *                    since before the claim.  The lock is still held: put it back, ask anew.
 *     TL_CALLBACK_FAILED
 *                    As for tl_lock_finish_with() (<tradelock/callback.h>), of an ending that was
 *                    left unknown there.
 *     TL_UNKNOWN     The answer was lost.  Call again with the same handle and the same ending, or
 *                    tl_lock_settle().
 */
TL_EXPORT tl_status tl_lock_finish(tl_lock *lock, const tl_ending *ending);

/*
 * For services with an event loop: a call is submitted now, carried out together with others, and
 * completed later.  The library makes three threads, on first use, which do the waiting.  Until the
 * completion the library owns the handle, the ending, and everything that the ending points to:
 * other calls on the handle answer TL_WRONG_STATE.
 *
 * done is called on one of them, one call at a time, under the submitting thread's log UUID.  It
 * may submit; it must not block, end its thread or close the client.  With done NULL the completion
 * waits until tl_client_completed() takes it, and the descriptor is readable while any waits.  Asks
 * and endings are completed in no common order.
 *
 * Its status is any answer of tl_lock_ask() without a wait, or of tl_lock_finish().
 */
typedef void (*tl_done_fn)(void *context, tl_lock *lock, tl_status status);

/* TL_OK: submitted, and completed exactly once.  Anything else: not submitted, and done is not
 * called. */
TL_EXPORT tl_status tl_lock_ask_submit(tl_lock *lock, tl_done_fn done, void *context);
TL_EXPORT tl_status tl_lock_finish_submit(tl_lock *lock, const tl_ending *ending, tl_done_fn done,
                                          void *context);

/* What became of a submitted call. */
typedef struct tl_completion {
    tl_lock *lock; /* NULL: of a workflow (tl_workflow_submit()) */
    void *context; /* as submitted */
    tl_status status;
} tl_completion;

/* Takes at most max completions, oldest first, and returns how many.  Never waits. */
TL_EXPORT size_t tl_client_completed(tl_client *client, tl_completion *completions, size_t max);

/* Readable while completions wait.  Made on first use; the client owns it.  -1 when it cannot be
 * made. */
TL_EXPORT int tl_client_completed_fd(tl_client *client);

/* For work in a caller's own transaction: accepts a connection without idle_transaction_timeout,
 * which is refused otherwise.  A caller that vanishes in such a transaction keeps what it has
 * locked from everybody for hours. */
#define TL_GUARD_ANY_IDLE 1u

/*
 * Ends the hold inside the caller's transaction, on the caller's connection, which is never
 * committed, rolled back or SET here.  Outcomes: SUCCESS and FAILURE.  flags: 0 or
 * TL_GUARD_ANY_IDLE.
 *
 *     TL_OK           The compare-and-set is part of the transaction.  Go on, commit, and report
 *                     with tl_lock_committed().
 *     TL_ROLL_BACK    The lock was lost, evidence forbids the failure, or the server undid the
 *                     statement.  Roll back, then end the lock with tl_lock_finish(), which says
 *                     what is left of it.
 *     TL_NO_TRANSACTION
 *                     No transaction is open, or autocommit is off.  Nothing was done.
 *
 * With any answer but TL_OK the caller must not commit.
 *
 * The caller begins the transaction with START TRANSACTION, and autocommit is on.  So an open
 * transaction is certainly the one with the caller's rows, even if the caller misses errors by
 * which the server rolls back (1213, 1020).  With autocommit off that cannot be told.  The caller
 * must look at the errors of what it writes after this call: after a 1213 or 1020 there is nothing
 * to commit.
 */
TL_EXPORT tl_status tl_lock_finish_in(tl_lock *lock, struct st_mysql *connection,
                                      const tl_ending *ending, unsigned flags);

/* What became of the caller's own commit. */
typedef enum tl_commit { TL_COMMIT_OK, TL_COMMIT_ROLLED_BACK, TL_COMMIT_UNANSWERED } tl_commit;

/*
 * Reports how the transaction of tl_lock_finish_in() ended.
 *
 *     TL_COMMIT_OK            TL_SUCCEEDED or TL_FAILED: the handle is finished.
 *     TL_COMMIT_ROLLED_BACK   TL_OK: the lock is held as before.
 *     TL_COMMIT_UNANSWERED    Asks the server; any answer of tl_lock_settle().
 */
TL_EXPORT tl_status tl_lock_committed(tl_lock *lock, tl_commit commit);

/*
 * Finds out what became of an ending whose answer was lost.
 *
 *     TL_SUCCEEDED, TL_FAILED, or what else the ending answers: it was committed.
 *     TL_GRANTED           It was not committed, and the lock is still held: end it again.
 *     TL_LOST              It was not committed, and the lock is somebody else's by now.
 *     TL_UNKNOWN           It cannot be known yet.  Call again later.
 *     TL_CALLBACK_FAILED   As for tl_lock_finish_with() (<tradelock/callback.h>).
 *     TL_WRONG_STATE       No ending of this handle waits to be settled.
 */
TL_EXPORT tl_status tl_lock_settle(tl_lock *lock);

/* ---------------------------------------------------------------- evidence -- */

/* What a payment moved, as somebody else tells it. */
typedef struct tl_payment_amount {
    int is_told;          /* 0: amount_minor is not told */
    int64_t amount_minor; /* below 0: the money came back */
    const char *currency; /* three letters A to Z; NULL: not told */
} tl_payment_amount;

/* What a web-hook, a statement or a fenced-out holder knows of a payment. */
typedef struct tl_evidence {
    unsigned version; /* TL_EVIDENCE_VERSION */
    tl_key key;
    uint32_t epoch;          /* 0: the row's */
    const char *channel_key; /* NULL: the row's */
    const char *outcome;     /* SUCCEEDED FAILED DECLINED ACCEPTED PENDING UNKNOWN NOT_SENT */
    int final;               /* FAILED: the channel documents this answer as final */
    const char *channel_ref;
    const char *source; /* who says so */
    const char *remark;
    tl_payment_amount amount; /* compared with what the trade told */
} tl_evidence;

#define TL_EVIDENCE_VERSION 1u
#define TL_EVIDENCE_INIT TL_INITIAL(tl_evidence, TL_EVIDENCE_VERSION)

/*
 * Files what somebody knows of a payment, and what follows from it in the same transaction.  The
 * lane of a P row becomes due at once, or when it is next opened.  The texts are copied to the
 * server.  These contradict the row, are never taken for its success or failure, and set its
 * conflict: success of an F row, or of an older epoch; success with another amount or currency than
 * the trade told, or with an amount below 0; another payment, by its reference or key, of a trade
 * that is paid; and a failure of a Y row.  So does an ending by another reference than success was
 * filed with (blanks do not count), and success after a final FAILED, unless two operators found
 * meanwhile that it was paid.  While a P row is in conflict it cannot fail, but by two operators.
 *
 *     TL_OK            It is filed.
 *     TL_IN_CONFLICT   It is filed, and it contradicts the row: operators decide.
 *     TL_NOT_FOUND     There is no such trade, and no restore is open; nothing was filed.
 *     TL_UNKNOWN       The answer was lost.  File it again: the same twice is harmless.
 */
TL_EXPORT tl_status tl_evidence_add(tl_client *client, const tl_evidence *evidence);

/* Evidence as it is on file. */
typedef struct tl_evidence_row {
    uint64_t evidence_id;
    uint32_t epoch;
    const char *channel_key, *outcome, *channel_ref, *source, *remark, *account;
    int final;
    int64_t filed_us;
    tl_payment_amount amount;
    /* What the row said when it was filed: 1 by its outcome, epoch or key; 2 it is of another
     * payment, amount or currency, and never the trade's success. */
    int contradicts;
} tl_evidence_row;

/* Called once for each row of evidence; returns 0 to go on. */
typedef int (*tl_evidence_fn)(void *context, const tl_evidence_row *row);

/* All evidence of a trade, oldest first.  TL_OK also when there is none.  Reads only. */
TL_EXPORT tl_status tl_evidence_list(tl_client *client, const tl_key *key, tl_evidence_fn each,
                                     void *context);

/* ------------------------------------------------------------- channel keys -- */

/* The site's name in channel keys, from the settings; it lives as long as the client. */
TL_EXPORT const char *tl_client_site(const tl_client *client);

/*
 * Computes the idempotency key of a payment, with which it is sent to the channel: lower-case
 * hexadecimal digits of SHA-256 over site, channel, serial_no, cust_no, op_code (each as a
 * four-byte big-endian length and its bytes) and epoch (four bytes, big-endian), cut to `chars`, 20
 * to 64. `out` takes chars + 1 bytes.  TL_OK or TL_INVALID.
 *
 * Anybody can compute it again:
 *
 *     site "bank-a", channel "fastpay", serial "W20240001", customer "C1001",
 *     operation "WITHDRAW", epoch 1, 64 characters:
 *     TL_CHANNEL_KEY_VECTOR_1; the same with epoch 2: TL_CHANNEL_KEY_VECTOR_2
 */
TL_EXPORT tl_status tl_channel_key(char *out, unsigned chars, const char *site, const char *channel,
                                   const tl_key *key, uint32_t epoch);
#define TL_CHANNEL_KEY_VECTOR_1 "8fb97bad933a454d3c2f0feccc1f77273a6274af58e5eccb859ef2727bb92ce5"
#define TL_CHANNEL_KEY_VECTOR_2 "c5f2f2a6ef2c0c2b87f926582b8de7ca51cdbdeeae48fbc65e194fe42b839084"

#ifdef __cplusplus
}
#endif
#endif
