/* `tradelock drain` with two operators' accounts, and a service that lives, is killed, or holds. */
#include "fields.h"
#include "operators.h"
#include "support/theme.h"

#include <tradelock/layer.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define SLOW_BEAT_MS 6000
#define AS(who, ...) RUN("drain", __VA_ARGS__, "--config", operators.config[who])

/* Everything that a decision writes. */
static long long written(void)
{
    return database_number(operators.h.sql,
                           "SELECT (SELECT COUNT(*) * 1000 + SUM(paused) * 100 + COUNT(decided_at) "
                           "FROM trade_channel) * 1000 + COUNT(*) FROM tl_act");
}

static void await_check(tl_status status)
{
    AWAIT_WHILE(tl_channel_check(operators.h.client, "any", "ANY") != status);
}

static void end_drain(void)
{
    ENDS(AS(BOB, "--end", "--reason", "it is over"), 0, "The drain is over");
    await_check(TL_OK);
}

/* Held until somebody finishes it. */
static tl_lock *hold_by(tl_client *client, const char *serial)
{
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {serial, "C1", "BARE"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 600000;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
    return lock;
}

static tl_lock *hold(const char *serial)
{
    return hold_by(operators.h.client, serial);
}

static void finish(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    tl_lock_free(lock);
}

TEST(test_bad_input)
{
    const long long before = written();

    EXPECT_REFUSED(RUN("drain"), 2, "--reason is missing");
    EXPECT_REFUSED(AS(ANN, "--reason", ""), 2, "--reason is missing");
    EXPECT_REFUSED(AS(ANN, "bank", "--reason", "r"), 2, "drain takes no operand: bank");
    EXPECT_REFUSED(AS(ANN, "--reason", "r", "--timeout", "soon"), 2, "--timeout is a duration");
    EXPECT_REFUSED(AS(ANN, "--wait", "--reason", "r"), 2, "--wait decides nothing");
    EXPECT_REFUSED(AS(ANN, "--wait", "--end"), 2, "exclude each other");
    EXPECT_REFUSED(AS(ANN, "--end"), 2, "--reason is missing");
    EXPECT_REFUSED(AS(ANN, "--end", "--reason", "r", "--timeout", "1s"), 2,
                   "--end waits for nothing");
    EXPECT_REFUSED(AS(ANN, "--end", "--reason", "r"), 1, "the installation does not drain");
    EXPECT_REFUSED(AS(ANN, "--wait"), 1, "the installation does not drain");
    EXPECT_REFUSED(AS(SERVICE, "--reason", "r"), 1, "lacks a right");
    EXPECT_REFUSED(RUN("channel", "pause", TL_CHANNEL_ALL, "--op", "X", "--reason", "r", "--config",
                       operators.config[ANN]),
                   2, "a drain is of all operations");
    EXPECT_REFUSED(RUN("channel", "limit", TL_CHANNEL_ALL, "--sends", "1", "--reason", "r",
                       "--config", operators.config[ANN]),
                   2, "a limit is of one channel");
    assert_int_equal(written(), before);
}

TEST(test_nothing_runs)
{
    ENDS(AS(ANN, "--reason", "maintenance"), 0, "Nothing is in process");
    assert_status(tl_channel_check(operators.h.client, "any", "ANY"), TL_OVERLOADED);
    ENDS(AS(BOB, "--wait", "--timeout", "1m"), 0, "Nothing is in process");
    end_drain();
    ENDS(RUN("acts", "--config", operators.config[BOB]), 0, "channel *");
    assert_int_equal(database_number(operators.h.sql,
                                     "SELECT COUNT(*) FROM tl_act WHERE said = 'channel *' AND "
                                     "account LIKE '%%@%%' AND (what, reason) IN "
                                     "(('pause', 'maintenance'), ('resume', 'it is over'))"),
                     2);
}

TEST(test_what_runs_is_said)
{
    tl_lock *lock = hold("RUNS");
    json_t *set = json_object(), *document;
    output *o;

    ENDS(AS(ANN, "--reason", "maintenance", "--timeout", "2s"), 6, "RUNS", "In process still: 1;",
         "! 1 in process");
    document = output_ended(AS(ANN, "--wait", "--timeout", "2s", "--json"), 6);
    assert_false(json_is_true(json_object_get(document, "empty")));
    assert_int_equal(json_array_size(json_object_get(document, "in_process")), 1);
    fields_add(set, document);
    json_decref(document);
    /* The drain is as it was, whoever asks again. */
    ENDS(AS(BOB, "--reason", "another"), 1, "! the installation drains already, by ",
         "! maintenance");
    finish(lock);
    ENDS(AS(ANN, "--wait", "--timeout", "1m"), 0, "Nothing is in process");
    /* What is known of all is known at once. */
    ENDS(AS(ANN, "--wait", "--timeout", "0s"), 0, "Nothing is in process");
    /* One that says nothing is waited for. */
    database_run(operators.h.sql,
                 "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
                 "timeout_ms, started_at, alive_until) VALUES (UUID(), 'mute', 'h', 1, UUID(), "
                 "600000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 600 SECOND)");
    o = AS(ANN, "--wait", "--timeout", "2s");
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "1 process has not said");
    EXPECT_WORDS(o, "mute"); /* and which one it is */
    output_free(o);
    document = output_ended(AS(ANN, "--wait", "--timeout", "0s", "--json"), 6);
    assert_int_equal(json_array_size(json_object_get(document, "unheard")), 1);
    fields_add(set, document);
    json_decref(document);
    database_run(operators.h.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), swept_at = "
                                  "UTC_TIMESTAMP(6) WHERE program = 'mute'");
    document = output_ended(AS(BOB, "--end", "--reason", "it is over", "--json"), 0);
    assert_true(json_is_false(json_object_get(document, "drains")));
    fields_add(set, document);
    json_decref(document);
    fields_expect(set, "drain");
    json_decref(set);
    await_check(TL_OK);
}

/* `tradelock drain` in the background. */
static pid_t start(void)
{
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char program[512];
    const pid_t pid = fork();

    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    if (pid < 0)
        server_panic("fork failed");
    if (pid == 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        execl(program, program, "drain", "--config", operators.config[ANN], "--reason",
              "the switch-over", (char *)NULL);
        _exit(127);
    }
    close(null);
    return pid;
}

/* Killed while it waits; and what others say meanwhile. */
TEST(test_killed)
{
    tl_lock *lock = hold("HELD");
    const char *ann = operators.config[ANN];
    output *o;
    int status;
    pid_t pid;

    operators_make_doubtful("D1");
    pid = start();
    await_check(TL_OVERLOADED);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    house_expect(&operators.h, "NEW", "C1", 1, TL_OVERLOADED);
    ENDS(RUN("status", "--config", ann), ANY_CODE, "operators drain the installation",
         "the switch-over");
    ENDS(RUN("channel", "ls", "--config", ann), 0, "the switch-over");
    ENDS(RUN("doctor", "--config", ann), ANY_CODE, "operators drain the installation",
         "the switch-over");
    ENDS(RUN("ls", "--config", ann), 0, "HELD", "! operators drain the installation");
    ENDS(RUN("explain", "D1", "C1", WITHDRAW_OP, "--config", ann), 6,
         "Operators have paused all channels", "tradelock drain --end");
    ENDS(RUN("exporter", "--once", "--config", ann), 0,
         "tradelock_channel_paused_seconds{channel=\"*\",operation=\"\"}");
    finish(lock);
    ENDS(AS(BOB, "--wait", "--timeout", "1m"), 0, "Nothing is in process");
    end_drain();
    ENDS(RUN("doctor", "--config", ann), ANY_CODE, WITHOUT("operators drain the installation"));
    o = RUN("ls", "--config", ann);
    assert_null(strstr(o->err, "operators drain the installation"));
    output_free(o);
    house_expect(&operators.h, "NEW", "C1", 1, TL_SUCCEEDED);
}

/* Somebody else ends it while this one waits. */
TEST(test_ended_meanwhile)
{
    tl_lock *lock = hold("LONG");
    int status;
    pid_t pid;

    pid = start();
    await_check(TL_OVERLOADED);
    end_drain();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    finish(lock);
}

/* Its process is gone without a word: said, until a janitor has opened it. */
TEST(test_a_holder_that_died)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0) {
        tl_client_options options = TL_CLIENT_OPTIONS_INIT;
        tl_client *client = NULL;

        options.config_file = operators.admin;
        options.program = "victim";
        assert_status(tl_client_open(&client, &options), TL_OK);
        (void)hold_by(client, "DEAD");
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ENDS(AS(ANN, "--reason", "maintenance", "--timeout", "1s"), 6, "victim");
    database_run(operators.h.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6), ended_by = session_id "
                 "WHERE program = 'victim'");
    ENDS(AS(ANN, "--wait", "--timeout", "1m"), 0, "Nothing is in process");
    end_drain();
}

static tl_client *open_slow(void)
{
    char *path = database_option_file_at(operators.h.db, server_socket(server_shared()),
                                         "beat_ms=6000\nsession_ms=1m\nsite=test\n");
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;

    options.config_file = path;
    options.program = "slow";
    assert_status(tl_client_open(&client, &options), TL_OK);
    remove(path);
    free(path);
    return client;
}

static int refuses(tl_client *client)
{
    return tl_channel_check(client, "any", "ANY") == TL_OVERLOADED;
}

/* Beats are far apart, and those of one process between those of the others.  All begin to refuse at
 * about one moment; and who has read it says that it obeys, and does not keep that for its next
 * beat.  For as long as some are waited for, payments are refused. */
TEST(test_slow_beats)
{
    tl_client *slow[3];
    const size_t count = sizeof slow / sizeof slow[0];
    int64_t end_ms, first_ms, all_ms;
    int status;
    pid_t pid;

    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            usleep(SLOW_BEAT_MS * 1000 / count);
        slow[i] = open_slow();
    }
    pid = start();
    end_ms = now_ms() + PATIENCE_MS;
    while (!refuses(slow[0]) && !refuses(slow[1]) && !refuses(slow[2])) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
    first_ms = now_ms();
    while (!refuses(slow[0]) || !refuses(slow[1]) || !refuses(slow[2])) {
        assert_true(now_ms() < end_ms);
        usleep(5000);
    }
    all_ms = now_ms();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    print_message(
        "%lld ms after the first all refuse, and %lld ms after it nothing is in process\n",
        (long long)(all_ms - first_ms), (long long)(now_ms() - first_ms));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(all_ms - first_ms < SLOW_BEAT_MS / 2);
    assert_true(now_ms() - all_ms < SLOW_BEAT_MS / 2);
    end_drain();
    for (size_t i = 0; i < count; i++)
        tl_client_close(slow[i]);
}

TESTS_OF(drain, operators_set_up, operators_tear_down)
