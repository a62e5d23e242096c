/* Many trades at once, and what operators did: real commands, stopped, killed and beside each
 * other. */
#include "command.h"
#include "fields.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define MANY 120

static struct world {
    fixture f;
    const char *config;
} w;

FIXTURE(set_up)
{
    fixture_open(&w.f, "janitor=0\nbeat_ms=50\nsession_ms=1m\n");
    w.config = database_option_file(w.f.db);
}

FIXTURE(tear_down)
{
    assert_log_whole(&w.f);
    fixture_close(&w.f);
}

/* A trade that waits for an hour. */
static void make(const char *serial, const char *cust, const char *channel, int64_t amount,
                 const char *currency)
{
    tl_lock_options options = sync_options("pay");
    tl_ending unknown = TL_ENDING_INIT;
    tl_lock *lock;

    options.channel = channel;
    options.amount_minor = amount;
    options.currency = currency;
    lock = granted(w.f.client, serial, cust, &options);
    unknown.next_run_ms = 3600000;
    assert_status(tl_lock_finish(lock, &unknown), TL_IN_DOUBT);
    tl_lock_free(lock);
}

static void make_many(const char *prefix, const char *channel, int count)
{
    char serial[32];

    for (int i = 0; i < count; i++) {
        snprintf(serial, sizeof serial, "%s%d", prefix, i);
        make(serial, "C1", channel, 100, "EUR");
    }
}

#define number(query, word) database_number(w.f.sql, query, word)

/* How many steps of operators the trades of a channel have, in all. */
static long long retries(const char *channel)
{
    return number("SELECT COUNT(*) FROM trade_lock_log l JOIN trade_lock t USING (cust_no, "
                  "serial_no, op_code) WHERE l.step = 'operator' AND t.channel = '%s'",
                  channel);
}

/* How many of its trades have more than one. */
static long long twice(const char *channel)
{
    return number("SELECT COUNT(*) FROM (SELECT l.serial_no FROM trade_lock_log l JOIN trade_lock "
                  "t USING (cust_no, serial_no, op_code) WHERE l.step = 'operator' AND "
                  "t.channel = '%s' GROUP BY l.serial_no HAVING COUNT(*) > 1) x",
                  channel);
}

static long long acts(void)
{
    return database_number(w.f.sql, "SELECT COUNT(*) FROM tl_act");
}

#define RETRY(...)                                                                                 \
    RUN("retry", "--config", w.config, "--reason", "the bank is back", "--actor", "ann",           \
        __VA_ARGS__)

/* On stderr, beside what stdout has. */
static void expect_told(const output *o, const char *words)
{
    if (strstr(o->err, words) == NULL)
        fail_msg("not \"%s\" but \"%s\"", words, o->err);
}

/* -------------------------------------------------------- on a terminal -- */

/* The command as a person runs it. */
typedef struct terminal {
    pid_t pid;
    int fd;
    char text[65536];
    size_t size;
} terminal;

static void terminal_run(terminal *t, const char *const arguments[])
{
    char program[512];
    char *argv[24] = {program};
    size_t count = 1;

    memset(t, 0, sizeof *t);
    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    for (; arguments[count - 1] != NULL; count++)
        argv[count] = strdup(arguments[count - 1]);
    t->pid = forkpty(&t->fd, NULL, NULL, NULL);
    if (t->pid < 0)
        server_panic("no terminal");
    if (t->pid == 0) {
        execv(program, argv);
        _exit(127);
    }
    while (count-- > 1)
        free(argv[count]);
}

#define TERMINAL(t, ...) terminal_run(t, (const char *const[]){__VA_ARGS__, NULL})

/* Reads on until the words are there, or (NULL) the command is over. */
static void terminal_await(terminal *t, const char *words)
{
    while (words == NULL || strstr(t->text, words) == NULL) {
        struct pollfd one = {.fd = t->fd, .events = POLLIN};
        ssize_t size;

        if (poll(&one, 1, 120000) != 1)
            fail_msg("still waits for %s: %s", words != NULL ? words : "its end", t->text);
        size = read(t->fd, t->text + t->size, sizeof t->text - 1 - t->size);
        if (size <= 0) {
            if (words != NULL)
                fail_msg("ended without %s: %s", words, t->text);
            return;
        }
        t->size += (size_t)size;
        t->text[t->size] = '\0';
    }
}

static void terminal_type(const terminal *t, const char *line)
{
    assert_int_equal(write(t->fd, line, strlen(line)), (ssize_t)strlen(line));
}

static void terminal_end(terminal *t, int code, const char *words)
{
    int status;

    terminal_await(t, NULL);
    assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
    close(t->fd);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || strstr(t->text, words) == NULL)
        fail_msg("status %d, expected %d and \"%s\": %s", status, code, words, t->text);
}

/* ------------------------------------------------------------ the preview -- */

TEST(test_preview_counts)
{
    json_t *document, *money;
    output *o;

    make("P1", "C1", "see", 100, "EUR");
    make("P2", "C2", "see", 250, "EUR");
    make("P3", "C3", "see", 7, "USD");
    make("P4", "C4", "blind", 9, "USD");
    o = RETRY("--all", "--channel", "see");
    EXPECT_CODE(o, 1);
    EXPECT_WORDS(o, "Would retry 3 trades: ");
    EXPECT_WORDS(o, "3.50 EUR in 2");
    EXPECT_WORDS(o, "7 USD in 1");
    expect_told(o, "nothing was changed: the same with --yes 3 does it");
    assert_null(strstr(o->out, "P4"));
    output_free(o);
    document =
        output_ended(RETRY("--where", "channel=see currency=EUR amount-over=1.00EUR", "--json"), 1);
    assert_int_equal(json_integer_value(json_object_get(document, "planned")), 1);
    assert_true(json_is_null(json_object_get(document, "act")));
    money = json_array_get(json_object_get(document, "money"), 0);
    assert_int_equal(json_integer_value(json_object_get(money, "sum_minor")), 250);
    json_decref(document);
    assert_int_equal(retries("see"), 0);
    assert_int_equal(acts(), 0);
}

TEST(test_wrong_number_changes_nothing)
{
    terminal t;

    ENDS(RETRY("--all", "--channel", "see", "--yes", "2"), 1,
         "! nothing was changed: it would be 3 trades, not 2");
    TERMINAL(&t, "retry", "--config", w.config, "--reason", "r", "--all", "--channel", "see");
    terminal_await(&t, "Type 3 to retry them");
    terminal_type(&t, "4\n");
    terminal_end(&t, 1, "it would be 3 trades, not 4");
    TERMINAL(&t, "retry", "--config", w.config, "--reason", "r", "--all", "--channel", "see");
    terminal_await(&t, "Type 3");
    terminal_type(&t, "y\n");
    terminal_end(&t, 1, "nothing was changed");
    assert_int_equal(retries("see"), 0);
    assert_int_equal(acts(), 0);
}

TEST(test_what_moves_on_is_left_alone)
{
    terminal t;

    TERMINAL(&t, "retry", "--config", w.config, "--reason", "r", "--all", "--channel", "see");
    terminal_await(&t, "Type 3");
    database_run(w.f.sql, "UPDATE trade_lock SET fence = fence + 1, rev = rev + 1, step = 'reap' "
                          "WHERE serial_no = 'P2' AND lane = 'S'");
    terminal_type(&t, "3\n");
    terminal_end(&t, 1, "2 of 3 done, 1 left alone since they moved on; on record as act 1");
    assert_int_equal(retries("see"), 2);
    assert_int_equal(
        number("SELECT COUNT(*) FROM tl_act_row WHERE act_no = 1 AND result = '%s'", "moved on"),
        1);
    assert_int_equal(number("SELECT COUNT(*) FROM tl_act_row WHERE act_no = 1 AND serial_no = "
                            "'P2' AND result = '%s'",
                            "moved on"),
                     1);
    assert_int_equal(database_number(w.f.sql, "SELECT done = 2 AND skipped = 1 AND planned = 3 AND "
                                              "ended_at IS NOT NULL AND reason = 'r' FROM tl_act "
                                              "WHERE act_no = 1"),
                     1);
}

/* What was done is due already; so the same again does the rest, and then nothing. */
TEST(test_again_does_the_rest)
{
    output *o = RETRY("--all", "--channel", "see", "--yes", "1", "--json");
    json_t *set = json_object(), *document = output_json(o);

    EXPECT_CODE(o, 0);
    assert_int_equal(json_integer_value(json_object_get(document, "done")), 1);
    assert_int_equal(json_integer_value(json_object_get(document, "due")), 2);
    json_array_clear(json_object_get(document, "examples")); /* as other lists have them */
    fields_add(set, document);
    json_decref(document);
    output_free(o);
    fields_expect(set, "many+retry all");
    json_decref(set);
    ENDS(RETRY("--all", "--channel", "see", "--yes", "0"), 1, "! there is nothing to do");
    assert_int_equal(retries("see"), 3);
    assert_int_equal(twice("see"), 0);
}

/* ------------------------------------------------ stopped, killed, beside each other -- */

static pid_t start(const char *channel, const char *yes, int out)
{
    char program[512];
    const pid_t pid = fork();

    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    if (pid < 0)
        server_panic("fork failed");
    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        execl(program, program, "retry", "--config", w.config, "--reason", "r", "--all",
              "--channel", channel, "--yes", yes, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static long long last_act(const char *column)
{
    return number("SELECT %s FROM tl_act ORDER BY act_no DESC LIMIT 1", column);
}

static void await_done(long long before, int least)
{
    while (acts() == before || last_act("done") < least)
        usleep(1000);
}

static void finish_the_rest(const char *channel)
{
    char left[24];

    snprintf(left, sizeof left, "%lld", MANY - retries(channel));
    ENDS(RETRY("--all", "--channel", channel, "--yes", left), 0);
    assert_int_equal(retries(channel), MANY);
    assert_int_equal(twice(channel), 0);
}

TEST(test_killed_and_repeated)
{
    const long long before = acts();
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), status;
    pid_t pid;

    make_many("K", "kill", MANY);
    pid = start("kill", "120", null);
    await_done(before, 5);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(null);
    if (last_act("done") == MANY)
        fail_msg("it was killed too late: more trades are needed");
    /* What the server still had in hand may come a little later; record and history agree. */
    while (last_act("done") != retries("kill"))
        usleep(1000);
    assert_int_equal(last_act("ended_at IS NULL AND planned = 120 AND skipped = 0"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM tl_act_row r JOIN trade_lock t USING (cust_no, "
                            "serial_no, op_code) WHERE t.channel = '%s' AND t.step = 'operator'",
                            "kill"),
                     retries("kill"));
    ENDS(RUN("acts", "--limit", "1", "--config", w.config), 0, "of 120, under way or stopped");
    finish_the_rest("kill");
    assert_int_equal(number("SELECT SUM(done) FROM tl_act WHERE said = 'channel=%s'", "kill"),
                     MANY);
}

TEST(test_interrupted)
{
    const long long before = acts();
    char path[] = "/tmp/tradelock-acts-XXXXXX", text[4096] = "";
    int file = mkstemp(path), status;
    pid_t pid;

    assert_true(file >= 0);
    unlink(path);
    make_many("I", "stop", MANY);
    pid = start("stop", "120", file);
    await_done(before, 5);
    kill(pid, SIGINT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    close(file);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 ||
        strstr(text, "not reached: the same again goes on; on record as act ") == NULL)
        fail_msg("status %d: %s", status, text);
    assert_int_equal(last_act("done"), retries("stop"));
    assert_int_equal(last_act("ended_at IS NOT NULL AND counts = CONCAT('left=', planned - done)"),
                     1);
    finish_the_rest("stop");
}

TEST(test_two_at_once)
{
    terminal a, b;

    make_many("T", "two", 20);
    TERMINAL(&a, "retry", "--config", w.config, "--reason", "a", "--all", "--channel", "two");
    TERMINAL(&b, "retry", "--config", w.config, "--reason", "b", "--all", "--channel", "two");
    terminal_await(&a, "Type 20");
    terminal_await(&b, "Type 20");
    terminal_type(&a, "20\n");
    terminal_type(&b, "20\n");
    terminal_await(&a, NULL);
    terminal_await(&b, NULL);
    assert_true(waitpid(a.pid, NULL, 0) == a.pid && waitpid(b.pid, NULL, 0) == b.pid);
    close(a.fd);
    close(b.fd);
    assert_int_equal(retries("two"), 20);
    assert_int_equal(twice("two"), 0);
    assert_int_equal(number("SELECT SUM(done) FROM tl_act WHERE said = 'channel=%s'", "two"), 20);
    assert_int_equal(number("SELECT SUM(skipped) FROM tl_act WHERE said = 'channel=%s'", "two"),
                     20);
}

/* -------------------------------------------------------------- bad input -- */

TEST(test_bad_input)
{
    const long long before = acts();

    EXPECT_USAGE(RETRY("--where", "parked chanel=bank"), "did you mean 'channel'");
    EXPECT_USAGE(RETRY("--where", "lane=S"), "--where knows no condition 'lane'");
    EXPECT_USAGE(RETRY("--where", "parked=1"), "'parked' has no value");
    EXPECT_USAGE(RETRY("--where", "older"), "'older' needs a value");
    EXPECT_USAGE(RETRY("--where", "older=soon"), "--older is a duration");
    EXPECT_USAGE(RETRY("--where", " "), "--where names no condition");
    EXPECT_USAGE(RETRY("--where", "currency=euro"), "--currency is three capital letters");
    EXPECT_USAGE(RETRY("--all", "--yes", "-1"), "--yes is the number of trades, not -1");
    EXPECT_USAGE(RETRY("--all", "W1"), "--all and --where take no operand: W1");
    EXPECT_USAGE(RETRY("--all", "--fence", "3"), "--fence is for one trade");
    EXPECT_USAGE(RETRY("--parked"), "say --all");
    EXPECT_USAGE(RUN("retry", "--all", "--config", w.config), "--reason is missing");
    EXPECT_USAGE(RUN("retry", "--all", "--reason", "", "--config", w.config),
                 "--reason is missing");
    EXPECT_USAGE(
        RUN("evidence", "add", "--statement", "x.csv", "--source", "s", "--config", w.config),
        "--reason is missing");
    EXPECT_USAGE(RUN("acts", "W1", "--config", w.config), "acts takes the number of one act");
    EXPECT_USAGE(RUN("acts", "--after", "x", "--config", w.config), "the place to go on from");
    EXPECT_USAGE(RUN("acts", "--by", "", "--config", w.config), "acts are by an account");
    EXPECT_USAGE(RUN("acts", "--since", "soon", "--config", w.config), "--since is a moment");
    ENDS(RETRY("--all", "--channel", "none", "--yes", "0"), 1, "! there is nothing to do");
    assert_int_equal(acts(), before);
}

/* -------------------------------------------------------------- statements -- */

#define PAYMENTS 100000

static void write_statement(char *path, int count)
{
    FILE *file = fdopen(mkstemp(path), "w");

    assert_non_null(file);
    fputs("serial_no,cust_no,op_code,channel_ref,amount_minor,currency\n"
          "S1,C1,WITHDRAW,r1,100,EUR\nS1,C1,WITHDRAW,r1,100,EUR\nS2,C1,WITHDRAW,r2,50,EUR\n",
          file);
    for (int i = 0; i < count; i++)
        fprintf(file, "nobody%d,C1,WITHDRAW,r,100,EUR\n", i);
    fclose(file);
}

static output *file_statement(const char *path, const char *yes)
{
    return RUN("evidence", "add", "--statement", path, "--source", "bank", "--reason", "monthly",
               "--yes", yes, "--config", w.config);
}

TEST(test_long_statement)
{
    char path[] = "/tmp/tradelock-acts-XXXXXX";
    output *o;

    make("S1", "C1", "paid", 100, "EUR");
    make("S2", "C1", "paid", 50, "EUR");
    write_statement(path, PAYMENTS);
    ENDS(file_statement(path, "3"), 1, "Would file success of 2 trades: 1.50 EUR in 2",
         "100,000 without a trade, 1 told twice",
         "! nothing was changed: it would be 2 trades, not 3");
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_evidence"), 0);
    o = file_statement(path, "2");
    EXPECT_CODE(o, 1); /* not all have a trade */
    EXPECT_WORDS(o, "2 of 2 done; on record as act ");
    output_free(o);
    unlink(path);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_evidence"), 2);
    assert_int_equal(last_act("done = 2 AND planned = 2 AND what = 'evidence add'"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM tl_act_row WHERE result = '%s'", "filed"), 2);
}

TEST(test_statement_again_is_known)
{
    char path[] = "/tmp/tradelock-acts-XXXXXX";

    write_statement(path, 0);
    ENDS(file_statement(path, "0"), 1, "2 known already", "1 told twice"); /* perhaps paid twice */
    unlink(path);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_evidence"), 2);
}

static void fail_retryably(tl_lock *lock)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_FAILURE;
    ending.proof = TL_PROOF_DECLINED;
    ending.retryable = 1;
    assert_status(tl_lock_finish(lock, &ending), TL_FAILED);
}

/* What somebody saw is not what would be done to a trade that ended or paid anew since; one more
 * attempt at the same payment is. */
TEST(test_statement_is_bound_to_what_was_seen)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *ends, *anew;
    char path[] = "/tmp/tradelock-acts-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    terminal t;

    make("S3", "C1", "paid", 100, "EUR");
    ends = granted(w.f.client, "S4", "C1", &options);
    anew = granted(w.f.client, "S5", "C1", &options);
    make("S6", "C1", "paid", 50, "EUR");
    fputs("serial_no,cust_no,op_code,channel_ref,amount_minor,currency\n"
          "S3,C1,WITHDRAW,r3,100,EUR\nS4,C1,WITHDRAW,r4,100,EUR\n"
          "S5,C1,WITHDRAW,r5,100,EUR\nS6,C1,WITHDRAW,r6,50,EUR\n",
          file);
    fclose(file);
    TERMINAL(&t, "evidence", "add", "--statement", path, "--source", "bank", "--reason", "r",
             "--config", w.config);
    terminal_await(&t, "Type 4");
    database_run(w.f.sql, "UPDATE trade_lock SET fence = fence + 1, rev = rev + 1, step = 'reap' "
                          "WHERE serial_no = 'S3' AND lane = 'S'");
    assert_status(finish(ends, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
    fail_retryably(anew);
    tl_lock_free(anew);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    anew = granted(w.f.client, "S5", "C1", &options);
    terminal_type(&t, "4\n");
    terminal_end(&t, 1, "2 of 4 done, 2 left alone since they moved on");
    unlink(path);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s'", "S3"), 1);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s'", "S4"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s'", "S5"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_evidence WHERE serial_no = '%s'", "S6"), 1);
    assert_status(finish(anew, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(anew);
    tl_lock_free(ends);
}

/* --------------------------------------------------------------- the list -- */

/* One of each, the latest first. */
static void make_all_kinds(void)
{
    char fence[24];

    make("L1", "C1", "list", 1, "EUR");
    snprintf(fence, sizeof fence, "%lld",
             number("SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'", "L1"));
    ENDS(RETRY("L1", "C1", "WITHDRAW", "--fence", fence), 0);
    ENDS(RUN("evidence", "add", "L1", "C1", "WITHDRAW", "--outcome", "PENDING", "--source", "phone",
             "--config", w.config),
         0);
    database_run(w.f.sql, "UPDATE trade_lock SET conflict = 1, rev = rev + 1 WHERE serial_no = "
                          "'L1' AND lane = 'S'");
    snprintf(fence, sizeof fence, "%lld",
             number("SELECT fence FROM trade_lock WHERE serial_no = '%s' AND lane = 'S'", "L1"));
    ENDS(RUN("resolve", "propose", "L1", "C1", "WITHDRAW", "--as", "clear", "--fence", fence,
             "--reason", "a letter", "--config", w.config),
         0);
    ENDS(RUN("purge", "--older", "90d", "--config", w.config), 0);
    ENDS(RUN("audit", "--config", w.config), 0);
}

TEST(test_list)
{
    static const char *const kinds[] = {"audit", "purge", "resolve propose", "evidence add",
                                        "retry"};
    json_t *document, *list, *set = json_object();
    char after[640];
    output *o;

    make_all_kinds();
    document = output_ended(RUN("acts", "--json", "--limit", "5", "--config", w.config), 0);
    list = json_object_get(document, "acts");
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(list, i), "what")),
                            kinds[i]);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 4), "reason")),
                        "the bank is back");
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 4), "serial_no")),
                        "L1");
    assert_true(json_is_true(json_object_get(document, "more")));
    snprintf(after, sizeof after, "%s", json_string_value(json_object_get(document, "next")));
    json_decref(document);

    /* Page after page is the whole list. */
    o = RUN("acts", "--json", "--limit", "1000", "--config", w.config);
    document = output_json(o);
    assert_int_equal(json_array_size(json_object_get(document, "acts")), acts() + 1);
    fields_add(set, document);
    json_object_set_new(set, "in_doubt", json_true()); /* of a restore */
    fields_expect(set, "acts");
    json_decref(set);
    json_decref(document);
    output_free(o);
    o = RUN("acts", "--json", "--limit", "1000", "--after", after, "--config", w.config);
    document = output_json(o);
    assert_int_equal(json_array_size(json_object_get(document, "acts")), acts() + 1 - 5);
    json_decref(document);
    output_free(o);

    ENDS(RUN("acts", "--by", "nobody", "--config", w.config), 0,
         "! nobody did anything of that kind");
    ENDS(RUN("acts", "--since", "2099-01-01", "--config", w.config), 0,
         "! nobody did anything of that kind");
}

TEST(test_rows)
{
    json_t *document, *set = json_object();
    output *o = RUN("acts", "1", "--json", "--config", w.config);

    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "moved on");
    document = output_json(o);
    assert_int_equal(json_array_size(json_object_get(document, "rows")), 3);
    fields_add(set, document);
    fields_expect(set, "acts rows");
    json_decref(set);
    json_decref(document);
    output_free(o);
    ENDS(RUN("acts", "1", "--after", "2", "--config", w.config), 0, WITHOUT("\n1 "));
}

/* Acts go by the same age as trades, with their rows. */
TEST(test_purge)
{
    database_run(w.f.sql, "UPDATE tl_act SET begun_at = begun_at - INTERVAL 200 DAY "
                          "WHERE said = 'channel=kill'");
    ENDS(RUN("purge", "--older", "90d", "--config", w.config), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM tl_act WHERE said = 'channel=%s'", "kill"), 0);
    assert_int_equal(number("SELECT COUNT(*) FROM tl_act_row r LEFT JOIN tl_act a USING (act_no) "
                            "WHERE a.act_no IS NULL AND r.serial_no <> '%s'",
                            ""),
                     0);
    assert_true(number("SELECT COUNT(*) FROM tl_act WHERE said = 'channel=%s'", "stop") > 0);
    assert_int_equal(last_act("what = 'purge' AND counts LIKE '%%acts=%%'"), 1);
}

TESTS_OF(acts, set_up, tear_down)
