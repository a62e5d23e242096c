#include "transition/server_clock.h"

#define FRESH_US 1000000
#define EXACT_US 100000

void server_clock_set(server_clock *self, uint64_t server_us, int64_t before_us, int64_t after_us)
{
    if (after_us - before_us > EXACT_US)
        return;
    /* In this order: whoever sees the moment sees what was read then or later; or what another
     * thread reads at the same time. */
    atomic_store(&self->ahead_us, (int64_t)server_us - before_us);
    atomic_store(&self->read_us, before_us);
}

uint64_t server_clock_us(const server_clock *self, int64_t now_us)
{
    const int64_t read_us = atomic_load(&self->read_us);

    if (read_us == 0 || now_us - read_us > FRESH_US)
        return 0;
    return (uint64_t)(atomic_load(&self->ahead_us) + now_us);
}
