/*
 * admin/restore.h - a server that was restored or promoted, and how it is accepted.
 */
#ifndef TRADELOCK_ADMIN_RESTORE_H
#define TRADELOCK_ADMIN_RESTORE_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

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
#define TL_RESTORE_INIT TL_INITIAL(tl_restore, TL_RESTORE_VERSION)

/* How many trades of an operation are in process in this state: what accepting would put in
 * doubt.  op_code is "" for the locks that it would take away. */
typedef int (*tl_restore_fn)(void *context, const char *op_code, const char *state, uint64_t count);
/* each may be NULL; with it the tables are walked. */
TL_EXPORT tl_status tl_restore_status(tl_client *client, tl_restore *state, tl_restore_fn each,
                                      void *context);

#ifdef __cplusplus
}
#endif
#endif
