#include "kinds/kinds.h"

#include <tradelock/admin.h>

#include <string.h>

kind tested;

void kind_choose(int argc, char **argv)
{
    static const char *const names[KINDS] = {"lease", "rw", "row"};

    for (tested = 0; tested < KINDS; tested++)
        if (argc > 1 && strcmp(argv[1], names[tested]) == 0)
            return;
    server_panic("usage: %s lease|rw|row", argv[0]);
}

any_lock any_new(tl_client *client, const char *resource, int64_t lease_ms)
{
    return any_new_for(client, resource, lease_ms, 600000);
}

any_lock any_new_for(tl_client *client, const char *resource, int64_t lease_ms, int64_t max_hold_ms)
{
    tl_mutex_options options = lease_options(lease_ms);
    tl_rw_options of_rw = rw_options(lease_ms);
    any_lock lock = {NULL, NULL};

    options.max_hold_ms = of_rw.max_hold_ms = max_hold_ms;
    if ((tested == RW ? tl_rw_new(&lock.rw, client, resource, &of_rw)
                      : tl_mutex_new(&lock.mutex, client, resource, &options)) != TL_OK)
        server_panic("no lock: %s", tl_error_message());
    return lock;
}

any_lock any_taken(tl_client *client, const char *resource, int64_t lease_ms)
{
    any_lock lock = any_new(client, resource, lease_ms);
    tl_status status = any_take(lock, 0);

    if (status != TL_GRANTED)
        server_panic("not granted: %s: %s", tl_status_name(status), tl_error_message());
    return lock;
}

void any_free(any_lock lock)
{
    tl_mutex_free(lock.mutex);
    tl_rw_free(lock.rw);
}

tl_status any_take(any_lock lock, int64_t wait_ms)
{
    return lock.rw != NULL ? tl_rw_write(lock.rw, wait_ms) : tl_mutex_lock(lock.mutex, wait_ms);
}

tl_status any_unlock(any_lock lock)
{
    return lock.rw != NULL ? tl_rw_unlock(lock.rw) : tl_mutex_unlock(lock.mutex);
}

tl_status any_renew(any_lock lock, int64_t lease_ms)
{
    return lock.rw != NULL ? tl_rw_renew(lock.rw, lease_ms) : tl_mutex_renew(lock.mutex, lease_ms);
}

tl_status any_guard_with(any_lock lock, MYSQL *caller, unsigned flags)
{
    return lock.rw != NULL ? tl_rw_guard(lock.rw, caller, flags)
                           : tl_mutex_guard(lock.mutex, caller, flags);
}

tl_status any_done_with(any_lock lock, MYSQL *caller, unsigned flags)
{
    return tl_rw_done(lock.rw, caller, flags);
}

tl_status any_guard(any_lock lock, MYSQL *caller)
{
    return any_guard_with(lock, caller, 0);
}

tl_status any_force(tl_client *client, const char *resource, uint64_t fence)
{
    return tested == RW ? tl_holder_unlock(client, resource, 1, fence, "ann", "hangs")
                        : tl_resource_unlock(client, resource, fence, "ann", "hangs");
}

int64_t any_remaining_ms(any_lock lock)
{
    return lock.rw != NULL ? tl_rw_remaining_ms(lock.rw) : tl_mutex_remaining_ms(lock.mutex);
}

uint64_t any_fence(any_lock lock)
{
    return lock.rw != NULL ? tl_rw_fence(lock.rw) : tl_mutex_fence(lock.mutex, NULL);
}

tl_status any_try(tl_client *client, const char *resource)
{
    return tested == RW ? try_read(client, resource) : try_once(client, resource);
}

tl_status any_take_when_free(tl_client *client, const char *resource)
{
    return tested == RW ? write_when_free(client, resource) : try_once(client, resource);
}
