/* What a child is to do, and what it found: shared memory between tradelock-try and its children,
 * of which one runs at a time. */
#ifndef TRY_PLAN_H
#define TRY_PLAN_H

#include <tradelock/plugin.h>

#include <stdatomic.h>

#define PLAN_PATH 4096
#define FINDINGS_MAX 64u
#define FINDING_MAX 320u

/* What a callback is made to answer, without the plug-in's own being called: `answer`, so many
 * times; and afterwards `then`, where `more` is set, else what the plug-in answers. */
typedef struct forced {
    unsigned times;
    int answer, more, then;
} forced;

typedef struct plan {
    /* For all children. */
    char requests[PLAN_PATH]; /* what the channel received, a line of JSON each */
    const char *title;        /* of the case under way */
    int simulated;            /* the channel is the simulator, no proxy before another one */

    /* For one case. */
    unsigned kill_at; /* at which passage of a crash point the process dies; 0: at none */
    int nothing_left; /* execute is called when its time is over */
    forced execute, query;

    /* What children found. */
    unsigned passages;
    char killed_at[64]; /* where */
    tl_status status;   /* of the run */
    char state;         /* of the row: P, F, Y, or ' ' */
    char parked[64], sentence[256];
    char channel_key[TL_CHANNEL_KEY_MAX + 1]; /* of the trade; "": no callback was told of it */
    unsigned sent;                            /* requests that execute made in this case */
    unsigned calls;                           /* of execute, forced or not */
    _Atomic unsigned findings;
    char finding[FINDINGS_MAX][FINDING_MAX];
} plan;

extern plan *the_plan;

/* Adds a broken rule, unless it was found before. */
void plan_found(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A child with this job; 0: it ended by itself, else the signal that ended it.  patience_ms: then
 * it is killed, and a finding says so. */
int child_run(void (*job)(void *context), void *context, int64_t patience_ms);

/* From here on this process passes crash points; `whole`: each statement of this thread is one,
 * else those that follow a callback. */
void hook_begin(int whole);
/* What the plug-in registered. */
const tl_workflow *hook_workflow(const char *op_code);

#endif
