/* Makes and frees a handle, and tells what it knows without a round trip. */
#include "lease_mutex/mutex.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <tradelock/layer.h>

#include <string.h>

/* A handle that is freed while it holds the lock tries this long to unlock. */
#define FREE_BUDGET_MS 1000

/* ------------------------------------------------------------ making a handle -- */

static tl_status check_options(const tl_mutex_options *o, size_t count)
{
    tl_status status;

    if (o == NULL || o->version != TL_MUTEX_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or was not made with "
                                     "TL_MUTEX_OPTIONS_INIT");
    if (o->flags & ~TL_MUTEX_BY_THREAD)
        return error_set(TL_INVALID, "flags has bits that this version does not know");
    if ((o->flags & TL_MUTEX_BY_THREAD) && count > 1)
        return error_set(TL_INVALID, "a lock of several resources is re-entrant by its "
                                     "handle only");
    if (o->payload_size > TL_RESOURCE_PAYLOAD_MAX)
        return error_set(TL_INVALID, "the payload has %zu bytes; at most %d are kept",
                         o->payload_size, TL_RESOURCE_PAYLOAD_MAX);
    if (o->payload == NULL && o->payload_size > 0)
        return error_set(TL_INVALID, "payload is NULL and payload_size is not 0");
    status = resource_check_texts(o->remark, o->actor);
    if (status == TL_OK)
        status = resource_check_times(o->lease_ms, o->max_hold_ms);
    if (status == TL_OK && (o->min_hold_ms < 0 || o->min_hold_ms > TL_HOLD_MAX_MS))
        status = error_set(TL_INVALID, "min_hold_ms is %lld; it must be 0 to %lld",
                           (long long)o->min_hold_ms, (long long)TL_HOLD_MAX_MS);
    return status;
}

static tl_status check_names(const char *const *resources, size_t count)
{
    tl_status status = TL_OK;

    if (resources == NULL || count == 0)
        return error_set(TL_INVALID, "no resource is named");
    if (count > TL_RESOURCES_MAX)
        return error_set(TL_INVALID, "%zu resources at once; at most %d are allowed", count,
                         TL_RESOURCES_MAX);
    for (size_t i = 0; i < count && status == TL_OK; i++)
        status = text_check_name("resource", resources[i], TL_RESOURCE_MAX);
    return status;
}

static tl_status copy_options(tl_mutex *m, const tl_mutex_options *o)
{
    m->options = *o;
    if (m->options.max_hold_ms == 0)
        m->options.max_hold_ms = o->lease_ms;
    text_copy(m->remark, sizeof m->remark, o->remark);
    text_copy(m->actor, sizeof m->actor, o->actor);
    if (o->payload_size > 0) {
        m->payload = memory_dup(o->payload, o->payload_size);
        if (m->payload == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for the payload");
    }
    return TL_OK;
}

static void free_memory(tl_mutex *m)
{
    tl_client_detach(m->base.client);
    hold_free(m->own);
    db_result_free(&m->row);
    memory_free(m->payload);
    memory_free(m);
}

tl_status tl_mutex_new_set(tl_mutex **out, tl_client *client, const char *const *resources,
                           size_t count, const tl_mutex_options *options)
{
    leases *l;
    tl_mutex *m;
    tl_status status;

    error_clear();
    if (out == NULL)
        return error_set(TL_INVALID, "out is NULL");
    status = client_check(client);
    if (status == TL_OK)
        status = check_names(resources, count);
    if (status == TL_OK)
        status = check_options(options, count);
    if (status == TL_OK)
        status = leases_of(client, &l);
    if (status != TL_OK)
        return status;
    m = memory_new(sizeof *m);
    if (m == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    (void)tl_client_attach(client);
    handle_init(&m->base, &mutex_method, client, NULL);
    m->view.version = TL_RESOURCE_VIEW_VERSION;
    status = copy_options(m, options);
    if (status == TL_OK)
        status = mutex_make_hold(m, resources, count);
    if (status != TL_OK) {
        free_memory(m);
        return status;
    }
    *out = m;
    return TL_OK;
}

tl_status tl_mutex_new(tl_mutex **out, tl_client *client, const char *resource,
                       const tl_mutex_options *options)
{
    return tl_mutex_new_set(out, client, &resource, 1, options);
}

/* -------------------------------------------------------------------- freeing -- */

/* Leaves the hold; unlocks if this handle was the last one. */
static void give_up(tl_mutex *m)
{
    leases *l;
    int last;

    if (m->base.state == LOCK_ASK_UNKNOWN && mutex_ask_once(m) != TL_GRANTED)
        return;
    if ((m->base.state != LOCK_HELD && m->base.state != LOCK_END_UNKNOWN) ||
        leases_of(m->base.client, &l) != TL_OK)
        return;
    leases_lock(l);
    m->hold->depth -= m->depth;
    last = m->hold->depth == 0;
    m->depth = 0;
    leases_unlock(l);
    /* The watcher must not take the holder's own unlock for a loss. */
    if (last)
        leases_pause(l, m->hold);
    if (last && mutex_release(m, FREE_BUDGET_MS) != TL_OK)
        log_line(&m->base.client->logger, TL_WARNING, NULL, 0,
                 "a mutex of %s was freed and could not be unlocked: %s", m->hold->grant.names[0],
                 tl_error_message());
    if (last)
        leases_drop(l, m->hold);
}

/* The handle's own hold lives on while other handles share it. */
static void detach_own(tl_mutex *m)
{
    leases *l;
    unsigned left;

    if (leases_of(m->base.client, &l) != TL_OK)
        return;
    leases_lock(l);
    left = --m->own->refs;
    leases_unlock(l);
    if (left > 0)
        m->own = NULL;
}

void tl_mutex_free(tl_mutex *m)
{
    if (m == NULL)
        return;
    /* In a child of a fork the lock is the parent's. */
    if (client_check(m->base.client) == TL_OK) {
        give_up(m);
        mutex_leave_hold(m);
        detach_own(m);
    }
    free_memory(m);
}

/* ------------------------------------------------------------- what it knows -- */

int64_t tl_mutex_remaining_ms(const tl_mutex *m)
{
    if (mutex_check(m) != TL_OK || m->base.state != LOCK_HELD)
        return 0;
    return grant_left_ms(&m->hold->grant);
}

unsigned tl_mutex_depth(const tl_mutex *m)
{
    return m != NULL ? m->depth : 0;
}

uint64_t tl_mutex_fence(const tl_mutex *m, const char *resource)
{
    if (m == NULL || (m->base.state != LOCK_HELD && m->base.state != LOCK_END_UNKNOWN))
        return 0;
    for (size_t i = 0; i < m->hold->grant.count; i++)
        if (resource == NULL || strcmp(m->hold->grant.names[i], resource) == 0)
            return m->hold->fences[i];
    return 0;
}

const tl_resource_view *tl_mutex_view(const tl_mutex *m)
{
    static const tl_resource_view nothing = {.version = TL_RESOURCE_VIEW_VERSION};

    return m != NULL ? &m->view : &nothing;
}
