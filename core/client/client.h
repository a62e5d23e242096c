/* What a client is made of, for the rooms of the locks and the operators. */
#ifndef TL_CLIENT_CLIENT_H
#define TL_CLIENT_CLIENT_H

#include "base/config.h"
#include "base/log.h"
#include "client/clock_watch.h"
#include "client/restored.h"
#include "client/shared_read.h"
#include "client/waiters.h"
#include "janitor/janitor.h"
#include "pool/pool.h"
#include "session/session.h"
#include "transition/step_task.h"

#include <tradelock/lane.h>

#include <pthread.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct client_counters {
    atomic_uint_fast64_t asks, grants, refusals, finishes, lost, unknown;
    atomic_uint_fast64_t opened, claimed, armed, parked;
} client_counters;

/* The asynchronous calls' part of a client, made on first use (core/async). */
struct async;

/* What the room of a lock keeps for a client: made by the room when it is first needed, freed with
 * the client, by which time every handle is freed. */
typedef struct client_part {
    void (*free)(struct client_part *part);
} client_part;

struct tl_client {
    /* Fixed after start. */
    unsigned generation, flags;
    struct config config;
    tl_policy policy;
    struct logger logger;
    char actor[64]; /* "program pid@host", for what the janitor does */
    pool *connections;
    transition_engine *transitions;
    session *session;
    /* Of the thread that follows the beats. */
    janitor_cursor cursor;
    unsigned rounds;
    waiters *waiting;
    shared_reads *reads;
    pthread_mutex_t async_mutex;
    struct async *async; /* under async_mutex until made */
    void (*async_free)(struct async *);
    /* Atomic. */
    client_counters counters;
    /* Occasions after which a trade may be in process that no handle knows of; a handle is counted
     * by its session's life. */
    atomic_uint_fast64_t untracked;
    /* Under the mutex: claims of due work whose fate is not known yet. */
    pthread_mutex_t claims_mutex;
    struct tl_lock *claims[TL_CLAIM_MAX];
    size_t claim_count;
    _Atomic(client_part *) leases;
    atomic_int restored; /* restored.h */
    clock_watch clock;
    /* Its memory stays until the last handle is freed, so that a call with one is answered after
     * the client was closed, too. */
    atomic_uint refs;
    atomic_uint attached; /* registries, mutexes, read-write locks: it is not closed before them */
    atomic_int closed;
    atomic_int_fast64_t accepted_us;
    restored_witness witness; /* under its own mutex */
};

/* TL_OK, TL_WRONG_PROCESS in a child after fork, TL_WRONG_STATE when it was closed, TL_INVALID for
 * NULL. */
tl_status client_check(const tl_client *client);

/* Keeps the memory; gives the client back.  And lets go of it. */
tl_client *client_keep(tl_client *client);
void client_release(tl_client *client);

/* As call_out.left: a callback was left that had this connection, which is closed. */
void client_callback_left(void *client, void *connection);

/* client_check(), and that locks may be asked for now: a session that certainly lives, and no
 * database callback on this thread. */
tl_status client_check_asking(const tl_client *client);

/* Keeps a claim for the next look, and owns it until then; 0: there is no room. */
int client_keep_claim(tl_client *client, struct tl_lock *lock);
/* Gives all of them to the caller; how many. */
size_t client_take_claims(tl_client *client, struct tl_lock *claims[TL_CLAIM_MAX]);

static inline void client_add(atomic_uint_fast64_t *counter, uint64_t number)
{
    atomic_fetch_add_explicit(counter, number, memory_order_relaxed);
}

/* A trade may be in process under this session, and no handle tells: its end will not be taken for
 * the end of all its trades. */
static inline void client_lose_track(struct tl_client *client)
{
    atomic_fetch_add(&client->untracked, 1);
}

#endif
