/* Those who wait for the outcomes of trades, and share their reads. */
#ifndef TL_WORKFLOWS_AWAIT_H
#define TL_WORKFLOWS_AWAIT_H

#include "later.h"

struct awaiting;

typedef struct awaits {
    struct tl_workflows *of;
    later reader; /* its thread reads, and may wait for a silent server as long as that takes */
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct awaiting *first;
    later_item round; /* the next one: when it begins */
    int is_put;       /* it will begin, or is under way */
} awaits;

/* TL_OK or TL_NO_MEMORY, with a sentence. */
tl_status awaits_init(awaits *all, struct tl_workflows *of);
void awaits_destroy(awaits *all);
/* Whether somebody waits now.  A round may still be under way. */
int awaits_any(awaits *all);

#endif
