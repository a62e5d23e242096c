/*
 * The life of one session, as its own process knows it: how long it is certain, and whether it is
 * over for good.
 *
 * A process whose session was ended goes on under another.  Whatever is asked for keeps the life
 * under which it was asked, so that what an old session held never looks alive because a new one
 * lives.  Only the heartbeat writes it; anybody reads it, without a lock, until the client is
 * closed.
 */
#ifndef TL_BASE_LIFE_H
#define TL_BASE_LIFE_H

#include "base/random.h"

#include <tradelock/tradelock.h>

#include <stdatomic.h>

typedef struct life {
    /* Fixed once others can see it. */
    char session_id[RANDOM_UUID];
    struct life *before; /* the process' last one, or NULL */
    /* Atomic. */
    atomic_int_fast64_t certain_until_ms; /* boot time */
    atomic_int over;
    /* Handles by which a trade may be in process under it, those that were freed so included. */
    atomic_uint_fast64_t may_hold;
} life;

/* For the heartbeat.  A life is certain for longer with each confirmed beat, until it is over, once
 * and for good. */
void life_confirm(life *l, int64_t until_ms);
void life_end(life *l);

/* The others accept NULL: nobody's life, which was over before it began. */
const char *life_session_id(const life *l); /* "" of nobody's */
/* How long it is certain; 0 when it is over. */
int64_t life_left_ms(const life *l);
int life_is_over(const life *l);

/* Whether something may be asked for under it now: TL_OK, TL_SESSION_LOST, TL_UNREACHABLE. */
tl_status life_check(const life *l);

#endif
