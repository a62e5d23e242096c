/* `tradelock explain` on real trades: what the channel said in words and times, and commands that
 * do what the sentence says when a person copies them. */
#include "fields.h"
#include "operators.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static output *explain(const char *config, const char *serial, int code)
{
    output *o = RUN("explain", serial, "C1", WITHDRAW_OP, "--json", "--config", config);

    EXPECT_CODE(o, code);
    return o;
}

/* The command of the sentence that holds these words; the caller frees it. */
static char *command_of(int who, const char *serial, int code, const char *words)
{
    output *o = explain(operators.config[who], serial, code);
    json_t *document = output_json(o), *sentence;
    char *command = NULL;
    size_t i;

    json_array_foreach(json_object_get(document, "sentences"), i, sentence)
    {
        const char *text = json_string_value(json_object_get(sentence, "text"));

        if (command == NULL && strstr(text, words) != NULL)
            command = strdup(json_string_value(json_object_get(sentence, "command")));
    }
    if (command == NULL)
        fail_msg("no command for \"%s\" in %s", words, o->out);
    json_decref(document);
    output_free(o);
    return command;
}

/* Runs it as it was printed, with this operator's settings. */
static void copy(int who, const char *serial, int explained, const char *words, int code)
{
    char *command = command_of(who, serial, explained, words), environment[300];
    output *o;

    snprintf(environment, sizeof environment, "TRADELOCK_CONFIG=%s", operators.config[who]);
    o = command_shell(environment, command);
    EXPECT_CODE(o, code);
    output_free(o);
    free(command);
}

static void expect_lines(const char *config, const char *serial, int code, const char *const *lines)
{
    output *o = RUN("explain", serial, "C1", WITHDRAW_OP, "--config", config);

    EXPECT_CODE(o, code);
    for (; *lines != NULL; lines++)
        EXPECT_WORDS(o, *lines);
    output_free(o);
}
#define EXPECT_LINES(config, serial, code, ...)                                                    \
    expect_lines(config, serial, code, (const char *const[]){__VA_ARGS__, NULL})

/* Accepted, and pending for as long as anybody asks: it is parked after eight attempts. */
static void park(const char *serial)
{
    char rule[128];

    house_rule(&operators.h, "{\"kind\":\"accepted\",\"endpoint\":\"pay\",\"delay_ms\":600000}");
    snprintf(rule, sizeof rule,
             "{\"kind\":\"pending\",\"endpoint\":\"query\",\"count\":0,\"serial_no\":\"%s\"}",
             serial);
    house_rule(&operators.h, rule);
    house_expect(&operators.h, serial, "C1", 100, TL_IN_DOUBT);
    house_work(&operators.h, 1, 30000);
}

static void test_what_the_channel_said(void **state)
{
    (void)state;
    park("A1");
    EXPECT_LINES(operators.config[ANN], "A1", 6, "P, parked; minor units: 100 EUR",
                 "Why      It waits for a person since", "attempts used up",
                 "It answered \"accepted\" at", "HTTP 202 accepted",
                 "Asked, it said \"pending\" 8 times since", "asked for it at", "tried to find out",
                 "Nothing happens before a person acts", "It becomes Y once the channel says",
                 "It becomes F only with proof",
                 ("tradelock retry A1 C1 " WITHDRAW_OP " --fence "));
}

/* Lines stay within the 80 columns of a terminal, but for commands. */
static void test_eighty_columns(void **state)
{
    const char *const arguments[] = {
        "explain", "A1", "C1", WITHDRAW_OP, "--config", operators.config[ANN], NULL};
    output *o = command_run("COLUMNS=80", arguments);
    char *rest = o->out, *line;

    (void)state;
    EXPECT_CODE(o, 6);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strstr(line, "tradelock ") == NULL && strlen(line) > 80)
            fail_msg("%zu columns: %s", strlen(line), line);
    output_free(o);
}

/* Which attempt comes next, by the settings of whoever looks. */
static void test_the_number_of_the_attempt(void **state)
{
    (void)state;
    operators_make_doubtful("N1");
    EXPECT_LINES(operators.admin, "N1", 6, "attempt 1 of 8, then parked",
                 "It gave no clear answer at");
    EXPECT_LINES(operators.config[ANN], "N1", 6, "attempt 1 of 20, then parked");
    house_work(&operators.h, 1, 20000);
}

static void test_copied_commands(void **state)
{
    (void)state;
    copy(ANN, "A1", 6, "lift the parking", 0);
    house_retry_row(&operators.h, "A1", "F", "");
    house_work(&operators.h, 1, 30000);
    EXPECT_LINES(operators.config[ANN], "A1", 6, "two operators may decide that it failed; until");
    /* As if the time in which the sender could still send were over. */
    database_run(operators.h.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = "
                                  "rev + 1, step = 'test' WHERE serial_no = 'A1' AND lane = 'S'");
    copy(ANN, "A1", 6, "propose that it failed", 0);
    /* Whoever proposed it cannot confirm it, and is told who can. */
    copy(ANN, "A1", 6, "A second person", 1);
    EXPECT_LINES(operators.config[BOB], "A1", 6, "has proposed that it failed", "REASON",
                 "made it due");
    copy(BOB, "A1", 6, "Confirm what was proposed", 0);
    EXPECT_LINES(operators.config[BOB], "A1", 6, "Two operators decided that it failed",
                 "confirmed that it failed");
}

/* A customer chooses the serial number: no shell may do what it says. */
static void test_a_serial_number_for_the_shell(void **state)
{
    static const char serial[] = "'$(touch${IFS}/tmp/tl-x)`id`;\"";

    (void)state;
    operators_make_doubtful("Q1");
    database_run(operators.h.sql, "DELETE FROM trade_lock_past WHERE serial_no = 'Q1'");
    unlink("/tmp/tl-x");
    house_rule(&operators.h, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\"}");
    house_expect(&operators.h, serial, "C1", 100, TL_IN_DOUBT);
    copy(ANN, serial, 6, "Have it looked at now", 0);
    assert_int_not_equal(access("/tmp/tl-x", F_OK), 0);
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM trade_lock WHERE "
                                                      "step = 'operator' AND lane = 'S'"),
                     1);
    house_work(&operators.h, 1, 20000);
}

/* The command names the settings that were given, wherever these lie. */
static void test_settings_for_the_shell(void **state)
{
    char path[300], line[400] = "";
    const char *at;
    output *o;

    (void)state;
    operators_make_doubtful("SH1");
    snprintf(path, sizeof path, "%s it's $HOME.cnf", operators.config[ANN]);
    assert_int_equal(symlink(operators.config[ANN], path), 0);
    o = RUN("explain", "SH1", "C1", WITHDRAW_OP, "--config", path);
    EXPECT_CODE(o, 6);
    at = strstr(o->out, "tradelock retry SH1");
    assert_non_null(at);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    output_free(o);
    o = command_shell("TRADELOCK_CONFIG=/nowhere", line);
    EXPECT_CODE(o, 0);
    output_free(o);
    unlink(path);
    house_work(&operators.h, 1, 20000);
}

/* What a channel or a person says cannot paint the terminal. */
static void test_remarks_are_harmless(void **state)
{
    output *o;

    (void)state;
    operators_make_failed("R1");
    o = RUN("evidence", "add", "R1", "C1", WITHDRAW_OP, "--outcome", "SUCCEEDED", "--source",
            "web\x1b[31mhook", "--config", operators.config[ANN]);
    EXPECT_CODE(o, 1);
    output_free(o);
    EXPECT_LINES(operators.config[ANN], "R1", 0, "web\\x1b[31mhook",
                 "Evidence contradicts this row", "--as paid", "--as clear");
    copy(ANN, "R1", 0, "clear the conflict", 0);
    copy(BOB, "R1", 0, "Confirm what was proposed", 0);
    EXPECT_LINES(operators.config[ANN], "R1", 0, "It failed, with proof: the channel declined",
                 "Only if the channel paid it all the same");
}

/* Two operators may propose different things; a second person is shown both. */
static void test_two_proposals(void **state)
{
    output *o;
    unsigned long long fence;

    (void)state;
    operators_make_failed("R2");
    o = RUN("evidence", "add", "R2", "C1", WITHDRAW_OP, "--outcome", "SUCCEEDED", "--source",
            "statement", "--config", operators.config[ANN]);
    EXPECT_CODE(o, 1);
    output_free(o);
    fence = operators_fence("R2");
    operators_decide(ANN, "propose", "R2", "paid", fence);
    operators_decide(BOB, "propose", "R2", "clear", fence);
    EXPECT_LINES(operators.config[ANN], "R2", 0, "has proposed that it was paid",
                 "has proposed that it is in no conflict", "Confirm what was proposed",
                 "--as clear", "confirms what this account proposed", "--as paid");
    EXPECT_LINES(operators.config[BOB], "R2", 0, "Confirm what was proposed", "--as paid",
                 "confirms what this account proposed", "--as clear");
    copy(ANN, "R2", 0, "Confirm what was proposed", 0);
    /* The trade has moved on: the other one falls. */
    EXPECT_LINES(operators.config[BOB], "R2", 0, "It failed, with proof");
    o = RUN("inbox", "--config", operators.config[BOB]);
    EXPECT_SENTENCE(o, 0, "nothing waits");
    output_free(o);
}

/* SQL changes a status and books nothing, whatever the row says now. */
static void test_changed_by_hand(void **state)
{
    (void)state;
    operators_make_doubtful("B1");
    database_run(operators.h.sql, "UPDATE trade_lock SET status = 'Y' WHERE serial_no = 'B1' AND "
                                  "lane = 'S'");
    EXPECT_LINES(
        operators.config[ANN], "B1", 0, "changed the row of " WITHDRAW_OP " by hand, with SQL.",
        "SQL changed it, and no business row followed", "tradelock audit --statement FILE.csv");
}

/* Everybody is told who holds the row, though the server shows transactions only to those with the
 * right PROCESS. */
static void test_an_open_transaction(void **state)
{
    MYSQL *other = database_connect(operators.h.db), *elsewhere = database_connect(operators.h.db);
    char kill[64];

    (void)state;
    operators_make_doubtful("T1");
    /* An older one, which has nothing to do with this house. */
    database_run(elsewhere,
                 "CREATE DATABASE %s_elsewhere; USE %s_elsewhere; CREATE TABLE t (id INT PRIMARY "
                 "KEY) ENGINE = InnoDB; INSERT INTO t VALUES (1); START TRANSACTION; "
                 "UPDATE t SET id = 2; DO SLEEP(1.1)",
                 database_name(operators.h.db), database_name(operators.h.db));
    snprintf(kill, sizeof kill, "`KILL SOFT %lu` ends", mysql_thread_id(other));
    database_run(other, "START TRANSACTION");
    database_run(other, "UPDATE trade_lock SET fence = fence WHERE serial_no = 'T1'");
    EXPECT_LINES(operators.config[ANN], "T1", 6, "An open transaction holds the row", "for ");
    {
        output *o = explain(operators.config[ANN], "T1", 6);

        EXPECT_WORDS(o, kill);
        output_free(o);
    }
    database_run(other, "ROLLBACK");
    mysql_close(other);
    database_run(elsewhere, "ROLLBACK; DROP DATABASE %s_elsewhere", database_name(operators.h.db));
    mysql_close(elsewhere);
    house_work(&operators.h, 1, 20000);
}

static void test_who_may_not_read_history(void **state)
{
    (void)state;
    operators_make_doubtful("S1");
    EXPECT_LINES(operators.config[SERVICE], "S1", 6,
                 "The last remark is: ", "an operator's or a reader's account");
    house_work(&operators.h, 1, 20000);
}

static void test_what_ended(void **state)
{
    (void)state;
    house_expect(&operators.h, "P1", "C1", 100, TL_SUCCEEDED);
    EXPECT_LINES(operators.config[ANN], "P1", 0, "It succeeded, once and for good",
                 "Nothing happens any more", "Nothing has to be done", "The channel's reference is",
                 "asked for it at");
}

static void test_bad_input(void **state)
{
    output *o = RUN("explain", "NONE", "C1", WITHDRAW_OP, "--config", operators.config[ANN]);

    (void)state;
    EXPECT_SENTENCE(o, 1, "there is no row NONE C1");
    output_free(o);
    o = RUN("explain", "NONE", "C1", "WITHRDAW", "--config", operators.config[ANN]);
    EXPECT_SENTENCE(o, 1, "did you mean the operation " WITHDRAW_OP "?");
    output_free(o);
    o = RUN("show", "A1", "C1", "withdraw", "--config", operators.config[ANN]);
    EXPECT_SENTENCE(o, 1, "did you mean the operation " WITHDRAW_OP "?");
    output_free(o);
    o = RUN("explain", "NONE", "--config", operators.config[ANN]);
    EXPECT_SENTENCE(o, 2, "three operands");
    output_free(o);
}

static void test_fields(void **state)
{
    output *o = explain(operators.config[ANN], "P1", 0);
    json_t *document = output_json(o), *set = json_object();

    (void)state;
    fields_add(set, document);
    fields_expect(set, "explain");
    json_decref(set);
    json_decref(document);
    output_free(o);
}

/* The same sentences, before the rows. */
static void test_show_begins_with_it(void **state)
{
    output *o = RUN("show", "P1", "C1", WITHDRAW_OP, "--config", operators.config[ANN]);
    const char *why, *row;

    (void)state;
    EXPECT_CODE(o, 0);
    why = strstr(o->out, "Why      It succeeded");
    row = strstr(o->out, "status            Y");
    assert_non_null(why);
    assert_true(row > why);
    output_free(o);
}

TEST_MAIN(explain)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_channel_said),
        cmocka_unit_test(test_eighty_columns),
        cmocka_unit_test(test_the_number_of_the_attempt),
        cmocka_unit_test(test_copied_commands),
        cmocka_unit_test(test_a_serial_number_for_the_shell),
        cmocka_unit_test(test_settings_for_the_shell),
        cmocka_unit_test(test_remarks_are_harmless),
        cmocka_unit_test(test_two_proposals),
        cmocka_unit_test(test_an_open_transaction),
        cmocka_unit_test(test_who_may_not_read_history),
        cmocka_unit_test(test_what_ended),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_show_begins_with_it),
        cmocka_unit_test(test_changed_by_hand),
    };

    return server_run_tests(tests, operators_set_up, operators_tear_down);
}
