/* Evidence of another amount, beside the library.  The rest is transcripts/statement.txt. */
#include "command.h"

#include "support/theme.h"
#include "trade_lock/fixture.h"

static struct world {
    fixture f;
    const char *config;
} w;

#define number(...) database_number(w.f.sql, __VA_ARGS__)
#define EVIDENCE(...) RUN("evidence", "add", __VA_ARGS__, "--source", "bank", "--config", w.config)

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

/* A trade of a channel, and how it was left. */
static void make(const char *serial, int64_t minor, tl_outcome outcome)
{
    tl_lock_options options = sync_options("pay");
    tl_ending ending = TL_ENDING_INIT;
    tl_lock *lock;

    options.channel = "bank";
    options.amount_minor = minor;
    options.currency = "EUR";
    lock = granted(w.f.client, serial, "C1", &options);
    ending.outcome = outcome;
    ending.channel_ref = outcome == TL_OUTCOME_SUCCESS ? "R1" : NULL;
    ending.next_run_ms = 3600000;
    assert_status(tl_lock_finish(lock, &ending),
                  outcome == TL_OUTCOME_SUCCESS ? TL_SUCCEEDED : TL_IN_DOUBT);
    tl_lock_free(lock);
}

/* Nobody fails it but two operators: money moved. */
TEST(test_a_conflict_does_not_fail)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock = granted(w.f.client, "B1", "C1", &options);

    ENDS(EVIDENCE("B1", "C1", "WITHDRAW", "--outcome", "SUCCEEDED", "--epoch", "7"), 1, "");
    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_EVIDENCE);
    assert_status(finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    tl_lock_free(lock);
}

#define PAID(...)                                                                                  \
    EVIDENCE("D3", "C1", "WITHDRAW", "--outcome", "SUCCEEDED", "--amount", __VA_ARGS__)

/* Whatever path it takes: SQL, the library, one payment. */
TEST(test_no_path_files_another_amount)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {"D1", "C1", "WITHDRAW"},
                            .outcome = "SUCCEEDED",
                            .source = "web-hook",
                            .amount = {1, 101, "EUR"}};

    make("D1", 100, TL_OUTCOME_UNKNOWN);
    make("D2", 100, TL_OUTCOME_UNKNOWN);
    make("D3", 100, TL_OUTCOME_UNKNOWN);
    assert_status(tl_evidence_add(w.f.client, &evidence), TL_IN_CONFLICT);
    database_run(w.f.sql,
                 "INSERT INTO trade_evidence (cust_no, serial_no, op_code, epoch, outcome, source, "
                 "account, filed_at, currency, contradicts) VALUES ('C1', 'D2', 'WITHDRAW', 1, "
                 "'SUCCEEDED', 'x', '', NOW(), 'USD', 0)");
    EXPECT_USAGE(EVIDENCE("D3", "C1", "WITHDRAW", "--outcome", "SUCCEEDED"), "how much was paid");
    EXPECT_USAGE(PAID("100"), "--amount: of which currency, as in 1,250.00 EUR");
    EXPECT_USAGE(PAID("100", "--currency", "EUR"), "--amount: 100 may be whole or minor units");
    EXPECT_USAGE(PAID("1.00 EUR", "--currency", "USD"), "--amount: is none in USD");
    EXPECT_USAGE(PAID("1.005 EUR"), "--amount: is none in EUR");
    EXPECT_USAGE(PAID("much"), "--amount: is not written as 1,250.00 EUR");
    assert_int_equal(number("SELECT COUNT(*) FROM trade_evidence WHERE serial_no = 'D3'"), 0);
    ENDS(PAID("0.99 EUR"), 1, "");
    assert_int_equal(number("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'D_' AND "
                            "conflict = 1 AND success_epoch IS NULL"),
                     3);
    evidence.amount.currency = "Euro";
    assert_status(tl_evidence_add(w.f.client, &evidence), TL_INVALID);
}

TESTS_OF(statement, set_up, tear_down)
