#include "client/shared_read.h"

#include "base/memory.h"
#include "base/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define BUCKETS 64

/* A row with the number of those who hold it. */
struct counted_row {
    shared_row row; /* first, so that the outside sees only this */
    atomic_uint holders;
};

/* One key's reads.  Under its bucket's mutex. */
struct reading {
    struct reading *next;
    struct gathering *gathering; /* who waits for the next read */
    int busy;                    /* a read is under way */
    char key[];
};

/* Those who will share one read; lives on its leader's stack until all were told. */
struct gathering {
    struct counted_row *row;
    unsigned members;
    int done;
    pthread_cond_t changed;
};

struct bucket {
    pthread_mutex_t mutex;
    struct reading *readings;
};

struct shared_reads {
    struct bucket buckets[BUCKETS];
};

shared_reads *shared_reads_new(void)
{
    shared_reads *reads = memory_new(sizeof *reads);

    if (reads != NULL)
        for (int i = 0; i < BUCKETS; i++)
            pthread_mutex_init(&reads->buckets[i].mutex, NULL);
    return reads;
}

void shared_reads_free(shared_reads *reads)
{
    if (reads == NULL)
        return;
    for (int i = 0; i < BUCKETS; i++)
        pthread_mutex_destroy(&reads->buckets[i].mutex);
    memory_free(reads);
}

shared_row *shared_row_new(void)
{
    struct counted_row *counted = memory_new(sizeof *counted);

    if (counted == NULL)
        return NULL;
    atomic_store(&counted->holders, 1);
    return &counted->row;
}

void shared_row_release(const shared_row *row)
{
    struct counted_row *counted = (struct counted_row *)(uintptr_t)row;

    if (counted == NULL || atomic_fetch_sub(&counted->holders, 1) > 1)
        return;
    db_result_free(&counted->row.rows);
    memory_free(counted);
}

static struct bucket *bucket_of(shared_reads *reads, const char *key)
{
    return &reads->buckets[text_hash(key) % BUCKETS];
}

/* Needs: bucket->mutex held. */
static struct reading *find(const struct bucket *bucket, const char *key)
{
    struct reading *reading = bucket->readings;

    while (reading != NULL && strcmp(reading->key, key) != 0)
        reading = reading->next;
    return reading;
}

/* Needs: bucket->mutex held. */
static struct reading *find_or_make(struct bucket *bucket, const char *key)
{
    struct reading *reading = find(bucket, key);
    size_t size = strlen(key) + 1;

    if (reading != NULL)
        return reading;
    reading = memory_new(sizeof *reading + size);
    if (reading == NULL)
        return NULL;
    memcpy(reading->key, key, size);
    reading->next = bucket->readings;
    bucket->readings = reading;
    return reading;
}

/* Needs: bucket->mutex held.  A key that nobody reads is not kept. */
static void drop_if_idle(struct bucket *bucket, struct reading *reading)
{
    struct reading **link = &bucket->readings;

    if (reading->busy || reading->gathering != NULL)
        return;
    while (*link != reading)
        link = &(*link)->next;
    *link = reading->next;
    memory_free(reading);
}

static void read_row(struct counted_row *row, shared_read_fn read, void *context)
{
    row->row.status = read(context, &row->row.rows);
    if (row->row.status != TL_OK)
        text_copy(row->row.message, sizeof row->row.message, tl_error_message());
}

/* The first of a gathering: waits for the read under way, then reads for all of its own. */
static void lead(struct bucket *bucket, struct reading *reading, struct gathering *mine,
                 shared_read_fn read, void *context)
{
    while (reading->busy)
        pthread_cond_wait(&mine->changed, &bucket->mutex);
    reading->busy = 1;
    reading->gathering = NULL; /* who comes now needs a read that begins later */
    pthread_mutex_unlock(&bucket->mutex);
    read_row(mine->row, read, context);
    pthread_mutex_lock(&bucket->mutex);
    atomic_store(&mine->row->holders, mine->members);
    mine->done = 1;
    reading->busy = 0;
    pthread_cond_broadcast(&mine->changed);
    if (reading->gathering != NULL)
        pthread_cond_broadcast(&reading->gathering->changed);
    drop_if_idle(bucket, reading);
    /* The gathering is on this stack: the last to leave it is its leader. */
    mine->members--;
    while (mine->members > 0)
        pthread_cond_wait(&mine->changed, &bucket->mutex);
}

static void follow(struct bucket *bucket, struct gathering *shared)
{
    shared->members++;
    while (!shared->done)
        pthread_cond_wait(&shared->changed, &bucket->mutex);
    if (--shared->members == 0)
        pthread_cond_broadcast(&shared->changed);
}

const shared_row *shared_read(shared_reads *reads, const char *key, shared_read_fn read,
                              void *context)
{
    struct bucket *bucket = bucket_of(reads, key);
    struct gathering own = {.members = 1};
    struct counted_row *row = NULL;
    struct reading *reading;

    pthread_mutex_lock(&bucket->mutex);
    reading = find_or_make(bucket, key);
    if (reading != NULL && reading->gathering != NULL) {
        struct gathering *shared = reading->gathering;

        row = shared->row;
        follow(bucket, shared);
    } else if (reading != NULL && (own.row = memory_new(sizeof *own.row)) != NULL) {
        row = own.row;
        pthread_cond_init(&own.changed, NULL);
        reading->gathering = &own;
        lead(bucket, reading, &own, read, context);
        pthread_cond_destroy(&own.changed);
    } else if (reading != NULL) {
        drop_if_idle(bucket, reading);
    }
    pthread_mutex_unlock(&bucket->mutex);
    return row != NULL ? &row->row : NULL;
}

int shared_read_under_way(shared_reads *reads, const char *key)
{
    struct bucket *bucket = bucket_of(reads, key);
    int under_way;

    pthread_mutex_lock(&bucket->mutex);
    under_way = find(bucket, key) != NULL;
    pthread_mutex_unlock(&bucket->mutex);
    return under_way;
}
