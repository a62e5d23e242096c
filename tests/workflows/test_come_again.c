/* A channel that says when it wants to be asked again: the first send's and a query's answer, up to
 * the trade's deadline. */
#include "house.h"

#include "support/theme.h"

#include <stdatomic.h>

static house self;
static tl_workflows *workflows;
static atomic_int sends, queries;
static int64_t first_ms, again_ms; /* when the channel heard of it */
static int64_t wants_ms;           /* for how long it wants to hear nothing */

FIXTURE(open_house)
{
    house_open_bare(&self, NULL, NULL);
    assert_status(tl_workflows_new(&workflows, self.client), TL_OK);
    atomic_store(&sends, 0);
    atomic_store(&queries, 0);
}

FIXTURE(close_house)
{
    tl_workflows_free(workflows);
    house_close(&self);
}

static tl_execute_result limiting(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    if (atomic_fetch_add(&sends, 1) == 0) {
        first_ms = now_ms();
        assert_status(tl_reply_retry_after(reply, wants_ms), TL_OK);
        return TL_EXECUTE_RETRY_LATER;
    }
    again_ms = now_ms();
    return TL_EXECUTE_SUCCEEDED;
}

static tl_execute_result losing(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_UNKNOWN;
}

static tl_query_result pending(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    if (atomic_fetch_add(&queries, 1) == 0) {
        first_ms = now_ms();
        assert_status(tl_reply_retry_after(reply, wants_ms), TL_OK);
        return TL_QUERY_PENDING;
    }
    again_ms = now_ms();
    return TL_QUERY_SUCCEEDED;
}

static void register_one(tl_execute_fn execute, tl_query_fn query, int64_t deadline_ms)
{
    tl_workflow w = TL_WORKFLOW_INIT;

    w.op_code = "PAYOUT";
    w.channel.name = "limited";
    w.channel.idempotent = query == NULL;
    w.channel.can_query = query != NULL;
    w.execute = execute;
    w.query = query;
    w.policy.deadline_ms = deadline_ms;
    assert_status(tl_workflow_register(workflows, &w), TL_OK);
}

/* Gives for how long the trade waits then, as the caller is told it. */
static int64_t run_one(tl_status expected)
{
    tl_request request = TL_REQUEST_INIT;
    tl_answer answer = TL_ANSWER_INIT;
    int64_t next_ms;

    request.key = (tl_key){"W1", "C1", "PAYOUT"};
    request.payload = "x";
    request.payload_size = 1;
    assert_status(tl_workflow_run(workflows, &request, &answer), expected);
    next_ms = answer.next_look_ms;
    tl_answer_clear(&answer);
    return next_ms;
}

static void await_end(void)
{
    tl_worker_options options = TL_WORKER_OPTIONS_INIT;
    tl_worker *worker = NULL;

    options.idle_max_ms = 20;
    assert_status(tl_worker_start(&worker, workflows, &options), TL_OK);
    AWAIT_WHILE(
        database_number(self.sql,
                        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND status <> 'P'") == 0);
    tl_worker_free(worker);
}

TEST_IN(the_next_send_waits, open_house, close_house)
{
    wants_ms = 1500; /* the schedule says 50 */
    register_one(limiting, NULL, 30000);
    assert_in_range(run_one(TL_QUEUED), 1500, 1500 + 1500 / 4);
    await_end();
    assert_int_equal(atomic_load(&sends), 2);
    assert_true(again_ms - first_ms >= 1500);
}

TEST_IN(the_next_query_waits, open_house, close_house)
{
    wants_ms = 1500;
    register_one(losing, pending, 30000);
    assert_in_range(run_one(TL_IN_DOUBT), 50, 63);
    await_end();
    assert_int_equal(atomic_load(&queries), 2);
    assert_true(again_ms - first_ms >= 1500);
}

/* What it wants is no later than the deadline. */
TEST_IN(nobody_waits_beyond_the_deadline, open_house, close_house)
{
    wants_ms = TL_RETRY_AFTER_MAX_MS;
    register_one(limiting, NULL, 4000);
    assert_in_range(run_one(TL_QUEUED), 1, 5000);
    await_end();
    assert_int_equal(atomic_load(&sends), 1);
    database_expect(
        self.sql, 1,
        "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND op_code = 'PAYOUT' AND status = 'F'");
}

TESTS_OF(come_again, NULL, NULL)
