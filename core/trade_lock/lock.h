/* A trade lock's handle, as the files of this room share it. */
#ifndef TL_TRADE_LOCK_LOCK_H
#define TL_TRADE_LOCK_LOCK_H

#include "lock/handle.h"
#include "store/view.h"

#include <tradelock/lane.h>

#define PARK_REASON_MAX 63
/* No such number of jumps is ever on record. */
#define LOCK_CLOCK_DOUBT UINT32_MAX

struct tl_lock {
    lock_handle base;
    lock_grant grant;
    atomic_int submitted; /* a call that was submitted with it is not completed yet */

    /* The key, and the names of its rows. */
    char serial_no[TL_SERIAL_MAX + 1], cust_no[TL_CUST_MAX + 1];
    char op_code[TL_OP_MAX + 1], retry_op[TL_OP_MAX + 1];
    char wait_key[LOCK_WAIT_KEY]; /* of this process's waiters and readers */
    const char *wait_name;        /* the same, as the grant's list of one */

    /* The options, with memory of their own. */
    tl_lock_options options;
    void *payload;
    unsigned char fingerprint[TL_FINGERPRINT];
    int has_fingerprint;
    char channel[TL_CHANNEL_MAX + 1], channel_key[TL_CHANNEL_KEY_MAX + 1];
    char remark[TL_REMARK_MAX + 1], actor[64];
    char currency[TL_CURRENCY + 1]; /* "": no amount was said */

    /* The hold, beside its grant. */
    uint32_t epoch;
    uint32_t own_sends; /* counted by this hold: only these may be taken off again */
    /* How many sends the row had with the first of them, and what send_until was before it;
     * known_sends 0: of more than one it is not known. */
    uint32_t known_sends;
    /* How many jumps of the server's clock this process knew of before it asked on the retry lane;
     * LOCK_CLOCK_DOUBT once the row was read by a clock that is not believed. */
    uint32_t clock_steps;
    int64_t send_before_us;
    doubt opening;          /* a dead holder's opening whose fate is not known */
    int64_t armed_until_ms; /* as the grant's until_ms, of an arming whose fate is not known */

    int suspect; /* claimed as one whose last holder died at it */

    /* A caller's transaction under way. */
    uint64_t caller_thread_id;
    /* Held since before; see task_settle_caller(). */
    char caller_witness[RANDOM_UUID];
    /* The last ending that was tried.  What its pointers named may be gone by the time that its
     * fate is known. */
    tl_outcome ending_outcome;
    tl_proof ending_proof;
    tl_status ending_answer; /* what the trade is once it is committed */
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
    shared_row *coming;    /* of a step that reads as it grants; NULL */
};

tl_status lock_check(const tl_lock *lock);
/* lock_check(), and that a call may begin: nothing that was submitted with it is under way. */
tl_status lock_check_call(const tl_lock *lock);
/* lock_check_call(), and that the lock is held now. */
tl_status lock_check_held(const tl_lock *lock);

int lock_is_standalone(const tl_lock *lock);
int lock_is_repeatable(const tl_lock *lock);
/* Either of them: whoever comes next takes the row over, and no money hangs on it. */
int lock_repeats(const tl_lock *lock);
tl_key lock_key(const tl_lock *lock);
/* The row that decides: the sync row, or the standalone retry row. */
const char *lock_row_op(const tl_lock *lock);

/* A step of this lock by the calling thread, with the lock's fresh token. */
void lock_begin_step(tl_lock *lock, step_task *t, step_kind kind, int fresh_token);

void lock_lose(tl_lock *lock);

/* Reads the deciding row into the view; a row that is absent leaves TL_STATE_ABSENT. */
tl_status lock_read(tl_lock *lock);
/* Notes in clock_steps whether the server told the view, after that moment of CLOCK_BOOTTIME, by a
 * clock that is believed.  What it says of moments is good for a failure only then. */
int lock_view_fits(tl_lock *lock, int64_t before_us);
/* The same since before the row was claimed: neither the row's moments nor its "now" were told by
 * another clock. */
int lock_is_timely(const tl_lock *lock);
/* Makes room for the row that the step reads as it grants. */
tl_status lock_read_with(tl_lock *lock, step_task *t);
/* The view of a hold that was just granted: the step's row where it has one, else from what is
 * known without reading. */
void lock_view_granted(tl_lock *lock, const step_task *t);

/* Files what a fenced-out holder knew of the outcome; best effort, logged.  held: the row as it
 * held it. */
void lock_file_evidence(tl_lock *lock, const tl_ending *ending, const tl_view *held);

tl_status lock_unknown(tl_lock *lock, lock_state state, const step_task *t);
/* The step is committed and its business rows are not: its callback committed, or an earlier call
 * had none. */
tl_status lock_went_alone(tl_lock *lock, lock_state state, const step_task *t);
/* Back to the state before a step that did not happen.  An earlier try of it whose answer was lost
 * is settled by now; were that forgotten, a caller with little time would settle it again and
 * again. */
void lock_not_done(tl_lock *lock, lock_state state, const step_task *t);

/* The status of a task that failed without writing. */
tl_status lock_failed(const step_task *t);

/* ask.c / claim.c: asking once, without waiting */
tl_status ask_check(const tl_lock *lock);
tl_status ask_sync_once(tl_lock *lock);
tl_status ask_retry_once(tl_lock *lock);
/* By whichever lane the options say; leaves the handle ready to ask again. */
tl_status ask_once(tl_lock *lock);
/* Asks once, as ask_once() does. */
typedef tl_status (*ask_fn)(tl_lock *lock, void *context);
/* Asks until the answer is not one that may pass, or the wait is over: one waiter of a key asks,
 * with a growing, jittered pause; the others of this process wait for it. */
tl_status ask_waiting(tl_lock *lock, int64_t wait_ms, ask_fn once, void *context);
int ask_is_claim(const tl_lock *lock);
/* The same in two halves, for asks that are carried out together (async): the step of a sync lock,
 * and what its verdict means (ask_verdict, then ask_over). */
tl_status ask_begin(tl_lock *lock, step_task *t, int fresh_token);
tl_status ask_over(tl_lock *lock, tl_status status);
/* The parts, for an ask whose transaction carries business rows (ask_with.c). */
tl_status ask_make_channel_key(tl_lock *lock, uint32_t epoch);
void ask_fill(tl_lock *lock, step_task *t, step_kind kind, int fresh_token);
/* again becomes 1 when the row was purged between the refusal and the read. */
tl_status ask_verdict(tl_lock *lock, const step_task *t, int64_t before_ms, int *again);
/* Counts and logs a refusal of a whole ask, however often it was tried. */
void ask_count(tl_lock *lock, tl_status status);

/* granted.c: the grant, and what distinguishes this kind of lock */
extern const lock_method trade_method;
tl_status ask_granted(tl_lock *lock, const step_task *t, int64_t before_ms);
/* Whether the row that was read carries the token of the step under way, under this session, and is
 * P and alive: then the step was carried out, whatever its answer was, and is worth something. */
int ask_is_mine(const tl_lock *lock);

/* refused.c: why it was refused, as the row that was read tells: a once-only ask; an ask of a
 * repeatable or standalone operation */
tl_status ask_classify(tl_lock *lock);
tl_status ask_classify_repeating(tl_lock *lock);
/* Whether the key belongs to the other kind of row; the contents to another ask. */
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
/* What a compare-and-set that met 0 rows means; reads the row, and its history. */
tl_status ending_refused(tl_lock *lock, const tl_ending *ending, const step_task *t);
/* ended.c: keeps what the ending says, and shows it in the view once it is committed. */
void ended_keep(tl_lock *lock, const step *s);
void ended_show(tl_lock *lock);
/* An ending that comes too late: the hold is lost, and what it knew is filed. */
tl_status ending_too_late(tl_lock *lock, const tl_ending *ending);
tl_status ending_applied(tl_lock *lock);
/* An ending that provably did not happen: still held, or lost meanwhile. */
tl_status settled_not_done(tl_lock *lock);
/* What the verdict of an ending's task means. */
tl_status finish_verdict(tl_lock *lock, const tl_ending *ending, const step_task *t);
/* One send more of this hold's, beside so many others, who may send until then. */
void lock_count_send(tl_lock *lock, uint32_t others, int64_t until_us);
/* Finds out what became of an arming, if that is not known: then TL_OK, with the hold as it stands
 * now, and *armed says whether it was carried out.  TL_UNKNOWN: not yet. */
tl_status arm_settle(tl_lock *lock, int *armed);
/* lock_check_held(), for what rests on the hold: after arm_settle(). */
tl_status lock_check_ending(tl_lock *lock);
/* Whether the row that was read still carries this hold, and its session is not over. */
int lock_still_holds(const tl_lock *lock);

#endif
