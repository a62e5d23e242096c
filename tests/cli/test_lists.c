/* Lists: what their filters find, in which order, page by page; what stands below them; and rows
 * and trades as they were. */
#include "command.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_MS 3600000

static fixture f;
static const char *config;

#define LS(...) RUN("ls", "--json", "--config", config, __VA_ARGS__)
#define LINES(...) RUN("ls", "--config", config, __VA_ARGS__)

static int set_up(void **state)
{
    (void)state;
    fixture_open(&f, "janitor=0\ncommit_ms=1s\n");
    config = database_option_file(f.db);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

/* Each test lists its own rows alone. */
static int clear(void **state)
{
    (void)state;
    database_run(f.sql, "TRUNCATE trade_lock; TRUNCATE trade_lock_past; "
                        "DELETE FROM trade_evidence");
    return 0;
}

static tl_lock *held_for(const char *serial, const char *cust, int64_t minor, const char *currency)
{
    tl_lock_options options = sync_options("pay");

    if (currency != NULL) {
        options.amount_minor = minor;
        options.currency = currency;
    }
    return granted(f.client, serial, cust, &options);
}

static void end(tl_lock *lock, const tl_ending *ending, tl_status expected)
{
    assert_status(tl_lock_finish(lock, ending), expected);
    tl_lock_free(lock);
}

static void make_paid(const char *serial, const char *cust, int64_t minor, const char *currency)
{
    tl_ending paid = TL_ENDING_INIT;

    paid.outcome = TL_OUTCOME_SUCCESS;
    end(held_for(serial, cust, minor, currency), &paid, TL_SUCCEEDED);
}

static void make_doubtful(const char *serial, const char *cust, int64_t minor, const char *currency)
{
    tl_ending unknown = TL_ENDING_INIT;

    unknown.next_run_ms = HOUR_MS;
    end(held_for(serial, cust, minor, currency), &unknown, TL_IN_DOUBT);
}

static void make_parked(const char *serial, const char *cust, const char *reason)
{
    tl_ending parked = TL_ENDING_INIT;

    parked.park_reason = reason;
    end(held_for(serial, cust, 0, NULL), &parked, TL_PARKED);
}

static void set_made(const char *serial, const char *ago)
{
    database_run(f.sql,
                 "UPDATE trade_lock SET created_at = UTC_TIMESTAMP(6) - INTERVAL %s, rev = rev + 1 "
                 "WHERE serial_no = '%s'",
                 ago, serial);
}

/* "SERIAL/lane SERIAL/lane", in the order in which they are listed. */
static char *rows_of(output *o)
{
    json_t *document, *row;
    static char got[4096];
    size_t i;

    EXPECT_CODE(o, 0);
    document = output_json(o);
    got[0] = '\0';
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        const size_t size = strlen(got);

        snprintf(got + size, sizeof got - size, "%s%s/%s", i > 0 ? " " : "",
                 json_string_value(json_object_get(row, "serial_no")),
                 json_string_value(json_object_get(row, "lane")));
    }
    assert_int_equal(json_integer_value(json_object_get(document, "count")), i);
    json_decref(document);
    output_free(o);
    return got;
}

#define EXPECT_ROWS(o, expected) assert_string_equal(rows_of(o), expected)

/* --------------------------------------------------------------------- ages -- */

/* A trade that was asked for long ago hangs, however often somebody has tried since. */
static void test_age_is_from_the_first_ask(void **state)
{
    (void)state;
    make_doubtful("OLD", "C1", 1000, "EUR");
    make_doubtful("NEW", "C1", 1000, "EUR");
    set_made("OLD", "2 HOUR");
    EXPECT_ROWS(LS("--in-doubt", "--older", "1h"), "OLD/sync");
    EXPECT_ROWS(LS("--in-doubt", "--older", "3h"), "");
    EXPECT_ROWS(LS("--in-doubt", "--idle", "1h"), "");
    EXPECT_ROWS(LS("--in-doubt", "--idle", "0s"), "OLD/sync NEW/sync");
    database_run(f.sql, "UPDATE trade_lock SET updated_at = UTC_TIMESTAMP(6) - INTERVAL 90 MINUTE, "
                        "rev = rev + 1 WHERE serial_no = 'NEW'");
    EXPECT_ROWS(LS("--in-doubt", "--idle", "1h"), "NEW/sync");
    EXPECT_ROWS(LS("--cust", "C1", "--older", "1h", "--lane", "sync"), "OLD/sync");
    EXPECT_ROWS(LS("--serial", "OLD", "--older", "1h"), "OLD/retry OLD/sync");
}

static void test_since_and_until(void **state)
{
    (void)state;
    make_paid("MARCH", "C1", 0, NULL);
    make_paid("APRIL", "C1", 0, NULL);
    database_run(f.sql, "UPDATE trade_lock SET rev = rev + 1, created_at = "
                        "IF(serial_no = 'MARCH', '2026-03-31 23:59:59.999999', "
                        "'2026-04-01 00:00:00')");
    EXPECT_ROWS(LS("--since", "2026-04-01"), "APRIL/sync");
    EXPECT_ROWS(LS("--until", "2026-04-01T00:00"), "MARCH/sync");
    EXPECT_ROWS(LS("--since", "2026-03-31T23:59:59.999999Z", "--until", "2026-04-01 00:00:00"),
                "MARCH/sync");
    EXPECT_ROWS(LS("--since", "1h"), "");
    EXPECT_ROWS(LS("--until", "2026-03-31T23:59:59.999999"), "");
}

/* ---------------------------------------------------------------- other filters -- */

static void test_channel_and_amount(void **state)
{
    tl_lock_options other = sync_options("pay");
    tl_ending unknown = TL_ENDING_INIT;

    (void)state;
    make_paid("SMALL", "C1", 999, "EUR");
    make_paid("LARGE", "C1", 1001, "EUR");
    make_paid("UNTOLD", "C1", 0, NULL);
    other.channel = "other-bank";
    other.amount_minor = 5000;
    other.currency = "USD";
    unknown.next_run_ms = HOUR_MS;
    end(granted(f.client, "OTHER", "C2", &other), &unknown, TL_IN_DOUBT);
    EXPECT_ROWS(LS("--amount-over", "1000"), "OTHER/sync LARGE/sync");
    EXPECT_ROWS(LS("--amount-over", "1001"), "OTHER/sync");
    EXPECT_ROWS(LS("--amount-over", "998", "--cust", "C1"), "SMALL/sync LARGE/sync");
    EXPECT_ROWS(LS("--channel", "other-bank"), "OTHER/sync");
    EXPECT_ROWS(LS("--channel", "no-bank"), "");
    EXPECT_ROWS(LS("--channel", "other-bank", "--status", "Y"), "");
}

static void test_serial_numbers(void **state)
{
    (void)state;
    make_paid("W1", "C1", 0, NULL);
    make_paid("W10", "C1", 0, NULL);
    make_doubtful("W11", "C2", 0, NULL);
    make_parked("W11", "C3", "attempts used up");
    make_paid("X1", "C1", 0, NULL);
    EXPECT_ROWS(LS("--serial", "W1"), "W1/sync");
    EXPECT_ROWS(LS("--prefix", "W1"), "W11/retry W11/sync W11/retry W11/sync W10/sync W1/sync");
    EXPECT_ROWS(LS("--prefix", "W1", "--cust", "C1"), "W10/sync W1/sync");
    EXPECT_ROWS(LS("--prefix", "W1", "--status", "Y"), "W10/sync W1/sync");
    EXPECT_ROWS(LS("--prefix", "W11", "--lane", "sync"), "W11/sync W11/sync");
    EXPECT_ROWS(LS("--prefix", "W11", "--parked"), "W11/retry W11/sync");
    EXPECT_ROWS(LS("--prefix", "W11", "--op", "OTHER"), "");
    EXPECT_ROWS(LS("--prefix", "V"), "");
}

static void set_conflict(const char *serial)
{
    database_run(f.sql,
                 "UPDATE trade_lock SET conflict = 1, rev = rev + 1 WHERE serial_no = '%s' AND "
                 "lane = 'S'",
                 serial);
}

/* What somebody has to look at stands first, and each row once. */
static void test_order(void **state)
{
    tl_lock *lock;

    (void)state;
    make_paid("PAID1", "C1", 0, NULL);
    make_paid("PAID2", "C1", 0, NULL);
    make_doubtful("DOUBT", "C2", 0, NULL);
    make_parked("PARKED", "C3", "attempts used up");
    make_paid("CONFLICT", "C4", 0, NULL);
    set_conflict("CONFLICT");
    lock = held_for("HELD", "C5", 0, NULL);
    EXPECT_ROWS(LS("--limit", "50"),
                "CONFLICT/sync PARKED/sync PARKED/retry DOUBT/sync DOUBT/retry HELD/sync "
                "PAID2/sync PAID1/sync");
    EXPECT_ROWS(LS("--conflict"), "CONFLICT/sync");
    set_conflict("PARKED");
    EXPECT_ROWS(LS("--conflict"), "PARKED/sync CONFLICT/sync");
    EXPECT_ROWS(LS("--parked"), "PARKED/sync PARKED/retry");
    EXPECT_ROWS(LS("--parked", "--conflict"), "PARKED/sync");
    EXPECT_ROWS(LS("--limit", "50"),
                "PARKED/sync CONFLICT/sync PARKED/retry DOUBT/sync DOUBT/retry HELD/sync "
                "PAID2/sync PAID1/sync");
    tl_lock_free(lock);
}

/* -------------------------------------------------------------------- pages -- */

static const char insert_rows[] =
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, thread_no, token, "
    "fence, rev, session_id, parked, conflict, proof, max_hold_until, next_run_at, created_at, "
    "updated_at) SELECT CONCAT('P', seq MOD 7), CONCAT('%s', seq), '%s', '%s', '%s', 'ask', "
    "UUID(), "
    "'x', 1, 1, %s, %s, %s, 'D', UTC_TIMESTAMP(6), %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
    "FROM seq_1_to_%d";

#define A_SESSION "'a0000000-0000-4000-8000-000000000001'"

static int is_seen(const json_t *seen, const char *name)
{
    return json_object_get(seen, name) != NULL;
}

/* Adds the page's rows, each of which is new, and copies where to go on. */
static size_t add_page(json_t *seen, output *o, char *next)
{
    json_t *document = output_json(o), *row;
    size_t i;

    EXPECT_CODE(o, 0);
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        char name[128];

        snprintf(name, sizeof name, "%s %s %s",
                 json_string_value(json_object_get(row, "serial_no")),
                 json_string_value(json_object_get(row, "cust_no")),
                 json_string_value(json_object_get(row, "op_code")));
        if (is_seen(seen, name))
            fail_msg("%s is listed twice", name);
        json_object_set_new(seen, name, json_true());
    }
    next[0] = '\0';
    if (json_is_true(json_object_get(document, "more")))
        snprintf(next, 700, "%s", json_string_value(json_object_get(document, "next")));
    else
        assert_true(json_is_null(json_object_get(document, "next")));
    json_decref(document);
    output_free(o);
    return i;
}

/* Page by page comes what one long list has; a page that is not the last one is full. */
static void expect_pages(const char *limit, const char *option, const char *value, size_t expected)
{
    json_t *seen = json_object();
    char next[700];
    size_t rows;

    rows = add_page(seen, LS("--limit", limit, option, value), next);
    while (next[0] != '\0') {
        assert_int_equal(rows, strtoul(limit, NULL, 10));
        rows = add_page(seen, LS("--limit", limit, option, value, "--after", next), next);
    }
    if (json_object_size(seen) != expected)
        fail_msg("%s %s by %s: %zu rows, not %zu", option, value, limit, json_object_size(seen),
                 expected);
    json_decref(seen);
}

/* Many of each kind: parked for two reasons, in conflict, waiting at one moment, held, finished at
 * one moment by one session, at many moments, and at none; of two operations. */
static void test_pages(void **state)
{
    static const char *const limits[] = {"7", "100", "1000"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *op = i == 0 ? "PAGE_A" : "PAGE_B",
                   *retry = i == 0 ? "PAGE_A_RETRY" : "PAGE_B_RETRY";

        database_run(f.sql, insert_rows, "K", retry, "R", "F", "NULL", "'why'", "0", "NULL", 40);
        database_run(f.sql, insert_rows, "J", retry, "R", "F", "NULL", "'else'", "0", "NULL", 20);
        database_run(f.sql, insert_rows, "C", op, "S", "F", "NULL", "NULL", "1", "NULL", 30);
        database_run(f.sql, insert_rows, "W", retry, "R", "F", "NULL", "NULL", "0", "'2040-01-01'",
                     60);
        database_run(f.sql, insert_rows, "H", op, "S", "P", A_SESSION, "NULL", "0", "'2040-01-01'",
                     50);
        database_run(f.sql, insert_rows, "Y", op, "S", "Y", A_SESSION, "NULL", "0", "'2030-01-01'",
                     130);
        database_run(f.sql, insert_rows, "Z", op, "S", "Y", "UUID()", "NULL", "0",
                     "'2030-01-01' + INTERVAL seq DIV 3 SECOND", 60);
        database_run(f.sql, insert_rows, "N", op, "S", "Y", "NULL", "NULL", "0", "'2030-01-01'",
                     20);
        database_run(f.sql, insert_rows, "I", op, "S", "F", "NULL", "NULL", "0", "NULL", 33);
    }
    for (size_t i = 0; i < 3; i++) {
        expect_pages(limits[i], "--prefix", "Y", 260);
        expect_pages(limits[i], "--lane", "retry", 240);
        expect_pages(limits[i], "--status", "Y", 420);
        expect_pages(limits[i], "--status", "F", 366);
        expect_pages(limits[i], "--op", "PAGE_A", 443);
        expect_pages(limits[i], "--older", "0s", 886);
    }
    expect_pages("7", "--cust", "P3", 130);
}

static int count_row(void *context, const tl_view *view)
{
    json_t *seen = context;
    char name[192];

    snprintf(name, sizeof name, "%s %s %s", view->serial_no, view->cust_no, view->op_code);
    assert_false(is_seen(seen, name));
    json_object_set_new(seen, name, json_true());
    return 0;
}

/* Pages that look at few rows show few of a rare kind, each once, and go on behind the last one. */
static void test_pages_that_look_at_few(void **state)
{
    char next[TL_NEXT_TEXT] = "";
    tl_filter filter = TL_FILTER_INIT;
    tl_list_end end = TL_LIST_END_INIT;
    json_t *seen = json_object();
    unsigned pages = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *op = i == 0 ? "LOOK_A" : "LOOK_B";

        database_run(f.sql, insert_rows, "Y", op, "S", "Y", A_SESSION, "NULL", "0",
                     "'2030-01-01' + INTERVAL seq DIV 3 SECOND", 400);
        database_run(f.sql, insert_rows, "F", op, "S", "F", A_SESSION, "NULL", "0",
                     "'2030-01-01' + INTERVAL seq * 9 SECOND", 11);
        database_run(f.sql, insert_rows, "I", op, "S", "F", "NULL", "NULL", "0", "NULL", 5);
    }
    filter.lane = 'S';
    filter.status = 'F';
    filter.limit = 3;
    filter.look_most = 40;
    do {
        filter.after = next[0] != '\0' ? next : NULL;
        assert_status(tl_list_page(f.client, &filter, count_row, seen, &end), TL_OK);
        assert_true(end.rows <= 3);
        snprintf(next, sizeof next, "%s", end.next);
        assert_true(++pages < 100);
    } while (end.more);
    assert_int_equal(json_object_size(seen), 32);
    assert_true(pages > 15); /* 832 rows, of which a page looks at some 50 */
    json_decref(seen);
}

/* -------------------------------------------------------------- below the list -- */

static void test_totals(void **state)
{
    output *o;

    (void)state;
    make_paid("A1", "C1", 9000000000000000000, "EUR");
    make_paid("A2", "C1", 9000000000000000000, "EUR");
    make_doubtful("A3", "C1", 250, "USD");
    make_paid("A4", "C1", 0, NULL);
    o = LINES("--cust", "C1");
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "\n4 trades (5 rows): 250 USD in 1, 18000000000000000000 EUR in 2, "
                    "no amount told in 1 (minor units)\n");
    output_free(o);
    o = LINES("--serial", "A4");
    EXPECT_WORDS(o, "\n1 trade\n");
    output_free(o);
    o = LS("--status", "Y");
    EXPECT_WORDS(o, "\"trades\": 3");
    EXPECT_WORDS(o, "{\"currency\": \"EUR\", \"sum_minor\": \"18000000000000000000\", "
                    "\"trades\": 2}");
    output_free(o);
}

/* Whoever sees a part is told, and how to see the rest. */
static void test_more_is_said(void **state)
{
    output *o;

    (void)state;
    make_paid("B1", "C1", 0, NULL);
    make_paid("B2", "C1", 0, NULL);
    make_paid("B3", "C1", 0, NULL);
    o = LS("--limit", "2");
    EXPECT_WORDS(o, "\"more\": true");
    assert_non_null(strstr(o->err, "these are the first 2 rows, there are more: the same with "
                                   "--after "));
    output_free(o);
    o = LS("--limit", "3");
    EXPECT_WORDS(o, "\"more\": false");
    EXPECT_WORDS(o, "\"next\": null");
    assert_string_equal(o->err, "");
    output_free(o);
    o = LINES("--limit", "1", "-o", "csv");
    assert_non_null(strstr(o->err, "--after "));
    output_free(o);
    o = LINES("--after", "nowhere");
    EXPECT_SENTENCE(o, 2, "the place to go on from is not one that a list with this filter ended");
    output_free(o);
    o = LINES("--conflict", "--after", "b.0....");
    EXPECT_CODE(o, 0);
    output_free(o);
    o = LINES("--in-doubt", "--after", "j.0....");
    EXPECT_SENTENCE(o, 2, "the place to go on from");
    output_free(o);
}

/* ------------------------------------------------------------------------ forms -- */

static void expect_lines_fit(const char *text, size_t width)
{
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");

        if (size > width)
            fail_msg("%zu columns: %.*s", size, (int)size, text);
        text += size + (text[size] == '\n');
    }
}

static void test_columns_fit(void **state)
{
    output *o;

    (void)state;
    make_doubtful("W20260301", "C100017", 1234500, "EUR");
    make_parked("W20260302", "C100018", "attempts used up, and the bank does not answer");
    make_paid("W20260303", "C100019", 1050, "EUR");
    set_made("W20260301", "100 HOUR");
    o = LINES("--limit", "10");
    EXPECT_CODE(o, 0);
    expect_lines_fit(o->out, 80);
    EXPECT_WORDS(o, "W20260301 C100017  WITHDRAW       in doubt  4d04h  ");
    EXPECT_WORDS(o, "1234500 EUR\n");
    output_free(o);
    o = LINES("--columns", "serial,parked", "--parked", "--lane", "retry");
    assert_string_equal(o->out, "SERIAL    PARKED\n"
                                "W20260302 attempts used up, and the bank does not answer\n"
                                "\n0 trades (1 row)\n");
    output_free(o);
    o = LINES("-o", "wide", "--parked");
    EXPECT_WORDS(o, "HOLDER OR REASON");
    output_free(o);
    o = LINES("--columns", "serial,parkt");
    EXPECT_SENTENCE(o, 2, "--columns knows no column parkt: it knows serial,customer,operation,");
    output_free(o);
    o = LINES("--columns", "serial,");
    EXPECT_SENTENCE(o, 2, "--columns knows no column");
    output_free(o);
    o = LINES("-o", "yaml");
    EXPECT_SENTENCE(o, 2, "-o is wide, csv or json, not yaml");
    output_free(o);
    o = LINES("-o");
    EXPECT_SENTENCE(o, 2, "option -o: a value is missing");
    output_free(o);
}

static void test_csv(void **state)
{
    tl_ending declined = TL_ENDING_INIT;
    output *o;

    (void)state;
    declined.outcome = TL_OUTCOME_FAILURE;
    declined.proof = TL_PROOF_DECLINED;
    declined.remark = "no \"funds\", he says";
    end(held_for("D1", "C1", 1050, "EUR"), &declined, TL_FAILED);
    o = LINES("-o", "csv", "--columns", "serial,remark,amount,currency");
    EXPECT_CODE(o, 0);
    assert_string_equal(o->out, "serial,remark,amount,currency\n"
                                "D1,\"no \"\"funds\"\", he says\",1050,EUR\n");
    output_free(o);
    o = LINES("-o", "csv", "--cust", "NOBODY", "--columns", "serial");
    assert_string_equal(o->out, "serial\n");
    output_free(o);
    o = LINES("-o", "json");
    EXPECT_WORDS(o, "\"serial_no\": \"D1\"");
    output_free(o);
}

/* ------------------------------------------------------------- show by serial -- */

static void test_show_by_serial(void **state)
{
    output *o;

    (void)state;
    make_paid("ONLY", "C1", 0, NULL);
    make_doubtful("SAME", "C1", 0, NULL);
    make_doubtful("SAME", "C2", 0, NULL);
    make_parked("PARKED-77", "C3", "why");
    o = RUN("show", "ONLY", "--config", config);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "ONLY C1 WITHDRAW\n\nWhy      It succeeded");
    output_free(o);
    o = RUN("show", "PARK", "--config", config);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "PARKED-77 C3 WITHDRAW\n");
    output_free(o);
    o = RUN("show", "SAME", "C2", "--config", config);
    EXPECT_CODE(o, 6);
    EXPECT_WORDS(o, "SAME C2 WITHDRAW\n");
    output_free(o);
    o = RUN("show", "SAME", "--config", config);
    EXPECT_CODE(o, 1);
    EXPECT_WORDS(o, "SAME   C1");
    EXPECT_WORDS(o, "SAME   C2");
    assert_non_null(strstr(o->err, "several trades match SAME: name one, by SERIAL CUST OP\n"));
    output_free(o);
    o = RUN("show", "NONE", "--config", config);
    EXPECT_SENTENCE(o, 1, "there is no trade NONE, and none whose serial number begins so\n");
    output_free(o);
}

/* ------------------------------------------------------------------ the past -- */

static char *now_of_server(char to[64])
{
    char *text =
        database_text(f.sql, "SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%%Y-%%m-%%dT%%T.%%f')");

    snprintf(to, 64, "%s", text);
    free(text);
    return to;
}

static void expect_as_of(const char *moment, const char *words, int code)
{
    output *o = RUN("show", "PAST", "C1", "WITHDRAW", "--as-of", moment, "--config", config);

    EXPECT_CODE(o, code);
    EXPECT_WORDS(o, words);
    output_free(o);
}

/* A trade is looked at as it was before it was there, held, in doubt, parked, worked on, and
 * paid. */
static void test_as_of(void **state)
{
    char before[64], held[64], doubtful[64], working[64], parked[64], paid[64];
    tl_lock_options retry = retry_options();
    tl_ending unknown = TL_ENDING_INIT, park = TL_ENDING_INIT, success = TL_ENDING_INIT;
    tl_lock *lock;
    output *o;

    (void)state;
    now_of_server(before);
    lock = held_for("PAST", "C1", 1050, "EUR");
    now_of_server(held);
    end(lock, &unknown, TL_IN_DOUBT);
    now_of_server(doubtful);
    lock = granted(f.client, "PAST", "C1", &retry);
    now_of_server(working);
    park.park_reason = "the bank is away";
    end(lock, &park, TL_PARKED);
    now_of_server(parked);
    database_run(f.sql, "UPDATE trade_lock SET parked = NULL, next_run_at = UTC_TIMESTAMP(6), "
                        "rev = rev + 1 WHERE serial_no = 'PAST' AND lane = 'R'");
    success.outcome = TL_OUTCOME_SUCCESS;
    success.channel_ref = "BANK-1";
    end(granted(f.client, "PAST", "C1", &retry), &success, TL_SUCCEEDED);
    now_of_server(paid);

    o = RUN("show", "PAST", "C1", "WITHDRAW", "--as-of", before, "--config", config);
    EXPECT_SENTENCE(o, 1, "there was no row PAST C1 WITHDRAW at that moment, or a purge has");
    output_free(o);
    expect_as_of(held, "status            P, live\n", 0);
    expect_as_of(held, "by its history: live.\n\nstatus ", 0);
    expect_as_of(held, "minor units       1050 EUR\n", 0);
    expect_as_of(doubtful, "status            P, in doubt\n", 6);
    expect_as_of(working, "status            P, working\n", 0);
    expect_as_of(parked, "status            P, parked\n", 6);
    expect_as_of(parked, "parked            the bank is away", 6);
    expect_as_of(paid, "status            Y, succeeded\n", 0);
    expect_as_of(paid, "channel ref       BANK-1\n", 0);
    o = RUN("show", "PAST", "C1", "WITHDRAW", "--as-of", doubtful, "--config", config);
    assert_null(strstr(o->out, "BANK-1"));
    assert_null(strstr(o->out, "the bank is away"));
    EXPECT_WORDS(o, "As it was at 20");
    output_free(o);
    o = LS("--in-doubt", "--as-of", doubtful);
    assert_non_null(strstr(o->err, "what a purge has removed since is not in this list"));
    EXPECT_ROWS(o, "PAST/sync");
    EXPECT_ROWS(LS("--in-doubt", "--as-of", paid), "");
    EXPECT_ROWS(LS("--parked", "--as-of", parked, "--lane", "sync"), "PAST/sync");
    EXPECT_ROWS(LS("--status", "Y", "--as-of", paid, "--lane", "sync"), "PAST/sync");
    EXPECT_ROWS(LS("--status", "Y", "--as-of", parked), "");
    EXPECT_ROWS(LS("--as-of", before), "");
    EXPECT_ROWS(LS("--as-of", held, "--serial", "PAST"), "PAST/sync");
    EXPECT_ROWS(LS("--as-of", held, "--cust", "C1", "--status", "P"), "PAST/sync");
}

/* What was removed by hand has its history still. */
static void test_as_of_without_a_row(void **state)
{
    char paid[64];
    output *o;

    (void)state;
    make_paid("PAST", "C1", 1050, "EUR");
    now_of_server(paid);
    database_run(f.sql, "DELETE FROM trade_lock WHERE serial_no = 'PAST'");
    expect_as_of(paid, "status            Y, succeeded\n", 0);
    o = RUN("show", "PAST", "C1", "WITHDRAW", "--as-of", "0s", "--config", config);
    EXPECT_SENTENCE(o, 1, "there was no row");
    output_free(o);
    o = RUN("show", "PAST", "C1", "WITHDRAW", "--as-of", "yesterday", "--config", config);
    EXPECT_SENTENCE(o, 2, "--as-of is a moment as 2026-03-01T09:30, in UTC, or how long ago");
    output_free(o);
}

/* The past is for those who may read history. */
static void test_as_of_without_the_right(void **state)
{
    char words[512], path[] = "/tmp/tradelock-lists-XXXXXX";
    const int file = mkstemp(path);
    output *o;

    (void)state;
    assert_true(file >= 0);
    make_paid("PAST", "C1", 1050, "EUR");
    database_run(f.sql,
                 "CREATE OR REPLACE USER lists_service@localhost IDENTIFIED BY 'a'; "
                 "GRANT SELECT ON %1$s.trade_lock TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.trade_lock_state TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.trade_lock_low_water TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.tl_session TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.tl_restore TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.tl_clock TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.tl_clock_step TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.tl_schema TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.trade_evidence TO lists_service@localhost; "
                 "GRANT SELECT ON %1$s.trade_resolution TO lists_service@localhost; "
                 "GRANT EXECUTE ON FUNCTION %1$s.tl_restored TO lists_service@localhost; "
                 "GRANT EXECUTE ON FUNCTION %1$s.tl_identity TO lists_service@localhost",
                 database_name(f.db));
    snprintf(words, sizeof words,
             "[tradelock-client]\nsocket=%s\nuser=lists_service\npassword=a\ndatabase=%s\n",
             server_socket(server_shared()), database_name(f.db));
    assert_int_equal(write(file, words, strlen(words)), strlen(words));
    close(file);
    o = RUN("ls", "--json", "--config", path, "--cust", "C1");
    EXPECT_ROWS(o, "PAST/sync");
    o = RUN("show", "PAST", "C1", "WITHDRAW", "--as-of", "0s", "--config", path);
    EXPECT_SENTENCE(o, 1,
                    "reading the log of a trade: the account lacks a right: SELECT command denied");
    output_free(o);
    o = RUN("ls", "--log", "11111111-1111-4111-8111-111111111111", "--cust", "C1", "--config",
            path);
    assert_int_equal(o->code, 0); /* no row that may be of it: nobody has to look */
    output_free(o);
    unlink(path);
    database_run(f.sql, "DROP USER lists_service@localhost");
}

/* ------------------------------------------------------------------- killed -- */

static const char *const locks[] = {"LOCK TABLES trade_lock WRITE", "LOCK TABLES tl_schema WRITE"};

struct killing {
    MYSQL *locks, *kills;
};

/* Kills the query of a younger connection that waits for the table, then lets the table go. */
static void *kill_one(void *context)
{
    const struct killing *killing = context;
    char kill[64];
    long long id = 0;

    while (id == 0)
        id = database_number(killing->kills,
                             "SELECT COALESCE(MAX(id), 0) FROM information_schema.processlist "
                             "WHERE state = 'Waiting for table metadata lock' AND db = '%s' "
                             "AND id > CONNECTION_ID()",
                             database_name(f.db));
    snprintf(kill, sizeof kill, "KILL QUERY %lld", id);
    database_run(killing->kills, "%s", kill);
    database_run(killing->locks, "UNLOCK TABLES");
    return NULL;
}

/* Somebody tidies up with KILL QUERY: a page is read once more, and a client opened once more. */
static void test_a_killed_query_is_repeated(void **state)
{
    struct killing killing = {database_connect(f.db), database_connect(f.db)};
    pthread_t killer;
    output *o;

    (void)state;
    make_doubtful("KILLED", "C1", 100, "EUR");
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        database_run(killing.locks, "%s", locks[i]);
        assert_int_equal(pthread_create(&killer, NULL, kill_one, &killing), 0);
        o = LS("--serial", "KILLED");
        pthread_join(killer, NULL);
        EXPECT_ROWS(o, "KILLED/retry KILLED/sync");
    }
    mysql_close(killing.locks);
    mysql_close(killing.kills);
}

TEST_MAIN(lists)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_age_is_from_the_first_ask, clear),
        cmocka_unit_test_setup(test_since_and_until, clear),
        cmocka_unit_test_setup(test_channel_and_amount, clear),
        cmocka_unit_test_setup(test_serial_numbers, clear),
        cmocka_unit_test_setup(test_order, clear),
        cmocka_unit_test_setup(test_pages, clear),
        cmocka_unit_test_setup(test_pages_that_look_at_few, clear),
        cmocka_unit_test_setup(test_totals, clear),
        cmocka_unit_test_setup(test_more_is_said, clear),
        cmocka_unit_test_setup(test_columns_fit, clear),
        cmocka_unit_test_setup(test_csv, clear),
        cmocka_unit_test_setup(test_show_by_serial, clear),
        cmocka_unit_test_setup(test_as_of, clear),
        cmocka_unit_test_setup(test_as_of_without_a_row, clear),
        cmocka_unit_test_setup(test_as_of_without_the_right, clear),
        cmocka_unit_test_setup(test_a_killed_query_is_repeated, clear),
    };

    return server_run_tests(tests, set_up, tear_down);
}
