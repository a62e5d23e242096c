/* The statements of the read-write lock and of the row lock, bound to their parameters.  Each is
 * one round trip and decides nothing. */
#ifndef TL_STORE_RW_H
#define TL_STORE_RW_H

#include "db/db.h"

#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>

#define RW_TOKEN 16

/* A holder's row, and a step on it. */
typedef struct rw_step {
    const char *resource;
    unsigned slot;
    char kind, status; /* of a claim */
    const char *step;
    const uint8_t *token;      /* of this step */
    const uint8_t *held_token; /* the token that the row carries; not for a claim */
    const char *thread_no, *log_no, *session_id;
    int by_session;
    uint64_t fence;
    int64_t over_ms, max_hold_ms;
    const char *remark, *actor;
} rw_step;

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
db_answer store_rw_claim(db *connection, const rw_step *s);
/* *freed: how many were freed. */
db_answer store_rw_free(db *connection, const char *resource, int readers_too, const uint8_t *token,
                        const char *thread_no, const char *actor, int64_t latest_us,
                        uint64_t *freed);

/* *affected: 1 if it was still held. */
db_answer store_rw_release(db *connection, const rw_step *s, uint64_t *affected);
db_answer store_rw_downgrade(db *connection, const rw_step *s, uint64_t *affected);
db_answer store_rw_renew(db *connection, const rw_step *s, uint64_t *affected);
/* An operator takes a holder's lock away, if its fence is still seen_fence; the new one is
 * s->fence. */
db_answer store_rw_force(db *connection, const rw_step *s, uint64_t seen_fence, uint64_t *affected);
/* On the caller's connection. */
db_answer store_rw_done(db *connection, const rw_step *s, uint64_t *affected);
db_answer store_rw_guard(db *connection, const rw_step *s, int *held);

/* (mine, status, fence, hold_left_ms, left_ms, rev, step); no row when absent. */
#define RW_NOW_REV 5
#define RW_NOW_STEP 6
db_answer store_rw_now(db *connection, const char *resource, unsigned slot, const uint8_t *token,
                       db_result *result);
db_answer store_rw_token_seen(db *connection, const char *resource, unsigned slot,
                              const uint8_t *token, int *seen);

/* Rows for holder_view_read(), after this slot of this resource; `all`: also of the resources after
 * it. */
db_answer store_rw_list(db *connection, const char *resource, unsigned slot, int all,
                        unsigned limit, db_result *result);
void holder_view_read(tl_holder_view *to, const db_result *result, size_t row);

/* The row lock. */
db_answer store_row_lock_there(db *connection, const char *resource, int *there);
db_answer store_row_lock_make(db *connection, const char *resource);
/* On the caller's connection; wait_s as for tl_row_lock().  *locked 0: the resource has no row
 * yet. */
db_answer store_row_lock(db *connection, const char *resource, int64_t wait_s, int *locked);

#endif
