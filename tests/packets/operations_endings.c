/* Every way of ending a hold, cut at every packet. */
#include "operations.h"

#include <tradelock/admin.h>
#include <tradelock/callback.h>
#include <tradelock/lane.h>

#include "support/theme.h"

static void prepare_held(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_SYNC, 0);
}

static void prepare_mutex(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_SYNC, TL_ASK_REPEATABLE);
}

static void prepare_standalone(scene *s)
{
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, TL_ASK_STANDALONE);
}

static void prepare_claimed(scene *s)
{
    scene_past(s, TL_OUTCOME_UNKNOWN);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
}

static tl_status finish(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);

    return tl_lock_finish(s->lock, &ending);
}

static tl_status call_success(scene *s)
{
    return finish(s, TL_OUTCOME_SUCCESS);
}

static tl_status call_failure(scene *s)
{
    return finish(s, TL_OUTCOME_FAILURE);
}

static tl_status call_unknown(scene *s)
{
    return finish(s, TL_OUTCOME_UNKNOWN);
}

static tl_status call_not_sent(scene *s)
{
    return finish(s, TL_OUTCOME_NOT_SENT);
}

static tl_status finish_with(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);

    return tl_lock_finish_with(s->lock, &ending, scene_book, s,
                               tl_client_policy(s->far)->commit_ms);
}

static tl_status call_success_with(scene *s)
{
    return finish_with(s, TL_OUTCOME_SUCCESS);
}

static tl_status call_failure_with(scene *s)
{
    return finish_with(s, TL_OUTCOME_FAILURE);
}

/* ----------------------------------------------------------------- with a book -- */

static void prepare_booked(scene *s)
{
    scene_open_account(s, 100);
    s->lock = scene_lock(s, s->far, TL_LANE_SYNC, SCENE_PRICED);
    assert_int_equal(scene_ask_book(s->lock, s->far_books), TL_GRANTED);
}

static void prepare_booked_claim(scene *s)
{
    scene_open_account(s, 100);
    scene_booked_past(s, TL_OUTCOME_UNKNOWN);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
}

/* Two operators decide about the trade as it is now: an administrator can write what somebody else
 * proposed, and the near client's account confirms it. */
static void decide(scene *s, tl_decision decision)
{
    tl_resolution confirmation = {.version = TL_RESOLUTION_VERSION,
                                  .key = {s->serial, s->cust, "WITHDRAW"},
                                  .decision = decision,
                                  .actor = "anna",
                                  .reason = "test"};

    database_run(s->sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test', token = RANDOM_BYTES(16) WHERE cust_no = '%s' AND lane = 'S'; "
                 "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "
                 "fence, epoch, reason, actor, thread_no, account) SELECT cust_no, serial_no, "
                 "op_code, rev, '%c', 1, fence, epoch, 'test', 'bob', UUID(), 'bob@localhost' "
                 "FROM trade_lock WHERE cust_no = '%s' AND lane = 'S'",
                 s->cust, (int)decision, s->cust);
    confirmation.fence = (uint64_t)database_number(
        s->sql, "SELECT fence FROM trade_lock WHERE cust_no = '%s' AND lane = 'S'", s->cust);
    if (tl_resolution_confirm(s->near, &confirmation) != TL_OK)
        server_panic("not decided: %s", tl_error_message());
}

static void prepare_decided_failure(scene *s)
{
    scene_open_account(s, 100);
    scene_booked_past(s, TL_OUTCOME_UNKNOWN);
    decide(s, TL_DECISION_FAILED);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
}

/* The amount is frozen again by the book of who pays after a failure. */
static void prepare_decided_payment(scene *s)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {s->serial, s->cust, "WITHDRAW"},
                            .outcome = "SUCCEEDED",
                            .source = "test"};

    scene_open_account(s, 100);
    scene_booked_past(s, TL_OUTCOME_FAILURE);
    assert_int_equal(tl_evidence_add(s->near, &evidence), TL_IN_CONFLICT);
    decide(s, TL_DECISION_PAID);
    s->lock = scene_granted(s, s->far, TL_LANE_RETRY, 0);
}

static tl_status finish_book(scene *s, tl_outcome outcome)
{
    tl_ending ending = scene_ending(outcome);

    return scene_finish_book(s->lock, s->far_books, &ending);
}

static tl_status call_success_book(scene *s)
{
    return finish_book(s, TL_OUTCOME_SUCCESS);
}

static tl_status call_failure_book(scene *s)
{
    return finish_book(s, TL_OUTCOME_FAILURE);
}

static tl_status call_decided_failure(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_FAILURE);

    ending.proof = TL_PROOF_OPERATORS;
    return scene_finish_book(s->lock, s->far_books, &ending);
}

static tl_status finish_more(scene *s, const char *line, const char *note)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    tl_book *book = scene_pages(s->far_books, PAGES_SUCCESS);
    tl_status status = TL_NO_MEMORY;

    if (book != NULL) {
        tl_book_line(book, line);
        if (note != NULL) {
            tl_book_text(book, "note", note);
            tl_book_line(book, "freeze");
        }
        status = tl_lock_finish_book(s->lock, &ending, book, tl_client_policy(s->far)->commit_ms);
    }
    tl_book_free(book);
    return status;
}

static tl_status call_decided_payment(scene *s)
{
    return finish_more(s, "ledger", "ask");
}

static tl_status call_broken_book(scene *s)
{
    return finish_more(s, "strike out", NULL);
}

static tl_status call_put_back(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_PENDING);
    tl_findings findings = {.seen_by_channel = 1};

    return tl_lock_put_back(s->lock, &ending, &findings);
}

static tl_status call_park(scene *s)
{
    tl_ending ending = scene_ending(TL_OUTCOME_UNKNOWN);
    tl_findings findings = {.cancel_tried = 1};

    ending.park_reason = "by test";
    return tl_lock_put_back(s->lock, &ending, &findings);
}

static const operation operations[] = {
    {"finish Y", 0, prepare_held, call_success, TL_SUCCEEDED, "Y 1 1", "-", 1, 0, NULL},
    {"finish F", 0, prepare_held, call_failure, TL_FAILED, "F 1 1", "-", 1, 0, NULL},
    {"finish unknown", 0, prepare_held, call_unknown, TL_IN_DOUBT, "P 1 1", "F 1 0", 2, 0, NULL},
    {"finish not sent", 0, prepare_held, call_not_sent, TL_QUEUED, "P 1 0", "F 1 0", 2, 0, NULL},
    {"finish a mutex", 0, prepare_mutex, call_success, TL_SUCCEEDED, "Y 1 1", "-", 1, 0, NULL},
    {"release a mutex", 0, prepare_mutex, call_unknown, TL_IN_DOUBT, "P 1 1", "-", 1, 0, NULL},
    {"finish standalone", 0, prepare_standalone, call_failure, TL_FAILED, "-", "F 1 1", 1, 0, NULL},
    {"finish Y on the retry lane", 0, prepare_claimed, call_success, TL_SUCCEEDED, "Y 1 1", "Y 1 0",
     2, 0, NULL},
    {"finish F on the retry lane", 0, prepare_claimed, call_failure, TL_FAILED, "F 1 1", "F 1 0", 2,
     0, NULL},
    {"put back", 0, prepare_claimed, call_put_back, TL_IN_DOUBT, "P 1 1", "F 1 0", 2, 0, NULL},
    {"park", 0, prepare_claimed, call_park, TL_PARKED, "P 1 1", "F 1 0", 2, 0, NULL},
    {"finish Y with rows", 0, prepare_held, call_success_with, TL_SUCCEEDED, "Y 1 1", "-", 1, 1,
     NULL},
    {"finish F with rows", 0, prepare_held, call_failure_with, TL_FAILED, "F 1 1", "-", 1, 1, NULL},
    {"finish Y with rows on the retry lane", 0, prepare_claimed, call_success_with, TL_SUCCEEDED,
     "Y 1 1", "Y 1 0", 2, 1, NULL},
    {"finish F with rows on the retry lane", 0, prepare_claimed, call_failure_with, TL_FAILED,
     "F 1 1", "F 1 0", 2, 1, NULL},
    {"finish Y with a book", 0, prepare_booked, call_success_book, TL_SUCCEEDED, "Y 1 1", "-", 1, 1,
     NULL},
    {"finish F with a book", 0, prepare_booked, call_failure_book, TL_FAILED, "F 1 1", "-", 1, 1,
     NULL},
    {"finish with a broken book", OPERATION_GRANTS, prepare_booked, call_broken_book,
     TL_CALLBACK_FAILED, "P 1 1", "-", 0, 0, NULL},
    {"finish Y with a book on the retry lane", 0, prepare_booked_claim, call_success_book,
     TL_SUCCEEDED, "Y 1 1", "Y 1 0", 2, 1, NULL},
    {"finish F with a book on the retry lane", 0, prepare_booked_claim, call_failure_book,
     TL_FAILED, "F 1 1", "F 1 0", 2, 1, NULL},
    {"finish with a broken book on the retry lane", OPERATION_GRANTS, prepare_booked_claim,
     call_broken_book, TL_CALLBACK_FAILED, "P 1 1", "P 1 0", 0, 0, NULL},
    {"finish F with a book, as operators decided", 0, prepare_decided_failure, call_decided_failure,
     TL_FAILED, "F 1 1", "F 1 0", 2, 1, NULL},
    {"finish Y with a book, as operators decided", 0, prepare_decided_payment, call_decided_payment,
     TL_SUCCEEDED, "Y 1 1", "Y 1 0", 2, 2, NULL},
};

const struct operations operations_endings = {"endings", operations,
                                              sizeof operations / sizeof *operations};
