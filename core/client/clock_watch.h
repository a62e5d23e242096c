/*
 * Whether the server's clock runs steadily, as this process sees it.
 *
 * Rows carry moments of that clock: until when a send may be under way, since when the channel
 * knows nothing, until when a key may be sent.  A clock that is set makes them say what is not so.
 * So the round that follows a beat compares it with CLOCK_BOOTTIME.  Who sees a step records it;
 * until janitors have gone over all rows (tl_clock_settle() of the schema) nothing is claimed and
 * nothing armed.  What was claimed between the step and its record is told by the moment that came
 * with the claim, and an arming by the moments between which the clock must be.
 *
 * Several processes see one step.  One of them records it, the others believe the clock
 * anew.  A process that was stopped together with its own clock takes the server's for one
 * that was set: then the trades in process are looked through for nothing.
 */
#ifndef TL_CLIENT_CLOCK_WATCH_H
#define TL_CLIENT_CLOCK_WATCH_H

#include "base/random.h"
#include "base/steady.h"

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdatomic.h>

struct tl_client;
struct store_session_clock;

typedef struct clock_watch {
    pthread_mutex_t mutex;
    char boot_id[RANDOM_UUID]; /* fixed; "" where it is not known */
    /* Under the mutex. */
    steady steady;
    uint32_t steps;   /* on record when it was believed */
    unsigned trial;   /* looks until a new process believes what it saw */
    int64_t doubt_us; /* so far it was off when something was claimed since */
    /* Atomic. */
    atomic_int unclear;
} clock_watch;

void clock_watch_init(clock_watch *self);
void clock_watch_end(clock_watch *self);

/* The first look of a process, before anything is claimed.  It is compared with what the last
 * process of this boot left with its session. */
tl_status clock_watch_open(struct tl_client *client);
/* One look. */
tl_status clock_watch_look(struct tl_client *client);
/* Looks for rows that were written while the clock was set forward and back between two
 * looks.  For the janitor, every so often. */
tl_status clock_watch_search(struct tl_client *client);
/* Goes on with what is not settled; TL_OK when nothing is left, TL_TRY_AGAIN when the time is over
 * or another process is at it. */
tl_status clock_watch_settle(struct tl_client *client, int64_t budget_ms);

/* TL_OK; TL_TRY_AGAIN with a sentence while nothing may rest on the server's clock. */
tl_status clock_watch_check(const struct tl_client *client);

/* Whether the moment of the view, which the server told after that one of CLOCK_BOOTTIME, is where
 * its clock must be, and no other moment of it is one that cannot be; if not, nothing rests on them
 * until the next look. */
int clock_watch_fits(struct tl_client *client, const tl_view *view, int64_t before_us);

/* How many steps were on record when this process last believed the clock. */
uint32_t clock_watch_steps(struct tl_client *client);

/* What the session's row is to tell of it. */
void clock_watch_keep(void *client, struct store_session_clock *kept);

/* Between which moments the server's clock is now; without a look all will do. */
void clock_watch_now(struct tl_client *client, int64_t *least_us, int64_t *most_us);

#endif
