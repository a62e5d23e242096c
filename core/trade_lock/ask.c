/*
 * Asking for the trade-sync lock.  One statement when nobody is in the way; a refused statement
 * wrote nothing, and a plain read then says who or what is in the way.
 */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "client/restored.h"
#include "store/store.h"

#include <string.h>

/* A row that is absent after it refused an insert was purged in between; a mutex whose holder turns
 * out to be dead is asked for again, by the fence that was seen. */
#define ASK_TRIES 3
#define FINGERPRINT_TEXT 9 /* 8 digits and the end */

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
                          lock->client->config.site, lock->channel, &key, epoch);
}

/* ------------------------------------------------------------ why it was refused -- */

static tl_status find_customer(tl_lock *lock)
{
    tl_client *client = lock->client;
    db_result result = DB_RESULT_INIT;
    db *connection;
    tl_status status =
        pool_get(client->connections, POOL_QUICK, client->config.pool_wait_ms, &connection);

    if (status != TL_OK)
        return status;
    if (store_customer_busy(connection, lock->cust_no, lock->op_code, &result) == DB_DONE &&
        result.rows > 0) {
        text_copy(lock->view.other_serial, sizeof lock->view.other_serial,
                  db_get_text(&result, 0, 0));
        lock->view.other_state = view_state(db_get_text(&result, 0, 1));
    }
    db_result_free(&result);
    pool_put(client->connections, connection);
    return TL_OK;
}

/* Of a payment that was filed after a restore nobody knows the contents: it contradicts no ask, and
 * answers each. */
static int fingerprint_differs(const tl_lock *lock)
{
    if (lock->view.status == 'Y' && !lock->inside.has_fingerprint)
        return 0;
    if (!lock->has_fingerprint || !lock->inside.has_fingerprint)
        return lock->has_fingerprint != lock->inside.has_fingerprint;
    return memcmp(lock->fingerprint, lock->view.fingerprint, TL_FINGERPRINT) != 0;
}

/* The key belongs to the other kind of row: a mutex never takes over a payment, and a payment is
 * never answered for by a mutex. */
static int kind_differs(const tl_lock *lock)
{
    return lock->view.state != TL_STATE_ABSENT &&
           (lock->view.repeatable != 0) != lock_is_mutex(lock);
}

static tl_status refuse_kind(const tl_lock *lock)
{
    return error_set(TL_MISMATCH,
                     lock->view.repeatable
                         ? "this key is a mutex (a repeatable or standalone operation), "
                           "and was asked for as a trade that happens once"
                         : "this key is a trade that happens once, and was asked for as "
                           "a mutex (a repeatable or standalone operation)");
}

static tl_status refuse_customer_busy(tl_lock *lock)
{
    tl_status status = lock_read(lock);

    if (status == TL_OK)
        status = find_customer(lock);
    if (status != TL_OK)
        return status;
    /* The row may have come to be while the customer was looked up; and other contents come before
     * everything else. */
    if (kind_differs(lock) || (lock->view.state != TL_STATE_ABSENT &&
                               (lock->view.status != 'F' || fingerprint_differs(lock))))
        return ask_classify(lock);
    return error_set(TL_CUSTOMER_BUSY, "serial %s of this customer is in process",
                     lock->view.other_serial[0] != '\0' ? lock->view.other_serial
                                                        : "(another, just decided)");
}

static tl_status classify_not_live(const tl_lock *lock)
{
    switch (lock->view.state) {
    case TL_STATE_PARKED:
        return error_set(TL_PARKED, "parked: %s", lock->view.parked);
    case TL_STATE_QUEUED:
        return error_set(TL_QUEUED, "nothing was sent yet; the retry lane will send");
    default:
        return error_set(TL_IN_DOUBT, "money may have moved; the retry lane finds out");
    }
}

/* The row as it was read, in the order of precedence. */
tl_status ask_classify(tl_lock *lock)
{
    const tl_view *v = &lock->view;

    if (kind_differs(lock))
        return refuse_kind(lock);
    if (fingerprint_differs(lock))
        return error_set(TL_MISMATCH, "the same key was asked for with other contents");
    if (v->status == 'Y')
        return TL_ALREADY_DONE;
    if (v->status == 'F' && v->conflict)
        return error_set(TL_IN_CONFLICT,
                         "the trade failed with proof (%s), but evidence "
                         "says that money moved",
                         tl_proof_text((tl_proof)v->proof));
    if (v->status == 'F')
        return error_set(TL_FAILED, "the trade failed: %s", tl_proof_text((tl_proof)v->proof));
    if (lock->inside.alive)
        return error_set(TL_BUSY, "in process by %s", v->holder);
    return classify_not_live(lock);
}

tl_status ask_classify_mutex(tl_lock *lock)
{
    if (kind_differs(lock))
        return refuse_kind(lock);
    if (lock->view.status == 'Y' && lock_is_standalone(lock))
        return TL_ALREADY_DONE;
    if (lock->view.state == TL_STATE_ABSENT)
        lock->view.being_decided = 1;
    return error_set(TL_BUSY, "in process by %s",
                     lock->view.holder[0] != '\0' ? lock->view.holder : "another attempt");
}

/* ------------------------------------------------------------------ asking once -- */

/* A row that refused an insert: reclaimed when the caller says so, else explained. */
static step_kind kind_of(const tl_lock *lock)
{
    if (lock_is_mutex(lock))
        return STEP_ASK_REPEATABLE;
    return lock->options.flags & TL_ASK_RECLAIM ? STEP_RECLAIM : STEP_ASK;
}

/* The last step at the row is this handle's, and nobody has gone on from there. */
static int is_last_here(const tl_lock *lock)
{
    return lock->view.status == 'P' &&
           memcmp(lock->inside.token, lock->next_token, STEP_TOKEN) == 0 &&
           strcmp(lock->view.session_id, life_session_id(lock->life)) == 0;
}

int ask_is_mine(const tl_lock *lock)
{
    return is_last_here(lock) && lock->inside.alive;
}

/*
 * The hold as the row has it, where the step's own answer does not tell or is too old: a step that
 * was settled, a claim of a batch, a reclaim that names no fence and carries business rows, a
 * thread that was stopped.
 */
static tl_status read_grant(tl_lock *lock, const step_task *t)
{
    int64_t before_ms = clock_boottime_ms();
    tl_status status = lock_read(lock);

    if (status != TL_OK) {
        /* It is granted, and nobody knows the fence.  Asking again with this token would write it a
         * second time; settling reads it.  The connection that wrote it has answered, so a name
         * that nobody has says as much: nothing is under way. */
        lock_become(lock, LOCK_ASK_UNKNOWN);
        doubt_row(&lock->doubt);
        lock->doubt.rows = t->task.doubt.rows;
        return error_prefix(TL_UNKNOWN, "granted, but the row could not be read");
    }
    /* A hold whose time is over is one as long as nobody else has taken it. */
    if (!ask_is_mine(lock) && !(is_last_here(lock) && life_left_ms(lock->life) > 0)) {
        lock_become(lock, LOCK_NEW);
        if (t->step.kind == STEP_ASK && lock->view.state != TL_STATE_ABSENT)
            return ask_classify(lock);
        return error_set(TL_BUSY, "the lock was granted and taken over at once");
    }
    lock_hold(lock, t, before_ms, (lock->view.max_hold_until_us - lock->view.now_us) / 1000);
    lock->fence = lock->view.fence;
    lock->epoch = lock->view.epoch;
    return TL_OK;
}

/* Nobody can have taken over what was granted to a session that certainly lives, before its
 * max_hold was over. */
static int is_certain(const tl_lock *lock, int64_t before_ms)
{
    return life_left_ms(lock->life) > 0 && clock_left_ms(before_ms + lock->options.max_hold_ms) > 0;
}

/* A worker's thread that claims has no work of its own; the claim goes on with the trade's, which
 * the row says. */
static void log_grant(const tl_lock *lock)
{
    tl_key key = lock_key(lock);
    int lent = thread_context_lend(lock->view.log_no);

    log_line(&lock->client->logger, TL_INFO, &key, lock->fence, "%s lock granted",
             lock->options.lane == TL_LANE_RETRY ? "retry-compensation" : "trade-sync");
    if (lent)
        thread_context_work("");
}

tl_status ask_granted(tl_lock *lock, const step_task *t, int64_t before_ms)
{
    /* A step that was settled may have been committed long ago: what is left of its max_hold is
     * read, not assumed.  And where the answer came too late to be certain, this process having
     * been stopped perhaps, the row is asked. */
    if (t->step.fence != 0 && !t->task.settled &&
        (is_certain(lock, before_ms) || fault_mutated("session"))) {
        lock_hold(lock, t, before_ms, lock->options.max_hold_ms);
        lock->epoch = t->step.epoch;
        lock_view_granted(lock, t);
    } else {
        tl_status status = read_grant(lock, t);

        if (status != TL_OK)
            return status;
    }
    lock->own_sends = 0;
    if (lock->options.lane == TL_LANE_RETRY)
        lock->clock_steps = clock_watch_steps(lock->client);
    else if (!lock->options.not_sent)
        lock_count_send(lock, 0, 0);
    client_add(&lock->client->counters.grants, 1);
    log_grant(lock);
    return TL_GRANTED;
}

static tl_status refuse_deciding(tl_lock *lock, const step_task *t, int64_t before_ms)
{
    tl_status status = lock_read(lock);

    if (status != TL_OK)
        return status;
    if (ask_is_mine(lock))
        return ask_granted(lock, &(step_task){.step = t->step}, before_ms);
    if (kind_differs(lock))
        return refuse_kind(lock);
    if (lock->view.state != TL_STATE_ABSENT && !lock_is_mutex(lock) && fingerprint_differs(lock))
        return ask_classify(lock);
    if ((lock->options.flags & TL_ASK_EXCLUSIVE) &&
        (lock->view.state == TL_STATE_ABSENT || lock->view.status == 'F'))
        return refuse_customer_busy(lock);
    lock->view.being_decided = 1;
    return error_set(TL_BUSY, "an open transaction is deciding this trade");
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
        return lock_failed(t);
    case VERDICT_CUSTOMER_BUSY:
        return refuse_customer_busy(lock);
    case VERDICT_DECIDING:
        return refuse_deciding(lock, t, before_ms);
    case VERDICT_LOST:
        /* It was granted, and is over: whoever holds the row now answers for it. */
    case VERDICT_REFUSED:
        break;
    }
    status = lock_read(lock);
    if (status != TL_OK) {
        client_lose_track(lock->client); /* the row may be this handle's all the same */
        return status;
    }
    if (ask_is_mine(lock))
        return ask_granted(lock, &(step_task){.step = t->step}, before_ms);
    /* Whatever became of an earlier ask, it holds nothing now. */
    lock_become(lock, LOCK_NEW);
    if (t->step.kind == STEP_ASK_REPEATABLE) {
        /* Death is final: the same fence is still a dead holder's when it is asked again. */
        *again = lock->view.status == 'P' && !lock->inside.alive && !kind_differs(lock);
        return ask_classify_mutex(lock);
    }
    *again = lock->view.state == TL_STATE_ABSENT;
    return *again ? TL_BUSY : ask_classify(lock);
}

void ask_fill(tl_lock *lock, step_task *t, step_kind kind, int fresh_token)
{
    lock_begin_step(lock, t, kind, fresh_token);
    t->step.held_fence = 0; /* no holder was seen dead yet */
    fill_ask(lock, &t->step);
}

static tl_status begin_as(tl_lock *lock, step_task *t, step_kind kind, int fresh_token)
{
    tl_status status =
        ask_make_channel_key(lock, kind == STEP_RECLAIM ? lock->options.reclaim_epoch + 1 : 1);

    if (status != TL_OK)
        return status;
    ask_fill(lock, t, kind, fresh_token);
    /* Whoever named the fence knows what a reclaim makes of the row. */
    return kind == STEP_RECLAIM && t->step.reclaim_fence == 0 ? lock_read_with(lock, t) : TL_OK;
}

tl_status ask_begin(tl_lock *lock, step_task *t, int fresh_token)
{
    return begin_as(lock, t, kind_of(lock), fresh_token);
}

/*
 * Whether the row as it was read refuses this ask whatever an open transaction makes of it:
 * contents and kind never change, Y is terminal for a trade, and BUSY is the answer of a row that
 * is held and of one that is being decided.  Any other row is asked by a statement, which alone
 * sees that somebody has it locked: BUSY comes before FAILED and IN_DOUBT.
 */
static int would_refuse(const tl_lock *lock)
{
    const tl_view *v = &lock->view;

    if (v->state == TL_STATE_ABSENT)
        return 0;
    if (kind_differs(lock) || (v->status == 'P' && lock->inside.alive))
        return 1;
    return !lock_is_mutex(lock) && (fingerprint_differs(lock) || v->status == 'Y');
}

/*
 * Others of this process were refused for the same key and are reading why: what a read shows that
 * begins now is this ask's answer too, where it is a refusal, and no statement of its own is sent.
 * An ask for a key that nobody else of this process asks about goes without any read; one for a
 * lock that was freed while they read waits for their read.
 */
static int refused_with_others(tl_lock *lock, step_kind kind, tl_status *status)
{
    if (kind == STEP_RECLAIM || (lock->options.flags & TL_ASK_EXCLUSIVE) ||
        lock->state != LOCK_NEW || !shared_read_under_way(lock->client->reads, lock->wait_key) ||
        lock_read(lock) != TL_OK || !would_refuse(lock))
        return 0;
    *status = lock_is_mutex(lock) ? ask_classify_mutex(lock) : ask_classify(lock);
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
        tl_status status = begin_as(lock, &t, kind, lock->state != LOCK_ASK_UNKNOWN || try > 0);

        if (status != TL_OK)
            return status;
        t.step.held_fence = dead_fence;
        task_run(lock->client->transitions, step_task_of(&t), lock->client->config.pool_wait_ms);
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

/* A mutex guards no money, and a claim only asks. */
static tl_status check_restored(const tl_lock *lock)
{
    if (lock->options.lane != TL_LANE_SYNC || lock_is_repeatable(lock))
        return TL_OK;
    return restored_check(lock->client);
}

tl_status ask_over(tl_lock *lock, tl_status status)
{
    tl_class class_ = tl_status_class(status);

    if (status == TL_GRANTED || status == TL_UNKNOWN)
        return error_over(status);
    /* "Nothing happened" is true of this try, and not known of the one before. */
    if (lock->state == LOCK_ASK_UNKNOWN && (class_ == TL_CLASS_RETRY || class_ == TL_CLASS_BROKEN))
        return error_prefix(TL_UNKNOWN, "the earlier ask is not settled");
    lock_become(lock, LOCK_NEW);
    /* Noticed on the way, by a new connection or while it waited: what a restored row says may have
     * been overtaken in what was lost. */
    if (class_ == TL_CLASS_CONFLICT || status == TL_FAILED) {
        tl_status restored = check_restored(lock);

        if (restored != TL_OK)
            return restored;
    }
    return status;
}

/* The first digits of a fingerprint. */
static const char *fingerprint_text(char to[FINGERPRINT_TEXT], int has,
                                    const unsigned char *fingerprint)
{
    if (!has)
        return "none";
    text_hex(to, fingerprint, (FINGERPRINT_TEXT - 1) / 2);
    return to;
}

/* Other contents under one key are a program's mistake, or fraud. */
static void log_mismatch(const tl_lock *lock, const tl_key *key)
{
    char own[FINGERPRINT_TEXT], other[FINGERPRINT_TEXT];

    if (lock->view.repeatable || lock_is_mutex(lock)) {
        log_line(&lock->client->logger, TL_WARNING, key, 0, "refused, TL_MISMATCH: %s",
                 tl_error_message());
        return;
    }
    log_line(&lock->client->logger, TL_WARNING, key, 0,
             "refused, TL_MISMATCH: %s (fingerprint %s%s%s, the trade has %s)", tl_error_message(),
             fingerprint_text(own, lock->has_fingerprint, lock->fingerprint),
             lock->actor[0] != '\0' ? " of " : "", lock->actor,
             fingerprint_text(other, lock->inside.has_fingerprint, lock->view.fingerprint));
}

static void log_refusal(const tl_lock *lock, tl_status status)
{
    tl_key key = lock_key(lock);

    if (status == TL_MISMATCH)
        log_mismatch(lock, &key);
    else if (status == TL_ALREADY_DONE) /* which leaves no sentence */
        log_line(&lock->client->logger, TL_DEBUG, &key, 0, "refused, TL_ALREADY_DONE");
    else
        log_line(&lock->client->logger, TL_DEBUG, &key, 0, "refused, %s: %s",
                 tl_status_name(status), tl_error_message());
}

void ask_count(tl_lock *lock, tl_status status)
{
    if (tl_status_class(status) != TL_CLASS_CONFLICT && status != TL_ALREADY_DONE &&
        status != TL_FAILED)
        return;
    client_add(&lock->client->counters.refusals, 1);
    log_refusal(lock, status);
}

int ask_is_claim(const tl_lock *lock)
{
    return lock->options.lane == TL_LANE_RETRY && !lock_is_standalone(lock);
}

tl_status ask_once(tl_lock *lock)
{
    return ask_over(lock, ask_is_claim(lock) ? ask_retry_once(lock) : ask_sync_once(lock));
}

static int may_pass(tl_status status)
{
    return status == TL_BUSY || status == TL_CUSTOMER_BUSY || status == TL_NOT_DUE;
}

struct asking {
    tl_lock *lock;
    ask_fn once;
    void *context;
};

static int run_ask(void *context)
{
    const struct asking *a = context;

    return (int)a->once(a->lock, a->context);
}

static void give_up_turn(void *of, void *what)
{
    (void)of;
    waiters_leave(what);
}

/* A callback of its may be left, and with it this turn. */
static tl_status ask_in_turn(struct asking *asking, waiter *me)
{
    call_out call = {.fn = run_ask, .context = asking, .left = give_up_turn, .what = me};

    return (tl_status)thread_context_call_out(&call);
}

tl_status ask_waiting(tl_lock *lock, int64_t wait_ms, ask_fn once, void *context)
{
    struct asking asking = {lock, once, context};

    const struct config *config = &lock->client->config;
    int64_t deadline_ms = clock_deadline(wait_ms), pause_ms = config->ask_wait_min_ms;
    tl_status status = TL_TIMEOUT;
    waiter *me = waiters_join(lock->client->waiting, lock->wait_key);

    if (me == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for waiting");
    (void)error_set(TL_TIMEOUT, "others of this process wait for the same lock");
    (void)waiters_turn(me, deadline_ms);
    while (status == TL_TIMEOUT || may_pass(status)) {
        int64_t until_ms;

        if (status == TL_TIMEOUT && clock_left_ms(deadline_ms) == 0)
            break;
        status = ask_in_turn(&asking, me);
        if (!may_pass(status) || clock_left_ms(deadline_ms) == 0)
            break;
        until_ms = clock_deadline(random_jitter_ms(pause_ms, 50));
        waiters_pause(me, until_ms < deadline_ms ? until_ms : deadline_ms);
        pause_ms = pause_ms * 2 < config->ask_wait_max_ms ? pause_ms * 2 : config->ask_wait_max_ms;
    }
    waiters_leave(me);
    return status;
}

tl_status ask_check(const tl_lock *lock)
{
    tl_status status = lock_check(lock);

    if (status == TL_OK)
        status = client_check_asking(lock->client);
    if ((status == TL_UNREACHABLE || status == TL_SESSION_LOST) && lock->state == LOCK_ASK_UNKNOWN)
        status = error_prefix(TL_UNKNOWN, "the earlier ask is not settled");
    if (status == TL_OK)
        status = check_restored(lock);
    if (status == TL_OK && lock->state != LOCK_NEW && lock->state != LOCK_ASK_UNKNOWN)
        status = error_set(TL_WRONG_STATE, "this handle has been granted its lock already");
    return status;
}

static tl_status ask_alone(tl_lock *lock, void *unused)
{
    (void)unused;
    return ask_once(lock);
}

tl_status tl_lock_ask(tl_lock *lock, int64_t wait_ms)
{
    tl_status status;

    error_clear();
    status = ask_check(lock);
    if (status != TL_OK)
        return status;
    client_add(&lock->client->counters.asks, 1);
    /* Without a wait the first answer counts, and nobody queues for it. */
    status = wait_ms > 0 ? ask_waiting(lock, wait_ms, ask_alone, NULL) : ask_once(lock);
    ask_count(lock, status);
    return status;
}
