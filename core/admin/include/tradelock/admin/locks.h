/*
 * admin/locks.h - who holds lease mutexes and read-write locks, and taking a lock from its holder.
 *
 * Threads, fork, memory and errors are as in <tradelock/tradelock.h>.
 */
#ifndef TRADELOCK_ADMIN_LOCKS_H
#define TRADELOCK_ADMIN_LOCKS_H

#include <tradelock/rw_lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which lease mutexes a list shows. */
typedef struct tl_resource_filter {
    unsigned version;   /* TL_RESOURCE_FILTER_VERSION */
    const char *prefix; /* of the name; NULL: all */
    int all;            /* free ones too */
    unsigned limit;     /* 0: 100 */
} tl_resource_filter;

#define TL_RESOURCE_FILTER_VERSION 1u
#define TL_RESOURCE_FILTER_INIT TL_INITIAL(tl_resource_filter, TL_RESOURCE_FILTER_VERSION)

/* Returns 0 to go on.  The view lives until it returns. */
typedef int (*tl_resource_fn)(void *context, const tl_resource_view *view);

/* Shows lease mutexes in the order of their names; filter may be NULL.  TL_OK also when there are
 * none. */
TL_EXPORT tl_status tl_resource_list(tl_client *client, const tl_resource_filter *filter,
                                     tl_resource_fn each, void *context);

/* Shows one lease mutex.  TL_OK, or TL_NOT_FOUND when nobody ever asked for this name. */
TL_EXPORT tl_status tl_resource_show(tl_client *client, const char *resource, tl_resource_fn each,
                                     void *context);

/*
 * Takes a lease mutex from its holder, and lifts a minimum hold.  The holder learns it at the next
 * beat, at the guard, or from its unlock.  Bound to the fence that was seen; actor and reason go on
 * record.  Needs an operator's account.
 *
 *     TL_OK          It is free, by this call.
 *     TL_LOST        The resource has moved on: its fence is another.  Nothing happened.
 *     TL_NOT_HELD    There is nothing to take.
 *     TL_BUSY        A guarded transaction is under way.  Try again after it.
 *     TL_NOT_FOUND   Nobody ever asked for this name.
 *     TL_UNKNOWN     The answer was lost.  Look at the resource.
 */
TL_EXPORT tl_status tl_resource_unlock(tl_client *client, const char *resource, uint64_t fence,
                                       const char *actor, const char *reason);

/* Returns 0 to go on.  The view lives until it returns. */
typedef int (*tl_holder_fn)(void *context, const tl_holder_view *view);

/* Shows the holders of one resource, or of all (resource NULL) in the order of their names.  all:
 * rows without a holder too.  limit 0: 100.  TL_OK also when there are none. */
TL_EXPORT tl_status tl_holder_list(tl_client *client, const char *resource, int all, unsigned limit,
                                   tl_holder_fn each, void *context);

/*
 * Takes a read-write lock from one reader or writer, or ends a writer's waiting.  slot says which
 * row, and the fence that was seen says that it is still the same holder.  From then on the
 * holder's tl_rw_done() and tl_rw_guard() answer TL_ROLL_BACK, and its unlock TL_LOST.  actor and
 * reason go on record.  Needs an operator's account.
 *
 *     TL_OK          The row is free, by this call.
 *     TL_LOST        The row has moved on.  Nothing happened.
 *     TL_NOT_HELD    The row is free already.
 *     TL_BUSY        A transaction with tl_rw_done() or tl_rw_guard() is under way.
 *     TL_NOT_FOUND   There is no such row.
 *     TL_UNKNOWN     The answer was lost.  Look at the row.
 */
TL_EXPORT tl_status tl_holder_unlock(tl_client *client, const char *resource, unsigned slot,
                                     uint64_t fence, const char *actor, const char *reason);

#ifdef __cplusplus
}
#endif
#endif
