/* Those who wait for the outcomes of trades, and share their reads. */
#ifndef TL_WORKFLOWS_AWAIT_H
#define TL_WORKFLOWS_AWAIT_H

#include <pthread.h>
#include <stdint.h>

struct awaiting;

typedef struct awaits {
    pthread_mutex_t mutex;
    /* Under the mutex. */
    struct awaiting *first;
    int is_read;     /* one of them reads, or is about to */
    int64_t next_ms; /* when the next round begins, by schedule_now_ms() */
} awaits;

/* 0, or an error of pthread_mutex_init(). */
int awaits_init(awaits *all);
void awaits_destroy(awaits *all);
/* Whether somebody waits now. */
int awaits_any(awaits *all);

#endif
