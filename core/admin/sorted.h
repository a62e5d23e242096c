/* Looking up in sorted arrays. */
#ifndef TL_ADMIN_SORTED_H
#define TL_ADMIN_SORTED_H

#include <stddef.h>

/* The place of the key: of the first element that does not stand before it. */
static inline size_t sorted_place(const void *key, const void *array, size_t count, size_t size,
                                  int (*compare)(const void *element, const void *key))
{
    const char *elements = array;
    size_t from = 0, to = count;

    while (from < to) {
        const size_t middle = from + (to - from) / 2;

        if (compare(elements + middle * size, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

#endif
