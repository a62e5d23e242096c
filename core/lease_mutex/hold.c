/* Makes, shares and frees holds, and fills the step that a handle makes under one.  Never asks the
 * server. */
#include "lease_mutex/mutex.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

tl_status mutex_check(const tl_mutex *m)
{
    if (m == NULL)
        return error_set(TL_INVALID, "mutex is NULL");
    return client_check(m->base.client);
}

uint64_t mutex_thread(void)
{
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t mine;

    if (mine == 0)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

void mutex_fill_step(tl_mutex *m, resource_step *s)
{
    memset(s, 0, sizeof *s);
    s->resources = m->hold->grant.names;
    s->count = m->hold->grant.count;
    s->token = m->base.next_token;
    s->held_token = m->hold->grant.token;
    s->thread_no = m->base.thread_no;
    s->log_no = m->base.log_no[0] != '\0' ? m->base.log_no : NULL;
    s->session_id = life_session_id(m->base.life);
    s->lease_ms = m->options.lease_ms > 0 ? m->options.lease_ms : -1;
    s->max_hold_ms = m->options.max_hold_ms;
    s->min_hold_ms = m->options.min_hold_ms > 0 ? m->options.min_hold_ms : -1;
    s->payload = m->payload;
    s->payload_size = m->options.payload_size;
    s->remark = m->remark[0] != '\0' ? m->remark : NULL;
    s->actor = m->actor[0] != '\0' ? m->actor : NULL;
}

/* ---------------------------------------------------------------------- holds -- */

static int compare(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

void hold_free(hold *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; h->grant.names != NULL && i < h->grant.count; i++)
        memory_free((char *)(uintptr_t)h->grant.names[i]);
    memory_free((void *)(uintptr_t)h->grant.names);
    memory_free(h->fences);
    memory_free(h);
}

static tl_status copy_names(hold *h, const char *const *resources, size_t count)
{
    const char **names = memory_new_array(count, sizeof *names);

    h->grant.names = names;
    h->fences = memory_new_array(count, sizeof *h->fences);
    if (names == NULL || h->fences == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    h->grant.count = count;
    for (size_t i = 0; i < count; i++) {
        names[i] = memory_dup_text(resources[i]);
        if (names[i] == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    }
    qsort(names, count, sizeof *names, compare);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return error_set(TL_INVALID, "resource %s is named twice", names[i]);
    return TL_OK;
}

void mutex_use_hold(tl_mutex *m, hold *h)
{
    m->hold = h;
    m->base.grant = h != NULL ? &h->grant : NULL;
}

tl_status mutex_make_hold(tl_mutex *m, const char *const *resources, size_t count)
{
    hold *h = memory_new(sizeof *h);

    if (h == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a mutex");
    m->own = h;
    mutex_use_hold(m, h);
    h->client = m->base.client;
    h->loss = m->options.loss;
    h->loss_context = m->options.loss_context;
    h->by_thread = (m->options.flags & TL_MUTEX_BY_THREAD) != 0;
    h->refs = 1;
    return copy_names(h, resources, count);
}

void mutex_leave_hold(tl_mutex *m)
{
    hold *shared = m->hold;
    unsigned left;
    leases *l;

    if (shared == m->own || leases_of(m->base.client, &l) != TL_OK)
        return;
    mutex_use_hold(m, m->own);
    leases_lock(l);
    left = --shared->refs;
    leases_unlock(l);
    if (left == 0)
        hold_free(shared);
}

tl_status mutex_own_hold(tl_mutex *m, leases *l)
{
    hold *shared = m->own;
    const char *resource = shared->grant.names[0];
    tl_status status;
    unsigned left;
    int in_use;

    leases_lock(l);
    in_use = shared->depth > 0;
    leases_unlock(l);
    if (!in_use)
        return TL_OK;
    status = mutex_make_hold(m, &resource, 1);
    if (status != TL_OK) {
        if (m->own != shared)
            hold_free(m->own);
        m->own = shared;
        mutex_use_hold(m, shared);
        return status;
    }
    leases_lock(l);
    left = --shared->refs;
    leases_unlock(l);
    if (left == 0)
        hold_free(shared);
    return TL_OK;
}
