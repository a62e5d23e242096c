/*
 * Releases with other channels while trades are in doubt: a trade goes to the channel that its row
 * names, or to nobody.  Two real channels, of which each pays what it is sent.
 */
#include "release.h"

#include "cmocka_all.h"
#include "support/metric.h"

#include <tradelock/admin.h>
#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static house self; /* its simulator is bank A, and it runs no client of its own */
static struct sim other;
static release now;

#define A(kind_of) ((bank){"bank-a", kind_of, &self.sim, 0})
#define B(kind_of) ((bank){"bank-b", kind_of, &other, 0})

static const char *const plain[] = {"--kind", "plain", "--settle-ms", "100", NULL};

static int open_banks(void **state)
{
    (void)state;
    house_open(&self, WITHDRAW_PLAIN, NULL, NULL);
    house_leave(&self);
    house_account(&self, "C1", 1000000);
    sim_prepare(&other);
    sim_start(&other, plain);
    return 0;
}

static int close_banks(void **state)
{
    (void)state;
    release_close(&now);
    sim_remove(&other);
    house_close(&self);
    return 0;
}

/* Alarms are kept in the house. */
static void keep_alarm(void *context, const tl_log_line *line)
{
    (void)context;
    if (line->level != TL_ALARM)
        return;
    pthread_mutex_lock(&self.mutex);
    if (self.alarm_count < ALARMS_MAX)
        snprintf(self.alarms[self.alarm_count++], sizeof self.alarms[0], "%s", line->message);
    pthread_mutex_unlock(&self.mutex);
}

/* The release before ends, and this one begins. */
static void begin(bank of, const bank *former)
{
    release_close(&now);
    if (release_open(&now, database_option_file(self.db), &of, former, keep_alarm, NULL) != TL_OK)
        fail_msg("%s", tl_error_message());
}

static void pay(const char *serial, tl_status expected)
{
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(release_pay(&now, serial, "C1", 100, 0, &answer), expected);
    tl_answer_clear(&answer);
}

static json_int_t requests(const struct sim *sim, const char *endpoint)
{
    struct answer stats = sim_ask(sim, NULL, "/v1/stats", NULL, 10000);
    json_int_t count =
        json_integer_value(json_object_get(json_object_get(stats.json, "requests"), endpoint));

    answer_free(&stats);
    return count;
}

static json_int_t all_requests(const struct sim *sim)
{
    return requests(sim, "pay") + requests(sim, "query") + requests(sim, "cancel");
}

static tl_worker *start_worker(void)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    options.threads = 2;
    options.idle_max_ms = 50;
    assert_status(tl_worker_start(&worker, now.workflows, &options), TL_OK);
    return worker;
}

static void stop_worker(tl_worker *worker)
{
    tl_worker_stop(worker);
    assert_status(tl_worker_wait(worker, HOUSE_PATIENCE_MS), TL_OK);
    tl_worker_free(worker);
}

static void await_number(long long least, const char *query)
{
    const int64_t end_ms = now_ms() + HOUSE_PATIENCE_MS;

    while (database_number(self.sql, "%s", query) < least) {
        if (now_ms() > end_ms)
            fail_msg("not within a minute: %s", query);
        usleep(10000);
    }
}

#define REV_OF(serial)                                                                             \
    "SELECT COALESCE(SUM(rev), 0) FROM trade_lock WHERE serial_no = '" serial "' AND lane = 'R'"

/* A worker of today's release claims the trade several times. */
static void work_on(const char *query)
{
    const long long before = database_number(self.sql, "%s", query);
    tl_worker *worker = start_worker();

    await_number(before + 8, query);
    stop_worker(worker);
}

static void work_until(const char *query)
{
    tl_worker *worker = start_worker();

    await_number(1, query);
    stop_worker(worker);
}

#define IS(serial, status)                                                                         \
    "SELECT COUNT(*) FROM trade_lock WHERE serial_no = '" serial                                   \
    "' AND lane = 'S' AND status = '" status "'"

/* Bank A paid, and its answer was lost. */
static void pay_in_doubt(const char *serial)
{
    house_rule(&self, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":1}");
    pay(serial, TL_IN_DOUBT);
}

/* It was asked to do nothing, so that nothing was sent. */
static void pay_later(const char *serial)
{
    house_rule(&self, "{\"kind\":\"rate_limit\",\"endpoint\":\"pay\",\"count\":1}");
    pay(serial, TL_QUEUED);
}

/* -------------------------------------------------------------------- another name -- */

static void nobody_else_is_called(void **state)
{
    (void)state;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    work_on(REV_OF("W1"));
    house_row(&self, "W1", "P 1 1 -");
    assert_int_equal(all_requests(&other), 0);
    assert_int_equal(requests(&self.sim, "query"), 0);
    /* It used up no attempt, and is not parked. */
    assert_int_equal(database_number(self.sql, "SELECT attempts FROM trade_lock WHERE lane = 'R'"),
                     0);
    house_retry_row(&self, "W1", "F", "");
    assert_true(house_alarmed(&self, "a trade of channel \"bank-a\" waits"));
    assert_true(metric_of(now.client, "tradelock_channel_answers_total{channel=\"bank-a\","
                                      "operation=\"WITHDRAW\",call=\"nobody\","
                                      "answer=\"not_registered\"}") > 1);
    /* What is new goes to the new one meanwhile. */
    pay("W2", TL_SUCCEEDED);
    assert_int_equal(requests(&other, "pay"), 1);
    /* The release before is there again: it brings the trade to its end. */
    begin(A(WITHDRAW_PLAIN), NULL);
    work_until(IS("W1", "Y"));
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    assert_int_equal(sim_stat(&other, "payments"), 1);
}

static void a_former_channel_is_asked(void **state)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};

    (void)state;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    pay_later("W2");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    work_until(IS("W1", "Y"));
    work_until(IS("W2", "Y"));
    pay("W3", TL_SUCCEEDED);
    assert_int_equal(sim_stat(&self.sim, "payments"), 2);
    assert_int_equal(sim_stat(&other, "payments"), 1);
    house_balance(&self, "C1", "999700 0");
}

static void what_never_left_is_not_sent_to_one_that_is_only_asked(void **state)
{
    bank former[] = {A(WITHDRAW_PLAIN), {0}};

    (void)state;
    former[0].only_asked = 1;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    pay_later("W2");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    work_until(IS("W1", "Y"));
    work_until(IS("W2", "F"));
    house_row(&self, "W2", "F 1 0 L");
    assert_int_equal(requests(&self.sim, "pay"), 2);
    assert_int_equal(all_requests(&other), 0);
    house_balance(&self, "C1", "999900 0");
}

/* A decision needs no channel. */
static void evidence_ends_it(void **state)
{
    tl_evidence evidence = TL_EVIDENCE_INIT;
    char key[TL_CHANNEL_KEY_MAX + 1];

    (void)state;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    house_key(&self, "W1", key);
    evidence.key = (tl_key){"W1", "C1", WITHDRAW_OP};
    evidence.epoch = 1;
    evidence.channel_key = key;
    evidence.outcome = "SUCCEEDED";
    evidence.final = 1;
    evidence.channel_ref = "R-1";
    evidence.source = "statement";
    assert_status(tl_evidence_add(now.client, &evidence), TL_OK);
    work_until(IS("W1", "Y"));
    assert_int_equal(all_requests(&other), 0);
}

static void a_failure_is_not_tried_anew_elsewhere(void **state)
{
    tl_answer answer = TL_ANSWER_INIT;

    (void)state;
    begin(A(WITHDRAW_PLAIN), NULL);
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":1}");
    pay("W1", TL_IN_DOUBT);
    work_until(IS("W1", "F"));
    begin(B(WITHDRAW_IDEMPOTENT), NULL);
    assert_status(release_pay(&now, "W1", "C1", 100, 1, &answer), TL_FAILED);
    assert_int_equal(answer.retryable, 0);
    tl_answer_clear(&answer);
    assert_int_equal(all_requests(&other), 0);
    assert_int_equal(database_number(self.sql, "SELECT epoch FROM trade_lock WHERE lane = 'S'"), 1);
}

/* ---------------------------------------------------------------------- its pauses -- */

static void decide(const char *channel, int pauses)
{
    tl_pause pause = TL_PAUSE_INIT;
    const int64_t end_ms = now_ms() + HOUSE_PATIENCE_MS;

    pause.channel = channel;
    pause.actor = "ann";
    pause.reason = "test";
    assert_status(pauses ? tl_channel_pause(now.client, &pause)
                         : tl_channel_resume(now.client, &pause),
                  TL_OK);
    while ((tl_channel_check(now.client, channel, WITHDRAW_OP) != TL_OK) != pauses) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
}

static void a_pause_is_of_the_rows_channel(void **state)
{
    const bank former[] = {A(WITHDRAW_PLAIN), {0}};
    json_int_t queries;

    (void)state;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    begin(B(WITHDRAW_IDEMPOTENT), former);
    decide("bank-a", 1);
    queries = all_requests(&self.sim);
    work_on(REV_OF("W1"));
    house_row(&self, "W1", "P 1 1 -");
    assert_int_equal(all_requests(&self.sim), queries);
    pay("W2", TL_SUCCEEDED);
    decide("bank-a", 0);
    /* That of the other one holds up nothing of it. */
    decide("bank-b", 1);
    pay("W3", TL_OVERLOADED);
    work_until(IS("W1", "Y"));
    assert_int_equal(sim_stat(&self.sim, "payments"), 1);
    assert_int_equal(sim_stat(&other, "payments"), 1);
}

/* Bare locks: a handle that was made for another channel arms nothing. */
static void an_arming_for_another_channel_is_refused(void **state)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {"W1", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    (void)state;
    begin(A(WITHDRAW_PLAIN), NULL);
    pay_in_doubt("W1");
    options.lane = TL_LANE_RETRY;
    options.channel = "bank-b";
    options.max_hold_ms = 2000;
    await_number(1, "SELECT COUNT(*) FROM trade_lock WHERE lane = 'R' AND status = 'F'"
                    " AND next_run_at <= UTC_TIMESTAMP(6)");
    assert_status(tl_lock_new(&lock, now.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_lock_arm(lock, 2000), TL_MISMATCH);
    tl_lock_free(lock);
    house_row(&self, "W1", "P 1 1 -");
}

/* ---------------------------------------------------------------------- registration -- */

static void what_is_no_former_channel(void **state)
{
    bank twice[] = {A(WITHDRAW_PLAIN), A(WITHDRAW_PLAIN), {0}};
    const bank same[] = {B(WITHDRAW_PLAIN), {0}};
    const bank of = B(WITHDRAW_IDEMPOTENT);
    release refused;

    (void)state;
    assert_status(
        release_open(&refused, database_option_file(self.db), &of, twice, keep_alarm, NULL),
        TL_INVALID);
    assert_status(release_open(&refused, database_option_file(self.db), &of, same, keep_alarm, NULL),
                  TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "bank-b is named twice"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_else_is_called, open_banks, close_banks),
        cmocka_unit_test_setup_teardown(a_former_channel_is_asked, open_banks, close_banks),
        cmocka_unit_test_setup_teardown(what_never_left_is_not_sent_to_one_that_is_only_asked,
                                        open_banks, close_banks),
        cmocka_unit_test_setup_teardown(evidence_ends_it, open_banks, close_banks),
        cmocka_unit_test_setup_teardown(a_failure_is_not_tried_anew_elsewhere, open_banks,
                                        close_banks),
        cmocka_unit_test_setup_teardown(a_pause_is_of_the_rows_channel, open_banks, close_banks),
        cmocka_unit_test_setup_teardown(an_arming_for_another_channel_is_refused, open_banks,
                                        close_banks),
        cmocka_unit_test_setup_teardown(what_is_no_former_channel, open_banks, close_banks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
