/* What a holder does with its row: giving it back, going on as a reader, renewing.  All of it rests
 * on the token of the grant. */
#include "rw_lock/rw.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

#define INTENT_BUDGET_MS 200

struct changing {
    rw_step step;
    db_answer (*statement)(db *connection, const rw_step *s, uint64_t *affected);
    uint64_t changed;
};

static db_answer run_change(void *context, db *connection)
{
    struct changing *c = context;

    return c->statement(connection, &c->step, &c->changed);
}

/* ----------------------------------------------------------------------- unlocking -- */

static db_answer read_release(void *context, db *connection, int *committed)
{
    struct changing *c = context;
    db_answer answer =
        store_rw_token_seen(connection, c->step.resource, c->step.slot, c->step.token, committed);

    c->changed = *committed ? 1 : 0;
    return answer;
}

static void wake_waiters(const tl_rw *rw)
{
    char key[TL_RESOURCE_MAX + 3];

    snprintf(key, sizeof key, "  %s", rw->resource);
    waiters_released(rw->client->waiting, key);
}

static tl_status released(tl_rw *rw, int was_held)
{
    wake_waiters(rw);
    if (was_held) {
        rw->state = RW_RELEASED;
        client_add(&rw->client->counters.finishes, 1);
        log_line(&rw->client->logger, TL_INFO, NULL, rw->fence, "%s unlocked", rw->resource);
        return TL_OK;
    }
    rw->state = RW_LOST;
    client_add(&rw->client->counters.lost, 1);
    log_line(&rw->client->logger, TL_WARNING, NULL, rw->fence,
             "the lock of %s was lost before it was unlocked", rw->resource);
    return error_set(TL_LOST, "the lock had been freed: its holder looked dead");
}

tl_status rw_release(tl_rw *rw, int64_t budget_ms)
{
    struct changing c = {.statement = store_rw_release};
    work w = {.name = "unlock", .run = run_change, .read = read_release, .context = &c};

    rw_begin_step(rw, &c.step, rw->state != RW_UNLOCK_UNKNOWN);
    c.step.step = "release";
    if (rw->state == RW_UNLOCK_UNKNOWN)
        memcpy(w.lost_connection, rw->lost_connection, sizeof w.lost_connection);
    work_run(rw->client->transitions, &w, budget_ms);
    switch (w.verdict) {
    case VERDICT_APPLIED:
        return released(rw, c.changed == 1);
    case VERDICT_UNKNOWN:
        rw->state = RW_UNLOCK_UNKNOWN;
        memcpy(rw->lost_connection, w.lost_connection, sizeof rw->lost_connection);
        client_add(&rw->client->counters.unknown, 1);
        return TL_UNKNOWN;
    default:
        rw->state = RW_HELD;
        return w.status != TL_OK ? w.status : TL_INTERNAL;
    }
}

void rw_drop_intent(tl_rw *rw)
{
    struct changing c = {.statement = store_rw_release};
    work w = {.name = "unlock", .run = run_change, .context = &c};
    uint8_t held[RW_TOKEN], token[RW_TOKEN];

    if (rw->intent_slot == 0)
        return;
    rw_begin_step(rw, &c.step, 0);
    random_token(token);
    memcpy(held, rw->intent, sizeof held);
    c.step.step = "give up";
    c.step.slot = rw->intent_slot;
    c.step.token = token;
    c.step.held_token = held;
    work_run(rw->client->transitions, &w, INTENT_BUDGET_MS);
    rw->intent_slot = 0;
    wake_waiters(rw);
}

tl_status tl_rw_unlock(tl_rw *rw)
{
    tl_status status;

    error_clear();
    status = rw_check_held(rw);
    return status == TL_OK ? rw_release(rw, rw->client->config.commit_ms) : status;
}

/* ------------------------------------------------------------- going on differently -- */

static tl_status check_certain(const tl_rw *rw)
{
    tl_status status = rw_check_held(rw);

    if (status == TL_OK && rw->state != RW_HELD)
        status = error_set(TL_WRONG_STATE, "the lock is being unlocked");
    if (status == TL_OK && rw_remaining_ms(rw) == 0)
        status = error_set(TL_LOST, "the time of this lock is over");
    return status;
}

/* Both may run twice without harm, so nobody needs to know which run it was; until one of them is
 * answered, the doubt says that it may have happened, or still may. */
static tl_status change(tl_rw *rw, struct changing *c, const char *name, work_doubt *left)
{
    work w = {.name = name, .run = run_change, .context = c};

    work_run_again(rw->client->transitions, &w, left, rw->client->config.pool_wait_ms);
    if (w.verdict == VERDICT_UNKNOWN)
        return TL_UNKNOWN;
    if (w.verdict != VERDICT_APPLIED)
        return w.status != TL_OK ? w.status : TL_INTERNAL;
    if (c->changed != 1)
        return error_set(TL_LOST, "the lock was freed, or its time was over");
    return TL_OK;
}

tl_status tl_rw_downgrade(tl_rw *rw)
{
    struct changing c = {.statement = store_rw_downgrade};
    tl_status status;

    error_clear();
    status = check_certain(rw);
    if (status != TL_OK || rw->mode == TL_RW_READ)
        return status;
    rw_begin_step(rw, &c.step, 0);
    status = change(rw, &c, "downgrade", &rw->downgrading);
    if (status == TL_OK) {
        rw->mode = TL_RW_READ;
        wake_waiters(rw);
    }
    return status;
}

/* A renewal that may have happened has ended the session's renewal, or shortened a longer lease:
 * only what is certain either way is left. */
static void set_lease(tl_rw *rw, int64_t until_ms, int doubtful)
{
    if (!doubtful)
        rw->by_session = 0;
    if (!doubtful || until_ms < rw->over_ms)
        rw->over_ms = until_ms;
    if (rw->hold_until_ms < rw->over_ms)
        rw->over_ms = rw->hold_until_ms;
}

tl_status tl_rw_renew(tl_rw *rw, int64_t lease_ms)
{
    struct changing c = {.statement = store_rw_renew};
    int64_t before_ms = clock_boottime_ms();
    tl_status status;

    error_clear();
    status = rw_check(rw);
    if (status == TL_OK && (lease_ms <= 0 || lease_ms > TL_HOLD_MAX_MS))
        status = error_set(TL_INVALID, "lease_ms is %lld; it must be 1 to %lld",
                           (long long)lease_ms, (long long)TL_HOLD_MAX_MS);
    if (status == TL_OK)
        status = check_certain(rw);
    if (status != TL_OK)
        return status;
    rw_begin_step(rw, &c.step, 0);
    c.step.over_ms = lease_ms;
    status = change(rw, &c, "renew", &rw->renewing);
    if (status == TL_OK || status == TL_UNKNOWN)
        set_lease(rw, before_ms + lease_ms, status == TL_UNKNOWN);
    return status;
}
