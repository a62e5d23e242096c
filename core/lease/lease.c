/* Makes and frees handles and holds, and tells what they know by themselves.  Never asks the
 * server, but for unlocking what a freed handle holds. */
#include "lease/lease.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

#include <tradelock/layer.h>

#include <stdlib.h>
#include <string.h>

#define ACTOR_MAX 63
/* A handle that is freed while it holds the lock tries this long to unlock. */
#define FREE_BUDGET_MS 1000

/* ------------------------------------------------------------ what the caller says -- */

tl_status lease_check_names(const char *const *names, size_t count)
{
    if (names == NULL || count == 0)
        return error_set(TL_INVALID, "no resource is named");
    if (count > TL_RESOURCES_MAX)
        return error_set(TL_INVALID, "%zu resources at once; at most %d are allowed", count,
                         TL_RESOURCES_MAX);
    for (size_t i = 0; i < count; i++)
        TRY(text_check_name("resource", names[i], TL_RESOURCE_MAX));
    return TL_OK;
}

static tl_status check_times(int64_t lease_ms, int64_t max_hold_ms)
{
    if (lease_ms < 0 || lease_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID,
                         "lease_ms is %lld; it must be 0 (renewed by the "
                         "session) to %lld",
                         (long long)lease_ms, (long long)TL_HOLD_MAX_MS);
    if (max_hold_ms < 0 || max_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID, "max_hold_ms is %lld; it must be 1 to %lld",
                         (long long)max_hold_ms, (long long)TL_HOLD_MAX_MS);
    if (max_hold_ms == 0 && lease_ms == 0)
        return error_set(TL_INVALID, "max_hold_ms is missing: a lock without an end could "
                                     "never be recovered");
    if (max_hold_ms != 0 && lease_ms > max_hold_ms)
        return error_set(TL_INVALID, "lease_ms is longer than max_hold_ms");
    return TL_OK;
}

tl_status lease_check_terms(int64_t lease_ms, int64_t max_hold_ms, const char *remark,
                            const char *actor)
{
    if (remark != NULL && strlen(remark) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "the remark has more than %d bytes", TL_REMARK_MAX);
    if (actor != NULL && strlen(actor) > ACTOR_MAX)
        return error_set(TL_INVALID, "the actor's name has more than %d bytes", ACTOR_MAX);
    TRY(text_check_utf8("remark", remark));
    TRY(text_check_utf8("actor", actor));
    return check_times(lease_ms, max_hold_ms);
}

tl_status lease_check_ms(int64_t lease_ms)
{
    if (lease_ms > 0 && lease_ms <= TL_HOLD_MAX_MS)
        return TL_OK;
    return error_set(TL_INVALID, "lease_ms is %lld; it must be 1 to %lld", (long long)lease_ms,
                     (long long)TL_HOLD_MAX_MS);
}

/* ------------------------------------------------------------------------- holds -- */

static int compare(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;

    return strcmp(*left, *right);
}

/* One block of memory, whose end has the names. */
static hold *hold_new(const char *const *names, size_t count)
{
    size_t size = sizeof(hold) + count * (sizeof(uint64_t) + sizeof(char *));
    const char **sorted;
    hold *h;
    char *end;

    for (size_t i = 0; i < count; i++)
        size += strlen(names[i]) + 1;
    h = memory_new(size);
    if (h == NULL)
        return NULL;
    h->fences = (uint64_t *)(h + 1);
    sorted = (const char **)(h->fences + count);
    end = (char *)(sorted + count);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = end;
        end = stpcpy(end, names[i]) + 1;
    }
    qsort(sorted, count, sizeof *sorted, compare);
    h->grant.names = sorted;
    h->grant.count = count;
    return h;
}

void lease_use_hold(lease *l, hold *h)
{
    hold *before = l->hold;

    if (h != NULL)
        atomic_fetch_add(&h->refs, 1);
    l->hold = h;
    l->base.grant = h != NULL ? &h->grant : NULL;
    if (before != NULL && atomic_fetch_sub(&before->refs, 1) == 1)
        memory_free(before);
}

static tl_status make_hold(lease *l, const char *const *names, size_t count)
{
    hold *h = hold_new(names, count);

    if (h == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for a %s", l->base.method->lease->noun);
    lease_use_hold(l, h);
    for (size_t i = 1; i < count; i++)
        if (strcmp(h->grant.names[i - 1], h->grant.names[i]) == 0)
            return error_set(TL_INVALID, "resource %s is named twice", h->grant.names[i]);
    return TL_OK;
}

tl_status lease_own_hold(lease *l)
{
    return atomic_load(&l->hold->refs) > 1
               ? make_hold(l, l->hold->grant.names, l->hold->grant.count)
               : TL_OK;
}

/* ----------------------------------------------------------------------- handles -- */

tl_status lease_init(lease *l, const lock_method *method, tl_client *client,
                     const char *const *names, size_t count)
{
    (void)tl_client_attach(client);
    handle_init(&l->base, method, client, NULL);
    TRY(holds_of(client, &l->holds));
    return make_hold(l, names, count);
}

void lease_set_terms(lease *l, int64_t lease_ms, int64_t max_hold_ms, const char *remark,
                     const char *actor)
{
    l->lease_ms = lease_ms;
    l->max_hold_ms = max_hold_ms != 0 ? max_hold_ms : lease_ms;
    text_copy(l->remark, sizeof l->remark, remark);
    text_copy(l->actor, sizeof l->actor, actor);
}

/* Leaves the hold; unlocks if this handle was the last one. */
static void give_up(lease *l)
{
    hold *h;
    int is_last;

    if (l->base.state == LOCK_ASK_UNKNOWN)
        (void)l->base.method->lease->ask_once(l, 0);
    if (!lease_is_held(l))
        return;
    h = l->hold;
    holds_lock(l->holds);
    h->depth -= l->depth;
    is_last = h->depth == 0;
    l->depth = 0;
    holds_unlock(l->holds);
    if (!is_last)
        return;
    /* The watcher must not take the holder's own unlock for a loss. */
    holds_pause(l->holds, h);
    if (lease_release(l, FREE_BUDGET_MS) != TL_OK)
        log_line(&l->base.client->logger, TL_WARNING, NULL, h->grant.fence,
                 "a %s of %s was freed and could not be unlocked: %s", l->base.method->lease->noun,
                 h->grant.names[0], tl_error_message());
    holds_drop(l->holds, h);
}

void lease_clear(lease *l)
{
    /* In a child of a fork the lock is the parent's. */
    if (client_check(l->base.client) == TL_OK)
        give_up(l);
    tl_client_detach(l->base.client);
    lease_use_hold(l, NULL);
    memory_free(l->payload);
}

/* --------------------------------------------------------------- what it knows -- */

uint64_t lease_thread(void)
{
    static atomic_uint_fast64_t last;
    static _Thread_local uint64_t mine;

    if (mine == 0)
        mine = atomic_fetch_add(&last, 1) + 1;
    return mine;
}

int lease_is_held(const lease *l)
{
    return l->base.state == LOCK_HELD || l->base.state == LOCK_END_UNKNOWN;
}

tl_status lease_check_held(const lease *l)
{
    TRY(handle_check_held(&l->base));
    if (l->hold->by_thread && l->hold->owner != lease_thread())
        return error_set(TL_NOT_HELD, "the lock is held by another thread");
    return TL_OK;
}

tl_status lease_check_certain(const lease *l)
{
    if (l->base.state != LOCK_HELD)
        return error_set(TL_WRONG_STATE, "the lock is being unlocked");
    if (grant_left_ms(l->base.grant) == 0)
        return error_set(TL_LOST, "the time of this lock is over");
    return TL_OK;
}

int64_t lease_remaining_ms(const lease *l)
{
    return l->base.state == LOCK_HELD ? grant_left_ms(l->base.grant) : 0;
}

void lease_fill_step(const lease *l, lease_step *s)
{
    s->names = l->base.grant->names;
    s->count = l->base.grant->count;
    s->slot = l->slot;
    s->token = l->base.next_token;
    s->held_token = l->base.grant->token;
    s->fences = l->hold->fences;
    s->thread_no = l->base.thread_no;
    s->log_no = l->base.log_no[0] != '\0' ? l->base.log_no : NULL;
    s->session_id = life_session_id(l->base.life);
    s->by_session = l->lease_ms == 0;
    s->over_ms = l->lease_ms > 0 ? l->lease_ms : l->max_hold_ms;
    s->max_hold_ms = l->max_hold_ms;
    s->min_hold_ms = l->min_hold_ms;
    s->payload = l->payload;
    s->payload_size = l->payload_size;
    s->remark = l->remark[0] != '\0' ? l->remark : NULL;
    s->actor = l->actor[0] != '\0' ? l->actor : NULL;
}

void lease_mark(const lease_kind *kind, const lease_step *s, const uint8_t *token, commit_mark *to)
{
    to->kind = kind->mark;
    text_copy(to->serial_no, sizeof to->serial_no, s->names[0]);
    to->slot = s->slot;
    memcpy(to->token, token, sizeof to->token);
}
