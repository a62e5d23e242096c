/* Before two operators' "failed" is booked the channel is asked, where it can be: what it says
 * decides whether it is. */
#include "operators.h"
#include "support/theme.h"

#include <tradelock/lane.h>
#include <tradelock/worker.h>

#define PATIENCE_TURNS 3000

/* A worker, until this SQL about the trade's rows says 1. */
static void work_until(const char *serial, const char *wanted)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;
    long long there = 0;

    options.threads = 1;
    options.idle_max_ms = 50;
    assert_status(tl_worker_start(&worker, operators.h.workflows, &options), TL_OK);
    for (int turn = 0; turn < PATIENCE_TURNS && there == 0; turn++) {
        usleep(20000);
        there = database_number(operators.h.sql,
                                "SELECT COUNT(*) FROM trade_lock s JOIN trade_lock r ON "
                                "r.serial_no = s.serial_no AND r.lane = 'R' WHERE "
                                "s.serial_no = '%s' AND s.lane = 'S' AND %s",
                                serial, wanted);
    }
    tl_worker_stop(worker);
    assert_status(tl_worker_wait(worker, 10000), TL_OK);
    tl_worker_free(worker);
    if (there == 0)
        fail_msg("%s never came to: %s", serial, wanted);
}

#define PARKED "s.status = 'P' AND s.session_id IS NULL AND r.parked LIKE 'operators%%'"

/* The answer of the only send is lost, and nobody can send any more. */
static void make_unanswered(const char *serial, const char *rule)
{
    house_rule(&operators.h, rule);
    house_expect(&operators.h, serial, "C1", 100, TL_IN_DOUBT);
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test' WHERE serial_no = '%s' AND lane = 'S'",
                 serial);
}

static void confirm_although_pending(const char *serial)
{
    unsigned long long fence = operators_fence(serial);
    char number[24];

    snprintf(number, sizeof number, "%llu", fence);
    operators_decide(ANN, "propose", serial, "failed", fence);
    ENDS(RUN("resolve", "confirm", serial, "C1", WITHDRAW_OP, "--as", "failed", "--fence", number,
             "--reason", "the bank's letter", "--although-pending", "--config",
             operators.config[BOB]),
         0);
}

static void expect_listed(const char *serial, const char *words)
{
    ENDS(RUN("resolve", "ls", serial, "C1", WITHDRAW_OP, "--config", operators.config[ANN]), 0,
         words);
}

static long long is_on_row(const char *serial, const char *condition)
{
    return database_number(operators.h.sql,
                           "SELECT %s FROM trade_lock WHERE serial_no = '%s' AND "
                           "lane = 'S'",
                           condition, serial);
}

static void retry_now(const char *serial)
{
    char fence[24];

    snprintf(fence, sizeof fence, "%llu", operators_fence(serial));
    ENDS(RUN("retry", serial, "C1", WITHDRAW_OP, "--fence", fence, "--reason", "again", "--config",
             operators.config[ANN]),
         0);
}

/* The payment was made, and the answer lost. */
TEST(test_what_was_paid_is_booked_as_paid)
{
    make_unanswered("P1", "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    operators_decide_together("P1", "failed");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "P1", "Y 1 1 -");
    house_books(&operators.h, 1);
}

/* Refused, with the reason on the row, in the list and as an alarm; what comes then is as if nobody
 * had decided. */
TEST(test_what_is_pending_is_not_booked)
{
    make_unanswered("W1", "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"pending\",\"endpoint\":\"query\"}");
    operators_decide_together("W1", "failed");
    work_until("W1", PARKED);
    assert_true(house_alarmed(&operators.h, "operators said failed, channel pending"));
    expect_listed("W1", "not carried out");
    house_row(&operators.h, "W1", "P 1 1 -");
    operators_refused(BOB, "confirm", "W1", "failed", operators_fence("W1"),
                      "nobody has proposed that");
    retry_now("W1");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "W1", "Y 1 1 -");
}

/* What was refused can be decided anew, about the row as it is now, and expressly. */
TEST(test_although_pending_is_said_expressly)
{
    make_unanswered("W2", "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"pending\",\"endpoint\":\"query\",\"count\":2}");
    operators_decide_together("W2", "failed");
    work_until("W2", PARKED);
    confirm_although_pending("W2");
    expect_listed("W2", "although pending");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "W2", "F 1 1 O");
}

/* A channel that is not there has said nothing: the decision waits for it. */
TEST(test_an_unreachable_channel_is_waited_for)
{
    operators_make_doubtful("U1");
    house_rule(&operators.h, "{\"kind\":\"unreachable\",\"endpoint\":\"query\",\"count\":2}");
    operators_decide_together("U1", "failed");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "U1", "F 1 1 O");
    assert_true(database_number(operators.h.sql, "SELECT attempts FROM trade_lock WHERE "
                                                 "serial_no = 'U1' AND lane = 'R'") >= 3);
}

/* What operators tell each other is not for the customer, and no cancel is on record that nobody
 * tried. */
TEST(test_the_customer_does_not_hear_the_reason)
{
    tl_answer answer = TL_ANSWER_INIT;

    operators_make_doubtful("R1");
    operators_decide_together("R1", "failed");
    assert_int_equal(is_on_row("R1", "cancel_tried"), 0);
    assert_status(house_run(&operators.h, "R1", "C1", 100, 0, &answer), TL_IN_DOUBT);
    assert_null(strstr(answer.view.remark, "letter"));
    tl_answer_clear(&answer);
    house_work(&operators.h, 1, 20000);
    assert_status(house_run(&operators.h, "R1", "C1", 100, 0, &answer), TL_FAILED);
    assert_string_equal(answer.view.remark, "decided by two operators");
    tl_answer_clear(&answer);
}

/* Whoever holds the lane of a decided trade may not send for it. */
TEST(test_nothing_is_armed_for_a_decided_trade)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"N1", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    operators_make_doubtful("N1");
    operators_decide_together("N1", "failed");
    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&lock, operators.h.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_arm(lock, 60000), TL_EVIDENCE);
    ending.outcome = TL_OUTCOME_UNKNOWN;
    ending.next_run_ms = 1;
    (void)tl_lock_finish(lock, &ending);
    tl_lock_free(lock);
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "N1", "F 1 1 O");
}

/* Both operators read what the channel said last, and when. */
TEST(test_what_the_channel_said_is_shown)
{
    unsigned long long fence;

    make_unanswered("S1", "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"pending\",\"endpoint\":\"query\",\"count\":0,"
                             "\"serial_no\":\"S1\"}");
    work_until("S1", "s.status = 'P' AND s.remark LIKE 'asked: pending%%' AND "
                     "s.session_id IS NULL");
    fence = operators_fence("S1");
    ENDS(operators_decide_in(NULL, ANN, "propose", "S1", "failed", fence), 0, "asked: pending");
    ENDS(operators_decide_in(NULL, BOB, "confirm", "S1", "failed", fence), 0, "asked: pending");
    ENDS(RUN("show", "S1", "C1", WITHDRAW_OP, "--config", operators.config[ANN]), ANY_CODE,
         "channel said", operators.user[BOB]);
}

/* Whoever may write no trade opens the one that he names, with a reason, when its holder is dead;
 * to open all that the dead held is for services. */
TEST(test_an_operator_opens_what_he_names)
{
    database_run(operators.h.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, session_id, token, fence, rev, sends, channel, channel_key, "
                 "max_hold_until, next_run_at, created_at, updated_at) VALUES ('C1', 'D1', "
                 "'" WITHDRAW_OP "', 'S', 'P', 'ask', UUID(), UUID(), RANDOM_BYTES(16), 1, "
                 "1, 1, 'bank', 'd1', UTC_TIMESTAMP(6) + INTERVAL 1 DAY, UTC_TIMESTAMP(6) + "
                 "INTERVAL 1 DAY, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    EXPECT_REFUSED(RUN("reap", "--config", operators.config[ANN]), 1,
                   "the role DATABASE_application");
    retry_now("D1");
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM trade_lock s JOIN trade_lock r "
                                     "ON r.serial_no = s.serial_no AND r.lane = 'R' WHERE "
                                     "s.serial_no = 'D1' AND s.lane = 'S' AND s.status = "
                                     "'P' AND s.session_id IS NULL AND s.remark IS NULL "
                                     "AND r.status = 'F' AND r.remark = 'again' AND "
                                     "r.next_run_at <= UTC_TIMESTAMP(6) AND s.account = "
                                     "'%s@localhost' AND r.account = s.account",
                                     operators.user[ANN]),
                     1);
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE serial_no = 'D1'");
}

/* Where it can be cancelled it is, so that no late request is paid. */
TEST(test_it_is_cancelled_where_that_can_be)
{
    operators.h.kind = WITHDRAW_PLAIN;
    house_reopen(&operators.h);
    operators_make_doubtful("C1");
    operators_decide_together("C1", "failed");
    assert_int_equal(is_on_row("C1", "cancel_tried"), 0);
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "C1", "F 1 1 O");
    assert_int_equal(sim_stat(&operators.h.sim, "cancels"), 1);

    /* The query lags, and the payment had been made. */
    make_unanswered("C2", "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"not_found_first\"}");
    operators_decide_together("C2", "failed");
    work_until("C2", PARKED);
    house_row(&operators.h, "C2", "P 1 1 -");
    assert_int_equal(is_on_row("C2", "cancel_tried"), 1);
    assert_true(house_alarmed(&operators.h, "operators said failed, channel paid it"));
    operators.h.kind = WITHDRAW_IDEMPOTENT;
    house_reopen(&operators.h);
}

TESTS_OF(resolve_asks, operators_set_up, operators_tear_down)
