/* A trade lock's handle, as the files of this room share it. */
#ifndef TL_TRADE_LOCK_LOCK_H
#define TL_TRADE_LOCK_LOCK_H

#include "client/gate.h"
#include "lock/handle.h"
#include "store/view.h"

#include <tradelock/lane.h>

#define PARK_REASON_MAX 63
/* No such number of jumps is ever on record. */
#define LOCK_CLOCK_DOUBT UINT32_MAX

struct tl_lock {
    lock_handle base;
    lock_grant grant;
    atomic_int submitted; /* a submitted call with this handle is not completed yet */
    int64_t submit_ms;    /* the budget of such a call; 0: the client's commit_ms */

    /* The key, and the names of its rows. */
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1];
    char op_code[TL_OP_MAX + 1], retry_op[TL_OP_MAX + 1];
    char wait_key[LOCK_WAIT_KEY]; /* by which this process's waiters and readers meet */
    const char *wait_name;        /* the same, as the grant's list of one name */

    /* A copy of the options. */
    tl_lock_options options;
    void *payload;
    unsigned char fingerprint[TL_FINGERPRINT];
    int has_fingerprint;
    char channel[TL_CHANNEL_MAX + 1], channel_key[TL_CHANNEL_KEY_MAX + 1];
    char remark[TL_REMARK_MAX + 1], actor[64];
    tl_said said;

    /* The hold, beside its grant. */
    uint32_t epoch;
    uint32_t own_sends; /* counted by this hold; only these may be taken off again */
    /* With the first own send: how many sends the row had, and what send_until was before.
     * known_sends 0: not known, since there were more. */
    uint32_t known_sends;
    /* The row's revision by the grant and this hold's own steps, so that what others filed since
     * shows; 0: not known. */
    uint64_t known_rev;
    /* How many jumps of the server's clock this process knew of before it asked on the retry lane;
     * LOCK_CLOCK_DOUBT if rows were not adjusted to them then, or once the row was read by a clock
     * that is not believed. */
    uint32_t clock_jumps;
    int64_t send_before_us;
    doubt opening;          /* open while the opening of a dead holder's lane is in doubt */
    int64_t armed_until_ms; /* what the grant's until_ms will be if the arming in doubt was done */

    gate_pass pass; /* what it has of the gates of its channel */

    int suspect;    /* the last holder died at it */
    int64_t due_us; /* of a claim of due work: since when it was due; 0: not known */

    /* A caller's transaction under way. */
    uint64_t caller_thread_id;
    const struct db_server *caller_server; /* to which the connection leads */
    /* See task_settle_caller(). */
    char caller_witness[RANDOM_UUID];
    /* A copy of the last ending that was tried: the caller's memory may be gone when its fate is
     * known. */
    tl_outcome ending_outcome;
    tl_proof ending_proof;
    tl_status ending_answer; /* the call's answer once it is committed */
    int64_t ending_since_us; /* when the ending under way was begun; 0: none is, or it was timed */
    char park_reason[PARK_REASON_MAX + 1];
    struct {
        step_kind kind;
        char status;
        int retryable, unsend, says_remark;
        tl_findings findings;
        char channel_ref[TL_REF_MAX + 1], remark[TL_REMARK_MAX + 1], actor[64];
        void *result;
        size_t result_size;
    } ended;

    tl_view view;
    view_inside inside;
    const shared_row *row; /* what the view's payload and result point into */
    shared_row *coming;    /* filled by a step that reads as it grants, or NULL */
};

/* The channel that its row names, and of an ask the one that the row will name; "": none. */
const char *lock_channel(const tl_lock *lock);
/* Lets a send of that channel begin, as gate_begin() answers. */
tl_status lock_pass_gate(tl_lock *lock, gate_kind kind, int64_t max_hold_ms);

tl_status lock_check(const tl_lock *lock);
/* lock_check(), and that a call may begin: nothing that was submitted with it is under way. */
tl_status lock_check_call(const tl_lock *lock);
/* lock_check_call(), and that the lock is held now. */
tl_status lock_check_held(const tl_lock *lock);

int lock_is_standalone(const tl_lock *lock);
int lock_is_repeatable(const tl_lock *lock);
/* Standalone or repeatable: whoever comes next takes the row over, and it guards no money. */
int lock_repeats(const tl_lock *lock);
tl_key lock_key(const tl_lock *lock);
/* The row that decides: the sync row, or the standalone retry row. */
const char *lock_row_op(const tl_lock *lock);

/* Begins a step of this lock by the calling thread. */
void lock_begin_step(tl_lock *lock, step_task *t, step_kind kind, int fresh_token);

void lock_lose(tl_lock *lock);

/* What the trade says of itself: its row, where that was read; else this ask. */
void lock_said(tl_said *to, const tl_lock *lock, const tl_view *row);

/* Logs a line about this lock's trade, with what its row says of itself, or else its ask; the trace
 * id is rather that of the ask. */
void lock_log(const tl_lock *lock, tl_level level, uint64_t fence, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Reads the deciding row into the view; a row that is absent leaves TL_STATE_ABSENT. */
tl_status lock_read(tl_lock *lock);
/* Whether the row that was read is believed: TL_ASK_CHANNEL where it was read on a server of which
 * is known by now that it may lack commits.  A repeatable operation guards no money, and a claim
 * only asks: they believe it. */
tl_status lock_check_row(const tl_lock *lock);
/* Notes in clock_jumps whether the server told the view, after that moment of CLOCK_BOOTTIME, by a
 * clock that is believed.  What it says of moments is good for a failure only then. */
int lock_view_fits(tl_lock *lock, int64_t before_us);
/* The same since before the row was claimed: neither the row's moments nor its "now" were told by
 * another clock. */
int lock_is_timely(const tl_lock *lock);
/* Makes room for the row that the step reads when it grants. */
tl_status lock_read_with(tl_lock *lock, step_task *t);
/* Fills the view of a hold that was just granted: from the step's row if it has one, else from what
 * is known without reading. */
void lock_view_granted(tl_lock *lock, const step_task *t);

/* Files what a fenced-out holder knew of the outcome; best effort, logged.  held: the row as the
 * holder knew it. */
void lock_file_evidence(tl_lock *lock, const tl_ending *ending, const tl_view *held);

tl_status lock_unknown(tl_lock *lock, lock_state state, const step_task *t);
/* Answers a step that is committed without its business rows: its callback committed, or an earlier
 * call had none. */
tl_status lock_went_alone(tl_lock *lock, lock_state state, const step_task *t);
/* Goes back to the state before a step that did not happen.  It keeps that an earlier lost try is
 * settled; otherwise a caller with little time would settle that again and again. */
void lock_not_done(tl_lock *lock, lock_state state, const step_task *t);

/* The status of a task that failed without writing. */
tl_status lock_failed(const step_task *t);

/* ask.c / claim.c: asking once, without waiting */
tl_status ask_check(const tl_lock *lock);
/* TL_OK: go on and ask.  While operators keep the channel paused: the answer of an ask, which has
 * read the row and writes nothing. */
tl_status ask_check_paused(tl_lock *lock);
/* From memory alone, for a submitted ask: whether ask_check_paused() will refuse it, and whether
 * ask_begin() may wait for the database, for instance for its channel's limit. */
int ask_is_paused(const tl_lock *lock);
int ask_begin_waits(const tl_lock *lock);
/* After ask_fill(): its permit is of the life under which it asks. */
tl_status ask_check_permit(tl_lock *lock);
tl_status ask_sync_once(tl_lock *lock);
tl_status ask_retry_once(tl_lock *lock);
/* Asks on the lane that the options name; leaves the handle ready to ask again. */
tl_status ask_once(tl_lock *lock);
/* Asks once, as ask_once() does. */
typedef tl_status (*ask_fn)(tl_lock *lock, void *context);
/* Asks until the answer is final or the wait is over: see lock_wait(). */
tl_status ask_waiting(tl_lock *lock, int64_t wait_ms, ask_fn once, void *context);
int ask_is_claim(const tl_lock *lock);
/* An ask in two halves, for asks that are carried out together (async): ask_begin() makes the step
 * of a sync lock; ask_verdict() and then ask_over() say what its verdict means. */
tl_status ask_begin(tl_lock *lock, step_task *t, int fresh_token);
tl_status ask_over(tl_lock *lock, tl_status status);
/* The pieces of an ask, for one with business rows (with.c). */
tl_status ask_make_channel_key(tl_lock *lock, uint32_t epoch);
void ask_fill(tl_lock *lock, step_task *t, step_kind kind, int fresh_token);
/* *again: the row was purged between the refusal and the read. */
tl_status ask_verdict(tl_lock *lock, const step_task *t, int64_t before_ms, int *again);
/* Counts a whole ask, however often it was tried, and how long it took since a moment of
 * clock_boottime_us(); logs a refusal. */
void ask_count(tl_lock *lock, tl_status status, int64_t since_us);

/* granted.c: the grant, and what distinguishes this kind of lock */
extern const lock_method trade_method;
tl_status ask_granted(tl_lock *lock, const step_task *t, int64_t before_ms);
/* Whether the row that was read is P and alive under this session, with the token of the step under
 * way.  Then the step was carried out, whatever its answer was, and still counts. */
int ask_is_mine(const tl_lock *lock);

/* refused.c: the row that was read says why an ask was refused: of a payment; of a repeatable or
 * standalone operation */
tl_status ask_classify(tl_lock *lock);
tl_status ask_classify_repeating(tl_lock *lock);
/* Whether the key belongs to the other kind of row; whether the contents are another ask's. */
int ask_kind_differs(const tl_lock *lock);
int ask_fingerprint_differs(const tl_lock *lock);
tl_status ask_refuse_kind(const tl_lock *lock);
tl_status ask_refuse_customer_busy(tl_lock *lock);
/* Logs it. */
tl_status ask_explain(lock_handle *h, tl_status status);

/* ending.c: an ending as a step */
tl_status ending_check(const tl_lock *lock, const tl_ending *ending);
int ending_is_final(const tl_lock *lock, const tl_ending *ending);
void ending_to_step(tl_lock *lock, const tl_ending *ending, const tl_findings *findings,
                    step_task *t);
/* Says what it means that a compare-and-set changed 0 rows; reads the row and its history. */
tl_status ending_refused(tl_lock *lock, const tl_ending *ending, const step_task *t);
/* ended.c: keeps what the ending says; shows it in the view once it is committed. */
void ended_keep(tl_lock *lock, const step *s);
void ended_show(tl_lock *lock);
/* Answers an ending that comes too late: the hold is lost, and what it knew is filed. */
tl_status ending_too_late(tl_lock *lock, const tl_ending *ending);
tl_status ending_applied(tl_lock *lock);
/* Answers an ending that provably did not happen: the lock is still held, or lost meanwhile. */
tl_status settled_not_done(tl_lock *lock);
/* What the verdict of an ending's task means. */
tl_status finish_verdict(tl_lock *lock, const tl_ending *ending, const step_task *t);
/* Counts one more send of this hold; until_us: until when the others may send. */
void lock_count_send(tl_lock *lock, uint32_t others, int64_t until_us);
/* Settles an arming that is in doubt.  TL_OK: the hold is as it stands now, and *armed says whether
 * the arming was carried out.  TL_UNKNOWN: still in doubt. */
tl_status arm_settle(tl_lock *lock, int *armed);
/* lock_check_held(), then arm_settle(): for what needs the hold. */
tl_status lock_check_ending(tl_lock *lock);
/* Whether the row that was read still carries this hold, and its session has not ended. */
int lock_still_holds(const tl_lock *lock);

#endif
