/* Waits for a lock, and wakes those who wait in this process.  Touches the queues of the client. */
#include "lock/handle.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/thread_context.h"

#include <stdio.h>

/* A thread that waits, with a place in the queue of each name. */
struct waiting {
    size_t count;
    waiter *turns[TL_RESOURCES_MAX];
    lock_ask_fn ask;
    void *context;
};

static void make_key(char key[LOCK_WAIT_KEY], const lock_handle *h, size_t i)
{
    snprintf(key, LOCK_WAIT_KEY, "%s%s", h->method->wait_prefix, h->grant->names[i]);
}

/* Takes the turn on every name, in their order, so that two sets of this process never wait for
 * each other. */
static tl_status take_turns(lock_handle *h, struct waiting *w, int64_t deadline_ms)
{
    for (size_t i = 0; i < w->count; i++) {
        char key[LOCK_WAIT_KEY];

        make_key(key, h, i);
        w->turns[i] = waiters_join(h->client->waiting, key);
        if (w->turns[i] == NULL)
            return error_set(TL_NO_MEMORY, "out of memory for waiting");
        if (!waiters_turn(w->turns[i], deadline_ms)) {
            h->refused = i;
            return error_set(TL_TIMEOUT, "others of this process wait for the same lock");
        }
    }
    return TL_OK;
}

static void leave_turns(const struct waiting *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->turns[i] != NULL)
            waiters_leave(w->turns[i]);
}

/* Asks once.  An answer is awaited until the wait is over, but for as long as an ask may wait for a
 * connection: a shorter wait would give up what a busy server grants. */
static tl_status ask_in_turn(const lock_handle *h, const struct waiting *w, int64_t deadline_ms)
{
    const int64_t least_ms = clock_deadline(h->client->config.pool_wait_ms);
    const int64_t own_ms =
        thread_context_await_until(deadline_ms > least_ms ? deadline_ms : least_ms);
    const tl_status status = w->ask(w->context);

    (void)thread_context_await_until(own_ms);
    return status;
}

static int may_pass(tl_status status)
{
    return status == TL_BUSY || status == TL_CUSTOMER_BUSY || status == TL_NOT_DUE;
}

static tl_status ask_in_turns(const lock_handle *h, const struct waiting *w, int64_t deadline_ms)
{
    const struct config *config = &h->client->config;
    int64_t pause_ms = config->ask_wait_min_ms;

    for (;;) {
        int64_t until_ms;
        tl_status status = ask_in_turn(h, w, deadline_ms);

        if (!may_pass(status) || clock_left_ms(deadline_ms) == 0)
            return status;
        until_ms = clock_deadline(random_jitter_ms(pause_ms, 50));
        waiters_pause(w->turns[h->refused], until_ms < deadline_ms ? until_ms : deadline_ms);
        pause_ms = pause_ms * 2 < config->ask_wait_max_ms ? pause_ms * 2 : config->ask_wait_max_ms;
    }
}

tl_status lock_wait(lock_handle *h, int64_t wait_ms, lock_ask_fn ask, void *context)
{
    struct waiting w = {.count = h->grant->count, .ask = ask, .context = context};
    const int64_t deadline_ms = clock_deadline(wait_ms);
    /* An earlier ask in doubt is settled first: its lock may be what the others wait for. */
    tl_status status = h->state == LOCK_ASK_UNKNOWN ? ask_in_turn(h, &w, deadline_ms) : TL_BUSY;

    if (may_pass(status) && (status = take_turns(h, &w, deadline_ms)) == TL_OK)
        status = ask_in_turns(h, &w, deadline_ms);
    leave_turns(&w);
    return status;
}

void lock_wake(const lock_handle *h)
{
    for (size_t i = 0; i < h->grant->count; i++) {
        char key[LOCK_WAIT_KEY];

        make_key(key, h, i);
        waiters_released(h->client->waiting, key);
    }
}
