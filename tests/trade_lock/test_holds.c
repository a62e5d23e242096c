/* For how long a send of an epoch may at most be under way: the server records it with every step
 * that lets one begin, whoever writes the step. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#define THREADS 32
#define DAY_MS 86400000

FIXTURE_OF_ALL(NULL)

static long long longest_hold_ms(const char *serial)
{
    return database_number(f.sql,
                           "SELECT COALESCE(longest_hold_ms, -1) FROM trade_lock WHERE "
                           "serial_no = '%s' AND lane = 'S'",
                           serial);
}

static tl_lock_options of_hold(int64_t max_hold_ms)
{
    tl_lock_options options = sync_options("100 EUR");

    options.max_hold_ms = max_hold_ms;
    return options;
}

/* In doubt, after a hold of two seconds. */
static void leave_in_doubt(const char *serial)
{
    tl_lock_options options = of_hold(2000);
    tl_lock *lock = granted(f.client, serial, "c1", &options);

    assert_int_equal(longest_hold_ms(serial), 2000);
    end_in_doubt(lock);
}

static tl_lock *claim(const char *serial, int64_t max_hold_ms)
{
    tl_lock_options options = retry_options();

    options.max_hold_ms = max_hold_ms;
    return granted(f.other, serial, "c1", &options);
}

TEST(test_it_rises_within_an_epoch)
{
    tl_ending failed = TL_ENDING_INIT;
    tl_lock_options options = of_hold(3000);
    char *told;
    tl_lock *lock;

    leave_in_doubt("k");
    lock = claim("k", 5000);
    assert_int_equal(longest_hold_ms("k"), 5000);
    assert_status(tl_lock_arm(lock, 40000), TL_OK);
    assert_int_equal(longest_hold_ms("k"), 40000);
    assert_status(tl_lock_arm(lock, 1500), TL_OK);
    assert_int_equal(longest_hold_ms("k"), 40000);
    failed.outcome = TL_OUTCOME_FAILURE;
    failed.proof = TL_PROOF_DECLINED;
    failed.retryable = 1;
    assert_status(tl_lock_finish(lock, &failed), TL_FAILED);
    tl_lock_free(lock);
    /* Nothing of an epoch is under way once it has failed with proof. */
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    lock = granted(f.client, "k", "c1", &options);
    assert_int_equal(longest_hold_ms("k"), 3000);
    end_paid(lock);
    told = database_text(f.sql, "SELECT GROUP_CONCAT(step, ' ', longest_hold_ms ORDER BY rev) FROM "
                                "trade_lock_log WHERE serial_no = 'k' AND op_code = 'WITHDRAW'");
    assert_string_equal(told, "ask 2000,unknown 2000,claim 5000,arm 40000,arm 40000,end 40000,"
                              "reclaim 3000,end 3000");
    free(told);
    assert_log_whole(&f);
}

/* What is not a step of the library's counts too. */
TEST(test_by_hand)
{
    leave_in_doubt("hand");
    database_run(f.sql, "UPDATE trade_lock SET send_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR "
                        "WHERE serial_no = 'hand' AND lane = 'S'");
    assert_in_range(longest_hold_ms("hand"), 3600000, 3600001);
    database_run(f.sql, "UPDATE trade_lock SET max_hold_until = UTC_TIMESTAMP(6) + INTERVAL 1 YEAR "
                        "WHERE serial_no = 'hand' AND lane = 'S'");
    assert_int_equal(longest_hold_ms("hand"), 7 * DAY_MS);
    database_run(f.sql, "UPDATE trade_lock SET longest_hold_ms = 1 WHERE serial_no = 'hand' AND "
                        "lane = 'S'");
    database_expect(
        f.sql, 3,
        "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = 'hand' AND step = 'by hand'");
    assert_log_whole(&f);
}

/* A claim rests on no hold before it; a step that leaves the hold alone changes nothing. */
TEST(test_evidence_leaves_it_alone)
{
    tl_lock_options options = of_hold(2000);
    tl_lock *lock = granted(f.client, "e", "c1", &options);
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION};

    database_run(f.sql, "SET timestamp = UNIX_TIMESTAMP() - 3600");
    database_run(f.sql,
                 "UPDATE trade_lock SET rev = rev + 1, step = 'evidence', seen_by_channel = 1 "
                 "WHERE serial_no = 'e'");
    database_run(f.sql, "SET timestamp = DEFAULT");
    evidence.key = (tl_key){"e", "c1", "WITHDRAW"};
    evidence.outcome = "ACCEPTED";
    evidence.source = "a statement";
    assert_status(tl_evidence_add(f.other, &evidence), TL_OK);
    assert_int_equal(longest_hold_ms("e"), 2000);
    end_paid(lock);
}

/* Asks and endings that share statements. */
static void ask_in_crowd(void *context, int number)
{
    tl_lock_options options = of_hold(1000 + number);
    tl_status status;
    tl_lock *lock;

    (void)context;
    for (int round = 0; round < 8; round++) {
        lock = ask(f.client, text_of("g%d-%d", number, round).is, "c1", &options, &status);
        CREW_STATUS(status, TL_GRANTED);
        CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

TEST(test_in_groups)
{
    crew_threads(THREADS, ask_in_crowd, NULL);
    database_expect(f.sql, THREADS * 8,
                    "SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'g%%' AND "
                    "longest_hold_ms = 1000 + SUBSTRING_INDEX(SUBSTR(serial_no, 2), '-', 1)");
}

TESTS_OF(holds, open_all, close_all)
