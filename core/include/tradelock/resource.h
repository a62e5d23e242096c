/*
 * resource.h - lease mutexes, for the things around a payment: an account, a product, a nightly
 * job.
 *
 * THE STORY
 *
 * A resource is a name.  Its row in `resource_lock` is made by the first ask, and stays.  A *lease
 * mutex* lets one holder have the resource until it unlocks, its lease or max_hold is over, or its
 * process is seen dead.  Then whoever asks next takes it over.
 *
 * Every grant, unlock and operator's decision raises the resource's *fence*.  Nothing that a late
 * holder does through this library takes effect: its unlock answers TL_LOST, and its transaction
 * fails at the guard.
 *
 * A lease is renewed in one of two ways:
 *   automatically   lease_ms is 0: the heartbeat of the client's session counts for all
 *                   its locks, and no lock is written for it.  The lock lives as long as
 *                   the session, at most until max_hold.
 *   by hand         lease_ms is given: the lock is over that long after the grant or the
 *                   last tl_mutex_renew(), whether its process lives or not.
 *
 * CALLING ORDER
 *
 *     tl_mutex_new          a handle; nothing is written yet
 *     tl_mutex_lock         TL_GRANTED, or why not (tl_mutex_view says who has it)
 *       ... work ...        only while tl_mutex_remaining_ms() is above 0
 *       tl_mutex_guard      in the transaction that changes what the lock protects
 *     tl_mutex_unlock       the handle may lock again afterwards
 *     tl_mutex_free
 *
 * WHY THE GUARD
 *
 * A lease that a clock ends can end while its holder sleeps, between any check and the next write.
 * So the write itself must prove possession.  tl_mutex_guard() locks the resource's row in the
 * caller's own transaction; nobody can take the lock over until that transaction has ended.  Work
 * outside this database cannot be guarded: give its receiver the fence, and let it refuse lower
 * ones.
 *
 * SEVERAL AT ONCE
 *
 * tl_mutex_new_set() makes one handle for up to TL_RESOURCES_MAX resources: all are granted, or
 * none.  They are locked in the order of their bytes, everywhere, and an ask never waits for a row
 * lock, so that no two such asks can block each other.
 *
 * WHAT A DYING PROCESS OR THREAD LEAVES
 *
 * A process leaves locked rows.  They are free for others when its session is seen dead (10 s by
 * default), or when their own leases are over.  A thread leaves nothing: any thread may unlock by
 * the handle.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_RESOURCE_H
#define TRADELOCK_RESOURCE_H

#include <tradelock/tradelock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of resources: bytes of a name, names of a set, bytes of a payload. */
#define TL_RESOURCE_MAX 128 /* bytes of a name */
#define TL_RESOURCES_MAX 64 /* names in a set */
#define TL_RESOURCE_PAYLOAD_MAX 1024

/* What a lease mutex is doing. */
typedef enum tl_resource_state {
    TL_RESOURCE_FREE,
    TL_RESOURCE_HELD,   /* its holder lives */
    TL_RESOURCE_KEPT,   /* nobody holds it, and its minimum hold is not over */
    TL_RESOURCE_EXPIRED /* its holder is dead or late; the next ask takes it over */
} tl_resource_state;

/* "free", "held" and so on; "?" for any other number. */
TL_EXPORT const char *tl_resource_state_name(tl_resource_state state);

/* A row as the server showed it. */
typedef struct tl_resource_view {
    unsigned version; /* TL_RESOURCE_VIEW_VERSION */
    tl_resource_state state;
    char resource[TL_RESOURCE_MAX + 1];
    char step[17];     /* the last one: "lock", "take over", "renew", "unlock", ... */
    int renewed;       /* locked, and its holder's session renews it */
    int being_decided; /* an open transaction, a guard's for one, holds the row */
    uint64_t fence, rev;
    char thread_no[TL_UUID_TEXT]; /* of the last step */
    char log_no[TL_UUID_TEXT];
    char session_id[TL_UUID_TEXT]; /* of the holder, "" without one */
    char holder[96];               /* "program pid@host" of that session */
    char remark[TL_REMARK_MAX + 1];
    char actor[64];
    int64_t locked_us, updated_us, now_us;
    int64_t lease_until_us, max_hold_until_us, free_us; /* 0: none */
    const void *payload;                                /* of the holder, or of the last one */
    size_t payload_size;
} tl_resource_view;

#define TL_RESOURCE_VIEW_VERSION 1u

/* -------------------------------------------------------------- lease mutex -- */

/* A handle for the lease mutex of one resource, or of several. */
typedef struct tl_mutex tl_mutex;

/*
 * Called once for a grant that is no longer certain, from a thread of the library's own that waits
 * for no server: at once when its time is over, and within a beat (1 s by default) of what a
 * heartbeat or a look at the row tells.  resource: the first one concerned.  why:
 *
 *     TL_LOST           The lock was taken over, or an operator took it away.
 *     TL_TIMEOUT        The lease or max_hold is over.
 *     TL_SESSION_LOST   This process was declared dead.  It goes on, without this lock.
 *     TL_UNREACHABLE    No heartbeat was confirmed for a whole session time-out.
 *
 * It must return quickly, and must not call the library.  It is not running any more when
 * tl_mutex_unlock() or tl_mutex_free() of the handle that was granted returns.
 */
typedef void (*tl_mutex_loss_fn)(void *context, const char *resource, tl_status why);

/*
 * Re-entrant by thread: any handle of this client for the same resource that has this flag joins a
 * hold of the calling thread.  Only that thread unlocks such a lock; tl_mutex_free() is allowed
 * from any.  Without the flag the handle alone is re-entrant, whichever thread uses it.
 */
#define TL_MUTEX_BY_THREAD 1u

/* How long a lease mutex is held, and what becomes of it. */
typedef struct tl_mutex_options {
    unsigned version;    /* TL_MUTEX_OPTIONS_VERSION */
    unsigned flags;      /* TL_MUTEX_... */
    int64_t lease_ms;    /* 0: renewed by the session; else how long without a renewal */
    int64_t max_hold_ms; /* at most, renewals included; mandatory unless there is a lease,
                            whose length is the default; at most TL_HOLD_MAX_MS */
    int64_t min_hold_ms; /* nobody is granted it sooner after this grant, not even after
                            an unlock or a crash: for jobs that must not run twice */
    const void *payload; /* copied; shown to operators; at most TL_RESOURCE_PAYLOAD_MAX */
    size_t payload_size;
    tl_mutex_loss_fn loss; /* or NULL */
    void *loss_context;
    const char *remark;
    const char *actor;
} tl_mutex_options;

#define TL_MUTEX_OPTIONS_VERSION 1u
#define TL_MUTEX_OPTIONS_INIT TL_INITIAL(tl_mutex_options, TL_MUTEX_OPTIONS_VERSION)

/* Makes a handle; writes nothing.  Names are printable ASCII without blanks; case matters.  TL_OK,
 * or TL_INVALID with a sentence.  tl_mutex_free() frees it. */
TL_EXPORT tl_status tl_mutex_new(tl_mutex **out, tl_client *client, const char *resource,
                                 const tl_mutex_options *options);

/* Makes one handle for several resources, each named once, in any order.  Answers as above. */
TL_EXPORT tl_status tl_mutex_new_set(tl_mutex **out, tl_client *client,
                                     const char *const *resources, size_t count,
                                     const tl_mutex_options *options);

/* Frees the handle.  It tries once to unlock what is still held; what stays locked is free when the
 * session or the lease is over. */
TL_EXPORT void tl_mutex_free(tl_mutex *mutex);

/*
 * Asks for the lock: once with wait_ms 0, else until wait_ms is over.  Of all waiters of a client
 * for one resource only the first asks the server.  The others come after it in their order, and an
 * unlock in this client wakes the next at once.  A silent server prolongs the wait as that of
 * tl_lock_ask().
 *
 *     TL_GRANTED       It is held.  Also when this handle (or thread) held it already: then without
 *                      a round trip, and with the same fence.  Each grant needs its unlock.
 *     TL_BUSY          wait_ms 0: somebody has it; tl_mutex_view() says who.
 *     TL_TIMEOUT       Somebody still had it when wait_ms was over.
 *     TL_LOST          This handle held it, and its time is over.  Unlock it as often as it was
 *                      granted, then ask anew.
 *     TL_ASK_CHANNEL   The server was restored or replaced, and no operators have accepted it.
 *     TL_SESSION_LOST  This process was taken for dead.  Nothing happened; ask again.
 *     TL_UNKNOWN       The answer was lost.  Ask again with the same handle.
 */
TL_EXPORT tl_status tl_mutex_lock(tl_mutex *mutex, int64_t wait_ms);

/*
 * Gives the lock back, or one grant of it if it was re-entered.
 *
 *     TL_OK         Released, or one grant fewer; nobody else had it since it was granted.
 *     TL_RELEASED   This handle had released it already.
 *     TL_LOST       It had been taken over, or taken away.  What a set still held is released.
 *     TL_NOT_HELD   It was never granted.
 *     TL_UNKNOWN    The answer was lost.  Unlock again with the same handle.
 */
TL_EXPORT tl_status tl_mutex_unlock(tl_mutex *mutex);

/*
 * Renews the lease: the lock lasts lease_ms from now, at most until max_hold.  On a lock that the
 * session renews this ends the automatic renewal.
 *
 *     TL_OK            It is renewed.
 *     TL_LOST          It had been taken over, or its time is over.
 *     TL_UNKNOWN       The answer was lost.  Renew again.
 *     TL_ASK_CHANNEL   Not renewed: as for tl_mutex_lock().  The lease runs out.
 */
TL_EXPORT tl_status tl_mutex_renew(tl_mutex *mutex, int64_t lease_ms);

/* How long it is certainly held if no renewal or heartbeat follows; 0 when it is not.  No round
 * trip. */
TL_EXPORT int64_t tl_mutex_remaining_ms(const tl_mutex *mutex);

/* How many unlocks this handle owes; 0 when it holds nothing. */
TL_EXPORT unsigned tl_mutex_depth(const tl_mutex *mutex);

/* The fence of the grant; 0: it is not held, or the handle has no such resource.  resource NULL:
 * the first one. */
TL_EXPORT uint64_t tl_mutex_fence(const tl_mutex *mutex, const char *resource);

/* Who was in the way when the last ask answered TL_BUSY or TL_TIMEOUT.  Never NULL. */
TL_EXPORT const tl_resource_view *tl_mutex_view(const tl_mutex *mutex);

/*
 * In the caller's own transaction, on the caller's connection: proves that the lock is held, and
 * keeps it from being lost before that transaction ends.  The connection is never committed, rolled
 * back or SET.  Its innodb_lock_wait_timeout bounds the wait.  flags: 0 or TL_GUARD_ANY_IDLE.
 *
 *     TL_OK                The lock is held.  Go on, and commit.
 *     TL_ROLL_BACK         The lock is lost, or the server undid the statement.  Roll back.
 *     TL_NO_TRANSACTION    No transaction is open.
 *     TL_NOT_HELD, TL_RELEASED
 *                          This handle holds nothing.
 *
 * With any answer but TL_OK nothing that follows may be committed.
 */
TL_EXPORT tl_status tl_mutex_guard(tl_mutex *mutex, struct st_mysql *connection, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
