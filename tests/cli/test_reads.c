/* What commands have the server read of a long table: as many rows as they show, or nearly. */
#include "operators.h"
#include "support/theme.h"

#define OF_TABLE 20000

/* Trades that ended an hour ago, each after an attempt in the retry lane, whose row stays behind. */
static void make_finished(void)
{
    static const char *const rows[][4] = {
        {"READ", "S", "Y", "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR - INTERVAL seq SECOND"},
        {"READ_RETRY", "R", "Y", "NULL"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        database_run(operators.h.sql,
                     "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                     "thread_no, token, fence, rev, session_id, next_run_at, created_at, "
                     "updated_at, amount_minor, currency) SELECT CONCAT('C', seq MOD 100), seq, "
                     "'%s', '%s', '%s', 'ask', UUID(), 'x', 1, 1, UUID(), %s, UTC_TIMESTAMP(6) - "
                     "INTERVAL 1 HOUR - INTERVAL seq SECOND, UTC_TIMESTAMP(6), 100, 'EUR' FROM "
                     "seq_1_to_%d",
                     rows[i][0], rows[i][1], rows[i][2], rows[i][3], OF_TABLE / 2);
    database_run(operators.h.sql,
                 "REPLACE INTO trade_lock_low_water VALUES ('READ', UTC_TIMESTAMP(6))");
}

/* Fails the test if the command reads so many rows. */
static void expect_reads(const char *const *words, long long most)
{
    const char *arguments[12] = {NULL};
    size_t count = 0;
    long long rows;
    output *o;

    while (words[count] != NULL) {
        arguments[count] = words[count];
        count++;
    }
    arguments[count++] = "--config";
    arguments[count] = operators.config[BOB];
    rows = statistic(operators.user[BOB], "rows_read");
    o = command_run(NULL, arguments);
    EXPECT_CODE(o, 0);
    output_free(o);
    rows = statistic(operators.user[BOB], "rows_read") - rows;
    if (rows >= most)
        fail_msg("%s %s reads %lld rows", words[0], words[1], rows);
}

#define READS(most, ...) expect_reads((const char *const[]){__VA_ARGS__, NULL}, most)

TEST(test_commands_read_few)
{
    make_finished();
    database_run(operators.h.sql, "SET GLOBAL userstat = 1");
    READS(1000, "ls", "--until", "30d");
    READS(2000, "ls", "--until", "2h");
    READS(1000, "ls", "--idle", "30d");
    READS(2000, "ls", "--amount-over", "1,000 EUR", "--limit", "2");
    READS(2000, "report", "--since", "70m", "--until", "65m");
    READS(1000, "purge", "--older", "400d", "--dry-run");
    database_run(operators.h.sql, "SET GLOBAL userstat = 0");
}

TESTS_OF(reads, operators_set_up, operators_tear_down)
