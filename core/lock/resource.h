/*
 * Locks of named resources, as far as they are alike: an ask is a piece of database work that takes
 * all names or none, and whatever its holder does rests on the token of the grant.  A kind brings
 * its statements as a resource_method, and embeds a lock_ask and a lock_change as the first members
 * of what it keeps while one of them is under way.
 */
#ifndef TL_LOCK_RESOURCE_H
#define TL_LOCK_RESOURCE_H

#include "lock/handle.h"

/* What a task of a kind is about, for the batches of that kind. */
typedef struct lock_work {
    void *row; /* NULL: it goes alone */
    /* After a batch's DB_DONE, on any thread: 1 when that was all, 0 when the task goes on alone. */
    int (*take)(void *work);
} lock_work;

/* An ask under way. */
typedef struct lock_ask {
    lock_work work; /* first */
    lock_handle *lock;
    lock_offer offer; /* filled before the ask; of a step that was settled, by what the rows say */
    int claims;       /* what was sent asks for the lock, and not for a place to wait in */
    int taken;
    size_t refused;   /* which of the names was in the way */
    int held_up;      /* by somebody who has the way in for longer than a moment */
    uint64_t *fences; /* one for each name */
} lock_ask;

/* A change of what is held, under way. */
typedef struct lock_change {
    lock_work work;   /* first */
    uint64_t changed; /* rows */
} lock_change;

/* The statements of a kind.  The context of an `ask` is a lock_ask, of a `release` a lock_change. */
typedef struct resource_method {
    /* Asks for all names and commits, or finds out that somebody is in the way: taken, fences,
     * refused.  Its check is task_check_lock() and its read resource_read_ask(). */
    task_kind ask;
    /* How it reads its fate: (mine, status, fence, hold_left_ms, left_ms or NULL) of a name's row;
     * and whether the token of the ask was ever written there. */
    db_answer (*now)(const void *ask, db *connection, size_t i, db_result *result);
    db_answer (*seen)(const void *ask, db *connection, size_t i, int *seen);
    /* Nothing was granted, or what was granted is over: settled, if the answer was lost. */
    void (*refused)(lock_handle *h, const void *ask, int settled);

    /* Gives back what this ask was granted, on the way that resource_release() goes. */
    void (*give_back)(lock_handle *h, const void *ask);
    task_kind release;

    /* Sentences. */
    const char *lost_at_release, *lost_at_change;
} resource_method;

db_answer resource_read_ask(task *t, db *connection);

/* What this ask was granted is worth nothing: whoever has the rows now answers for them, and what
 * is left is given back. */
void resource_give_back(lock_handle *h, const void *ask);

/* For the kind's lock_method. */
tl_status resource_check_restored(const lock_handle *h);
tl_status resource_look(lock_handle *h, void *ask, lock_offer *offer, int *mine);
tl_status resource_gone(lock_handle *h, void *ask);

/* -- what the caller says -- */

tl_status resource_check_times(int64_t lease_ms, int64_t max_hold_ms);
tl_status resource_check_texts(const char *remark, const char *actor);
tl_status resource_check_lease(int64_t lease_ms);

/* -- asking -- */

/* Before the kind fills its step. */
void resource_begin_ask(lock_handle *h);
/* TL_GRANTED, TL_BUSY, TL_UNKNOWN, or why not. */
tl_status resource_ask_once(lock_handle *h, lock_ask *ask);
/* The answer to a whole ask, which waited if wait_ms is not 0: a refusal is counted, and explained.
 */
tl_status resource_answer(lock_handle *h, tl_status status, int64_t wait_ms);

/* -- holding -- */

/* Of a handle that holds: that it is not being unlocked, and that its time is not over. */
tl_status resource_check_certain(const lock_handle *h);
/* Gives back; TL_OK, TL_LOST, TL_UNKNOWN, or why not: then it is still held. */
tl_status resource_release(lock_handle *h, lock_change *change, int64_t budget_ms);
/* What may run twice without harm, so nobody needs to know which run it was; until one of them is
 * answered, the doubt says that it may have happened, or still may. */
tl_status resource_change(lock_handle *h, lock_change *change, const char *name,
                          const task_kind *kind, doubt *left);
/* The grant after a renewal until then, or after one that may have happened. */
void grant_renew(lock_grant *grant, int64_t until_ms, int doubtful);
/* In the caller's transaction: how() proves that it is held, once it is certain by what the handle
 * knows.  Needs: the handle is held. */
tl_status resource_prove(lock_handle *h, struct st_mysql *connection, unsigned flags,
                         tl_status (*how)(lock_handle *h, db *borrowed));

#endif
