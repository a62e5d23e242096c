/* `tradelock channel` with two operators' accounts, a service's, and a real channel; and what the
 * other commands say of a channel that is paused. */
#include "fields.h"
#include "operators.h"

#include <tradelock/layer.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define CHANNEL "idempotent"
#define AS(who, ...) RUN("channel", __VA_ARGS__, "--config", operators.config[who])

static void expect(output *o, int code, const char *words)
{
    EXPECT_SENTENCE(o, code, words);
    output_free(o);
}

static void expect_words_of(output *o, int code, const char *words)
{
    EXPECT_CODE(o, code);
    EXPECT_WORDS(o, words);
    output_free(o);
}

/* Everything that a decision writes. */
static long long written(void)
{
    return database_number(operators.h.sql,
                           "SELECT (SELECT COUNT(*) * 1000 + SUM(paused) * 100 + COUNT(decided_at) "
                           "FROM trade_channel) * 1000 + COUNT(*) FROM tl_act");
}

static void test_bad_input(void **state)
{
    const long long before = written();

    (void)state;
    expect(RUN("channel"), 2, "channel is followed by pause, resume, limit or ls");
    expect(AS(ANN, "stop", CHANNEL), 2,
           "channel is followed by pause, resume, limit or ls, not stop");
    expect(AS(ANN, "pause"), 2, "takes one operand, the channel, not 0");
    expect(AS(ANN, "pause", CHANNEL, "WITHDRAW", "--reason", "r"), 2, "not 2");
    expect(AS(ANN, "pause", CHANNEL), 2, "--reason is missing");
    expect(AS(ANN, "resume", CHANNEL, "--reason", ""), 2, "--reason is missing");
    expect(AS(ANN, "pause", CHANNEL, "--op", "", "--reason", "r"), 2, "--op is empty");
    expect(AS(ANN, "ls", CHANNEL), 2, "takes neither an operand");
    expect(AS(ANN, "pause", "idempotnet", "--reason", "r"), 1,
           "no workflow has registered channel idempotnet");
    expect(AS(ANN, "pause", CHANNEL, "--op", "WITHDRAWAL", "--reason", "r"), 1,
           "no workflow has registered channel " CHANNEL " for WITHDRAWAL");
    expect(AS(ANN, "pause", "a\tb", "--reason", "r"), 2, "printable");
    expect(AS(ANN, "resume", CHANNEL, "--reason", "r"), 1, "channel " CHANNEL " is not paused");
    expect(AS(SERVICE, "pause", CHANNEL, "--reason", "r"), 1, "lacks a right");
    assert_int_equal(written(), before);
}

/* Everything that a limit writes. */
static long long limited(void)
{
    return database_number(operators.h.sql,
                           "SELECT (SELECT COALESCE(SUM(COALESCE(sends, 0) * 1000 + "
                           "COALESCE(per_second, 0)), 0) * 100 + COUNT(*) FROM "
                           "trade_channel_limit) * 1000 + COUNT(*) FROM tl_act");
}

static void test_bad_limits(void **state)
{
    const long long before = limited();

    (void)state;
#define LIMIT(...) AS(ANN, "limit", CHANNEL, __VA_ARGS__)
    expect(LIMIT("--reason", "r"), 2, "needs --sends, --per-second or --none");
    expect(LIMIT("--sends", "0", "--reason", "r"), 2, "--sends 0 is no number from 1 to 1000000");
    expect(LIMIT("--sends", "-3", "--reason", "r"), 2, "--sends -3 is no number");
    expect(LIMIT("--sends", "1000001", "--reason", "r"), 2, "is no number from 1 to 1000000");
    expect(LIMIT("--sends", "18446744073709551617", "--reason", "r"), 2, "is no number");
    expect(LIMIT("--sends", "", "--reason", "r"), 2, "is no number");
    expect(LIMIT("--sends", "3x", "--reason", "r"), 2, "--sends 3x is no number");
    expect(LIMIT("--per-second", "0", "--reason", "r"), 2, "--per-second 0 is no number");
    expect(LIMIT("--per-second", "0.5", "--reason", "r"), 2, "--per-second 0.5 is no number");
    expect(LIMIT("--per-second", "100001", "--reason", "r"), 2, "is no number from 1 to 100000");
    expect(LIMIT("--none", "--sends", "3", "--reason", "r"), 2, "--none goes with neither");
    expect(LIMIT("--sends", "3"), 2, "--reason is missing");
    expect(AS(ANN, "limit", "--sends", "3", "--reason", "r"), 2, "takes one operand");
    expect(AS(ANN, "pause", CHANNEL, "--sends", "3", "--reason", "r"), 2,
           "channel pause takes no limit");
    expect(AS(ANN, "limit", "idempotnet", "--sends", "3", "--reason", "r"), 1,
           "no workflow has registered channel idempotnet");
    expect(LIMIT("--op", "WITHDRAWAL", "--sends", "3", "--reason", "r"), 1,
           "no workflow has registered channel " CHANNEL " for WITHDRAWAL");
    expect(LIMIT("--none", "--reason", "r"), 1, "is limited so already, or not at all");
    expect(AS(SERVICE, "limit", CHANNEL, "--sends", "3", "--reason", "r"), 1, "lacks a right");
    assert_int_equal(limited(), before);
}

static void test_limit_and_lift(void **state)
{
    json_t *set = json_object(), *document;
    output *o;

    (void)state;
    expect_words_of(LIMIT("--sends", "4", "--per-second", "10", "--reason", "the contract"), 0,
                    "Channel " CHANNEL " sends 4 at a time, 10 a second");
    expect_words_of(AS(BOB, "ls"), 0, "4 at a time, 10 a second");
    expect_words_of(AS(BOB, "ls", "--json"), 0, "\"sends\": 4");
    expect_words_of(AS(BOB, "ls", "--json"), 0, "the contract");
    expect(LIMIT("--sends", "4", "--per-second", "10", "--reason", "again"), 1,
           "is limited so already");
    o = LIMIT("--sends", "5", "--reason", "more", "--json");
    EXPECT_CODE(o, 0);
    document = output_json(o);
    fields_add(set, document);
    json_decref(document);
    output_free(o);
    fields_expect(set, "channel limit");
    json_decref(set);
    expect_words_of(LIMIT("--per-second", "100000", "--reason", "a new one"), 0,
                    "sends 100000 a second");
    expect_words_of(LIMIT("--op", WITHDRAW_OP, "--sends", "1000000", "--reason", "of its own"), 0,
                    "sends 1000000 at a time for " WITHDRAW_OP);
    expect_words_of(LIMIT("--op", WITHDRAW_OP, "--none", "--reason", "over"), 0,
                    "as much as there is");
    expect_words_of(AS(BOB, "limit", CHANNEL, "--none", "--reason", "over"), 0,
                    "as much as there is");
    expect_words_of(RUN("acts", "--config", operators.config[BOB]), 0, "unlimit");
    assert_int_equal(database_number(operators.h.sql, "SELECT COUNT(*) FROM trade_channel_limit "
                                                      "WHERE sends IS NULL AND per_second IS NULL "
                                                      "AND account LIKE '%%@%%'"),
                     2);
}

static void test_pause_and_resume(void **state)
{
    long long before;
    output *o;

    (void)state;
    expect_words_of(AS(BOB, "ls"), 0, "open");
    expect_words_of(AS(ANN, "pause", CHANNEL, "--op", WITHDRAW_OP, "--reason", "maintenance"), 0,
                    "Channel " CHANNEL " pauses for WITHDRAW");
    before = written();
    expect(AS(BOB, "pause", CHANNEL, "--op", WITHDRAW_OP, "--reason", "again"), 1,
           "is paused already, by ");
    assert_int_equal(written(), before);
    expect_words_of(AS(BOB, "ls"), 0, "maintenance");
    expect_words_of(AS(BOB, "resume", CHANNEL, "--op", WITHDRAW_OP, "--reason", "it is over"), 0,
                    "Channel " CHANNEL " goes on for WITHDRAW");
    before = written();
    expect(AS(ANN, "resume", CHANNEL, "--op", WITHDRAW_OP, "--reason", "again"), 1,
           "is not paused");
    assert_int_equal(written(), before);
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM tl_act WHERE (what, reason) IN "
                                     "(('pause', 'maintenance'), ('resume', 'it is over'))"),
                     2);
    o = AS(ANN, "ls", "--json");
    EXPECT_CODE(o, 0);
    output_free(o);
}

static void test_fields(void **state)
{
    json_t *set = json_object(), *document;
    output *o = AS(ANN, "ls", "--json");

    (void)state;
    document = output_json(o);
    fields_add(set, document);
    json_decref(document);
    output_free(o);
    fields_expect(set, "channel ls");
    json_decref(set);
    set = json_object();
    o = AS(ANN, "pause", CHANNEL, "--reason", "all of it", "--json");
    EXPECT_CODE(o, 0);
    document = output_json(o);
    fields_add(set, document);
    json_decref(document);
    output_free(o);
    fields_expect(set, "channel");
    json_decref(set);
    expect(AS(BOB, "resume", CHANNEL, "--op", WITHDRAW_OP, "--reason", "r"), 1,
           "is paused as a whole, and goes on as a whole");
}

/* It is paused since the last test. */
static void test_what_others_say(void **state)
{
    output *o = RUN("status", "--config", operators.config[ANN]);

    (void)state;
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "Channels through which nothing new is sent");
    EXPECT_WORDS(o, "all of it");
    output_free(o);
    database_run(operators.h.sql,
                 "UPDATE trade_channel SET decided_at = decided_at - INTERVAL 2 HOUR "
                 "WHERE op_code = ''");
    expect_words_of(RUN("status", "--config", operators.config[ANN]), 6, "all of it");
    o = RUN("exporter", "--once", "--config", operators.config[ANN]);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "tradelock_channel_paused_seconds{channel=\"" CHANNEL "\",operation=\"\"} 7");
    EXPECT_WORDS(o, "tradelock_channel_paused_seconds{channel=\"" CHANNEL
                    "\",operation=\"WITHDRAW\"} 7");
    output_free(o);
    expect_words_of(AS(ANN, "resume", CHANNEL, "--reason", "over"), 0, "goes on");
    while (tl_channel_check(operators.h.client, CHANNEL, WITHDRAW_OP) != TL_OK)
        usleep(10000);
    operators_make_doubtful("D1");
    expect_words_of(AS(ANN, "pause", CHANNEL, "--reason", "they pay twice"), 0, "pauses");
    o = RUN("explain", "D1", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "Operators have paused channel " CHANNEL);
    EXPECT_WORDS(o, "they pay twice");
    output_free(o);
    expect_words_of(AS(ANN, "resume", CHANNEL, "--reason", "over"), 0, "goes on");
    o = RUN("exporter", "--once", "--config", operators.config[ANN]);
    assert_null(strstr(o->out, "tradelock_channel_paused_seconds{"));
    output_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input),      cmocka_unit_test(test_bad_limits),
        cmocka_unit_test(test_limit_and_lift), cmocka_unit_test(test_pause_and_resume),
        cmocka_unit_test(test_fields),         cmocka_unit_test(test_what_others_say),
    };

    return server_report(cmocka_run_group_tests(tests, operators_set_up, operators_tear_down));
}
