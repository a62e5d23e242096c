/*
 * admin/restore.h - a server that was restored or promoted, and how it is accepted.
 *
 * After a restore, or on a server that was promoted, payments may be missing.  A restore is open
 * once an operator declares it, or once a program finds it: the server is not the accepted one, or
 * a session's row is gone or went back in time.  The database itself keeps it on record.
 *
 * While it is open nothing is granted, armed or failed: TL_ASK_CHANNEL.  The retry lane asks the
 * channel, and success ends trades.  tools/RESTORE.md is the operator's page.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_RESTORE_H
#define TRADELOCK_ADMIN_RESTORE_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declares that this server was restored.  TL_OK: a restore is open, by this call or before it. */
TL_EXPORT tl_status tl_restore_declare(tl_client *client, const char *actor, const char *reason);

/*
 * Offers this server as the next writer: for whatever promotes it, once it takes writes and the one
 * before it does so no more.  It grants nothing by itself.  Every process looks here for all that
 * it was told was committed, and attests to what it found.  When all sessions have, nothing is
 * missing, and the server before was seen to answer a commit only when its replica had it, then
 * this one is accepted by itself: nothing is put in doubt, and who holds a lock keeps it.
 *
 * fenced: the server before is off for certain, and whoever switched it off changed nothing of how
 * its commits are kept before that.  Then no process that died without attesting is waited for, once
 * its session has ended.  It may be said later, by calling again.
 *
 *     TL_OK       It is offered, by this call or before it, and perhaps accepted since.
 *     TL_REFUSED  It is the accepted one, and was not promoted; or it is read-only, or still
 *                 replicates.
 */
TL_EXPORT tl_status tl_promote(tl_client *client, int fenced, const char *actor,
                               const char *reason);

/*
 * Accepts the server, by two accounts that the server tells apart.  The first call proposes; a call
 * by another account carries it out.
 *
 * Then every trade in process is in doubt and without a holder.  A queued trade may have been sent,
 * a sent one may have been sent once more, and that send may be under way for one max_hold.  A
 * living holder finds its lock lost, and what it learns becomes evidence.  Lease mutexes and
 * read-write locks are taken from their holders.  Lost trades, of which success was filed, are made
 * as paid.
 *
 *     TL_OK        The server is accepted, and *doubtful says how many trades are in doubt.
 *     TL_PARKED    It is proposed, and nothing has changed.  Another account must accept too.
 *     TL_REFUSED   No restore is open, or this account would confirm payments that it filed itself,
 *                  of which there was no trade.
 *     TL_LOST      It was proposed on another server.  Propose it here.
 *     TL_UNKNOWN   The answer was lost.  The same call again finds out.
 */
TL_EXPORT tl_status tl_restore_accept(tl_client *client, const char *actor, const char *reason,
                                      uint64_t *doubtful);

/* The restore that is open, or the last one. */
typedef struct tl_restore {
    unsigned version;              /* TL_RESTORE_VERSION */
    int open;                      /* declared or found, and not accepted */
    uint64_t number, accepted;     /* the last one's, and that of the last one accepted */
    int64_t since_us, accepted_us; /* 0: never */
    char was[256], is[256];        /* the accepted server, and this one */
    /* "declared", "found", "promoted", or "" */
    char how[17], reason[256], actor[64], account[385];
    char proposal[256], proposer[64], proposer_account[385];
    int64_t proposed_us; /* 0: nobody has proposed to accept it */
    int own_proposal;    /* it was the account that asks now */
    char confirmer_account[385];
    uint64_t doubtful; /* of an accepted one: how many trades it put in doubt */
} tl_restore;

#define TL_RESTORE_VERSION 1u
#define TL_RESTORE_INIT TL_INITIAL(tl_restore, TL_RESTORE_VERSION)

/*
 * What accepting would put in doubt, or take away; lives until the callback returns.  It is one of
 *
 *     so many trades       op_code and state are told: of this operation, in process in this state
 *     so many locks        op_code is "": of this kind (state), which it would take away
 *     the money of trades  state is "": count trades told an amount in this currency, sum_minor
 *                          altogether, in minor units; those with currency "" told none
 *     what was filed       state is an account and currency not NULL: count payments that it filed
 *                          of trades that were lost and are made now, and their money as above
 */
typedef struct tl_restore_count {
    const char *op_code, *state;
    uint64_t count;
    const char *currency;  /* NULL: not about money */
    const char *sum_minor; /* digits, since it may be beyond INT64_MAX; NULL: none */
} tl_restore_count;

/* Returns 0 to go on. */
typedef int (*tl_restore_fn)(void *context, const tl_restore_count *count);
/* TL_OK: *state is the restore that is open, or the last one.  each may be NULL; with it the tables
 * are walked. */
TL_EXPORT tl_status tl_restore_status(tl_client *client, tl_restore *state, tl_restore_fn each,
                                      void *context);

/* Why a promoted server is not accepted by itself; lives until the callback returns. */
typedef struct tl_missing {
    const char *session, *whose; /* who says so: "program pid@host", "" if its row is missing */
    int attested;                /* 0: that session has not said anything yet, or never can */
    uint64_t missing;            /* so many commits are, of which this is one if it has a step */
    int not_kept; /* the server before was not seen to wait for its replica with each commit */
    /* The step, and its key: of a resource or a session in serial_no.  All may be "". */
    const char *step, *cust_no, *serial_no, *op_code;
    const char *token; /* in hex, or "" */
} tl_missing;

/* Returns 0 to go on. */
typedef int (*tl_missing_fn)(void *context, const tl_missing *missing);
/* number: of the restore, as tl_restore tells it. */
TL_EXPORT tl_status tl_restore_missing(tl_client *client, uint64_t number, tl_missing_fn each,
                                       void *context);

#ifdef __cplusplus
}
#endif
#endif
