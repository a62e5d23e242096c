/* Gives back and renews, by the token of the grant.  An unlock of one resource may share its
 * statement with asks and unlocks of other threads.  Touches resource_lock and the hold. */
#include "lease_mutex/mutex.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

struct releasing {
    lock_change base;
    resource_step step;
    uint64_t rev;     /* of the first row, after a renewal */
    resource_row row; /* what a batch gets of it */
};

db_answer mutex_run_unlock(task *t, db *connection)
{
    struct releasing *r = t->context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = store_resource_unlock(connection, &r->step, &result);

    if (answer == DB_DONE)
        r->base.changed = result.affected;
    db_result_free(&result);
    return answer;
}

static int take_row(void *context)
{
    struct releasing *r = context;

    r->base.changed = r->row.changed ? 1 : 0;
    return 1;
}

/* Reads by its token how many rows this unlock released.  It was one statement, so one row proves
 * that it was committed. */
db_answer mutex_read_unlock(task *t, db *connection)
{
    struct releasing *r = t->context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = DB_DONE;

    r->base.changed = 0;
    for (size_t i = 0; i < r->step.count && answer == DB_DONE; i++) {
        const char *resource = r->step.resources[i];
        int mine;

        answer = store_resource_now(connection, resource, r->step.token, &result);
        mine = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0);
        if (answer == DB_DONE && !mine) {
            answer = store_resource_token_seen(connection, resource, r->step.token, &result);
            mine = answer == DB_DONE && result.rows == 1 && db_get_int(&result, 0, 0);
        }
        r->base.changed += mine ? 1 : 0;
    }
    db_result_free(&result);
    if (r->base.changed > 0)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

/* All rows were changed by one statement, so the first stands for them. */
void mutex_mark(const resource_step *by, commit_mark *to)
{
    to->kind = MARK_RESOURCE;
    text_copy(to->serial_no, sizeof to->serial_no, by->resources[0]);
    memcpy(to->token, by->token, sizeof to->token);
}

void mutex_mark_unlock(const task *t, commit_mark *to)
{
    const struct releasing *r = t->context;

    if (r->base.changed == 0)
        to->kind = MARK_NONE;
    else if (r->base.changed == r->step.count)
        mutex_mark(&r->step, to);
}

tl_status mutex_release(tl_mutex *m, int64_t budget_ms)
{
    struct releasing r = {.row.unlocks = 1};

    handle_begin(&m->base, m->base.state != LOCK_END_UNKNOWN);
    mutex_fill_step(m, &r.step);
    mutex_share(&r.base.work, &r.row, &r.step, take_row);
    return resource_release(&m->base, &r.base, budget_ms);
}

/* -------------------------------------------------------------------- the calls -- */

static tl_status check_held(tl_mutex *m)
{
    tl_status status = mutex_check(m);

    if (status == TL_OK)
        status = handle_check_held(&m->base);
    if (status != TL_OK)
        return status;
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
        handle_become(&m->base, LOCK_OVER);
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
        status = leases_of(m->base.client, &l);
    if (status != TL_OK)
        return status;
    if (is_still_wanted(m, l))
        return TL_OK;
    leases_pause(l, m->hold);
    status = mutex_release(m, m->base.client->config.commit_ms);
    if (m->base.state == LOCK_HELD)
        leases_resume(l, m->hold);
    /* While the unlock is in doubt, no loss is reported, and no handle joins. */
    if (m->base.state == LOCK_HELD || m->base.state == LOCK_END_UNKNOWN)
        return status;
    leases_lock(l);
    m->hold->depth = m->depth = 0;
    leases_unlock(l);
    leases_drop(l, m->hold);
    mutex_leave_hold(m);
    return status;
}

static db_answer run_renew(task *t, db *connection)
{
    struct releasing *r = t->context;
    db_result result = DB_RESULT_INIT;
    db_answer answer = store_resource_renew(connection, &r->step, &result);

    r->rev = 0;
    if (answer == DB_DONE)
        r->base.changed = result.affected;
    if (answer == DB_DONE && r->base.changed > 0)
        answer = store_resource_now(connection, r->step.resources[0], r->step.held_token, &result);
    if (answer == DB_DONE && r->base.changed > 0 && result.rows == 1)
        r->rev = db_get_uint(&result, 0, RESOURCE_NOW_REV);
    db_result_free(&result);
    return answer;
}

/* A renewal is found by the grant's token and how often the row was changed.  It was one statement,
 * so the first row stands for all. */
static void mark_renewal(const task *t, commit_mark *to)
{
    const struct releasing *r = t->context;

    if (r->base.changed == 0) {
        to->kind = MARK_NONE;
    } else if (r->rev != 0) {
        mutex_mark(&r->step, to);
        memcpy(to->token, r->step.held_token, sizeof to->token);
        to->number = r->rev;
    }
}

static void set_lease(tl_mutex *m, leases *l, int64_t until_ms, int doubtful)
{
    leases_lock(l);
    grant_renew(&m->hold->grant, until_ms, doubtful);
    leases_unlock(l);
    leases_wake(l);
}

/* Sets the end of the lease, so running it twice does no harm while no shorter renewal can still
 * arrive late. */
static tl_status renew(tl_mutex *m, leases *l, int64_t lease_ms)
{
    static const task_kind renewing = {
        .check = task_check_renewal, .run = run_renew, .mark = mark_renewal};
    struct releasing r = {.row.unlocks = 0};
    int64_t before_ms = clock_boottime_ms();
    tl_status status;

    handle_begin(&m->base, 0);
    mutex_fill_step(m, &r.step);
    r.step.lease_ms = lease_ms;
    status = resource_change(&m->base, &r.base, "renew", &renewing, &m->hold->grant.renewing);
    if (status == TL_OK || status == TL_UNKNOWN)
        set_lease(m, l, before_ms + lease_ms, status == TL_UNKNOWN);
    return status;
}

tl_status tl_mutex_renew(tl_mutex *m, int64_t lease_ms)
{
    leases *l;
    tl_status status;

    error_clear();
    status = check_held(m);
    if (status == TL_OK)
        status = resource_check_lease(lease_ms);
    if (status == TL_OK)
        status = resource_check_certain(&m->base);
    if (status == TL_OK)
        status = leases_of(m->base.client, &l);
    return status == TL_OK ? renew(m, l, lease_ms) : status;
}
