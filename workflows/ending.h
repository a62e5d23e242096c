/*
 * Ending a hold: the workflow layer finishes, puts back and parks only here.  An `ending` owns what
 * it has to say, so that it can be repeated word for word after a lost answer.
 */
#ifndef TL_WORKFLOWS_ENDING_H
#define TL_WORKFLOWS_ENDING_H

#include "attempt.h"
#include "later.h"

#include <tradelock/lane.h>

typedef struct ending {
    tl_client *client;
    tl_lock *lock;
    attempt *attempt; /* its reply is written */
    tl_ending what;   /* texts point into the attempt's reply */
    tl_findings findings;
    int final;       /* SUCCESS or FAILURE: with business rows, else put back */
    int by_evidence; /* filed already */
} ending;

void ending_success(ending *e);
void ending_failure(ending *e, tl_proof proof);
/* Prepare an ending that opens the lane.  next_run_ms has its jitter already. */
void ending_put_back(ending *e, tl_outcome outcome, int64_t next_run_ms);
void ending_park(ending *e, tl_outcome outcome, const char *reason);

/*
 * Carries it out, repeating what the server undid or did not answer, within the commit
 * budget.  If the business rows cannot be written, the outcome is filed as evidence and the trade
 * put back; a failure that evidence contradicts is put back, due at once.
 *
 * TL_SUCCEEDED, TL_FAILED: the trade is ended.  TL_IN_DOUBT, TL_QUEUED, TL_PARKED: it was put back
 * or parked.  TL_LOST: somebody else has the lock.  TL_UNKNOWN: not known yet; call again.
 */
tl_status ending_run(ending *e);

/*
 * The same in parts, for an ending that is submitted (ending_later.h).  ending_is_callback(): a
 * callback with a connection writes its rows, so it cannot be.  ending_book() has the callback
 * write the lines, if there are any; ending_submit() submits the ending, as tl_lock_finish_submit()
 * does, and may be called again with the same lines.  ending_repeats(): the status of a try that
 * may be made again within the commit budget.  ending_gives_up(): ending_give_up() has to go on
 * from that status, with its sentence, which waits for the database.  ending_answer(): what the
 * status means then.
 */
int ending_is_callback(const ending *e);
void ending_book(ending *e);
tl_status ending_submit(ending *e, tl_done_fn done, void *context);
int ending_repeats(tl_status status);
int ending_gives_up(const ending *e, tl_status status);
tl_status ending_give_up(ending *e, tl_status status);
tl_status ending_answer(tl_status status);

/*
 * An ending that is submitted: nobody waits for it.  It is tried again, after a pause, by the
 * thread of later.c.  What waits for the database, filing an outcome that the books refused, is
 * done there too, or where the owner says.
 */
#define ENDING_AGAIN_MOST_MS 500
#define ENDING_SENTENCE_MAX 512

typedef struct ending_later {
    later_item later; /* first */
    /* Set before ending_later_submit(). */
    struct later *all; /* entered, and left by over() */
    ending *ending;    /* its lines are written */
    char log_no[TL_UUID_TEXT];
    /* Hears what ending_run() would answer, with the thread's sentence; called once, on any
     * thread, and the owner may free all of this. */
    void (*over)(void *context, tl_status status);
    /* Has item->run(item) called on a thread that may wait for the database; NULL: that of
     * later.c. */
    void (*hand_back)(void *context, later_item *item);
    void *context; /* of both */

    int64_t until_ms, delay_ms; /* of its tries */
    tl_status refused;          /* with which it was given up */
    char sentence[ENDING_SENTENCE_MAX];
} ending_later;

/* TL_OK: over() is called once, perhaps before this returns.  Else it was not submitted, and
 * ending_later_again() may try that later. */
tl_status ending_later_submit(ending_later *e);
void ending_later_again(ending_later *e, tl_status status);

#endif
