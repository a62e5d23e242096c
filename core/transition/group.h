/*
 * The groups that steps of many threads are carried out in: one statement and one commit for all of
 * them.  What an item is, and how it is carried out, its class says; groups hold items of one
 * class, and all classes of an engine share its places.
 */
#ifndef TL_TRANSITION_GROUP_H
#define TL_TRANSITION_GROUP_H

#include "store/group.h"
#include "transition/transition.h"

/* In one statement at most: items, and bytes. */
#define GROUP_ROWS STORE_GROUP_MAX
#define GROUP_BYTES STORE_GROUP_BYTES

/* Two items go together when they point to the same class. */
typedef struct group_class {
    /* About how many bytes of the statement the item takes. */
    size_t (*size)(const void *item);
    /* One try alone, on the item's own thread, before any other may have its place; 0 when it has
     * to go on with alone(). */
    int (*once)(transition_engine *engine, void *item, int64_t deadline_ms);
    /* To the end, alone. */
    void (*alone)(transition_engine *engine, void *item, int64_t deadline_ms);
    /* All of them, at most GROUP_ROWS, on the thread of one of them.  An item that this leaves
     * without an end, its own thread brings there with rest(). */
    void (*together)(transition_engine *engine, void **items, size_t count, int64_t deadline_ms);
    void (*rest)(transition_engine *engine, void *item, int64_t deadline_ms);
    /* The deadline came before any place did; nothing was tried. */
    void (*too_late)(void *item);
} group_class;

typedef struct group_queue group_queue;

/* connections: more groups than these cannot be under way.  TL_OK or TL_NO_MEMORY. */
tl_status group_queue_new(group_queue **out, unsigned connections);
void group_queue_free(group_queue *queue);

/* Carries the item out, alone where a place is free for it, else together with what waits. */
void group_run(transition_engine *engine, const group_class *class, void *item,
               int64_t deadline_ms);

/* For the statistics: so many went together. */
void group_count(transition_engine *engine, size_t count);

#endif
