/* What is told about money is compared with the money: statements, evidence, sums, moments and
 * options, by the real command. */
#include "command.h"

#include "support/theme.h"
#include "trade_lock/fixture.h"

static struct world {
    fixture f;
    const char *config;
    char file[64];
} w;

#define number(...) database_number(w.f.sql, __VA_ARGS__)
#define EVIDENCE(...) RUN("evidence", "add", __VA_ARGS__, "--source", "bank", "--config", w.config)

FIXTURE(set_up)
{
    fixture_open(&w.f, "janitor=0\nbeat_ms=50\nsession_ms=1m\n");
    w.config = database_option_file(w.f.db);
    strcpy(w.file, "/tmp/tl-statement-XXXXXX");
    close(mkstemp(w.file));
}

FIXTURE(tear_down)
{
    unlink(w.file);
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

static output *file_bytes(const char *bytes, const char *yes)
{
    FILE *file = fopen(w.file, "we");

    assert_non_null(file);
    fputs(bytes, file);
    fclose(file);
    return RUN("evidence", "add", "--statement", w.file, "--source", "bank", "--reason", "daily",
               "--yes", yes, "--config", w.config);
}

/* ---------------------------------------------------------------- what differs -- */

#define DIFFERING                                                                                  \
    "A1,C1,WITHDRAW,r1,100,EUR\nA2,C1,WITHDRAW,r2,-100,EUR\n"                                      \
    "A3,C1,WITHDRAW,r3,1,EUR\nA4,C1,WITHDRAW,r4,100,JPY\n"

TEST(test_what_differs_is_a_conflict)
{
    static const char text[] =
        "serial_no,cust_no,op_code,channel_ref,amount_minor,currency\n" DIFFERING;

    for (int i = 1; i <= 4; i++) {
        char serial[8];

        snprintf(serial, sizeof serial, "A%d", i);
        make(serial, 100, TL_OUTCOME_UNKNOWN);
    }
    ENDS(file_bytes(text, "4"), 1, "file success of 4 trades: 100 EUR in 1",
         "Of them 3 contradict the row, and become conflicts", "100 EUR -100 EUR", "100 EUR 1 EUR",
         "100 EUR 100 JPY");
    assert_int_equal(number("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'A_' AND "
                            "success_epoch IS NOT NULL"),
                     1);
    assert_int_equal(number("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'A_' AND "
                            "conflict = 1 AND serial_no <> 'A1'"),
                     3);
    ENDS(file_bytes(text, "0"), 1, "4 known already (3 as contradicting)");
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
    ENDS(EVIDENCE("D3", "C1", "WITHDRAW", "--outcome", "SUCCEEDED", "--amount", "99"), 1, "");
    assert_int_equal(number("SELECT COUNT(*) FROM trade_lock WHERE serial_no LIKE 'D_' AND "
                            "conflict = 1 AND success_epoch IS NULL"),
                     3);
    evidence.amount.currency = "Euro";
    assert_status(tl_evidence_add(w.f.client, &evidence), TL_INVALID);
}

/* --------------------------------------------------------- what comes too late -- */

TEST(test_what_contradicts_a_success)
{
    static const char again[] = "serial_no,cust_no,op_code,channel_ref\nE1,C1,WITHDRAW,R1\n";
    static const char other[] = "serial_no,cust_no,op_code,channel_ref\nE2,C1,WITHDRAW,R2\n";

    for (int i = 1; i <= 4; i++) {
        char serial[8];

        snprintf(serial, sizeof serial, "E%d", i);
        make(serial, 100, TL_OUTCOME_SUCCESS);
    }
    ENDS(file_bytes(again, "0"), 0, "1 known already (0 as contradicting)");
    ENDS(file_bytes(other, "1"), 1, "contradicts the trade");
    ENDS(EVIDENCE("E3", "C1", "WITHDRAW", "--outcome", "FAILED", "--final"), 1, "");
    ENDS(EVIDENCE("E4", "C1", "WITHDRAW", "--outcome", "SUCCEEDED", "--key", "other"), 1, "");
    ENDS(RUN("ls", "--conflict", "--json", "--prefix", "E", "--config", w.config), ANY_CODE,
         "\"serial_no\": \"E2\"", "\"serial_no\": \"E3\"", "\"serial_no\": \"E4\"");
    ENDS(RUN("audit", "--config", w.config), 1, "contradicted");
    ENDS(RUN("explain", "E3", "C1", "WITHDRAW", "--config", w.config), 0,
         "which contradicts the trade");
    ENDS(RUN("explain", "E1", "C1", "WITHDRAW", "--config", w.config), 0, "It succeeded");
}

/* ------------------------------------------------------------- files are whole -- */

#define HEAD "serial_no,cust_no,op_code,channel_ref,amount_minor,currency"
#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

TEST(test_every_line_is_checked_first)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {HEAD ",status\nF1,C1,WITHDRAW,r,100,EUR,REJECTED\n", ":1: the column 'status'"},
        {HEAD ",currency\nF1,C1,WITHDRAW,r,100,EUR,EUR\n", ":1: the column currency stands twice"},
        {HEAD "\nF1,C1,WITHDRAW,r,100,EUR\nF1,C1,WITHDRAW\n", ":3: the line has 3 cells"},
        {HEAD "\nF1,C1,WITHDRAW,r,100,EUR,x\n", ":2: the line has 7 cells"},
        {HEAD "\nF1,C1,WITHDRAW,r,100,EUR\nF1,C1,WITHDRAW,r,100,EU", ":3: "},
        {HEAD "\nF1,C1,WITHDRAW,r,100,EUR", ":2: the last line has no end"},
        {HEAD "\nF1,C1,WITHDRAW,r,100,EUR\nF1,C1,WITHDRAW,M\xfcller,100,EUR\n",
         ":3: byte 2 of channel_ref (0xfc)"},
        {HEAD "\nF1,C1,WITHDRAW,a\x01,100,EUR\n", ":2: byte 2 of channel_ref (0x01)"},
        {HEAD "\nF1,C1,WITHDRAW,\"a\nb\",100,EUR\n", "byte 2 of channel_ref (0x0a)"},
        {HEAD "\nF1,C1,WITHDRAW," LONG LONG "9,100,EUR\n",
         ":2: channel_ref is longer than 128 bytes"},
        {HEAD "\nF1 x,C1,WITHDRAW,r,100,EUR\n", ":2: byte 3 of serial_no"},
        {HEAD "\n" LONG "9,C1,WITHDRAW,r,100,EUR\n", ":2: serial_no is longer than 64 bytes"},
        {HEAD "\nF1,C1,,r,100,EUR\n", ":2: op_code is empty"},
        {HEAD "\nF1,C1,WITHDRAW,r,,EUR\n", ":2: amount_minor is empty"},
        {HEAD "\nF1,C1,WITHDRAW,r,1-2,EUR\n", ":2: amount_minor is a whole number"},
        {HEAD "\nF1,C1,WITHDRAW,r,100,eur\n", ":2: currency is three letters"},
        {"serial_no,cust_no\nF1,C1\n", ":2: the payment names no op_code"},
    };
    output *o;

    make("F1", 100, TL_OUTCOME_UNKNOWN);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT_USAGE(file_bytes(cases[i].text, "1"), cases[i].words);
    }
    assert_int_equal(number("SELECT COUNT(*) FROM trade_evidence WHERE serial_no = 'F1'"), 0);
    output_free(file_bytes(cases[0].text, "1"));
    o = RUN("evidence", "add", "--statement", w.file, "--ignore", "value_date,status", "--source",
            "bank", "--reason", "daily", "--yes", "1", "--config", w.config);
    ENDS(o, 0, "1 of 1 done");
}

/* ------------------------------------------------------------ figures and words -- */

TEST(test_sums_and_fences_are_whole)
{
    make("G1", INT64_MAX, TL_OUTCOME_UNKNOWN);
    make("G2", INT64_MAX, TL_OUTCOME_UNKNOWN);
    /* Nobody holds them, nor are they due. */
    /* The trigger refuses such a fence. */
    database_run(w.f.sql, "DROP TRIGGER trade_lock_updated; "
                          "UPDATE trade_lock SET fence = 18446744073709551615, rev = rev + 1 WHERE "
                          "serial_no = 'G1' AND lane = 'S'");
    ENDS(RUN("migrate", "--config", w.config), 0);
    ENDS(RUN("status", "--config", w.config), ANY_CODE, "18446744073709");
    ENDS(RUN("explain", "G1", "C1", "WITHDRAW", "--json", "--config", w.config), ANY_CODE,
         "\"fence\": \"18446744073709551615\"");
    database_run(w.f.sql, "DELETE FROM trade_lock WHERE serial_no = 'G1'");
    database_run(w.f.sql, "DELETE FROM trade_lock_past WHERE serial_no = 'G1'");
}

TEST(test_input_is_exact)
{
    static const char *const cases[][3] = {
        {"--amount", "125000", "unknown option --amount"},
        {"--since", "2026-02-29", "--since"},
        {"--since", "2026-11-31", "--since"},
        {"--since", "2026-03-01T23:59:60", "--since"},
        {"--older", "9223372036854775807ms", "--older"},
        {"--currenc", "EUR", "unknown option --currenc"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT_USAGE(RUN("ls", "--config", w.config, cases[i][0], cases[i][1]), cases[i][2]);
    }
    ENDS(RUN("ls", "--config", w.config, "--since", "2024-02-29T23:59:59"), 0, "");
    ENDS(RUN("ls", "--config", w.config, "--currency=EUR", "--prefix", "--currenc"), 0, "");
}

TEST(test_no_cell_is_a_formula)
{
    output *o;

    make("=1+1", 100, TL_OUTCOME_UNKNOWN);
    make("-5", 100, TL_OUTCOME_UNKNOWN);
    make("'@x", 100, TL_OUTCOME_UNKNOWN);
    o = RUN("ls", "-o", "csv", "--columns", "serial", "--config", w.config);
    EXPECT_WORDS(o, "\n'=1+1\n");
    EXPECT_WORDS(o, "\n-5\n");
    EXPECT_WORDS(o, "\n''@x\n");
    output_free(o);
    ENDS(file_bytes("serial_no,cust_no,op_code\n'=1+1,C1,WITHDRAW\n''@x,C1,WITHDRAW\n", "2"), 0,
         "2 of 2 done");
}

TESTS_OF(statement, set_up, tear_down)
