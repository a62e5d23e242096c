/*
 * What locks of named resources have in common.  An ask is one task that takes all names or none,
 * and whatever its holder does is proved by the token of the grant.  A kind brings its statements
 * as a resource_method.  It embeds a lock_ask and a lock_change as the first members of its own
 * structs for an ask and a change under way.
 */
#ifndef TL_LOCK_RESOURCE_H
#define TL_LOCK_RESOURCE_H

#include "lock/handle.h"

/* What a task of a kind is about, for the batches of that kind. */
typedef struct lock_work {
    void *row; /* NULL: it goes alone */
    /* Called after a batch's DB_DONE, on any thread.  1: the task is done, 0: it goes on alone. */
    int (*take)(void *work);
} lock_work;

/* An ask under way. */
typedef struct lock_ask {
    lock_work work; /* first */
    lock_handle *lock;
    lock_offer offer; /* filled before the ask; after a settled step, from the rows */
    int claims;       /* what was sent asks for the lock, not only for an intent */
    int taken;
    size_t refused;   /* which of the names was in the way */
    int held_up;      /* somebody locks the gate for longer than a moment */
    uint64_t *fences; /* one for each name */
} lock_ask;

/* A change of what is held, under way. */
typedef struct lock_change {
    lock_work work;   /* first */
    uint64_t changed; /* rows */
} lock_change;

/* The statements of a kind.  The context of an `ask` is a lock_ask, of a `release` a
 * lock_change. */
typedef struct resource_method {
    /* Asks for all names and commits, or finds out that somebody is in the way: taken, fences,
     * refused.  Its check is task_check_lock() and its read resource_read_ask(). */
    task_kind ask;
    /* Reads what became of an ask: (mine, status, fence, hold_left_ms, left_ms or NULL) of a name's
     * row; and whether the token of the ask was ever written there. */
    db_answer (*now)(const void *ask, db *connection, size_t i, db_result *result);
    db_answer (*seen)(const void *ask, db *connection, size_t i, int *seen);
    /* Called when nothing was granted, or the grant is over.  settled: the answer was lost. */
    void (*refused)(lock_handle *h, const void *ask, int settled);

    /* Gives back what this ask was granted, as resource_release() does. */
    void (*give_back)(lock_handle *h, const void *ask);
    task_kind release;

    /* Sentences. */
    const char *lost_at_release, *lost_at_change;
} resource_method;

db_answer resource_read_ask(task *t, db *connection);

/* Gives back what is left of a grant that is worth nothing; other rows belong to whoever has them
 * now. */
void resource_give_back(lock_handle *h, const void *ask);

/* For the kind's lock_method. */
tl_status resource_look(lock_handle *h, void *ask, lock_offer *offer, int *mine);
tl_status resource_gone(lock_handle *h, void *ask);

/* -- what the caller says -- */

tl_status resource_check_times(int64_t lease_ms, int64_t max_hold_ms);
tl_status resource_check_texts(const char *remark, const char *actor);
tl_status resource_check_lease(int64_t lease_ms);

/* -- asking -- */

/* Before the kind fills its step. */
void resource_begin_ask(lock_handle *h);
/* TL_GRANTED; TL_BUSY: somebody has it; TL_UNKNOWN: the answer was lost; else why not. */
tl_status resource_ask_once(lock_handle *h, lock_ask *ask);
/* The answer to a whole ask, which waited if wait_ms is not 0.  It counts and explains a
 * refusal. */
tl_status resource_answer(lock_handle *h, tl_status status, int64_t wait_ms);

/* -- holding -- */

/* TL_OK: the handle is held, is not being unlocked, and its time is not over; else why not. */
tl_status resource_check_certain(const lock_handle *h);
/* Gives the lock back.  TL_OK; TL_LOST: it was not held any more; TL_UNKNOWN: the answer was lost;
 * else why not, and it is still held. */
tl_status resource_release(lock_handle *h, lock_change *change, int64_t budget_ms);
/* Runs a change that does no harm if it runs twice.  Until one run is answered, the doubt says that
 * it may have happened, or still may. */
tl_status resource_change(lock_handle *h, lock_change *change, const char *name,
                          const task_kind *kind, doubt *left);
/* Sets the grant after a renewal until until_ms; doubtful: it may have happened. */
void grant_renew(lock_grant *grant, int64_t until_ms, int doubtful);
/* In the caller's transaction: checks that the grant is certain by what the handle knows, then has
 * how() prove that it is held.  Needs: the handle is held. */
tl_status resource_prove(lock_handle *h, struct st_mysql *connection, unsigned flags,
                         tl_status (*how)(lock_handle *h, db *borrowed));

#endif
