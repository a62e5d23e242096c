/*
 * Lends connections.  Their number is bounded; first come, first served; every wait has a deadline;
 * a connection comes back clean or is closed.
 */
#ifndef TL_POOL_POOL_H
#define TL_POOL_POOL_H

#include "base/error.h"
#include "base/life.h"
#include "db/db.h"

/* QUICK: statements of the library, which never wait for a row lock (0 s).  BUSINESS: transactions
 * with business rows, which wait as the settings say.  BOOKS: transactions of declared books, whose
 * statements wait only where they are run with DB_WAIT_LONG.  BEAT: the heartbeat, outside the
 * bounds, which waits neither for a lock nor for a silent server. */
typedef enum pool_kind { POOL_QUICK, POOL_BUSINESS, POOL_BOOKS, POOL_BEAT, POOL_KINDS } pool_kind;

typedef struct pool pool;

/* What is to be done with a connection that was made.  One host: it is KEPT.  Of a list of hosts:
 * each is looked at, and the best one, if that is no writer of which all is known, KEPT. */
typedef enum pool_opening {
    POOL_KEPT,   /* it will be used */
    POOL_LOOKED, /* it is compared with those to other hosts: nothing is written there */
    POOL_CHECKED /* the same, before anything begins: may a connection ever lead there? */
} pool_opening;

/* Of a list of which not every host was looked at yet. */
typedef struct hosts_unseen {
    char why[ERROR_MAX];
    int64_t
        since_ms; /* when the newest of the others was first looked at, by the clock of the boot;
                       * 0: none was */
    int64_t leave_ms; /* for so long a process that was connected to one that does not answer may
                       * take until it looks at the others */
} hosts_unseen;

typedef struct pool_options {
    db_options connect;        /* strings are copied */
    unsigned size[POOL_KINDS]; /* POOL_BEAT: 0 */
    unsigned business_lock_wait_s;
    unsigned beat_read_timeout_s; /* 0: as the others */
    /* Called once with every new connection before anybody uses it, since it may have led to
     * another server; or NULL.  If it does not return TL_OK the connection is closed. */
    tl_status (*opened)(void *context, db *connection, pool_opening what);
    /* The same if there is a list of hosts; not NULL, since somebody has to say which one it is. */
    tl_status (*opened_in_list)(void *context, db *connection, pool_opening what);
    void *opened_context;
    /* Of a list of hosts: nobody calls pool_look_around() in rounds, so whoever takes a connection
     * does the same if nobody did for so long; 0: somebody does. */
    int64_t look_every_ms;
    /* Of a list of hosts no connection is made while several take writes and none was accepted. */
    int one_writer;
} pool_options;

/* Opens nothing yet; connections are made when they are wanted.  TL_BAD_CONFIG: the option file's
 * list of hosts cannot be used. */
tl_status pool_new(pool **out, const pool_options *options);
/* Needs: pool_lent() is 0, except in the child of a fork. */
void pool_free(pool *p);

/* Whether the option file names several hosts (pool/hosts.h). */
int pool_has_list(const pool *p);
/* Before anything begins: whether each host of the list may be one of it.  A host that does not
 * answer may.  The sentence names the host. */
tl_status pool_check_hosts(pool *p);
/* Looks at the hosts of a list that are not in use, for one of them may have been accepted
 * meanwhile, and closes idle connections that would not be lent again, or lead to another server
 * than that of this life (NULL: to any).  Any thread; those who come together look one after the
 * other.  Not TL_OK: what is new about one of the hosts, in a sentence. */
tl_status pool_look_around(pool *p, const life *home);

/* The same only where a connection to look by is there already, and nobody looks now: for whoever
 * looks many times a second.  Where there is no list, at the server to which the one address leads,
 * with a connection of its own, which is made once a second (pool/glance.h).  Says nothing of what it
 * finds. */
void pool_glance(pool *p);

/* Whether each host of a list was looked at once: 1.  0: the sentence names one that was not. */
int pool_all_seen(pool *p, hosts_unseen *unseen);

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
