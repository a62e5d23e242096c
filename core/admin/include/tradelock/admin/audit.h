/*
 * admin/audit.h - rows, history and statements, compared with what is promised.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_AUDIT_H
#define TRADELOCK_ADMIN_AUDIT_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One payment as the channel's ledger or statement has it. */
typedef struct tl_payment {
    const char *serial_no, *cust_no;
    const char *op_code;     /* NULL: the statement does not say */
    const char *channel_key; /* NULL: the same */
    const char *channel_ref;
    tl_payment_amount amount; /* below 0: it came back, and pays nothing */
    unsigned line;            /* of the file that has it, for messages; 0: of none */
} tl_payment;

/* What contradicts the promises; the words of `rule` are stable (tools/README.md). */
typedef struct tl_violation {
    const char *rule;
    tl_key key;   /* op_code as on the row; _RETRY for the retry lane */
    uint64_t rev; /* of the step; 0: of the row, or of the statement */
    const char *sentence;
    /* Who wrote the step or the row, by the server's word, and when; "" and 0: there is none. */
    const char *account;
    int64_t logged_us;
    /* The finding's name, 64 hexadecimal digits: the hash of all of the above and of the row's
     * revision.  Other facts, or another revision, are another finding. */
    const char *finding;
    int is_of_payment; /* it is about what the channel paid, not about rows and history alone */
    /* 1: two accounts closed it, and it is not counted as a violation. */
    int closed;
    const char *proposed_by, *proposed_reason; /* "": nobody has proposed to close it */
    const char *closed_by, *closed_reason;
    int64_t closed_us;
} tl_violation;

/* A callback returns 0 to go on. */
typedef int (*tl_violation_fn)(void *context, const tl_violation *violation);

/* How far a long call is; told after each page.  progress may be NULL.  It returns 0 to go on; else
 * the call ends with TL_REFUSED, and what it did stays done. */
typedef struct tl_progress {
    const char *
        what; /* "rows", "steps of history", "lock rows", "mutexes", "read-write locks", "sessions" */
    uint64_t done;  /* of these were looked at */
    uint64_t of;    /* about so many there are, by the server's statistics; 0: not known */
    uint64_t found; /* violations; or what was removed */
} tl_progress;
typedef int (*tl_progress_fn)(void *context, const tl_progress *progress);

/* What breaks one rule. */
#define TL_AUDIT_RULES 32
typedef struct tl_audit_rule {
    char rule[32];
    uint64_t violations, closed;
} tl_audit_rule;

/* What an audit went through, and what it found. */
typedef struct tl_audit_counts {
    unsigned version; /* TL_AUDIT_COUNTS_VERSION */
    uint64_t rows, steps, grants, payments, violations;
    uint64_t differences; /* of the violations, between payments and rows */
    uint64_t closed;      /* found too, and closed by two accounts */
    tl_audit_rule rules[TL_AUDIT_RULES];
    unsigned rule_count;
    /* Whether it is on record: TL_OK where the scope did not ask for that.  TL_ACCESS_DENIED: an
     * operator's account may write one.  Else tl_error_message() says why not. */
    tl_status noted;
    /* Who audited which server, and when that began, by the server's word. */
    char account[385], server[512];
    int64_t at_us;
    struct tl_list_end *paid; /* gets the money of the trades that were paid; NULL: nobody asks */
} tl_audit_counts;

#define TL_AUDIT_COUNTS_VERSION 1u
#define TL_AUDIT_COUNTS_INIT TL_INITIAL(tl_audit_counts, TL_AUDIT_COUNTS_VERSION)

/* What a purge wrote to an archive, or an audit read there. */
typedef struct tl_archived {
    uint64_t sets, trades, rows; /* rows of all tables */
    uint64_t bytes;              /* of the files, packed */
    uint64_t stayed;  /* of a purge: trades that changed after they were written, and so stayed */
    uint64_t doubled; /* of an audit: lock rows that stand in two sets, or in one and in the
                       * database, with the same revision */
    /* Of an audit: the sets on record that this archive has not, and how many trades were removed
     * under them.  They are another archive's, or nobody's: who removes trades names the set. */
    uint64_t elsewhere, elsewhere_trades;
} tl_archived;

/* What an audit compares with the rows. */
typedef struct tl_audit_scope {
    unsigned version;    /* TL_AUDIT_SCOPE_VERSION */
    const char *archive; /* a directory that purges have written (admin/server.h); NULL: none */
    const tl_payment *payments; /* NULL: nothing is compared */
    size_t payment_count;
    /* A bank's statement is of one bank and some days.  Only trades of these that succeeded from
     * since_us on and before until_us, by the server's clock, have to be among the payments.  NULL
     * and 0: all. */
    const char *op_code, *channel;
    int64_t since_us, until_us;
    /* Who runs it: a complete audit is put on record as an act ("audit"), which tl_overview_read()
     * tells of; NULL: none is.  statement: where the payments are from, for the record; NULL: there
     * are none. */
    const char *actor, *statement;
} tl_audit_scope;

#define TL_AUDIT_SCOPE_VERSION 1u
#define TL_AUDIT_SCOPE_INIT TL_INITIAL(tl_audit_scope, TL_AUDIT_SCOPE_VERSION)

/*
 * Reads rows and history, page by page, and believes nothing else.  What it proves of each trade:
 *   - its history has no gap, and nothing in it was changed by hand
 *   - fences only rise, and no two holds overlap
 *   - it succeeds once, by its newest holder, and nothing follows
 *   - every failure has its proof
 *
 * With payments, from the channel's ledger or statement, it also compares these with the rows:
 * nothing was paid twice or with another amount, nothing that failed was paid, and nothing succeeded
 * unpaid, other than a row of a fleet's slot that went to another shard, or is arriving.  With an
 * archive it reads that together with the database: that no set is missing or changed, the history
 * of each row in it, a statement's payments whether the trade is still in the database or not, and
 * keys that were purged, asked for anew and succeeded again; *archived, which may be NULL, says what
 * was read there.
 *
 * each() is called for every violation, the closed ones too; progress(), which may be NULL, page by
 * page; context is that of both.  Needs an operator's or a reader's account; it writes nothing but
 * the record that the scope asks for.
 *
 *     TL_OK             The audit is complete.  counts->violations says how many are open: 0 is "in
 *                       order".
 *     TL_INVALID        No such archive; it is another database's, or broken.  The message says
 *                       which file.
 *     TL_WRONG_SCHEMA   A newer version wrote the archive.
 *     else              It is not complete, and proves nothing; the message says why.
 */
TL_EXPORT tl_status tl_audit(tl_client *client, const tl_audit_scope *scope, tl_violation_fn each,
                             tl_progress_fn progress, void *context, tl_audit_counts *counts,
                             tl_archived *archived);

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
#define TL_CLOSING_INIT TL_INITIAL(tl_closing, TL_CLOSING_VERSION)

/*
 * Closes a finding, by two accounts that the server tells apart: one proposes, another confirms.
 * Needs an operator's account.
 *
 *     TL_OK             This half is on record, by this call or an earlier one of this account.
 *     TL_NOT_FOUND      A confirmation: nobody has proposed it.
 *     TL_REFUSED        A confirmation: this account proposed it itself.  Another must confirm.
 *     TL_BUSY           A proposal: another account has proposed it already.  Confirm it.
 *     TL_ALREADY_DONE   It is closed.
 *     TL_UNKNOWN        The answer was lost.  The same call again finds out.
 */
TL_EXPORT tl_status tl_audit_close(tl_client *client, const tl_closing *closing);

#ifdef __cplusplus
}
#endif
#endif
