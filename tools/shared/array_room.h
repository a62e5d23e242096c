/*
 * Arrays and texts that grow at their end.  Each is given by the address of its pointer, which begins
 * as NULL.  0: there is no memory, and what was there is as it was.
 */
#ifndef ARRAY_ROOM_H
#define ARRAY_ROOM_H

#include <stdlib.h>
#include <string.h>

/* Has room for one more behind `count`, in an array that grows by this call alone. */
static inline int array_room(void *array, size_t count, size_t size)
{
    void *old, *larger;

    if (count != 0 && (count < 16 || (count & (count - 1)) != 0))
        return 1;
    memcpy(&old, array, sizeof old);
    larger = realloc(old, (count == 0 ? 16 : 2 * count) * size);
    if (larger == NULL)
        return 0;
    memcpy(array, &larger, sizeof larger);
    return 1;
}

/* Has room for so many bytes. */
static inline int text_room(char **text, size_t *space, size_t needed)
{
    char *larger;

    if (*text != NULL && needed <= *space)
        return 1;
    larger = realloc(*text, 2 * needed + 1);
    if (larger == NULL)
        return 0;
    *text = larger;
    *space = 2 * needed + 1;
    return 1;
}

#endif
