/* Takes a grant of a trade's lock, and has the table of this kind of lock.  The row is read if the
 * step's answer does not tell, or came too late. */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread_context.h"

#include <string.h>

/* Whether the last step on the row is this handle's, and nobody has gone on from there. */
static int is_last_here(const tl_lock *lock)
{
    return lock->view.status == 'P' &&
           memcmp(lock->inside.token, lock->base.next_token, STEP_TOKEN) == 0 &&
           strcmp(lock->view.session_id, life_session_id(lock->base.life)) == 0;
}

int ask_is_mine(const tl_lock *lock)
{
    return is_last_here(lock) && lock->inside.alive && lock_check_row(lock) == TL_OK;
}

/* A grant under way. */
struct granting {
    const step_task *t;
    int was_read;      /* the row was read */
    int64_t before_ms; /* CLOCK_BOOTTIME, from before the row was read */
};

/*
 * Reads the hold from the row, if the step's own answer does not tell or is too old: after a
 * settled step, a claim in a batch, a reclaim with business rows that names no fence, or in a
 * thread that was stopped.  A hold whose time is over still counts until somebody else takes it.
 */
static tl_status look(lock_handle *h, void *granting, lock_offer *offer, int *mine)
{
    tl_lock *lock = (tl_lock *)h;
    struct granting *g = granting;
    int64_t before_ms = clock_boottime_ms();

    TRY(lock_read(lock));
    g->was_read = 1;
    g->before_ms = before_ms;
    *mine = is_last_here(lock) && (lock->inside.alive || life_left_ms(h->life) > 0) &&
            lock_check_row(lock) == TL_OK;
    offer->before_ms = before_ms;
    offer->left_ms = (lock->view.max_hold_until_us - lock->view.now_us) / 1000;
    offer->fence = lock->view.fence;
    return TL_OK;
}

/* Nothing is given back: the retry lane owns what is left of it. */
static tl_status gone(lock_handle *h, void *granting)
{
    tl_lock *lock = (tl_lock *)h;
    const struct granting *g = granting;

    handle_become(h, LOCK_NEW);
    if (g->t->step.kind == STEP_ASK && lock->view.state != TL_STATE_ABSENT)
        return ask_classify(lock);
    return error_set(TL_BUSY, "the lock was granted and taken over at once");
}

static void in_doubt(lock_handle *h, const void *granting)
{
    h->doubt.rows = ((const struct granting *)granting)->t->task.doubt.rows;
}

/* Logs the grant.  A worker's thread has no log UUID of its own, so a claim is logged under the
 * trade's, which the row names. */
static void log_grant(const tl_lock *lock)
{
    int lent = thread_context_lend(lock->view.log_no);

    lock_log(lock, TL_INFO, lock->grant.fence, "%s lock granted",
             lock->options.lane == TL_LANE_RETRY ? "retry-compensation" : "trade-sync");
    if (lent)
        thread_context_work("");
}

/* A new row's revision is its fence, and its fence is the server's microseconds. */
static int is_new(const tl_lock *lock, const struct granting *g)
{
    return g->t->step.kind == STEP_ASK && lock->epoch == 1;
}

/* Whether the server's clock stood back when the row got its moments, so that by the right clock
 * the hold is over sooner.  The fence of a new row tells it; so does a row that was read. */
static int is_by_a_clock_set_back(const tl_lock *lock, const struct granting *g)
{
    if (!g->was_read && !is_new(lock, g))
        return 0;
    return clock_watch_was_back(lock->base.client,
                                g->was_read ? lock->view.now_us : (int64_t)lock->grant.fence,
                                g->before_ms * 1000);
}

static tl_status granted(lock_handle *h, void *granting)
{
    tl_lock *lock = (tl_lock *)h;
    const struct granting *g = granting;

    lock->epoch = g->was_read ? lock->view.epoch : g->t->step.epoch;
    if (!g->was_read)
        lock_view_granted(lock, g->t);
    lock->own_sends = 0;
    lock->pass.heard = GATE_NOTHING;
    lock->pass.is_counted = 0;
    lock->known_rev = is_new(lock, g) ? lock->grant.fence : lock->view.rev;
    if (g->t->step.kind == STEP_CLAIM)
        (void)lock_view_fits(lock, g->before_ms * 1000);
    if (lock->options.lane == TL_LANE_SYNC && !lock->options.not_sent)
        lock_count_send(lock, 0, 0);
    /* For others the hold may be over, so nothing is sent under it. */
    if (lock->options.lane == TL_LANE_SYNC && !lock_is_repeatable(lock) &&
        is_by_a_clock_set_back(lock, g))
        lock->grant.until_ms = g->before_ms;
    log_grant(lock);
    return TL_GRANTED;
}

const lock_method trade_method = {
    .wait_prefix = "",
    .is_swept = 1,
    .lost = "the lock was taken over; nothing was written",
    .look = look,
    .gone = gone,
    .granted = granted,
    .in_doubt = in_doubt,
    .explain = ask_explain,
};

tl_status ask_granted(tl_lock *lock, const step_task *t, int64_t before_ms)
{
    struct granting granting = {.t = t, .before_ms = before_ms};
    /* A step that was settled may have been committed long ago: what is left of its max_hold is
     * read, not assumed. */
    lock_offer offer = {.unread = t->step.fence == 0 || t->task.settled,
                        .fence = t->step.fence,
                        .by_session = 1,
                        .before_ms = before_ms,
                        .left_ms = lock->options.max_hold_ms};

    return lock_take(&lock->base, &granting, &offer);
}
