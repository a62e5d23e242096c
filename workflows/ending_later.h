/*
 * An ending that is submitted: nobody waits for it.  What has to be tried again, after a pause, and
 * what waits for the database (filing an outcome that the books refused) is done by the thread of
 * later.c.
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
    void *context;

    int64_t until_ms, delay_ms; /* of its tries */
    tl_status refused;          /* with which it was given up */
    char sentence[ENDING_SENTENCE_MAX];
} ending_later;

/* over() may be called before this returns. */
void ending_later_submit(ending_later *e);

#endif
