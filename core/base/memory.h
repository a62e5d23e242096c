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
/* A larger array that begins as the old one does, which is still there.  Whoever puts it in the place
 * of the old one first, and then frees that, leaves a child that is forked meanwhile one to free. */
void *memory_larger(const void *old, size_t count, size_t space, size_t size);
/* Has room for one more of `size` bytes behind `count`, in an array that grows by this call alone: it
 * is given by the address of its pointer, which begins as NULL.  0: there is no memory left, and the
 * array is as it was. */
int memory_room(void *array, size_t count, size_t size);
void *memory_dup(const void *data, size_t size);
char *memory_dup_text(const char *text); /* NULL gives NULL */
void memory_free(void *block);

#endif
