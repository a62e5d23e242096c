/* `tradelock channel` with two operators' accounts, a service's, and a real channel; and what the
 * other commands say of a channel that is paused. */
#include "fields.h"
#include "operators.h"
#include "support/theme.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
    expect(RUN("channel"), 2, "channel is followed by pause, resume, limit, breaker or ls");
    expect(AS(ANN, "stop", CHANNEL), 2,
           "channel is followed by pause, resume, limit, breaker or ls, not stop");
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

/* Everything that a breaker writes. */
static long long broken(void)
{
    return database_number(operators.h.sql,
                           "SELECT (SELECT COALESCE(SUM(COALESCE(unknowns, 0) * 1000 + era), 0) * "
                           "100 + COUNT(*) FROM trade_channel_breaker) * 1000 + COUNT(*) FROM "
                           "tl_act");
}

#define BREAKER(...) AS(ANN, "breaker", CHANNEL, __VA_ARGS__)

static void test_bad_breakers(void **state)
{
    const long long before = broken();

    (void)state;
    expect(BREAKER("--reason", "r"), 2, "needs --unknowns or --none");
    expect(BREAKER("--unknowns", "0", "--reason", "r"), 2,
           "--unknowns 0 is no number from 1 to 1000000");
    expect(BREAKER("--unknowns", "-3", "--reason", "r"), 2, "--unknowns -3 is no number");
    expect(BREAKER("--unknowns", "1000001", "--reason", "r"), 2, "is no number from 1 to 1000000");
    expect(BREAKER("--unknowns", "5x", "--reason", "r"), 2, "--unknowns 5x is no number");
    expect(BREAKER("--unknowns", "5", "--share", "101", "--window", "60", "--reason", "r"), 2,
           "--share 101 is no number from 1 to 100");
    expect(BREAKER("--unknowns", "5", "--share", "0", "--window", "60", "--reason", "r"), 2,
           "--share 0 is no number from 1 to 100");
    expect(BREAKER("--unknowns", "5", "--share", "50", "--reason", "r"), 2,
           "--share and --window go together");
    expect(BREAKER("--unknowns", "5", "--window", "60", "--reason", "r"), 2,
           "--share and --window go together");
    expect(BREAKER("--unknowns", "5", "--share", "50", "--window", "86401", "--reason", "r"), 2,
           "--window 86401 is no number of seconds from 1 to 86400");
    expect(BREAKER("--unknowns", "5", "--probe-every", "0", "--reason", "r"), 2,
           "--probe-every 0 is no number of seconds from 1 to 86400");
    expect(BREAKER("--none", "--unknowns", "5", "--reason", "r"), 2, "--none goes with no number");
    expect(BREAKER("--unknowns", "5", "--sends", "3", "--reason", "r"), 2,
           "channel breaker takes no limit");
    expect(BREAKER("--unknowns", "5"), 2, "--reason is missing");
    expect(AS(ANN, "breaker", "--unknowns", "5", "--reason", "r"), 2, "takes one operand");
    expect(AS(ANN, "pause", CHANNEL, "--unknowns", "5", "--reason", "r"), 2,
           "channel pause takes no breaker");
    expect(AS(ANN, "breaker", "idempotnet", "--unknowns", "5", "--reason", "r"), 1,
           "no workflow has registered channel idempotnet");
    expect(BREAKER("--op", "WITHDRAWAL", "--unknowns", "5", "--reason", "r"), 1,
           "no workflow has registered channel " CHANNEL " for WITHDRAWAL");
    expect(BREAKER("--none", "--reason", "r"), 1, "has such a breaker already, or none at all");
    expect(AS(SERVICE, "breaker", CHANNEL, "--unknowns", "5", "--reason", "r"), 1, "lacks a right");
    assert_int_equal(broken(), before);
}

static void test_breaker_and_none(void **state)
{
    json_t *set = json_object(), *document;
    output *o;

    (void)state;
    expect_words_of(BREAKER("--unknowns", "5", "--reason", "falls silent"), 0,
                    "Channel " CHANNEL " has this breaker");
    expect_words_of(AS(BOB, "ls"), 0, "closed: 5 unknown in a row");
    expect_words_of(AS(BOB, "ls", "--json"), 0, "falls silent");
    expect_words_of(AS(BOB, "ls", "--json"), 0, "\"probe_s\": 10");
    expect(BREAKER("--unknowns", "5", "--reason", "again"), 1, "has such a breaker already");
    o = BREAKER("--unknowns", "7", "--share", "50", "--window", "60", "--probe-every", "3",
                "--reason", "more", "--json");
    EXPECT_CODE(o, 0);
    document = output_json(o);
    fields_add(set, document);
    json_decref(document);
    output_free(o);
    fields_expect(set, "channel breaker");
    json_decref(set);
    expect_words_of(AS(BOB, "ls"), 0, "7 unknown in a row, or 50 % in 60 s");
    database_run(operators.h.sql,
                 "UPDATE trade_channel_breaker SET opened_at = UTC_TIMESTAMP(6), opened = 3");
    expect_words_of(AS(BOB, "ls"), 0, "open since ");
    o = RUN("exporter", "--once", "--config", operators.config[BOB]);
    EXPECT_WORDS(o, "tradelock_channel_breaker_openings_total{channel=\"" CHANNEL
                    "\",operation=\"" WITHDRAW_OP "\"} 3");
    output_free(o);
    expect_words_of(BREAKER("--none", "--reason", "over"), 0, "has no breaker");
    expect_words_of(RUN("acts", "--config", operators.config[BOB]), 0, "unbreak");
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM trade_channel_breaker WHERE unknowns IS "
                                     "NULL AND opened_at IS NULL AND account LIKE '%%@%%'"),
                     1);
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

/* A program that is older than these decisions obeys none of them, and is named. */
static void test_who_does_not_obey(void **state)
{
    static const char *const words = "does not obey: its program is older";

    (void)state;
    database_run(operators.h.sql, "INSERT INTO tl_session (session_id, program, host, pid,"
                                  " connection_name, timeout_ms, started_at, alive_until)"
                                  " VALUES (UUID(), 'old', 'h', 17, UUID(), 86400000,"
                                  " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1 DAY)");
    expect_words_of(AS(ANN, "pause", CHANNEL, "--reason", "away"), 0, "old 17@h does not obey");
    expect_words_of(AS(ANN, "resume", CHANNEL, "--reason", "back", "--json"), 0, "\"old 17@h\"");
    expect_words_of(LIMIT("--sends", "3", "--reason", "few"), 0, words);
    expect_words_of(LIMIT("--none", "--reason", "over"), 0, words);
    expect_words_of(AS(ANN, "breaker", CHANNEL, "--unknowns", "5", "--reason", "fails"), 0, words);
    expect_words_of(RUN("ps", "--config", operators.config[ANN]), 0, "nothing");
    expect_words_of(RUN("ps", "--config", operators.config[ANN]), 0, "pause limit breaker");
    database_run(operators.h.sql, "UPDATE tl_session SET obeys = 'pause limit breaker'"
                                  " WHERE program = 'old'");
    expect_words_of(AS(ANN, "breaker", CHANNEL, "--none", "--reason", "over"), 0,
                    "each process.\n");
    database_run(operators.h.sql, "DELETE FROM tl_session WHERE program = 'old'");
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

/* -------------------------------------------------------------- what a limit holds up -- */

static tl_status ask_one(tl_lock **lock, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {serial, "C2", WITHDRAW_OP};

    options.max_hold_ms = 3600000;
    options.channel = CHANNEL;
    assert_int_equal(tl_lock_new(lock, operators.h.client, &key, &options), TL_OK);
    return tl_lock_ask(*lock, 0);
}

static void end_one(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_int_equal(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static long long permits(void)
{
    return database_number(operators.h.sql,
                           "SELECT COALESCE(SUM(permits), 0) FROM trade_channel_permit");
}

/* A send that is under way and has the only permit; the first ones are sent before the limit is
 * heard of. */
static tl_lock *take_only_permit(void)
{
    static unsigned number;
    tl_lock *lock = NULL;

    for (;;) {
        char serial[32];

        snprintf(serial, sizeof serial, "HOLD%u", number++);
        assert_int_equal(ask_one(&lock, serial), TL_GRANTED);
        if (permits() == 1)
            return lock;
        end_one(lock);
        usleep(20000);
    }
}

#define LABELS "{channel=\"" CHANNEL "\",operation=\"" WITHDRAW_OP "\"}"

static void test_a_full_limit_is_seen(void **state)
{
    tl_lock *held, *refused = NULL;
    output *o;

    (void)state;
    while (tl_channel_check(operators.h.client, CHANNEL, WITHDRAW_OP) != TL_OK)
        usleep(10000);
    operators_make_doubtful("D2");
    o = RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    assert_null(strstr(o->out, "permit"));
    output_free(o);
    o = RUN("exporter", "--once", "--config", operators.config[ANN]);
    assert_null(strstr(o->out, "tradelock_channel_limit_sends{"));
    output_free(o);
    expect_words_of(LIMIT("--op", WITHDRAW_OP, "--sends", "1", "--reason", "their contract"), 0,
                    "sends 1 at a time");
    held = take_only_permit();
    assert_int_equal(ask_one(&refused, "NEXT"), TL_OVERLOADED);
    tl_lock_free(refused);
    o = RUN("status", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "Channels that operators limit");
    EXPECT_WORDS(o, "1 of 1 out");
    output_free(o);
    o = RUN("status", "--json", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "\"full\": true");
    EXPECT_WORDS(o, "\"reason\": \"their contract\"");
    output_free(o);
    expect_words_of(AS(BOB, "ls"), 0, "1 of 1 out");
    o = RUN("ps", "--json", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "\"permits\": 1");
    output_free(o);
    expect_words_of(RUN("ps", "--config", operators.config[ANN]), 0, "PERMITS");
    o = RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o,
                 "Its send waits for a permit: operators limit channel " CHANNEL " for WITHDRAW");
    EXPECT_WORDS(o, "to 1 send at a time (their contract, ");
    EXPECT_WORDS(o, "1 of 1 permits are out");
    EXPECT_WORDS(o, "none takes longer than 1 h 0 min");
    EXPECT_WORDS(o, "uses up no attempt");
    output_free(o);
    o = RUN("exporter", "--once", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "tradelock_channel_limit_sends" LABELS " 1\n");
    EXPECT_WORDS(o, "tradelock_channel_permits" LABELS " 1\n");
    assert_null(strstr(o->out, "tradelock_channel_limit_sends_per_second{"));
    output_free(o);
    end_one(held);
    while (permits() > 0) /* a beat or two */
        usleep(20000);
    o = RUN("exporter", "--once", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "tradelock_channel_permits" LABELS " 0\n");
    output_free(o);
    expect_words_of(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
                    "0 of 1 permits are out, so that does not hold it up now");
}

/* What a killed process has is said to be its, and until when. */
static void test_permits_of_the_dead(void **state)
{
    output *o;

    (void)state;
    database_run(
        operators.h.sql,
        "INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms, "
        "started_at, alive_until, ended_at) VALUES (@dead := UUID(), 'killed', 'host', 1, "
        "UUID(), 1000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)); "
        "INSERT INTO trade_channel_permit VALUES ('" CHANNEL "', '" WITHDRAW_OP
        "', @dead, 1, 1, 600000)");
    o = RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    EXPECT_WORDS(o, "1 of them is of processes that ended: free at ");
    EXPECT_WORDS(o, "(in 9 min ");
    output_free(o);
    database_run(operators.h.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 11 MINUTE "
                                  "WHERE program = 'killed'");
    expect_words_of(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
                    "0 of 1 permits are out");
}

static void test_a_limit_a_second_is_seen(void **state)
{
    output *o;

    (void)state;
    expect_words_of(LIMIT("--op", WITHDRAW_OP, "--sends", "2", "--per-second", "1", "--reason",
                          "their contract"),
                    0, "sends 2 at a time, 1 a second");
    /* As if its turn had come. */
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND, "
                 "rev = rev + 1, step = 'test' WHERE lane = 'R' AND serial_no = 'D2'");
    o = RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    EXPECT_WORDS(o, "to 1 send a second (their contract, ");
    EXPECT_WORDS(o, " due, so its turn may come at about ");
    output_free(o);
    o = RUN("exporter", "--once", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "tradelock_channel_limit_sends_per_second" LABELS " 1\n");
    output_free(o);
    expect_words_of(LIMIT("--op", WITHDRAW_OP, "--none", "--reason", "over"), 0, "as much");
    o = RUN("status", "--config", operators.config[ANN]);
    assert_null(strstr(o->out, "LIMITED"));
    output_free(o);
}

/* ------------------------------------------------------------- what a breaker holds up -- */

static void await_breaker(const char *is)
{
    while (
        database_number(operators.h.sql,
                        "SELECT COUNT(*) FROM trade_channel_breaker WHERE op_code = '" WITHDRAW_OP
                        "' AND %s",
                        is) == 0)
        usleep(20000);
}

/* A send that is a probe: as if so much time had passed that an ask may be one, whoever's turn it
 * is. */
static tl_lock *send_probe(const char *serial)
{
    tl_lock *lock = NULL;

    for (;;) {
        tl_status status;

        database_run(operators.h.sql, "UPDATE trade_channel_breaker SET next_at = UTC_TIMESTAMP(6) "
                                      "- INTERVAL 2000 SECOND WHERE op_code = '" WITHDRAW_OP "'");
        status = ask_one(&lock, serial);
        if (status == TL_GRANTED)
            return lock;
        assert_int_equal(status, TL_OVERLOADED);
        tl_lock_free(lock);
        usleep(20000);
    }
}

static void end_unknown(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_UNKNOWN;
    assert_int_equal(tl_lock_finish(lock, &ending), TL_IN_DOUBT);
    tl_lock_free(lock);
}

static void expect_no_breaker(void)
{
    output *o = RUN("status", "--config", operators.config[ANN]);

    assert_null(strstr(o->out, "BREAKER"));
    output_free(o);
    o = RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    assert_null(strstr(o->out, "breaker"));
    EXPECT_WORDS(o, "Have it looked at now");
    output_free(o);
}

/* Unknown outcomes, until this process has heard of the breaker, and told. */
static void open_breaker(void)
{
    for (unsigned i = 0;
         database_number(operators.h.sql, "SELECT COUNT(*) FROM trade_channel_breaker WHERE "
                                          "opened_at IS NOT NULL") == 0;
         i++) {
        tl_lock *lock = NULL;
        char serial[32];

        snprintf(serial, sizeof serial, "UNKNOWN%u", i);
        if (ask_one(&lock, serial) == TL_GRANTED)
            end_unknown(lock);
        else
            tl_lock_free(lock);
        usleep(50000);
    }
}

/* Before any probe. */
static void expect_seen_open(void)
{
    output *o = RUN("status", "--config", operators.config[ANN]);

    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "Channels that do not answer: but for one probe at a time nothing is sent");
    EXPECT_WORDS(o, "BREAKER OPEN OPERATION SINCE");
    EXPECT_WORDS(o, "+16 min ");
    output_free(o);
    o = RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "The breaker of channel " CHANNEL " for " WITHDRAW_OP " is open since ");
    EXPECT_WORDS(o, "(falls silent, ");
    EXPECT_WORDS(o, "a probe: none was made yet. The next one may begin at ");
    EXPECT_WORDS(o, "(in 16 min ");
    EXPECT_WORDS(o, "it is not claimed and no attempt is used up");
    EXPECT_WORDS(o, "tradelock channel breaker " CHANNEL " --op " WITHDRAW_OP
                    " --none --reason 'REASON'");
    EXPECT_WORDS(o, "Have it looked at with a probe; that asks before it sends.");
    assert_null(strstr(o->out, "A retry worker"));
    output_free(o);
}

/* Where a payment hangs it is said that its channel does not answer, what the probes came to, when
 * the next one is, and how to take the breaker away. */
static void test_an_open_breaker_is_seen(void **state)
{
    json_t *document;
    output *o;
    tl_lock *probe;

    (void)state;
    operators_make_doubtful("D3");
    expect_no_breaker();
    expect_words_of(BREAKER("--op", WITHDRAW_OP, "--unknowns", "1", "--probe-every", "1000",
                            "--reason", "falls silent"),
                    0, "has this breaker");
    open_breaker();
    expect_seen_open();
    probe = send_probe("PROBE1");
    expect_words_of(RUN("status", "--config", operators.config[ANN]), 6, " goes on ");
    expect_words_of(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
                    "a probe: 0 had no answer, and one goes on since ");
    expect_words_of(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
                    "The next one may begin once that ends, at the latest at ");
    o = RUN("status", "--json", "--config", operators.config[ANN]);
    document = output_json(o);
    assert_true(json_is_true(
        json_object_get(json_array_get(json_object_get(document, "broken"), 0), "probing")));
    json_decref(document);
    output_free(o);
    end_unknown(probe);
    await_breaker("in_a_row = 1");
    expect_words_of(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
                    "a probe: 1 had no answer, and the last one began at ");
    o = RUN("status", "--json", "--config", operators.config[ANN]);
    EXPECT_WORDS(o, "\"probing\": false");
    EXPECT_WORDS(o, "\"silent_probes\": 1");
    EXPECT_WORDS(o, "\"reason\": \"falls silent\"");
    output_free(o);

    /* New numbers leave it open, and the last probe known. */
    expect_words_of(BREAKER("--op", WITHDRAW_OP, "--unknowns", "2", "--probe-every", "1000",
                            "--reason", "later"),
                    0, "has this breaker");
    expect_words_of(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
                    "and the last one began at ");
    end_one(send_probe("PROBE2"));
    await_breaker("opened_at IS NULL AND window_at IS NULL");
    expect_no_breaker();
    expect_words_of(BREAKER("--op", WITHDRAW_OP, "--none", "--reason", "over"), 0,
                    "has no breaker");
}

TEST_MAIN(channel)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_bad_limits),
        cmocka_unit_test(test_bad_breakers),
        cmocka_unit_test(test_breaker_and_none),
        cmocka_unit_test(test_limit_and_lift),
        cmocka_unit_test(test_pause_and_resume),
        cmocka_unit_test(test_who_does_not_obey),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_what_others_say),
        cmocka_unit_test(test_a_full_limit_is_seen),
        cmocka_unit_test(test_permits_of_the_dead),
        cmocka_unit_test(test_a_limit_a_second_is_seen),
        cmocka_unit_test(test_an_open_breaker_is_seen),
    };

    return server_report(cmocka_run_group_tests(tests, operators_set_up, operators_tear_down));
}
