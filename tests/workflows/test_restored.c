/* A restored server: nothing fails before it is accepted, and nothing that was lost is paid again
 * after it. */
#include "house.h"

#include "support/theme.h"

#include <tradelock/admin.h>

FIXTURE(open_window)
{
    static house self;

    house_open(&self, WITHDRAW_WINDOW, NULL, NULL);
    house_account(&self, "C1", 1000);
    *state = &self;
}

FIXTURE(close_house)
{
    house_close(*state);
}

static void declare(house *self)
{
    assert_status(tl_restore_declare(self->client, "ann", "promoted"), TL_OK);
}

/* And until the client has heard of it. */
static void accept_now(house *self)
{
    database_propose(self->sql);
    assert_status(tl_restore_accept(self->client, "bob", "compared", NULL), TL_OK);
    AWAIT_WHILE(tl_restore_accepted_us(self->client) == 0);
    assert_true(tl_restore_accepted_us(self->client) > 0);
}

/* ------------------------------------------------------------------ the first lane -- */

/* The restore comes to be known between the grant and the answer. */
static tl_execute_result decline_after_a_restore(void *context, const tl_attempt *attempt,
                                                 tl_reply *reply)
{
    (void)attempt;
    declare(context);
    tl_reply_remark(reply, "closed account");
    return TL_EXECUTE_DECLINED;
}

static tl_query_result say_failed(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_QUERY_FAILED;
}

TEST_IN(a_decline_is_no_failure_yet, open_window, close_house)
{
    house *self = *state;
    tl_workflow workflow = TL_WORKFLOW_INIT;
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;

    workflow.op_code = "DECLINES";
    workflow.channel.name = "declines";
    workflow.channel.can_query = 1;
    workflow.context = self;
    workflow.execute = decline_after_a_restore;
    workflow.query = say_failed;
    workflow.policy = *tl_client_policy(self->client);
    assert_status(tl_workflow_register(self->workflows, &workflow), TL_OK);
    request.key = (tl_key){"W1", "C1", "DECLINES"};
    request.payload = "x";
    request.payload_size = 1;
    assert_status(tl_workflow_run(self->workflows, &request, &answer), TL_IN_DOUBT);
    assert_non_null(strstr(answer.view.remark, "closed account; not failed yet"));
    tl_answer_clear(&answer);
    house_row(self, "W1", "P 1 1 -");
    /* As a remark: it may have been one of two sends. */
    database_expect(self->sql, 1,
                    "SELECT COUNT(*) FROM trade_evidence WHERE outcome = 'DECLINED' AND final = 0");
    accept_now(self);
    house_row(self, "W1", "P 1 2 -");
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "F 1 2 D");
}

/* --------------------------------------------------------------------- the worker -- */

static long long attempts(house *self)
{
    return database_number(self->sql, "SELECT attempts FROM trade_lock WHERE lane = 'R'");
}

/* A worker looks a few times, and may do nothing: no attempt of the trade's is used up. */
static void work_in_vain(house *self)
{
    long long claims;

    do {
        house_work(self, 1, 300);
        house_row(self, "W1", "P 1 0 -");
        claims = database_number(self->sql, "SELECT COUNT(*) FROM trade_lock_log WHERE "
                                            "step = 'claim' AND op_code = 'WITHDRAW'");
    } while (claims < 3);
    assert_int_equal(attempts(self), 0);
}

/* The client is a new one, which looks before it does anything. */
static void queue_and_declare(house *self)
{
    house_rule(self, "{\"kind\":\"rate_limit\",\"endpoint\":\"pay\",\"count\":1}");
    house_expect(self, "W1", "C1", 100, TL_QUEUED);
    declare(self);
    house_reopen(self);
}

TEST_IN(a_refused_arming_is_no_attempt, open_window, close_house)
{
    house *self = *state;

    queue_and_declare(self);
    work_in_vain(self);
    accept_now(self);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "F 1 2 N");
}

/* As far as the row knows nothing was sent, and the deadline is over. */
TEST_IN(what_never_left_may_have, open_window, close_house)
{
    house *self = *state;

    queue_and_declare(self);
    database_run(self->sql, "UPDATE trade_lock SET deadline_at = UTC_TIMESTAMP(6), rev = "
                            "rev + 1, step = 'test' WHERE lane = 'S'");
    work_in_vain(self);
    accept_now(self);
    house_row(self, "W1", "P 1 2 -");
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "F 1 2 N");
}

/* --------------------------------------------------------------------- a lost reclaim -- */

/* As if the server had been accepted two days ago, and the trade were a day older. */
static void grow_old(house *self)
{
    const int64_t before_us = tl_restore_accepted_us(self->client);

    database_run(self->sql, "UPDATE tl_schema SET accepted_at = accepted_at - INTERVAL 2 DAY; "
                            "UPDATE trade_lock SET created_at = created_at - INTERVAL 3 DAY, "
                            "rev = rev + 1, step = 'test' WHERE lane = 'S'");
    AWAIT_WHILE(tl_restore_accepted_us(self->client) == before_us);
    assert_true(tl_restore_accepted_us(self->client) < before_us);
}

/* late: it fails here only days after the server was accepted. */
static void lost_reclaim(house *self, int late)
{
    tl_status status;
    tl_answer answer = TL_ANSWER_INIT;

    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_work(self, 1, PATIENCE_MS);
    house_row(self, "W1", "F 1 1 N");
    assert_status(house_run(self, "W1", "C1", 100, 1, &answer), TL_SUCCEEDED);
    tl_answer_clear(&answer);
    /* The backup is from before it was tried anew. */
    database_run(self->sql,
                 "UPDATE trade_lock SET status = 'F', proof = 'N', epoch = 1, sends = 1, "
                 "channel_key = first_channel_key, "
                 "retryable = 1, rev = rev + 1, step = 'test', updated_at = "
                 "UTC_TIMESTAMP(6) WHERE serial_no = 'W1' AND lane = 'S'");
    declare(self);
    accept_now(self);
    if (late)
        grow_old(self);
    do {
        status = house_run(self, "W1", "C1", 100, 1, &answer);
        tl_answer_clear(&answer);
        usleep(20000);
    } while (status == TL_ASK_CHANNEL);
    assert_status(status, TL_IN_CONFLICT);
    assert_int_equal(sim_stat(&self->sim, "payments"), 1);
}

TEST_IN(a_lost_reclaim_is_asked_about, open_window, close_house)
{
    lost_reclaim(*state, 0);
}

TEST_IN(so_it_is_where_the_failure_is_late, open_window, close_house)
{
    lost_reclaim(*state, 1);
}

/* Nothing was lost: it is tried anew, but not while a lost send may be on its way. */
TEST_IN(a_failure_that_stands_is_tried_anew, open_window, close_house)
{
    house *self = *state;
    tl_answer answer = TL_ANSWER_INIT;
    tl_status status;

    house_rule(self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(self, "W1", "C1", 100, TL_IN_DOUBT);
    house_work(self, 1, PATIENCE_MS);
    declare(self);
    accept_now(self);
    do {
        status = house_run(self, "W1", "C1", 100, 1, &answer);
        tl_answer_clear(&answer);
        usleep(20000);
    } while (status == TL_ASK_CHANNEL || status == TL_UNKNOWN);
    assert_status(status, TL_SUCCEEDED);
    database_expect(self->sql, 1,
                    "SELECT t.updated_at > s.accepted_at + INTERVAL 2200000 MICROSECOND FROM "
                    "trade_lock t, tl_schema s WHERE t.serial_no = 'W1' AND t.lane = 'S'");
    house_books(self, 1);
}

TESTS_OF(restored, NULL, NULL)
