#include "client/waiters.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"

#include <pthread.h>
#include <string.h>

#define BUCKETS 64

/* Everything below is under the mutex of its bucket. */
struct queue {
    struct queue *next;
    waiter *first, *last;
    unsigned releases;
    char key[];
};

struct bucket {
    pthread_mutex_t mutex;
    struct queue *queues;
};

struct waiters {
    struct bucket buckets[BUCKETS];
};

struct waiter {
    struct bucket *bucket;
    struct queue *queue;
    waiter *next, *previous;
    pthread_cond_t wake;
    unsigned releases_seen;
};

waiters *waiters_new(void)
{
    waiters *w = memory_new(sizeof *w);

    if (w != NULL)
        for (int i = 0; i < BUCKETS; i++)
            pthread_mutex_init(&w->buckets[i].mutex, NULL);
    return w;
}

void waiters_free(waiters *w)
{
    if (w == NULL)
        return;
    for (int i = 0; i < BUCKETS; i++)
        pthread_mutex_destroy(&w->buckets[i].mutex);
    memory_free(w);
}

static struct bucket *bucket_of(waiters *w, const char *key)
{
    return &w->buckets[text_hash(key) % BUCKETS];
}

/* Needs: bucket->mutex held. */
static struct queue *find_queue(struct bucket *bucket, const char *key)
{
    struct queue *queue = bucket->queues;

    while (queue != NULL && strcmp(queue->key, key) != 0)
        queue = queue->next;
    return queue;
}

/* Needs: bucket->mutex held. */
static struct queue *find_or_make_queue(struct bucket *bucket, const char *key)
{
    struct queue *queue = find_queue(bucket, key);
    size_t size = strlen(key) + 1;

    if (queue != NULL)
        return queue;
    queue = memory_new(sizeof *queue + size);
    if (queue == NULL)
        return NULL;
    memcpy(queue->key, key, size);
    queue->next = bucket->queues;
    bucket->queues = queue;
    return queue;
}

/* Needs: bucket->mutex held.  A queue without waiters is not kept. */
static void drop_queue_if_empty(struct bucket *bucket, struct queue *queue)
{
    struct queue **link = &bucket->queues;

    if (queue->first != NULL)
        return;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
    memory_free(queue);
}

waiter *waiters_join(waiters *w, const char *key)
{
    waiter *me = memory_new(sizeof *me);

    if (me == NULL || clock_condition_init(&me->wake) != 0) {
        memory_free(me);
        return NULL;
    }
    me->bucket = bucket_of(w, key);
    pthread_mutex_lock(&me->bucket->mutex);
    me->queue = find_or_make_queue(me->bucket, key);
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
    struct bucket *bucket = me->bucket;
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
    drop_queue_if_empty(bucket, queue);
    pthread_mutex_unlock(&bucket->mutex);
    pthread_cond_destroy(&me->wake);
    memory_free(me);
}

void waiters_released(waiters *w, const char *key)
{
    struct bucket *bucket = bucket_of(w, key);
    struct queue *queue;

    pthread_mutex_lock(&bucket->mutex);
    queue = find_queue(bucket, key);
    if (queue != NULL) {
        queue->releases++;
        pthread_cond_signal(&queue->first->wake);
    }
    pthread_mutex_unlock(&bucket->mutex);
}
