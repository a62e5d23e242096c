/*
 * Where one address leads now, as HAProxy or DNS have it, for whoever looks many times a second.
 * Never used with a list of hosts (pool/hosts.h).
 *
 * A connection stays at the server to which it was led.  So a new one looks once a second, and as
 * soon as the last one was ended, which HAProxy does with those to a server that is taken out.  In
 * between the last one tells whether its server was promoted.
 */
#ifndef TL_POOL_GLANCE_H
#define TL_POOL_GLANCE_H

#include "pool/pool.h"

#include <pthread.h>

typedef struct glance {
    /* Fixed. */
    const db_options *connect;
    tl_status (*opened)(void *context, db *connection, pool_opening what);
    void *context;
    pthread_mutex_t mutex;
    /* Under the mutex. */
    db *connection; /* NULL: there is none */
    int64_t may_connect_ms;
} glance;

/* 0 or an errno.  The pointers stay valid until the end; `opened` as in pool_options. */
int glance_init(glance *g, const db_options *connect,
                tl_status (*opened)(void *context, db *connection, pool_opening what),
                void *context);
/* here: not in the child of a fork, where the thread that looks does not exist. */
void glance_end(glance *g, int here);

/* Looks, if nobody does now. */
void glance_once(glance *g);
/* Nobody needs to look for now. */
void glance_rest(glance *g);

#endif
