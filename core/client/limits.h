/*
 * How much operators let through each channel, as this process last read it, and its share of that:
 * permits to send at a time, and moments at which a send may begin.
 *
 * The limits are read where pauses are (pauses.h).  A trade of a channel without limits looks into
 * memory only.  The share of a limited one is taken from the database in blocks, which all threads
 * use, so that most sends cost no statement either.  A round after a beat gives back what is idle,
 * and what is too much where other processes go short.  A session's permits are free again when it
 * has ended and its longest hold is over (sql/object/channel.sql).
 *
 * Who waits holds no connection, and a permit of the same send at most.
 */
#ifndef TL_CLIENT_LIMITS_H
#define TL_CLIENT_LIMITS_H

#include "base/life.h"
#include "db/db.h"

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdatomic.h>

struct tl_client;
struct channel_limit;

typedef struct channel_limits {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Atomic.  It grows at its front, under the mutex; what is in it stays there until the end. */
    _Atomic(struct channel_limit *) list;
    int fails; /* the last look failed, which was said */
    /* Atomic: whether there are any. */
    atomic_int any;
} channel_limits;

/* What one send holds: of the channel as a whole, and of its operation.  All 0: nothing. */
#define LIMITS_OF_ONE 2
typedef struct limit_permit {
    struct channel_limit *of[LIMITS_OF_ONE];
    unsigned era[LIMITS_OF_ONE];
} limit_permit;

void limits_init(channel_limits *all);
/* here: in the process that made it, not in a child after fork. */
void limits_end(channel_limits *all, int here);

/* As pauses_look(). */
tl_status limits_look(struct tl_client *client, db *connection);
/* After a beat: gives back what is idle. */
void limits_keep(struct tl_client *client);
/* Before the session ends: gives back all that is not used. */
void limits_leave(struct tl_client *client);

/*
 * Lets one send begin, under this life and for max_hold_ms at most; waits for it as long as
 * wait_ms.  What the permit has already is not taken again.
 *
 *     TL_OK           It may begin now, until limits_release().
 *     TL_OVERLOADED   Not now, and the permit holds nothing; *again_ms: about when it is worth
 *                     another try.
 *     other           The database could not be asked, and the permit holds nothing.
 */
typedef struct limit_ask {
    const char *channel, *op_code;
    const life *life;
    int64_t max_hold_ms, wait_ms;
    int is_retry; /* of a compensating attempt */
} limit_ask;
tl_status limits_take(struct tl_client *client, const limit_ask *ask, limit_permit *permit,
                      int64_t *again_ms);
/* The send is over, or did not begin.  Nothing if the permit holds nothing. */
void limits_release(struct tl_client *client, limit_permit *permit);

/* What this process did under a limit, since it first read it; waits for nobody. */
typedef enum limits_number { LIMITS_BY_SENDS, LIMITS_BY_RATE, LIMITS_NUMBERS } limits_number;
#define LIMITS_LANES 2 /* asks; compensating attempts */
typedef struct limit_counts {
    const char *channel, *op_code;
    uint64_t used; /* sends under way */
    uint64_t refused[LIMITS_LANES][LIMITS_NUMBERS];
} limit_counts;
/* The next one, the first after NULL; NULL: there is no more. */
const struct channel_limit *limits_next(const channel_limits *all,
                                        const struct channel_limit *after, limit_counts *counts);

#endif
