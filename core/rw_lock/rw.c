/* Makes and frees a handle, and tells what it knows without a round trip. */
#include "rw_lock/rw.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <tradelock/layer.h>

/* A handle that is freed while it holds the lock tries this long to unlock. */
#define FREE_BUDGET_MS 1000

static tl_status check_options(const tl_rw_options *o)
{
    tl_status status;

    if (o == NULL || o->version != TL_RW_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or was not made with "
                                     "TL_RW_OPTIONS_INIT");
    status = resource_check_texts(o->remark, o->actor);
    return status == TL_OK ? resource_check_times(o->lease_ms, o->max_hold_ms) : status;
}

tl_status tl_rw_new(tl_rw **out, tl_client *client, const char *resource,
                    const tl_rw_options *options)
{
    tl_rw *rw;
    tl_status status;

    error_clear();
    if (out == NULL)
        return error_set(TL_INVALID, "out is NULL");
    status = client_check(client);
    if (status == TL_OK)
        status = text_check_name("resource", resource, TL_RESOURCE_MAX);
    if (status == TL_OK)
        status = check_options(options);
    if (status != TL_OK)
        return status;
    rw = memory_new(sizeof *rw);
    if (rw == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a read-write lock");
    (void)tl_client_attach(client);
    handle_init(&rw->base, &rw_method, client, &rw->grant);
    rw->lease_ms = options->lease_ms;
    rw->max_hold_ms = options->max_hold_ms != 0 ? options->max_hold_ms : options->lease_ms;
    text_copy(rw->resource, sizeof rw->resource, resource);
    rw->name = rw->resource;
    rw->grant.names = &rw->name;
    rw->grant.count = 1;
    text_copy(rw->remark, sizeof rw->remark, options->remark);
    text_copy(rw->actor, sizeof rw->actor, options->actor);
    rw->view.version = TL_HOLDER_VIEW_VERSION;
    *out = rw;
    return TL_OK;
}

void tl_rw_free(tl_rw *rw)
{
    if (rw == NULL)
        return;
    /* In a child of a fork the lock is the parent's. */
    if (client_check(rw->base.client) == TL_OK) {
        if (rw->base.state == LOCK_ASK_UNKNOWN)
            (void)rw_ask_again(rw);
        if ((rw->base.state == LOCK_HELD || rw->base.state == LOCK_END_UNKNOWN) &&
            rw_release(rw, FREE_BUDGET_MS) != TL_OK)
            log_line(&rw->base.client->logger, TL_WARNING, NULL, rw->grant.fence,
                     "a lock of %s was freed and could not be unlocked: %s", rw->resource,
                     tl_error_message());
    }
    tl_client_detach(rw->base.client);
    memory_free(rw);
}

/* ------------------------------------------------------------- what it knows -- */

int64_t tl_rw_remaining_ms(const tl_rw *rw)
{
    if (rw_check(rw) != TL_OK || rw->base.state != LOCK_HELD)
        return 0;
    return grant_left_ms(&rw->grant);
}

static int is_held(const tl_rw *rw)
{
    return rw != NULL && (rw->base.state == LOCK_HELD || rw->base.state == LOCK_END_UNKNOWN);
}

tl_rw_mode tl_rw_held(const tl_rw *rw)
{
    if (!is_held(rw))
        return TL_RW_NONE;
    return rw->downgrading.is_open ? TL_RW_READ : rw->mode;
}

uint64_t tl_rw_fence(const tl_rw *rw)
{
    return is_held(rw) ? rw->grant.fence : 0;
}

const tl_holder_view *tl_rw_view(const tl_rw *rw)
{
    static const tl_holder_view nothing = {.version = TL_HOLDER_VIEW_VERSION};

    return rw != NULL ? &rw->view : &nothing;
}
