/* Those who wait for the outcomes of trades, and share their reads. */
#ifndef TL_WORKFLOWS_AWAIT_H
#define TL_WORKFLOWS_AWAIT_H

#include "later.h"

#include <tradelock/questions.h>
#include <tradelock/workflow.h>

struct awaiting;

/* What the thread for reads asks before it reads a trade for the first time; a copy, which may
 * outlive the wait.  What is not TL_OK is the answer of the wait. */
typedef struct await_question {
    tl_status (*ask)(const struct await_question *self);
    void *of;
    size_t at;
    char cust_no[TL_CUST_MAX + 1];
} await_question;

typedef struct awaits {
    struct tl_workflows *of;
    later reader; /* its thread reads, and may wait for a silent server as long as that takes */
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct awaiting *first;
    uint64_t came;    /* the number of the last */
    later_item round; /* the next one: when it begins */
    int is_put;       /* it will begin, or is under way */
} awaits;

/* TL_OK or TL_NO_MEMORY, with a sentence. */
tl_status awaits_init(awaits *all, struct tl_workflows *of);
void awaits_destroy(awaits *all);
/* As tl_workflow_await(); first: NULL, or what is asked within the wait.  Needs with it: wait_ms is
 * above 0. */
tl_status workflow_await(struct tl_workflows *workflows, const tl_key *key, int64_t wait_ms,
                         const await_question *first, tl_trade *trade);
/* Whether somebody waits now.  A round may still be under way. */
int awaits_any(awaits *all);

#endif
