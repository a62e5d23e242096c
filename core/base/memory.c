/* Allocates memory; a test can let an allocation fail.  Touches the heap. */
#include "base/memory.h"

#include "base/fault.h"

#include <stdlib.h>
#include <string.h>

void *memory_new(size_t size)
{
    return memory_new_array(1, size);
}

void *memory_new_array(size_t count, size_t size)
{
    size_t product;

    /* calloc() checks this as well, but the sanitizers' calloc() then ends the process. */
    if (fault_allocation() || __builtin_mul_overflow(count, size, &product))
        return NULL;
    /* A block of 0 bytes is not NULL either: NULL only means that there is no memory left. */
    return calloc(1, product > 0 ? product : 1);
}

void *memory_resize(void *old, size_t size)
{
    if (fault_allocation())
        return NULL;
    return realloc(old, size > 0 ? size : 1);
}

void *memory_larger(const void *old, size_t count, size_t space, size_t size)
{
    void *larger = memory_new_array(space, size);

    if (larger != NULL && count > 0)
        memcpy(larger, old, count * size);
    return larger;
}

int memory_room(void *array, size_t count, size_t size)
{
    void *old, *larger;

    if (count != 0 && (count < 16 || (count & (count - 1)) != 0))
        return 1;
    memcpy(&old, array, sizeof old);
    larger = memory_resize(old, (count == 0 ? 16 : 2 * count) * size);
    if (larger == NULL)
        return 0;
    memcpy(array, &larger, sizeof larger);
    return 1;
}

void *memory_dup(const void *data, size_t size)
{
    char *copy = memory_new_array(1, size);

    if (copy != NULL && size > 0)
        memcpy(copy, data, size);
    return copy;
}

char *memory_dup_text(const char *text)
{
    return text == NULL ? NULL : memory_dup(text, strlen(text) + 1);
}

void memory_free(void *block)
{
    free(block);
}
