/*
 * Where connections lead if a settings file names several hosts.  Never used with one host.
 *
 * A connection goes to the host in use, as long as that is a writer: a server that was accepted and
 * takes writes, by the word of whoever looks at new connections (pool_options.opened).  Else all
 * hosts are looked at, and the best of them is taken: a writer; or one that takes writes and may
 * lack commits, where nothing is granted; or one that is only read.  The last two are asked for
 * anew after a moment.
 *
 * A host to which connecting times out is left out for a while, but for one connection that tries
 * again; the time to connect is shared by all hosts.  Such a host, one where a write was refused as
 * read-only, or where a request was not answered, loses all its connections: each has the count of
 * its host, and is not lent again once that has risen.  In the first case those that are lent are
 * cut too, since their users would wait for as long as an answer may take; a server that merely
 * answers late takes connections.
 */
#ifndef TL_POOL_HOSTS_H
#define TL_POOL_HOSTS_H

#include "pool/pool.h"

#include <pthread.h>

typedef struct hosts hosts;

/* What a connection keeps of the way it was made.  Zeroes with one host. */
typedef struct reached {
    size_t host;
    uint64_t count;   /* of its host, when it was made */
    int64_t until_ms; /* it leads to no writer, and is lent until then; 0: it does */
} reached;

/* Of two hosts or more.  `options` as pool_new() has them. */
tl_status hosts_new(hosts **out, const db_hosts *list, const pool_options *options);
void hosts_free(hosts *h, int here);
/* The connections of pool_look_around(); not here: in the child of a fork, where the thread that
 * looks does not exist. */
void hosts_close(hosts *h, int here);

/* Connects.  `connect` is of one kind. */
tl_status hosts_open(hosts *h, const db_options *connect, db **out, reached *how);
/* Whether a connection may be lent again. */
int hosts_lends(hosts *h, const reached *how);
/* Whether connecting to it has just timed out for the first time: then nobody waits there any
 * longer.  Says so once. */
int hosts_fell_silent(hosts *h, size_t *host);
/* A connection is closed, and says whether its host refused a write, or was silent for so long. */
void hosts_note(hosts *h, const db *connection, const reached *how, int64_t silent_ms);

tl_status hosts_check(hosts *h, const db_options *connect);
tl_status hosts_look_around(hosts *h, const db_options *connect);
/* See pool_glance(). */
void hosts_glance(hosts *h);
/* The same by whichever thread comes first, if nobody did for so long; the others wait until it has
 * looked at all that answer, and until every_ms after it began at most.  1: this one did. */
int hosts_look_if_due(hosts *h, const db_options *connect, int64_t every_ms);
/* See pool_all_seen(). */
int hosts_all_seen(hosts *h, const db_options *connect, hosts_unseen *unseen);

#endif
