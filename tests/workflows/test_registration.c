/* What registration refuses, and the sentence it says. */
#include "registry.h"

#include "support/theme.h"

#include <tradelock/worker.h>

static tl_execute_result execute(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_EXECUTE_UNKNOWN;
}

static tl_query_result query(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_QUERY_UNREACHABLE;
}

static tl_cancel_result cancel(void *context, const tl_attempt *attempt, tl_reply *reply)
{
    (void)context;
    (void)attempt;
    (void)reply;
    return TL_CANCEL_UNKNOWN;
}

/* A registration that is accepted; each test spoils one thing. */
static tl_workflow good(void)
{
    tl_workflow w = TL_WORKFLOW_INIT;

    w.op_code = "WITHDRAW";
    w.channel.name = "fastpay";
    w.channel.idempotent = 1;
    w.channel.window_ms = 100696;
    w.channel.can_query = 1;
    w.channel.not_found_final = 1;
    w.channel.cancel_final = 1;
    w.channel.key_chars = 32;
    w.channel.latency_ms = 500;
    w.policy.max_hold_ms = 4000;
    w.policy.execute_ms = 3000;
    w.policy.commit_ms = 1000;
    w.policy.deadline_ms = 96000;
    w.policy.grace_ms = 600;
    w.policy.schedule_ms[0] = 1000;
    w.policy.schedule_count = 1;
    w.policy.attempts = 20;
    w.policy.poison = 3;
    w.policy.clock_margin_ms = 100;
    w.execute = execute;
    w.query = query;
    w.cancel = cancel;
    return w;
}

static void refused(const tl_workflow *w, tl_status expected, const char *sentence)
{
    assert_int_equal(workflow_check(w), expected);
    if (strstr(tl_error_message(), sentence) == NULL)
        fail_msg("expected \"%s\" in \"%s\"", sentence, tl_error_message());
}

TEST(accepts_the_edges)
{
    tl_workflow w = good();

    /* Every limit of good() is met exactly. */
    assert_int_equal(workflow_check(&w), TL_OK);
    w.channel.key_chars = 20;
    assert_int_equal(workflow_check(&w), TL_OK);
    w.channel.window_ms = 0; /* for ever */
    assert_int_equal(workflow_check(&w), TL_OK);
}

TEST(refuses_a_channel_that_cannot_be_cleared_up)
{
    tl_workflow w = good();

    w.channel.idempotent = 0;
    w.channel.window_ms = 0;
    w.channel.can_query = 0;
    w.channel.not_found_final = 0;
    w.query = NULL;
    refused(&w, TL_UNSAFE, "neither be queried nor is it idempotent");
    w.channel.idempotent = 1;
    assert_int_equal(workflow_check(&w), TL_OK);
}

TEST(refuses_a_short_hold)
{
    tl_workflow w = good();

    w.policy.max_hold_ms--;
    refused(&w, TL_UNSAFE, "max_hold_ms 3999 is shorter than execute_ms and commit_ms");
}

TEST(refuses_sends_beyond_the_window)
{
    tl_workflow w = good();

    w.policy.deadline_ms++;
    refused(&w, TL_UNSAFE, "(100697) reach beyond the window of channel fastpay (100696)");
}

TEST(refuses_a_short_grace)
{
    tl_workflow w = good();

    w.policy.grace_ms--;
    refused(&w, TL_UNSAFE, "grace_ms 599 is shorter than the latency");
}

TEST(refuses_short_keys)
{
    tl_workflow w = good();

    w.channel.key_chars = 19;
    refused(&w, TL_UNSAFE, "19 digits of channel key are fewer than 80 bits");
}

TEST(refuses_contradictions)
{
    tl_workflow w = good();

    w.execute = NULL;
    refused(&w, TL_INVALID, "no execute callback");
    w = good();
    w.query = NULL;
    refused(&w, TL_INVALID, "can be queried, but has no query callback");
    w = good();
    w.channel.can_query = 0;
    refused(&w, TL_INVALID, "has a query callback, but says that channel fastpay cannot");
    w.query = NULL;
    refused(&w, TL_INVALID, "\"not found\" can only be final");
    w = good();
    w.cancel = NULL;
    refused(&w, TL_INVALID, "says that a cancel is final, but has no cancel callback");
    w = good();
    w.channel.idempotent = 0;
    refused(&w, TL_INVALID, "gives channel fastpay a window, but not the idempotence");
}

static tl_status prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                         struct st_mysql *connection)
{
    (void)context;
    (void)attempt;
    (void)reply;
    (void)connection;
    return TL_OK;
}

static tl_status book_prepare(void *context, const tl_attempt *attempt, tl_reply *reply,
                              tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    (void)book;
    return TL_OK;
}

static tl_status book_success(void *context, const tl_attempt *attempt, const tl_reply *reply,
                              tl_book *book)
{
    (void)context;
    (void)attempt;
    (void)reply;
    (void)book;
    return TL_OK;
}

/* Business rows are declared or written with a connection, moment by moment. */
TEST(refuses_two_forms_at_once)
{
    static const tl_statement statement = {.name = "s", .sql = "DELETE FROM t"};
    tl_workflow w = good();

    w.statements = &statement;
    w.statement_count = 1;
    refused(&w, TL_INVALID, "declares statements, but has no callback that writes lines");
    w.sql_prepare = prepare;
    w.book_success = book_success;
    assert_int_equal(workflow_check(&w), TL_OK);
    w.book_prepare = book_prepare;
    refused(&w, TL_INVALID, "has both book_prepare and sql_prepare; choose one of them");
    w.sql_prepare = NULL;
    assert_int_equal(workflow_check(&w), TL_OK);
    w.statement_count = 0;
    refused(&w, TL_INVALID, "has book_prepare, but declares no statements");
    w.statement_count = 1;
    w.statements = NULL;
    refused(&w, TL_INVALID, "has book_prepare, but declares no statements");
}

TEST(refuses_bad_names)
{
    tl_workflow w = good();

    w.op_code = "WITHDRAW_RETRY";
    refused(&w, TL_INVALID, "ends in _RETRY");
    w.op_code = "_RETRY";
    refused(&w, TL_INVALID, "ends in _RETRY");
    w.op_code = "A123456789012345678901234567"; /* 28, and _RETRY is 34 */
    refused(&w, TL_INVALID, "too long to take _RETRY: 26 characters at most");
    w.op_code = "WITH DRAW";
    refused(&w, TL_INVALID, "the operation code has byte 0x20 at place 5");
    w = good();
    w.channel.name = "fast\xc3\xa9";
    refused(&w, TL_INVALID, "the channel name has byte 0xc3 at place 5");
}

TEST(refuses_times_out_of_range)
{
    tl_workflow w = good();

    w.policy.execute_ms = -1;
    refused(&w, TL_INVALID, "execute_ms is -1; it must be from 1");
    w = good();
    w.policy.max_hold_ms = TL_HOLD_MAX_MS + 1;
    refused(&w, TL_INVALID, "max_hold_ms is");
    w = good();
    w.policy.schedule_ms[0] = 0;
    refused(&w, TL_INVALID, "a schedule entry is 0");
    w = good();
    w.policy.schedule_count = TL_SCHEDULE_MAX + 1;
    refused(&w, TL_INVALID, "the number of schedule entries is 17");
    w = good();
    w.channel.key_chars = 65;
    refused(&w, TL_INVALID, "key_chars is 65");
    w = good();
    w.channel.window_ms = -5;
    refused(&w, TL_INVALID, "window_ms is -5");
}

TEST(completes_the_policy)
{
    tl_policy defaults = good().policy, given = {0}, policy;

    policy = policy_complete(&given, &defaults);
    assert_memory_equal(&policy, &defaults, sizeof policy);
    given.execute_ms = 7;
    given.schedule_count = 2;
    given.schedule_ms[0] = 11;
    given.schedule_ms[1] = 12;
    policy = policy_complete(&given, &defaults);
    assert_int_equal(policy.execute_ms, 7);
    assert_int_equal(policy.schedule_count, 2);
    assert_int_equal(policy.schedule_ms[1], 12);
    assert_int_equal(policy.commit_ms, defaults.commit_ms);
}

TEST(refuses_bad_calls)
{
    tl_workflow w = good();
    tl_workflows *workflows;

    assert_int_equal(tl_workflows_new(&workflows, NULL), TL_INVALID);
    assert_int_equal(tl_workflow_register(NULL, &w), TL_INVALID);
    tl_workflows_free(NULL);
    tl_answer_clear(NULL);
    tl_worker_free(NULL);
}

TESTS_OF(registration, NULL, NULL)
