/*
 * The circuit breakers that operators gave to channels, as this process last read them: what it
 * counted of each, and the probes that it has.
 *
 * They are read where pauses are (pauses.h).  A trade of a channel without a breaker looks into
 * memory only, and so does one of a channel that has one: outcomes are counted in memory, and told
 * to the database in the round after a beat, where there is something to tell.  While a breaker is
 * open, asks take the path of a paused channel, and the retry lane calls the channel only with the
 * probe, which one process has at a time (sql/object/channel.sql).
 *
 * A process whose own count is at the bound refuses at once, and tells in its next round.
 */
#ifndef TL_CLIENT_BREAKERS_H
#define TL_CLIENT_BREAKERS_H

#include "db/db.h"

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdatomic.h>

struct tl_client;
struct channel_breaker;

typedef struct channel_breakers {
    pthread_mutex_t mutex;
    /* Under the mutex; what is in it stays there until the end. */
    struct channel_breaker *list;
    int fails; /* the last look failed, which was said */
    /* Atomic: whether there are any. */
    atomic_int any;
} channel_breakers;

/* The probes that one hold has: of the channel as a whole, and of its operation.  All 0: none. */
#define BREAKERS_OF_ONE 2
typedef struct breaker_probe {
    struct channel_breaker *of[BREAKERS_OF_ONE];
    uint64_t number[BREAKERS_OF_ONE];
} breaker_probe;

/* What a call of the channel came to. */
typedef enum breaker_heard { BREAKER_NOTHING, BREAKER_UNKNOWN, BREAKER_ANSWER } breaker_heard;

void breakers_init(channel_breakers *all);
void breakers_end(channel_breakers *all);

/* As pauses_look(). */
tl_status breakers_look(struct tl_client *client, db *connection);
/* After a beat, and before the session ends: tells what was counted. */
void breakers_keep(struct tl_client *client);

/* TL_OK, or TL_OVERLOADED with a sentence: a breaker of this channel (NULL: of any) is open for the
 * operation.  *again_ms (or NULL): about when it is worth another try. */
tl_status breakers_check(struct tl_client *client, const char *channel, const char *op_code,
                         int64_t *again_ms);
/* Whether a breaker is open, and a probe may be free now, for an ask or for the retry lane.  Most
 * turns are the lane's; at the other's turn, each may only where the probe has been free for so
 * long that the other one has nothing to probe with. */
int breakers_may_probe(struct tl_client *client, const char *channel, const char *op_code,
                       int is_ask);

/*
 * Lets the channel be called for hold_ms at most, from now on, although a breaker may be open.
 * What the probe has already goes on.  heard: what this hold's last call came to, for a probe that
 * it had and has not any more.
 *
 *     TL_OK           No breaker is open, or it has the probe of each, until breakers_release().
 *     TL_OVERLOADED   Not now, and it has none; *again_ms as above.
 *     other           The database could not be asked, and it has none.
 */
tl_status breakers_probe(struct tl_client *client, const char *channel, const char *op_code,
                         int64_t hold_ms, breaker_heard heard, breaker_probe *probe,
                         int64_t *again_ms);
/* The probe is over, and came to this.  Nothing if it has none. */
void breakers_release(struct tl_client *client, breaker_probe *probe, breaker_heard heard);

/* Counts what a send came to that was no probe. */
void breakers_count(struct tl_client *client, const char *channel, const char *op_code,
                    breaker_heard heard);

/* For metrics: each breaker, with each() under the mutex. */
void breakers_each(struct tl_client *client,
                   void (*each)(void *context, const char *channel, const char *op_code,
                                int is_open),
                   void *context);

#endif
