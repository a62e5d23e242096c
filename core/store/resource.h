/* The statements of lease mutexes, bound to their parameters.  Each is one round trip and decides
 * nothing. */
#ifndef TL_STORE_RESOURCE_H
#define TL_STORE_RESOURCE_H

#include "db/db.h"

#include <tradelock/resource.h>

#define RESOURCE_TOKEN 16

/* One step on all resources of a grant, which are in the order of their bytes. */
typedef struct resource_step {
    const char *const *resources;
    size_t count;
    const uint8_t *token;      /* of this step */
    const uint8_t *held_token; /* of the hold on which it rests; not for an ask */
    const char *thread_no, *log_no, *session_id;
    int64_t lease_ms, max_hold_ms, min_hold_ms; /* < 0: NULL */
    const void *payload;
    size_t payload_size;
    const char *remark, *actor;
    const char *dead; /* of an ask: holders that were seen dead (resource_ask); or NULL */
} resource_step;

/* One row for each resource, in their order: (token, fence). */
db_answer store_resource_ask(db *connection, const resource_step *s, db_result *result);
/* result->affected: how many were still held. */
db_answer store_resource_unlock(db *connection, const resource_step *s, db_result *result);
/* A step of one resource that shares a statement with others'. */
typedef struct resource_row {
    const resource_step *step; /* if it is an ask, it names no dead holder */
    int unlocks;               /* 0: it asks */
    int changed;               /* set by the call: the step was carried out, and ... */
    uint64_t fence;            /* ... this is the row's new fence */
} resource_row;

/* About how many bytes a row takes in the statement. */
size_t store_resource_row_size(const resource_row *row);
/* One statement and one commit, in the order of the names.  Several steps may have the same name;
 * each meets the row as the one before it left it. */
db_answer store_resource_group(db *connection, resource_row *const *rows, size_t count);

db_answer store_resource_renew(db *connection, const resource_step *s, db_result *result);

/* (mine, status, fence, hold_left_ms, lease_left_ms or NULL, rev); no row when absent. */
#define RESOURCE_NOW_REV 5
db_answer store_resource_now(db *connection, const char *resource, const uint8_t *token,
                             db_result *result);
/* (0 or 1) */
db_answer store_resource_token_seen(db *connection, const char *resource, const uint8_t *token,
                                    db_result *result);

/* (in_transaction, autocommit, idle_transaction_s, identity) */
db_answer store_caller_transaction(db *connection, db_result *result);

/* For resource_view_read(). */
db_answer store_resource_show(db *connection, const char *resource, db_result *result);

/* A row of show and list; the payload points into the result. */
void resource_view_read(tl_resource_view *to, const db_result *result, size_t row);

#endif
