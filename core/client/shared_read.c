/* Shared reads: for each key, the read under way and those who gather for the next.  The caller's
 * function reads.  Touches its own table only. */
#include "client/shared_read.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "client/keys.h"

#include <stdatomic.h>

/* A row with those who share it. */
struct counted_row {
    shared_row row; /* first: all that callers see */
    atomic_uint holders;
    atomic_int read; /* 1: the row is there */
};

/* The reads of one key, under its bucket's mutex.  A key that nobody reads has no such entry. */
struct reading {
    key_entry entry;
    struct counted_row *under_way;
    struct counted_row *gathering; /* shared by all who wait for the next read */
};

struct shared_reads {
    key_table keys;
};

shared_reads *shared_reads_new(void)
{
    shared_reads *reads = memory_new(sizeof *reads);

    if (reads != NULL)
        keys_init(&reads->keys, sizeof(struct reading));
    return reads;
}

void shared_reads_free(shared_reads *reads)
{
    if (reads == NULL)
        return;
    keys_destroy(&reads->keys);
    memory_free(reads);
}

static struct counted_row *new_row(void)
{
    struct counted_row *row = memory_new(sizeof *row);

    if (row != NULL)
        atomic_store(&row->holders, 1);
    return row;
}

shared_row *shared_row_new(void)
{
    struct counted_row *counted = new_row();

    return counted != NULL ? &counted->row : NULL;
}

void shared_row_release(const shared_row *row)
{
    struct counted_row *counted = (struct counted_row *)(uintptr_t)row;

    if (counted == NULL || atomic_fetch_sub(&counted->holders, 1) > 1)
        return;
    db_result_free(&counted->row.rows);
    memory_free(counted);
}

/* Needs: bucket->mutex held. */
static void drop_if_idle(key_bucket *bucket, struct reading *reading)
{
    if (reading->under_way == NULL && reading->gathering == NULL)
        keys_drop(bucket, reading);
}

static struct counted_row *share(struct counted_row *row)
{
    if (row != NULL)
        atomic_fetch_add(&row->holders, 1);
    return row;
}

/* 0: this thread's wait was over first. */
static int await(struct counted_row *row)
{
    const int64_t until_ms = thread_context_awaits_until();

    while (atomic_load_explicit(&row->read, memory_order_acquire) == 0)
        if (until_ms == 0)
            futex_wait(&row->read, 0);
        else if (!futex_wait_until(&row->read, 0, until_ms))
            return 0;
    return 1;
}

/* Instead of a row that others still read. */
static struct counted_row *too_late(struct counted_row *row)
{
    shared_row_release(&row->row);
    row = new_row();
    if (row == NULL)
        return NULL;
    row->row.status = error_set(TL_UNREACHABLE, "the wait is over before others had read the row");
    text_copy(row->row.message, sizeof row->row.message, tl_error_message());
    return row;
}

/* The first of a gathering waits for the read under way, and then reads for all of its own. */
static void lead(key_bucket *bucket, struct reading *reading, struct counted_row *mine,
                 struct counted_row *under_way, shared_read_fn read, void *context)
{
    if (under_way != NULL) {
        (void)await(under_way);
        shared_row_release(&under_way->row);
    }
    pthread_mutex_lock(&bucket->mutex);
    reading->under_way = mine;
    reading->gathering = NULL; /* a caller that comes now needs a later read */
    pthread_mutex_unlock(&bucket->mutex);
    mine->row.status = read(context, &mine->row);
    if (mine->row.status != TL_OK)
        text_copy(mine->row.message, sizeof mine->row.message, tl_error_message());
    pthread_mutex_lock(&bucket->mutex);
    reading->under_way = NULL;
    drop_if_idle(bucket, reading);
    pthread_mutex_unlock(&bucket->mutex);
    atomic_store_explicit(&mine->read, 1, memory_order_release);
    futex_wake(&mine->read, FUTEX_ALL);
}

const shared_row *shared_read(shared_reads *reads, const char *key, shared_read_fn read,
                              void *context)
{
    key_bucket *bucket = keys_lock(&reads->keys, key);
    struct reading *reading = keys_find_or_make(&reads->keys, bucket, key);
    struct counted_row *row = NULL, *under_way = NULL;
    int leads = 0;

    if (reading != NULL && reading->gathering != NULL) {
        row = share(reading->gathering);
    } else if (reading != NULL && (row = new_row()) != NULL) {
        leads = 1;
        reading->gathering = row;
        under_way = share(reading->under_way);
    } else if (reading != NULL) {
        drop_if_idle(bucket, reading);
    }
    pthread_mutex_unlock(&bucket->mutex);
    if (leads)
        lead(bucket, reading, row, under_way, read, context);
    else if (row != NULL && !await(row))
        row = too_late(row);
    return row != NULL ? &row->row : NULL;
}

int shared_read_under_way(shared_reads *reads, const char *key)
{
    key_bucket *bucket = keys_lock(&reads->keys, key);
    int under_way = keys_find(bucket, key) != NULL;

    pthread_mutex_unlock(&bucket->mutex);
    return under_way;
}
