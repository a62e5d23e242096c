/* What a request says of its amount: on the row, in views and in the statements of many; never a
 * reason to grant or refuse. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#define THREADS 32
#define ROUNDS 8

FIXTURE_OF_ALL(NULL)

static tl_lock_options of_amount(int64_t amount_minor, const char *currency)
{
    tl_lock_options options = sync_options("100 EUR");

    options.amount_minor = amount_minor;
    options.currency = currency;
    return options;
}

static void assert_said(const tl_view *view, int64_t amount_minor, const char *currency)
{
    assert_string_equal(view->currency, currency);
    assert_true(view->amount_minor == amount_minor);
}

struct said {
    int64_t amount_minor;
    const char *currency;
};

static int compare(void *context, const tl_view *view)
{
    const struct said *said = context;

    assert_said(view, said->amount_minor, said->currency);
    return 0;
}

static void row_says(const char *serial, tl_lane lane, int64_t amount_minor, const char *currency)
{
    struct said said = {amount_minor, currency};
    tl_key key = {serial, "c1", "WITHDRAW"};

    assert_status(tl_show(f.other, &key, lane, compare, &said), TL_OK);
}

TEST(test_the_row_keeps_what_the_first_ask_said)
{
    static const int64_t amounts[] = {0, 1, 1050, INT64_MAX};
    tl_lock_options first, later = of_amount(7, "USD"), silent = sync_options("100 EUR");
    tl_status status;
    tl_lock *lock, *again;

    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++) {
        char currency[] = "EUR";
        const struct text serial = text_of("k%zu", i);

        first = of_amount(amounts[i], currency);
        lock = lock_new(f.client, serial.is, "c1", &first);
        memset(currency, 'X', 3); /* it was copied */
        assert_status(tl_lock_ask(lock, 0), TL_GRANTED);
        assert_said(tl_lock_view(lock), amounts[i], "EUR");
        row_says(serial.is, TL_LANE_SYNC, amounts[i], "EUR");
        again = ask(f.other, serial.is, "c1", &later, &status);
        assert_status(status, TL_BUSY);
        assert_said(tl_lock_view(again), amounts[i], "EUR");
        tl_lock_free(again);
        assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        assert_said(tl_lock_view(lock), amounts[i], "EUR");
        tl_lock_free(lock);
        again = ask(f.other, serial.is, "c1", &silent, &status);
        assert_status(status, TL_ALREADY_DONE);
        tl_lock_free(again);
        row_says(serial.is, TL_LANE_SYNC, amounts[i], "EUR");
    }
    lock = granted(f.client, "silent", "c1", &silent);
    assert_said(tl_lock_view(lock), 0, "");
    again = ask(f.other, "silent", "c1", &later, &status);
    assert_status(status, TL_BUSY);
    tl_lock_free(again);
    row_says("silent", TL_LANE_SYNC, 0, "");
    tl_lock_free(lock);
}

/* The moment of the making is known without reading the row. */
TEST(test_a_grant_tells_when_it_was_made)
{
    tl_lock_options options = sync_options("100 EUR");
    tl_lock *lock = granted(f.client, "made", "c1", &options);

    assert_true(tl_lock_view(lock)->created_us ==
                database_number(f.sql, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', "
                                       "created_at) FROM trade_lock WHERE serial_no = 'made'"));
    tl_lock_free(lock);
}

TEST(test_the_retry_lane_and_a_reclaim_keep_it)
{
    tl_lock_options options = of_amount(1050, "EUR"), retry = retry_options();
    tl_ending failed = TL_ENDING_INIT;
    tl_lock *lock = granted(f.client, "r", "c1", &options);

    end_in_doubt(lock);
    row_says("r", TL_LANE_RETRY, 0, "");
    lock = granted(f.other, "r", "c1", &retry);
    assert_said(tl_lock_view(lock), 1050, "EUR");
    failed.outcome = TL_OUTCOME_FAILURE;
    failed.proof = TL_PROOF_DECLINED;
    failed.retryable = 1;
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    options = of_amount(9, "USD");
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = granted(f.client, "r", "c1", &options);
    assert_said(tl_lock_view(lock), 1050, "EUR");
    row_says("r", TL_LANE_SYNC, 1050, "EUR");
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    /* Whoever names the fence is granted it without a read: it is not told the caller's own. */
    options.reclaim_epoch = 2;
    options.reclaim_fence = (uint64_t)database_number(
        f.sql, "SELECT fence FROM trade_lock WHERE serial_no = 'r' AND lane = 'S'");
    tl_lock_free(lock);
    lock = granted(f.client, "r", "c1", &options);
    assert_said(tl_lock_view(lock), 0, "");
    row_says("r", TL_LANE_SYNC, 1050, "EUR");
    tl_lock_free(lock);
}

TEST(test_half_and_wrong_amounts_are_refused)
{
    static const struct {
        int64_t amount_minor;
        const char *currency, *words;
    } bad[] = {
        {-1, "EUR", "amount_minor is -1"},
        {(int64_t)(UINT64_C(1) << 63), "EUR", "it must be 0 to 9223372036854775807"},
        {-1, NULL, "amount_minor is -1"},
        {5, NULL, "both, or neither"},
        {5, "", "three capital letters"},
        {0, "", "three capital letters"},
        {5, "EU", "three capital letters"},
        {5, "EURO", "three capital letters"},
        {5, "eur", "three capital letters"},
        {5, "E1R", "three capital letters"},
        {5, "\xc3\x84R", "three capital letters"},
    };
    tl_lock_options repeatable = of_amount(5, "EUR");
    tl_key key = {"bad", "c1", "WITHDRAW"};
    tl_lock *lock = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tl_lock_options options = of_amount(bad[i].amount_minor, bad[i].currency);

        assert_status(tl_lock_new(&lock, f.client, &key, &options), TL_INVALID);
        assert_null(lock);
        if (strstr(tl_error_message(), bad[i].words) == NULL)
            fail_msg("%zu: %s", i, tl_error_message());
    }
    repeatable.flags = TL_ASK_REPEATABLE;
    repeatable.channel = NULL;
    assert_status(tl_lock_new(&lock, f.client, &key, &repeatable), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "no amount"));
}

/* Asks with and without an amount, of trades with and without a channel, share statements. */
static void ask_in_crowd(void *context, int number)
{
    (void)context;
    for (int round = 0; round < ROUNDS; round++) {
        tl_lock_options options = of_amount(number * 100 + round, number % 2 ? "EUR" : NULL);
        tl_status status;
        tl_lock *lock;

        if (number % 2 == 0)
            options.amount_minor = 0;
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
            row_says(text_of("g%d-%d", number, round).is, TL_LANE_SYNC,
                     number % 2 ? number * 100 + round : 0, number % 2 ? "EUR" : "");
        }
}

/* An amount that somebody types is a step of theirs. */
TEST(test_by_hand_it_is_on_record)
{
    tl_lock_options options = of_amount(1050, "EUR");
    end_paid(granted(f.client, "hand", "c1", &options));
    database_run(f.sql, "UPDATE trade_lock SET amount_minor = 105000 WHERE serial_no = 'hand'");
    database_expect(
        f.sql, 1,
        "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = 'hand' AND step = 'by hand'");
    database_run(f.sql, "UPDATE trade_lock SET currency = 'USD' WHERE serial_no = 'hand'");
    database_expect(
        f.sql, 2,
        "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = 'hand' AND step = 'by hand'");
    assert_log_whole(&f);
}

TESTS_OF(amount, open_all, close_all)
