/* Hands each call to the worker that there is. */
#include "either.h"

#include <stddef.h>

tl_status either_start(either *self, const host *here, const tl_worker_options *options)
{
    return here->all != NULL ? tl_fleet_worker_start(&self->all, here->all, options)
                             : tl_worker_start(&self->one, here->workflows, options);
}

void either_stop(const either *self)
{
    tl_fleet_worker_stop(self->all);
    tl_worker_stop(self->one);
}

tl_status either_wait(const either *self, int64_t wait_ms)
{
    return self->all != NULL ? tl_fleet_worker_wait(self->all, wait_ms)
                             : tl_worker_wait(self->one, wait_ms);
}

tl_status either_check(const either *self)
{
    return self->all != NULL ? tl_fleet_worker_check(self->all) : tl_worker_check(self->one);
}

tl_status either_count(const either *self, tl_worker_counts *counts)
{
    return self->all != NULL ? tl_fleet_worker_count(self->all, counts)
                             : tl_worker_count(self->one, counts);
}

void either_free(either *self)
{
    tl_fleet_worker_free(self->all);
    tl_worker_free(self->one);
    self->all = NULL;
    self->one = NULL;
}

tl_client *either_client(const host *here)
{
    tl_client *client = NULL;

    if (here->fleet == NULL)
        return here->client;
    for (size_t i = 0; i < tl_fleet_size(here->fleet); i++)
        if (tl_fleet_shard_client(here->fleet, i, &client) == TL_OK &&
            tl_client_alive_ms(client) > 0)
            return client;
    return NULL;
}
