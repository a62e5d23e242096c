/*
 * Whether the server's clock runs steadily, as this process sees it.
 *
 * Rows carry moments of that clock: until when a send may be under way, since when the channel
 * knows nothing, until when a key may be sent.  When the clock is set, which is a clock jump, these
 * moments are wrong.  So the round that follows a beat compares the server's clock with
 * CLOCK_BOOTTIME, and whoever sees a jump records it.  Nothing is claimed or armed until janitors
 * have adjusted all rows (tl_clock_settle() of the schema).
 *
 * A claim made between the jump and its record shows by the server's moment that came with it.  An
 * arming carries the moments between which the server's clock must be.
 *
 * Several processes see the same jump.  One of them records it; the others learn the clock anew.  A
 * process that was stopped together with its own clock sees a jump that did not happen.  Then the
 * trades in process are looked through once, and nothing else is lost.
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
    /* Held during a look, search or adjustment, statements included.  Else the result of an earlier
     * look could hide a jump that a later search has recorded. */
    pthread_mutex_t turn;
    int opens_later; /* under turn: the first look is yet to come, at a server that takes writes */
    pthread_mutex_t mutex;
    char boot_id[RANDOM_UUID]; /* fixed; "" if the kernel does not say */
    /* Under the mutex. */
    steady steady;
    uint32_t jumps;   /* on record when the clock was last believed */
    unsigned trial;   /* how many more looks until a new process believes the clock */
    int64_t doubt_us; /* how far it was off at a claim that was made since the last look */
    /* Atomic. */
    atomic_int unclear;
} clock_watch;

void clock_watch_init(clock_watch *self);
void clock_watch_end(clock_watch *self);

/* The first look of a process, before anything is claimed.  It compares the clock with what the
 * last process of this boot left in its session's row. */
tl_status clock_watch_open(struct tl_client *client);
/* One look. */
tl_status clock_watch_look(struct tl_client *client);
/* Looks for rows that were written while the clock was set forward and back between two looks. Some
 * rounds do this. */
tl_status clock_watch_search(struct tl_client *client);
/* Adjusts rows after jumps.  TL_OK: all are adjusted; TL_TRY_AGAIN: the time is over, or another
 * process adjusts them. */
tl_status clock_watch_adjust(struct tl_client *client, int64_t budget_ms);

/* Whether decisions may rest on the server's clock, and on the moments in the rows. */
int clock_watch_is_clear(const struct tl_client *client);
/* TL_OK; TL_TRY_AGAIN with a sentence while nothing may rest on the server's clock. */
tl_status clock_watch_check(const struct tl_client *client);
/* The answer of clock_watch_check() while the clock is unclear, with its sentence; never TL_OK. */
tl_status clock_watch_unclear(void);

/* Whether the view's moments are possible.  The server told now_us after before_us of
 * CLOCK_BOOTTIME, so now_us must fit its clock; and no other moment may be too far ahead.  If they
 * are not possible, the clock counts as unclear until the next look. */
int clock_watch_fits(struct tl_client *client, const tl_view *view, int64_t before_us);
/* Whether the clock was set back: the server told this moment after before_us, and it is earlier
 * than its clock can be.  If so, the clock counts as unclear until the next look. */
int clock_watch_was_back(struct tl_client *client, int64_t server_us, int64_t before_us);

/* How many jumps were on record when this process last believed the clock. */
uint32_t clock_watch_jumps(struct tl_client *client);

/* Fills what the session's row tells of the clock. */
void clock_watch_keep(void *client, struct store_session_clock *kept);

/* The latest moment that it can be by a server's clock that was not set: what may be over only by a
 * later one is not over.  0: the clock is not trusted, and nothing is. */
int64_t clock_watch_latest_us(struct tl_client *client);

/* The moments between which the server's clock is now; before the first look they exclude
 * nothing. */
void clock_watch_now(struct tl_client *client, int64_t *least_us, int64_t *most_us);

#endif
