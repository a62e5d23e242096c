/* `tradelock status`, `ps` and `inbox` on real trades, a real channel and two accounts. */
#include "fields.h"
#include "operators.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define STATUS(who) RUN("status", "--config", operators.config[who])

static output *json_of(const char *command, int who, int code)
{
    output *o = RUN(command, "--json", "--config", operators.config[who]);

    EXPECT_CODE(o, code);
    return o;
}

/* How many trades, and how much money, of this state. */
static void expect_waiting(const char *state, json_int_t count, json_int_t minor)
{
    output *o = RUN("status", "--json", "--config", operators.config[ANN]);
    json_t *document = output_json(o), *one;
    json_int_t found = 0, money = 0;
    size_t i;

    json_array_foreach(json_object_get(document, "waiting"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "state")), state) != 0)
            continue;
        found += json_integer_value(json_object_get(one, "count"));
        money += json_integer_value(json_object_get(one, "amount_minor"));
        assert_string_equal(json_string_value(json_object_get(one, "currency")), "EUR");
        assert_string_equal(json_string_value(json_object_get(one, "op_code")), WITHDRAW_OP);
    }
    json_decref(document);
    output_free(o);
    assert_int_equal(found, count);
    assert_int_equal(money, minor);
}

static void test_nothing_waits(void **state)
{
    output *o = STATUS(ANN);

    (void)state;
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "nothing waits");
    EXPECT_WORDS(o, "fit for money; clock never set; no restore open");
    EXPECT_WORDS(o, "Process  1 alive, 0 silent");
    output_free(o);
    o = RUN("inbox", "--config", operators.config[ANN]);
    EXPECT_SENTENCE(o, 0, "nothing waits for a second person");
    output_free(o);
}

/* What a worker ends by itself is no alarm; what waits for a person is. */
static void test_what_waits(void **state)
{
    output *o;

    (void)state;
    operators_make_doubtful("D1");
    expect_waiting("in_doubt", 1, 100);
    o = STATUS(ANN);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "in doubt  EUR            1               100     1     0");
    output_free(o);
    /* But not for ever. */
    database_run(operators.h.sql, "UPDATE trade_lock SET created_at = created_at - INTERVAL 16 "
                                  "MINUTE WHERE serial_no = 'D1'");
    o = STATUS(ANN);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "oldest 16 min");
    output_free(o);
    database_run(operators.h.sql, "UPDATE trade_lock SET created_at = created_at + INTERVAL 16 "
                                  "MINUTE WHERE serial_no = 'D1'");
    house_rule(&operators.h, "{\"kind\":\"accepted\",\"endpoint\":\"pay\",\"delay_ms\":600000}");
    house_rule(&operators.h, "{\"kind\":\"pending\",\"endpoint\":\"query\",\"count\":0,"
                             "\"serial_no\":\"P1\"}");
    house_expect(&operators.h, "P1", "C1", 150, TL_IN_DOUBT);
    house_work(&operators.h, 1, 30000);
    expect_waiting("parked", 1, 150);
    o = STATUS(ANN);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "parked    EUR            1               150");
    EXPECT_WORDS(o, "100 %");
    output_free(o);
}

/* Since when a channel gives no answer, by what the last attempts were told. */
static void test_a_channel_that_is_down(void **state)
{
    output *o;

    (void)state;
    house_rule(&operators.h, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&operators.h, "{\"kind\":\"drop_before\",\"endpoint\":\"query\",\"count\":0,"
                             "\"serial_no\":\"N1\"}");
    house_expect(&operators.h, "N1", "C1", 50, TL_IN_DOUBT);
    house_work(&operators.h, 1, 30000);
    o = json_of("status", ANN, 6);
    {
        json_t *document = output_json(o);
        json_t *one = json_array_get(json_object_get(document, "channels"), 0);

        assert_int_equal(json_integer_value(json_object_get(one, "unanswered")), 1);
        assert_int_equal(json_integer_value(json_object_get(one, "answered")), 1);
        assert_true(json_is_string(json_object_get(one, "down_since")));
        json_decref(document);
    }
    output_free(o);
    o = STATUS(ANN);
    EXPECT_WORDS(o, "DOWN SINCE");
    EXPECT_WORDS(o, "50 %");
    output_free(o);
}

/* How many trades had no answer last, and whether their channel is down. */
static json_int_t unanswered(int *down)
{
    output *o = json_of("status", ANN, 6);
    json_t *document = output_json(o);
    const json_t *one = json_array_get(json_object_get(document, "channels"), 0);
    const json_int_t count = json_integer_value(json_object_get(one, "unanswered"));

    *down = json_is_string(json_object_get(one, "down_since"));
    json_decref(document);
    output_free(o);
    return count;
}

/* A channel that takes no connection is down as well, though nothing was sent or asked. */
static void test_a_channel_without_a_connection(void **state)
{
    json_int_t before;
    int down;

    (void)state;
    before = unanswered(&down);
    sim_stop(&operators.h.sim, 0);
    house_expect(&operators.h, "U1", "C1", 50, TL_QUEUED);
    assert_int_equal(unanswered(&down), before + 1);
    assert_true(down);
}

static void test_inbox(void **state)
{
    unsigned long long fence;
    json_t *document, *one;
    output *o;

    (void)state;
    database_run(operators.h.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = "
                                  "rev + 1, step = 'test' WHERE serial_no = 'P1' AND lane = 'S'");
    fence = operators_fence("P1");
    operators_decide(ANN, "propose", "P1", "failed", fence);
    o = STATUS(BOB);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "1 proposal for a second person");
    output_free(o);
    o = RUN("inbox", "--config", operators.config[ANN]);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "no, a second person");
    output_free(o);
    o = json_of("inbox", BOB, 0);
    document = output_json(o);
    one = json_array_get(json_object_get(document, "proposals"), 0);
    assert_false(json_is_true(json_object_get(one, "own")));
    assert_int_equal(json_integer_value(json_object_get(one, "fence")), (json_int_t)fence);
    assert_string_equal(json_string_value(json_object_get(one, "said")), "failed");
    json_decref(document);
    output_free(o);
    /* A trade that has moved on voids the proposal. */
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test' WHERE "
                                  "serial_no = 'P1' AND lane = 'S'");
    o = RUN("inbox", "--config", operators.config[BOB]);
    EXPECT_SENTENCE(o, 0, "nothing waits");
    output_free(o);
}

static void test_ps(void **state)
{
    output *o = RUN("ps", "--config", operators.config[BOB]);
    char pid[24];

    (void)state;
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "alive");
    snprintf(pid, sizeof pid, " %ld ", (long)getpid());
    EXPECT_WORDS(o, pid);
    output_free(o);
    database_run(
        operators.h.sql,
        "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
        "timeout_ms, started_at, alive_until) VALUES (UUID(), 'lost', 'far', 7, UUID(), "
        "3600000, UTC_TIMESTAMP(6) - INTERVAL 3 HOUR, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)");
    o = RUN("ps", "--config", operators.config[BOB]);
    EXPECT_WORDS(o, "lost");
    EXPECT_WORDS(o, "silent");
    output_free(o);
    database_run(operators.h.sql, "DELETE FROM tl_session WHERE program = 'lost'");
}

/* A restore, or a server that is not fit, is worse than all that waits. */
static void test_a_restore(void **state)
{
    output *o = RUN("restore", "declare", "--reason", "test", "--config", operators.config[ANN]);

    (void)state;
    EXPECT_CODE(o, 0);
    output_free(o);
    o = RUN("restore", "accept", "--reason", "test", "--config", operators.config[ANN]);
    output_free(o);
    o = STATUS(BOB);
    EXPECT_CODE(o, 5);
    EXPECT_WORDS(o, "a RESTORE is open");
    output_free(o);
    o = RUN("inbox", "--config", operators.config[BOB]);
    EXPECT_WORDS(o, "restore");
    output_free(o);
}

static void test_eighty_columns(void **state)
{
    const char *const arguments[] = {"status", "--config", operators.config[ANN], NULL};
    output *o = command_run("COLUMNS=80", arguments);
    char *rest = o->out, *line;

    (void)state;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strlen(line) > 80)
            fail_msg("%zu columns: %s", strlen(line), line);
    output_free(o);
}

/* In place until nobody reads it any more; then it ends without a word. */
static void test_watch(void **state)
{
    char environment[300];
    output *o;

    (void)state;
    snprintf(environment, sizeof environment, "TRADELOCK_CONFIG=%s", operators.config[ANN]);
    o = command_shell(environment, "tradelock status --watch --every 100ms | head -40");
    EXPECT_CODE(o, 0);
    assert_string_equal(o->err, "");
    assert_non_null(strstr(strstr(o->out, "tradelock at") + 1, "tradelock at"));
    output_free(o);
    o = command_shell(environment,
                      "trap '' PIPE; tradelock status --watch --every 100ms | head -40");
    EXPECT_CODE(o, 0);
    assert_string_equal(o->err, "");
    output_free(o);
}

static void test_bad_input(void **state)
{
    output *o = RUN("status", "--every", "now", "--config", operators.config[ANN]);

    (void)state;
    EXPECT_SENTENCE(o, 2, "--every is a duration");
    output_free(o);
    o = RUN("ps", "all", "--config", operators.config[ANN]);
    EXPECT_SENTENCE(o, 2, "no operand: all");
    output_free(o);
    o = RUN("inbox", "all", "--config", operators.config[ANN]);
    EXPECT_SENTENCE(o, 2, "no operand: all");
    output_free(o);
}

static void expect_fields(const char *command)
{
    output *o = RUN(command, "--json", "--config", operators.config[BOB]);
    json_t *document = output_json(o), *set = json_object();

    fields_add(set, document);
    fields_expect(set, command);
    json_decref(set);
    json_decref(document);
    output_free(o);
}

static void test_fields(void **state)
{
    output *o = RUN("channel", "pause", "idempotent", "--reason", "test", "--config",
                    operators.config[ANN]);

    (void)state;
    EXPECT_CODE(o, 0);
    output_free(o);
    expect_fields("status");
    expect_fields("ps");
    expect_fields("inbox");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_waits),
        cmocka_unit_test(test_what_waits),
        cmocka_unit_test(test_a_channel_that_is_down),
        cmocka_unit_test(test_inbox),
        cmocka_unit_test(test_ps),
        cmocka_unit_test(test_eighty_columns),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_a_channel_without_a_connection),
        cmocka_unit_test(test_a_restore),
        cmocka_unit_test(test_fields),
    };

    return server_run_tests(tests, operators_set_up, operators_tear_down);
}
