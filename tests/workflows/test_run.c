/* Every answer of a run, with a real server, a real channel and real business rows. */
#include "house.h"

#include "support/theme.h"

#include <pthread.h>

FIXTURE(open_idempotent)
{
    static house self;

    house_open(&self, WITHDRAW_IDEMPOTENT, HOUSE_PATIENT_SETTINGS, NULL);
    house_account(&self, "C1", 1000);
    *state = &self;
}

/* A send that takes two seconds is given up. */
FIXTURE(open_hasty)
{
    static house self;

    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    house_account(&self, "C1", 1000);
    *state = &self;
}

FIXTURE(open_window)
{
    static house self;

    house_open(&self, WITHDRAW_WINDOW, NULL, NULL);
    house_account(&self, "C1", 1000);
    *state = &self;
}

FIXTURE(open_plain)
{
    static house self;

    house_open(&self, WITHDRAW_PLAIN, NULL, NULL);
    house_account(&self, "C1", 1000);
    *state = &self;
}

FIXTURE(close_house)
{
    house_close(*state);
}

static void pays_once_and_answers_from_the_row(void **state)
{
    house *self = *state;
    tl_answer first = TL_ANSWER_INIT, second = TL_ANSWER_INIT;
    char expected[192];

    assert_status(house_run(self, "W1", "C1", 100, 0, &first), TL_SUCCEEDED);
    assert_true(first.own);
    assert_int_equal(first.view.epoch, 1);
    assert_int_equal(strlen(first.view.channel_key), 40);
    assert_true(strlen(first.view.channel_ref) > 0);
    snprintf(expected, sizeof expected, "{\"channel_ref\":\"%s\"}", first.view.channel_ref);
    assert_int_equal(first.view.result_size, strlen(expected));
    assert_memory_equal(first.view.result, expected, first.view.result_size);

    assert_status(house_run(self, "W1", "C1", 100, 0, &second), TL_ALREADY_DONE);
    assert_false(second.own);
    assert_string_equal(second.view.channel_ref, first.view.channel_ref);
    assert_int_equal(second.view.result_size, first.view.result_size);
    assert_memory_equal(second.view.result, expected, second.view.result_size);
    house_row(self, "W1", "Y 1 1 -");
    house_balance(self, "C1", "900 0");
    house_books(self, 1);
    tl_answer_clear(&first);
    tl_answer_clear(&second);
}

/* What was paid under the key is nobody's business who asks for something else. */
static void a_mismatch_learns_nothing(void **state)
{
    house *self = *state;
    tl_answer answer = TL_ANSWER_INIT;

    house_expect(self, "W1", "C1", 100, TL_SUCCEEDED);
    assert_status(house_run(self, "W1", "C1", 101, 0, &answer), TL_MISMATCH);
    assert_null(answer.view.result);
    assert_string_equal(answer.view.channel_ref, "");
    assert_string_equal(answer.view.remark, "");
    tl_answer_clear(&answer);
    house_books(self, 1);
}

static void a_refusal_leaves_no_row(void **state)
{
    house *self = *state;
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(house_run(self, "W1", "C1", 1001, 0, &answer), TL_REFUSED);
    assert_non_null(strstr(answer.view.remark, "too little money"));
    assert_false(answer.own);
    tl_answer_clear(&answer);
    house_row(self, "W1", "none");
    house_balance(self, "C1", "1000 0");
    /* The same serial may be used when the money is there. */
    database_run(self->sql, "UPDATE account SET balance_minor = 2000");
    house_expect(self, "W1", "C1", 1001, TL_SUCCEEDED);
    house_books(self, 1);
}

static void a_decline_is_a_proven_failure(void **state)
{
    house *self = *state;
    tl_answer answer = TL_ANSWER_INIT;

    house_rule(self, "{\"kind\":\"decline\",\"code\":\"51\",\"reason\":\"closed\"}");
    assert_status(house_run(self, "W1", "C1", 100, 0, &answer), TL_FAILED);
    assert_true(answer.own);
    assert_int_equal(answer.view.proof, TL_PROOF_DECLINED);
    assert_false(answer.view.retryable);
    assert_string_equal(answer.view.remark, "51: closed");
    tl_answer_clear(&answer);
    house_row(self, "W1", "F 1 1 D");
    house_balance(self, "C1", "1000 0");

    assert_status(house_run(self, "W1", "C1", 100, 0, &answer), TL_FAILED);
    assert_false(answer.own);
    assert_int_equal(answer.view.proof, TL_PROOF_DECLINED);
    tl_answer_clear(&answer);
    /* A decline for good is not tried anew. */
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_FAILED);
    tl_answer_clear(&answer);
    house_books(self, 0);
}

static void a_lost_answer_is_in_doubt_until_the_worker_asks(void **state)
{
    house *self = *state;
    tl_worker_counts counts;
    tl_answer answer = TL_ANSWER_INIT;

    house_rule(self, "{\"kind\":\"drop_after\"}");
    assert_status(house_run(self, "W1", "C1", 100, 0, &answer), TL_IN_DOUBT);
    assert_true(answer.own);
    assert_true(answer.next_look_ms > 0);
    tl_answer_clear(&answer);
    house_balance(self, "C1", "1000 100");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    counts = house_work(self, 2, PATIENCE_MS);
    assert_int_equal(counts.succeeded, 1);
    assert_int_equal(counts.sends, 0);
    house_row(self, "W1", "Y 1 1 -");
    house_retry_row(self, "W1", "Y", "");
    house_balance(self, "C1", "900 0");
    house_expect(self, "W1", "C1", 100, TL_ALREADY_DONE);
    house_books(self, 1);
}

static void what_never_left_is_queued_and_sent_later(void **state)
{
    house *self = *state;
    const char *const arguments[] = {"--kind", "idempotent", NULL};
    char url[64];
    tl_worker_counts counts;

    snprintf(url, sizeof url, "%s", self->url);
    sim_stop(&self->sim, 0);
    house_expect(self, "W1", "C1", 100, TL_QUEUED);
    house_row(self, "W1", "P 1 0 -");
    house_expect(self, "W1", "C1", 100, TL_QUEUED);
    sim_start(&self->sim, arguments);
    snprintf(self->url, sizeof self->url, "http://127.0.0.1:%u", self->sim.port);
    house_reopen(self);
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.sends, 1);
    assert_int_equal(counts.queries, 0);
    house_row(self, "W1", "Y 1 1 -");
    house_books(self, 1);
}

static void a_rate_limit_is_queued(void **state)
{
    house *self = *state;

    house_rule(self, "{\"kind\":\"rate_limit\",\"endpoint\":\"pay\",\"count\":2}");
    house_expect(self, "W1", "C1", 100, TL_QUEUED);
    house_row(self, "W1", "P 1 0 -");
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "Y 1 1 -");
    house_books(self, 1);
}

static void what_is_accepted_is_paid_later(void **state)
{
    house *self = *state;
    tl_worker_counts counts;

    house_rule(self, "{\"kind\":\"accepted\",\"delay_ms\":300}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.succeeded, 1);
    assert_int_equal(counts.sends, 0);
    assert_true(counts.queries >= 1); /* two, when the first one comes in time */
    house_row(self, "W1", "Y 1 1 -");
    house_books(self, 1);
}

/* Idempotent: a payment that never arrived is sent again under the same key, in the attempt that
 * did not find it. */
static void the_same_key_is_sent_again(void **state)
{
    house *self = *state;
    char before[TL_CHANNEL_KEY_MAX + 1], after[TL_CHANNEL_KEY_MAX + 1];
    tl_worker_counts counts;

    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_key(self, "W1", before);
    counts = house_work(self, 1, PATIENCE_MS);
    house_key(self, "W1", after);
    assert_string_equal(before, after);
    assert_true(counts.queries >= 1); /* one, when the channel answers in time */
    assert_int_equal(counts.sends, 1);
    house_row(self, "W1", "Y 1 2 -");
    house_books(self, 1);
}

/* A second send that the channel did not look at delays nothing, and every attempt asks first. */
static void a_rate_limited_repetition_is_sent_again(void **state)
{
    house *self = *state;
    tl_worker_counts counts;

    database_set(self->db, HOUSE_PATIENT_SETTINGS);
    house_reopen(self);
    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_rule(self, "{\"kind\":\"rate_limit\",\"endpoint\":\"pay\",\"count\":2}");
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.claimed, 3);
    assert_int_equal(counts.queries, 3);
    assert_int_equal(counts.sends, 3);
    house_row(self, "W1", "Y 1 2 -");
    house_books(self, 1);
}

/* How often the channel decided that a send was paid, or had been. */
static json_int_t succeeded(house *self)
{
    struct answer stats = sim_ask(&self->sim, NULL, "/v1/stats", NULL, 10000);
    json_t *outcomes = json_object_get(stats.json, "outcomes");
    json_int_t count = json_integer_value(json_object_get(outcomes, "succeeded"));

    answer_free(&stats);
    return count;
}

/* ... and one that is still on its way is the same payment, whichever arrives first. */
static void the_same_key_twice_at_once_pays_once(void **state)
{
    house *self = *state;

    house_rule(self, "{\"kind\":\"slow\",\"endpoint\":\"pay\",\"delay_ms\":2000}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "Y 1 2 -");
    AWAIT_WHILE(succeeded(self) < 2);
    assert_int_equal(succeeded(self), 2);
    house_books(self, 1);
}

/* ------------------------------------------------------------ what an attempt is told -- */

#define QUERY_MS 300

static struct {
    int64_t queried_ms, executed_ms; /* what was left until the deadline */
} told;

static tl_execute_result tell_execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    told.executed_ms = attempt->deadline_ms;
    if (attempt->number == 0)
        return TL_EXECUTE_UNKNOWN;
    assert_true(attempt->timeout_ms > 0);
    assert_true(tl_attempt_left_ms(attempt) <= attempt->timeout_ms);
    return TL_EXECUTE_SUCCEEDED;
}

static tl_query_result tell_query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)reply;
    told.queried_ms = attempt->deadline_ms;
    usleep(QUERY_MS * 1000);
    return TL_QUERY_NOT_FOUND;
}

/* What a query takes is not left to the send after it. */
static void the_deadline_comes_nearer_within_an_attempt(void **state)
{
    house *self = *state;
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    workflow.op_code = "PAYOUT";
    workflow.channel.name = "c";
    workflow.channel.idempotent = 1;
    workflow.channel.can_query = 1;
    workflow.execute = tell_execute;
    workflow.query = tell_query;
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    request.key = (tl_key){"W1", "C1", "PAYOUT"};
    request.payload = "x";
    request.payload_size = 1;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_IN_DOUBT);
    tl_answer_clear(&answer);
    assert_true(told.executed_ms <= 30000 && told.executed_ms > 0);
    house_work(self, 1, PATIENCE_MS);
    database_expect(
        self->sql, 1,
        "SELECT COUNT(*) FROM trade_lock WHERE op_code = 'PAYOUT' AND status = 'Y' AND sends = 2");
    assert_true(told.queried_ms <= 30000);
    assert_true(told.executed_ms <= told.queried_ms - QUERY_MS + 1);
}

/* A decline of the second send must be confirmed where answers are not replayed; this channel
 * replays them, so it counts. */
static void a_replayed_decline_counts(void **state)
{
    house *self = *state;

    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_rule(self, "{\"kind\":\"decline\"}");
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "F 1 2 D");
    house_balance(self, "C1", "1000 0");
    house_books(self, 0);
}

/* Plain: what cannot be found is cancelled for good, and may be tried anew. */
static void a_cancelled_payment_is_tried_anew(void **state)
{
    house *self = *state;
    tl_answer answer = TL_ANSWER_INIT;
    char first[TL_CHANNEL_KEY_MAX + 1];
    tl_worker_counts counts;

    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_key(self, "W1", first);
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.sends, 0);
    assert_int_equal(counts.cancels, 1);
    house_row(self, "W1", "F 1 1 C");
    house_balance(self, "C1", "1000 0");

    /* Without being told to, nothing is tried anew; with a wrong epoch neither. */
    assert_status(house_run(self, "W1", "C1", 100, 0, &answer), TL_FAILED);
    assert_true(answer.view.retryable);
    assert_int_equal(answer.view.epoch, 1);
    tl_answer_clear(&answer);
    assert_status(house_run(self, "W1", "C1", 100, 2, &answer), TL_FAILED);
    tl_answer_clear(&answer);
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_SUCCEEDED);
    assert_int_equal(answer.view.epoch, 2);
    assert_string_not_equal(answer.view.channel_key, first);
    tl_answer_clear(&answer);
    house_row(self, "W1", "Y 2 1 -");
    house_balance(self, "C1", "900 0");
    house_books(self, 1);
}

/* Brings W1 to a failure that rests on "there is no such payment". */
static void fail_by_absence(house *self, char key[TL_CHANNEL_KEY_MAX + 1])
{
    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_key(self, "W1", key);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "F 1 1 N");
}

/* The channel, against its word, pays the old key after all. */
static void pay_old_key(house *self, const char *key)
{
    char body[512];

    snprintf(body, sizeof body,
             "{\"channel_key\":\"%s\",\"serial_no\":\"W1\",\"cust_no\":\"C1\","
             "\"op_code\":\"WITHDRAW\",\"amount_minor\":100,\"currency\":\"EUR\","
             "\"payee\":\"Anna\"}",
             key);
    sim_expect(&self->sim, NULL, "/v1/pay", body, 200, "outcome", "succeeded");
}

static void an_absence_that_holds_is_tried_anew(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];
    tl_answer answer = TL_ANSWER_INIT;

    fail_by_absence(self, key);
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    house_books(self, 1);
}

static void an_old_key_that_was_paid_is_a_conflict(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];
    tl_answer answer = TL_ANSWER_INIT;

    fail_by_absence(self, key);
    pay_old_key(self, key);
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_IN_CONFLICT);
    assert_false(answer.own);
    tl_answer_clear(&answer);
    house_row(self, "W1", "F 1 1 N");
    database_expect(self->sql, 1,
                    "SELECT conflict FROM trade_lock WHERE serial_no = 'W1' AND lane = 'S'");
    assert_true(house_alarmed(self, "was closed as unpaid, but the channel says"));
    /* It stays so, asked in any way. */
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_IN_CONFLICT);
    tl_answer_clear(&answer);
    house_expect(self, "W1", "C1", 100, TL_IN_CONFLICT);
    assert_int_equal(sim_stat(&self->sim, "payments"), 1);
}

static void an_old_key_that_is_pending_is_a_conflict(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];
    tl_answer answer = TL_ANSWER_INIT;

    fail_by_absence(self, key);
    pay_old_key(self, key);
    house_rule(self, "{\"kind\":\"pending\"}");
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_IN_CONFLICT);
    tl_answer_clear(&answer);
    house_expect(self, "W1", "C1", 100, TL_IN_CONFLICT);
    assert_int_equal(sim_stat(&self->sim, "payments"), 1);
}

static void an_old_key_that_nobody_can_say_of_is_not_tried_anew(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];
    tl_answer answer = TL_ANSWER_INIT;

    fail_by_absence(self, key);
    house_rule(self, "{\"kind\":\"unreachable\"}");
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_UNKNOWN);
    assert_status(tl_workflow_settle(self->workflows, &answer), TL_WRONG_STATE);
    tl_answer_clear(&answer);
    house_row(self, "W1", "F 1 1 N");
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    house_books(self, 1);
}

struct late_run {
    house *self;
    tl_answer answer;
    tl_status status;
};

static void *try_anew(void *context)
{
    struct late_run *run = context;

    run->status = house_run(run->self, "W1", "C1", 100, 1, &run->answer);
    return NULL;
}

static uint64_t asks_of(house *self)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(self->client, &stats), TL_OK);
    return stats.asks;
}

/* W1 is tried anew while another transaction changes it: the run looks at the row as it was, and
 * asks for it as it has become.  Nobody asked the channel about that one. */
static void expect_not_anew(house *self, const char *change, const char *key)
{
    struct late_run run = {.self = self, .answer = TL_ANSWER_INIT};
    uint64_t asks = asks_of(self);
    pthread_t thread;

    self->wait_ms = 120000;
    database_run(self->sql, "START TRANSACTION");
    database_run(self->sql,
                 "UPDATE trade_lock SET %s, fence = fence + 1, rev = rev + 1, "
                 "step = 'test' WHERE serial_no = 'W1' AND lane = 'S'",
                 change);
    assert_int_equal(pthread_create(&thread, NULL, try_anew, &run), 0);
    while (asks_of(self) == asks)
        usleep(1000);
    pay_old_key(self, key);
    database_run(self->sql, "COMMIT");
    assert_int_equal(pthread_join(thread, NULL), 0);
    self->wait_ms = 0;
    assert_status(run.status, TL_FAILED);
    assert_true(run.answer.view.retryable);
    assert_false(run.answer.own);
    tl_answer_clear(&run.answer);
    assert_int_equal(sim_stat(&self->sim, "payments"), 1);

    /* Told to do so again, it asks. */
    assert_status(house_run(self, "W1", "C1", 100, 1, &run.answer), TL_IN_CONFLICT);
    tl_answer_clear(&run.answer);
    house_row(self, "W1", "F 1 1 N");
    assert_int_equal(sim_stat(&self->sim, "payments"), 1);
}

static void a_conflict_that_is_cleared_meanwhile_is_asked_about(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];

    fail_by_absence(self, key);
    database_run(self->sql, "UPDATE trade_lock SET conflict = 1, rev = rev + 1, "
                            "step = 'test' WHERE serial_no = 'W1' AND lane = 'S'");
    expect_not_anew(self, "conflict = 0", key);
}

static void a_failure_decided_meanwhile_is_asked_about(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];

    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_key(self, "W1", key);
    expect_not_anew(self, "status = 'F', proof = 'N', retryable = 1", key);
}

/* The channel was asked, and operators have decided since. */
static void a_failure_that_moved_on_is_asked_about_again(void **state)
{
    house *self = *state;
    char key[TL_CHANNEL_KEY_MAX + 1];

    fail_by_absence(self, key);
    expect_not_anew(self, "conflict = 0", key);
}

/* The channel paid, but its queries lag: "not found" is not believed too early. */
static void a_lagging_query_is_not_believed(void **state)
{
    house *self = *state;

    house_rule(self, "{\"kind\":\"drop_after\"}");
    house_rule(self, "{\"kind\":\"not_found_first\",\"count\":0,\"for_ms\":1500}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_work(self, 1, PATIENCE_MS);
    assert_true(sim_faults(&self->sim, "not_found_first") > 0);
    house_row(self, "W1", "Y 1 1 -");
    house_books(self, 1);
}

static void one_withdrawal_of_a_customer_at_a_time(void **state)
{
    house *self = *state;

    self->exclusive = 1;
    house_reopen(self);
    house_account(self, "C2", 1000);
    house_rule(self, "{\"kind\":\"drop_after\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_expect(self, "W2", "C1", 100, TL_CUSTOMER_BUSY);
    house_row(self, "W2", "none");
    house_expect(self, "W3", "C2", 100, TL_SUCCEEDED);
    house_work(self, 1, PATIENCE_MS);
    house_expect(self, "W2", "C1", 100, TL_SUCCEEDED);
    house_books(self, 3);
}

static void a_failing_prepare_writes_nothing(void **state)
{
    house *self = *state;

    database_run(self->sql, "RENAME TABLE withdraw_order TO hidden");
    house_expect(self, "W1", "C1", 100, TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "insert order"));
    house_row(self, "W1", "none");
    house_balance(self, "C1", "1000 0");
    assert_int_equal(sim_stat(&self->sim, "payments"), 0);
}

/* The outcome is true although the books do not take it: filed, and booked later. */
static void a_failing_apply_is_booked_by_evidence(void **state)
{
    house *self = *state;
    tl_worker_counts counts;

    database_run(self->sql, "RENAME TABLE ledger TO hidden");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    assert_true(house_alarmed(self, "the books refused the outcome SUCCEEDED"));
    database_expect(self->sql, 1,
                    "SELECT COUNT(*) FROM trade_evidence WHERE outcome = 'SUCCEEDED'");
    house_row(self, "W1", "P 1 1 -");
    house_balance(self, "C1", "1000 100");
    database_run(self->sql, "RENAME TABLE hidden TO ledger");
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.queries + counts.sends, 0);
    house_row(self, "W1", "Y 1 1 -");
    house_books(self, 1);
}

static void an_apply_that_keeps_failing_is_parked(void **state)
{
    house *self = *state;
    tl_worker_counts counts;

    database_run(self->sql, "RENAME TABLE ledger TO hidden");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    counts = house_work(self, 1, PATIENCE_MS);
    assert_int_equal(counts.claimed, 8);
    assert_int_equal(counts.parked, 1);
    house_retry_row(self, "W1", "F", "apply failed");
    house_expect(self, "W1", "C1", 100, TL_PARKED);
    database_run(self->sql, "RENAME TABLE hidden TO ledger");
}

static void bad_requests_are_named(void **state)
{
    house *self = *state;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    assert_status(tl_workflow_run(self->workflows, NULL, &answer), TL_INVALID);
    request.key = (tl_key){"W1", "C1", "DEPOSIT"};
    request.payload = "x";
    request.payload_size = 1;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_UNKNOWN_OPERATION);
    assert_string_equal(tl_error_message(), "operation DEPOSIT is not registered");
    request.key.op_code = WITHDRAW_OP;
    request.key.serial_no = "W 1";
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_INVALID);
    request.key.serial_no = "W1";
    request.payload_size = TL_PAYLOAD_MAX + 1;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_INVALID);
    request.payload = NULL;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_INVALID);
    request.version = 0;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_INVALID);
    assert_status(tl_workflow_settle(self->workflows, &answer), TL_WRONG_STATE);
    tl_answer_clear(&answer);
    house_row(self, "W1", "none");
}

/* ------------------------------------------------------------------ many who wait -- */

#define WAITERS 12

struct waiting {
    pthread_t thread;
    house *house;
    const char *payload;
    tl_status status;
    char holder[96];
};

static void *wait_for_trade(void *context)
{
    struct waiting *self = context;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    request.key = (tl_key){"W1", "C1", WITHDRAW_OP};
    request.payload = self->payload;
    request.payload_size = strlen(self->payload);
    request.wait_ms = 2000;
    self->status = tl_workflow_run(self->house->workflows, &request, &answer);
    snprintf(self->holder, sizeof self->holder, "%s", answer.view.holder);
    tl_answer_clear(&answer);
    return NULL;
}

/* Of those who wait for one key one asks the server, and each is told at the end who was in the
 * way.  A slow machine asks less often, never more. */
static void one_asks_for_all_who_wait(void **state)
{
    house *self = *state;
    withdraw_order order = {.amount_minor = 100, .currency = "EUR", .payee = "Anna"};
    char *payload = withdraw_order_write(&order);
    tl_stats before = {.version = TL_STATS_VERSION}, after = before;
    tl_client_options with = TL_CLIENT_OPTIONS_INIT;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_key key = {"W1", "C1", WITHDRAW_OP};
    struct waiting waiting[WAITERS];
    tl_client *other = NULL;
    tl_lock *lock = NULL;

    with.config_file = database_option_file(self->db);
    with.program = "holder";
    options.max_hold_ms = 60000;
    options.payload = payload;
    options.payload_size = strlen(payload);
    assert_status(tl_client_open(&other, &with), TL_OK);
    assert_status(tl_lock_new(&lock, other, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    assert_status(tl_client_stats(self->client, &before), TL_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiting[i] = (struct waiting){.house = self, .payload = payload};
        assert_int_equal(pthread_create(&waiting[i].thread, NULL, wait_for_trade, &waiting[i]), 0);
    }
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(waiting[i].thread, NULL);
        assert_status(waiting[i].status, TL_BUSY);
        assert_int_equal(strncmp(waiting[i].holder, "holder", 6), 0);
    }
    assert_status(tl_client_stats(self->client, &after), TL_OK);
    print_message("%d waited for 2 s: %llu statements\n", WAITERS,
                  (unsigned long long)(after.statements - before.statements));
    assert_true(after.statements - before.statements < 1000);
    tl_lock_free(lock);
    tl_client_close(other);
    free(payload);
}

#define IDEMPOTENT(test) cmocka_unit_test_setup_teardown(test, open_idempotent, close_house)
#define HASTY(test) cmocka_unit_test_setup_teardown(test, open_hasty, close_house)
#define WINDOW(test) cmocka_unit_test_setup_teardown(test, open_window, close_house)
#define PLAIN(test) cmocka_unit_test_setup_teardown(test, open_plain, close_house)

/* An argument: only the tests whose names fit it, as TEST or *PART*. */
TEST_MAIN(run)
{
    const struct CMUnitTest tests[] = {
        IDEMPOTENT(pays_once_and_answers_from_the_row),
        IDEMPOTENT(a_mismatch_learns_nothing),
        IDEMPOTENT(a_refusal_leaves_no_row),
        IDEMPOTENT(a_decline_is_a_proven_failure),
        IDEMPOTENT(a_lost_answer_is_in_doubt_until_the_worker_asks),
        PLAIN(a_lost_answer_is_in_doubt_until_the_worker_asks),
        IDEMPOTENT(what_never_left_is_queued_and_sent_later),
        IDEMPOTENT(a_rate_limit_is_queued),
        PLAIN(a_rate_limit_is_queued),
        IDEMPOTENT(what_is_accepted_is_paid_later),
        IDEMPOTENT(the_same_key_is_sent_again),
        IDEMPOTENT(a_rate_limited_repetition_is_sent_again),
        HASTY(the_same_key_twice_at_once_pays_once),
        HASTY(the_deadline_comes_nearer_within_an_attempt),
        IDEMPOTENT(a_replayed_decline_counts),
        PLAIN(a_cancelled_payment_is_tried_anew),
        WINDOW(an_absence_that_holds_is_tried_anew),
        WINDOW(an_old_key_that_was_paid_is_a_conflict),
        WINDOW(an_old_key_that_is_pending_is_a_conflict),
        WINDOW(an_old_key_that_nobody_can_say_of_is_not_tried_anew),
        WINDOW(a_conflict_that_is_cleared_meanwhile_is_asked_about),
        WINDOW(a_failure_decided_meanwhile_is_asked_about),
        WINDOW(a_failure_that_moved_on_is_asked_about_again),
        WINDOW(a_lagging_query_is_not_believed),
        IDEMPOTENT(one_withdrawal_of_a_customer_at_a_time),
        IDEMPOTENT(a_failing_prepare_writes_nothing),
        IDEMPOTENT(a_failing_apply_is_booked_by_evidence),
        IDEMPOTENT(an_apply_that_keeps_failing_is_parked),
        IDEMPOTENT(one_asks_for_all_who_wait),
        IDEMPOTENT(bad_requests_are_named),
    };

    return server_report(cmocka_run_group_tests(tests, NULL, NULL));
}
