/* Who may decide what, what the database refuses whoever asks, and what is said of it. */
#include "operators.h"
#include "fields.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_who_may_still_send_comes_first(void **state)
{
    (void)state;
    operators_make_doubtful("S1");
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                                  "send_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR "
                                  "WHERE serial_no = 'S1' AND lane = 'S'");
    operators_refused(ANN, "propose", "S1", "failed", operators_fence("S1"), "may still send");
    operators_refused(ANN, "propose", "S1", "paid", operators_fence("S1"), "is in process");
    operators_refused(ANN, "propose", "NONE", "failed", 1, "there is no trade NONE");
    database_run(operators.h.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'test', "
                                  "send_until = UTC_TIMESTAMP(6) "
                                  "WHERE serial_no = 'S1' AND lane = 'S'");
    /* Evidence of success is stronger than two operators. */
    operators_decide_together("S1", "failed");
    database_run(operators.h.sql, "UPDATE trade_lock SET next_run_at = next_run_at + INTERVAL 1 "
                                  "SECOND, rev = rev + 1, step = 'test' "
                                  "WHERE serial_no = 'S1' AND lane = 'R'");
    output_free(RUN("evidence", "add", "S1", "C1", WITHDRAW_OP, "--outcome", "SUCCEEDED", "--ref",
                    "BANK-80", "--source", "statement", "--config", operators.config[BOB]));
    house_work(&operators.h, 1, 20000);
    house_row(&operators.h, "S1", "Y 1 1 -");
}

/* What the command would refuse the database refuses too. */
static void test_sql_is_refused_too(void **state)
{
#define HALF(column, part, value)                                                                  \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "              \
    "fence, epoch, reason, actor, thread_no" column                                                \
    ") SELECT cust_no, serial_no, op_code, rev, 'F', " part                                        \
    ", fence, epoch, 'r', 'a', UUID()" value " FROM trade_lock WHERE serial_no = 'Q1' "            \
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
    operators_make_doubtful("Q1");
    assert_non_null(mysql_real_connect(ann, NULL, operators.user[ANN], "secret",
                                       database_name(operators.h.db), 0,
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
#define WRITTEN(part, account)                                                                     \
    "INSERT INTO trade_resolution (cust_no, serial_no, op_code, rev, verdict, part, "              \
    "fence, epoch, reason, actor, thread_no, account) SELECT cust_no, serial_no, "                 \
    "op_code, 1, 'F', " part ", fence, epoch, 'r', 'a', UUID(), '" account                         \
    "' FROM trade_lock WHERE serial_no = 'L1' AND lane = 'S'"
    static const char *const steps[] = {
        WRITTEN("2", "x@a"),
        WRITTEN("1", "x@b"),
        "UPDATE trade_resolution SET account = 'y@a', rev = 2 WHERE serial_no = 'L1' "
        "AND part = 1",
        "UPDATE trade_resolution SET rev = 1 WHERE serial_no = 'L1'; " WRITTEN("3", "svc@a"),
        "DELETE FROM trade_resolution WHERE serial_no = 'L1' AND part = 3; "
        "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6) + "
        "INTERVAL 1 HOUR, " BY_HAND,
    };
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = TL_ENDING_INIT;
    tl_key key = {"L1", "C1", WITHDRAW_OP};
    tl_lock *lock = NULL;

    (void)state;
    operators_make_doubtful("L1");
    database_run(operators.h.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6), "
                                  "rev = rev + 1, step = 'test' WHERE serial_no = 'L1' AND "
                                  "lane = 'R'");
    options.lane = TL_LANE_RETRY;
    options.max_hold_ms = 60000;
    assert_status(tl_lock_new(&lock, operators.h.client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_OPERATORS;
    assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
    /* Halves that no trigger looked at, as an administrator can write them: each time one thing is
     * missing that a confirmation by the command brings. */
    database_run(operators.h.sql, "DROP TRIGGER trade_resolution_inserted; "
                                  "DROP TRIGGER trade_resolution_confirmed");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        database_run(operators.h.sql, "%s", steps[i]);
        assert_status(tl_lock_finish(lock, &ending), TL_INVALID);
        house_row(&operators.h, "L1", "P 1 1 -");
    }
    operators_grant();
    database_run(operators.h.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), " BY_HAND);
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
    house_row(&operators.h, "L1", "F 1 1 O");
    tl_lock_free(lock);
}

static void expect_doctor(int code, const char *words)
{
    output *o = RUN("doctor", "--config", operators.config[SERVICE]);

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
    database_run(operators.h.sql, "REVOKE SELECT ON trade_resolution FROM {database}_application");
    expect_doctor(5, "may not read trade_resolution");
    operators_grant();
    database_run(operators.h.sql, "REVOKE EXECUTE ON FUNCTION tl_account_name FROM "
                                  "{database}_application");
    expect_doctor(5, "or call tl_account_name");
    operators_grant();
    database_run(operators.h.sql, "REVOKE UPDATE (amount_minor) ON trade_lock FROM "
                                  "{database}_application");
    expect_doctor(5, "may not write what a request says of itself");
    operators_grant();
    expect_doctor(0, "a probe was recorded");
    database_run(operators.h.sql, "DROP TRIGGER trade_resolution_inserted");
    expect_doctor(5, "missing: trigger trade_resolution_inserted");
    /* With a function the rights on it go, and a service is not told which it was. */
    database_run(operators.h.sql, "DROP FUNCTION tl_parts");
    expect_doctor(0, "may not look whether triggers");
    operators_grant();
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
    operators_make_failed("J1");
    operators_say_paid("J1", "J");
    snprintf(fence, sizeof fence, "%llu", operators_fence("J1"));
    expect_listed("resolve",
                  RUN("resolve", "propose", "J1", "C1", WITHDRAW_OP, "--as", "clear", "--fence",
                      fence, "--reason", "r", "--json", "--config", operators.config[ANN]));
    expect_listed("resolve ls", RUN("resolve", "ls", "J1", "C1", WITHDRAW_OP, "--json", "--config",
                                    operators.config[ANN]));
}

TEST_MAIN(resolve_rules)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_still_send_comes_first),
        cmocka_unit_test(test_sql_is_refused_too),
        cmocka_unit_test(test_the_proof_is_looked_for),
        cmocka_unit_test(test_the_doctor_misses_what_a_worker_needs),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_fields_are_listed),
    };

    return server_run_tests(tests, operators_set_up, operators_tear_down);
}
