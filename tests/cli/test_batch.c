/* Lists of a batch, with its totals, and by the channel's reference; what trades say of
 * themselves, in every form. */
#include "command.h"

#include "support/crew.h"
#include "support/theme.h"
#include "trade_lock/fixture.h"

#include <tradelock/admin.h>

#include <limits.h>
#include <stdatomic.h>

#define HOUR_MS 3600000
#define MOVING 300
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static fixture f;
static const char *config;

#define LS(...) RUN("ls", "--json", "--config", config, __VA_ARGS__)
#define LINES(...) RUN("ls", "--config", config, __VA_ARGS__)

FIXTURE(set_up)
{
    fixture_open(&f, "janitor=0\ncommit_ms=1s\n");
    config = database_option_file(f.db);
}

FIXTURE(tear_down)
{
    fixture_close(&f);
}

FIXTURE(clear)
{
    database_run(f.sql, "TRUNCATE trade_lock; TRUNCATE trade_lock_past");
}

struct trade {
    const char *serial, *cust, *batch;
    int64_t minor;
    const char *currency;
};

static tl_lock *held(const struct trade *trade)
{
    tl_lock_options options = sync_options("pay");

    options.amount_minor = trade->minor;
    options.currency = trade->currency;
    options.batch = trade->batch;
    options.traceparent = TRACE;
    return granted(f.client, trade->serial, trade->cust, &options);
}

static void end(tl_lock *lock, const tl_ending *ending, tl_status expected)
{
    assert_status(tl_lock_finish(lock, ending), expected);
    tl_lock_free(lock);
}

static void make_paid(const struct trade *trade, const char *ref)
{
    tl_ending paid = TL_ENDING_INIT;

    paid.outcome = TL_OUTCOME_SUCCESS;
    paid.channel_ref = ref;
    end(held(trade), &paid, TL_SUCCEEDED);
}

static void make_doubtful(const struct trade *trade)
{
    tl_ending unknown = TL_ENDING_INIT;

    unknown.next_run_ms = HOUR_MS;
    end(held(trade), &unknown, TL_IN_DOUBT);
}

static void make_declined(const struct trade *trade)
{
    tl_ending declined = TL_ENDING_INIT;

    declined.outcome = TL_OUTCOME_FAILURE;
    declined.proof = TL_PROOF_DECLINED;
    end(held(trade), &declined, TL_FAILED);
}

/* The serial numbers, in the order in which they are listed. */
static void expect_rows(output *o, const char *expected)
{
    json_t *document, *row;
    char got[512] = "";
    size_t i;

    EXPECT_CODE(o, 0);
    document = output_json(o);
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        assert_string_equal(json_string_value(json_object_get(row, "lane")), "sync");
        strcat(strcat(got, i > 0 ? " " : ""), json_string_value(json_object_get(row, "serial_no")));
    }
    assert_string_equal(got, expected);
    json_decref(document);
    output_free(o);
}

static void make_payroll(void)
{
    make_paid(&(struct trade){"W1", "C1", "payroll", 9000000000000000000, "EUR"}, "BANK-1");
    make_paid(&(struct trade){"W2", "C2", "payroll", 9000000000000000000, "EUR"}, "BANK-2");
    make_paid(&(struct trade){"W3", "C3", "payroll", 70, "USD"}, NULL);
    make_declined(&(struct trade){"W4", "C4", "payroll", 5, "EUR"});
    make_doubtful(&(struct trade){"W5", "C5", "payroll", 12, "EUR"});
    make_paid(&(struct trade){"W6", "C6", "payroll", 0, NULL}, NULL);
    make_paid(&(struct trade){"X1", "C1", "Payroll", 1, "EUR"}, NULL);
    make_paid(&(struct trade){"X2", "C1", "payroll ", 1, "EUR"}, NULL);
    make_paid(&(struct trade){"X3", "C1", NULL, 1, "EUR"}, NULL);
}

static void end_the_doubtful(void)
{
    tl_lock_options retry = retry_options();
    tl_ending paid = TL_ENDING_INIT;

    paid.outcome = TL_OUTCOME_SUCCESS;
    database_run(f.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6), rev = rev + 1 WHERE "
                        "serial_no = 'W5' AND lane = 'R'");
    end(granted(f.client, "W5", "C5", &retry), &paid, TL_SUCCEEDED);
}

TEST_IN(test_a_batch_and_its_totals, clear, NULL)
{
    make_payroll();
    expect_rows(LS("--batch", "payroll"), "W5 W6 W4 W3 W2 W1");
    expect_rows(LS("--batch", "Payroll"), "X1");
    expect_rows(LS("--batch", "payroll "), "X2");
    expect_rows(LS("--batch", "payroll", "--in-doubt"), "W5");
    expect_rows(LS("--batch", "payroll", "--status", "Y", "--currency", "EUR"), "W2 W1");
    expect_rows(LS("--batch", "payroll", "--cust", "C4"), "W4");
    expect_rows(LS("--batch", "payroll", "--prefix", "W"), "W6 W5 W4 W3 W2 W1");
    expect_rows(LS("--batch", "payroll", "--serial", "X1"), "");
    expect_rows(LS("--batch", "no such batch"), "");
    /* The totals are those of the whole batch, however few rows are listed. */
    ENDS(LINES("--batch", "payroll", "--limit", "2"), 0,
         "\nbatch payroll: not complete, 1 of 6 open\n"
         "  1 in doubt: 12 EUR (minor units)\n"
         "  1 failed: 5 EUR (minor units)\n"
         "  2 succeeded: 18000000000000000000 EUR (minor units)\n"
         "  1 succeeded: 70 USD (minor units)\n"
         "  1 succeeded, no amount told\n");
    end_the_doubtful();
    ENDS(LINES("--batch", "payroll"), ANY_CODE,
         "\nbatch payroll: complete, 6 trades\n  1 failed: 5 EUR (minor units)\n"
         "  3 succeeded: 18000000000000000012 EUR (minor units)\n");
    database_run(f.sql, "UPDATE trade_lock SET conflict = 1, rev = rev + 1 WHERE serial_no = 'W4'");
    ENDS(LS("--batch", "payroll"), ANY_CODE,
         "\"batch\": {\"name\": \"payroll\", \"complete\": false, \"trades\": 6, "
         "\"open\": 1, \"parts\": [{\"state\": \"failed\", \"conflict\": true, "
         "\"currency\": \"EUR\", \"sum_minor\": \"5\", \"trades\": 1}, ");
    ENDS(LS("--batch", "none"), ANY_CODE, "\"batch\": null");
}

static void now_of_server(char to[64])
{
    char *text =
        database_text(f.sql, "SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%%Y-%%m-%%dT%%T.%%f')");

    snprintf(to, 64, "%s", text);
    free(text);
}

TEST_IN(test_a_batch_as_it_was, clear, NULL)
{
    char before[64], then[64];

    now_of_server(before);
    make_payroll();
    now_of_server(then);
    end_the_doubtful();
    make_paid(&(struct trade){"W7", "C7", "payroll", 1, "EUR"}, NULL);
    ENDS(LINES("--batch", "payroll", "--as-of", then), 0,
         "\nbatch payroll: not complete, 1 of 6 open\n"
         "  1 in doubt: 12 EUR (minor units)\n");
    expect_rows(LS("--batch", "payroll", "--as-of", before), "");
    expect_rows(LS("--batch", "payroll", "--as-of", then, "--in-doubt"), "W5");
}

TEST_IN(test_by_the_channels_reference, clear, NULL)
{
    char then[64];
    output *o;

    make_paid(&(struct trade){"R1", "C1", NULL, 0, NULL}, "BANK-1");
    make_paid(&(struct trade){"R2", "C2", NULL, 0, NULL}, "BANK-1");
    make_paid(&(struct trade){"R3", "C3", NULL, 0, NULL}, "bank-1");
    make_paid(&(struct trade){"R4", "C4", NULL, 0, NULL}, "\xe2\x82\xac 4 of 2026");
    make_doubtful(&(struct trade){"W5", "C5", NULL, 0, NULL});
    now_of_server(then);
    expect_rows(LS("--ref", "BANK-1"), "R2 R1");
    expect_rows(LS("--ref", "BANK-1", "--cust", "C1"), "R1");
    expect_rows(LS("--ref", "\xe2\x82\xac 4 of 2026"), "R4");
    expect_rows(LS("--ref", "BANK-"), "");
    expect_rows(LS("--ref", "BANK-1", "--in-doubt"), "");
    database_run(f.sql, "UPDATE trade_lock SET channel_ref = 'LATE-5', rev = rev + 1 WHERE "
                        "serial_no = 'W5' AND lane = 'S'");
    expect_rows(LS("--ref", "LATE-5"), "W5");
    /* It is found by the name that it got later. */
    expect_rows(LS("--ref", "LATE-5", "--as-of", then), "W5");
    o = LINES("--ref", "BANK-1", "--limit", "1");
    EXPECT_WORDS(o, "R2");
    assert_non_null(strstr(o->err, "--after "));
    output_free(o);
}

static struct {
    tl_lock *lock[MOVING];
    atomic_int ended;
} moving;

static int add_part(void *context, const tl_batch_part *part)
{
    uint64_t *trades = context;

    *trades += part->money.trades;
    return 0;
}

static uint64_t count_batch(const char *batch, unsigned most, tl_status expected)
{
    uint64_t trades = 0;

    CREW_STATUS(tl_batch(f.other, batch, 0, most, add_part, &trades), expected);
    return trades;
}

static void end_or_count(void *context, int number)
{
    tl_ending paid = TL_ENDING_INIT;

    (void)context;
    paid.outcome = TL_OUTCOME_SUCCESS;
    if (number == 0) {
        for (int i = 0; i < MOVING; i++)
            CREW_STATUS(tl_lock_finish(moving.lock[i], &paid), TL_SUCCEEDED);
        moving.ended = 1;
        return;
    }
    while (!moving.ended)
        CREW_CHECK(count_batch("moving", MOVING, TL_OK) == MOVING);
}

/* A trade that ends while its batch is counted is counted once. */
TEST_IN(test_a_batch_that_is_paid_meanwhile, clear, NULL)
{
    for (int i = 0; i < MOVING; i++) {
        char serial[8];

        snprintf(serial, sizeof serial, "M%d", i);
        moving.lock[i] = held(&(struct trade){serial, "C1", "moving", 1, "EUR"});
    }
    crew_threads(2, end_or_count, NULL);
    for (int i = 0; i < MOVING; i++)
        tl_lock_free(moving.lock[i]);
}

/* What a count reads is bounded, whether the trades are open or paid. */
TEST_IN(test_a_batch_that_is_too_large, clear, NULL)
{
    database_run(f.sql, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                        "thread_no, token, fence, rev, proof, batch, created_at, updated_at) "
                        "SELECT 'C1', CONCAT('L', seq), 'WITHDRAW', 'S', 'Y', 'ask', UUID(), seq, "
                        "seq, seq, '-', 'large', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
                        "FROM seq_1_to_7000");
    assert_int_equal(count_batch("large", 0, TL_OK), 7000);
    assert_int_equal(count_batch("large", 7000, TL_OK), 7000);
    assert_int_equal(count_batch("large", 7001, TL_OK), 7000);
    assert_int_equal(count_batch("large", UINT_MAX, TL_OK), 7000);
    assert_int_equal(count_batch("large", 6999, TL_OVERLOADED), 0);
    assert_non_null(strstr(tl_error_message(), "more than 6999 trades are of this batch"));
    database_run(f.sql, "SET GLOBAL userstat = 1; FLUSH USER_STATISTICS");
    assert_int_equal(count_batch("large", 100, TL_OVERLOADED), 0);
    assert_true(database_number(f.sql, "SELECT SUM(rows_read) FROM "
                                       "information_schema.user_statistics") < 2000);
    database_run(f.sql, "SET GLOBAL userstat = 0");
}

/* Page by page comes what one long list has. */
TEST_IN(test_pages_of_a_batch, clear, NULL)
{
    char next[TL_NEXT_TEXT] = "";
    size_t rows = 0, i = 0;

    database_run(f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, proof, batch, channel_ref, created_at, updated_at) "
                 "SELECT CONCAT('C', seq), CONCAT('S', seq DIV 3), 'WITHDRAW', 'S', "
                 "IF(seq MOD 4 = 0, 'P', 'Y'), 'ask', UUID(), seq, seq, seq, '-', 'many', 'same', "
                 "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM seq_1_to_500");
    do {
        output *o = next[0] != '\0' ? LS("--batch", "many", "--limit", "7", "--after", next)
                                    : LS("--batch", "many", "--limit", "7");
        json_t *document = output_json(o), *row;
        const char *on = json_string_value(json_object_get(document, "next"));

        EXPECT_CODE(o, 0);
        json_array_foreach(json_object_get(document, "rows"), i, row)
        {
            /* What is open comes first. */
            assert_string_equal(json_string_value(json_object_get(row, "status")),
                                rows + i < 125 ? "P" : "Y");
        }
        rows += i;
        snprintf(next, sizeof next, "%s", on != NULL ? on : "");
        json_decref(document);
        output_free(o);
    } while (next[0] != '\0');
    assert_int_equal(rows, 500);
}

TEST_IN(test_every_form_tells, clear, NULL)
{
    output *o;

    make_paid(&(struct trade){"W1", "C1", "a, \"b\"", 5, "EUR"}, "BANK-1");
    o = LINES("--batch", "a, \"b\"", "-o", "csv", "--columns", "serial,batch,traceparent");
    assert_string_equal(o->out, "serial,batch,traceparent\nW1,\"a, \"\"b\"\"\"," TRACE "\n");
    output_free(o);
    o = LINES("-o", "csv");
    EXPECT_WORDS(o, ",holder,batch,traceparent\n");
    output_free(o);
    ENDS(LS("--serial", "W1"), ANY_CODE, "\"batch\": \"a, \\\"b\\\"\"",
         "\"traceparent\": \"" TRACE "\"");
    ENDS(RUN("show", "W1", "C1", "WITHDRAW", "--config", config), 0, "a, \"b\"\n", TRACE "\n");
}

#define SIXTEEN "0123456789abcdef"

TEST_IN(test_bad_names, clear, NULL)
{
    static const char *const bad[][2] = {
        {"", "batch: is empty"},
        {SIXTEEN SIXTEEN SIXTEEN SIXTEEN "x", "batch: is longer than 64 bytes"},
        {"a\nb", "batch: byte 2 is a control character (0x0a)"},
        {"a\xff", "batch: byte 2 is not UTF-8 (0xff)"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT_USAGE(LINES("--batch", bad[i][0]), bad[i][1]);
    }
    EXPECT_USAGE(LINES("--ref", ""), "channel reference: is empty");
    EXPECT_USAGE(LINES("--ref", "a\xff"), "channel reference: byte 2 is not UTF-8 (0xff)");
}

TESTS_OF(batch, set_up, tear_down)
