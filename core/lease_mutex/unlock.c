/* Giving back and renewing: both rest on the token of the grant.  An unlock of one resource may
 * share its statement with asks and unlocks of other threads. */
#include "lease_mutex/mutex.h"

#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

struct releasing {
    resource_step step;
    resource_row row; /* what a group gets of it */
    uint64_t released;
};

static db_answer run_unlock(void *context, db *connection)
{
    struct releasing *r = context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = store_resource_unlock(connection, &r->step, &result);

    if (answer == DB_DONE)
        r->released = result.affected;
    db_result_free(&result);
    return answer;
}

static int take_row(void *context)
{
    struct releasing *r = context;

    r->released = r->row.changed ? 1 : 0;
    return 1;
}

/* How many rows this unlock released, by its token; it was one statement, so one row is proof
 * enough that it was committed. */
static db_answer read_unlock(void *context, db *connection, int *committed)
{
    struct releasing *r = context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = DB_DONE;

    r->released = 0;
    for (size_t i = 0; i < r->step.count && answer == DB_DONE; i++) {
        const char *resource = r->step.resources[i];
        int mine;

        answer = store_resource_now(connection, resource, r->step.token, &result);
        mine = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0);
        if (answer == DB_DONE && !mine) {
            answer = store_resource_token_seen(connection, resource, r->step.token, &result);
            mine = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0);
        }
        r->released += mine ? 1 : 0;
    }
    db_result_free(&result);
    *committed = r->released > 0;
    return answer;
}

static void wake_waiters(const tl_mutex *m)
{
    for (size_t i = 0; i < m->hold->count; i++) {
        char key[TL_RESOURCE_MAX + 2];

        snprintf(key, sizeof key, " %s", m->hold->resources[i]);
        waiters_released(m->client->waiting, key);
    }
}

static tl_status released(tl_mutex *m, const struct releasing *r)
{
    const hold *h = m->hold;

    wake_waiters(m);
    if (r->released == h->count) {
        m->state = MUTEX_RELEASED;
        client_add(&m->client->counters.finishes, 1);
        log_line(&m->client->logger, TL_INFO, NULL, h->fences[0], "%s%s unlocked", h->resources[0],
                 h->count > 1 ? " and others" : "");
        return TL_OK;
    }
    m->state = MUTEX_LOST;
    client_add(&m->client->counters.lost, 1);
    log_line(&m->client->logger, TL_WARNING, NULL, h->fences[0],
             "the lock of %s%s was lost before it was unlocked", h->resources[0],
             h->count > 1 ? " or others" : "");
    return error_set(TL_LOST, "the lock had been taken over or taken away");
}

tl_status mutex_release(tl_mutex *m, int64_t budget_ms)
{
    struct releasing r;
    work w = {.name = "unlock", .run = run_unlock, .read = read_unlock, .context = &r};

    memset(&r, 0, sizeof r);
    r.row.unlocks = 1;
    mutex_begin_step(m, &r.step, m->state != MUTEX_UNLOCK_UNKNOWN);
    if (m->state == MUTEX_UNLOCK_UNKNOWN)
        memcpy(w.lost_connection, m->lost_connection, sizeof w.lost_connection);
    mutex_offer_group(&w, &r.row, &r.step, take_row);
    work_run(m->client->transitions, &w, budget_ms);
    switch (w.verdict) {
    case VERDICT_APPLIED:
        return released(m, &r);
    case VERDICT_UNKNOWN:
        m->state = MUTEX_UNLOCK_UNKNOWN;
        memcpy(m->lost_connection, w.lost_connection, sizeof m->lost_connection);
        client_add(&m->client->counters.unknown, 1);
        return TL_UNKNOWN;
    default:
        m->state = MUTEX_HELD;
        return w.status != TL_OK ? w.status : TL_INTERNAL;
    }
}

/* -------------------------------------------------------------------- the calls -- */

static tl_status check_held(tl_mutex *m)
{
    tl_status status = mutex_check(m);

    if (status != TL_OK)
        return status;
    switch (m->state) {
    case MUTEX_HELD:
    case MUTEX_UNLOCK_UNKNOWN:
        break;
    case MUTEX_RELEASED:
        return error_set(TL_RELEASED, "this handle has released its lock already");
    case MUTEX_LOST:
        return error_set(TL_LOST, "the lock was taken over or taken away");
    case MUTEX_NEW:
        return error_set(TL_NOT_HELD, "the lock was not granted to this handle");
    case MUTEX_ASK_UNKNOWN:
        return error_set(TL_WRONG_STATE, "whether the lock was granted is not known yet: "
                                         "ask again first, or free the handle");
    }
    if (m->hold->by_thread && m->hold->owner != mutex_thread())
        return error_set(TL_NOT_HELD, "the lock is held by another thread");
    return TL_OK;
}

/* Takes one grant off; 1 when the hold is still wanted, by this handle or another. */
static int is_still_wanted(tl_mutex *m, leases *l)
{
    int wanted;

    leases_lock(l);
    wanted = m->hold->depth > 1;
    if (wanted) {
        m->hold->depth--;
        m->depth--;
    }
    leases_unlock(l);
    if (wanted && m->depth == 0) {
        m->state = MUTEX_RELEASED;
        mutex_leave_hold(m);
    }
    return wanted;
}

tl_status tl_mutex_unlock(tl_mutex *m)
{
    leases *l;
    tl_status status;

    error_clear();
    status = check_held(m);
    if (status == TL_OK)
        status = leases_of(m->client, &l);
    if (status != TL_OK)
        return status;
    if (is_still_wanted(m, l))
        return TL_OK;
    leases_pause(l, m->hold);
    status = mutex_release(m, m->client->config.commit_ms);
    if (m->state == MUTEX_HELD)
        leases_resume(l, m->hold);
    /* While it is not known, nobody is told of a loss, and no handle joins. */
    if (m->state == MUTEX_HELD || m->state == MUTEX_UNLOCK_UNKNOWN)
        return status;
    leases_lock(l);
    m->hold->depth = m->depth = 0;
    leases_unlock(l);
    leases_drop(l, m->hold);
    mutex_leave_hold(m);
    return status;
}

static db_answer run_renew(void *context, db *connection)
{
    struct releasing *r = context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = store_resource_renew(connection, &r->step, &result);

    if (answer == DB_DONE)
        r->released = result.affected;
    db_result_free(&result);
    return answer;
}

/* A renewal that may have happened has ended the session's renewal, or shortened a longer lease:
 * only what is certain either way is left. */
static void set_lease(tl_mutex *m, leases *l, int64_t until_ms, int doubtful)
{
    leases_lock(l);
    if (!doubtful || until_ms < m->hold->lease_until_ms)
        m->hold->lease_until_ms = until_ms;
    leases_unlock(l);
    leases_wake(l);
}

/* The end of the lease is set, not moved: running it again does no harm, as long as no shorter one
 * can still come in late. */
static tl_status renew(tl_mutex *m, leases *l, int64_t lease_ms)
{
    struct releasing r;
    work w = {.name = "renew", .run = run_renew, .context = &r};
    int64_t before_ms = clock_boottime_ms();

    memset(&r, 0, sizeof r);
    mutex_begin_step(m, &r.step, 0);
    r.step.lease_ms = lease_ms;
    work_run_again(m->client->transitions, &w, &m->hold->renewing, m->client->config.pool_wait_ms);
    if (w.verdict == VERDICT_UNKNOWN) {
        set_lease(m, l, before_ms + lease_ms, 1);
        return TL_UNKNOWN;
    }
    if (w.verdict != VERDICT_APPLIED)
        return w.status != TL_OK ? w.status : TL_INTERNAL;
    if (r.released != m->hold->count)
        return error_set(TL_LOST, "the lock was taken over or taken away, or its time was "
                                  "over");
    set_lease(m, l, before_ms + lease_ms, 0);
    return TL_OK;
}

tl_status tl_mutex_renew(tl_mutex *m, int64_t lease_ms)
{
    leases *l;
    tl_status status;

    error_clear();
    status = check_held(m);
    if (status == TL_OK && (lease_ms <= 0 || lease_ms > TL_HOLD_MAX_MS))
        status = error_set(TL_INVALID, "lease_ms is %lld; it must be 1 to %lld",
                           (long long)lease_ms, (long long)TL_HOLD_MAX_MS);
    if (status == TL_OK && m->state != MUTEX_HELD)
        status = error_set(TL_WRONG_STATE, "the lock is being unlocked");
    if (status == TL_OK)
        status = leases_of(m->client, &l);
    if (status == TL_OK && hold_remaining_ms(m->hold) == 0)
        status = error_set(TL_LOST, "the time of this lock is over");
    return status == TL_OK ? renew(m, l, lease_ms) : status;
}
