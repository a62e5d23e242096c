/* Makes a step of an ending, and says what the server's answer to it means.  Reads the row where
 * that answer does not tell; touches the handle. */
#include "trade_lock/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

#include <tradelock/layer.h>
#include <tradelock/lane.h>

#include <string.h>

int ending_is_final(const tl_lock *lock, const tl_ending *ending)
{
    if (ending->outcome == TL_OUTCOME_SUCCESS)
        return 1;
    if (ending->outcome != TL_OUTCOME_FAILURE)
        return 0;
    /* On the retry lane a failure without proof means "try again"; a standalone retry row has no
     * other failure. */
    return ending->proof != TL_PROOF_NONE || lock_is_standalone(lock);
}

static tl_status check_failure(const tl_lock *lock, const tl_ending *ending)
{
    if (ending->proof == TL_PROOF_NONE && lock->options.lane == TL_LANE_SYNC)
        return error_set(TL_INVALID, "a failure needs a proof; without one the outcome is "
                                     "TL_OUTCOME_UNKNOWN");
    if (strcmp(tl_proof_name(ending->proof), "?") == 0)
        return error_set(TL_INVALID, "proof %d is not known", (int)ending->proof);
    /* A compensating attempt carries out what two operators decided; the statement checks that they
     * did.  They decide about trades only, and a standalone row is none. */
    if (ending->proof == TL_PROOF_OPERATORS &&
        (lock->options.lane != TL_LANE_RETRY || lock_is_standalone(lock)))
        return error_set(TL_INVALID, "two operators decide with the command, not a holder");
    return TL_OK;
}

/* Printable ASCII, or nothing. */
static int is_plain_text(const char *text, size_t most)
{
    size_t size = text != NULL ? strlen(text) : 0;

    for (size_t i = 0; i < size; i++)
        if (text[i] < ' ' || text[i] > '~')
            return 0;
    return size <= most;
}

static tl_status check_texts(const tl_ending *ending)
{
    TRY(text_check_utf8("channel_ref", ending->channel_ref));
    TRY(text_check_utf8("remark", ending->remark));
    return text_check_utf8("actor", ending->actor);
}

tl_status ending_check(const tl_lock *lock, const tl_ending *ending)
{
    if (ending == NULL || ending->version != TL_ENDING_VERSION)
        return error_set(TL_INVALID, "ending is NULL or was not made with TL_ENDING_INIT");
    if (ending->outcome < TL_OUTCOME_UNKNOWN || ending->outcome > TL_OUTCOME_NOT_SENT)
        return error_set(TL_INVALID, "outcome %d is not known", (int)ending->outcome);
    if (ending->result_size > TL_RESULT_MAX)
        return error_set(TL_INVALID, "the result has %zu bytes; at most %d are kept",
                         ending->result_size, TL_RESULT_MAX);
    if (ending->result == NULL && ending->result_size > 0)
        return error_set(TL_INVALID, "result is NULL and result_size is not 0");
    if (ending->channel_ref != NULL && strlen(ending->channel_ref) > TL_REF_MAX)
        return error_set(TL_INVALID, "the channel's reference has more than %d bytes", TL_REF_MAX);
    if (ending->remark != NULL && strlen(ending->remark) > TL_REMARK_MAX)
        return error_set(TL_INVALID, "the remark has more than %d bytes", TL_REMARK_MAX);
    if (ending->next_run_ms < 0 || ending->next_run_ms > TL_HOLD_MAX_MS * 52)
        return error_set(TL_INVALID, "next_run_ms is negative or absurd");
    if (!is_plain_text(ending->park_reason, PARK_REASON_MAX))
        return error_set(TL_INVALID,
                         "the reason for parking is not at most %d characters "
                         "of printable ASCII",
                         PARK_REASON_MAX);
    if (ending->actor != NULL && strlen(ending->actor) > sizeof lock->actor - 1)
        return error_set(TL_INVALID, "the actor's name has more than 63 bytes");
    if (lock->base.state == LOCK_END_UNKNOWN &&
        (ending->outcome != lock->ending_outcome || ending->proof != lock->ending_proof))
        return error_set(TL_WRONG_STATE,
                         "another ending of this handle may have been committed: repeat "
                         "that one, or settle it first");
    if (ending->park_reason != NULL && lock->options.lane == TL_LANE_SYNC &&
        ending_is_final(lock, ending))
        return error_set(TL_INVALID, "a final ending is not parked");
    if (ending->outcome != TL_OUTCOME_FAILURE && ending->proof != TL_PROOF_NONE)
        return error_set(TL_INVALID, "only a failure has a proof");
    if (ending->outcome == TL_OUTCOME_FAILURE && check_failure(lock, ending) != TL_OK)
        return TL_INVALID;
    return check_texts(ending);
}

static step_kind kind_of(const tl_lock *lock, const tl_ending *ending)
{
    if (!ending_is_final(lock, ending))
        return lock_repeats(lock) ? STEP_RELEASE : STEP_OPEN;
    return lock->options.lane == TL_LANE_RETRY && !lock_is_standalone(lock) ? STEP_FINISH_RETRY
                                                                            : STEP_FINISH_SYNC;
}

/* The word in the log for an ending that opens. */
static const char *open_word(tl_outcome outcome)
{
    switch (outcome) {
    case TL_OUTCOME_ACCEPTED:
        return "accepted";
    case TL_OUTCOME_PENDING:
        return "pending";
    case TL_OUTCOME_RETRY_LATER:
        return "retry later";
    case TL_OUTCOME_NOT_SENT:
        return "not sent";
    case TL_OUTCOME_FAILURE:
        return "again";
    default:
        return "unknown";
    }
}

/* Whether the clock jumped since the claim, or before and the row was not adjusted.  What it said
 * of moments is then worth nothing: what send_until was before an arming, or how long to wait. */
static int clock_was_set(const tl_lock *lock)
{
    return lock->options.lane == TL_LANE_RETRY && !lock_is_timely(lock);
}

/* Whether a failure rests on moments of the row: the grace is over and nothing was found; the
 * deadline has passed and nothing was sent; or every send was over when a decline was heard or the
 * operators' decision is booked.  A decline of this hold's own send needs no moment, nor does a
 * cancel receipt. */
static int rests_on_moments(const tl_lock *lock, tl_proof proof)
{
    switch (proof) {
    case TL_PROOF_NOT_FOUND:
    case TL_PROOF_NEVER_LEFT:
    case TL_PROOF_OPERATORS:
        return 1;
    case TL_PROOF_DECLINED:
        return lock->own_sends == 0;
    default:
        return 0;
    }
}

static void fill_open(const tl_lock *lock, const tl_ending *ending, const tl_findings *findings,
                      step *s)
{
    int did_nothing =
        ending->outcome == TL_OUTCOME_RETRY_LATER || ending->outcome == TL_OUTCOME_NOT_SENT;

    s->name = open_word(ending->outcome);
    /* Only own sends are taken back: the sends of others stay. */
    s->unsend = did_nothing && lock->own_sends > 0;
    s->known_sends = s->unsend && !clock_was_set(lock) ? lock->known_sends : 0;
    s->send_before_us = (uint64_t)lock->send_before_us;
    s->known_rev = lock->known_rev > 0 ? lock->known_rev + 1 : 0;
    s->next_run_ms = ending->next_run_ms;
    if (findings != NULL && findings->due_as_before && ending->next_run_ms == 0 &&
        lock->due_us > 0 && lock->due_us < lock->view.now_us)
        s->next_run_ms = (lock->due_us - lock->view.now_us) / 1000;
    if (findings != NULL && findings->due_as_before)
        s->keep_claims = CLAIMS_BEFORE_THIS;
    if (clock_was_set(lock) && s->next_run_ms > lock->base.client->config.beat_ms)
        s->next_run_ms = lock->base.client->config.beat_ms;
    s->park_reason = ending->park_reason;
    if (ending->park_reason != NULL)
        s->next_run_ms = STEP_NEVER_MS; /* it waits for a person */
    if (findings != NULL)
        s->findings = *findings;
    /* The grace would begin by the new clock, while the row said by the old one that every send was
     * over. */
    if (clock_was_set(lock))
        s->findings.not_found_first = 0;
    if (ending->outcome == TL_OUTCOME_ACCEPTED || ending->outcome == TL_OUTCOME_PENDING ||
        ending->channel_ref != NULL)
        s->findings.seen_by_channel = 1;
}

/* How the ending leaves the trade once it is committed. */
static tl_status answer_of(const tl_lock *lock, const tl_ending *ending, const step *s)
{
    uint32_t taken_off = s->unsend ? 1 : 0;

    if (ending->outcome == TL_OUTCOME_SUCCESS)
        return TL_SUCCEEDED;
    if (ending_is_final(lock, ending))
        return TL_FAILED;
    if (ending->park_reason != NULL)
        return TL_PARKED;
    return lock->view.sends <= taken_off ? TL_QUEUED : TL_IN_DOUBT;
}

/* What the channel's answer to this hold's send was; what is not sent, or put off, says nothing. */
static gate_heard heard_of(const tl_ending *ending)
{
    switch (ending->outcome) {
    case TL_OUTCOME_SUCCESS:
    case TL_OUTCOME_ACCEPTED:
    case TL_OUTCOME_PENDING:
        return GATE_ANSWER;
    case TL_OUTCOME_FAILURE:
        return ending->proof == TL_PROOF_DECLINED ? GATE_ANSWER : GATE_NOTHING;
    case TL_OUTCOME_UNKNOWN:
        return GATE_UNKNOWN;
    default:
        return GATE_NOTHING;
    }
}

void ending_to_step(tl_lock *lock, const tl_ending *ending, const tl_findings *findings,
                    step_task *t)
{
    step *s = &t->step;

    /* An ending says that no send is under way. */
    gate_over(lock->base.client, &lock->pass, lock_channel(lock), lock->op_code,
              lock->own_sends > 0 ? heard_of(ending) : GATE_NOTHING);
    lock_begin_step(lock, t, kind_of(lock, ending), lock->base.state != LOCK_END_UNKNOWN);
    t->task.presses_on = 1; /* what it says of a payment may come through with the replica */
    s->status = ending->outcome == TL_OUTCOME_SUCCESS ? 'Y' : 'F';
    s->proof = ending->outcome == TL_OUTCOME_FAILURE ? (char)ending->proof : '-';
    s->by_time = s->kind == STEP_FINISH_RETRY && rests_on_moments(lock, ending->proof);
    s->clock_jumps = lock->clock_jumps;
    s->retryable = ending->retryable != 0;
    s->channel_ref = ending->channel_ref;
    s->result = ending->result;
    s->result_size = ending->result_size;
    s->remark = ending->remark;
    if (ending->actor != NULL)
        s->actor = ending->actor;
    if (!ending_is_final(lock, ending))
        fill_open(lock, ending, findings, s);
    lock->ending_since_us = clock_boottime_us();
    lock->ending_outcome = ending->outcome;
    lock->ending_proof = ending->proof;
    lock->ending_answer = answer_of(lock, ending, s);
    text_copy(lock->park_reason, sizeof lock->park_reason, ending->park_reason);
    ended_keep(lock, s);
}

tl_status ending_applied(tl_lock *lock)
{
    tl_status status = lock->ending_answer;

    error_clear();
    ended_show(lock);
    handle_become(&lock->base, LOCK_OVER);
    client_add(&lock->base.client->counters.finishes, 1);
    client_add(&lock->base.client->counters.ended_as[status], 1);
    lock_wake(&lock->base);
    if (status == TL_PARKED)
        client_add(&lock->base.client->counters.parked, 1);
    else if (status == TL_IN_DOUBT || status == TL_QUEUED)
        client_add(&lock->base.client->counters.opened, 1);
    lock_log(lock, status == TL_PARKED ? TL_ALARM : TL_INFO, lock->grant.fence, "%s%s%s",
             tl_status_text(status), lock->park_reason[0] != '\0' ? ": " : "", lock->park_reason);
    return status;
}

/* Notes by which clock the row was read, for a claim. */
static void note_clock(tl_lock *lock, int64_t before_us)
{
    if (lock->options.lane == TL_LANE_RETRY && !lock_is_standalone(lock))
        (void)lock_view_fits(lock, before_us);
}

int lock_still_holds(const tl_lock *lock)
{
    return !life_is_over(lock->base.life) && lock->view.status == 'P' &&
           lock->view.fence == lock->grant.fence &&
           memcmp(lock->inside.token, lock->grant.token, STEP_TOKEN) == 0;
}

static tl_status too_late(tl_lock *lock, const tl_ending *ending, const tl_view *held)
{
    lock_lose(lock);
    lock_file_evidence(lock, ending, held);
    return error_set(TL_LOST, "the lock %s; what this ending knew is filed as evidence",
                     life_is_over(lock->base.life) ? "was lost with its session"
                                                   : "was taken over");
}

/* The row was not read: the view still says what the holder knew. */
tl_status ending_too_late(tl_lock *lock, const tl_ending *ending)
{
    const tl_view held = lock->view;

    lock->has_fingerprint |= lock->inside.has_fingerprint;
    return too_late(lock, ending, &held);
}

/* The row is somebody else's, or this very ending changed it: the ending's token in the history
 * proves that it was carried out, whatever an earlier try was taken for. */
static tl_status met_another(tl_lock *lock, const tl_ending *ending, const step_task *t,
                             const tl_view *held)
{
    step_task again = *t;

    doubt_row(&again.task.doubt);
    task_settle(lock->base.client->engine, step_task_of(&again),
                lock->base.client->config.pool_wait_ms);
    if (again.task.verdict != VERDICT_REFUSED)
        return finish_verdict(lock, ending, &again);
    return too_late(lock, ending, held);
}

/* Reads the row, and keeps in *held what the holder knew of it (payload in *row), which may be all
 * that is left. */
static tl_status read_beside(tl_lock *lock, tl_view *held, const shared_row **row)
{
    const int had_fingerprint = lock->inside.has_fingerprint;
    tl_status status;

    *held = lock->view;
    *row = lock->row;
    lock->row = NULL;
    status = lock_read(lock);
    if (status == TL_OK) {
        lock->has_fingerprint |= had_fingerprint;
        return TL_OK;
    }
    shared_row_release(lock->row);
    lock->row = *row;
    lock->view = *held;
    *row = NULL;
    return status;
}

/* Whether a clock jump refused the failure.  Without success evidence the only other reason is that
 * there is no decision of operators. */
static int clock_refused(tl_lock *lock, const step *s)
{
    tl_client *client = lock->base.client;

    if (!s->by_time || lock->inside.success_epoch == lock->epoch ||
        (lock->view.conflict && s->proof != TL_PROOF_OPERATORS))
        return 0;
    return s->proof != TL_PROOF_OPERATORS || clock_watch_look(client) != TL_OK ||
           clock_watch_check(client) != TL_OK || !lock_is_timely(lock);
}

static tl_status still_held(tl_lock *lock, const step *s)
{
    handle_become(&lock->base, LOCK_HELD);
    if (clock_refused(lock, s))
        return error_set(TL_ASK_CHANNEL, "the server's clock was set since before the claim, and "
                                         "this failure rests on moments of the row; the lock is "
                                         "still held");
    if (s->proof == TL_PROOF_OPERATORS && lock->inside.success_epoch != lock->epoch)
        return error_set(TL_INVALID, "no two operators decided that this trade "
                                     "failed; the lock is still held");
    return error_set(TL_EVIDENCE, "evidence says that money moved; the "
                                  "failure is refused and the lock still held");
}

tl_status ending_refused(tl_lock *lock, const tl_ending *ending, const step_task *t)
{
    const int64_t before_us = clock_boottime_us();
    const shared_row *row;
    tl_view held;
    tl_status status;

    TRY(read_beside(lock, &held, &row));
    if (lock_still_holds(lock)) {
        shared_row_release(row);
        note_clock(lock, before_us);
        return still_held(lock, &t->step);
    }
    status = met_another(lock, ending, t, &held);
    shared_row_release(row);
    return status;
}

tl_status settled_not_done(tl_lock *lock)
{
    const int64_t before_us = clock_boottime_us();

    TRY(lock_read(lock));
    if (lock_still_holds(lock)) {
        note_clock(lock, before_us);
        handle_become(&lock->base, LOCK_HELD);
        return TL_GRANTED;
    }
    lock_lose(lock);
    return error_set(TL_LOST, "the lock was taken over; the ending was not committed");
}

/* Times the database work of an ending once, though its verdict may be looked at again. */
static void count_time(tl_lock *lock)
{
    if (lock->ending_since_us != 0)
        histogram_add_since(&lock->base.client->counters.endings_took, lock->ending_since_us);
    lock->ending_since_us = 0;
}

tl_status finish_verdict(tl_lock *lock, const tl_ending *ending, const step_task *t)
{
    count_time(lock);
    switch (t->task.verdict) {
    case VERDICT_APPLIED:
        if (t->task.doubt.rows == ROWS_NOT_SENT)
            return lock_went_alone(lock, LOCK_LOST, t);
        return ending_applied(lock);
    case VERDICT_REFUSED:
    case VERDICT_LOST:
        return ending_refused(lock, ending, t);
    case VERDICT_UNKNOWN:
        return lock_unknown(lock, LOCK_END_UNKNOWN, t);
    case VERDICT_DECIDING:
        lock_not_done(lock, LOCK_HELD, t);
        return error_set(TL_TRY_AGAIN, "another transaction holds the row; end again");
    case VERDICT_CUSTOMER_BUSY:
    case VERDICT_FAILED:
        break;
    }
    lock_not_done(lock, LOCK_HELD, t);
    return t->task.status == TL_LOST ? ending_too_late(lock, ending) : lock_failed(t);
}
