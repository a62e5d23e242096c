/* The client's parts, for the rooms of the locks and of the operators. */
#ifndef TL_CLIENT_CLIENT_H
#define TL_CLIENT_CLIENT_H

#include "base/config.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/trouble.h"
#include "client/clock_watch.h"
#include "client/due_mark.h"
#include "client/contracts.h"
#include "client/gate.h"
#include "client/restored.h"
#include "client/shared_read.h"
#include "client/waiters.h"
#include "janitor/janitor.h"
#include "pool/pool.h"
#include "session/session.h"
#include "transition/step_task.h"

#include <tradelock/lane.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct client_counters {
    atomic_uint_fast64_t asks, grants, refusals, finishes, lost, unknown;
    atomic_uint_fast64_t opened, claimed, armed, parked, broken;
    /* By the status that refused an ask, and the one that an ending left its trade in. */
    atomic_uint_fast64_t refused_as[TL_STATUS_LAST_], ended_as[TL_STATUS_LAST_];
    histogram asks_took, endings_took; /* of trades */
} client_counters;

/* What the asynchronous calls keep for a client, made on first use (core/async). */
struct async;

/* What a lock's room keeps for a client.  The room makes it on first use; it is freed with the
 * client, when every handle is freed. */
typedef struct client_part {
    void (*free)(struct client_part *part);
    void (*round)(struct client_part *part); /* after each beat; or NULL */
} client_part;

/* What is done after beats, and is awaited by nobody. */
enum client_work {
    WORK_ACCEPTED, /* is this server the accepted one? */
    WORK_KEPT,     /* does it wait for its replica? */
    WORK_RECEIPTS,
    WORK_BREAKERS,
    WORK_CLOCK,
    WORK_SEARCH, /* for a clock that was set back */
    WORK_ADJUST, /* to one that was set */
    WORK_JANITOR,
    WORK_BLANKING,
    TROUBLES
};

struct tl_client {
    /* Fixed after start. */
    unsigned generation, flags;
    struct config config;
    const char *shard; /* in the config, or NULL */
    tl_policy policy;
    struct logger logger;
    char actor[64]; /* "program pid@host", for what the janitor does */
    pool *connections;
    task_engine *engine;
    session *session;
    /* Of the thread that follows the beats. */
    janitor_cursor cursor;
    unsigned rounds;
    int64_t next_round_ms; /* boot time: no earlier is the janitor's next one, while it hurries */
    trouble troubles[TROUBLES];
    waiters *waiting;
    shared_reads *reads;
    pthread_mutex_t async_mutex;
    struct async *async; /* under async_mutex until made */
    void (*async_free)(struct async *);
    /* Atomic. */
    client_counters counters;
    _Atomic(struct tl_calls *) calls; /* calls.h */
    /* How often a trade may have been left in process that no handle knows of.  Handles are counted
     * by their session's life. */
    atomic_uint_fast64_t untracked;
    /* Under the mutex: claims of due work that are in doubt. */
    pthread_mutex_t claims_mutex;
    struct tl_lock *claims[TL_CLAIM_MAX];
    size_t claim_count;
    due_marks due_marks; /* under its own mutex */
    _Atomic(client_part *) holds;
    /* Freed when no connection is left: connections know statements of theirs. */
    _Atomic(client_part *) books;
    clock_watch clock;
    channel_gates gates;        /* under its own mutex */
    client_contracts contracts; /* likewise */
    /* The memory stays until the last handle is freed, so that calls with a handle are answered
     * after the client was closed. */
    atomic_uint refs;
    atomic_uint
        attached; /* registries, mutexes, read-write locks: they are freed before it is closed */
    atomic_int closed;
    atomic_int_fast64_t accepted_us;
    restored_servers servers; /* under its own mutex */
};

/* TL_OK; TL_WRONG_PROCESS: in the child of a fork; TL_WRONG_STATE: the client was closed;
 * TL_INVALID: it is NULL. */
tl_status client_check(const tl_client *client);

/* client_keep() keeps the client's memory until client_release(), and returns the client. */
tl_client *client_keep(tl_client *client);
void client_release(tl_client *client);

/* As client_check(), and also checks that locks may be asked for now: the session certainly lives,
 * and this thread is in no database callback. */
tl_status client_check_asking(const tl_client *client);

/* Takes over a claim in doubt, for the next call that claims.  0: there is no room, and it is not
 * taken. */
int client_keep_claim(tl_client *client, struct tl_lock *lock);
/* Gives all claims in doubt to the caller; returns how many. */
size_t client_take_claims(tl_client *client, struct tl_lock *claims[TL_CLAIM_MAX]);

/* How such work ended; the thread's error sentence says why it failed.  Called by the thread that does
 * the work: of the breakers, with the mutex of the gates held. */
void client_note(tl_client *client, enum client_work work, tl_status status);

static inline void client_add(atomic_uint_fast64_t *counter, uint64_t number)
{
    atomic_fetch_add_explicit(counter, number, memory_order_relaxed);
}

/* Notes that a trade may be in process under this session that no handle knows of; the session's
 * end then does not count as the end of all its trades. */
static inline void client_lose_track(struct tl_client *client)
{
    atomic_fetch_add(&client->untracked, 1);
}

#endif
