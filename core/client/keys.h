/*
 * A table of the keys that threads of this process use now.  The user of the table says what an
 * entry is, and drops it when no thread needs it any more.
 */
#ifndef TL_CLIENT_KEYS_H
#define TL_CLIENT_KEYS_H

#include <pthread.h>
#include <stddef.h>

#define KEY_BUCKETS 64

/* The first member of the user's entry.  A new entry is filled with zeros. */
typedef struct key_entry {
    struct key_entry *next;
    const char *key;
} key_entry;

typedef struct key_bucket {
    pthread_mutex_t mutex;
    key_entry *entries; /* under the mutex, with all their members */
} key_bucket;

typedef struct key_table {
    size_t entry_size;
    key_bucket buckets[KEY_BUCKETS];
} key_table;

void keys_init(key_table *table, size_t entry_size);
void keys_destroy(key_table *table);

/* The bucket of this key, with its mutex held. */
key_bucket *keys_lock(key_table *table, const char *key);
/* Needs, all: bucket->mutex held. */
void *keys_find(const key_bucket *bucket, const char *key); /* NULL: the key has no entry */
/* NULL when out of memory. */
void *keys_find_or_make(const key_table *table, key_bucket *bucket, const char *key);
void keys_drop(key_bucket *bucket, void *entry); /* and frees the entry */

#endif
