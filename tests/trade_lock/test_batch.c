/* The batch and the trace context that a request names: on the row, in views and in the statements
 * of many; never a reason to grant or refuse. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <limits.h>
#include <stdatomic.h>

#define THREADS 32
#define MOVING 300
#define ROUNDS 8
#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define OTHER_TRACE "00-11111111111111111111111111111111-2222222222222222-00"
#define SIXTEEN "0123456789abcdef"
#define LONGEST SIXTEEN SIXTEEN SIXTEEN SIXTEEN

FIXTURE_OF_ALL(NULL)

static tl_lock_options of_batch(const char *batch, const char *traceparent)
{
    tl_lock_options options = sync_options("100 EUR");

    options.batch = batch;
    options.traceparent = traceparent;
    return options;
}

static void assert_said(const tl_view *view, const char *batch, const char *traceparent)
{
    assert_string_equal(view->batch, batch);
    assert_string_equal(view->traceparent, traceparent);
}

struct said {
    const char *batch, *traceparent;
};

static int compare(void *context, const tl_view *view)
{
    const struct said *said = context;

    assert_said(view, said->batch, said->traceparent);
    return 0;
}

static void row_says(const char *serial, tl_lane lane, const char *batch, const char *traceparent)
{
    struct said said = {batch, traceparent};
    tl_key key = {serial, "c1", "WITHDRAW"};

    assert_status(tl_show(f.other, &key, lane, compare, &said), TL_OK);
}

TEST(test_the_row_keeps_what_the_first_ask_said)
{
    static const struct said cases[] = {{"b", TRACE},
                                        {LONGEST, ""},
                                        {"", OTHER_TRACE},
                                        {"a blank behind ", TRACE},
                                        {"\xe2\x82\xac", ""}};
    tl_lock_options first, later = of_batch("other", OTHER_TRACE), silent = of_batch(NULL, NULL);
    tl_status status;
    tl_lock *lock, *again;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char batch[TL_BATCH_MAX + 1], trace[TL_TRACEPARENT + 1];
        const struct text serial = text_of("k%zu", i);

        strcpy(batch, cases[i].batch);
        strcpy(trace, cases[i].traceparent);
        first = of_batch(batch[0] != '\0' ? batch : NULL, trace[0] != '\0' ? trace : NULL);
        lock = lock_new(f.client, serial.is, "c1", &first);
        memset(batch, 'X', sizeof batch - 1); /* both were copied */
        memset(trace, 'X', sizeof trace - 1);
        assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_said(tl_lock_view(lock), cases[i].batch, cases[i].traceparent);
        row_says(serial.is, TL_LANE_SYNC, cases[i].batch, cases[i].traceparent);
        again = ask(f.other, serial.is, "c1", &later, &status);
        assert_status(status, TL_BUSY);
        assert_said(tl_lock_view(again), cases[i].batch, cases[i].traceparent);
        tl_lock_free(again);
        end_paid(lock);
        again = ask(f.other, serial.is, "c1", &silent, &status);
        assert_status(status, TL_ALREADY_DONE);
        tl_lock_free(again);
        row_says(serial.is, TL_LANE_SYNC, cases[i].batch, cases[i].traceparent);
    }
    lock = granted(f.client, "silent", "c1", &silent);
    assert_said(tl_lock_view(lock), "", "");
    row_says("silent", TL_LANE_SYNC, "", "");
    database_expect(
        f.sql, 1,
        "SELECT batch IS NULL AND traceparent IS NULL FROM trade_lock WHERE serial_no = 'silent'");
    end_paid(lock);
}

TEST(test_the_retry_lane_and_a_reclaim_keep_it)
{
    tl_lock_options options = of_batch("b", TRACE), retry = retry_options();
    tl_ending failed = TL_ENDING_INIT;
    tl_lock *lock = granted(f.client, "r", "c1", &options);

    end_in_doubt(lock);
    row_says("r", TL_LANE_RETRY, "", "");
    lock = granted(f.other, "r", "c1", &retry);
    assert_said(tl_lock_view(lock), "b", TRACE);
    failed.outcome = TL_OUTCOME_FAILURE;
    failed.proof = TL_PROOF_DECLINED;
    failed.retryable = 1;
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    options = of_batch("other", OTHER_TRACE);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = granted(f.client, "r", "c1", &options);
    assert_said(tl_lock_view(lock), "b", TRACE);
    row_says("r", TL_LANE_SYNC, "b", TRACE);
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
}

TEST(test_what_is_none_is_refused)
{
    static const struct {
        const char *batch, *words;
    } bad[] = {
        {"", "batch: is empty"},
        {LONGEST "x", "batch: is longer than 64 bytes"},
        {"a\tb", "batch: byte 2 is a control character (0x09)"},
        {"a\x7f", "batch: byte 2 is a control character (0x7f)"},
        {"a\xc2\x85", "batch: byte 2 is a control character"},
        {"a\xff", "batch: byte 2 is not UTF-8 (0xff)"},
        {"a\xc3", "batch: byte 2 is not UTF-8 (0xc3)"},
    };
    const int before = (int)database_number(f.sql, "SELECT COUNT(*) FROM trade_lock");
    tl_lock_options repeatable = of_batch("b", NULL);
    tl_key key = {"bad", "c1", "WITHDRAW"};
    tl_lock *lock = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tl_lock_options options = of_batch(bad[i].batch, NULL);

        assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
        assert_null(lock);
        if (strstr(tl_error_message(), bad[i].words) == NULL)
            fail_msg("%zu: %s", i, tl_error_message());
    }
    repeatable.flags = TL_ASK_REPEATABLE;
    repeatable.channel = NULL;
    assert_status(tl_lock_new(&lock, f.client, &key, &repeatable), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "so it has no batch"));
    database_expect(f.sql, before, "SELECT COUNT(*) FROM trade_lock");
}

struct heard {
    unsigned lines;
    tl_level level;
    char serial[TL_SERIAL_MAX + 1], message[256], trace_id[40];
};

static void hear(void *context, const tl_log_line *line)
{
    struct heard *heard = context;

    if (strstr(line->message, "traceparent") == NULL)
        return;
    heard->lines++;
    heard->level = line->level;
    snprintf(heard->serial, sizeof heard->serial, "%s", line->serial_no);
    snprintf(heard->message, sizeof heard->message, "%s", line->message);
    snprintf(heard->trace_id, sizeof heard->trace_id, "%s", line->trace_id);
}

/* A header that others send is no reason not to pay.  The log says so once; none of it is shown
 * there, and none of it is kept. */
TEST(test_a_trace_that_is_none_is_left_out)
{
    static const char *const none[] = {
        "",
        "00-XYZ",
        TRACE "0",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319cab7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331x01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "00-0af7651916cd43dd8448\neb211c80319-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff-b7ad6b7169203331-01",
    };
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    struct heard heard;
    tl_client *client = NULL;

    options.config_file = database_option_file(f.db);
    options.log = hear;
    options.log_context = &heard;
    assert_status(tl_client_open(&client, &options), TL_OK);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        tl_lock_options traced = of_batch("b", none[i]);
        tl_lock *lock;

        memset(&heard, 0, sizeof heard);
        const struct text serial = text_of("t%zu", i);
        lock = granted(client, serial.is, "c1", &traced);
        assert_string_equal(tl_error_message(), "");
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        assert_said(tl_lock_view(lock), "b", "");
        tl_lock_free(lock);
        row_says(serial.is, TL_LANE_SYNC, "b", "");
        assert_int_equal(heard.lines, 1);
        assert_int_equal(heard.level, TL_WARNING);
        assert_string_equal(heard.serial, serial.is);
        assert_string_equal(heard.trace_id, "");
        assert_null(strpbrk(heard.message, "\n\xff"));
        /* Nor does a line of the log that is about another key. */
        tl_work_trace(none[i]);
        tl_client_log(client, TL_INFO, &(tl_key){serial.is, "c1", "WITHDRAW"}, 0, "traceparent");
        assert_string_equal(heard.trace_id, "");
        tl_work_trace(NULL);
    }
    tl_client_close(client);
}

/* Asks that name a batch and such that do not share statements with each other and with endings. */
static void ask_in_crowd(void *context, int number)
{
    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        tl_lock_options options = of_batch(number % 2 ? "crowd" : NULL, number % 3 ? TRACE : NULL);
        tl_status status;
        tl_lock *lock;

        if (number % 4 < 2)
            options.channel = NULL;
        lock = ask(f.client, text_of("g%d-%d", number, round).is, "c1", &options, &status);
        CREW_STATUS(status, TL_GRANTED);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

TEST(test_in_groups)
{
    crew_threads(THREADS, ask_in_crowd, NULL);
    for (int number = 0; number < THREADS; number++)
        for (int round = 0; round < ROUNDS; round++) {
            row_says(text_of("g%d-%d", number, round).is, TL_LANE_SYNC, number % 2 ? "crowd" : "",
                     number % 3 ? TRACE : "");
        }
}

/* A batch or trace context that somebody types is a step of theirs. */
TEST(test_by_hand_it_is_on_record)
{
    tl_lock_options options = of_batch("b", TRACE);
    end_paid(granted(f.client, "hand", "c1", &options));
    database_run(f.sql, "UPDATE trade_lock SET batch = 'other' WHERE serial_no = 'hand'");
    database_run(f.sql, "UPDATE trade_lock SET traceparent = NULL WHERE serial_no = 'hand'");
    database_expect(
        f.sql, 2,
        "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = 'hand' AND step = 'by hand'");
    assert_log_whole(&f);
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
TEST(test_a_batch_that_is_paid_meanwhile)
{
    for (int i = 0; i < MOVING; i++) {
        tl_lock_options options = of_batch("moving", NULL);

        moving.lock[i] = granted(f.client, text_of("M%d", i).is, "C1", &options);
    }
    crew_threads(2, end_or_count, NULL);
    for (int i = 0; i < MOVING; i++)
        tl_lock_free(moving.lock[i]);
}

/* What a count reads is bounded, whether the trades are open or paid. */
TEST(test_a_batch_that_is_too_large)
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

TESTS_OF(batch, open_all, close_all)
