/*
 * Whether the server's clock runs steadily, as this process sees it.
 *
 * Rows carry moments of that clock: until when a send may be under way, since when the channel
 * knows nothing, until when a key may be sent.  They are wrong once the clock is set; that is a clock
 * jump.  So the round that follows a beat compares the server's clock with CLOCK_BOOTTIME, and
 * whoever sees a jump records it.  Until janitors have adjusted all rows (tl_clock_settle() of the
 * schema), nothing is claimed and nothing is armed.
 *
 * A claim made between the jump and its record shows by the server's moment that came with it.  An
 * arming carries the moments between which the server's clock must be.
 *
 * Several processes see the same jump.  One of them records it; the others learn the clock anew.  A
 * process that was stopped together with its own clock sees a jump where there was none; the trades
 * in process are then looked through for nothing.
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
    /* One look, search or adjustment of this process at a time, statements included: what an
     * earlier look read does not hide a jump that a later search has recorded. */
    pthread_mutex_t turn;
    pthread_mutex_t mutex;
    char boot_id[RANDOM_UUID]; /* fixed; "" where it is not known */
    /* Under the mutex. */
    steady steady;
    uint32_t jumps;   /* on record when the clock was last believed */
    unsigned trial;   /* so many looks more until a new process believes the clock */
    int64_t doubt_us; /* how far it was off at a claim that was made since the last look */
    /* Atomic. */
    atomic_int unclear;
} clock_watch;

void clock_watch_init(clock_watch *self);
void clock_watch_end(clock_watch *self);

/* The first look of a process, before anything is claimed.  It compares the clock with what the last
 * process of this boot left in its session's row. */
tl_status clock_watch_open(struct tl_client *client);
/* One look. */
tl_status clock_watch_look(struct tl_client *client);
/* Looks for rows that were written while the clock was set forward and back between two
 * looks.  For the janitor, every so often. */
tl_status clock_watch_search(struct tl_client *client);
/* Adjusts rows after jumps.  TL_OK: all are adjusted; TL_TRY_AGAIN: the time is over, or another
 * process adjusts them. */
tl_status clock_watch_adjust(struct tl_client *client, int64_t budget_ms);

/* TL_OK; TL_TRY_AGAIN with a sentence while nothing may rest on the server's clock. */
tl_status clock_watch_check(const struct tl_client *client);
/* That answer, for whoever knows by itself that nothing may: never TL_OK. */
tl_status clock_watch_unclear(void);

/* Whether the view's moments are possible: now_us, which the server told after before_us of
 * CLOCK_BOOTTIME, is where its clock must be, and none of the others is too far ahead.  If not,
 * nothing rests on the clock until the next look. */
int clock_watch_fits(struct tl_client *client, const tl_view *view, int64_t before_us);
/* Whether this moment, which the server told after before_us, lies before where its clock must be:
 * it was set back meanwhile.  If so, nothing rests on the clock until the next look. */
int clock_watch_was_back(struct tl_client *client, int64_t server_us, int64_t before_us);

/* How many jumps were on record when this process last believed the clock. */
uint32_t clock_watch_steps(struct tl_client *client);

/* What the session's row is to tell of the clock. */
void clock_watch_keep(void *client, struct store_session_clock *kept);

/* Between which moments the server's clock is now; before the first look, any moment. */
void clock_watch_now(struct tl_client *client, int64_t *least_us, int64_t *most_us);

#endif
