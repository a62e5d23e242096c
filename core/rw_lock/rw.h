/* A read-write lock's handle, as the files of this room share it. */
#ifndef TL_RW_LOCK_RW_H
#define TL_RW_LOCK_RW_H

#include "lock/resource.h"
#include "store/rw.h"

#include <tradelock/rw_lock.h>

struct tl_rw {
    lock_handle base;
    lock_grant grant;
    /* Fixed after it is made. */
    int64_t lease_ms, max_hold_ms;
    char resource[TL_RESOURCE_MAX + 1];
    const char *name; /* the same, as the grant's list of one */
    char remark[TL_REMARK_MAX + 1], actor[64];

    /* What is held, or what an ask whose answer was lost was for. */
    tl_rw_mode mode;
    unsigned slot;
    unsigned next_slot; /* of an ask whose answer was lost; 0: that was an intent only */
    doubt downgrading;  /* whether the answer to that was lost */

    /* A writer that waits. */
    uint8_t intent[RW_TOKEN];
    unsigned intent_slot; /* 0: none */
    int64_t intent_until_ms;

    tl_holder_view view;
};

/* -- held.c: steps on the holder's own row -- */

tl_status rw_check(const tl_rw *rw);
/* Fills what every step has, after handle_begin() or resource_begin_ask(). */
void rw_fill_step(tl_rw *rw, rw_step *s);
tl_status rw_release(tl_rw *rw, int64_t budget_ms);
/* Its statements, see lock/resource.h. */
db_answer rw_run_change(task *t, db *connection);
void rw_mark_change(const task *t, commit_mark *to);
void rw_mark(const rw_step *by, commit_mark *to);
db_answer rw_read_release(task *t, db *connection);
/* Gives up the intent of a writer that waits no more.  One try is enough, since the intent has a
 * lease. */
void rw_drop_intent(tl_rw *rw);

/* -- ask.c, above held.c -- */

/* What distinguishes this kind of lock. */
extern const lock_method rw_method;
/* Asks again, for an ask whose answer was lost. */
tl_status rw_ask_again(tl_rw *rw);

#endif
