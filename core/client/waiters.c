/* Keeps a queue of waiters for each key, in a table of keys.  Touches nothing else; it never asks
 * the server. */
#include "client/waiters.h"

#include "base/clock.h"
#include "base/memory.h"
#include "client/keys.h"

/* One key's waiters.  Under its bucket's mutex. */
struct queue {
    key_entry entry;
    waiter *first, *last;
    unsigned releases;
};

struct waiters {
    key_table keys;
};

struct waiter {
    key_bucket *bucket;
    struct queue *queue;
    waiter *next, *previous;
    pthread_cond_t wake;
    unsigned releases_seen;
};

waiters *waiters_new(void)
{
    waiters *w = memory_new(sizeof *w);

    if (w != NULL)
        keys_init(&w->keys, sizeof(struct queue));
    return w;
}

void waiters_free(waiters *w)
{
    if (w == NULL)
        return;
    keys_destroy(&w->keys);
    memory_free(w);
}

waiter *waiters_join(waiters *w, const char *key)
{
    waiter *me = memory_new(sizeof *me);

    if (me == NULL || clock_condition_init(&me->wake) != 0) {
        memory_free(me);
        return NULL;
    }
    me->bucket = keys_lock(&w->keys, key);
    me->queue = keys_find_or_make(&w->keys, me->bucket, key);
    if (me->queue != NULL) {
        me->previous = me->queue->last;
        if (me->queue->last != NULL)
            me->queue->last->next = me;
        else
            me->queue->first = me;
        me->queue->last = me;
        me->releases_seen = me->queue->releases;
    }
    pthread_mutex_unlock(&me->bucket->mutex);
    if (me->queue == NULL) {
        pthread_cond_destroy(&me->wake);
        memory_free(me);
        return NULL;
    }
    return me;
}

int waiters_turn(waiter *me, int64_t deadline_ms)
{
    int mine;

    pthread_mutex_lock(&me->bucket->mutex);
    while (me->queue->first != me && clock_left_ms(deadline_ms) > 0)
        clock_wait(&me->wake, &me->bucket->mutex, deadline_ms);
    mine = me->queue->first == me;
    pthread_mutex_unlock(&me->bucket->mutex);
    return mine;
}

void waiters_pause(waiter *me, int64_t until_ms)
{
    pthread_mutex_lock(&me->bucket->mutex);
    while (me->releases_seen == me->queue->releases && clock_left_ms(until_ms) > 0)
        clock_wait(&me->wake, &me->bucket->mutex, until_ms);
    me->releases_seen = me->queue->releases;
    pthread_mutex_unlock(&me->bucket->mutex);
}

void waiters_leave(waiter *me)
{
    key_bucket *bucket = me->bucket;
    struct queue *queue = me->queue;

    pthread_mutex_lock(&bucket->mutex);
    if (me->previous != NULL)
        me->previous->next = me->next;
    else
        queue->first = me->next;
    if (me->next != NULL)
        me->next->previous = me->previous;
    else
        queue->last = me->previous;
    if (queue->first != NULL)
        pthread_cond_signal(&queue->first->wake);
    else
        keys_drop(bucket, queue);
    pthread_mutex_unlock(&bucket->mutex);
    pthread_cond_destroy(&me->wake);
    memory_free(me);
}

void waiters_released(waiters *w, const char *key)
{
    key_bucket *bucket = keys_lock(&w->keys, key);
    struct queue *queue = keys_find(bucket, key);

    if (queue != NULL) {
        queue->releases++;
        pthread_cond_signal(&queue->first->wake);
    }
    pthread_mutex_unlock(&bucket->mutex);
}
