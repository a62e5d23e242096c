/* Steps of a holder on its row, by the token of the grant: releasing, downgrading, renewing.
 * Touches resource_holder. */
#include "rw_lock/rw.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

#include <string.h>

#define INTENT_BUDGET_MS 200

struct changing {
    lock_change base;
    rw_step step;
    db_answer (*statement)(db *connection, const rw_step *s, uint64_t *affected);
    int keeps_token; /* so it is found by how often the row was changed */
    uint64_t rev;    /* then, after it */
};

tl_status rw_check(const tl_rw *rw)
{
    if (rw == NULL)
        return error_set(TL_INVALID, "the lock is NULL");
    return client_check(rw->base.client);
}

void rw_fill_step(tl_rw *rw, rw_step *s)
{
    memset(s, 0, sizeof *s);
    s->resource = rw->resource;
    s->slot = rw->slot;
    s->token = rw->base.next_token;
    s->held_token = rw->grant.token;
    s->fence = rw->grant.fence;
    s->thread_no = rw->base.thread_no;
    s->log_no = rw->base.log_no[0] != '\0' ? rw->base.log_no : NULL;
    s->session_id = life_session_id(rw->base.life);
    s->by_session = rw->lease_ms == 0;
    s->max_hold_ms = rw->max_hold_ms;
    s->over_ms = rw->lease_ms > 0 ? rw->lease_ms : rw->max_hold_ms;
    s->remark = rw->remark[0] != '\0' ? rw->remark : NULL;
    s->actor = rw->actor[0] != '\0' ? rw->actor : NULL;
}

db_answer rw_run_change(task *t, db *connection)
{
    struct changing *c = t->context;

    db_result now = DB_RESULT_INIT;
    db_answer answer = c->statement(connection, &c->step, &c->base.changed);

    c->rev = 0;
    if (answer == DB_DONE && c->base.changed > 0 && c->keeps_token)
        answer = store_rw_now(connection, c->step.resource, c->step.slot, c->step.held_token, &now);
    if (answer == DB_DONE && now.rows == 1)
        c->rev = db_get_uint(&now, 0, RW_NOW_REV);
    db_result_free(&now);
    return answer;
}

void rw_mark(const rw_step *by, commit_mark *to)
{
    to->kind = MARK_HOLDER;
    text_copy(to->serial_no, sizeof to->serial_no, by->resource);
    to->slot = by->slot;
    memcpy(to->token, by->token, sizeof to->token);
}

void rw_mark_change(const task *t, commit_mark *to)
{
    const struct changing *c = t->context;

    if (c->base.changed == 0) {
        to->kind = MARK_NONE;
    } else if (!c->keeps_token || c->rev != 0) {
        rw_mark(&c->step, to);
        if (c->keeps_token)
            memcpy(to->token, c->step.held_token, sizeof to->token);
        to->number = c->rev;
    }
}

/* Running it twice does no harm. */
static const task_kind repeatable = {.run = rw_run_change, .mark = rw_mark_change};

static tl_status check_held(const tl_rw *rw)
{
    tl_status status = rw_check(rw);

    return status == TL_OK ? handle_check_held(&rw->base) : status;
}

/* ----------------------------------------------------------------------- unlocking -- */

db_answer rw_read_release(task *t, db *connection)
{
    struct changing *c = t->context;
    int seen = 0;
    db_answer answer =
        store_rw_token_seen(connection, c->step.resource, c->step.slot, c->step.token, &seen);

    c->base.changed = seen ? 1 : 0;
    if (seen)
        t->verdict = VERDICT_APPLIED;
    return answer;
}

tl_status rw_release(tl_rw *rw, int64_t budget_ms)
{
    struct changing c = {.statement = store_rw_release};

    handle_begin(&rw->base, rw->base.state != LOCK_END_UNKNOWN);
    rw_fill_step(rw, &c.step);
    c.step.step = "release";
    return resource_release(&rw->base, &c.base, budget_ms);
}

void rw_drop_intent(tl_rw *rw)
{
    struct changing c = {.statement = store_rw_release};
    task t = {.kind = &repeatable, .name = "unlock", .context = &c};
    uint8_t held[RW_TOKEN], token[RW_TOKEN];

    if (rw->intent_slot == 0)
        return;
    handle_begin(&rw->base, 0);
    rw_fill_step(rw, &c.step);
    random_token(token);
    memcpy(held, rw->intent, sizeof held);
    c.step.step = "give up";
    c.step.slot = rw->intent_slot;
    c.step.token = token;
    c.step.held_token = held;
    task_run(rw->base.client->engine, &t, INTENT_BUDGET_MS);
    rw->intent_slot = 0;
    lock_wake(&rw->base);
}

tl_status tl_rw_unlock(tl_rw *rw)
{
    tl_status status;

    error_clear();
    status = check_held(rw);
    return status == TL_OK ? rw_release(rw, rw->base.client->config.commit_ms) : status;
}

/* ------------------------------------------------------------- going on differently -- */

static tl_status check_certain(const tl_rw *rw)
{
    tl_status status = check_held(rw);

    return status == TL_OK ? resource_check_certain(&rw->base) : status;
}

tl_status tl_rw_downgrade(tl_rw *rw)
{
    struct changing c = {.statement = store_rw_downgrade, .keeps_token = 1};
    tl_status status;

    error_clear();
    status = check_certain(rw);
    if (status != TL_OK || rw->mode == TL_RW_READ)
        return status;
    handle_begin(&rw->base, 0);
    rw_fill_step(rw, &c.step);
    status = resource_change(&rw->base, &c.base, "downgrade", &repeatable, &rw->downgrading);
    if (status == TL_OK) {
        rw->mode = TL_RW_READ;
        lock_wake(&rw->base);
    }
    return status;
}

tl_status tl_rw_renew(tl_rw *rw, int64_t lease_ms)
{
    static const task_kind renewing = {
        .check = task_check_renewal, .run = rw_run_change, .mark = rw_mark_change};
    struct changing c = {.statement = store_rw_renew, .keeps_token = 1};
    int64_t before_ms = clock_boottime_ms();
    tl_status status;

    error_clear();
    status = rw_check(rw);
    if (status == TL_OK)
        status = resource_check_lease(lease_ms);
    if (status == TL_OK)
        status = check_certain(rw);
    if (status != TL_OK)
        return status;
    handle_begin(&rw->base, 0);
    rw_fill_step(rw, &c.step);
    c.step.over_ms = lease_ms;
    status = resource_change(&rw->base, &c.base, "renew", &renewing, &rw->grant.renewing);
    if (status == TL_OK || status == TL_UNKNOWN)
        grant_renew(&rw->grant, before_ms + lease_ms, status == TL_UNKNOWN);
    return status;
}
