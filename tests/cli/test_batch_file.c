/* A file of withdrawals is a batch: the sample service pays it, is run again with the same file,
 * and `ls --batch` tells how far it is.  Nothing is paid twice. */
#include "command.h"

#include "workflows/house.h"

#include "workflows/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 12

static house self;
static char file[] = "/tmp/tl-batch-file.XXXXXX";

static int set_up(void **state)
{
    const int descriptor = mkstemp(file);

    (void)state;
    assert_true(descriptor >= 0);
    close(descriptor);
    house_open(&self, WITHDRAW_IDEMPOTENT, NULL, NULL);
    house_account(&self, "C1", 100000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    house_close(&self);
    unlink(file);
    return 0;
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
             "'%s/bin/tradelock-withdraw' --config '%s' --channel-url %s --batch %s '%s' "
             ">/dev/null 2>&1",
             getenv("TL_BUILD_DIR"), database_option_file(self.db), self.url, batch, file);
    status = system(line);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_batch(const char *words)
{
    output *o = RUN("ls", "--batch", "payroll 11/2026", "--config", database_option_file(self.db));

    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static void test_the_same_file_again_resumes_it(void **state)
{
    (void)state;
    /* The first run ended after five lines. */
    write_lines(5);
    assert_int_equal(run_file("'payroll 11/2026'"), 0);
    expect_batch("\nbatch payroll 11/2026: complete, 5 trades\n"
                 "  5 succeeded: 500 EUR (minor units)\n");
    write_lines(LINES);
    house_rule(&self, "{\"kind\":\"drop_after\",\"endpoint\":\"pay\",\"count\":3}");
    (void)run_file("'payroll 11/2026'");
    expect_batch("\nbatch payroll 11/2026: not complete, 3 of 12 open\n"
                 "  3 in doubt: 300 EUR (minor units)\n  9 succeeded: 900 EUR (minor units)\n");
    house_work(&self, 2, HOUSE_PATIENCE_MS);
    assert_int_equal(run_file("'payroll 11/2026'"), 0);
    expect_batch("\nbatch payroll 11/2026: complete, 12 trades\n"
                 "  12 succeeded: 1200 EUR (minor units)\n");
    house_books(&self, LINES);
}

static void test_a_batch_that_is_none(void **state)
{
    const int64_t before = database_number(self.sql, "SELECT COUNT(*) FROM trade_lock");

    (void)state;
    write_lines(LINES + 1);
    assert_int_equal(run_file("\"$(printf 'a\\tb')\""), 2);
    assert_int_equal(run_file("''"), 2);
    assert_int_equal(database_number(self.sql, "SELECT COUNT(*) FROM trade_lock"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_file_again_resumes_it),
        cmocka_unit_test(test_a_batch_that_is_none),
    };

    return server_run_tests(tests, set_up, tear_down);
}
