/* Finds, makes and drops the entries of a table of keys.  Touches only that table, a bucket under
 * its mutex. */
#include "client/keys.h"

#include "base/memory.h"
#include "base/text.h"

#include <string.h>

void keys_init(key_table *table, size_t entry_size)
{
    table->entry_size = entry_size;
    for (int i = 0; i < KEY_BUCKETS; i++)
        pthread_mutex_init(&table->buckets[i].mutex, NULL);
}

void keys_destroy(key_table *table)
{
    for (int i = 0; i < KEY_BUCKETS; i++)
        pthread_mutex_destroy(&table->buckets[i].mutex);
}

key_bucket *keys_lock(key_table *table, const char *key)
{
    key_bucket *bucket = &table->buckets[text_hash(key) % KEY_BUCKETS];

    pthread_mutex_lock(&bucket->mutex);
    return bucket;
}

void *keys_find(const key_bucket *bucket, const char *key)
{
    key_entry *entry = bucket->entries;

    while (entry != NULL && strcmp(entry->key, key) != 0)
        entry = entry->next;
    return entry;
}

void *keys_find_or_make(const key_table *table, key_bucket *bucket, const char *key)
{
    key_entry *entry = keys_find(bucket, key);
    size_t size = strlen(key) + 1;

    if (entry != NULL)
        return entry;
    entry = memory_new(table->entry_size + size);
    if (entry == NULL)
        return NULL;
    entry->key = memcpy((char *)entry + table->entry_size, key, size);
    entry->next = bucket->entries;
    bucket->entries = entry;
    return entry;
}

void keys_drop(key_bucket *bucket, void *entry)
{
    key_entry **link = &bucket->entries;

    while (*link != entry)
        link = &(*link)->next;
    *link = (*link)->next;
    memory_free(entry);
}
