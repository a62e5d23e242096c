#include "rw_lock/rw.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"

#include <tradelock/layer.h>

#include <string.h>

/* A handle that is freed while it holds the lock tries this long to unlock. */
#define FREE_BUDGET_MS 1000

static tl_status check_times(const tl_rw_options *o)
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
        return error_set(TL_INVALID, "max_hold_ms is missing: a lock without an end "
                                     "could never be recovered");
    if (o->max_hold_ms != 0 && o->lease_ms > o->max_hold_ms)
        return error_set(TL_INVALID, "lease_ms is longer than max_hold_ms");
    return TL_OK;
}

static tl_status check_options(const tl_rw_options *o)
{
    if (o == NULL || o->version != TL_RW_OPTIONS_VERSION)
        return error_set(TL_INVALID, "options is NULL or was not made with "
                                     "TL_RW_OPTIONS_INIT");
    if (o->remark != NULL && strlen(o->remark) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "the remark has more than %d bytes", TL_REMARK_MAX);
    if (o->actor != NULL && strlen(o->actor) > sizeof((tl_rw *)0)->actor - 1)
        return error_set(TL_INVALID, "the actor's name has more than 63 bytes");
    if (text_check_utf8("remark", o->remark) != TL_OK ||
        text_check_utf8("actor", o->actor) != TL_OK)
        return TL_INVALID;
    return check_times(o);
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
    rw->client = client;
    rw->lease_ms = options->lease_ms;
    rw->max_hold_ms = options->max_hold_ms != 0 ? options->max_hold_ms : options->lease_ms;
    text_copy(rw->resource, sizeof rw->resource, resource);
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
    /* In a child after fork the lock is the parent's. */
    if (client_check(rw->client) == TL_OK) {
        if (rw->state == RW_ASK_UNKNOWN)
            (void)rw_ask_again(rw);
        if ((rw->state == RW_HELD || rw->state == RW_UNLOCK_UNKNOWN) &&
            rw_release(rw, FREE_BUDGET_MS) != TL_OK)
            log_line(&rw->client->logger, TL_WARNING, NULL, rw->fence,
                     "a lock of %s was freed and could not be unlocked: %s", rw->resource,
                     tl_error_message());
    }
    tl_client_detach(rw->client);
    memory_free(rw);
}

/* ------------------------------------------------------------- what it knows -- */

tl_status rw_check(const tl_rw *rw)
{
    if (rw == NULL)
        return error_set(TL_INVALID, "the lock is NULL");
    return client_check(rw->client);
}

tl_status rw_check_held(const tl_rw *rw)
{
    tl_status status = rw_check(rw);

    if (status != TL_OK)
        return status;
    switch (rw->state) {
    case RW_HELD:
    case RW_UNLOCK_UNKNOWN:
        return TL_OK;
    case RW_RELEASED:
        return error_set(TL_RELEASED, "this handle has released its lock already");
    case RW_LOST:
        return error_set(TL_LOST, "the lock was freed before it was unlocked");
    case RW_ASK_UNKNOWN:
        return error_set(TL_WRONG_STATE, "whether the lock was granted is not known yet: "
                                         "ask again first, or free the handle");
    case RW_NEW:
        break;
    }
    return error_set(TL_NOT_HELD, "the lock was not granted to this handle");
}

int64_t rw_remaining_ms(const tl_rw *rw)
{
    int64_t left_ms = clock_left_ms(rw->over_ms), session_ms;

    if (!rw->by_session)
        return left_ms;
    session_ms = life_left_ms(rw->life);
    return session_ms < left_ms ? session_ms : left_ms;
}

int64_t tl_rw_remaining_ms(const tl_rw *rw)
{
    if (rw_check(rw) != TL_OK || rw->state != RW_HELD)
        return 0;
    return rw_remaining_ms(rw);
}

static int is_held(const tl_rw *rw)
{
    return rw != NULL && (rw->state == RW_HELD || rw->state == RW_UNLOCK_UNKNOWN);
}

tl_rw_mode tl_rw_held(const tl_rw *rw)
{
    if (!is_held(rw))
        return TL_RW_NONE;
    return rw->downgrading.doubtful ? TL_RW_READ : rw->mode;
}

uint64_t tl_rw_fence(const tl_rw *rw)
{
    return is_held(rw) ? rw->fence : 0;
}

const tl_holder_view *tl_rw_view(const tl_rw *rw)
{
    static const tl_holder_view nothing = {.version = TL_HOLDER_VIEW_VERSION};

    return rw != NULL ? &rw->view : &nothing;
}

void rw_begin_step(tl_rw *rw, rw_step *s, int fresh_token)
{
    memset(s, 0, sizeof *s);
    if (fresh_token)
        random_token(rw->next_token);
    text_copy(rw->thread_no, sizeof rw->thread_no, tl_thread_uuid());
    text_copy(rw->log_no, sizeof rw->log_no, tl_log_uuid());
    s->resource = rw->resource;
    s->slot = rw->slot;
    s->token = rw->next_token;
    s->held_token = rw->token;
    s->fence = rw->fence;
    s->thread_no = rw->thread_no;
    s->log_no = rw->log_no[0] != '\0' ? rw->log_no : NULL;
    s->session_id = life_session_id(rw->life);
    s->by_session = rw->lease_ms == 0;
    s->max_hold_ms = rw->max_hold_ms;
    s->over_ms = rw->lease_ms > 0 ? rw->lease_ms : rw->max_hold_ms;
    s->remark = rw->remark[0] != '\0' ? rw->remark : NULL;
    s->actor = rw->actor[0] != '\0' ? rw->actor : NULL;
}
