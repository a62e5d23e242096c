/*
 * What every kind of lock has: a handle with its state, the grant that it holds, and a table that
 * says how this kind differs from the others.
 *
 * A kind of lock embeds a lock_handle as the first member of its own handle, and fills a
 * lock_method with its statements and sentences.  This room does the rest: it checks which states
 * follow each other, tells what is certain of a grant without a round trip, reads a grant whose
 * answer came too late, settles lost answers, waits and wakes, counts and logs.
 */
#ifndef TL_LOCK_HANDLE_H
#define TL_LOCK_HANDLE_H

#include "client/client.h"

#include <tradelock/resource.h>

#define LOCK_TOKEN RANDOM_TOKEN
/* The size of a key of this process's waiters, with the final NUL. */
#define LOCK_WAIT_KEY (TL_SERIAL_MAX + TL_CUST_MAX + TL_OP_MAX + 3)
#define LOCK_WAIT_MAX_MS TL_HOLD_MAX_MS

/*
 *   NEW ----ask----> HELD ----end----> OVER
 *    |  ^             |  \
 *    |  | refused     |   part of the caller's transaction --> IN_CALLER --committed--> OVER
 *    |  |             |                                           \ rolled back --> HELD
 *    v  |             v
 *   ASK_UNKNOWN     END_UNKNOWN            any compare-and-set of 0 rows --> LOST
 *
 *   HELD --arm--> HELD, or ARM_UNKNOWN, which the next call on the handle settles
 *   LOST, OVER --ask--> NEW, where a handle may be used again
 */
typedef enum lock_state {
    LOCK_NEW,
    LOCK_ASK_UNKNOWN,
    LOCK_HELD,
    LOCK_IN_CALLER,
    LOCK_END_UNKNOWN,
    LOCK_ARM_UNKNOWN,
    LOCK_LOST,
    LOCK_OVER
} lock_state;

/* What was granted, to one handle or to several that share it. */
typedef struct lock_grant {
    /* What it locks, in the order in which it is asked for and waited for. */
    const char *const *names;
    size_t count;
    uint8_t token[LOCK_TOKEN]; /* the last one written */
    uint64_t fence;            /* of the first name */
    const life *life;          /* of the session under which it was granted */
    int by_session;            /* it is also over when that session is */
    /* Boot time, counted from before the request was sent: when the grant is over, and until when
     * it can be renewed at most. */
    int64_t until_ms, hold_until_ms;
    doubt renewing;  /* open while a renewal's answer is lost */
    atomic_int lost; /* a watcher saw that it is lost */
} lock_grant;

typedef struct lock_method lock_method;

typedef struct lock_handle {
    /* Fixed after it is made. */
    const lock_method *method;
    tl_client *client;

    lock_state state;
    /* The life under which it asked last, and holds; NULL before.  If the process goes on under
     * another session, the handle has lost what it holds. */
    life *life;
    lock_grant *grant; /* its own, or a shared one */
    size_t refused;    /* the index of the name that was in the way */

    /* The step that is under way, or whose answer was lost. */
    uint8_t next_token[LOCK_TOKEN];
    doubt doubt; /* open while its answer is lost */
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT];
} lock_handle;

/* What the answer to an ask tells of the grant. */
typedef struct lock_offer {
    int unread; /* the answer does not tell; the row must be read */
    uint64_t fence;
    int by_session;
    int64_t before_ms;             /* boot time, before the request was sent */
    int64_t left_ms, hold_left_ms; /* counted from then */
} lock_offer;

/* A kind of lock.  `asking` is the kind's own struct for the ask under way. */
struct lock_method {
    /* Keeps its keys apart from those of other kinds among this process's waiters.  It begins with
     * a blank, as no name does. */
    const char *wait_prefix;
    /* Its rows are searched for when a session ends, so its handles are counted. */
    int is_swept;

    /* The sentence for a call on a lost lock; and for a call while an ask is in doubt, NULL if such
     * a lock counts as not granted. */
    const char *lost, *ask_unknown;

    /* The late check: reads whether the row still carries the handle's next token and is worth
     * something (*mine).  It may fill in the offer. */
    tl_status (*look)(lock_handle *h, void *asking, lock_offer *offer, int *mine);
    /* Called if it does not: gives back what is left of the grant, and returns the answer to the
     * ask. */
    tl_status (*gone)(lock_handle *h, void *asking);
    /* Called when it is held: fills the kind's own members of the grant and writes the log line.
     * TL_GRANTED, or why it was given back. */
    tl_status (*granted)(lock_handle *h, void *asking);
    /* Called when the ask is in doubt: keeps what settling it will need.  May be NULL. */
    void (*in_doubt)(lock_handle *h, const void *asking);
    /* Logs a refusal, or finds the sentence for it; returns the answer to the ask. */
    tl_status (*explain)(lock_handle *h, tl_status status);

    /* For locks of named resources (lease/lease.h), else NULL. */
    const struct lease_kind *lease;
};

/* -- handle.c -- */

void handle_init(lock_handle *h, const lock_method *method, tl_client *client, lock_grant *grant);

/* The only function that changes the state; it asserts that the new one may follow. */
void handle_become(lock_handle *h, lock_state state);
/* Makes the handle as good as new: nobody was told of what it holds or may hold. */
void handle_forget(lock_handle *h);
/* Before a step: sets the life, thread, log UUID and token that it is made with.  Without a fresh
 * token it repeats the last step, whose answer was lost. */
void handle_begin(lock_handle *h, int fresh_token);

/* TL_OK if the handle holds its lock, as far as it knows; else the answer to a call that needs
 * it. */
tl_status handle_check_held(const lock_handle *h);
/* TL_OK: the handle may ask now; else why not. */
tl_status handle_check_asking(const lock_handle *h);
tl_status handle_check_wait(int64_t wait_ms);

/* How much longer the grant is certain, in ms.  It costs no round trip. */
int64_t grant_left_ms(const lock_grant *grant);

/* The answer to a step was lost, and could not be settled. */
void handle_unknown(lock_handle *h, lock_state state, const doubt *left);

/* -- grant.c -- */

/* Takes a grant.  It counts at once while it is certain.  If the answer came too late, perhaps
 * since this process was stopped, the row is read.  TL_GRANTED; TL_UNKNOWN, with ASK_UNKNOWN, if
 * the row could not be read; or what gone() says. */
tl_status lock_take(lock_handle *h, void *asking, lock_offer *offer);
/* Counts a refusal, and says why; returns the answer to the ask. */
tl_status lock_refused(lock_handle *h, tl_status status);

/* -- wait.c -- */

/* Asks once. */
typedef tl_status (*lock_ask_fn)(void *context);
/* Asks until the answer is final or the wait is over.  One waiter of a key asks, with growing,
 * jittered pauses; the others of this process wait for it.  TL_TIMEOUT: its turn never came. */
tl_status lock_wait(lock_handle *h, int64_t wait_ms, lock_ask_fn ask, void *context);
/* After the handle gave its lock back: the next waiter of this process asks at once. */
void lock_wake(const lock_handle *h);

#endif
