/* A real tradelock-worker: what its log says when the channel or the server is away and comes back,
 * each once, and how it reads its settings anew. */
#include "workflows/house.h"
#include "support/theme.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define PATIENCE_S 120

static struct world {
    house h;
    server *own;
    char log[300], said[300];
    const char *config;
    int journal; /* whether its log is the journal's, as far as it can tell */
    int json;    /* whether it is told to write JSON */
    pid_t worker;
} w;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static unsigned count_in(const char *path, const char *words)
{
    char line[1024];
    unsigned count = 0;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        count += strstr(line, words) != NULL;
    fclose(file);
    return count;
}

static void wait_for(const char *path, const char *words, unsigned count)
{
    const time_t end = time(NULL) + PATIENCE_S;

    while (count_in(path, words) < count) {
        if (time(NULL) > end) {
            char command[400];

            snprintf(command, sizeof command, "cat %s >&2", w.log);
            (void)!system(command);
            fail_msg("%s does not say \"%s\" %u times", path, words, count);
        }
        pause_ms(50);
    }
}

static void become_worker(void)
{
    char path[512], plugin[512];
    const int log = open(w.log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int said = open(w.said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    snprintf(path, sizeof path, "%s/bin/tradelock-worker", test_build_dir());
    snprintf(plugin, sizeof plugin, "%s/lib/withdraw.so", test_build_dir());
    dup2(said, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    if (w.journal) {
        struct stat about;
        char stream[64];

        (void)fstat(log, &about);
        snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)about.st_dev,
                 (uintmax_t)about.st_ino);
        setenv("JOURNAL_STREAM", stream, 1);
    }
    if (w.json)
        setenv("TRADELOCK_LOG_FORMAT", "json", 1);
    execl(path, path, "--config", w.config, "--plugin", plugin, "--idle-ms", "100", NULL);
    _exit(127);
}

static void start_worker(void)
{
    fflush(NULL);
    w.worker = fork();
    if (w.worker == 0)
        become_worker();
    wait_for(w.said, "ready", 1);
}

static void kill_worker(void)
{
    if (w.worker <= 0)
        return;
    kill(w.worker, SIGKILL);
    waitpid(w.worker, NULL, 0);
    w.worker = 0;
}

static void start_worker_anew(int journal, int json)
{
    kill_worker();
    unlink(w.said);
    w.journal = journal;
    w.json = json;
    start_worker();
}

FIXTURE(set_up)
{
    w.own = server_start(NULL);
    house_open(&w.h, WITHDRAW_IDEMPOTENT,
               "site=test\nbeat_ms=100ms\nsession_ms=5m\nmax_hold_ms=1m\nexecute_ms=20s\n"
               "commit_ms=5s\nschedule=50ms,100ms\nattempts=1000\ndeadline_ms=10m\n"
               "grace_ms=200ms\nclock_margin_ms=50ms\n",
               w.own);
    house_account(&w.h, "C1", 10000);
    w.config = database_option_file(w.h.db);
    snprintf(w.log, sizeof w.log, "%s.worker-log", w.config);
    snprintf(w.said, sizeof w.said, "%s.worker-said", w.config);
    w.journal = 0;
    w.json = 0;
    start_worker();
}

FIXTURE(tear_down)
{
    kill_worker();
    unlink(w.log);
    unlink(w.said);
    house_close(&w.h);
    server_free(w.own);
}

/* Forty attempts get no answer: one line says so, and one that it is over. */
TEST(test_a_channel_fails_and_is_back)
{
    house_rule(&w.h, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&w.h, "{\"kind\":\"drop_before\",\"endpoint\":\"query\",\"count\":40}");
    house_expect(&w.h, "W1", "C1", 100, TL_IN_DOUBT);
    wait_for(w.log, "is back after", 1);
    assert_int_equal(count_in(w.log, "has been failing for"), 1);
    assert_int_equal(count_in(w.log, "is back after"), 1);
    assert_int_equal(count_in(w.log, "channel idempotent (" WITHDRAW_OP ")"), 2);
}

/* Parking is one line, however many parts of the worker know of it. */
TEST(test_parking_is_one_line)
{
    house_rule(&w.h, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":2}");
    house_rule(&w.h, "{\"kind\":\"pending\",\"endpoint\":\"query\",\"count\":0,"
                     "\"serial_no\":\"PARKED\"}");
    house_expect(&w.h, "PARKED", "C1", 100, TL_IN_DOUBT);
    database_run(w.h.sql, "UPDATE trade_lock SET attempts = 999, rev = rev + 1, step = 'test' "
                          "WHERE serial_no = 'PARKED' AND lane = 'R'");
    wait_for(w.log, "attempts used up", 1);
    /* What the worker said of it is there once it has ended another trade. */
    house_expect(&w.h, "LATER", "C1", 100, TL_IN_DOUBT);
    while (!database_number(w.h.sql, "SELECT status = 'Y' FROM trade_lock WHERE serial_no = "
                                     "'LATER' AND lane = 'S'"))
        pause_ms(20);
    assert_int_equal(count_in(w.log, "attempts used up"), 1);
}

static char *first_line(const char *words)
{
    static char line[2048];
    FILE *file = fopen(w.log, "re");

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL && strstr(line, words) == NULL)
        ;
    fclose(file);
    return line;
}

static void no_answers(const char *serial_no)
{
    house_rule(&w.h, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\"}");
    house_rule(&w.h, "{\"kind\":\"drop_before\",\"endpoint\":\"query\",\"count\":40}");
    house_expect(&w.h, serial_no, "C1", 100, TL_IN_DOUBT);
    wait_for(w.log, "has been failing for", 1);
}

/* The journal has a clock and priorities of its own. */
TEST(test_the_journal_gets_priorities)
{
    start_worker_anew(1, 0);
    no_answers("J1");
    assert_int_equal(strncmp(first_line("has been failing for"), "<2>tradelock-worker ALARM: ", 27),
                     0);
    assert_int_equal(count_in(w.log, "Z tradelock-worker"), 0);
}

static void append(const char *line)
{
    FILE *file = fopen(w.config, "ae");

    assert_non_null(file);
    fprintf(file, "%s\n", line);
    fclose(file);
}

/* Has it read its settings anew, with this one besides, until the log has these words. */
static void with_settings(const char *setting, const char *words)
{
    struct stat before;

    assert_int_equal(stat(w.config, &before), 0);
    append("[tradelock]");
    append(setting);
    kill(w.worker, SIGHUP);
    wait_for(w.log, words, 1);
    assert_int_equal(truncate(w.config, before.st_size), 0);
}

static void end_worker(void)
{
    int status;

    kill(w.worker, SIGTERM);
    assert_int_equal(waitpid(w.worker, &status, 0), w.worker);
    w.worker = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Each line, of which there are so many at least. */
static void assert_json(const char *path, unsigned least)
{
    char line[2048];
    unsigned count = 0;
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    for (; fgets(line, sizeof line, file) != NULL; count++) {
        json_t *read = json_loads(line, 0, NULL);

        if (read == NULL || json_object_get(read, "at") == NULL)
            fail_msg("%s: %s", path, line);
        json_decref(read);
    }
    fclose(file);
    assert_in_range(count, least, UINT32_MAX);
}

TEST(test_lines_are_json)
{
    json_t *line;

    start_worker_anew(0, 1);
    no_answers("J2");
    line = json_loads(first_line("has been failing for"), 0, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "level")), "ALARM");
    assert_string_equal(json_string_value(json_object_get(line, "program")), "tradelock-worker");
    assert_int_equal(json_string_value(json_object_get(line, "at"))[10], 'T');
    json_decref(line);
    /* So are its own lines, those of settings that are bad, and what it prints to standard output. */
    with_settings("poison=many", "the settings were not read anew, the old ones stay");
    with_settings("poison=4", "the settings were read anew");
    end_worker();
    assert_json(w.log, 4);
    assert_json(w.said, 4); /* ready, twice, and what each counted */
    start_worker_anew(1, 1);
    no_answers("J3");
    assert_int_equal(strncmp(first_line("has been failing for"), "<2>{", 4), 0);
    start_worker_anew(0, 0);
}

/* The server is away for a while: no line each second. */
TEST(test_a_server_is_away_and_back)
{
    house_leave(&w.h);
    server_kill9(w.own);
    wait_for(w.log, "a heartbeat was not confirmed", 1);
    wait_for(w.log, "claiming due work fails since now", 1);
    pause_ms(1500);
    server_restart(w.own);
    wait_for(w.log, "the server is back after", 1);
    wait_for(w.log, "due work is claimed again, after", 1);
    assert_int_equal(count_in(w.log, "a heartbeat was not confirmed"), 1);
    assert_int_equal(count_in(w.log, "claiming due work fails since now"), 1);
    assert_int_equal(count_in(w.log, "the server is back after"), 1);
}

/* Bad settings leave the old ones in force; good ones are worked with by the same process. */
TEST(test_settings_are_read_anew)
{
    with_settings("poison=many", "the settings were not read anew, the old ones stay");
    with_settings("poison=4", "the settings were read anew");
    wait_for(w.said, "ready", 2);
    end_worker();
}

TESTS_OF(worker_log, set_up, tear_down)
