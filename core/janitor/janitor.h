/*
 * The janitor opens the retry lane of trades whose holder is not alive, and frees the dead holders
 * of read-write locks.  It reads by index, never waits for a row lock and never changes a living
 * holder's row: each step checks for itself that the holder is dead.  Any number may run.
 *
 * Finished trades stand in the same index, each at the end of its max_hold; so a janitor comes by
 * every trade once, and the low-water mark tells all others where to go on.
 */
#ifndef TL_JANITOR_JANITOR_H
#define TL_JANITOR_JANITOR_H

#include "transition/step_task.h"

/* What the next round goes on from.  {0} at first. */
typedef struct janitor_place {
    /* The session that was being swept, the operation that it was at, and the one before; op_code
     * "": it was gone through. */
    char session_id[TL_UUID_TEXT], op_code[TL_OP_MAX + 1], after[TL_OP_MAX + 1];
    int64_t from_us;
    int kept;       /* this pass has left rows that it could not open */
    int everywhere; /* it is the one that begins before the low-water marks */
    /* Where a look behind rows that cannot be opened ran out of time; "": nowhere. */
    char overdue_op[TL_OP_MAX + 1];
    int64_t overdue_us;
    unsigned rounds;
} janitor_place;

/* One round: P rows past their max_hold, holders whose time is over, and all rows of ended
 * sessions, as far as the budget goes, half of it for what is overdue and half for the dead; the
 * next round goes on.  Every operation is looked at in every round.  A process that serves has its
 * rounds follow its beats, with half a beat as their budget: a dead process with many locks is
 * shared among its heirs, and takes none of them from its own work for long. actor: who, for the
 * log.  opened and freed are increased.  place: of this caller's rounds, which do not overlap. */
tl_status janitor_round(transition_engine *engine, const struct logger *logger, const char *actor,
                        int64_t budget_ms, janitor_place *place, uint64_t *opened, uint64_t *freed);

#endif
