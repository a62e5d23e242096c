/* Changes a handle's state, and tells what the handle knows by itself.  Never asks the server. */
#include "lock/handle.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

/* Whether a row may be in process by this handle, as far as it knows. */
static int may_hold(lock_state state)
{
    return state != LOCK_NEW && state != LOCK_OVER;
}

#define TO(state) (1u << LOCK_##state)

static int may_follow(const lock_handle *h, lock_state state)
{
    static const unsigned next[] = {
        [LOCK_NEW] = TO(ASK_UNKNOWN) | TO(HELD),
        [LOCK_ASK_UNKNOWN] = TO(NEW) | TO(HELD),
        [LOCK_HELD] = TO(IN_CALLER) | TO(END_UNKNOWN) | TO(ARM_UNKNOWN) | TO(LOST) | TO(OVER),
        [LOCK_IN_CALLER] = TO(HELD) | TO(LOST) | TO(OVER),
        [LOCK_END_UNKNOWN] = TO(HELD) | TO(LOST) | TO(OVER),
        [LOCK_ARM_UNKNOWN] = TO(HELD),
        [LOCK_LOST] = TO(NEW),
        [LOCK_OVER] = TO(NEW),
    };

    return state == h->state || (next[h->state] & 1u << state) != 0;
}

void handle_become(lock_handle *h, lock_state state)
{
    assert(may_follow(h, state));
    assert(!h->method->is_swept || !may_hold(state) || h->life != NULL);
    if (h->method->is_swept && may_hold(state) && !may_hold(h->state))
        atomic_fetch_add(&h->life->may_hold, 1);
    if (h->method->is_swept && !may_hold(state) && may_hold(h->state))
        atomic_fetch_sub(&h->life->may_hold, 1);
    h->state = state;
}

void handle_forget(lock_handle *h)
{
    assert(!h->method->is_swept);
    h->state = LOCK_NEW;
}

void handle_init(lock_handle *h, const lock_method *method, tl_client *client, lock_grant *grant)
{
    h->method = method;
    h->client = client;
    h->grant = grant;
    h->state = LOCK_NEW;
}

void handle_begin(lock_handle *h, int fresh_token)
{
    if (!may_hold(h->state))
        h->life = session_life(h->client->session);
    if (fresh_token) {
        random_token(h->next_token);
        memset(&h->doubt, 0, sizeof h->doubt);
    }
    text_copy(h->thread_no, sizeof h->thread_no, tl_thread_uuid());
    text_copy(h->log_no, sizeof h->log_no, tl_log_uuid());
}

tl_status handle_check_held(const lock_handle *h)
{
    switch (h->state) {
    case LOCK_HELD:
    case LOCK_ARM_UNKNOWN:
    case LOCK_END_UNKNOWN:
        return TL_OK;
    case LOCK_LOST:
        return error_set(TL_LOST, "%s", h->method->lost);
    case LOCK_OVER:
        return error_set(TL_RELEASED, "this handle has released its lock already");
    case LOCK_IN_CALLER:
        return error_set(TL_WRONG_STATE, "the caller's transaction with this lock has not "
                                         "been reported with tl_lock_committed()");
    case LOCK_ASK_UNKNOWN:
        if (h->method->ask_unknown != NULL)
            return error_set(TL_WRONG_STATE, "%s", h->method->ask_unknown);
        break;
    case LOCK_NEW:
        break;
    }
    return error_set(TL_NOT_HELD, "the lock was not granted to this handle");
}

tl_status handle_check_asking(const lock_handle *h)
{
    tl_status status = client_check_asking(h->client);

    if ((status == TL_UNREACHABLE || status == TL_SESSION_LOST) && h->state == LOCK_ASK_UNKNOWN)
        status = error_prefix(TL_UNKNOWN, "the earlier ask is not settled");
    return status;
}

tl_status handle_check_wait(int64_t wait_ms)
{
    if (wait_ms >= 0 && wait_ms <= LOCK_WAIT_MAX_MS)
        return TL_OK;
    return error_set(TL_INVALID, "wait_ms is %lld; it must be 0 to %lld", (long long)wait_ms,
                     (long long)LOCK_WAIT_MAX_MS);
}

int64_t grant_left_ms(const lock_grant *grant)
{
    int64_t left_ms = clock_left_ms(grant->until_ms), session_ms;

    if (atomic_load(&grant->lost))
        return 0;
    if (!grant->by_session)
        return left_ms;
    session_ms = life_left_ms(grant->life);
    return session_ms < left_ms ? session_ms : left_ms;
}

void handle_unknown(lock_handle *h, lock_state state, const doubt *left)
{
    handle_become(h, state);
    h->doubt = *left;
    client_add(&h->client->counters.unknown, 1);
}
