/*
 * admin/locks.h - who holds lease mutexes and read-write locks, and taking a lock from its holder.
 */
#ifndef TRADELOCK_ADMIN_LOCKS_H
#define TRADELOCK_ADMIN_LOCKS_H

#include <tradelock/rw_lock.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tl_resource_filter {
    unsigned version;   /* TL_RESOURCE_FILTER_VERSION */
    const char *prefix; /* of the name; NULL: all */
    int all;            /* free ones too */
    unsigned limit;     /* 0: 100 */
} tl_resource_filter;

#define TL_RESOURCE_FILTER_VERSION 1u

/* Returns 0 to go on.  Views live during the call. */
typedef int (*tl_resource_fn)(void *context, const tl_resource_view *view);

/* In the order of the names.  filter may be NULL. */
TL_EXPORT tl_status tl_resource_list(tl_client *client, const tl_resource_filter *filter,
                                     tl_resource_fn each, void *context);

/* TL_OK or TL_NOT_FOUND. */
TL_EXPORT tl_status tl_resource_show(tl_client *client, const char *resource, tl_resource_fn each,
                                     void *context);

/*
 * Takes the lock from its holder, who learns it at the next beat, at the guard, or from the unlock;
 * lifts a minimum hold as well.  Bound to the fence that was seen.  The name and the reason go on
 * record.  TL_OK; TL_LOST: the resource has moved on; TL_NOT_HELD: there is nothing to unlock;
 * TL_BUSY: a guarded transaction is under way; TL_NOT_FOUND.
 */
TL_EXPORT tl_status tl_resource_unlock(tl_client *client, const char *resource, uint64_t fence,
                                       const char *actor, const char *reason);

/* Returns 0 to go on.  Views live during the call. */
typedef int (*tl_holder_fn)(void *context, const tl_holder_view *view);

/* The holders of one resource, or of all (NULL) in the order of their names; with all != 0 rows
 * without a holder too.  limit 0: 100. */
TL_EXPORT tl_status tl_holder_list(tl_client *client, const char *resource, int all, unsigned limit,
                                   tl_holder_fn each, void *context);

/*
 * Takes the lock from one reader or writer, or ends a writer's waiting: `slot` says which, and the
 * fence that was seen that it is still the same.  Its tl_rw_done() and tl_rw_guard() answer
 * TL_ROLL_BACK from then on, its unlock TL_LOST.  The name and the reason go on record.  TL_OK;
 * TL_LOST: the row has moved on; TL_NOT_HELD: it is free; TL_BUSY: a transaction with tl_rw_done()
 * or tl_rw_guard() is under way; TL_NOT_FOUND.
 */
TL_EXPORT tl_status tl_holder_unlock(tl_client *client, const char *resource, unsigned slot,
                                     uint64_t fence, const char *actor, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
