/* A lease mutex's handle and its holds, as the files of this room share them. */
#ifndef TL_LEASE_MUTEX_MUTEX_H
#define TL_LEASE_MUTEX_MUTEX_H

#include "client/client.h"
#include "store/resource.h"
#include "transition/work.h"

#include <tradelock/resource.h>

/*
 *   NEW, RELEASED, LOST --lock--> HELD --unlock--> RELEASED, or LOST
 *            |   ^                  |
 *            v   | refused          v
 *         ASK_UNKNOWN         UNLOCK_UNKNOWN
 */
typedef enum mutex_state {
    MUTEX_NEW,
    MUTEX_ASK_UNKNOWN,
    MUTEX_HELD,
    MUTEX_UNLOCK_UNKNOWN,
    MUTEX_RELEASED,
    MUTEX_LOST
} mutex_state;

typedef struct leases leases;

/* One grant: of one handle, or shared by the handles of one thread.  Every handle has one of its
 * own from the start, and points to another's while it shares that. */
typedef struct hold {
    /* Fixed after it is made. */
    tl_client *client;
    const char **resources; /* in the order of their bytes */
    size_t count;
    tl_mutex_loss_fn loss;
    void *loss_context;
    int by_thread;

    /* Under the mutex of the leases. */
    unsigned refs;  /* handles that point here */
    unsigned depth; /* unlocks owed, over all handles */
    struct hold *next;
    int listed, in_hand, paused, reported;
    int64_t looked_ms;

    /* Written by the holder under that mutex, read by the holder without. */
    uint64_t owner;   /* the thread, with by_thread */
    const life *life; /* of the session that renews it */
    uint8_t token[RESOURCE_TOKEN];
    uint64_t *fences;       /* one for each resource */
    int64_t lease_until_ms; /* boot time; CLOCK_NEVER: the session renews it */
    int64_t hold_until_ms;
    work_doubt renewing; /* a renewal by any of its handles */

    /* Atomic. */
    atomic_int lost; /* seen by the one who watches */
} hold;

struct tl_mutex {
    tl_client *client;
    mutex_state state;
    tl_mutex_options options;
    void *payload;
    char remark[TL_REMARK_MAX + 1], actor[64];

    hold *own, *hold; /* hold: own, or another's that is shared */
    unsigned depth;

    const life *life; /* under which it asked last; NULL before */

    /* A step under way, and one whose answer was lost. */
    uint8_t next_token[RESOURCE_TOKEN];
    char lost_connection[RANDOM_UUID];
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT];

    size_t refused; /* which resource was in the way */
    tl_resource_view view;
    db_result row; /* what the view's payload points into */
};

/* -- mutex.c -- */

tl_status mutex_check(const tl_mutex *m);
/* Fills what every step has; a fresh token unless the last one is not settled yet. */
void mutex_begin_step(tl_mutex *m, resource_step *s, int fresh_token);
/* What is certain of a hold, without a round trip. */
int64_t hold_remaining_ms(const hold *h);
/* A number of the calling thread that no other thread of the process ever has. */
uint64_t mutex_thread(void);
/* Points the handle back to its own hold. */
void mutex_leave_hold(tl_mutex *m);
/* Before an ask: an own hold that other handles still share is left to them. */
tl_status mutex_own_hold(tl_mutex *m, leases *l);

/* -- ask.c: asking once; TL_GRANTED, TL_BUSY with m->refused set, or why not -- */
tl_status mutex_ask_once(tl_mutex *m);

/* -- group.c: lets work of one resource share a statement; take: see work.h -- */
void mutex_offer_group(work *w, resource_row *row, const resource_step *own,
                       int (*take)(void *context));

/* -- unlock.c: gives the rows of the handle's hold back -- */
tl_status mutex_release(tl_mutex *m, int64_t budget_ms);

/* -- leases.c: the holds of a client that others must find or watch -- */

/* TL_OK or TL_NO_MEMORY. */
tl_status leases_of(tl_client *client, leases **out);
void leases_lock(leases *l);
void leases_unlock(leases *l);
/* Begins to watch, and lets handles of the same thread find it.  TL_NO_MEMORY when the watching
 * thread cannot be started; then nothing is watched. */
tl_status leases_add(leases *l, hold *h);
/* The watcher looks away while its holder gives it back; returns when it has done so. */
void leases_pause(leases *l, hold *h);
void leases_resume(leases *l, hold *h);
void leases_drop(leases *l, hold *h);
/* A deadline changed. */
void leases_wake(leases *l);
/* Needs: the leases' mutex held. */
hold *leases_find(leases *l, const char *resource, uint64_t thread);

#endif
