/*
 * An ending that is submitted: nobody waits for it.  It is tried again, after a pause, by the
 * thread of later.c.  What waits for the database, filing an outcome that the books refused, is
 * done there too, or where the owner says.
 */
#ifndef TL_WORKFLOWS_ENDING_LATER_H
#define TL_WORKFLOWS_ENDING_LATER_H

#include "ending.h"
#include "later.h"

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
