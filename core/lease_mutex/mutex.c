#include "lease_mutex/mutex.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/thread_context.h"

#include <tradelock/layer.h>

#include <stdlib.h>
#include <string.h>

/* A handle that is freed while it holds the lock tries this long to unlock. */
#define FREE_BUDGET_MS 1000

/* ------------------------------------------------------------ making a handle -- */

static tl_status check_times(const tl_mutex_options *o)
{
    if (o->lease_ms < 0 || o->lease_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID,
                         "lease_ms is %lld; it must be 0 (renewed by the "
                         "session) to %lld",
                         (long long)o->lease_ms, (long long)TL_HOLD_MAX_MS);
    if (o->max_hold_ms < 0 || o->max_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID, "max_hold_ms is %lld; it must be 1 to %lld",
                         (long long)o->max_hold_ms, (long long)TL_HOLD_MAX_MS);
    if (o->max_hold_ms == 0 && o->lease_ms == 0)
        return error_set(TL_INVALID, "max_hold_ms is missing: a lock without an end could "
                                     "never be recovered");
    if (o->max_hold_ms != 0 && o->lease_ms > o->max_hold_ms)
        return error_set(TL_INVALID, "lease_ms is longer than max_hold_ms");
    if (o->min_hold_ms < 0 || o->min_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID, "min_hold_ms is %lld; it must be 0 to %lld",
                         (long long)o->min_hold_ms, (long long)TL_HOLD_MAX_MS);
    return TL_OK;
}

static tl_status check_options(const tl_mutex_options *o, size_t count)
{
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
    if (o->remark != NULL && strlen(o->remark) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "the remark has more than %d bytes", TL_REMARK_MAX);
    if (o->actor != NULL && strlen(o->actor) > sizeof((tl_mutex *)0)->actor - 1)
        return error_set(TL_INVALID, "the actor's name has more than 63 bytes");
    if (text_check_utf8("remark", o->remark) != TL_OK ||
        text_check_utf8("actor", o->actor) != TL_OK)
        return TL_INVALID;
    return check_times(o);
}

static int compare(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
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

static void hold_free(hold *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; h->resources != NULL && i < h->count; i++)
        memory_free((char *)(uintptr_t)h->resources[i]);
    memory_free(h->resources);
    memory_free(h->fences);
    memory_free(h);
}

static tl_status copy_names(hold *h, const char *const *resources, size_t count)
{
    h->resources = memory_new_array(count, sizeof *h->resources);
    h->fences = memory_new_array(count, sizeof *h->fences);
    if (h->resources == NULL || h->fences == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    h->count = count;
    for (size_t i = 0; i < count; i++) {
        h->resources[i] = memory_dup_text(resources[i]);
        if (h->resources[i] == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    }
    qsort(h->resources, count, sizeof *h->resources, compare);
    for (size_t i = 1; i < count; i++)
        if (strcmp(h->resources[i - 1], h->resources[i]) == 0)
            return error_set(TL_INVALID, "resource %s is named twice", h->resources[i]);
    return TL_OK;
}

static tl_status make_hold(tl_mutex *m, const char *const *resources, size_t count)
{
    hold *h = memory_new(sizeof *h);

    if (h == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    m->own = m->hold = h;
    h->client = m->client;
    h->loss = m->options.loss;
    h->loss_context = m->options.loss_context;
    h->by_thread = (m->options.flags & TL_MUTEX_BY_THREAD) != 0;
    h->refs = 1;
    return copy_names(h, resources, count);
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
    tl_client_detach(m->client);
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
    m->client = client;
    m->view.version = TL_RESOURCE_VIEW_VERSION;
    status = copy_options(m, options);
    if (status == TL_OK)
        status = make_hold(m, resources, count);
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

void mutex_leave_hold(tl_mutex *m)
{
    hold *shared = m->hold;
    unsigned left;
    leases *l;

    if (shared == m->own || leases_of(m->client, &l) != TL_OK)
        return;
    m->hold = m->own;
    leases_lock(l);
    left = --shared->refs;
    leases_unlock(l);
    if (left == 0)
        hold_free(shared);
}

tl_status mutex_own_hold(tl_mutex *m, leases *l)
{
    hold *shared = m->own;
    const char *resource = shared->resources[0];
    tl_status status;
    unsigned left;
    int in_use;

    leases_lock(l);
    in_use = shared->depth > 0;
    leases_unlock(l);
    if (!in_use)
        return TL_OK;
    status = make_hold(m, &resource, 1);
    if (status != TL_OK) {
        if (m->own != shared)
            hold_free(m->own);
        m->own = m->hold = shared;
        return status;
    }
    leases_lock(l);
    left = --shared->refs;
    leases_unlock(l);
    if (left == 0)
        hold_free(shared);
    return TL_OK;
}

/* Gives up this handle's part of the hold; unlocks when it was the last. */
static void give_up(tl_mutex *m)
{
    leases *l;
    int last;

    if (m->state == MUTEX_ASK_UNKNOWN && mutex_ask_once(m) != TL_GRANTED)
        return;
    if ((m->state != MUTEX_HELD && m->state != MUTEX_UNLOCK_UNKNOWN) ||
        leases_of(m->client, &l) != TL_OK)
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
        log_line(&m->client->logger, TL_WARNING, NULL, 0,
                 "a mutex of %s was freed and could not be unlocked: %s", m->hold->resources[0],
                 tl_error_message());
    if (last)
        leases_drop(l, m->hold);
}

/* The handle's own hold lives on while other handles share it. */
static void detach_own(tl_mutex *m)
{
    leases *l;
    unsigned left;

    if (leases_of(m->client, &l) != TL_OK)
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
    /* In a child after fork the lock is the parent's. */
    if (client_check(m->client) == TL_OK) {
        give_up(m);
        mutex_leave_hold(m);
        detach_own(m);
    }
    free_memory(m);
}

/* ------------------------------------------------------------- what it knows -- */

tl_status mutex_check(const tl_mutex *m)
{
    if (m == NULL)
        return error_set(TL_INVALID, "mutex is NULL");
    return client_check(m->client);
}

uint64_t mutex_thread(void)
{
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t mine;

    if (mine == 0)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

int64_t hold_remaining_ms(const hold *h)
{
    int64_t until_ms = h->hold_until_ms, left_ms;

    if (atomic_load(&h->lost))
        return 0;
    if (h->lease_until_ms < until_ms)
        until_ms = h->lease_until_ms;
    left_ms = clock_left_ms(until_ms);
    if (h->lease_until_ms == CLOCK_NEVER) {
        int64_t session_ms = life_left_ms(h->life);

        return session_ms < left_ms ? session_ms : left_ms;
    }
    return left_ms;
}

int64_t tl_mutex_remaining_ms(const tl_mutex *m)
{
    if (mutex_check(m) != TL_OK || m->state != MUTEX_HELD)
        return 0;
    return hold_remaining_ms(m->hold);
}

unsigned tl_mutex_depth(const tl_mutex *m)
{
    return m != NULL ? m->depth : 0;
}

uint64_t tl_mutex_fence(const tl_mutex *m, const char *resource)
{
    if (m == NULL || (m->state != MUTEX_HELD && m->state != MUTEX_UNLOCK_UNKNOWN))
        return 0;
    for (size_t i = 0; i < m->hold->count; i++)
        if (resource == NULL || strcmp(m->hold->resources[i], resource) == 0)
            return m->hold->fences[i];
    return 0;
}

const tl_resource_view *tl_mutex_view(const tl_mutex *m)
{
    static const tl_resource_view nothing = {.version = TL_RESOURCE_VIEW_VERSION};

    return m != NULL ? &m->view : &nothing;
}

void mutex_begin_step(tl_mutex *m, resource_step *s, int fresh_token)
{
    memset(s, 0, sizeof *s);
    if (fresh_token)
        random_token(m->next_token);
    text_copy(m->thread_no, sizeof m->thread_no, tl_thread_uuid());
    text_copy(m->log_no, sizeof m->log_no, tl_log_uuid());
    s->resources = m->hold->resources;
    s->count = m->hold->count;
    s->token = m->next_token;
    s->held_token = m->hold->token;
    s->thread_no = m->thread_no;
    s->log_no = m->log_no[0] != '\0' ? m->log_no : NULL;
    s->session_id = life_session_id(m->life);
    s->lease_ms = m->options.lease_ms > 0 ? m->options.lease_ms : -1;
    s->max_hold_ms = m->options.max_hold_ms;
    s->min_hold_ms = m->options.min_hold_ms > 0 ? m->options.min_hold_ms : -1;
    s->payload = m->payload;
    s->payload_size = m->options.payload_size;
    s->remark = m->remark[0] != '\0' ? m->remark : NULL;
    s->actor = m->actor[0] != '\0' ? m->actor : NULL;
}
