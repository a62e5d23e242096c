/* What a request says of its trade, the amount, the batch and the trace context: on the row, in views
 * and in the statements of many; never a reason to grant or refuse. */
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

/* As a view tells it: "" where nothing was said. */
struct said {
    int64_t amount_minor;
    const char *currency, *batch, *traceparent;
};

static const struct said nothing = {0, "", "", ""}, usual = {1050, "EUR", "b", TRACE},
                         other = {7, "USD", "other", OTHER_TRACE};

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

static tl_lock_options options_of(const struct said *said)
{
    tl_lock_options options = sync_options("100 EUR");

    options.amount_minor = said->amount_minor;
    options.currency = or_null(said->currency);
    options.batch = or_null(said->batch);
    options.traceparent = or_null(said->traceparent);
    return options;
}

static void assert_said(const tl_view *view, const struct said *said)
{
    assert_true(view->amount_minor == said->amount_minor);
    assert_string_equal(view->currency, said->currency);
    assert_string_equal(view->batch, said->batch);
    assert_string_equal(view->traceparent, said->traceparent);
}

static int compare(void *context, const tl_view *view)
{
    assert_said(view, *(const struct said **)context);
    return 0;
}

static void row_says(const char *serial, tl_lane lane, const struct said *said)
{
    tl_key key = {serial, "c1", "WITHDRAW"};

    assert_status(tl_show(f.other, &key, lane, compare, &said), TL_OK);
}

/* Somebody else asks with this, is told `expected` and what the first ask said. */
static void ask_again(const char *serial, const struct said *with, tl_status expected,
                      const struct said *first)
{
    tl_lock_options options = options_of(with);
    tl_status status;
    tl_lock *lock = ask(f.other, serial, "c1", &options, &status);

    assert_status(status, expected);
    assert_said(tl_lock_view(lock), first);
    tl_lock_free(lock);
    row_says(serial, TL_LANE_SYNC, first);
}

TEST(test_the_row_keeps_what_the_first_ask_said)
{
    static const struct said cases[] = {
        {0, "EUR", "b", TRACE},         {1, "EUR", LONGEST, ""},
        {1050, "EUR", "", OTHER_TRACE}, {INT64_MAX, "EUR", "a blank behind ", TRACE},
        {0, "", "\xe2\x82\xac", ""},    {0, "", "", ""}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char currency[4], batch[TL_BATCH_MAX + 1], trace[TL_TRACEPARENT + 1];
        const struct said copy = {cases[i].amount_minor, strcpy(currency, cases[i].currency),
                                  strcpy(batch, cases[i].batch),
                                  strcpy(trace, cases[i].traceparent)};
        const struct text serial = text_of("k%zu", i);
        tl_lock_options first = options_of(&copy);
        tl_lock *lock = lock_new(f.client, serial.is, "c1", &first);

        memset(currency, 'X', 3); /* all were copied */
        memset(batch, 'X', sizeof batch - 1);
        memset(trace, 'X', sizeof trace - 1);
        assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_said(tl_lock_view(lock), &cases[i]);
        row_says(serial.is, TL_LANE_SYNC, &cases[i]);
        ask_again(serial.is, &other, TL_BUSY, &cases[i]);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        assert_said(tl_lock_view(lock), &cases[i]);
        tl_lock_free(lock);
        ask_again(serial.is, &nothing, TL_ALREADY_DONE, &cases[i]);
    }
    database_expect(f.sql, 1,
                    "SELECT batch IS NULL AND traceparent IS NULL FROM trade_lock WHERE "
                    "serial_no = 'k5'");
}

/* The moment of the making is known without reading the row. */
TEST(test_a_grant_tells_when_it_was_made)
{
    tl_lock *lock = granted(f.client, "made", "c1", SYNC);

    database_expect(f.sql, tl_lock_view(lock)->created_us,
                    "SELECT " DATABASE_MADE_REV " FROM trade_lock WHERE serial_no = 'made'");
    tl_lock_free(lock);
}

TEST(test_the_retry_lane_and_a_reclaim_keep_it)
{
    tl_lock_options options = options_of(&usual), retry = retry_options();
    tl_ending failed = {.version = TL_ENDING_VERSION,
                        .outcome = TL_OUTCOME_FAILURE,
                        .proof = TL_PROOF_DECLINED,
                        .retryable = 1};
    tl_lock *lock = granted(f.client, "r", "c1", &options);

    end_in_doubt(lock);
    row_says("r", TL_LANE_RETRY, &nothing);
    lock = granted(f.other, "r", "c1", &retry);
    assert_said(tl_lock_view(lock), &usual);
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    options = options_of(&other);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = granted(f.client, "r", "c1", &options);
    assert_said(tl_lock_view(lock), &usual);
    row_says("r", TL_LANE_SYNC, &usual);
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    /* Whoever names the fence is granted it without a read: it is not told the caller's own. */
    options.reclaim_epoch = 2;
    options.reclaim_fence = (uint64_t)database_number(
        f.sql, "SELECT fence FROM trade_lock WHERE serial_no = 'r' AND lane = 'S'");
    lock = granted(f.client, "r", "c1", &options);
    assert_true(tl_lock_view(lock)->amount_minor == 0);
    assert_string_equal(tl_lock_view(lock)->currency, "");
    row_says("r", TL_LANE_SYNC, &usual);
    tl_lock_free(lock);
}

static void assert_invalid(const tl_lock_options *options, const char *words)
{
    tl_key key = {"bad", "c1", "WITHDRAW"};
    tl_lock *lock = NULL;

    assert_status(tl_lock_new(&lock, f.client, &key, options), TL_INVALID);
    assert_null(lock);
    if (strstr(tl_error_message(), words) == NULL)
        fail_msg("not '%s': %s", words, tl_error_message());
}

TEST(test_what_is_none_is_refused)
{
    static const struct {
        int64_t amount_minor;
        const char *currency, *batch, *words;
    } bad[] = {
        {-1, "EUR", NULL, "amount_minor is -1"},
        {(int64_t)(UINT64_C(1) << 63), "EUR", NULL, "it must be 0 to 9223372036854775807"},
        {-1, NULL, NULL, "amount_minor is -1"},
        {5, NULL, NULL, "both, or neither"},
        {5, "", NULL, "three capital letters"},
        {0, "", NULL, "three capital letters"},
        {5, "EU", NULL, "three capital letters"},
        {5, "EURO", NULL, "three capital letters"},
        {5, "eur", NULL, "three capital letters"},
        {5, "E1R", NULL, "three capital letters"},
        {5, "\xc3\x84R", NULL, "three capital letters"},
        {0, NULL, "", "batch: is empty"},
        {0, NULL, LONGEST "x", "batch: is longer than 64 bytes"},
        {0, NULL, "a\tb", "batch: byte 2 is a control character (0x09)"},
        {0, NULL, "a\x7f", "batch: byte 2 is a control character (0x7f)"},
        {0, NULL, "a\xc2\x85", "batch: byte 2 is a control character"},
        {0, NULL, "a\xff", "batch: byte 2 is not UTF-8 (0xff)"},
        {0, NULL, "a\xc3", "batch: byte 2 is not UTF-8 (0xc3)"},
    };
    const long long before = database_number(f.sql, "SELECT COUNT(*) FROM trade_lock");
    tl_lock_options options = sync_options("100 EUR");

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.amount_minor = bad[i].amount_minor;
        options.currency = bad[i].currency;
        options.batch = bad[i].batch;
        assert_invalid(&options, bad[i].words);
    }
    options = options_of(&(struct said){5, "EUR", "", ""});
    options.flags = TL_ASK_REPEATABLE;
    options.channel = NULL;
    assert_invalid(&options, "no amount");
    options = options_of(&(struct said){0, "", "b", ""});
    options.flags = TL_ASK_REPEATABLE;
    options.channel = NULL;
    assert_invalid(&options, "so it has no batch");
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
    static const struct said untraced = {0, "", "b", ""};
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    struct heard heard;
    tl_client *client = NULL;

    options.config_file = database_option_file(f.db);
    options.log = hear;
    options.log_context = &heard;
    assert_status(tl_client_open(&client, &options), TL_OK);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        const struct text serial = text_of("t%zu", i);
        tl_lock_options traced = options_of(&untraced);
        tl_lock *lock;

        traced.traceparent = none[i];
        memset(&heard, 0, sizeof heard);
        lock = granted(client, serial.is, "c1", &traced);
        assert_string_equal(tl_error_message(), "");
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        assert_said(tl_lock_view(lock), &untraced);
        tl_lock_free(lock);
        row_says(serial.is, TL_LANE_SYNC, &untraced);
        assert_int_equal(heard.lines, 1);
        assert_int_equal(heard.level, TL_WARNING);
        assert_string_equal(heard.serial, serial.is);
        assert_string_equal(heard.trace_id, "");
        assert_null(strpbrk(heard.message, "\n\xff"));
        /* Nor does a line of the log that is about another key. */
        tl_log_trace_set(none[i]);
        tl_client_log(client, TL_INFO, &(tl_key){serial.is, "c1", "WITHDRAW"}, 0, "traceparent");
        assert_string_equal(heard.trace_id, "");
        tl_log_trace_set(NULL);
    }
    tl_client_close(client);
}

/* Some name an amount, some a batch, some a trace, and some no channel. */
static struct said said_by(int number, int round)
{
    const int amount = number % 2, batch = number / 2 % 2;

    return (struct said){amount ? number * 100 + round : 0, amount ? "EUR" : "",
                         batch ? "crowd" : "", number % 3 ? TRACE : ""};
}

/* They share statements with each other and with endings. */
static void ask_in_crowd(void *context, int number)
{
    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        const struct said said = said_by(number, round);
        tl_lock_options options = options_of(&said);
        tl_lock *lock;

        if (number % 8 < 4)
            options.channel = NULL;
        lock = granted(f.client, text_of("g%d-%d", number, round).is, "c1", &options);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

TEST(test_in_groups)
{
    crew_threads(THREADS, ask_in_crowd, NULL);
    for (int number = 0; number < THREADS; number++)
        for (int round = 0; round < ROUNDS; round++) {
            const struct said said = said_by(number, round);

            row_says(text_of("g%d-%d", number, round).is, TL_LANE_SYNC, &said);
        }
}

/* What somebody types over it is a step of theirs. */
TEST(test_by_hand_it_is_on_record)
{
    static const char *const typed[] = {"amount_minor = 105000", "currency = 'USD'",
                                        "batch = 'other'", "traceparent = NULL"};
    tl_lock_options options = options_of(&usual);

    end_paid(granted(f.client, "hand", "c1", &options));
    for (int i = 0; i < 4; i++) {
        database_run(f.sql, "UPDATE trade_lock SET %s WHERE serial_no = 'hand'", typed[i]);
        database_expect(f.sql, i + 1,
                        "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = 'hand' AND step = "
                        "'by hand'");
    }
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
    (void)context;
    if (number == 0) {
        for (int i = 0; i < MOVING; i++)
            CREW_STATUS(finish(moving.lock[i], TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        moving.ended = 1;
        return;
    }
    while (!moving.ended)
        CREW_CHECK(count_batch("moving", MOVING, TL_OK) == MOVING);
}

/* A trade that ends while its batch is counted is counted once. */
TEST(test_a_batch_that_is_paid_meanwhile)
{
    tl_lock_options options = options_of(&(struct said){0, "", "moving", ""});

    for (int i = 0; i < MOVING; i++)
        moving.lock[i] = granted(f.client, text_of("M%d", i).is, "C1", &options);
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

TESTS_OF(said, open_all, close_all)
