/*
 * Arms: the committed step before a compensating attempt sends.  While an arming is in doubt
 * nothing may be sent; the handle keeps its token, and the next call on the handle settles it
 * first.  Touches the trade's rows and the handle.
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"

#include <tradelock/lane.h>

#include <string.h>

void lock_count_send(tl_lock *lock, uint32_t others, int64_t until_us)
{
    lock->known_sends = lock->own_sends == 0 ? others + 1 : 0;
    lock->send_before_us = until_us;
    lock->own_sends++;
}

/* The hold goes on under the arming's token. */
static void take_over(tl_lock *lock, const step *s)
{
    memcpy(lock->grant.token, s->token, STEP_TOKEN);
    lock->grant.fence = s->fence;
    lock->grant.until_ms = lock->armed_until_ms;
    lock->view.fence = s->fence;
    if (lock->known_rev > 0)
        lock->known_rev++;
    lock_count_send(lock, lock->view.sends++, lock->view.send_until_us);
    client_add(&lock->base.client->counters.armed, 1);
    lock_log(lock, TL_INFO, lock->grant.fence, "armed: send %u may leave within %lld ms",
             lock->view.sends, (long long)clock_left_ms(lock->grant.until_ms));
}

tl_status arm_settle(tl_lock *lock, int *armed)
{
    step_task t;

    *armed = 0;
    if (lock->base.state != LOCK_ARM_UNKNOWN)
        return TL_OK;
    lock_begin_step(lock, &t, STEP_ARM, 0);
    task_settle(lock->base.client->engine, step_task_of(&t), lock->base.client->config.commit_ms);
    if (t.task.verdict == VERDICT_UNKNOWN)
        return TL_UNKNOWN;
    handle_become(&lock->base, LOCK_HELD);
    lock->base.doubt.is_open = 0;
    /* Even if the session is over: an ending needs the row alone. */
    if (t.task.verdict != VERDICT_REFUSED && t.step.fence != 0) {
        take_over(lock, &t.step);
        *armed = t.task.verdict == VERDICT_APPLIED;
    }
    return TL_OK;
}

tl_status lock_check_ending(tl_lock *lock)
{
    int armed;

    TRY(lock_check_held(lock));
    return arm_settle(lock, &armed);
}

/* Answers an arming that changed 0 rows: the hold is lost, or the arming was forbidden. */
static tl_status arm_refused(tl_lock *lock, uint32_t known_jumps)
{
    int64_t before_us = clock_boottime_us();
    tl_status status;

    TRY(lock_read(lock));
    /* Whatever a look that began before the jump says of the clock meanwhile. */
    if (lock_still_holds(lock) && !lock_view_fits(lock, before_us))
        return clock_watch_unclear();
    /* The jump may be known to this process, and rows not adjusted to it yet. */
    if (lock_still_holds(lock) && (clock_watch_look(lock->base.client) != TL_OK ||
                                   clock_watch_check(lock->base.client) != TL_OK ||
                                   clock_watch_jumps(lock->base.client) != known_jumps))
        return clock_watch_unclear();
    if (lock_still_holds(lock)) {
        status = error_set(TL_EVIDENCE, "a conflict, evidence of success, a tried cancel or "
                                        "the deadline forbids another send");
        lock_log(lock, TL_INFO, lock->grant.fence, "not armed: %s", tl_error_message());
        return status;
    }
    lock_lose(lock);
    return error_set(TL_LOST, "the lock was taken over; nothing is sent");
}

struct arming {
    step_task t; /* first */
    tl_client *client;
};

/* A run after a lost answer may begin long after the first: it expects the clock of its own
 * time. */
static db_answer run_arming(task *t, db *connection)
{
    struct arming *a = (struct arming *)t;

    a->t.step.clock_jumps = clock_watch_jumps(a->client);
    clock_watch_now(a->client, &a->t.step.least_us, &a->t.step.most_us);
    return step_task_run(t, connection);
}

static task *arming_task_of(struct arming *a)
{
    static const task_kind kind = {.check = step_task_check,
                                   .run = run_arming,
                                   .judge = step_task_judge,
                                   .read = step_task_read,
                                   .mark = step_task_mark,
                                   .undone = step_task_undone};
    task *t = step_task_of(&a->t);

    t->kind = &kind;
    return t;
}

static tl_status arm(tl_lock *lock, int64_t max_hold_ms)
{
    struct arming a = {.client = lock->base.client};
    step_task *t = &a.t;

    /* The hold may be lost with its session; what it knows is filed by its ending. */
    if (life_is_over(lock->base.life))
        return error_set(TL_LOST, "the lock was lost with its session; nothing is sent");
    lock->armed_until_ms = clock_boottime_ms() + max_hold_ms;
    lock_begin_step(lock, t, STEP_ARM, 1);
    t->step.max_hold_ms = max_hold_ms;
    task_run(a.client->engine, arming_task_of(&a), a.client->config.commit_ms);
    switch (t->task.verdict) {
    case VERDICT_APPLIED:
        take_over(lock, &t->step);
        return TL_OK;
    case VERDICT_REFUSED:
    case VERDICT_LOST:
        return arm_refused(lock, t->step.clock_jumps);
    case VERDICT_UNKNOWN:
        return lock_unknown(lock, LOCK_ARM_UNKNOWN, t);
    default:
        return t->task.verdict == VERDICT_DECIDING ? TL_TRY_AGAIN : lock_failed(t);
    }
}

tl_status tl_lock_arm(tl_lock *lock, int64_t max_hold_ms)
{
    int armed = 0;
    tl_status status = TL_OK;

    error_clear();
    TRY(lock_check_held(lock));
    if (max_hold_ms <= 0 || max_hold_ms > TL_HOLD_MAX_MS)
        return error_set(TL_INVALID, "max_hold_ms is not between 1 and a week");
    if (lock->options.lane != TL_LANE_RETRY)
        return error_set(TL_WRONG_STATE, "only compensating attempts are armed");
    if (lock->base.state == LOCK_END_UNKNOWN)
        return error_set(TL_WRONG_STATE, "settle the ending that is not known first");
    if (lock->channel[0] != '\0' && strcmp(lock->channel, lock->view.channel) != 0)
        return error_set(TL_MISMATCH, "the trade's channel is \"%s\", not %s: nothing is sent",
                         lock->view.channel, lock->channel);
    TRY(clock_watch_check(lock->base.client));
    TRY(gate_check(lock->base.client, lock_channel(lock), lock->op_code, 1));
    TRY(arm_settle(lock, &armed));
    if (!armed) {
        status = lock_pass_gate(lock, GATE_ARM, max_hold_ms);
        if (status == TL_OK)
            status = arm(lock, max_hold_ms);
        if (status != TL_OK && lock->base.state != LOCK_ARM_UNKNOWN)
            gate_give_back(lock->base.client, &lock->pass);
    }
    return error_over(status);
}
