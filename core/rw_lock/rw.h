/* A read-write lock's handle, as the files of this room share it. */
#ifndef TL_RW_LOCK_RW_H
#define TL_RW_LOCK_RW_H

#include "client/client.h"
#include "store/rw.h"
#include "transition/work.h"

#include <tradelock/rw_lock.h>

/*
 *   NEW, RELEASED, LOST --read, write--> HELD --unlock--> RELEASED, or LOST
 *            |   ^                         |
 *            v   | refused                 v
 *         ASK_UNKNOWN               UNLOCK_UNKNOWN
 */
typedef enum rw_state {
    RW_NEW,
    RW_ASK_UNKNOWN,
    RW_HELD,
    RW_UNLOCK_UNKNOWN,
    RW_RELEASED,
    RW_LOST
} rw_state;

struct tl_rw {
    /* Fixed after it is made. */
    tl_client *client;
    int64_t lease_ms, max_hold_ms;
    char resource[TL_RESOURCE_MAX + 1];
    char remark[TL_REMARK_MAX + 1], actor[64];

    rw_state state;
    const life *life; /* under which it asked last, and holds; NULL before */
    /* What is held, or what an ask whose answer was lost was for. */
    tl_rw_mode mode;
    unsigned slot;
    uint64_t fence;
    uint8_t token[RW_TOKEN];
    int by_session;
    int64_t over_ms, hold_until_ms;   /* boot time */
    work_doubt renewing, downgrading; /* whether the answer to that was lost */

    /* A writer that waits. */
    uint8_t intent[RW_TOKEN];
    unsigned intent_slot; /* 0: none */
    int64_t intent_until_ms;

    /* A step under way, and one whose answer was lost. */
    uint8_t next_token[RW_TOKEN];
    unsigned next_slot;
    char lost_connection[RANDOM_UUID];
    char thread_no[TL_UUID_TEXT], log_no[TL_UUID_TEXT];

    tl_holder_view view;
};

/* -- rw.c -- */

tl_status rw_check(const tl_rw *rw);
/* TL_OK when the handle holds its lock, as far as it knows; else what a call on a held lock
 * answers. */
tl_status rw_check_held(const tl_rw *rw);
/* Fills what every step has; a fresh token unless the last one is not settled yet. */
void rw_begin_step(tl_rw *rw, rw_step *s, int fresh_token);
/* What is certain of the hold, without a round trip. */
int64_t rw_remaining_ms(const tl_rw *rw);

/* -- ask.c: once more, for an ask whose answer was lost -- */
tl_status rw_ask_again(tl_rw *rw);

/* -- held.c -- */
tl_status rw_release(tl_rw *rw, int64_t budget_ms);
/* The writer does not wait any more; not insisted on, since the intent has a lease. */
void rw_drop_intent(tl_rw *rw);

#endif
