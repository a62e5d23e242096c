/*
 * What mutexes and read-write locks have in common.  An ask is one task that takes all names or
 * none, and whatever its holder does is proved by the token of the grant.  A kind is a table: its
 * statements, its sentences, and how it asks.
 *
 * mutex.c and rw.c embed a lease as the first member of their handles.
 */
#ifndef TL_LEASE_LEASE_H
#define TL_LEASE_LEASE_H

#include "lock/handle.h"
#include "store/lease.h"

typedef struct holds holds;

/* One grant: of one handle, or shared by the handles of one thread. */
typedef struct hold {
    atomic_uint refs; /* handles that point here */

    /* Under the mutex of the holds. */
    unsigned depth; /* unlocks owed, over all handles */
    struct hold *next;
    int listed, in_hand, paused, reported;
    int is_taken; /* a row was read that is not its own: that of `taken` */
    size_t taken;
    int64_t looked_ms; /* when the rows were read last */

    /* Written by the holder under that mutex or before it is listed, read by the holder without. */
    lock_grant grant;
    tl_mutex_loss_fn loss; /* or NULL */
    void *loss_context;
    int by_thread;
    uint64_t owner;   /* the thread, with by_thread */
    uint64_t *fences; /* one for each name */
} hold;

typedef struct lease {
    lock_handle base; /* its grant is that of `hold` */
    /* Fixed after it is made. */
    holds *holds;
    int64_t lease_ms, max_hold_ms, min_hold_ms;
    void *payload; /* owned */
    size_t payload_size;
    char remark[TL_REMARK_MAX + 1], actor[64];

    hold *hold;
    unsigned depth; /* how many unlocks of it this handle owes */
    unsigned slot;  /* of a read-write lock: the row that it has */
} lease;

/* What a task of one name is about, for a statement that tasks of several threads share. */
typedef struct lease_work {
    resource_row row; /* its step NULL: it goes alone */
    /* Called after DB_DONE, on any thread.  1: the task is done, 0: it goes on alone. */
    int (*take)(struct lease_work *work);
} lease_work;

/* An ask under way. */
typedef struct lease_asking {
    lease_work work; /* first */
    lease *lease;
    lease_step step;
    lock_offer offer;     /* filled before the ask; after a settled step, from the rows */
    const uint8_t *token; /* what the rows carry if it wrote any; NULL: it wrote none */
    int claims;           /* what was sent asks for the lock, not only for an intent */
    int taken;
    size_t refused; /* which of the names was in the way */
    int held_up;    /* somebody locks the gate for longer than a moment */
    uint64_t fences[TL_RESOURCES_MAX];
} lease_asking;

/* A change of what is held, under way. */
typedef struct lease_changing {
    lease_work work; /* first */
    const struct lease_kind *kind;
    lease_step step;
    db_answer (*statement)(db *connection, const lease_step *s, uint64_t *changed);
    int keeps_token; /* so it is found by how often the row was changed */
    uint64_t rev;    /* then, after it */
    uint64_t changed;
} lease_changing;

/* What distinguishes a kind, beyond its lock_method.  The context of an ask is a lease_asking. */
typedef struct lease_kind {
    const lease_statements *statements;
    mark_kind mark;
    /* Asks for all names and commits, or finds out that somebody is in the way: taken, fences,
     * refused. */
    task_kind ask;
    /* Asks once, by lease_begin_ask() and lease_run_ask().  waits: it is one of many asks. */
    tl_status (*ask_once)(lease *l, int waits);
    /* Called when it is held: fills the kind's own members, and writes the log line. */
    void (*granted)(lease *l, const lease_asking *a);
    /* Called when nothing was granted, or the grant is over.  settled: the answer was lost. */
    void (*refused)(lease *l, const lease_asking *a, int settled);
    int shares; /* steps of one name may share a statement (group.c) */

    const char *noun;
    const char *lost_at_release, *lost_at_change;
} lease_kind;

/* -- lease.c: makes and frees handles and holds, and tells what they know by themselves -- */

tl_status lease_check_names(const char *const *names, size_t count);
tl_status lease_check_terms(int64_t lease_ms, int64_t max_hold_ms, const char *remark,
                            const char *actor);
tl_status lease_check_ms(int64_t lease_ms);

/* Fills a handle of zeroes; lease_clear() also after a failure. */
tl_status lease_init(lease *l, const lock_method *method, tl_client *client,
                     const char *const *names, size_t count);
/* Keeps what the checks allowed. */
void lease_set_terms(lease *l, int64_t lease_ms, int64_t max_hold_ms, const char *remark,
                     const char *actor);
/* Frees what lease_init() made; unlocks what is held. */
void lease_clear(lease *l);

/* Points the handle to a hold, which gets one handle more, and the one before one fewer. */
void lease_use_hold(lease *l, hold *h);
/* Before an ask: a hold that other handles share is left to them. */
tl_status lease_own_hold(lease *l);

/* A number of the calling thread that no other thread of the process ever has. */
uint64_t lease_thread(void);
/* TL_OK: it is held, for all that the handle knows, and by this thread if threads are told
 * apart. */
tl_status lease_check_held(const lease *l);
int lease_is_held(const lease *l);
int64_t lease_remaining_ms(const lease *l);

/* Fills what every step has, after handle_begin(). */
void lease_fill_step(const lease *l, lease_step *s);
/* What a committed step left on the row of its first name. */
void lease_mark(const lease_kind *kind, const lease_step *s, const uint8_t *token, commit_mark *to);

/* -- ask.c -- */

/* Begins an ask: fills the step and the offer of zeroes. */
void lease_begin_ask(lease *l, lease_asking *a);
/* TL_GRANTED; TL_BUSY: somebody has it; TL_UNKNOWN: the answer was lost; else why not. */
tl_status lease_run_ask(lease_asking *a);
/* Asks once, or until wait_ms are over. */
tl_status lease_ask(lease *l, int64_t wait_ms);
/* The answer to a whole ask.  It counts and explains a refusal. */
tl_status lease_answer(lease *l, tl_status status, int64_t wait_ms);
/* Gives back what is left of a grant that is worth nothing; other rows belong to whoever has them
 * now. */
void lease_give_back(lease *l, const lease_asking *a);

/* For the kind's tables. */
db_answer lease_read_ask(task *t, db *connection);
void lease_mark_ask(const task *t, commit_mark *to);
tl_status lease_look(lock_handle *h, void *asking, lock_offer *offer, int *mine);
tl_status lease_gone(lock_handle *h, void *asking);
tl_status lease_granted(lock_handle *h, void *asking);

/* -- held.c -- */

/* Gives one grant of the handle back.  TL_OK; TL_LOST: it was not held any more; TL_UNKNOWN: the
 * answer was lost; else why not, and it is still held. */
tl_status lease_unlock(lease *l);
/* The same of the hold as a whole, whoever watches it. */
tl_status lease_release(lease *l, int64_t budget_ms);
tl_status lease_renew(lease *l, int64_t lease_ms);
/* Sets the grant after a renewal until until_ms; doubtful: it may have happened. */
void grant_renew(lock_grant *grant, int64_t until_ms, int doubtful);
/* TL_OK: it is held, not being unlocked, and its time is not over; else why not. */
tl_status lease_check_certain(const lease *l);
/* Runs a change that does no harm if it runs twice.  Until one run is answered, the doubt says that
 * it may have happened, or still may. */
tl_status lease_change(lease *l, lease_changing *c, const char *name, doubt *left);
/* Gives up another row than that of the hold, one that ends by itself: so it is tried once. */
void lease_drop(lease *l, unsigned slot, const uint8_t *held_token);
/* In the caller's transaction: checks that the grant is certain by what the handle knows, then has
 * a statement prove for each name that it is held.  Needs: the handle is held. */
tl_status lease_prove(lease *l, struct st_mysql *connection, unsigned flags, const char *doing,
                      db_answer (*statement)(db *connection, const lease_step *s, size_t i,
                                             uint64_t *changed));

/* -- group.c -- */

/* Lets a task of one name share a statement with those of other threads. */
void lease_share(lease_work *work, const lease_step *own, int unlocks,
                 int (*take)(lease_work *work));
const batch_kind *lease_batch(const task *t);

/* -- holds.c: the holds of a client that others must find or watch -- */

/* TL_OK or TL_NO_MEMORY. */
tl_status holds_of(tl_client *client, holds **out);
void holds_lock(holds *all);
void holds_unlock(holds *all);
/* Watches the hold, and lets handles of the same thread find it.  TL_NO_MEMORY: the watching thread
 * cannot be started, and nothing is watched. */
tl_status holds_add(holds *all, hold *h);
/* Keeps the watcher away from a hold that its holder gives back; returns once the watcher is not at
 * it. */
void holds_pause(holds *all, hold *h);
void holds_resume(holds *all, hold *h);
void holds_drop(holds *all, hold *h);
/* Tells the watcher that a deadline changed. */
void holds_wake(holds *all);
/* Needs: the holds' mutex held. */
hold *holds_find(holds *all, const char *resource, uint64_t thread);

#endif
