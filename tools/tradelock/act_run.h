/* One act over many rows, as the command and the desk do it: begun, each row done under it, those
 * that moved on left alone, and ended with how many are left. */
#ifndef TRADELOCK_ACT_RUN_H
#define TRADELOCK_ACT_RUN_H

#include <tradelock/admin.h>

struct act_run {
    tl_act act;     /* what, said, actor, reason, and how many rows are planned */
    uint64_t first; /* the number of its first one */
    /* Does row number `row`; TL_OK, TL_IN_CONFLICT where it is done and two operators decide, or why
     * it was left alone. */
    tl_status (*each)(void *context, tl_client *client, uint64_t act_no, uint64_t row);
    /* Whether a status of each() is about that row alone; else nothing more is done. */
    int (*is_of_row)(tl_status status);
    /* Hears what became of a row while its sentence stands; not 0: it is the last one.  Or NULL. */
    int (*told)(void *listener, uint64_t row, tl_status status);
    void *context, *listener;
    /* What it came to; act_no 0: it was not begun. */
    uint64_t act_no, done, conflicts, skipped;
    char no_end[512]; /* why its record has no end; "": it has */
};

/* Returns why it broke off, with the sentence of that.  What is done stands on record also without
 * the act's end, which tells that nothing more follows. */
tl_status act_run(struct act_run *run, tl_client *client);

#endif
