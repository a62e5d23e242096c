/* What two operators decide is carried out, by a real worker at a real channel. */
#include "operators.h"
#include "support/theme.h"

#include <tradelock/worker.h>

static void expect_booked(const char *serial, const char *channel_ref)
{
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM ledger WHERE serial_no = '%s' "
                                     "AND channel_ref = '%s'",
                                     serial, channel_ref),
                     1);
}

TEST(test_a_doubtful_trade_fails_by_two)
{
    unsigned long long fence;

    operators_make_doubtful("F1");
    house_balance(&operators.h, "C1", "1000 100");
    fence = operators_fence("F1");
    operators_refused(BOB, "confirm", "F1", "failed", fence, "nobody has proposed that");
    operators_decide(ANN, "propose", "F1", "failed", fence);
    operators_decide(ANN, "propose", "F1", "failed", fence);
    operators_refused(BOB, "propose", "F1", "failed", fence, "has proposed that already");
    operators_refused(ANN, "confirm", "F1", "failed", fence, "cannot confirm");
    assert_true(operators_fence("F1") == fence);
    operators_decide(BOB, "confirm", "F1", "failed", fence);
    assert_true(operators_fence("F1") == fence + 1);
    /* The answer may have been lost: the same call says the same. */
    operators_decide(BOB, "confirm", "F1", "failed", fence);
    assert_true(operators_fence("F1") == fence + 1);
    house_row(&operators.h, "F1", "P 1 1 -");
    operators_refused(ANN, "propose", "F1", "failed", fence + 1, "have decided that already");

    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "F1", "F 1 1 O");
    house_balance(&operators.h, "C1", "1000 0");
    house_books(&operators.h, 0);
    operators_refused(ANN, "propose", "F1", "failed", operators_fence("F1"), "has failed already");
    ENDS(RUN("show", "F1", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 0,
         operators.user[ANN], operators.user[BOB], "two operators decided", "resolve failed");
}

/* What failed was paid after all: what was given back to the customer is taken again. */
TEST(test_a_failure_was_paid)
{
    operators_make_failed("Y1");
    house_balance(&operators.h, "C1", "1000 0");
    operators_refused(ANN, "propose", "Y1", "paid", operators_fence("Y1"),
                      "file the evidence first");
    operators_refused(ANN, "propose", "Y1", "clear", operators_fence("Y1"), "nothing to clear");
    operators_say_paid("Y1", "BANK-77");
    operators_decide_together("Y1", "paid");
    assert_int_equal(operators_conflict("Y1"), 0);
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "Y1", "Y 1 1 -");
    house_balance(&operators.h, "C1", "900 0");
    expect_booked("Y1", "BANK-77");
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM withdraw_order WHERE "
                                                      "serial_no = 'Y1' AND state = 'PAID'"),
                     1);
    house_expect(&operators.h, "Y1", "C1", 100, TL_ALREADY_DONE);
    operators_refused(ANN, "propose", "Y1", "failed", operators_fence("Y1"),
                      "nobody turns that into");
    operators_refused(BOB, "propose", "Y1", "paid", operators_fence("Y1"),
                      "nobody turns that into");
}

static void file_for(const char *serial, const char *outcome, uint32_t epoch, const char *key,
                     const char *ref)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "C1", WITHDRAW_OP},
                            .epoch = epoch,
                            .channel_key = key,
                            .outcome = outcome,
                            .channel_ref = ref,
                            .source = "statement"};
    tl_status status = tl_evidence_add(operators.h.client, &evidence);

    assert_true(status == TL_OK || status == TL_IN_CONFLICT);
}

/* Declined, and then tried anew as epoch 2 at a channel that follows this rule. */
static void try_anew(const char *serial, const char *rule, tl_status expected)
{
    tl_answer answer = TL_ANSWER_INIT;

    operators_make_failed(serial);
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET retryable = 1, rev = rev + 1, step = 'test' "
                 "WHERE serial_no = '%s' AND lane = 'S'",
                 serial);
    house_rule(&operators.h, rule);
    assert_status(house_run(&operators.h, serial, "C1", 100, 1, &answer), expected);
    tl_answer_clear(&answer);
}

TEST(test_a_conflict_is_cleared)
{
    operators_make_failed("C1");
    operators_say_paid("C1", "BANK-78");
    house_expect(&operators.h, "C1", "C1", 100, TL_IN_CONFLICT);
    operators_decide_together("C1", "clear");
    assert_int_equal(operators_conflict("C1"), 0);
    house_row(&operators.h, "C1", "F 1 1 D");
    house_expect(&operators.h, "C1", "C1", 100, TL_FAILED);
    /* New evidence is a new conflict. */
    operators_say_paid("C1", "BANK-79");
    assert_int_equal(operators_conflict("C1"), 1);
    operators_decide_together("C1", "clear");
    assert_int_equal(operators_conflict("C1"), 0);
}

TEST(test_what_moved_on_is_left_alone)
{
    char number[24];
    unsigned long long fence;

    operators_make_doubtful("M1");
    fence = operators_fence("M1");
    operators_decide(ANN, "propose", "M1", "failed", fence);
    snprintf(number, sizeof number, "%llu", fence);
    ENDS(RUN("retry", "M1", "C1", WITHDRAW_OP, "--fence", number, "--reason", "why", "--config",
             operators.config[BOB]),
         0);
    operators_refused(BOB, "confirm", "M1", "failed", fence, "has moved on");
    operators_refused(BOB, "confirm", "M1", "failed", fence + 1, "nobody has proposed that");
    /* Evidence leaves the fence, and is a reason to think again all the same. */
    fence = operators_fence("M1");
    operators_decide(ANN, "propose", "M1", "failed", fence);
    ENDS(RUN("evidence", "add", "M1", "C1", WITHDRAW_OP, "--outcome", "ACCEPTED", "--source",
             "bank", "--config", operators.config[BOB]),
         0);
    assert_true(operators_fence("M1") == fence);
    operators_refused(BOB, "confirm", "M1", "failed", fence, "evidence has come in");
    house_row(&operators.h, "M1", "P 1 1 -");
    /* Anew, about the row as it is now. */
    operators_decide(BOB, "propose", "M1", "failed", fence);
    operators_decide(ANN, "confirm", "M1", "failed", fence);
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "M1", "F 1 1 O");
}

/* A conflict, made without a command for each step. */
static void make_conflict(const char *serial)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "C1", WITHDRAW_OP},
                            .outcome = "SUCCEEDED",
                            .source = "statement"};

    operators_make_failed(serial);
    assert_status(tl_evidence_add(operators.h.client, &evidence), TL_IN_CONFLICT);
}

/*
 * Killed at a passage of both steps (in a build that can be), every fifth or, in the long run,
 * each, and run again: decided once, whatever the first one had come to.
 */
TEST(test_kill_9_is_harmless)
{
    static const char *const verbs[] = {"propose", "confirm"};
    unsigned deaths = 0, stride = tier_pick(15, 5, 1);

    for (int verb = 0; verb < 2; verb++) {
        int code = -1;

        for (unsigned point = 1; code != 0; point += stride) {
            char serial[16], kill[32];
            unsigned long long fence;
            output *o;

            snprintf(serial, sizeof serial, "K%d-%u", verb, point);
            snprintf(kill, sizeof kill, "TL_FAULT_KILL=%u", point);
            make_conflict(serial);
            fence = operators_fence(serial);
            if (verb == 1)
                operators_decide(ANN, "propose", serial, "clear", fence);
            o = operators_decide_in(kill, verb == 1 ? BOB : ANN, verbs[verb], serial, "clear",
                                    fence);
            code = o->code;
            assert_true(code == 0 || code == -1);
            deaths += code == -1;
            output_free(o);
            if (verb == 0)
                operators_decide(ANN, "propose", serial, "clear", fence);
            operators_decide(BOB, "confirm", serial, "clear", fence);
            assert_int_equal(operators_conflict(serial), 0);
            assert_true(operators_fence(serial) == fence + 1);
        }
    }
    print_message("killed %u times\n", deaths);
#ifdef TL_TEST_HOOKS
    assert_true(deaths > 4);
#endif
}

static int waits_long(const char *serial)
{
    return database_number(operators.h.sql,
                           "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' AND "
                           "lane = 'R' AND status = 'F' AND "
                           "next_run_at > UTC_TIMESTAMP(6) + INTERVAL 30 SECOND AND attempts = 0",
                           serial) == 1;
}

TEST(test_the_audit_wants_two)
{
    /* The tests set clocks by hand, each on record as a step of its own. */
    operators_audit(0, ": 0 violations");
    database_run(operators.h.sql,
                 "UPDATE trade_resolution SET account = '%s@elsewhere' "
                 "WHERE serial_no = 'F1' AND part = 2",
                 operators.user[ANN]);
    operators_audit(1, "one-operator");
    database_run(operators.h.sql,
                 "UPDATE trade_resolution SET account = '%s@localhost' "
                 "WHERE serial_no = 'F1' AND part = 2",
                 operators.user[BOB]);
    operators_audit(0, ": 0 violations");
    database_run(operators.h.sql, "UPDATE trade_resolution SET verdict = 'C' "
                                  "WHERE serial_no = 'Y1' AND part = 2");
    operators_audit(1, "one-operator");
    database_run(operators.h.sql, "UPDATE trade_resolution SET verdict = 'Y' "
                                  "WHERE serial_no = 'Y1' AND part = 2");
    operators_audit(0, ": 0 violations");
    /* The proof alone, written with SQL that keeps revision and step. */
    operators_make_doubtful("A1");
    database_run(operators.h.sql, "UPDATE trade_lock SET status = 'F', proof = 'O', "
                                  "step = 'end', rev = rev + 1, fence = fence + 1, "
                                  "token = UNHEX(MD5(RAND())) WHERE serial_no = 'A1' AND "
                                  "lane = 'S'");
    operators_audit(1, "they did not");
    database_run(operators.h.sql, "DELETE FROM trade_lock WHERE serial_no = 'A1'; "
                                  "DELETE FROM trade_lock_past WHERE serial_no = 'A1'");
    operators_audit(0, ": 0 violations");
}

/* A restore that was accepted moves the last moment of a send; what was decided waits. */
TEST(test_what_was_decided_waits_for_a_send)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    operators_make_doubtful("L2");
    operators_decide_together("L2", "failed");
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                                  "send_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR "
                                  "WHERE serial_no = 'L2' AND lane = 'S'");
    options.threads = 1;
    assert_status(tl_worker_start(&worker, operators.h.workflows, &options), TL_OK);
    for (int turn = 0; turn < PATIENCE_MS / 20 && !waits_long("L2"); turn++)
        usleep(20000);
    tl_worker_stop(worker);
    assert_status(tl_worker_wait(worker, 10000), TL_OK);
    tl_worker_free(worker);
    assert_true(waits_long("L2"));
    house_row(&operators.h, "L2", "P 1 1 -");
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                                  "send_until = UTC_TIMESTAMP(6) "
                                  "WHERE serial_no = 'L2' AND lane = 'S'; "
                                  "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                                  "next_run_at = UTC_TIMESTAMP(6) "
                                  "WHERE serial_no = 'L2' AND lane = 'R'");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "L2", "F 1 1 O");
}

/* It was paid in an earlier epoch than the one that was declined: the books name that payment. */
TEST(test_an_earlier_epoch_was_paid)
{
    char key[TL_CHANNEL_KEY_MAX + 1];

    try_anew("E1", "{\"kind\":\"decline\"}", TL_FAILED);
    house_row(&operators.h, "E1", "F 2 1 D");
    house_key(&operators.h, "E1", key);
    operators_refused(ANN, "propose", "E1", "paid", operators_fence("E1"),
                      "--epoch N`); the last one is 2");
    file_for("E1", "SUCCEEDED", 1, NULL, "BANK-90");
    file_for("E1", "DECLINED", 2, key, "NO-91");
    operators_decide_together("E1", "paid");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "E1", "Y 2 1 -");
    expect_booked("E1", "BANK-90");
}

/* The same while the later epoch is in process still: the refusals say the way, with the epoch, and
 * it leads there. */
TEST(test_an_earlier_epoch_was_paid_and_another_runs)
{
    try_anew("E2", "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}", TL_IN_DOUBT);
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test' WHERE serial_no = 'E2' AND lane = 'S'");
    operators_refused(ANN, "propose", "E2", "paid", operators_fence("E2"),
                      "epoch 2 is in process: if it was paid, file that with `tradelock evidence "
                      "add --epoch 2 --outcome SUCCEEDED`");
    file_for("E2", "SUCCEEDED", 1, NULL, "BANK-92");
    assert_int_equal(operators_conflict("E2"), 1);
    operators_refused(ANN, "propose", "E2", "paid", operators_fence("E2"),
                      "decide first that epoch 2 failed");
    operators_decide_together("E2", "failed");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "E2", "F 2 1 O");
    assert_int_equal(operators_conflict("E2"), 1);
    operators_decide_together("E2", "paid");
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "E2", "Y 2 1 -");
    expect_booked("E2", "BANK-92");
}

TESTS_OF(resolve, operators_set_up, operators_tear_down)
