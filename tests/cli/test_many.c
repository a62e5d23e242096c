/* One decision about many trades, by two operators: killed in the middle of either half, repeated,
 * and about trades that move on between the halves.  transcripts/many.txt has what is said of it. */
#include "fields.h"
#include "operators.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define MANY 120
#define number(...) database_number(operators.h.sql, __VA_ARGS__)

/* Trades that wait for an hour, of which the channel may have what it knows. */
static void make(const char *prefix, const char *channel, int count)
{
    tl_lock_options options = sync_options("pay");
    tl_ending unknown = TL_ENDING_INIT;
    char serial[32];

    options.channel = channel;
    options.amount_minor = 100;
    options.currency = "EUR";
    unknown.next_run_ms = 3600000;
    for (int i = 0; i < count; i++) {
        tl_lock *lock;

        snprintf(serial, sizeof serial, "%s%d", prefix, i);
        lock = granted(operators.h.client, serial, "C1", &options);
        assert_status(tl_lock_finish(lock, &unknown), TL_IN_DOUBT);
        tl_lock_free(lock);
    }
    /* As if the time in which the senders could still send were over. */
    database_run(
        operators.h.sql,
        "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6), rev = rev + 1, step = 'test' "
        "WHERE channel = '%s' AND lane = 'S'",
        channel);
}

#define DECIDE(who, verb, ...)                                                                     \
    RUN("resolve", verb, "--as", "failed", "--reason", "the bank's letter", "--config",            \
        operators.config[who], __VA_ARGS__)

/* What was written of a part of the decisions about the trades of a channel. */
static long long halves(const char *channel, int part)
{
    return number("SELECT COUNT(*) FROM trade_resolution d JOIN trade_lock t USING (cust_no, "
                  "serial_no, op_code) WHERE d.part = %d AND t.channel = '%s'",
                  part, channel);
}

static long long last_act(const char *column)
{
    return number("SELECT %s FROM tl_act ORDER BY act_no DESC LIMIT 1", column);
}

/* Kills the command once it has done a few, and waits for what the server still had in hand. */
static void kill_in_the_middle(int who, const char *verb, const char *which, const char *whose,
                               const char *channel, int part)
{
    const long long before = number("SELECT COUNT(*) FROM tl_act");
    char program[512];
    int status;
    const pid_t pid = fork();

    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    if (pid < 0)
        server_panic("fork failed");
    if (pid == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execl(program, program, "resolve", verb, "--as", "failed", "--reason", "r", "--config",
              operators.config[who], which, whose, "--yes", "120", (char *)NULL);
        _exit(127);
    }
    while (number("SELECT COUNT(*) FROM tl_act") == before || last_act("done") < 5) {
        if (waitpid(pid, &status, WNOHANG) != 0)
            fail_msg("it ended by itself: status %d", status);
        usleep(1000);
    }
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (last_act("done") == MANY)
        fail_msg("it was killed too late: more trades are needed");
    while (last_act("done") != halves(channel, part))
        usleep(1000);
    assert_int_equal(last_act("ended_at IS NULL AND planned = 120 AND skipped = 0"), 1);
}

TEST(test_killed_in_either_half)
{
    char left[24], acts[64];
    long long first;

    make("K", "kill", MANY);
    kill_in_the_middle(ANN, "propose", "--where", "channel=kill", "kill", 1);
    first = last_act("act_no");
    /* The same again proposes the rest, under an act of its own. */
    snprintf(left, sizeof left, "%lld", MANY - halves("kill", 1));
    ENDS(DECIDE(ANN, "propose", "--all", "--channel", "kill", "--yes", left), 0, "proposed already",
         "Another operator confirms it");
    assert_int_equal(halves("kill", 1), MANY);
    assert_int_equal(number("SELECT COUNT(*) FROM tl_act_row r JOIN trade_resolution d ON "
                            "d.act_no = r.act_no AND d.act_row = r.row_no AND d.serial_no = "
                            "r.serial_no WHERE r.result = 'proposed'"),
                     MANY);
    snprintf(acts, sizeof acts, "%lld,%lld", first, last_act("act_no"));
    ENDS(DECIDE(ANN, "confirm", "--act", acts, "--yes", "120"), 1, "! cannot confirm it");
    assert_int_equal(halves("kill", 2), 0);

    kill_in_the_middle(BOB, "confirm", "--act", acts, "kill", 2);
    snprintf(left, sizeof left, "%lld", MANY - halves("kill", 2));
    ENDS(DECIDE(BOB, "confirm", "--act", acts, "--yes", left), 0, "confirmed already");
    assert_int_equal(halves("kill", 2), MANY);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_lock_log WHERE step = 'resolve failed' AND "
                            "op_code = '" WITHDRAW_OP "'"),
                     MANY);
    ENDS(DECIDE(BOB, "confirm", "--act", acts, "--yes", "0"), 1, "! there is nothing to do");
    ENDS(RUN("inbox", "--config", operators.config[BOB]), 0, "! nothing waits for a second person");
}

/* A retry, evidence, and a decision about one of them in between: none of these is decided. */
TEST(test_what_moved_on_is_left_out)
{
    char act[24];
    output *o;

    make("V", "move", 4);
    ENDS(DECIDE(ANN, "propose", "--all", "--channel", "move", "--yes", "4"), 0, "4 of 4 done");
    snprintf(act, sizeof act, "%lld", last_act("act_no"));
    char fence[24];

    snprintf(fence, sizeof fence, "%llu", operators_fence("V0"));
    ENDS(RUN("retry", "V0", "C1", WITHDRAW_OP, "--fence", fence, "--reason", "r", "--config",
             operators.config[ANN]),
         0);
    ENDS(RUN("evidence", "add", "V1", "C1", WITHDRAW_OP, "--outcome", "PENDING", "--source", "bank",
             "--config", operators.config[ANN]),
         0);
    operators_decide(BOB, "confirm", "V2", "failed", operators_fence("V2"));
    o = DECIDE(BOB, "confirm", "--act", act, "--yes", "1");
    EXPECT_CODE(o, 1);
    EXPECT_WORDS(o, "Left alone: V0 C1 " WITHDRAW_OP ": the trade has moved on");
    EXPECT_WORDS(o, "Left alone: V1 C1 " WITHDRAW_OP ": the trade has moved on");
    EXPECT_WORDS(o, "1 confirmed already, 2 not as they were proposed");
    EXPECT_WORDS(o, "1 of 1 done");
    output_free(o);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_resolution WHERE part = 2 AND serial_no "
                            "IN ('V0', 'V1')"),
                     0);
}

/* What another operator proposed of the same trade under the same fence is not what this act did. */
TEST(test_a_confirmation_is_of_its_act)
{
    char act[24];

    make("A", "act", 1);
    ENDS(DECIDE(ANN, "propose", "--all", "--channel", "act", "--yes", "1"), 0);
    snprintf(act, sizeof act, "%lld", last_act("act_no"));
    ENDS(RUN("evidence", "add", "A0", "C1", WITHDRAW_OP, "--outcome", "PENDING", "--source", "bank",
             "--config", operators.config[ANN]),
         0);
    operators_decide(ANN, "propose", "A0", "failed", operators_fence("A0"));
    ENDS(DECIDE(BOB, "confirm", "--act", act, "--yes", "1"), 1, "! there is nothing to do");
    assert_int_equal(halves("act", 2), 0);
    ENDS(DECIDE(BOB, "confirm", "--act", "999999", "--yes", "1"), 1, "! proposed nothing");
}

static void clear(json_t *document, const char *name)
{
    json_array_clear(json_object_get(document, name));
}

TEST(test_fields)
{
    json_t *set = json_object(), *document;
    char act[24];

    make("J", "json", 1);
    document = output_ended(
        DECIDE(ANN, "propose", "--all", "--channel", "json", "--yes", "1", "--json"), 0);
    clear(document, "examples");
    fields_add(set, document);
    fields_expect(set, "many+resolve all");
    json_decref(set);
    snprintf(act, sizeof act, "%lld",
             (long long)json_integer_value(json_object_get(document, "act")));
    json_decref(document);
    set = json_object();
    document = output_ended(DECIDE(BOB, "confirm", "--act", act, "--yes", "1", "--json"), 0);
    clear(document, "examples");
    fields_add(set, document);
    fields_expect(set, "many+resolve act");
    json_decref(set);
    json_decref(document);
}

TESTS_OF(many, operators_set_up, operators_tear_down)
