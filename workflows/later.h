/* What submitted runs and endings do later: on a thread of its own, so that neither the service's
 * loop nor the threads that carry out steps wait for it. */
#ifndef TL_WORKFLOWS_LATER_H
#define TL_WORKFLOWS_LATER_H

#include <tradelock/tradelock.h>

#include <pthread.h>
#include <stdatomic.h>

typedef struct later_item {
    struct later_item *next;
    int64_t due_ms; /* by schedule_now_ms() */
    int waits;      /* for the database: others that are due come before it */
    void (*run)(struct later_item *item);
} later_item;

typedef struct later {
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    /* Under the mutex. */
    pthread_t thread;
    atomic_int process; /* atomic; that the thread is of; 0: it was not started */
    int stopping;
    unsigned under_way; /* submitted, and not completed */
    later_item *first;  /* in no order */
} later;

/* TL_OK or TL_NO_MEMORY, with a sentence. */
tl_status later_init(later *all);
/* Needs: no run is under way. */
void later_destroy(later *all);

/* A run is under way from later_enter() to later_leave().  The first has the thread made: TL_OK;
 * TL_NO_MEMORY or TL_WRONG_PROCESS, with a sentence. */
tl_status later_enter(later *all);
void later_leave(later *all);
/* Whether a run of this process is under way. */
int later_any(later *all);
/* TL_OK, or TL_WRONG_PROCESS with a sentence: the thread is not of this process. */
tl_status later_check(const later *all);

/* Runs it on the thread, once its moment has come.  Needs: its run is under way. */
void later_put(later *all, later_item *item);

#endif
