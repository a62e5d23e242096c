/*
 * Which channels operators have paused, or that they drain the installation, which is a pause of
 * TL_CHANNEL_ALL, as this process last read it.  A process reads that when
 * its client opens, before each of its sessions begins, and in the round after each beat.  If it
 * cannot read, what it read last holds.  So a trade looks into memory only.
 *
 * Asks for a trade of a paused channel write nothing (trade_lock/ask.c), no send is armed
 * (trade_lock/arm.c), and workers claim nothing (workflows/worker.c).  During a drain nothing is
 * claimed at all (trade_lock/claim.c, claim_due.c), and a trade that names no channel is not
 * granted either.
 *
 * An ask that looked at the pauses before a drain was read may be under way for long: its callback
 * runs, its group's commit is late, its answer is lost.  Nobody else sees a row of it.  So each ask
 * and each claim is counted from before it looks until its row tells; and a process obeys a drain
 * once it has read it and the count was 0.  Who looks later is refused.  Its heartbeat says so, and
 * `tradelock drain` waits for that word of every session.
 */
#ifndef TL_CLIENT_PAUSES_H
#define TL_CLIENT_PAUSES_H

#include "db/db.h"

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdatomic.h>

struct tl_client;
struct pause;

typedef struct channel_pauses {
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct pause *list;
    size_t count;
    int fails;          /* the last look failed, which was said */
    int64_t drained_ms; /* boot time, when the drain was first read; 0: none is on record */
    int64_t obeyed_us;  /* the drain that was decided then is obeyed; 0: none is */
    /* Atomic: whether there are any; whether this shard is a copy of another one; how many asks and
     * claims are under way. */
    atomic_int any, is_copy;
    atomic_uint under_way;
} channel_pauses;

void pauses_init(channel_pauses *all);
void pauses_end(channel_pauses *all);

/* Before a session begins.  Looks on a connection that nobody else uses now.  TL_OK: what was read
 * holds.  Else the last look does, and the log says once why. */
tl_status pauses_look(struct tl_client *client, db *connection);
/* The same after a beat, on a connection of the pool; a drain gives notice. */
tl_status pauses_look_again(struct tl_client *client);

/* TL_OK, or TL_OVERLOADED with a sentence: this channel (NULL: any; "": none is named) is paused
 * for the operation, or the installation drains.  TL_BAD_CONFIG: another shard is a copy. */
tl_status pauses_check(struct tl_client *client, const char *channel, const char *op_code);
/* The same, and with TL_OK an ask is counted as under way, until pauses_leave(). */
tl_status pauses_enter(struct tl_client *client, const char *channel, const char *op_code);
/* Whether another shard of the fleet leads to the same database, or to a copy of it: then nothing
 * begins here (fleet/keeper.c). */
void pauses_set_copy(struct tl_client *client, int is_copy);
/* One more, of which it is not asked whether it may begin: an earlier one left it in doubt. */
void pauses_stay(struct tl_client *client);
void pauses_leave(struct tl_client *client);
/* The moment of the decision to drain that is obeyed; 0: none, or not yet. */
int64_t pauses_obeyed(struct tl_client *client);
/* Whether the installation drains, or will in a moment. */
int pauses_drains(struct tl_client *client);
/* Whether a drain was read that this process has known for less than PAUSES_HURRY_MS: servers may
 * be about to change places, and all payments wait for it. */
#define PAUSES_HURRY_MS (INT64_C(10) * 60 * 1000)
int pauses_just_drains(struct tl_client *client);

#endif
