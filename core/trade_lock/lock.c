/* What a trade lock knows without a round trip, and freeing it.  Touches the handle only. */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/fault.h"
#include "base/text.h"
#include "base/thread_context.h"
#include "store/store.h"

#include <tradelock/layer.h>

#include <assert.h>
#include <stdarg.h>
#include <string.h>

/* ------------------------------------------------------------- what it knows -- */

tl_status lock_check(const tl_lock *lock)
{
    if (lock == NULL)
        return error_set(TL_INVALID, "lock is NULL");
    return client_check(lock->base.client);
}

tl_status lock_check_call(const tl_lock *lock)
{
    TRY(lock_check(lock));
    if (atomic_load(&lock->submitted))
        return error_set(TL_WRONG_STATE, "what was submitted with this handle is not completed "
                                         "yet");
    return TL_OK;
}

tl_status lock_check_held(const tl_lock *lock)
{
    TRY(lock_check_call(lock));
    return handle_check_held(&lock->base);
}

int lock_is_standalone(const tl_lock *lock)
{
    return (lock->options.flags & TL_ASK_STANDALONE) != 0;
}

int lock_is_repeatable(const tl_lock *lock)
{
    return (lock->options.flags & TL_ASK_REPEATABLE) != 0;
}

int lock_repeats(const tl_lock *lock)
{
    return lock_is_repeatable(lock) || lock_is_standalone(lock);
}

tl_key lock_key(const tl_lock *lock)
{
    tl_key key = {lock->serial_no, lock->cust_no, lock->op_code};

    return key;
}

const char *lock_row_op(const tl_lock *lock)
{
    return lock_is_standalone(lock) ? lock->retry_op : lock->op_code;
}

const tl_view *tl_lock_view(const tl_lock *lock)
{
    static const tl_view nothing = {.version = TL_VIEW_VERSION,
                                    .lane = 'S',
                                    .status = ' ',
                                    .retry_status = ' ',
                                    .proof = TL_PROOF_NONE,
                                    .holder_silent_ms = -1};

    return lock != NULL ? &lock->view : &nothing;
}

const tl_said *tl_lock_said(const tl_lock *lock)
{
    static const tl_said nothing;

    return lock != NULL ? &lock->said : &nothing;
}

/* In the callback of its ending too. */
static int is_held(const tl_lock *lock)
{
    return lock->base.state == LOCK_HELD ||
           (lock->base.state == LOCK_END_UNKNOWN && thread_context_in_callback());
}

int64_t tl_lock_remaining_ms(const tl_lock *lock)
{
    if (lock_check(lock) != TL_OK || !is_held(lock))
        return 0;
    /* The session goes on being renewed while the channel is asked, so what is left of it does not
     * shorten the hold; once it is not certain nothing is. */
    return grant_left_ms(&lock->grant) > 0 ? clock_left_ms(lock->grant.until_ms) : 0;
}

int tl_may_send(const tl_lock *lock, int64_t send_ms)
{
    int64_t remaining_ms = tl_lock_remaining_ms(lock);

    if (fault_mutated("session"))
        return lock_check(lock) == TL_OK && lock->base.state == LOCK_HELD;
    return remaining_ms > 0 && remaining_ms >= send_ms;
}

/* ------------------------------------------------------------------- helpers -- */

/* In this order: whoever counts a jump knows that rows are not adjusted to it. */
static uint32_t known_jumps(tl_client *client)
{
    const uint32_t jumps = clock_watch_jumps(client);

    return clock_watch_is_clear(client) ? jumps : LOCK_CLOCK_DOUBT;
}

void lock_begin_step(tl_lock *lock, step_task *t, step_kind kind, int fresh_token)
{
    step *s = &t->step;

    memset(t, 0, sizeof *t);
    handle_begin(&lock->base, fresh_token);
    if (fresh_token && (kind == STEP_CLAIM || kind == STEP_ASK_REPEATABLE))
        lock->clock_jumps = known_jumps(lock->base.client);
    if (lock->base.doubt.is_open)
        t->task.doubt = lock->base.doubt;
    s->kind = kind;
    s->cust_no = lock->cust_no;
    s->serial_no = lock->serial_no;
    s->op_code = lock_row_op(lock);
    s->retry_op = lock->retry_op;
    memcpy(s->token, lock->base.next_token, STEP_TOKEN);
    memcpy(s->held_token, lock->grant.token, STEP_TOKEN);
    s->held_fence = lock->grant.fence;
    s->thread_no = lock->base.thread_no;
    s->log_no = lock->base.log_no[0] != '\0' ? lock->base.log_no : NULL;
    if (kind == STEP_CLAIM && s->log_no == NULL) {
        random_uuid(lock->base.log_no);
        s->new_log_no = lock->base.log_no;
    }
    s->session_id = life_session_id(lock->base.life);
    s->life = lock->base.life;
    s->lane = lock_is_standalone(lock) ? 'R' : 'S';
    s->once = !lock_repeats(lock);
    s->max_hold_ms = lock->options.max_hold_ms;
    s->deadline_ms = lock->options.deadline_ms > 0 ? lock->options.deadline_ms : -1;
    s->proof = '-';
    s->actor = lock->actor[0] != '\0' ? lock->actor : NULL;
    s->name = step_name(kind);
}

void lock_said(tl_said *to, const tl_lock *lock, const tl_view *from)
{
    *to = lock->said;
    if (from->created_us != 0) {
        TL_SAID_MAP(TL_KEEP)
    }
}

void lock_log(const tl_lock *lock, tl_level level, uint64_t fence, const char *format, ...)
{
    const struct logger *logger = &lock->base.client->logger;
    tl_key key = lock_key(lock);
    va_list arguments;
    tl_said said;

    if (!log_wanted(logger, level))
        return;
    lock_said(&said, lock, &lock->view);
    if (lock->said.traceparent[0] != '\0')
        text_copy(said.traceparent, sizeof said.traceparent, lock->said.traceparent);
    va_start(arguments, format);
    log_said_list(logger, level, &key, fence, &said, format, arguments);
    va_end(arguments);
}

void lock_lose(tl_lock *lock)
{
    handle_become(&lock->base, LOCK_LOST);
    client_add(&lock->base.client->counters.lost, 1);
    lock_log(lock, TL_WARNING, lock->grant.fence, "the lock was taken over: nothing was written");
}

tl_status lock_failed(const step_task *t)
{
    return t->task.status != TL_OK ? t->task.status
                                   : error_set(TL_INTERNAL, "a step failed without a reason");
}

void lock_not_done(tl_lock *lock, lock_state state, const step_task *t)
{
    assert(!t->task.doubt.is_open);
    (void)t;
    lock->base.doubt.is_open = 0;
    handle_become(&lock->base, state);
}

tl_status lock_went_alone(tl_lock *lock, lock_state state, const step_task *t)
{
    client_lose_track(lock->base.client);
    lock->base.doubt.is_open = 0;
    handle_become(&lock->base, state);
    lock_log(lock, TL_ALARM, lock->grant.fence, "'%s' was committed without its business rows",
             step_name(t->step.kind));
    return error_set(TL_CALLBACK_FAILED, "'%s' was committed without its business rows",
                     step_name(t->step.kind));
}

tl_status lock_unknown(tl_lock *lock, lock_state state, const step_task *t)
{
    assert(t->task.doubt.is_open);
    handle_unknown(&lock->base, state, &t->task.doubt);
    lock_log(lock, TL_ALARM, lock->grant.fence,
             "the answer to '%s' was lost and could not be settled yet", step_name(t->step.kind));
    /* Where a group was settled, its leader has the sentence and this thread has none. */
    return error_set(TL_UNKNOWN,
                     "the answer to '%s' was lost and the server cannot tell yet what "
                     "became of it; call again with the same handle",
                     step_name(t->step.kind));
}

int tl_lock_on_file(const tl_lock *lock)
{
    return lock == NULL || !lock->inside.nothing_filed;
}

struct reading {
    const tl_lock *lock;
    shared_row *row;
};

static db_answer run_reading(task *t, db *connection)
{
    const struct reading *r = t->context;
    const tl_lock *lock = r->lock;

    r->row->server = db_server_of(connection);
    return store_view(connection, lock->cust_no, lock->serial_no, lock_row_op(lock), &r->row->rows);
}

static tl_status read_row(void *context, shared_row *row)
{
    static const task_kind kind = {.reads = 1, .run = run_reading};
    struct reading r = {.lock = context, .row = row};
    const tl_client *client = r.lock->base.client;
    task t = {.kind = &kind, .name = "reading the row", .context = &r};

    task_run(client->engine, &t, client->config.pool_wait_ms);
    return t.verdict == VERDICT_APPLIED ? TL_OK : t.status;
}

tl_status lock_read(tl_lock *lock)
{
    const shared_row *row = shared_read(lock->base.client->reads, lock->wait_key, read_row, lock);

    shared_row_release(lock->row);
    lock->row = row;
    view_clear(&lock->view, &lock->inside);
    if (row == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for reading the row");
    if (row->status != TL_OK)
        return error_set(row->status, "%s", row->message);
    if (row->rows.rows == 1)
        view_read(&lock->view, &lock->inside, &row->rows, 0);
    /* Its time may be over only by a clock that was set; what is no payment is held then. */
    if (lock->view.repeatable && lock->view.status == 'P' &&
        lock->view.max_hold_until_us <= lock->view.now_us &&
        lock->view.max_hold_until_us > clock_watch_latest_us(lock->base.client))
        lock->inside.alive = 1;
    return TL_OK;
}

tl_status lock_check_row(const tl_lock *lock)
{
    if (lock->row == NULL || lock->row->server == NULL || lock->options.lane != TL_LANE_SYNC ||
        lock_is_repeatable(lock))
        return TL_OK;
    return task_check_server(lock->row->server, "reading the row");
}

int lock_view_fits(tl_lock *lock, int64_t before_us)
{
    if (clock_watch_fits(lock->base.client, &lock->view, before_us))
        return 1;
    lock->clock_jumps = LOCK_CLOCK_DOUBT;
    return 0;
}

int lock_is_timely(const tl_lock *lock)
{
    return clock_watch_jumps(lock->base.client) == lock->clock_jumps;
}

tl_status lock_read_with(tl_lock *lock, step_task *t)
{
    shared_row_release(lock->coming);
    lock->coming = shared_row_new();
    if (lock->coming == NULL)
        return error_set(TL_NO_MEMORY, "out of memory for the row");
    t->step.row = &lock->coming->rows;
    return TL_OK;
}

static void view_what_was_said(tl_view *to, const tl_said *from)
{
    TL_SAID_MAP(TL_KEEP)
}

void lock_view_granted(tl_lock *lock, const step_task *t)
{
    tl_view *v = &lock->view;

    if (t->step.row != NULL) {
        shared_row_release(lock->row);
        lock->row = lock->coming;
        lock->coming = NULL;
        view_read(v, &lock->inside, &lock->row->rows, 0);
        return;
    }
    view_clear(v, &lock->inside);
    text_copy(v->serial_no, sizeof v->serial_no, lock->serial_no);
    text_copy(v->cust_no, sizeof v->cust_no, lock->cust_no);
    text_copy(v->op_code, sizeof v->op_code, lock_row_op(lock));
    text_copy(v->thread_no, sizeof v->thread_no, lock->base.thread_no);
    text_copy(v->log_no, sizeof v->log_no, lock->base.log_no);
    text_copy(v->session_id, sizeof v->session_id, life_session_id(lock->base.life));
    text_copy(v->channel, sizeof v->channel, lock->channel);
    text_copy(v->channel_key, sizeof v->channel_key, lock->channel_key);
    text_copy(v->remark, sizeof v->remark, lock->remark);
    text_copy(v->actor, sizeof v->actor, lock->actor);
    v->lane = lock->options.lane == TL_LANE_RETRY ? 'R' : 'S';
    v->state = v->lane == 'R' ? TL_STATE_WORKING : TL_STATE_LIVE;
    v->status = 'P';
    v->fence = lock->grant.fence;
    v->epoch = lock->epoch;
    v->sends = lock->options.not_sent ? 0 : 1;
    v->exclusive = (lock->options.flags & TL_ASK_EXCLUSIVE) != 0;
    v->repeatable = lock_repeats(lock);
    v->payload = lock->payload;
    v->payload_size = lock->options.payload_size;
    memcpy(v->fingerprint, lock->fingerprint, TL_FINGERPRINT);
    if (t->step.kind == STEP_ASK) {
        v->created_us = (int64_t)t->step.fence; /* one statement wrote both */
        view_what_was_said(v, &lock->said);
    }
}

const char *lock_channel(const tl_lock *lock)
{
    return lock->options.lane == TL_LANE_RETRY && lock->view.channel[0] != '\0' ? lock->view.channel
                                                                                : lock->channel;
}

/* How long a send waits for its channel's limits. */
#define PERMIT_WAIT_MS 500

tl_status lock_pass_gate(tl_lock *lock, gate_kind kind, int64_t max_hold_ms)
{
    const gate_send send = {.kind = kind,
                            /* An ask is for its own channel: what was read is another's row. */
                            .channel = kind == GATE_ASK ? lock->channel : lock_channel(lock),
                            .op_code = lock->op_code,
                            /* An ask begins under the life of today's session. */
                            .life = lock->base.state == LOCK_NEW
                                        ? session_life(lock->base.client->session)
                                        : lock->base.life,
                            .hold_ms = max_hold_ms,
                            /* A submitted call shares its thread. */
                            .wait_ms = atomic_load(&lock->submitted) ? 0 : PERMIT_WAIT_MS};
    const tl_status status = gate_begin(lock->base.client, &lock->pass, &send);

    /* A handle's life never begins anew, and its next step says that it is over. */
    return status == TL_SESSION_LOST && lock->base.state != LOCK_NEW ? TL_OK : status;
}

tl_status tl_lock_may_call(tl_lock *lock)
{
    error_clear();
    TRY(lock_check_held(lock));
    return error_over(lock_pass_gate(lock, GATE_QUERY, tl_lock_remaining_ms(lock)));
}

void tl_lock_submit_within(tl_lock *lock, int64_t budget_ms)
{
    if (lock != NULL)
        lock->submit_ms = budget_ms;
}

int tl_lock_probes(const tl_lock *lock)
{
    return lock != NULL && gate_has_probe(&lock->pass);
}

void tl_lock_report_call(tl_lock *lock, int answered)
{
    if (lock != NULL)
        lock->pass.heard = answered ? GATE_ANSWER : GATE_UNKNOWN;
}

int64_t tl_lock_come_again_ms(const tl_lock *lock)
{
    return lock != NULL ? lock->pass.again_ms : 0;
}
