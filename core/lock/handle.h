/*
 * What every kind of lock has: a handle with its state, the grant that it holds, and a table that
 * says how this kind differs from the others.
 *
 * A kind of lock embeds a lock_handle as the first member of its own handle, fills a lock_method
 * with its statements and sentences, and leaves to this room: which states follow each other, what
 * is certain of a grant without a round trip, a grant whose answer came too late, answers that were
 * lost, waiting and waking, counting and logging.  Locks of named resources go on in resource.h.
 */
#ifndef TL_LOCK_HANDLE_H
#define TL_LOCK_HANDLE_H

#include "client/client.h"

#include <tradelock/resource.h>

#define LOCK_TOKEN RANDOM_TOKEN
/* Of a key of this process's waiters, with the end. */
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

/* What was granted: of one handle, or shared by several. */
typedef struct lock_grant {
    /* What it locks, in the order in which it is asked for and waited for. */
    const char *const *names;
    size_t count;
    uint8_t token[LOCK_TOKEN]; /* the last one written */
    uint64_t fence;            /* of the first name */
    const life *life;          /* of the session under which it was granted */
    int by_session;            /* it is over, too, when that session is */
    /* Boot time, from before the request was sent: when it is over, and until when it can be
     * renewed at most. */
    int64_t until_ms, hold_until_ms;
    doubt renewing;  /* whether the answer to a renewal was lost */
    atomic_int lost; /* seen by one who watches it */
} lock_grant;

typedef struct lock_method lock_method;

typedef struct lock_handle {
    /* Fixed after it is made. */
    const lock_method *method;
    tl_client *client;

    lock_state state;
    /* Under which it asked last, and holds; NULL before.  A process that goes on under another
     * session has lost what it holds. */
    life *life;
    lock_grant *grant; /* its own, or one that it shares */
    size_t refused;    /* which of the names was in the way */

    /* A step under way, or one whose answer was lost. */
    uint8_t next_token[LOCK_TOKEN];
    doubt doubt; /* whether it was carried out, if its answer was lost */
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT];
} lock_handle;

/* What an ask was granted, as its answer tells. */
typedef struct lock_offer {
    int unread; /* the answer does not tell it; the row does */
    uint64_t fence;
    int by_session;
    int64_t before_ms;             /* boot time, before the request was sent */
    int64_t left_ms, hold_left_ms; /* counted from then */
} lock_offer;

/* A kind of lock.  `asking` is the kind's own, of the ask under way. */
struct lock_method {
    /* Keeps its keys apart from those of other kinds among this process's waiters: no name begins
     * with a blank. */
    const char *wait_prefix;
    /* When a session ends, its rows are searched for: its handles are counted. */
    int is_swept;

    /* Sentences: of a call on a lock that was lost; of a call before an ask in doubt is settled,
     * NULL where such a lock counts as not granted. */
    const char *lost, *ask_unknown;

    /* TL_OK, or TL_ASK_CHANNEL where nothing may be granted on a server that was restored. */
    tl_status (*check_restored)(const lock_handle *h);

    /* The late check: reads whether the row still carries the handle's next token, and is worth
     * something.  It may tell more of the offer. */
    tl_status (*look)(lock_handle *h, void *asking, lock_offer *offer, int *mine);
    /* It does not: gives back what is left of it; the answer to the ask. */
    tl_status (*gone)(lock_handle *h, void *asking);
    /* It is held now: the kind's own part of the grant, and the line in the log.  TL_GRANTED, or
     * why it was given back. */
    tl_status (*granted)(lock_handle *h, void *asking);
    /* The ask is in doubt: what must be kept until it is settled.  May be NULL. */
    void (*in_doubt)(lock_handle *h, const void *asking);
    /* Logs a refusal, or finds the sentence for it; the answer to the ask. */
    tl_status (*explain)(lock_handle *h, tl_status status);

    /* Of a resource's lock (resource.h). */
    const struct resource_method *resource;
};

/* -- handle.c -- */

void handle_init(lock_handle *h, const lock_method *method, tl_client *client, lock_grant *grant);

/* The only place where a state changes; it asserts that this one may follow. */
void handle_become(lock_handle *h, lock_state state);
/* Nobody was told of what it holds, or may hold: it is as good as new. */
void handle_forget(lock_handle *h);
/* Before a step: under which life, thread and log UUID it is made, and with which token.  Without a
 * fresh one it is the last step again, whose answer was lost. */
void handle_begin(lock_handle *h, int fresh_token);

/* TL_OK when it holds its lock, as far as it knows; else what a call on a held lock answers. */
tl_status handle_check_held(const lock_handle *h);
/* Whether it may ask now. */
tl_status handle_check_asking(const lock_handle *h);
tl_status handle_check_wait(int64_t wait_ms);

/* What is certain of a grant, without a round trip. */
int64_t grant_left_ms(const lock_grant *grant);

/* The answer to a step was lost, and could not be settled. */
void handle_unknown(lock_handle *h, lock_state state, const doubt *left);

/* -- grant.c -- */

/* An ask was granted.  While that is certain it counts at once; where the answer came too late,
 * this process having been stopped perhaps, the row is asked.  TL_GRANTED; TL_UNKNOWN, with
 * ASK_UNKNOWN, when the row could not be read; or what gone() says. */
tl_status lock_take(lock_handle *h, void *asking, lock_offer *offer);
/* Counts a refusal, and says why; the answer to the ask. */
tl_status lock_refused(lock_handle *h, tl_status status);

/* -- wait.c -- */

/* Asks once. */
typedef tl_status (*lock_ask_fn)(void *context);
/* Asks until the answer is not one that may pass, or the wait is over: one waiter of a key asks,
 * with a growing, jittered pause; the others of this process wait for it.  TL_TIMEOUT: its turn
 * never came. */
tl_status lock_wait(lock_handle *h, int64_t wait_ms, lock_ask_fn ask, void *context);
/* What the handle held was given back: whoever waits for it in this process asks at once. */
void lock_wake(const lock_handle *h);

#endif
