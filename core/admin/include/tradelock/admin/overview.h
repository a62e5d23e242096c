/*
 * admin/overview.h - how much money waits, what the channels say, which processes live, and what
 * waits for a second person.
 *
 * Everything but the inbox is read by index, at most some ten thousands of rows for an operation.
 * Needs a reader's or an operator's account.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_OVERVIEW_H
#define TRADELOCK_ADMIN_OVERVIEW_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "0-1m", "1m-10m", "10m-1h", "1h-1d", "1d+", as metrics and pages call them; "" beyond. */
#define TL_AGES 5
TL_EXPORT const char *tl_age_name(unsigned age);

/* Trades without an end that nobody holds, or that a compensating attempt holds. */
typedef struct tl_waiting {
    const char *op_code, *channel, *currency; /* "unknown": the trades did not say */
    const char *state; /* "in_doubt", "queued", "parked", "working"; "conflict" counts besides */
    unsigned age;      /* since it was asked for, 0 to TL_AGES - 1 (tl_age_name()) */
    uint64_t count;
    const char *sum_minor; /* their money, as digits */
    int64_t oldest_s;      /* 0: not known, of conflicts */
    /* The first of their deadlines, after which nothing is sent for a trade (0: none has one, or not
     * known, of conflicts), and how many are past theirs.  No pause stops a deadline. */
    int64_t deadline_us;
    uint64_t late;
} tl_waiting;

typedef int (*tl_waiting_fn)(void *context, const tl_waiting *waiting);

/* A complete audit that is on record (tl_audit(), with an actor).  It may have been run
 * anywhere: by the command, by a desk, by a program; a reader's audits are not on record. */
typedef struct tl_audited {
    int64_t at_us; /* when it ended; 0: none is on record */
    uint64_t rows, payments;
    uint64_t violations;  /* open ones, differences included; 0: the books are in order */
    uint64_t differences; /* between the statement and the trades; 0: they agree */
    char account[385];
    char statement[257]; /* its name as it was given; "": without one */
} tl_audited;

/* What holds for all of it. */
typedef struct tl_overview {
    unsigned version; /* TL_OVERVIEW_VERSION */
    int fit;          /* the server's settings are safe for money, and it takes writes */
    int restore_open;
    unsigned clock_jumps, clock_jumps_open; /* open: the rows are not adjusted yet */
    uint64_t due, overdue; /* lanes that no worker claimed; holds that no janitor opened */
    int64_t due_us; /* for how long the oldest of them is due, but for channels that are paused */
    uint64_t alive, silent, ended; /* sessions */
    int cut;                       /* there is more than was counted */
    int64_t now_us;
    tl_audited audit;     /* the last audit, with a statement or without */
    tl_audited statement; /* the last one with a statement, which may be the same */
    /* The connection that has held rows for five seconds or longer, or most likely locks tables, so
     * that asks and heartbeats wait; 0: there is none, or the server does not show it.  The text says
     * of it, and of others that may lock the tables, what it runs and how to end it. */
    uint64_t blocker;
    int64_t blocker_us;
    char blocker_account[200], blocker_text[1024];
} tl_overview;

#define TL_OVERVIEW_VERSION 1u
#define TL_OVERVIEW_INIT TL_INITIAL(tl_overview, TL_OVERVIEW_VERSION)

/* TL_OK: *overview is filled in, and each() was told every group.  each() returns 0 to go on. */
TL_EXPORT tl_status tl_overview_read(tl_client *client, tl_overview *overview, tl_waiting_fn each,
                                     void *context);

#define TL_PACE_MINUTES 180

/* What became of the trades of each of the last minutes, by the server's clock. */
typedef struct tl_pace {
    unsigned version; /* TL_PACE_VERSION */
    int is_deep; /* the caller's: 20,000 trades of each operation are looked at, and not 2,000 */
    int64_t minute_us; /* the minute that runs now begins there; paid[0] is of it */
    /* So many of the minutes are counted whole.  It is fewer than all where more trades of one
     * operation ended in them. */
    unsigned whole;
    uint64_t paid[TL_PACE_MINUTES];
    /* Trades that were asked for in that minute, and had no end a minute later. */
    uint64_t late[TL_PACE_MINUTES];
} tl_pace;

#define TL_PACE_VERSION 1u
#define TL_PACE_INIT TL_INITIAL(tl_pace, TL_PACE_VERSION)

/* The minute that runs now, and those before it. */
#define TL_RATE_MINUTES 60

/* What becomes of an operation's trades at a channel.  A trade that is tried anew counts as what it
 * is now. */
typedef struct tl_channel_state {
    const char *op_code, *channel; /* "unknown": the trades did not say */
    /* Trades that ended in the last TL_RATE_MINUTES: declined by the channel, or failed with
     * another proof. */
    uint64_t succeeded, declined, failed;
    uint64_t waits; /* trades without an end that nobody holds, or a compensating attempt does */
    /* Of those that nobody holds: their last attempt got an answer, or none. */
    uint64_t answered, silent;
    int64_t answered_us; /* the last answer, an end of a trade or not; 0: none */
    /* Since when none came any more; 0: the last attempt was answered, or longer ago than
     * TL_RATE_MINUTES. */
    int64_t down_since_us;
    int cut; /* there is more than was counted: these are the newest that ended, and 10,000 that
              * wait, of the operation */
} tl_channel_state;

typedef int (*tl_channel_fn)(void *context, const tl_channel_state *channel);
/* Tells each channel at which something waits or ended, by operation.  pace NULL: it is not asked
 * for; else TL_OK means that *pace is counted too.  Both are one reading: with pace of three hours,
 * else of one, and of the newest 500 trades of each operation that ended. */
TL_EXPORT tl_status tl_channel_list(tl_client *client, tl_pace *pace, tl_channel_fn each,
                                    void *context);

/* A process, as its session says; sessions that were ended and cleared up are not shown. */
typedef struct tl_session_row {
    const char *session_id, *program, *host, *operations;
    uint64_t pid;
    int64_t started_us, now_us, silent_us; /* silent_us: since its last beat */
    int64_t timeout_ms;
    const char *state; /* "alive"; "silent" beyond its time-out; "ended", and not cleared up */
    uint64_t permits;  /* so many sends of limited channels it may have under way */
    int obeys_drain;   /* of the drain that is on record: it grants nothing, and no ask that began
                        * before is under way */
    /* Which decisions about channels its program knows, of "pause limit breaker"; all others it does
     * not obey. */
    const char *obeys;
} tl_session_row;

typedef int (*tl_session_fn)(void *context, const tl_session_row *session);
/* Tells the 1,000 oldest. */
TL_EXPORT tl_status tl_session_list(tl_client *client, tl_session_fn each, void *context);

/* What one operator proposed, and a second one has not confirmed. */
typedef struct tl_proposal {
    const char *what; /* "resolve": a decision about a trade; "audit": to close a finding */
    tl_key key;
    uint64_t fence;   /* of a decision */
    const char *said; /* "clear", "paid", "failed"; or the finding's name */
    const char *reason, *actor, *account;
    int own; /* by the account that asks now, which cannot confirm it */
    int64_t proposed_us;
    int64_t amount_minor; /* of the trade */
    char currency[TL_CURRENCY + 1];
    uint64_t act_no; /* of a decision about many trades, whose key is ""; else 0 */
    uint64_t trades; /* that it is about, and that are still as they were seen */
} tl_proposal;

typedef int (*tl_proposal_fn)(void *context, const tl_proposal *proposal);
/* Tells the 1,000 oldest.  Accepting a restored server is not among them (tl_restore_status()). */
TL_EXPORT tl_status tl_inbox(tl_client *client, tl_proposal_fn each, void *context);

#ifdef __cplusplus
}
#endif
#endif
