/*
 * rw_lock.h - many readers or one writer of a named resource: while a loan is repaid nobody may
 * transfer a claim on it, and transfers may go on side by side.
 *
 * THE STORY
 *
 * Every holder has a row of its own in `resource_holder`, with its session, its lease and
 * its fence; nothing is counted, so a crash leaves nothing miscounted.  A row goes from
 * acquired to business done to released, each with its time and on record in
 * `resource_holder_log`.  The holder of a row that is dead - its session has ended, its
 * lease or its max_hold is over - is freed by the janitor of any process, by `tradelock
 * reap`, or by whoever it stands in the way of.  Nobody ever frees the living.
 *
 * A writer that waits is a row too, which keeps *new readers* out, so that a stream of readers
 * cannot starve it.  That row has a short lease, which the waiting renews: a writer that dies while
 * it waits keeps readers out for some seconds at most.  Between writers of several processes there
 * is no order.
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
 * A handle has one lock at a time and is no mutex between threads: one thread at a time uses it,
 * any thread may.  A lock is renewed as a tl_mutex is: by the heartbeat of the client's session
 * (lease_ms 0), or by hand with tl_rw_renew().
 *
 * WHAT A DYING PROCESS OR THREAD LEAVES
 *
 * A process: rows that are freed when its session is seen dead (10 s by default), or when their own
 * leases are over.  A thread: nothing happens to its locks.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_RW_LOCK_H
#define TRADELOCK_RW_LOCK_H

#include <tradelock/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tl_rw tl_rw;

typedef enum tl_rw_mode { TL_RW_NONE, TL_RW_READ, TL_RW_WRITE } tl_rw_mode;

typedef enum tl_holder_state {
    TL_HOLDER_FREE, /* a row without a holder */
    TL_HOLDER_HELD,
    TL_HOLDER_DONE,    /* held, and its business is done */
    TL_HOLDER_WAITING, /* a writer that waits */
    TL_HOLDER_DEAD     /* in nobody's way for long: the janitor frees it */
} tl_holder_state;

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

/* A handle; nothing is written.  Names are printable ASCII without blanks; case matters. */
TL_EXPORT tl_status tl_rw_new(tl_rw **out, tl_client *client, const char *resource,
                              const tl_rw_options *options);

/* Unlocks what is still held, once and without insisting, and frees. */
TL_EXPORT void tl_rw_free(tl_rw *rw);

/*
 * Asks for the lock.  wait_ms 0: once, TL_BUSY when somebody is in the way.  Else until the
 * deadline, then TL_TIMEOUT; of all waiters of a client for one resource only the first asks the
 * server, the others come after it in their order.
 *
 * TL_GRANTED: it is held.  TL_UNKNOWN: the answer was lost; ask for the same with the same
 * handle.  TL_WOULD_UPGRADE: this handle reads and asked to write; two readers that did
 * so would wait for each other, so it is refused: unlock, ask to write, and read again
 * what was read.  (A thread that asks to write by a second handle waits for its own
 * reading until the deadline.)  TL_WRONG_STATE: this handle has its lock already.
 * TL_ASK_CHANNEL: the server was restored or replaced, and no operator has accepted it.
 */
TL_EXPORT tl_status tl_rw_read(tl_rw *rw, int64_t wait_ms);
TL_EXPORT tl_status tl_rw_write(tl_rw *rw, int64_t wait_ms);

/*
 * A writer goes on as a reader, with the same fence, and other readers may join it; no other writer
 * can have come between.  TL_OK (also for a reader), TL_LOST, or TL_UNKNOWN: call again; until then
 * it counts as reading, and nothing can be committed under it.
 */
TL_EXPORT tl_status tl_rw_downgrade(tl_rw *rw);

/*
 * TL_OK: released, and it was held without a break since it was granted.  TL_RELEASED: this handle
 * had released it already.  TL_LOST: somebody had freed it.  TL_UNKNOWN: unlock again with the same
 * handle.  TL_NOT_HELD: it was never granted.  TL_TRY_AGAIN: an open transaction with tl_rw_done()
 * or tl_rw_guard() keeps the row.
 */
TL_EXPORT tl_status tl_rw_unlock(tl_rw *rw);

/* The lock lasts lease_ms from now, at most until max_hold; ends the renewal by the
 * session.  TL_OK, TL_LOST, or TL_UNKNOWN (renew again). */
TL_EXPORT tl_status tl_rw_renew(tl_rw *rw, int64_t lease_ms);

/* How long it is certainly held without another renewal or heartbeat; no round trip. */
TL_EXPORT int64_t tl_rw_remaining_ms(const tl_rw *rw);

/* What this handle holds, and the fence of the grant; 0 when nothing. */
TL_EXPORT tl_rw_mode tl_rw_held(const tl_rw *rw);
TL_EXPORT uint64_t tl_rw_fence(const tl_rw *rw);

/* Who was in the way when the last ask answered TL_BUSY or TL_TIMEOUT: one of them, or a view
 * without a resource when that one was gone already. */
TL_EXPORT const tl_holder_view *tl_rw_view(const tl_rw *rw);

/*
 * "Business done", written in the caller's own transaction on the caller's connection: it commits
 * with the business or not at all, and keeps the lock from being lost before that transaction ends.
 * The connection is never committed, rolled back or SET; flags as for tl_mutex_guard().
 *
 * TL_OK: go on and commit.  Anything else: nothing that follows may be committed. TL_ROLL_BACK: the
 * janitor, or another asker, was faster, or the server undid the statement; roll back.
 * TL_NO_TRANSACTION, TL_INVALID, TL_NOT_HELD, TL_RELEASED: the call is wrong.
 */
TL_EXPORT tl_status tl_rw_done(tl_rw *rw, struct st_mysql *connection, unsigned flags);

/* The same proof without writing anything. */
TL_EXPORT tl_status tl_rw_guard(tl_rw *rw, struct st_mysql *connection, unsigned flags);

/* One name for both, in C: tl_guard(lock, connection, flags). */
#ifndef __cplusplus
#define tl_guard(lock, connection, flags)                                                          \
    _Generic((lock), tl_mutex *                                                                    \
             : tl_mutex_guard, tl_rw *                                                             \
             : tl_rw_guard)((lock), (connection), (flags))
#endif

#ifdef __cplusplus
}
#endif
#endif
