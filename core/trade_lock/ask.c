/*
 * Asks for the trade-sync lock: one statement if nobody is in the way.  A refused statement wrote
 * nothing, and a consistent read then tells who or what is in the way.
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <string.h>

/* An ask is repeated if the row that refused it was purged before it was read; or if the holder of
 * a repeatable trade turns out to be dead, naming the fence that was seen. */
#define ASK_TRIES 3

static void fill_ask(const tl_lock *lock, step *s)
{
    const tl_lock_options *o = &lock->options;

    s->sends = o->not_sent ? 0 : 1;
    s->exclusive = (o->flags & TL_ASK_EXCLUSIVE) != 0;
    s->fingerprint = lock->has_fingerprint ? lock->fingerprint : NULL;
    s->channel = lock->channel[0] != '\0' ? lock->channel : NULL;
    s->channel_key = lock->channel_key[0] != '\0' ? lock->channel_key : NULL;
    s->payload = lock->payload;
    s->payload_size = o->payload_size;
    s->said = &lock->said;
    s->remark = lock->remark[0] != '\0' ? lock->remark : NULL;
    s->reclaim_epoch = o->reclaim_epoch;
    s->reclaim_fence = o->reclaim_fence;
}

tl_status ask_make_channel_key(tl_lock *lock, uint32_t epoch)
{
    tl_key key = lock_key(lock);
    unsigned chars = lock->options.channel_key_chars;

    if (lock->channel[0] == '\0')
        return TL_OK;
    return tl_channel_key(lock->channel_key, chars != 0 ? chars : TL_CHANNEL_KEY_MAX,
                          lock->base.client->config.site, lock->channel, &key, epoch);
}

/* ------------------------------------------------------------------ asking once -- */

/* The step to begin with. */
static step_kind kind_of(const tl_lock *lock)
{
    if (lock_repeats(lock))
        return STEP_ASK_REPEATABLE;
    return lock->options.flags & TL_ASK_RECLAIM ? STEP_RECLAIM : STEP_ASK;
}

static tl_status refuse_deciding(tl_lock *lock, const step_task *t, int64_t before_ms)
{
    TRY(lock_read(lock));
    if (ask_is_mine(lock))
        return ask_granted(lock, &(step_task){.step = t->step}, before_ms);
    if (ask_kind_differs(lock))
        return ask_refuse_kind(lock);
    if (lock->view.state != TL_STATE_ABSENT && !lock_repeats(lock) && ask_fingerprint_differs(lock))
        return ask_classify(lock);
    if ((lock->options.flags & TL_ASK_EXCLUSIVE) &&
        (lock->view.state == TL_STATE_ABSENT || lock->view.status == 'F'))
        return ask_refuse_customer_busy(lock);
    lock->view.being_decided = 1;
    return error_set(TL_BUSY, "an open transaction is deciding this trade");
}

/* Whether this ask would make the row that was read a payment under way. */
static int would_be_granted(const tl_lock *lock)
{
    const tl_view *v = &lock->view;

    if (v->state == TL_STATE_ABSENT)
        return 1;
    if (ask_kind_differs(lock))
        return 0;
    if (lock_repeats(lock))
        return !(v->status == 'P' && lock->inside.alive) &&
               !(v->status == 'Y' && lock_is_standalone(lock));
    return v->status == 'F' && (lock->options.flags & TL_ASK_RECLAIM) && v->retryable &&
           !v->conflict && v->epoch == lock->options.reclaim_epoch &&
           !ask_fingerprint_differs(lock);
}

/* What was paid, failed or is in process already, or may be in what a restore lost, is no payment
 * that may be made later.  Else the refusal's sentence is the answer. */
static tl_status refuse_for_now(tl_lock *lock)
{
    char sentence[ERROR_MAX];

    text_copy(sentence, sizeof sentence, tl_error_message());
    TRY(lock_read(lock));
    TRY(lock_check_row(lock));
    if (would_be_granted(lock))
        return error_set(TL_OVERLOADED, "%s", sentence);
    return lock_repeats(lock) ? ask_classify_repeating(lock) : ask_classify(lock);
}

/* How long the last steps of a move take, about.  While a slot is leaving its rows are here still,
 * and what is there answers as ever. */
#define MOVING_MS 1000

static tl_status refuse_moving(tl_lock *lock)
{
    (void)gate_refuse(&lock->pass, MOVING_MS, "%s", tl_error_message());
    return refuse_for_now(lock);
}

tl_status ask_verdict(tl_lock *lock, const step_task *t, int64_t before_ms, int *again)
{
    tl_status status;

    switch (t->task.verdict) {
    case VERDICT_APPLIED:
        if (t->task.doubt.rows == ROWS_NOT_SENT)
            return lock_went_alone(lock, LOCK_NEW, t);
        return ask_granted(lock, t, before_ms);
    case VERDICT_UNKNOWN:
        return lock_unknown(lock, LOCK_ASK_UNKNOWN, t);
    case VERDICT_FAILED:
        lock_not_done(lock, LOCK_NEW, t);
        return t->step.moves ? refuse_moving(lock) : lock_failed(t);
    case VERDICT_CUSTOMER_BUSY:
        return ask_refuse_customer_busy(lock);
    case VERDICT_DECIDING:
        return refuse_deciding(lock, t, before_ms);
    case VERDICT_LOST:
        /* It was granted, and is over: whoever holds the row now answers for it. */
    case VERDICT_REFUSED:
        break;
    }
    status = lock_read(lock);
    if (status != TL_OK) {
        client_lose_track(lock->base.client); /* the row may still be this handle's */
        return status;
    }
    if (ask_is_mine(lock))
        return ask_granted(lock, &(step_task){.step = t->step}, before_ms);
    /* The handle holds nothing now, whatever became of an earlier ask. */
    handle_become(&lock->base, LOCK_NEW);
    if (t->step.kind == STEP_ASK_REPEATABLE) {
        /* Death is final: the same fence is still a dead holder's when it is asked again. */
        *again = lock->view.status == 'P' && !lock->inside.alive && !ask_kind_differs(lock);
        return ask_classify_repeating(lock);
    }
    *again = lock->view.state == TL_STATE_ABSENT;
    return *again ? TL_BUSY : ask_classify(lock);
}

void ask_fill(tl_lock *lock, step_task *t, step_kind kind, int fresh_token)
{
    char submitter[TL_UUID_TEXT];

    memcpy(submitter, lock->base.thread_no, sizeof submitter);
    lock_begin_step(lock, t, kind, fresh_token);
    if (atomic_load(&lock->submitted))
        memcpy(lock->base.thread_no, submitter, sizeof submitter);
    t->step.held_fence = 0; /* no holder was seen dead yet */
    fill_ask(lock, &t->step);
}

/* ------------------------------------------------------------- a channel that is paused -- */

tl_status ask_check_paused(tl_lock *lock)
{
    tl_status status;

    /* An ask whose answer was lost goes on: it may have been granted before the pause. */
    if (lock->base.state == LOCK_ASK_UNKNOWN)
        return TL_OK;
    status = lock_pass_gate(lock, GATE_ASK, lock->options.max_hold_ms);
    return status == TL_OVERLOADED ? refuse_for_now(lock) : status;
}

int ask_is_paused(const tl_lock *lock)
{
    return lock->base.state != LOCK_ASK_UNKNOWN &&
           gate_check(lock->base.client, lock->channel, lock->op_code, 0) != TL_OK;
}

int ask_begin_waits(const tl_lock *lock)
{
    return (lock->options.flags & TL_ASK_RECLAIM) ||
           gate_is_limited(lock->base.client, lock->channel);
}

tl_status ask_check_permit(tl_lock *lock)
{
    if (!gate_has_permit(&lock->pass) || lock->pass.life == lock->base.life)
        return TL_OK;
    return error_set(TL_SESSION_LOST, "the session ended while the ask waited for the channel's "
                                      "limit: nothing was asked for");
}

static tl_status begin_as(tl_lock *lock, step_task *t, step_kind kind, int fresh_token)
{
    TRY(ask_check_paused(lock));
    TRY(ask_make_channel_key(lock, kind == STEP_RECLAIM ? lock->options.reclaim_epoch + 1 : 1));
    ask_fill(lock, t, kind, fresh_token);
    TRY(ask_check_permit(lock));
    /* A caller that named the fence knows what the reclaim makes of the row; others must read. */
    return kind == STEP_RECLAIM && t->step.reclaim_fence == 0 ? lock_read_with(lock, t) : TL_OK;
}

tl_status ask_begin(tl_lock *lock, step_task *t, int fresh_token)
{
    return begin_as(lock, t, kind_of(lock), fresh_token);
}

/*
 * Whether the row that was read refuses this ask, whatever an open transaction makes of it.
 * Contents and kind never change, Y is final for a trade, and a row that is held or being decided
 * answers BUSY either way.  Any other row needs a statement, which alone sees that somebody has the
 * row locked: BUSY comes before FAILED and IN_DOUBT.
 */
static int would_refuse(const tl_lock *lock)
{
    const tl_view *v = &lock->view;

    if (v->state == TL_STATE_ABSENT)
        return 0;
    if (ask_kind_differs(lock) || (v->status == 'P' && lock->inside.alive))
        return 1;
    return !lock_repeats(lock) && (ask_fingerprint_differs(lock) || v->status == 'Y');
}

/*
 * Shares a read with others of this process that were refused for the same key and are reading why.
 * If a read that begins now shows a refusal, that is this ask's answer too, and it sends no
 * statement.  If nobody else of this process asks about the key, nothing is read.  If the lock was
 * freed while they read, this ask waits for their read.
 */
static int refused_with_others(tl_lock *lock, step_kind kind, tl_status *status)
{
    if (kind == STEP_RECLAIM || (lock->options.flags & TL_ASK_EXCLUSIVE) ||
        lock->base.state != LOCK_NEW ||
        !shared_read_under_way(lock->base.client->reads, lock->wait_key) ||
        lock_read(lock) != TL_OK || !would_refuse(lock))
        return 0;
    *status = lock_repeats(lock) ? ask_classify_repeating(lock) : ask_classify(lock);
    return 1;
}

tl_status ask_sync_once(tl_lock *lock)
{
    step_kind kind = kind_of(lock);
    uint64_t dead_fence = 0;
    tl_status refusal;

    if (refused_with_others(lock, kind, &refusal))
        return refusal;
    for (int try = 0; try < ASK_TRIES; try++) {
        step_task t;
        int64_t before_ms = clock_boottime_ms();
        int again = 0;
        tl_status status;

        TRY(begin_as(lock, &t, kind, lock->base.state != LOCK_ASK_UNKNOWN || try > 0));
        t.step.held_fence = dead_fence;
        task_run(lock->base.client->engine, step_task_of(&t),
                 lock->base.client->config.pool_wait_ms);
        status = ask_verdict(lock, &t, before_ms, &again);
        if (!again)
            return status;
        if (kind == STEP_ASK_REPEATABLE)
            dead_fence = lock->view.fence;
        else
            kind = STEP_ASK; /* a row to reclaim that is gone is asked for as a new one */
    }
    return error_set(TL_BUSY, "others come and go at this row; ask again");
}

/* --------------------------------------------------------------------- waiting -- */

tl_status ask_over(tl_lock *lock, tl_status status)
{
    tl_class class_ = tl_status_class(status);

    /* What is in doubt may yet turn out to be granted. */
    if (lock->base.state != LOCK_ASK_UNKNOWN)
        gate_leave(lock->base.client, &lock->pass);
    if (status == TL_GRANTED || status == TL_UNKNOWN)
        return error_over(status);
    /* "Nothing happened" is true of this try, but not known of the one before, which keeps its
     * permit. */
    if (lock->base.state == LOCK_ASK_UNKNOWN &&
        (class_ == TL_CLASS_RETRY || class_ == TL_CLASS_BROKEN))
        return error_prefix(TL_UNKNOWN, "the earlier ask is not settled");
    gate_drop(lock->base.client, &lock->pass); /* nothing is sent */
    handle_become(&lock->base, LOCK_NEW);
    /* A restore may have been noticed meanwhile, by a new connection or during the wait.  What the
     * row says may then be older than what was lost. */
    if (class_ == TL_CLASS_CONFLICT || status == TL_FAILED) {
        tl_status believed = lock_check_row(lock);

        if (believed != TL_OK) {
            client_lose_track(lock->base.client); /* the row may still be this handle's */
            return believed;
        }
    }
    return status;
}

void ask_count(tl_lock *lock, tl_status status, int64_t since_us)
{
    histogram_add_since(&lock->base.client->counters.asks_took, since_us);
    if (tl_status_class(status) != TL_CLASS_CONFLICT && status != TL_ALREADY_DONE &&
        status != TL_FAILED)
        return;
    (void)lock_refused(&lock->base, status);
}

int ask_is_claim(const tl_lock *lock)
{
    return lock->options.lane == TL_LANE_RETRY && !lock_is_standalone(lock);
}

tl_status ask_once(tl_lock *lock)
{
    return ask_over(lock, ask_is_claim(lock) ? ask_retry_once(lock) : ask_sync_once(lock));
}

struct asking {
    tl_lock *lock;
    ask_fn once;
    void *context;
};

static tl_status run_ask(void *context)
{
    const struct asking *a = context;

    return a->once(a->lock, a->context);
}

tl_status ask_waiting(tl_lock *lock, int64_t wait_ms, ask_fn once, void *context)
{
    struct asking asking = {lock, once, context};

    return lock_wait(&lock->base, wait_ms, run_ask, &asking);
}

tl_status ask_check(const tl_lock *lock)
{
    TRY(lock_check_call(lock));
    TRY(handle_check_asking(&lock->base));
    if (lock->base.state != LOCK_NEW && lock->base.state != LOCK_ASK_UNKNOWN)
        return error_set(TL_WRONG_STATE, "this handle has been granted its lock already");
    return TL_OK;
}

static tl_status ask_alone(tl_lock *lock, void *unused)
{
    (void)unused;
    return ask_once(lock);
}

tl_status tl_lock_ask(tl_lock *lock, int64_t wait_ms)
{
    const int64_t since_us = clock_boottime_us();
    tl_status status;

    error_clear();
    TRY(ask_check(lock));
    client_add(&lock->base.client->counters.asks, 1);
    /* Without a wait the first answer counts, and nobody queues for it. */
    status = wait_ms > 0 ? ask_waiting(lock, wait_ms, ask_alone, NULL) : ask_once(lock);
    ask_count(lock, status, since_us);
    return status;
}
