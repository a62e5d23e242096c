/*
 * engine.h - what stands between the locks and those who drive them: the workflow layer, retry
 * workers and the operators' command.  Services need tradelock.h only.
 *
 * Everything said there about threads, fork, memory and errors holds here too.
 */
#ifndef TRADELOCK_ENGINE_H
#define TRADELOCK_ENGINE_H

#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------- business rows ride along -- */

/*
 * Database work of the caller's inside the library's transaction, on the library's connection,
 * where autocommit is off.  It may run again (deadlock, lock wait), and may wait for row locks no
 * longer than the settings allow.  TL_OK goes on; TL_REFUSED (ask only) leaves no row behind;
 * TL_TRY_AGAIN says that the last statement met 1213, 1205 or 1020, and needs nothing done before
 * it; anything else fails the transaction.  Asking for a lock inside is refused with
 * TL_IN_CALLBACK.
 *
 * It must not commit, roll back, switch autocommit on or RELEASE_ALL_LOCKS() (a callback that ended
 * the transaction, or took the connection's name away, is noticed and refused); must not name the
 * savepoint `tl_callback` (what was rolled back to it goes without the lock's row, and nobody
 * notices); and must give back what would outlive the transaction with the connection: GET_LOCK(),
 * HANDLER ... OPEN, statements that it prepared.
 *
 * What it changes of the session (SET, USE, SET ROLE, temporary tables) governs nobody else: the
 * connection is closed after the transaction, which costs the next one a connection to make, and
 * the log a warning.
 *
 * It is to return.  Where it does not - an exception passes through the library, its thread ends, a
 * longjmp goes past - its connection is closed, which undoes what it did, and the handle settles
 * its step with the next call, as after TL_UNKNOWN.  That is at once, but after a longjmp when the
 * thread next calls the library or ends.  The same holds for what a list calls.
 */
typedef tl_status (*tl_tx_fn)(void *context, struct st_mysql *connection);

/* tl_lock_ask() with rows written in the transaction that makes P, and with the same wait. Sync
 * lane.  `prepare` may be NULL.  TL_REFUSED, TL_CALLBACK_FAILED: nothing was written, unless
 * `prepare` itself committed, which it must not, or an ask without business rows had been left
 * unknown before: the trade is opened to the retry lane then when its max_hold is over, or the
 * session.  Where that is found out later, tl_lock_ask() answers it too. */
TL_EXPORT tl_status tl_lock_ask_with(tl_lock *lock, tl_tx_fn prepare, void *context,
                                     int64_t wait_ms);

/*
 * tl_lock_finish() with rows written in the transaction that ends the hold; the compare-and-set is
 * its first statement.  1213, 1205 and 1020 repeat the transaction within commit_ms.
 * TL_CALLBACK_FAILED: rolled back, the lock is still held, the caller decides what to do with what
 * it knows; unless `apply` itself ended the transaction, which it must not: the ending may be
 * committed then, and the next one answers TL_LOST.  Where that is found out later,
 * tl_lock_finish() and tl_lock_settle() answer TL_CALLBACK_FAILED too.  SUCCESS and FAILURE only.
 */
TL_EXPORT tl_status tl_lock_finish_with(tl_lock *lock, const tl_ending *ending, tl_tx_fn apply,
                                        void *context, int64_t commit_ms);

/* The bytes of the UTF-8 character that begins here, 0 when there is none.  References and remarks
 * of endings have nothing else.  Reads no further than a NUL. */
TL_EXPORT size_t tl_utf8_size(const char *character);

/* ------------------------------------------------------ compensating attempts -- */

/* The committed step before a compensating attempt sends: sends + 1, a new max_hold and
 * send_until.  TL_OK: the send may go out (while tl_may_send()).  TL_LOST.  TL_EVIDENCE:
 * conflict, success evidence, a tried cancel, what operators decided or the deadline forbid it;
 * still held.  TL_UNKNOWN: nothing may be sent; the same call again, or an ending, finds out.
 * An ending as NOT_SENT or RETRY_LATER takes the last arming back, and with the only one of
 * this hold what it added to send_until. */
TL_EXPORT tl_status tl_lock_arm(tl_lock *lock, int64_t max_hold_ms);

/* What a compensating attempt learned besides the outcome; with tl_lock_put_back(). */
typedef struct tl_findings {
    int not_found_first; /* "no such payment" after send_until: the grace starts */
    int not_found_reset; /* the channel knew it after all */
    int seen_by_channel; /* a later "no such payment" contradicts */
    int cancel_tried;    /* nothing is sent again in this epoch */
    int apply_failed;    /* a database callback failed: by schedule, whatever is on file */
    int not_counted;     /* TL_ASK_CHANNEL let it do nothing: it is no attempt */
} tl_findings;

/* tl_lock_finish() for the outcomes that open the lane, with findings. */
TL_EXPORT tl_status tl_lock_put_back(tl_lock *lock, const tl_ending *ending,
                                     const tl_findings *findings);

typedef struct tl_claim_options {
    unsigned version; /* TL_CLAIM_OPTIONS_VERSION */
    const char *op_code;
    int64_t max_hold_ms;
    /* 1: only rows whose last holder died at them, to be run with nothing else in flight; 0: only
     * the others. */
    int suspects;
} tl_claim_options;

#define TL_CLAIM_OPTIONS_VERSION 1u
#define TL_CLAIM_OPTIONS_INIT                                                                      \
    {                                                                                              \
        TL_CLAIM_OPTIONS_VERSION, NULL, 0, 0                                                       \
    }
#define TL_CLAIM_MAX 64

/*
 * Claims due work of one operation, oldest first: at most *count handles (at most TL_CLAIM_MAX),
 * each TL_GRANTED on the retry lane with its view and payload.  *count becomes how many there are.
 * TL_OK with 0: nothing is due.  Rows that others are at are stepped over.  An error is never
 * "nothing to do".  TL_UNKNOWN: claims may have been made; the next call finds out and gives them.
 */
TL_EXPORT tl_status tl_claim_due(tl_client *client, const tl_claim_options *options,
                                 tl_lock **locks, size_t *count);

/* When the next row of this operation becomes due: ms from now, 0 when one is due, -1 when none
 * waits.  For a worker's sleep and for "still waiting for" messages. */
TL_EXPORT tl_status tl_next_due_ms(tl_client *client, const char *op_code, int64_t *due_ms);

/* The operation codes that have rows, retry lanes included; for those who look for due work that
 * nobody serves. */
typedef int (*tl_operation_fn)(void *context, const char *op_code);
TL_EXPORT tl_status tl_operations(tl_client *client, tl_operation_fn each, void *context);

/* The janitor's round, once: ends sessions that were observed expired, opens the lanes of P rows
 * without a living holder, frees the dead holders of read-write locks.  Any number may run at once.
 * Needs a service's account: operators write no trades. */
typedef struct tl_reaped {
    uint64_t sessions, opened, freed;
} tl_reaped;
TL_EXPORT tl_status tl_reap(tl_client *client, tl_reaped *reaped);

/* ------------------------------------------------------------------ policy -- */

#define TL_SCHEDULE_MAX 16

/* The defaults of the settings file; every workflow may have its own. */
typedef struct tl_policy {
    int64_t max_hold_ms, execute_ms, commit_ms, deadline_ms, grace_ms;
    int64_t schedule_ms[TL_SCHEDULE_MAX];
    unsigned schedule_count, attempts, poison;
    int64_t clock_margin_ms; /* so far the server's clock may be off unnoticed */
} tl_policy;

TL_EXPORT const tl_policy *tl_client_policy(const tl_client *client);
/* The site's name in channel keys. */
TL_EXPORT const char *tl_client_site(const tl_client *client);
/* What a layer above keeps of a client stands on it: closing the client before the last of them is
 * detached is refused, with an alarm. */
TL_EXPORT tl_status tl_client_attach(tl_client *client);
TL_EXPORT void tl_client_detach(tl_client *client);
/* Through the client's log callback, with the thread's UUIDs. */
TL_EXPORT void tl_client_log(tl_client *client, tl_level level, const tl_key *key, uint64_t fence,
                             const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 5, 6)))
#endif
    ;

/* Leaves the sentence that tl_error_message() gives, and returns status: a layer above the locks
 * reports its problems in the same place. */
TL_EXPORT tl_status tl_error_report(tl_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
#if defined(__clang_analyzer__) && !defined(__cplusplus)
/* Shows the analyzer, which sees one file at a time, that the status comes back. */
#define tl_error_report(status, ...) ((void)tl_error_report((status), __VA_ARGS__), (status))
#endif

#ifdef TL_TEST_HOOKS
/* Test builds only: a passage of the layers above through the one function that counts, stops and
 * kills.  kind: 'C' a callback, 'H' an HTTP call, 'S' a statement, 'X' a commit. when: "before" or
 * "after". */
TL_EXPORT void tl_test_point(char kind, const char *name, const char *when);
/* Whether TL_MUTATION switches this safety rule off. */
TL_EXPORT int tl_test_mutated(const char *rule);
/* Whether this allocation, or this start of a thread, is to fail. */
TL_EXPORT int tl_test_allocation(void);
#else
#define tl_test_point(kind, name, when) ((void)0)
#define tl_test_mutated(rule) 0
#define tl_test_allocation() 0
#endif

/* ---------------------------------------------------------------- evidence -- */

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
} tl_evidence;

#define TL_EVIDENCE_VERSION 1u

/*
 * Files it with the sync row locked first, and what follows from it in the same transaction: the
 * lane of a P row becomes due at once (or when it is next opened); success for an F row or for an
 * older epoch sets the conflict.  TL_OK, TL_IN_CONFLICT (filed, and it contradicts the row),
 * TL_NOT_FOUND.
 */
TL_EXPORT tl_status tl_evidence_add(tl_client *client, const tl_evidence *evidence);

typedef struct tl_evidence_row {
    uint64_t evidence_id;
    uint32_t epoch;
    const char *channel_key, *outcome, *channel_ref, *source, *remark, *account;
    int final;
    int64_t filed_us;
} tl_evidence_row;

/* A callback of a list returns 0 to go on. */
typedef int (*tl_evidence_fn)(void *context, const tl_evidence_row *row);
TL_EXPORT tl_status tl_evidence_list(tl_client *client, const tl_key *key, tl_evidence_fn each,
                                     void *context);

/* --------------------------------------------------------------- operators -- */

typedef struct tl_filter {
    unsigned version; /* TL_FILTER_VERSION */
    char lane;        /* 'S', 'R'; 0: both */
    char status;      /* 'P', 'F', 'Y'; 0: all */
    const char *op;   /* business operation; its retry rows too unless lane says S */
    const char *cust;
    const char *serial;
    int64_t older_ms; /* not changed for that long; 0: all */
    int parked, in_doubt, conflict;
    unsigned limit; /* 0: 100 */
    /* Rows of which a step was written under this log UUID; needs an operator's or reader's
     * account. */
    const char *log_uuid;
} tl_filter;

#define TL_FILTER_VERSION 1u

typedef int (*tl_view_fn)(void *context, const tl_view *view);
TL_EXPORT tl_status tl_list(tl_client *client, const tl_filter *filter, tl_view_fn each,
                            void *context);

/* The row of one lane, payload and result included.  TL_OK or TL_NOT_FOUND. */
TL_EXPORT tl_status tl_show(tl_client *client, const tl_key *key, tl_lane lane, tl_view_fn each,
                            void *context);

/* One committed step of a row: its last one, or one of those before, which no application account
 * can alter. */
typedef struct tl_step {
    const char *op_code, *step, *thread_no, *log_no, *session_id, *parked, *channel_key;
    const char *channel_ref, *remark, *actor, *account;
    char status, proof;
    uint64_t rev, fence;
    uint32_t epoch, attempts, claims, sends;
    int conflict;
    int64_t logged_us, send_until_us, max_hold_until_us, next_run_us; /* 0: none */
} tl_step;

typedef int (*tl_step_fn)(void *context, const tl_step *step);
/* Both lanes, oldest first.  Needs an operator's or reader's account. */
TL_EXPORT tl_status tl_timeline(tl_client *client, const tl_key *key, tl_step_fn each,
                                void *context);

/* Makes a waiting or parked lane due now; parking is lifted.  Bound to the fence that was seen:
 * TL_LOST when the trade has moved on since.  The reason goes on record. */
TL_EXPORT tl_status tl_retry_now(tl_client *client, const tl_key *key, uint64_t fence,
                                 const char *actor, const char *reason);

/* ------------------------------------------------------- two operators decide -- */

/* What two operators can decide together. */
typedef enum tl_verdict {
    /* The conflict is cleared: the evidence was wrong, or is dealt with elsewhere. */
    TL_VERDICT_CLEAR = 'C',
    /* A failure in conflict was paid after all: F -> Y, with apply_success. */
    TL_VERDICT_PAID = 'Y',
    /* A trade in doubt failed: P -> F, proof TL_PROOF_OPERATORS, with apply_failure. */
    TL_VERDICT_FAILED = 'F'
} tl_verdict;

/* "clear", "paid", "failed"; "" for any other number. */
TL_EXPORT const char *tl_verdict_name(tl_verdict verdict);

typedef struct tl_resolution {
    unsigned version; /* TL_RESOLUTION_VERSION */
    tl_key key;
    uint64_t fence; /* of the sync row, as it was seen */
    tl_verdict verdict;
    const char *actor, *reason; /* mandatory; for the record, and for no customer */
    /* The confirmation of a failure: it is to be booked although the channel calls the payment
     * pending. */
    int although_pending;
} tl_resolution;

#define TL_RESOLUTION_VERSION 2u

/*
 * One operator proposes, another confirms: two accounts of the database, told apart by the server
 * (sql/object/operator.sql).  Both are bound to the row that they saw: when its fence or
 * revision has moved since, TL_LOST and nothing happens.  Repeating either is harmless, and a
 * proposal that nobody confirms changes nothing, ever.
 *
 * The confirmation raises the fence and clears the conflict, or makes the retry lane due: then
 * whoever has the workflow registered carries the decision out, with the business rows in the
 * transaction that ends the trade.  Nothing is sent for it any more.  A channel that can be asked
 * is asked before a failure is booked: one that it paid becomes Y, and of one that it calls pending
 * the decision is not carried out (tl_resolution_refuse()).
 *
 * TL_OK.  TL_LOST.  TL_NOT_FOUND: no such trade, or nothing proposed.  TL_REFUSED: the row
 * is not one that this can be decided of, or this account has proposed it itself.  TL_BUSY:
 * somebody holds it, may still send, or has proposed it already.  TL_ALREADY_DONE: it
 * succeeded, and nobody turns that into anything.  TL_FAILED: it failed already.
 * TL_EVIDENCE: evidence says that money moved.  TL_CUSTOMER_BUSY: another trade of an
 * exclusive customer is in process.  TL_UNKNOWN: the same call finds out.
 */
TL_EXPORT tl_status tl_resolution_propose(tl_client *client, const tl_resolution *resolution);
TL_EXPORT tl_status tl_resolution_confirm(tl_client *client, const tl_resolution *resolution);

typedef struct tl_resolution_row {
    uint64_t rev, fence; /* of the row that was decided about */
    uint32_t epoch;
    tl_verdict verdict;
    int confirms; /* 0: the proposal, 1: its confirmation */
    int own;      /* by the account that asks now */
    const char *reason, *actor, *account;
    int64_t decided_us;
    int refused; /* neither: a worker did not carry out what was confirmed */
    int although_pending;
} tl_resolution_row;

/* Proposals and confirmations of a trade, in the order of its revisions; a refusal follows what it
 * refuses. */
typedef int (*tl_resolution_fn)(void *context, const tl_resolution_row *row);
TL_EXPORT tl_status tl_resolution_list(tl_client *client, const tl_key *key, tl_resolution_fn each,
                                       void *context);

/* For whoever carries decisions out: the failure that was decided about this revision is not
 * booked, since the channel says that the payment lives.  The decision is over with that; repeating
 * it is harmless. */
TL_EXPORT tl_status tl_resolution_refuse(tl_client *client, const tl_key *key, uint64_t rev,
                                         const char *reason);

/* ------------------------------------------------------------------- audit -- */

/* One payment as the channel's ledger or statement has it. */
typedef struct tl_payment {
    const char *serial_no, *cust_no;
    const char *op_code;     /* NULL: the statement does not say */
    const char *channel_key; /* NULL: the same */
    const char *channel_ref;
} tl_payment;

/* What contradicts the promises; the words of `rule` are stable (tools/README.md). */
typedef struct tl_violation {
    const char *rule;
    tl_key key;   /* op_code as on the row; _RETRY for the retry lane */
    uint64_t rev; /* of the step; 0: of the row, or of the statement */
    const char *sentence;
    /* Who wrote the step or the row, as the server says, and when; "" and 0: there is none. */
    const char *account;
    int64_t logged_us;
    /* Its name: all of the above and the row's revision, as 64 hexadecimal digits.  Other facts or
     * another revision are another finding. */
    const char *finding;
    /* 1: two accounts closed it, and it is not counted as a violation. */
    int closed;
    const char *proposed_by, *proposed_reason; /* "": nobody has proposed to close it */
    const char *closed_by, *closed_reason;
    int64_t closed_us;
} tl_violation;

/* A callback returns 0 to go on. */
typedef int (*tl_violation_fn)(void *context, const tl_violation *violation);

typedef struct tl_audit_counts {
    unsigned version; /* TL_AUDIT_COUNTS_VERSION */
    uint64_t rows, steps, grants, payments, violations;
    uint64_t closed; /* found too, and closed by two accounts */
    /* Who audited, which server, and when it began, by the server's word. */
    char account[385], server[512];
    int64_t at_us;
} tl_audit_counts;

#define TL_AUDIT_COUNTS_VERSION 2u

/*
 * Reads rows and history, page by page, and believes nothing else: no history has a gap, fences
 * only rise, no two holds of a trade overlap, a trade succeeds once, by its newest holder, and
 * nothing follows, every failure has its proof, nothing was changed by hand. With payments (NULL:
 * without) it also compares them with the rows: nobody paid twice, nothing paid that failed,
 * nothing succeeded that was not paid.  TL_OK also with violations, which are counted; `each` gets
 * the closed ones too.  Needs an operator's or reader's account.
 */
TL_EXPORT tl_status tl_audit(tl_client *client, const tl_payment *payments, size_t payment_count,
                             tl_violation_fn each, void *context, tl_audit_counts *counts);

/* One half of closing what an audit found: rule, key, rev and finding as it said them. */
typedef struct tl_closing {
    unsigned version; /* TL_CLOSING_VERSION */
    const char *finding, *rule;
    tl_key key;
    uint64_t rev;
    int confirms;               /* 0: proposes */
    const char *actor, *reason; /* mandatory; for the record */
} tl_closing;

#define TL_CLOSING_VERSION 1u

/*
 * Two accounts close a finding, told apart by the server, as they decide about a trade.  TL_OK,
 * also when this account has done so before.  TL_NOT_FOUND: nobody has proposed it.
 * TL_REFUSED: this account has proposed it itself.  TL_BUSY: another one has proposed it
 * already.  TL_ALREADY_DONE: it is closed.  Needs an operator's account.
 */
TL_EXPORT tl_status tl_audit_close(tl_client *client, const tl_closing *closing);

/*
 * After a restore, or on a server that was promoted, payments may be missing.  Declared, or found
 * by a program (the server is not the accepted one; a session's row is gone or went back in time)
 * and then on record in the database itself, nothing is granted, armed or failed: TL_ASK_CHANNEL;
 * the retry lane asks the channel, and success ends trades. tools/RESTORE.md is the operator's
 * page.
 *
 * Accepting takes two accounts, told apart by the server.  The first call proposes:
 * TL_PARKED, and nothing has changed.  That of another account carries it out: TL_OK, and
 * every trade in process is one in doubt, without a holder: *doubtful tells how many.  What
 * was queued was perhaps sent, what was sent perhaps once more, and for one max_hold that
 * send may be under way; a holder that lives finds its lock lost, and what it learns is
 * evidence.  Mutexes and read-write locks are taken from their holders.
 * TL_REFUSED: nothing is declared or found.  TL_LOST: proposed on another server.
 */
TL_EXPORT tl_status tl_restore_declare(tl_client *client, const char *actor, const char *reason);
TL_EXPORT tl_status tl_restore_accept(tl_client *client, const char *actor, const char *reason,
                                      uint64_t *doubtful);

/* The restore that is open, or the last one. */
typedef struct tl_restore {
    unsigned version;              /* TL_RESTORE_VERSION */
    int open;                      /* declared or found, and not accepted */
    uint64_t number, accepted;     /* the last one's, and that of the last one accepted */
    int64_t since_us, accepted_us; /* 0: never */
    char was[256], is[256];        /* the accepted server, and this one */
    char how[17], reason[256], actor[64], account[385]; /* "declared", "found", or "" */
    char proposal[256], proposer[64], proposer_account[385];
    int64_t proposed_us; /* 0: nobody has proposed to accept it */
    int own_proposal;    /* it was the account that asks now */
    char confirmer_account[385];
    uint64_t doubtful; /* of an accepted one: how many trades it put in doubt */
} tl_restore;

#define TL_RESTORE_VERSION 1u

/* How many trades of an operation are in process in this state: what accepting would put in
 * doubt.  op_code is "" for the locks that it would take away. */
typedef int (*tl_restore_fn)(void *context, const char *op_code, const char *state, uint64_t count);
/* each may be NULL; with it the tables are walked. */
TL_EXPORT tl_status tl_restore_status(tl_client *client, tl_restore *state, tl_restore_fn each,
                                      void *context);

/* When the last restore was accepted, as this client's last look has it: microseconds by the
 * server's clock, 0 for never.  A failure that is older may have been tried anew in what was
 * lost. */
TL_EXPORT int64_t tl_restore_accepted_us(const tl_client *client);

/* ------------------------------------------------------------------- purge -- */

typedef struct tl_purged {
    uint64_t trades, resources, sessions; /* removed */
    uint64_t looked_at;                   /* rows */
} tl_purged;

/*
 * Removes finished trades that have not changed for older_ms, with both rows, their history and
 * evidence, a small batch in each transaction, in the order of the key.  Never one in process or in
 * conflict.  Then, in the same way, mutexes and read-write locks that nobody held or asked for
 * since, with their history, and the sessions that were over by then. TL_INVALID when older_ms is
 * shorter than the setting retention_ms: a purged key can be paid again.  Needs an operator's
 * account; may be stopped and started again at any time.
 */
TL_EXPORT tl_status tl_purge(tl_client *client, int64_t older_ms, tl_purged *purged);

/* ------------------------------------------------------- schema and server -- */

typedef struct tl_migrated {
    unsigned from, to; /* versions of the schema */
    unsigned mended; /* triggers, functions and views that were missing or not as they should be */
} tl_migrated;

/* Applies what is missing; any number may run at once.  Needs an administrator.  Nothing is made on
 * a server that tl_client_open() refuses: TL_SERVER_UNSAFE, TL_READ_ONLY. */
TL_EXPORT tl_status tl_migrate(tl_client *client, tl_migrated *migrated);

/* Makes the roles tradelock_application, tradelock_operator and tradelock_reader and gives them
 * what they need in this database (sql/grants.sql).  Needs an administrator. */
TL_EXPORT tl_status tl_grant_roles(tl_client *client);

typedef enum tl_finding_level {
    TL_FINDING_OK,
    TL_FINDING_WARNING,
    TL_FINDING_UNSAFE
} tl_finding_level;

typedef struct tl_finding {
    tl_finding_level level;
    const char *check;    /* short name, stable */
    const char *found;    /* what the server says */
    const char *sentence; /* what it means and what to do */
} tl_finding;

typedef int (*tl_finding_fn)(void *context, const tl_finding *finding);
/* TL_OK, or TL_SERVER_UNSAFE when a finding is; all findings are reported either way. */
TL_EXPORT tl_status tl_doctor(tl_client *client, tl_finding_fn each, void *context);

#ifdef __cplusplus
}
#endif
#endif
