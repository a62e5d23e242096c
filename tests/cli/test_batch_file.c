/* A file of withdrawals is a batch: the sample service pays it, is run again with the same file,
 * and `ls --batch` tells how far it is.  Nothing is paid twice. */
#include "command.h"

#include "workflows/house.h"

#include "support/theme.h"

#include <signal.h>
#include <sys/wait.h>

#define LINES 12

static house self;
static char file[] = "/tmp/tl-batch-file.XXXXXX";

FIXTURE(set_up)
{
    const int descriptor = mkstemp(file);

    assert_true(descriptor >= 0);
    close(descriptor);
    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    house_account(&self, "C1", 100000);
}

FIXTURE(tear_down)
{
    house_close(&self);
    unlink(file);
}

static void write_lines(unsigned count)
{
    FILE *lines = fopen(file, "we");

    assert_non_null(lines);
    fputs("serial_no,cust_no,op,amount_minor,currency,payee\n", lines);
    for (unsigned i = 1; i <= count; i++)
        fprintf(lines, "F%02u,C1," WITHDRAW_OP ",100,EUR,Anna\n", i);
    assert_int_equal(fclose(lines), 0);
}

/* Runs the service, with a word for the shell as the batch; its exit code. */
static int run_file(const char *batch)
{
    char line[1024];
    int status;

    snprintf(line, sizeof line,
             "'%s/bin/tradelock-withdraw' --config '%s' --batch %s '%s' "
             ">/dev/null 2>&1",
             getenv("TL_BUILD_DIR"), database_option_file(self.db), batch, file);
    status = system(line);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_batch(const char *words)
{
    ENDS(RUN("ls", "--batch", "payroll 11/2026", "--config", database_option_file(self.db)), 0,
         words);
}

TEST(test_the_same_file_again_resumes_it)
{
    /* The first run ended after five lines. */
    write_lines(5);
    assert_int_equal(run_file("'payroll 11/2026'"), 0);
    expect_batch("\nbatch payroll 11/2026: complete, 5 trades\n"
                 "  5 succeeded: 5.00 EUR\n");
    write_lines(LINES);
    house_rule(&self, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":3}");
    (void)run_file("'payroll 11/2026'");
    expect_batch("\nbatch payroll 11/2026: not complete, 3 of 12 open\n"
                 "  3 in doubt: 3.00 EUR\n  9 succeeded: 9.00 EUR\n");
    house_work(&self, 2, PATIENCE_MS);
    assert_int_equal(run_file("'payroll 11/2026'"), 0);
    expect_batch("\nbatch payroll 11/2026: complete, 12 trades\n"
                 "  12 succeeded: 12.00 EUR\n");
    house_books(&self, LINES);
}

TEST(test_a_batch_that_is_none)
{
    const int64_t before = database_number(self.sql, "SELECT COUNT(*) FROM trade_lock");

    write_lines(LINES + 1);
    assert_int_equal(run_file("\"$(printf 'a\\tb')\""), 2);
    assert_int_equal(run_file("''"), 2);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock"), before);
}

/* Quotes, brackets and words as a line has them itself; 64 bytes, the longest that there is. */
#define HOSTILE "a\"b\" 'c' $(d) \\ %s %n ]} thread), trace 0, batch xxxxxxxxxGr\xc3\xbc\xc3\x9f"

/* Starts `program ARGUMENT...` with its log in this file; the shell's words. */
static pid_t start(const char *log, const char *words)
{
    char line[1024];
    pid_t child;

    snprintf(line, sizeof line, "exec '%s/bin/'%s --config '%s' --verbose >/dev/null 2>'%s'",
             getenv("TL_BUILD_DIR"), words, database_option_file(self.db), log);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return child;
}

static int end_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* How many lines of the file are about this trade.  Each is one line, and ends with these words, in
 * its brackets; those of other trades do not. */
static unsigned lines_about(const char *log, const char *serial, const char *ending)
{
    FILE *lines = fopen(log, "re");
    char line[2048], about[64];
    unsigned count = 0;

    assert_non_null(lines);
    snprintf(about, sizeof about, " (%s of ", serial);
    while (fgets(line, sizeof line, lines) != NULL) {
        const size_t size = strlen(line), end = strlen(ending);

        assert_true(size > 1 && line[size - 1] == '\n');
        if (strncmp(line, "20", 2) != 0 && strncmp(line, "tradelock-", 10) != 0)
            fail_msg("this is neither a line of the log nor the program's own: %s", line);
        if (strstr(line, about) == NULL)
            continue;
        count++;
        if (size <= end || strcmp(line + size - end, ending) != 0)
            fail_msg("it does not end with '%s': %s", ending, line);
    }
    assert_int_equal(fclose(lines), 0);
    return count;
}

/* Each line about a trade, of the service and of a worker, says its amount and its batch, whatever
 * the batch is called; of one that named neither it says nothing. */
TEST(test_each_line_tells_amount_and_batch)
{
    static const char ending[] = ", amount 1.00 EUR, batch " HOSTILE "]\n";
    char service_log[64], worker_log[64], words[512];
    tl_answer answer = TL_ANSWER_INIT;
    char *log_no;
    pid_t worker;
    FILE *lines;

    snprintf(service_log, sizeof service_log, "%s.service", file);
    snprintf(worker_log, sizeof worker_log, "%s.worker", file);
    assert_int_equal(strlen(HOSTILE), TL_BATCH_MAX);
    house_rule(&self, "{\"kind\":\"drop_before\",\"endpoint\":\"pay\",\"count\":2}");
    self.says_nothing = 1;
    assert_status(house_run(&self, "SILENT", "C1", 100, 0, &answer), TL_IN_DOUBT);
    self.says_nothing = 0;
    tl_answer_clear(&answer);
    lines = fopen(file, "we");
    assert_non_null(lines);
    fputs("serial_no,cust_no,op,amount_minor,currency,payee\n"
          "TOLD,C1," WITHDRAW_OP ",100,EUR,Anna\n",
          lines);
    assert_int_equal(fclose(lines), 0);
    assert_int_equal(setenv("TL_TEST_BATCH", HOSTILE, 1), 0);
    snprintf(words, sizeof words, "tradelock-withdraw --batch \"$TL_TEST_BATCH\" '%s'", file);
    (void)end_of(start(service_log, words));
    worker = start(worker_log,
                   "tradelock-worker --plugin \"$TL_BUILD_DIR/lib/withdraw.so\" --idle-ms 50");
    AWAIT_WHILE(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock WHERE status = 'P'") >
                0);
    assert_int_equal(kill(worker, SIGTERM), 0);
    assert_int_equal(end_of(worker), 0);
    assert_true(lines_about(service_log, "TOLD", ending) >= 3);
    assert_true(lines_about(worker_log, "TOLD", ending) >= 5);
    log_no = database_text(self.sql, "SELECT first_log_no FROM trade_lock WHERE "
                                     "serial_no = 'SILENT' AND lane = 'S'");
    assert_non_null(log_no);
    snprintf(words, sizeof words, ", work %s]\n", log_no);
    free(log_no);
    assert_true(lines_about(worker_log, "SILENT", words) >= 5);
    unlink(service_log);
    unlink(worker_log);
}

TESTS_OF(batch_file, set_up, tear_down)
