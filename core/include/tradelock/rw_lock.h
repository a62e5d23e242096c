/*
 * rw_lock.h - many readers or one writer of a named resource: while a loan is repaid nobody may
 * transfer a claim on it, and transfers may go on side by side.
 *
 * THE STORY
 *
 * Every holder has a row of its own in `resource_holder`, with its session, its lease and its
 * fence. Nothing is counted, so a crash leaves nothing miscounted.  A row goes from acquired to
 * business done to released, each with its time, and on record in `resource_holder_log`.
 *
 * A holder is dead when its session has ended, or its lease or max_hold is over.  It is freed by
 * the janitor of any process, by `tradelock reap`, or by an ask in whose way it is.  Nobody ever
 * frees a living holder.
 *
 * A writer that waits is a row too.  It keeps *new readers* out, so that a stream of readers cannot
 * starve it.  That row has a short lease, which the waiting renews: a writer that dies while it
 * waits keeps readers out for some seconds at most.  Between writers of several processes there is
 * no order.
 *
 * The names of read-write locks are their own: a tl_mutex of the same name is another lock.
 *
 * CALLING ORDER
 *
 *     tl_rw_new             a handle; nothing is written yet
 *     tl_rw_read, _write    TL_GRANTED, or why not (tl_rw_view says who is in the way)
 *       BEGIN ... business ...   on a connection of the caller's own
 *       tl_rw_done          in that transaction: "business done", or it must roll back
 *       COMMIT
 *     tl_rw_unlock          after that transaction; the handle may lock again afterwards
 *     tl_rw_free
 *
 * A handle has one lock at a time.  Any thread may use it, one at a time.  A lock is renewed as a
 * tl_mutex is: by the heartbeat of the client's session (lease_ms 0), or by hand with
 * tl_rw_renew().
 *
 * WHAT A DYING PROCESS OR THREAD LEAVES
 *
 * A process leaves rows that are freed when its session is seen dead (10 s by default), or when
 * their own leases are over.  The end of a thread changes nothing: any thread may unlock by the
 * handle.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_RW_LOCK_H
#define TRADELOCK_RW_LOCK_H

#include <tradelock/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle for the read-write lock of one resource. */
typedef struct tl_rw tl_rw;

/* In which way a read-write lock is held. */
typedef enum tl_rw_mode { TL_RW_NONE, TL_RW_READ, TL_RW_WRITE } tl_rw_mode;

/* What a holder of a read-write lock is doing. */
typedef enum tl_holder_state {
    TL_HOLDER_FREE, /* a row without a holder */
    TL_HOLDER_HELD,
    TL_HOLDER_DONE,    /* held, and its business is done */
    TL_HOLDER_WAITING, /* a writer that waits */
    TL_HOLDER_DEAD     /* its holder is dead; the janitor, or the next ask, frees it */
} tl_holder_state;

/* "free", "held" and so on; "?" for any other number. */
TL_EXPORT const char *tl_holder_state_name(tl_holder_state state);

/* A holder's row as the server showed it. */
typedef struct tl_holder_view {
    unsigned version; /* TL_HOLDER_VIEW_VERSION */
    tl_holder_state state;
    tl_rw_mode mode;
    char resource[TL_RESOURCE_MAX + 1];
    unsigned slot;
    char step[17]; /* the last one: "read", "write", "done", "release", "reap", ... */
    int renewed;   /* its holder's session renews it */
    uint64_t fence, rev;
    char thread_no[TL_UUID_TEXT]; /* of the last step */
    char log_no[TL_UUID_TEXT];
    char session_id[TL_UUID_TEXT];
    char holder[96]; /* "program pid@host" of that session */
    char remark[TL_REMARK_MAX + 1];
    char actor[64];
    int64_t acquired_us, done_us, released_us, now_us; /* 0: not (yet) */
    int64_t over_us, max_hold_until_us;
} tl_holder_view;

#define TL_HOLDER_VIEW_VERSION 1u

/* How long a read-write lock is held, and what becomes of it. */
typedef struct tl_rw_options {
    unsigned version;    /* TL_RW_OPTIONS_VERSION */
    int64_t lease_ms;    /* 0: renewed by the session; else how long without a renewal */
    int64_t max_hold_ms; /* at most, renewals included; mandatory unless there is a lease,
                            whose length is the default; at most TL_HOLD_MAX_MS */
    const char *remark;
    const char *actor;
} tl_rw_options;

#define TL_RW_OPTIONS_VERSION 1u
#define TL_RW_OPTIONS_INIT TL_INITIAL(tl_rw_options, TL_RW_OPTIONS_VERSION)

/* Makes a handle; writes nothing.  Names are printable ASCII without blanks; case matters.  TL_OK,
 * or TL_INVALID with a sentence.  tl_rw_free() frees it. */
TL_EXPORT tl_status tl_rw_new(tl_rw **out, tl_client *client, const char *resource,
                              const tl_rw_options *options);

/* Frees the handle.  It tries once to unlock what is still held; what stays locked is freed when
 * the session or the lease is over. */
TL_EXPORT void tl_rw_free(tl_rw *rw);

/*
 * Asks to read, or to write: once with wait_ms 0, else until wait_ms is over.  Of all waiters of a
 * client for one resource only the first asks the server; the others come after it in their order.
 * A silent server prolongs the wait as that of tl_lock_ask().
 *
 *     TL_GRANTED         It is held.
 *     TL_BUSY            wait_ms 0: somebody is in the way; tl_rw_view() says who.
 *     TL_TIMEOUT         Somebody was still in the way when wait_ms was over.
 *     TL_WOULD_UPGRADE   This handle reads and asked to write.  Two readers that did so would wait
 *                        for each other.  Unlock, ask to write, and read again what was read.
 *     TL_WRONG_STATE     This handle has its lock already.
 *     TL_ASK_CHANNEL     The server was restored or replaced, and no operators have accepted it.
 *     TL_SESSION_LOST    This process was taken for dead.  Nothing happened; ask again.
 *     TL_UNKNOWN         The answer was lost.  Ask for the same with the same handle.
 *
 * A thread that asks to write by a second handle waits for its own reading until wait_ms is over.
 */
TL_EXPORT tl_status tl_rw_read(tl_rw *rw, int64_t wait_ms);
TL_EXPORT tl_status tl_rw_write(tl_rw *rw, int64_t wait_ms);

/*
 * Makes a writer a reader, with the same fence; other readers may join it.  No other writer can
 * have come between.
 *
 *     TL_OK        It reads; also when it did so before.
 *     TL_LOST      Somebody had freed it.
 *     TL_UNKNOWN   The answer was lost.  Call again.  Until then it counts as reading, and nothing
 *                  can be committed under it.
 */
TL_EXPORT tl_status tl_rw_downgrade(tl_rw *rw);

/*
 * Gives the lock back.
 *
 *     TL_OK          Released, and it was held without a break since it was granted.
 *     TL_RELEASED    This handle had released it already.
 *     TL_LOST        Somebody had freed it.
 *     TL_NOT_HELD    It was never granted.
 *     TL_TRY_AGAIN   An open transaction with tl_rw_done() or tl_rw_guard() keeps the row.  Unlock
 *                    after that transaction.
 *     TL_UNKNOWN     The answer was lost.  Unlock again with the same handle.
 */
TL_EXPORT tl_status tl_rw_unlock(tl_rw *rw);

/*
 * Renews the lease: the lock lasts lease_ms from now, at most until max_hold.  It ends the renewal
 * by the session.
 *
 *     TL_OK            It is renewed.
 *     TL_LOST          Somebody had freed it, or its time is over.
 *     TL_UNKNOWN       The answer was lost.  Renew again.
 *     TL_ASK_CHANNEL   Not renewed: the server was restored or replaced, and no operators have
 *                      accepted it.  The lease runs out.
 */
TL_EXPORT tl_status tl_rw_renew(tl_rw *rw, int64_t lease_ms);

/* How long it is certainly held if no renewal or heartbeat follows; 0 when it is not.  No round
 * trip. */
TL_EXPORT int64_t tl_rw_remaining_ms(const tl_rw *rw);

/* What this handle holds, and the fence of that grant; TL_RW_NONE and 0 when nothing. */
TL_EXPORT tl_rw_mode tl_rw_held(const tl_rw *rw);
TL_EXPORT uint64_t tl_rw_fence(const tl_rw *rw);

/* Who was in the way when the last ask answered TL_BUSY or TL_TIMEOUT: one of them, or a view
 * without a resource when that one was gone already.  Never NULL. */
TL_EXPORT const tl_holder_view *tl_rw_view(const tl_rw *rw);

/*
 * "Business done", written in the caller's own transaction, on the caller's connection: it commits
 * with the business or not at all, and keeps the lock from being lost before that transaction ends.
 * The connection is never committed, rolled back or SET.  flags: 0 or TL_GUARD_ANY_IDLE.
 *
 *     TL_OK                Go on, and commit.
 *     TL_ROLL_BACK         The janitor or another asker was faster, or the server undid the
 *                          statement.  Roll back.
 *     TL_NO_TRANSACTION    No transaction is open.
 *     TL_NOT_HELD, TL_RELEASED
 *                          This handle holds nothing.
 *
 * With any answer but TL_OK nothing that follows may be committed.
 */
TL_EXPORT tl_status tl_rw_done(tl_rw *rw, struct st_mysql *connection, unsigned flags);

/* The same proof, without writing anything.  Answers as above. */
TL_EXPORT tl_status tl_rw_guard(tl_rw *rw, struct st_mysql *connection, unsigned flags);

/* One name for both, in C: tl_guard(lock, connection, flags). */
#ifndef __cplusplus
#define tl_guard(lock, connection, flags)                                                          \
    _Generic((lock), tl_mutex *: tl_mutex_guard, tl_rw *: tl_rw_guard)((lock), (connection),       \
                                                                       (flags))
#endif

#ifdef __cplusplus
}
#endif
#endif
