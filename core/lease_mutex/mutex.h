/* A lease mutex's handle and its holds, as the files of this room share them. */
#ifndef TL_LEASE_MUTEX_MUTEX_H
#define TL_LEASE_MUTEX_MUTEX_H

#include "lock/resource.h"
#include "store/resource.h"

#include <tradelock/resource.h>

typedef struct leases leases;

/* One grant: of one handle, or shared by the handles of one thread.  Every handle has one of its
 * own from the start, and points to another's while it shares that. */
typedef struct hold {
    /* Fixed after it is made. */
    tl_client *client;
    tl_mutex_loss_fn loss;
    void *loss_context;
    int by_thread;

    /* Under the mutex of the leases. */
    unsigned refs;  /* handles that point here */
    unsigned depth; /* unlocks owed, over all handles */
    struct hold *next;
    int listed, in_hand, paused, reported;
    int is_taken; /* a row was read that is not its own: that of `taken` */
    size_t taken;
    int64_t looked_ms; /* when the rows were read last */

    /* Written by the holder under that mutex or before it is listed, read by the holder without. */
    lock_grant grant;
    uint64_t owner;   /* the thread, with by_thread */
    uint64_t *fences; /* one for each name */
} hold;

struct tl_mutex {
    lock_handle base; /* its grant is that of `hold` */
    tl_mutex_options options;
    void *payload;
    char remark[TL_REMARK_MAX + 1], actor[64];

    hold *own, *hold; /* hold: own, or another's that is shared */
    unsigned depth;

    tl_resource_view view;
    db_result row; /* what the view's payload points into */
};

/* -- hold.c -- */

tl_status mutex_check(const tl_mutex *m);
/* Fills what every step has, after handle_begin() or resource_begin_ask(). */
void mutex_fill_step(tl_mutex *m, resource_step *s);
/* A number of the calling thread that no other thread of the process ever has. */
uint64_t mutex_thread(void);

/* Gives the handle a hold of its own. */
tl_status mutex_make_hold(tl_mutex *m, const char *const *resources, size_t count);
void hold_free(hold *h); /* accepts NULL */
/* Points the handle to a hold. */
void mutex_use_hold(tl_mutex *m, hold *h);
/* Points the handle back to its own hold. */
void mutex_leave_hold(tl_mutex *m);
/* Before an ask: an own hold that other handles still share is left to them. */
tl_status mutex_own_hold(tl_mutex *m, leases *l);

/* -- ask.c: asking once -- */
tl_status mutex_ask_once(tl_mutex *m);
/* What distinguishes this kind of lock. */
extern const lock_method mutex_method;

/* -- group.c: lets tasks of one resource share a statement; take: see lock_work -- */
void mutex_share(lock_work *work, resource_row *row, const resource_step *own,
                 int (*take)(void *work));
const batch_kind *mutex_batch(const task *t);

/* -- unlock.c: gives the rows of the handle's hold back -- */
tl_status mutex_release(tl_mutex *m, int64_t budget_ms);
/* Its statements, see resource.h. */
db_answer mutex_run_unlock(task *t, db *connection);
db_answer mutex_read_unlock(task *t, db *connection);
void mutex_mark_unlock(const task *t, commit_mark *to);
void mutex_mark(const resource_step *by, commit_mark *to);

/* -- leases.c: the holds of a client that others must find or watch -- */

/* TL_OK or TL_NO_MEMORY. */
tl_status leases_of(tl_client *client, leases **out);
void leases_lock(leases *l);
void leases_unlock(leases *l);
/* Watches the hold, and lets handles of the same thread find it.  TL_NO_MEMORY: the watching thread
 * cannot be started, and nothing is watched. */
tl_status leases_add(leases *l, hold *h);
/* Keeps the watcher away from a hold that its holder gives back; returns once the watcher is not at
 * it. */
void leases_pause(leases *l, hold *h);
void leases_resume(leases *l, hold *h);
void leases_drop(leases *l, hold *h);
/* Tells the watcher that a deadline changed. */
void leases_wake(leases *l);
/* Needs: the leases' mutex held. */
hold *leases_find(leases *l, const char *resource, uint64_t thread);

#endif
