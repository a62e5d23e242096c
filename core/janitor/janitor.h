/*
 * The janitor opens the retry lane of trades whose holder is not alive, and frees the dead
 * holders of read-write locks.  It reads by index, never waits for a row lock and never
 * changes a living holder's row: each step checks for itself that the holder is dead.  Any
 * number may run.
 *
 * Finished trades stand in the same index, each at the end of its max_hold; so a janitor
 * comes by every trade once, and the low-water mark tells all others where to go on.
 */
#ifndef TL_JANITOR_JANITOR_H
#define TL_JANITOR_JANITOR_H

#include "transition/transition.h"

/* One round: P rows past their max_hold, holders whose time is over, and all rows of ended
 * sessions, as far as the budget goes; the next round goes on.  A process that serves has
 * its rounds follow its beats, with half a beat as their budget: a dead process with many
 * locks is shared among its heirs, and takes none of them from its own work for long.
 * actor: who, for the log.  opened and freed are increased. */
tl_status janitor_round(transition_engine *engine, const struct logger *logger,
                        const char *actor, int64_t budget_ms, uint64_t *opened,
                        uint64_t *freed);

#endif
