/*
 * The janitor opens the retry lane of trades whose holder is not alive, and frees the dead holders
 * of read-write locks.  It reads by index, never waits for a row lock and never changes a living
 * holder's row: each step checks for itself that the holder is dead.  Any number may run.
 *
 * Finished trades stand in the same index, each at the end of its max_hold.  So each operation has
 * a low-water mark: the moment of the first trade that may still be in process.  A round sweeps
 * from the mark until now, and moves the mark to the first trade that it could not open.  What dead
 * sessions held is looked for by session, whatever the mark says.
 */
#ifndef TL_JANITOR_JANITOR_H
#define TL_JANITOR_JANITOR_H

#include "transition/step_task.h"

/* One sweep is for so many ended sessions at most; others follow in the next. */
#define JANITOR_SESSIONS 64

typedef struct janitor_session {
    char id[TL_UUID_TEXT];
    int kept; /* the sweep left rows of it that it could not open */
} janitor_session;

/* Where the next round goes on.  {0} at first. */
typedef struct janitor_cursor {
    /* The sweep for ended sessions: which ones, whether it is in the pass that begins before the
     * low-water marks, and how far it has come in which operation. */
    janitor_session sessions[JANITOR_SESSIONS];
    size_t count;
    int everywhere;
    char op_code[TL_OP_MAX + 1];
    int64_t from_us;
    /* Where a sweep behind a row that stays in process ran out of time; "": nowhere. */
    char overdue_op[TL_OP_MAX + 1];
    int64_t overdue_us;
} janitor_cursor;

/* One round: opens P rows past their max_hold, frees holders whose time is over, and does both for
 * ended sessions.  Half of the budget is for what is overdue, half for the dead; the next round
 * goes on from there.  Every round looks at every operation.  A serving process runs a round after
 * each beat, with half a beat as its budget: many processes share the rows of a dead one, and none
 * is kept from its own work for long.  actor: who, for the log.
 * latest_us: what is over only by a later moment is not overdue.  opened and freed are increased.
 * cursor: of this caller's rounds, which do not overlap. */
tl_status janitor_round(task_engine *engine, const struct logger *logger, const char *actor,
                        int64_t budget_ms, int64_t latest_us, janitor_cursor *cursor,
                        uint64_t *opened, uint64_t *freed);

/* Blanks the contents of trades that ended payload_keep_ms ago, page by page while there is time, and
 * one at least; the walk is shared by all janitors.  anew: a whole walk, from the beginning.  TL_REFUSED:
 * the schema does not say that anything is blanked.  *blanked is increased. */
tl_status janitor_blank(task_engine *engine, int64_t budget_ms, int anew, uint64_t *blanked);

#endif
