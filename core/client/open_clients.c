/*
 * Remembers which clients are open.  It has no mutex, since a fork could leave that locked in the
 * child.  Beyond PLACES clients only their number is known; while there are such clients, every
 * pointer counts as open.  Touches its own table only.
 */
#include "client/open_clients.h"

#include <stdatomic.h>
#include <stddef.h>

#define PLACES 64

static _Atomic(const tl_client *) places[PLACES];
static atomic_size_t without_a_place;

void open_clients_add(tl_client *client)
{
    for (size_t i = 0; i < PLACES; i++) {
        const tl_client *nobody = NULL;

        if (atomic_compare_exchange_strong(&places[i], &nobody, client))
            return;
    }
    atomic_fetch_add(&without_a_place, 1);
}

static size_t place_of(const tl_client *client)
{
    size_t i = 0;

    while (i < PLACES && atomic_load(&places[i]) != client)
        i++;
    return i;
}

int open_clients_has(const tl_client *client)
{
    return place_of(client) < PLACES || atomic_load(&without_a_place) > 0;
}

void open_clients_remove(const tl_client *client)
{
    size_t place = place_of(client);

    if (place < PLACES)
        atomic_store(&places[place], NULL);
    else
        atomic_fetch_sub(&without_a_place, 1);
}
