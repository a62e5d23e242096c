/*
 * Memory.  All of core allocates here, so that a test can let the n-th allocation fail.  Each
 * function returns NULL when there is no memory left; memory_free(NULL) does nothing.
 */
#ifndef TL_BASE_MEMORY_H
#define TL_BASE_MEMORY_H

#include <stddef.h>

void *memory_new(size_t size);                     /* filled with zeros */
void *memory_new_array(size_t count, size_t size); /* the same; checks the product */
/* As realloc(): after NULL the old block is still there.  New bytes have no defined value. */
void *memory_resize(void *old, size_t size);
void *memory_dup(const void *data, size_t size);
char *memory_dup_text(const char *text); /* NULL gives NULL */
void memory_free(void *block);

#endif
