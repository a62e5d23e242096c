/*
 * Lends connections.  Their number is bounded; first come, first served; every wait has a deadline;
 * a connection comes back clean or is closed.
 */
#ifndef TL_POOL_POOL_H
#define TL_POOL_POOL_H

#include "db/db.h"

/* QUICK: statements of the library, which never wait for a row lock (0 s).  BUSINESS: transactions
 * with business rows, which wait as the settings say.  BOOKS: transactions of declared books, whose
 * statements wait only where they are run with db_run_waiting().  BEAT: the heartbeat, outside the
 * bounds, which waits neither for a lock nor for a silent server. */
typedef enum pool_kind { POOL_QUICK, POOL_BUSINESS, POOL_BOOKS, POOL_BEAT, POOL_KINDS } pool_kind;

typedef struct pool pool;

typedef struct pool_options {
    db_options connect;        /* strings are copied */
    unsigned size[POOL_KINDS]; /* POOL_BEAT: 0 */
    unsigned business_lock_wait_s;
    unsigned beat_read_timeout_s; /* 0: as the others */
    /* Called once with every new connection before anybody uses it, since it may have led to
     * another server; or NULL.  If it does not return TL_OK the connection is closed. */
    tl_status (*opened)(void *context, db *connection);
    void *opened_context;
} pool_options;

/* Opens nothing yet; connections are made when they are wanted. */
tl_status pool_new(pool **out, const pool_options *options);
/* Needs: pool_lent() is 0, except in the child of a fork. */
void pool_free(pool *p);

/* How many connections somebody has now. */
unsigned pool_lent(pool *p);

/* wait_ms bounds the time in the queue; a connection that has to be made takes up to
 * connect_timeout_s more.  TL_OK; TL_OVERLOADED: nobody gave one back in time; TL_UNREACHABLE and
 * TL_ACCESS_DENIED: connecting failed; TL_WRONG_PROCESS: after a fork. */
tl_status pool_get(pool *p, pool_kind kind, int64_t wait_ms, db **out);

/* Gives a connection back.  One that is in a transaction is rolled back; one that is broken, or not
 * usable for another reason (db_usable()), is closed.  Accepts NULL. */
void pool_put(pool *p, db *connection);

/* Closes a connection that must not be lent again, which ends what is under way on it. */
void pool_put_lost(pool *p, db *connection);

/* A connection outside the bounds, for the heartbeat and for settling lost answers. */
tl_status pool_open_extra(pool *p, pool_kind kind, db **out);
void pool_close_extra(pool *p, db *connection);

/* Sums the counters of all connections, closed ones included. */
void pool_count(pool *p, db_counters *sum, uint64_t *reconnects);

/* Who had to queue for a connection of this kind: how often, for how long in all, and how often
 * none became free in time. */
typedef struct pool_waits {
    uint64_t waits, waited_us, timeouts;
} pool_waits;
pool_waits pool_count_waits(pool *p, pool_kind kind);

/* "quick", "business" ... */
const char *pool_kind_name(pool_kind kind);

/* How many connections of this kind there may be; fixed. */
unsigned pool_size(const pool *p, pool_kind kind);

/* How many queue for a connection of this kind now. */
unsigned pool_waiting(pool *p, pool_kind kind);

#endif
