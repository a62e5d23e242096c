/*
 * Two operators decide: two real accounts of the database with the operators' role, the
 * real command, and the sample workflow with a real channel and a real worker that carries
 * out what they decided.
 */
#include "command.h"
#include "fields.h"

#include "workflows/house.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANN, BOB, SERVICE, ACCOUNTS };

static struct world {
    house h;
    const char *admin; /* the option file of an administrator */
    char user[ACCOUNTS][32], config[ACCOUNTS][256];
} w;

static void make_account(int who, const char *name, const char *role)
{
    FILE *file;
    mode_t mask = umask(077);

    snprintf(w.user[who], sizeof w.user[who], "%s%ld", name, (long)getpid());
    snprintf(w.config[who], sizeof w.config[who], "%s.%s", w.admin, name);
    database_run(w.h.sql, "CREATE USER %s@localhost IDENTIFIED BY 'secret'", w.user[who]);
    database_run(w.h.sql, "GRANT %s TO %s@localhost", role, w.user[who]);
    database_run(w.h.sql, "SET DEFAULT ROLE %s FOR %s@localhost", role, w.user[who]);
    file = fopen(w.config[who], "we");
    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written", w.config[who]);
    fprintf(file,
            "[tradelock-client]\nsocket=%s\nuser=%s\npassword=secret\ndatabase=%s\n"
            "[tradelock]\nsite=test\n",
            server_socket(server_shared()), w.user[who], database_name(w.h.db));
    fclose(file);
}

static void grant_roles(void)
{
    output *o = RUN("migrate", "--grants", "--config", w.admin);

    EXPECT_CODE(o, 0);
    output_free(o);
}

static int set_up(void **state)
{
    (void)state;
    house_open(&w.h, WITHDRAW_IDEMPOTENT, NULL, NULL);
    house_account(&w.h, "C1", 1000);
    w.admin = database_option_file(w.h.db);
    grant_roles();
    make_account(ANN, "ann", "tradelock_operator");
    make_account(BOB, "bob", "tradelock_operator");
    make_account(SERVICE, "svc", "tradelock_application");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int who = 0; who < ACCOUNTS; who++) {
        database_run(w.h.sql, "DROP USER %s@localhost", w.user[who]);
        unlink(w.config[who]);
    }
    house_close(&w.h);
    return 0;
}

/* ---------------------------------------------------------------------- helpers -- */

static unsigned long long fence_of(const char *serial)
{
    return (unsigned long long)database_number(
        w.h.sql, "SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
        serial);
}

static output *decide_in(const char *environment, int who, const char *verb,
                         const char *serial, const char *as, unsigned long long fence)
{
    char number[24];
    const char *const arguments[] = {"resolve",
                                     verb,
                                     serial,
                                     "C1",
                                     WITHDRAW_OP,
                                     "--as",
                                     as,
                                     "--fence",
                                     number,
                                     "--reason",
                                     "the bank's letter",
                                     "--actor",
                                     who == ANN ? "Ann" : "Bob",
                                     "--config",
                                     w.config[who],
                                     NULL};

    snprintf(number, sizeof number, "%llu", fence);
    return command_run(environment, arguments);
}

static void decide(int who, const char *verb, const char *serial, const char *as,
                   unsigned long long fence)
{
    output *o = decide_in(NULL, who, verb, serial, as, fence);

    EXPECT_CODE(o, 0);
    output_free(o);
}

static void refused(int who, const char *verb, const char *serial, const char *as,
                    unsigned long long fence, const char *words)
{
    output *o = decide_in(NULL, who, verb, serial, as, fence);

    EXPECT_SENTENCE(o, 1, words);
    output_free(o);
}

/* Decided by both about the row as it is. */
static void decide_together(const char *serial, const char *as)
{
    unsigned long long fence = fence_of(serial);

    decide(ANN, "propose", serial, as, fence);
    decide(BOB, "confirm", serial, as, fence);
}

/* The request never arrived, and nobody knows that. */
static void make_doubtful(const char *serial)
{
    house_rule(&w.h, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(&w.h, serial, "C1", 100, TL_IN_DOUBT);
    /* As if the time in which the sender could still send were over. */
    database_run(w.h.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test' WHERE serial_no = '%s' AND lane = 'S'",
                 serial);
}

static void make_failed(const char *serial)
{
    house_rule(&w.h, "{\"kind\":\"decline\"}");
    house_expect(&w.h, serial, "C1", 100, TL_FAILED);
}

static void say_paid(const char *serial, const char *ref)
{
    output *o =
        RUN("evidence", "add", serial, "C1", WITHDRAW_OP, "--outcome", "SUCCEEDED",
            "--ref", ref, "--source", "statement", "--config", w.config[ANN]);

    EXPECT_CODE(o, 1);
    output_free(o);
}

static void expect_audit(int code, const char *words)
{
    output *o = RUN("audit", "--config", w.config[ANN]);

    EXPECT_CODE(o, code);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static long long conflict_of(const char *serial)
{
    return database_number(
        w.h.sql, "SELECT conflict FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'",
        serial);
}

/* -------------------------------------------------------------------------- tests -- */

static void test_a_doubtful_trade_fails_by_two(void **state)
{
    unsigned long long fence;
    output *o;

    (void)state;
    make_doubtful("F1");
    house_balance(&w.h, "C1", "1000 100");
    fence = fence_of("F1");
    refused(BOB, "confirm", "F1", "failed", fence, "nobody has proposed that");
    decide(ANN, "propose", "F1", "failed", fence);
    decide(ANN, "propose", "F1", "failed", fence);
    refused(BOB, "propose", "F1", "failed", fence, "has proposed that already");
    refused(ANN, "confirm", "F1", "failed", fence, "cannot confirm");
    assert_true(fence_of("F1") == fence);
    decide(BOB, "confirm", "F1", "failed", fence);
    assert_true(fence_of("F1") == fence + 1);
    /* The answer may have been lost: the same call says the same. */
    decide(BOB, "confirm", "F1", "failed", fence);
    assert_true(fence_of("F1") == fence + 1);
    house_row(&w.h, "F1", "P 1 1 -");
    refused(ANN, "propose", "F1", "failed", fence + 1, "have decided that already");

    house_work(&w.h, 1, 20000);
    house_row(&w.h, "F1", "F 1 1 O");
    house_balance(&w.h, "C1", "1000 0");
    house_books(&w.h, 0);
    refused(ANN, "propose", "F1", "failed", fence_of("F1"), "has failed already");
    o = RUN("show", "F1", "C1", WITHDRAW_OP, "--config", w.config[BOB]);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, w.user[ANN]);
    EXPECT_WORDS(o, w.user[BOB]);
    EXPECT_WORDS(o, "two operators decided");
    EXPECT_WORDS(o, "resolve failed");
    output_free(o);
}

/* What failed was paid after all: what was given back to the customer is taken again. */
static void test_a_failure_was_paid(void **state)
{
    (void)state;
    make_failed("Y1");
    house_balance(&w.h, "C1", "1000 0");
    refused(ANN, "propose", "Y1", "paid", fence_of("Y1"), "file the evidence first");
    refused(ANN, "propose", "Y1", "clear", fence_of("Y1"), "nothing to clear");
    say_paid("Y1", "BANK-77");
    decide_together("Y1", "paid");
    assert_int_equal(conflict_of("Y1"), 0);
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "Y1", "Y 1 1 -");
    house_balance(&w.h, "C1", "900 0");
    assert_int_equal(database_number(w.h.sql, "SELECT COUNT(*) FROM ledger WHERE "
                                              "serial_no = 'Y1' AND "
                                              "channel_ref = 'BANK-77'"),
                     1);
    assert_int_equal(database_number(w.h.sql, "SELECT COUNT(*) FROM withdraw_order WHERE "
                                              "serial_no = 'Y1' AND state = 'PAID'"),
                     1);
    house_expect(&w.h, "Y1", "C1", 100, TL_ALREADY_DONE);
    refused(ANN, "propose", "Y1", "failed", fence_of("Y1"), "nobody turns that into");
    refused(BOB, "propose", "Y1", "paid", fence_of("Y1"), "nobody turns that into");
}

static void file_for(const char *serial, const char *outcome, uint32_t epoch,
                     const char *key, const char *ref)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "C1", WITHDRAW_OP},
                            .epoch = epoch,
                            .channel_key = key,
                            .outcome = outcome,
                            .channel_ref = ref,
                            .source = "statement"};
    tl_status status = tl_evidence_add(w.h.client, &evidence);

    assert_true(status == TL_OK || status == TL_IN_CONFLICT);
}

/* Declined, and then tried anew as epoch 2 at a channel that follows this rule. */
static void try_anew(const char *serial, const char *rule, tl_status expected)
{
    tl_answer answer = TL_ANSWER_INIT;

    make_failed(serial);
    database_run(w.h.sql,
                 "UPDATE trade_lock SET retryable = 1, rev = rev + 1, step = 'test' "
                 "WHERE serial_no = '%s' AND lane = 'S'",
                 serial);
    house_rule(&w.h, rule);
    assert_status(house_run(&w.h, serial, "C1", 100, 1, &answer), expected);
    tl_answer_clear(&answer);
}

/* It was paid in an earlier epoch than the one that was declined: the books name that
 * payment. */
static void test_an_earlier_epoch_was_paid(void **state)
{
    char key[TL_CHANNEL_KEY_MAX + 1];

    (void)state;
    try_anew("E1", "{\"kind\":\"decline\"}", TL_FAILED);
    house_row(&w.h, "E1", "F 2 1 D");
    house_key(&w.h, "E1", key);
    refused(ANN, "propose", "E1", "paid", fence_of("E1"),
            "--epoch N`); the last one is 2");
    file_for("E1", "SUCCEEDED", 1, NULL, "BANK-90");
    file_for("E1", "DECLINED", 2, key, "NO-91");
    decide_together("E1", "paid");
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "E1", "Y 2 1 -");
    assert_int_equal(database_number(w.h.sql, "SELECT COUNT(*) FROM ledger WHERE "
                                              "serial_no = 'E1' AND "
                                              "channel_ref = 'BANK-90'"),
                     1);
}

/* The same while the later epoch is in process still: the refusals say the way, with the
 * epoch, and it leads there. */
static void test_an_earlier_epoch_was_paid_and_another_runs(void **state)
{
    (void)state;
    try_anew("E2", "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}", TL_IN_DOUBT);
    database_run(w.h.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, "
                 "step = 'test' WHERE serial_no = 'E2' AND lane = 'S'");
    refused(ANN, "propose", "E2", "paid", fence_of("E2"),
            "epoch 2 is in process: if it was paid, file that with `tradelock evidence "
            "add --epoch 2 --outcome SUCCEEDED`");
    file_for("E2", "SUCCEEDED", 1, NULL, "BANK-92");
    assert_int_equal(conflict_of("E2"), 1);
    refused(ANN, "propose", "E2", "paid", fence_of("E2"),
            "decide first that epoch 2 failed");
    decide_together("E2", "failed");
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "E2", "F 2 1 O");
    assert_int_equal(conflict_of("E2"), 1);
    decide_together("E2", "paid");
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "E2", "Y 2 1 -");
    assert_int_equal(database_number(w.h.sql, "SELECT COUNT(*) FROM ledger WHERE "
                                              "serial_no = 'E2' AND "
                                              "channel_ref = 'BANK-92'"),
                     1);
}

static void test_a_conflict_is_cleared(void **state)
{
    (void)state;
    make_failed("C1");
    say_paid("C1", "BANK-78");
    house_expect(&w.h, "C1", "C1", 100, TL_IN_CONFLICT);
    decide_together("C1", "clear");
    assert_int_equal(conflict_of("C1"), 0);
    house_row(&w.h, "C1", "F 1 1 D");
    house_expect(&w.h, "C1", "C1", 100, TL_FAILED);
    /* New evidence is a new conflict. */
    say_paid("C1", "BANK-79");
    assert_int_equal(conflict_of("C1"), 1);
    decide_together("C1", "clear");
    assert_int_equal(conflict_of("C1"), 0);
}

static void test_what_moved_on_is_left_alone(void **state)
{
    char number[24];
    unsigned long long fence;
    output *o;

    (void)state;
    make_doubtful("M1");
    fence = fence_of("M1");
    decide(ANN, "propose", "M1", "failed", fence);
    snprintf(number, sizeof number, "%llu", fence);
    o = RUN("retry", "M1", "C1", WITHDRAW_OP, "--fence", number, "--reason", "why",
            "--config", w.config[BOB]);
    EXPECT_CODE(o, 0);
    output_free(o);
    refused(BOB, "confirm", "M1", "failed", fence, "has moved on");
    refused(BOB, "confirm", "M1", "failed", fence + 1, "nobody has proposed that");
    /* Evidence leaves the fence, and is a reason to think again all the same. */
    fence = fence_of("M1");
    decide(ANN, "propose", "M1", "failed", fence);
    o = RUN("evidence", "add", "M1", "C1", WITHDRAW_OP, "--outcome", "ACCEPTED",
            "--source", "bank", "--config", w.config[BOB]);
    EXPECT_CODE(o, 0);
    output_free(o);
    assert_true(fence_of("M1") == fence);
    refused(BOB, "confirm", "M1", "failed", fence, "evidence has come in");
    house_row(&w.h, "M1", "P 1 1 -");
    /* Anew, about the row as it is now. */
    decide(BOB, "propose", "M1", "failed", fence);
    decide(ANN, "confirm", "M1", "failed", fence);
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "M1", "F 1 1 O");
}

static void test_who_may_still_send_comes_first(void **state)
{
    (void)state;
    make_doubtful("S1");
    database_run(w.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                          "send_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR "
                          "WHERE serial_no = 'S1' AND lane = 'S'");
    refused(ANN, "propose", "S1", "failed", fence_of("S1"), "may still send");
    refused(ANN, "propose", "S1", "paid", fence_of("S1"), "is in process");
    refused(ANN, "propose", "NONE", "failed", 1, "there is no trade NONE");
    database_run(w.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                          "send_until = UTC_TIMESTAMP(6) "
                          "WHERE serial_no = 'S1' AND lane = 'S'");
    /* Evidence of success is stronger than two operators. */
    decide_together("S1", "failed");
    database_run(w.h.sql, "UPDATE trade_lock SET next_run_at = next_run_at + INTERVAL 1 "
                          "SECOND, rev = rev + 1, step = 'test' "
                          "WHERE serial_no = 'S1' AND lane = 'R'");
    output_free(RUN("evidence", "add", "S1", "C1", WITHDRAW_OP, "--outcome", "SUCCEEDED",
                    "--ref", "BANK-80", "--source", "statement", "--config",
                    w.config[BOB]));
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "S1", "Y 1 1 -");
}

/* A conflict, made without a command for each step. */
static void make_conflict(const char *serial)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "C1", WITHDRAW_OP},
                            .outcome = "SUCCEEDED",
                            .source = "statement"};

    make_failed(serial);
    assert_status(tl_evidence_add(w.h.client, &evidence), TL_IN_CONFLICT);
}

/*
 * Killed at a passage of both steps (in a build that can be), every fifth or, in the long
 * run, each, and run again: decided once, whatever the first one had come to.
 */
static void test_kill_9_is_harmless(void **state)
{
    static const char *const verbs[] = {"propose", "confirm"};
    unsigned deaths = 0, stride = getenv("TL_TEST_LONG") != NULL ? 1 : 5;

    (void)state;
    for (int verb = 0; verb < 2; verb++) {
        int code = -1;

        for (unsigned point = 1; code != 0; point += stride) {
            char serial[16], kill[32];
            unsigned long long fence;
            output *o;

            snprintf(serial, sizeof serial, "K%d-%u", verb, point);
            snprintf(kill, sizeof kill, "TL_FAULT_KILL=%u", point);
            make_conflict(serial);
            fence = fence_of(serial);
            if (verb == 1)
                decide(ANN, "propose", serial, "clear", fence);
            o = decide_in(kill, verb == 1 ? BOB : ANN, verbs[verb], serial, "clear",
                          fence);
            code = o->code;
            assert_true(code == 0 || code == -1);
            deaths += code == -1;
            output_free(o);
            if (verb == 0)
                decide(ANN, "propose", serial, "clear", fence);
            decide(BOB, "confirm", serial, "clear", fence);
            assert_int_equal(conflict_of(serial), 0);
            assert_true(fence_of(serial) == fence + 1);
        }
    }
    print_message("killed %u times\n", deaths);
#ifdef TL_TEST_HOOKS
    assert_true(deaths > 4);
#endif
}

static void test_the_audit_wants_two(void **state)
{
    (void)state;
    /* The tests set clocks by hand, each on record as a step of its own. */
    expect_audit(0, ": 0 violations");
    database_run(w.h.sql,
                 "UPDATE trade_resolution SET account = '%s@elsewhere' "
                 "WHERE serial_no = 'F1' AND part = 2",
                 w.user[ANN]);
    expect_audit(1, "one-operator");
    database_run(w.h.sql,
                 "UPDATE trade_resolution SET account = '%s@localhost' "
                 "WHERE serial_no = 'F1' AND part = 2",
                 w.user[BOB]);
    expect_audit(0, ": 0 violations");
    database_run(w.h.sql, "UPDATE trade_resolution SET verdict = 'C' "
                          "WHERE serial_no = 'Y1' AND part = 2");
    expect_audit(1, "one-operator");
    database_run(w.h.sql, "UPDATE trade_resolution SET verdict = 'Y' "
                          "WHERE serial_no = 'Y1' AND part = 2");
    expect_audit(0, ": 0 violations");
    /* The proof alone, written with SQL that keeps revision and step. */
    make_doubtful("A1");
    database_run(w.h.sql, "UPDATE trade_lock SET status = 'F', proof = 'O', "
                          "step = 'end', rev = rev + 1, fence = fence + 1, "
                          "token = UNHEX(MD5(RAND())) WHERE serial_no = 'A1' AND "
                          "lane = 'S'");
    expect_audit(1, "they did not");
    database_run(w.h.sql, "DELETE FROM trade_lock WHERE serial_no = 'A1'; "
                          "DELETE FROM trade_lock_log WHERE serial_no = 'A1'");
    expect_audit(0, ": 0 violations");
}

/* What the command would refuse the database refuses too. */
static void test_sql_is_refused_too(void **state)
{
#define HALF(column, part, value)                                                        \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "    \
    "fence, epoch, reason, actor, thread_no" column                                      \
    ") SELECT cust_no, serial_no, op_code, rev, 'F', " part                              \
    ", fence, epoch, 'r', 'a', UUID()" value " FROM trade_lock WHERE serial_no = 'Q1' "  \
    "AND lane = 'S'"
    static const struct {
        const char *sql, *words;
    } cases[] = {
        {HALF("", "2", ""), "nothing was proposed"},
        {HALF("", "1", ""), NULL},
        {HALF("", "2", ""), "cannot confirm"},
        {HALF(", account", "2", ", 'bob@localhost'"), "denied"},
        {"UPDATE trade_resolution SET part = 2", "denied"},
        {"DELETE FROM trade_resolution", "denied"},
    };
    MYSQL *ann = mysql_init(NULL);

    (void)state;
    make_doubtful("Q1");
    assert_non_null(mysql_real_connect(ann, NULL, w.user[ANN], "secret",
                                       database_name(w.h.db), 0,
                                       server_socket(server_shared()), 0));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int failed = mysql_query(ann, cases[i].sql) != 0;

        assert_int_equal(failed, cases[i].words != NULL);
        if (cases[i].words != NULL && strstr(mysql_error(ann), cases[i].words) == NULL)
            fail_msg("%s: %s", cases[i].sql, mysql_error(ann));
    }
    mysql_close(ann);
}

/* A compensating attempt that says that operators decided, and they did not. */
static void test_the_proof_is_looked_for(void **state)
{
#define BY_HAND "rev = rev + 1, step = 'test' WHERE serial_no = 'L1' AND lane = 'S'"
#define WRITTEN(part, account)                                                           \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "    \
    "fence, epoch, reason, actor, thread_no, account) SELECT cust_no, serial_no, "       \
    "op_code, 1, 'F', " part ", fence, epoch, 'r', 'a', UUID(), '" account               \
    "' FROM trade_lock WHERE serial_no = 'L1' AND lane = 'S'"
    static const char *const steps[] = {
        "UPDATE trade_lock SET cancel_tried = 1, " BY_HAND,
        WRITTEN("2", "x@a"),
        WRITTEN("1", "x@b"),
        "UPDATE trade_resolution SET account = 'y@a', rev = 2 WHERE serial_no = 'L1' "
        "AND part = 1",
        "UPDATE trade_lock SET cancel_tried = 0, " BY_HAND
        "; UPDATE trade_resolution SET rev = 1 WHERE serial_no = 'L1'",
        "UPDATE trade_lock SET cancel_tried = 1, send_until = UTC_TIMESTAMP(6) + "
        "INTERVAL 1 HOUR, " BY_HAND,
    };
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"L1", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    (void)state;
    make_doubtful("L1");
    database_run(w.h.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6), "
                          "rev = rev + 1, step = 'test' WHERE serial_no = 'L1' AND "
                          "lane = 'R'");
    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&lock, w.h.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_OPERATORS;
    assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
    /* Halves that no trigger looked at, as an administrator can write them: each time one
     * thing is missing that a confirmation by the command brings. */
    database_run(w.h.sql, "DROP TRIGGER trade_resolution_inserted");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        database_run(w.h.sql, "%s", steps[i]);
        assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
        house_row(&w.h, "L1", "P 1 1 -");
    }
    grant_roles();
    database_run(w.h.sql,
                 "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), " BY_HAND);
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    house_row(&w.h, "L1", "F 1 1 O");
    tl_lock_free(lock);
}

static int waits_long(const char *serial)
{
    return database_number(w.h.sql,
                           "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '%s' AND "
                           "lane = 'R' AND status = 'F' AND "
                           "next_run_at > UTC_TIMESTAMP(6) + INTERVAL 30 MINUTE",
                           serial) == 1;
}

/* A restore that was accepted moves the last moment of a send; what was decided waits. */
static void test_what_was_decided_waits_for_a_send(void **state)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    (void)state;
    make_doubtful("L2");
    decide_together("L2", "failed");
    database_run(w.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                          "send_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR "
                          "WHERE serial_no = 'L2' AND lane = 'S'");
    options.threads = 1;
    assert_status(tl_worker_start(&worker, w.h.workflows, &options), TL_OK);
    for (int turn = 0; turn < 3000 && !waits_long("L2"); turn++)
        usleep(20000);
    tl_worker_stop(worker);
    assert_status(tl_worker_wait(worker, 10000), TL_OK);
    tl_worker_free(worker);
    assert_true(waits_long("L2"));
    house_row(&w.h, "L2", "P 1 1 -");
    database_run(w.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                          "send_until = UTC_TIMESTAMP(6) "
                          "WHERE serial_no = 'L2' AND lane = 'S'; "
                          "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                          "next_run_at = UTC_TIMESTAMP(6) "
                          "WHERE serial_no = 'L2' AND lane = 'R'");
    house_work(&w.h, 1, 20000);
    house_row(&w.h, "L2", "F 1 1 O");
}

static void expect_doctor(int code, const char *words)
{
    output *o = RUN("doctor", "--config", w.config[SERVICE]);

    EXPECT_CODE(o, code);
    EXPECT_WORDS(o, words);
    output_free(o);
}

/* Without what decides about decisions a worker ends nothing, or what nobody confirmed. */
static void test_the_doctor_misses_what_a_worker_needs(void **state)
{
    (void)state;
    expect_doctor(0, "a probe was recorded");
    /* As after a migration whose grants nobody ran. */
    database_run(w.h.sql, "REVOKE SELECT ON trade_resolution FROM tradelock_application");
    expect_doctor(5, "may not read trade_resolution");
    grant_roles();
    database_run(w.h.sql, "REVOKE EXECUTE ON FUNCTION tl_account_name FROM "
                          "tradelock_application");
    expect_doctor(5, "or call tl_account_name");
    grant_roles();
    expect_doctor(0, "a probe was recorded");
    database_run(w.h.sql, "DROP TRIGGER trade_resolution_inserted");
    expect_doctor(5, "missing: trigger trade_resolution_inserted");
    /* With a function the rights on it go, and a service is not told which it was. */
    database_run(w.h.sql, "DROP FUNCTION tl_parts");
    expect_doctor(0, "may not look whether triggers");
    grant_roles();
    expect_doctor(0, "a probe was recorded");
}

static void test_usage(void **state)
{
    static const struct {
        const char *arguments[12], *words;
    } cases[] = {
        {{"resolve", "a", "b", "c"}, "`propose`, `confirm` and `ls`, not 'a'"},
        {{"resolve", "propose", "a", "b"}, "SERIAL CUST OP"},
        {{"resolve", "propose", "a", "b", "c", "--as", "won"}, "clear, paid or failed"},
        {{"resolve", "propose", "a", "b", "c"}, "--as is missing"},
        {{"resolve", "propose", "a", "b", "c", "--as", "paid"}, "--fence is missing"},
        {{"resolve", "confirm", "a", "b", "c", "--as", "paid", "--fence", "x"},
         "--fence is a number"},
        {{"resolve", "confirm", "a", "b", "c", "--as", "paid", "--fence", "1"},
         "--reason is missing"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        output *o = command_run(NULL, cases[i].arguments);

        EXPECT_SENTENCE(o, 2, cases[i].words);
        output_free(o);
    }
}

static void expect_listed(const char *name, output *o)
{
    json_t *set = json_object(), *document = output_json(o);

    fields_add(set, document);
    fields_expect(set, name);
    json_decref(set);
    json_decref(document);
    output_free(o);
}

static void test_fields_are_listed(void **state)
{
    char fence[24];

    (void)state;
    make_failed("J1");
    say_paid("J1", "J");
    snprintf(fence, sizeof fence, "%llu", fence_of("J1"));
    expect_listed("resolve", RUN("resolve", "propose", "J1", "C1", WITHDRAW_OP, "--as",
                                 "clear", "--fence", fence, "--reason", "r", "--json",
                                 "--config", w.config[ANN]));
    expect_listed("resolve ls", RUN("resolve", "ls", "J1", "C1", WITHDRAW_OP, "--json",
                                    "--config", w.config[ANN]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_doubtful_trade_fails_by_two),
        cmocka_unit_test(test_a_failure_was_paid),
        cmocka_unit_test(test_a_conflict_is_cleared),
        cmocka_unit_test(test_what_moved_on_is_left_alone),
        cmocka_unit_test(test_who_may_still_send_comes_first),
        cmocka_unit_test(test_kill_9_is_harmless),
        cmocka_unit_test(test_the_audit_wants_two),
        cmocka_unit_test(test_sql_is_refused_too),
        cmocka_unit_test(test_the_proof_is_looked_for),
        cmocka_unit_test(test_what_was_decided_waits_for_a_send),
        cmocka_unit_test(test_the_doctor_misses_what_a_worker_needs),
        cmocka_unit_test(test_an_earlier_epoch_was_paid),
        cmocka_unit_test(test_an_earlier_epoch_was_paid_and_another_runs),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_fields_are_listed),
    };

    return server_report(cmocka_run_group_tests(tests, set_up, tear_down));
}
