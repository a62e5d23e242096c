/* The statements of mutexes, read-write locks and row locks, bound to their parameters.  Each is
 * one round trip and decides nothing. */
#ifndef TL_STORE_LEASE_H
#define TL_STORE_LEASE_H

#include "db/db.h"

#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>

#define LEASE_TOKEN 16

/* One step on the rows of a lock. */
typedef struct lease_step {
    const char *const *names; /* in the order of their bytes; a read-write lock has one */
    size_t count;
    unsigned slot;             /* of the row of a read-write lock's holder */
    const char *word;          /* what the row of a read-write lock then says */
    char kind, status;         /* of a claim of such a row */
    const uint8_t *token;      /* of this step */
    const uint8_t *held_token; /* of the grant on which it rests; not for an ask */
    const uint64_t *fences;    /* of that grant, one for each name */
    uint64_t fence;            /* of a claim */
    const char *thread_no, *log_no, *session_id;
    int by_session;                   /* the session renews it; else it ends by itself ... */
    int64_t over_ms;                  /* ... after this; of a row that is renewed: at the latest */
    int64_t max_hold_ms, min_hold_ms; /* min_hold_ms 0: none */
    const void *payload;
    size_t payload_size;
    const char *remark, *actor;
    const char *dead; /* of an ask: holders that were seen dead (resource_ask); or NULL */
} lease_step;

/* The statements that a kind has in common with the other. */
typedef struct lease_statements {
    /* (mine, status, fence, hold_left_ms, left_ms or NULL, rev); no row when absent. */
    db_answer (*now)(db *connection, const char *name, unsigned slot, const uint8_t *token,
                     db_result *result);
    db_answer (*seen)(db *connection, const char *name, unsigned slot, const uint8_t *token,
                      int *seen);
    /* *changed: how many rows were still held. */
    db_answer (*release)(db *connection, const lease_step *s, uint64_t *changed);
    db_answer (*renew)(db *connection, const lease_step *s, uint64_t *changed);
    /* On the caller's connection, of the name with this index; *changed: 1 if it is held. */
    db_answer (*guard)(db *connection, const lease_step *s, size_t i, uint64_t *changed);
} lease_statements;
extern const lease_statements store_mutexes, store_holders;

#define LEASE_NOW_REV 5

/* -- mutexes -- */

/* One row for each resource, in their order: (token, fence). */
db_answer store_resource_ask(db *connection, const lease_step *s, db_result *result);

/* A step of one resource that shares a statement with others'. */
typedef struct resource_row {
    const lease_step *step; /* if it is an ask, it names no dead holder */
    int unlocks;            /* 0: it asks */
    int changed;            /* set by the call: the step was carried out, and ... */
    uint64_t fence;         /* ... this is the row's new fence */
} resource_row;

/* About how many bytes a row takes in the statement. */
size_t store_resource_row_size(const resource_row *row);
/* One statement and one commit, in the order of the names.  Several steps may have the same name;
 * each meets the row as the one before it left it. */
db_answer store_resource_group(db *connection, resource_row *const *rows, size_t count);

/* A row of resource_show and resource_list; the payload points into the result. */
void resource_view_read(tl_resource_view *to, const db_result *result, size_t row);

/* -- read-write locks -- */

/* What a look behind the gate finds.  latest_us: clock_watch_latest_us(). */
typedef struct rw_look {
    uint64_t fence;                          /* for the next grant */
    unsigned new_slot, free_slot, my_intent; /* 0: none */
    unsigned writers, readers, intents;      /* of others, and alive */
    unsigned dead_writers, dead_readers;     /* not freed yet; intents are writers */
} rw_look;

db_answer store_rw_make(db *connection, const char *resource);
/* Locks the gate; *there is 0 when the resource has no row yet. */
db_answer store_rw_gate(db *connection, const char *resource, int *there);
db_answer store_rw_look(db *connection, const char *resource, const uint8_t *intent,
                        int64_t latest_us, rw_look *look);
db_answer store_rw_claim(db *connection, const lease_step *s);
/* *freed: how many were freed. */
db_answer store_rw_free(db *connection, const char *resource, int readers_too, const uint8_t *token,
                        const char *thread_no, const char *actor, int64_t latest_us,
                        uint64_t *freed);
db_answer store_rw_downgrade(db *connection, const lease_step *s, uint64_t *changed);
/* On the caller's connection; *changed: 1 if it is held. */
db_answer store_rw_done(db *connection, const lease_step *s, size_t i, uint64_t *changed);

/* The step is the last column of store_holders.now(). */
#define RW_NOW_STEP 6

/* Rows for holder_view_read(), after this slot of this resource; `all`: also of the resources after
 * it. */
db_answer store_rw_list(db *connection, const char *resource, unsigned slot, int all,
                        unsigned limit, db_result *result);
void holder_view_read(tl_holder_view *to, const db_result *result, size_t row);

/* -- row locks -- */

db_answer store_row_lock_there(db *connection, const char *resource, int *there);
db_answer store_row_lock_make(db *connection, const char *resource);
/* On the caller's connection; wait_s as for tl_row_lock().  *locked 0: the resource has no row
 * yet. */
db_answer store_row_lock(db *connection, const char *resource, int64_t wait_s, int *locked);

#endif
