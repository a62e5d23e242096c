/* What commands say of a channel that is limited, or whose breaker is open: transcripts/channel.txt has
 * the rest. */
#include "operators.h"
#include "support/theme.h"

#include <tradelock/lane.h>
#include <tradelock/layer.h>

#define CHANNEL "idempotent"
#define AS(who, ...) RUN("channel", __VA_ARGS__, "--config", operators.config[who])

#define LIMIT(...) AS(ANN, "limit", CHANNEL, __VA_ARGS__)
#define BREAKER(...) AS(ANN, "breaker", CHANNEL, __VA_ARGS__)

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

TEST(test_a_full_limit_is_seen)
{
    tl_lock *held, *refused = NULL;

    while (tl_channel_check(operators.h.client, CHANNEL, WITHDRAW_OP) != TL_OK)
        usleep(10000);
    operators_make_doubtful("D2");
    ENDS(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), ANY_CODE,
         WITHOUT("permit"));
    ENDS(RUN("exporter", "--once", "--config", operators.config[ANN]), ANY_CODE,
         WITHOUT("tradelock_channel_limit_sends{"));
    ENDS(LIMIT("--op", WITHDRAW_OP, "--sends", "1", "--reason", "their contract"), 0,
         "sends 1 at a time");
    held = take_only_permit();
    assert_int_equal(ask_one(&refused, "NEXT"), TL_OVERLOADED);
    tl_lock_free(refused);
    ENDS(RUN("status", "--config", operators.config[ANN]), ANY_CODE,
         "Channels that operators limit", "1 of 1 out");
    ENDS(RUN("status", "--json", "--config", operators.config[ANN]), ANY_CODE, "\"full\": true",
         "\"reason\": \"their contract\"");
    ENDS(AS(BOB, "ls"), 0, "1 of 1 out");
    ENDS(RUN("ps", "--json", "--config", operators.config[ANN]), ANY_CODE, "\"permits\": 1");
    ENDS(RUN("ps", "--config", operators.config[ANN]), 0, "PERMITS");
    ENDS(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "Its send waits for a permit: operators limit channel " CHANNEL " for " WITHDRAW_OP,
         "to 1 send at a time (their contract, ", "1 of 1 permits are out",
         "none takes longer than 1 h 0 min", "uses up no attempt");
    ENDS(RUN("exporter", "--once", "--config", operators.config[ANN]), ANY_CODE,
         "tradelock_channel_limit_sends" LABELS " 1\n", "tradelock_channel_permits" LABELS " 1\n",
         WITHOUT("tradelock_channel_limit_sends_per_second{"));
    end_one(held);
    while (permits() > 0) /* a beat or two */
        usleep(20000);
    ENDS(RUN("exporter", "--once", "--config", operators.config[ANN]), ANY_CODE,
         "tradelock_channel_permits" LABELS " 0\n");
    ENDS(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "0 of 1 permits are out, so that does not hold it up now");
}

/* What a killed process has is said to be its, and until when. */
TEST(test_permits_of_the_dead)
{
    database_run(
        operators.h.sql,
        "INSERT INTO tl_session (session_id, program, host, pid, connection_name, timeout_ms, "
        "started_at, alive_until, ended_at) VALUES (@dead := UUID(), 'killed', 'host', 1, "
        "UUID(), 1000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6)); "
        "INSERT INTO trade_channel_permit VALUES ('" CHANNEL "', '" WITHDRAW_OP
        "', @dead, 1, 1, 600000)");
    ENDS(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), ANY_CODE,
         "1 of them is of processes that ended: free at ", "(in 9 min ");
    database_run(operators.h.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 11 MINUTE "
                                  "WHERE program = 'killed'");
    ENDS(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "0 of 1 permits are out");
}

TEST(test_a_limit_a_second_is_seen)
{
    ENDS(LIMIT("--op", WITHDRAW_OP, "--sends", "2", "--per-second", "1", "--reason",
               "their contract"),
         0, "sends 2 at a time, 1 a second");
    /* As if its turn had come. */
    database_run(operators.h.sql,
                 "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND, "
                 "rev = rev + 1, step = 'test' WHERE lane = 'R' AND serial_no = 'D2'");
    ENDS(RUN("explain", "D2", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), ANY_CODE,
         "to 1 send a second (their contract, ", " due, so its turn may come at about ");
    ENDS(RUN("exporter", "--once", "--config", operators.config[ANN]), ANY_CODE,
         "tradelock_channel_limit_sends_per_second" LABELS " 1\n");
    ENDS(LIMIT("--op", WITHDRAW_OP, "--none", "--reason", "over"), 0, "as much");
    ENDS(RUN("status", "--config", operators.config[ANN]), ANY_CODE, WITHOUT("LIMITED"));
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
    ENDS(RUN("status", "--config", operators.config[ANN]), ANY_CODE, WITHOUT("BREAKER"));
    ENDS(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), ANY_CODE,
         WITHOUT("breaker"), "Have it looked at now");
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
    ENDS(RUN("status", "--config", operators.config[ANN]), 6,
         "Channels that do not answer: but for one probe at a time nothing is sent",
         "BREAKER OPEN OPERATION SINCE", "+16 min ");
    ENDS(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "The breaker of channel " CHANNEL " for " WITHDRAW_OP " is open since ", "(falls silent, ",
         "a probe: none was made yet. The next one may begin at ", "(in 16 min ",
         "it is not claimed and no attempt is used up",
         "tradelock channel breaker " CHANNEL " --op " WITHDRAW_OP " --none --reason 'REASON'",
         "Have it looked at with a probe; that asks before it sends.", WITHOUT("A retry worker"));
}

/* Where a payment hangs it is said that its channel does not answer, what the probes came to, when
 * the next one is, and how to take the breaker away. */
TEST(test_an_open_breaker_is_seen)
{
    json_t *document;
    output *o;
    tl_lock *probe;

    operators_make_doubtful("D3");
    expect_no_breaker();
    ENDS(BREAKER("--op", WITHDRAW_OP, "--unknowns", "1", "--probe-every", "1000", "--reason",
                 "falls silent"),
         0, "has this breaker");
    open_breaker();
    expect_seen_open();
    probe = send_probe("PROBE1");
    ENDS(RUN("status", "--config", operators.config[ANN]), 6, " goes on ");
    ENDS(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "a probe: 0 had no answer, and one goes on since ");
    ENDS(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "The next one may begin once that ends, at the latest at ");
    o = RUN("status", "--json", "--config", operators.config[ANN]);
    document = output_json(o);
    assert_true(json_is_true(
        json_object_get(json_array_get(json_object_get(document, "broken"), 0), "probing")));
    json_decref(document);
    output_free(o);
    end_unknown(probe);
    await_breaker("in_a_row = 1");
    ENDS(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "a probe: 1 had no answer, and the last one began at ");
    ENDS(RUN("status", "--json", "--config", operators.config[ANN]), ANY_CODE, "\"probing\": false",
         "\"silent_probes\": 1", "\"reason\": \"falls silent\"");

    /* New numbers leave it open, and the last probe known. */
    ENDS(BREAKER("--op", WITHDRAW_OP, "--unknowns", "2", "--probe-every", "1000", "--reason",
                 "later"),
         0, "has this breaker");
    ENDS(RUN("explain", "D3", "C1", WITHDRAW_OP, "--config", operators.config[BOB]), 6,
         "and the last one began at ");
    end_one(send_probe("PROBE2"));
    await_breaker("opened_at IS NULL AND window_at IS NULL");
    expect_no_breaker();
    ENDS(BREAKER("--op", WITHDRAW_OP, "--none", "--reason", "over"), 0, "has no breaker");
}

TESTS_OF(channel, operators_set_up, operators_tear_down)
