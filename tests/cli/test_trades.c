/* The command on real trades: lists, one trade, and an operator's retry. */
#include "command.h"
#include "fields.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOUR_MS 3600000

static struct world {
    fixture f;
    tl_client *doomed;
    tl_lock *live, *mutex;
    const char *config;
} w;

static void end(tl_lock *lock, const tl_ending *ending, tl_status expected)
{
    tl_status status = tl_lock_finish(lock, ending);

    if (status != expected)
        server_panic("%s, not %s: %s", tl_status_name(status), tl_status_name(expected),
                     tl_error_message());
    tl_lock_free(lock);
}

static tl_lock *held(const char *serial, const char *cust, tl_lock_options options)
{
    return granted(w.f.client, serial, cust, &options);
}

static void make_finished(void)
{
    tl_ending paid = TL_ENDING_INIT, declined = TL_ENDING_INIT;

    paid.outcome = TL_OUTCOME_SUCCESS;
    paid.channel_ref = "BANK-1";
    paid.result = "{\"paid\":true}";
    paid.result_size = strlen(paid.result);
    end(held("PAID", "C1", sync_options("pay 10 EUR")), &paid, TL_SUCCEEDED);
    end(held("ALSO", "C2", sync_options("pay 11 EUR")), &paid, TL_SUCCEEDED);
    declined.outcome = TL_OUTCOME_FAILURE;
    declined.proof = TL_PROOF_DECLINED;
    declined.retryable = 1;
    declined.remark = "no \x1b[31mfunds";
    end(held("DECLINED", "C1", sync_options("pay 20 EUR")), &declined, TL_FAILED);
}

static void make_open(void)
{
    tl_ending unknown = TL_ENDING_INIT, not_sent = TL_ENDING_INIT, parked = TL_ENDING_INIT;
    tl_lock_options queued = sync_options("pay 40 EUR"), told = sync_options("pay 30 EUR");
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {"DOUBT", "C2", "WITHDRAW"},
                            .outcome = "PENDING",
                            .source = "web-hook",
                            .remark = "in the night batch"};

    unknown.next_run_ms = HOUR_MS;
    told.amount_minor = 3000;
    told.currency = "EUR";
    end(held("DOUBT", "C2", told), &unknown, TL_IN_DOUBT);
    if (tl_evidence_add(w.f.client, &evidence) != TL_OK)
        server_panic("evidence: %s", tl_error_message());
    queued.not_sent = 1;
    not_sent.outcome = TL_OUTCOME_NOT_SENT;
    not_sent.next_run_ms = HOUR_MS;
    end(held("QUEUED", "C2", queued), &not_sent, TL_QUEUED);
    parked.park_reason = "attempts used up";
    end(held("PARKED", "C3", sync_options("pay 50 EUR")), &parked, TL_PARKED);
}

static void make_held(void)
{
    tl_lock_options binary = sync_options(NULL), repeatable = sync_options(NULL);
    tl_lock_options options = sync_options("pay 70 EUR");
    tl_ending unknown = TL_ENDING_INIT;

    binary.payload = "\xff\x00\x01";
    binary.payload_size = 3;
    /* They are held until the last test, however slow the machine is. */
    binary.max_hold_ms = repeatable.max_hold_ms = 3600000;
    w.live = held("LIVE", "C4", binary);
    repeatable.flags = TL_ASK_REPEATABLE;
    repeatable.channel = NULL;
    w.mutex = held("MUTEX", "C4", repeatable);
    end(held("LEFT", "C6", repeatable), &unknown, TL_IN_DOUBT);
    /* The holder dies, and no janitor comes by. */
    w.doomed = client_new(&w.f, TL_CLIENT_NO_JANITOR);
    tl_lock_free(granted(w.doomed, "DEAD", "C5", &options));
    database_run(w.f.sql,
                 "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE "
                 "session_id = '%s'",
                 tl_client_session(w.doomed));
}

static int set_up(void **state)
{
    (void)state;
    fixture_open(&w.f, "janitor=0\ncommit_ms=1s\n");
    w.config = database_option_file(w.f.db);
    make_finished();
    make_open();
    make_held();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_lock_free(w.live);
    tl_lock_free(w.mutex);
    tl_client_close(w.doomed);
    fixture_close(&w.f);
    return 0;
}

/* --------------------------------------------------------------------- ls -- */

/* The rows that `ls` gave, as "SERIAL/lane" in alphabetical order. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void expect_rows(output *o, const char *expected)
{
    json_t *document, *row;
    char *names[64], got[1024] = "";
    size_t i, count = 0;

    EXPECT_CODE(o, 0);
    document = output_json(o);
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        if (asprintf(&names[count++], "%s/%s", json_string_value(json_object_get(row, "serial_no")),
                     json_string_value(json_object_get(row, "lane"))) < 0)
            server_panic("out of memory");
    }
    qsort(names, count, sizeof names[0], by_name);
    for (i = 0; i < count; i++) {
        strcat(strcat(got, i > 0 ? " " : ""), names[i]);
        free(names[i]);
    }
    assert_string_equal(got, expected);
    json_decref(document);
    output_free(o);
}

#define LS(...) RUN("ls", "--json", "--config", w.config, __VA_ARGS__)

static void test_ls_filters(void **state)
{
    (void)state;
    expect_rows(LS("--limit", "50"),
                "ALSO/sync DEAD/sync DECLINED/sync DOUBT/retry DOUBT/sync LEFT/sync "
                "LIVE/sync MUTEX/sync PAID/sync PARKED/retry PARKED/sync QUEUED/retry "
                "QUEUED/sync");
    expect_rows(LS("--status", "Y"), "ALSO/sync PAID/sync");
    expect_rows(LS("--status", "F"), "DECLINED/sync DOUBT/retry PARKED/retry QUEUED/retry");
    expect_rows(LS("--status", "F", "--lane", "sync"), "DECLINED/sync");
    expect_rows(LS("--status", "P"), "DEAD/sync DOUBT/sync LEFT/sync LIVE/sync "
                                     "MUTEX/sync PARKED/sync QUEUED/sync");
    expect_rows(LS("--in-doubt"), "DEAD/sync DOUBT/sync LEFT/sync");
    expect_rows(LS("--parked"), "PARKED/retry PARKED/sync");
    expect_rows(LS("--parked", "--lane", "sync"), "PARKED/sync");
    expect_rows(LS("--lane", "retry"), "DOUBT/retry PARKED/retry QUEUED/retry");
    expect_rows(LS("--lane", "sync"),
                "ALSO/sync DEAD/sync DECLINED/sync DOUBT/sync LEFT/sync LIVE/sync "
                "MUTEX/sync PAID/sync PARKED/sync QUEUED/sync");
    expect_rows(LS("--cust", "C2"), "ALSO/sync DOUBT/retry DOUBT/sync QUEUED/retry QUEUED/sync");
    expect_rows(LS("--cust", "C2", "--in-doubt"), "DOUBT/sync");
    expect_rows(LS("--cust", "C2", "--status", "F"), "DOUBT/retry QUEUED/retry");
    expect_rows(LS("--cust", "C2", "--status", "Y"), "ALSO/sync");
    expect_rows(LS("--cust", "C3", "--parked", "--lane", "retry"), "PARKED/retry");
    expect_rows(LS("--cust", "C2", "--serial", "DOUBT"), "DOUBT/retry DOUBT/sync");
    expect_rows(LS("--serial", "PAID"), "PAID/sync");
    expect_rows(LS("--serial", "DOUBT", "--lane", "retry"), "DOUBT/retry");
    expect_rows(LS("--op", "WITHDRAW", "--status", "Y"), "ALSO/sync PAID/sync");
    expect_rows(LS("--op", "WITHDRAW", "--in-doubt", "--status", "P", "--older", "0s"),
                "DEAD/sync DOUBT/sync LEFT/sync");
    expect_rows(LS("--in-doubt", "--status", "Y"), "");
    expect_rows(LS("--parked", "--in-doubt"), "");
    expect_rows(LS("--op", "WITHDRAW_X"), "");
    expect_rows(LS("--op", "WITH"), "");
    expect_rows(LS("--older", "1h"), "");
    expect_rows(LS("--older", "0ms", "--status", "Y"), "ALSO/sync PAID/sync");
    expect_rows(LS("--older", "1h", "--in-doubt"), "");
    expect_rows(LS("--conflict"), "");
}

/* ---------------------------------------------------------------- by log UUID -- */

static tl_lock *due(const char *serial, const char *cust)
{
    tl_lock_options retry = retry_options();

    return granted(w.f.client, serial, cust, &retry);
}

static char *upper(char *to, const char *from)
{
    char *start = to;

    while ((*to++ = (char)toupper((unsigned char)*from++)) != '\0')
        ;
    return start;
}

/* A row is found by its ask's work, by its last step's, and by one's of which only history knows,
 * whatever else narrows the list. */
static void test_ls_by_log_uuid(void **state)
{
    char asked[TL_UUID_TEXT], between[TL_UUID_TEXT], ended[TL_UUID_TEXT];
    char capitals[TL_UUID_TEXT];
    tl_ending unknown = TL_ENDING_INIT, paid = TL_ENDING_INIT;
    output *o;

    (void)state;
    paid.outcome = TL_OUTCOME_SUCCESS;
    assert_int_equal(tl_work_begin(), 1);
    strcpy(asked, tl_log_uuid());
    end(held("LOGGED", "C7", sync_options("pay 80 EUR")), &unknown, TL_IN_DOUBT);
    end(held("OTHER", "C8", sync_options("pay 81 EUR")), &paid, TL_SUCCEEDED);
    expect_rows(LS("--log", asked), "LOGGED/retry LOGGED/sync OTHER/sync");
    tl_work_end(0);
    assert_int_equal(tl_work_begin(), 1);
    strcpy(between, tl_log_uuid());
    end(due("LOGGED", "C7"), &unknown, TL_IN_DOUBT);
    tl_work_end(0);
    assert_int_equal(tl_work_begin(), 1);
    strcpy(ended, tl_log_uuid());
    end(due("LOGGED", "C7"), &paid, TL_SUCCEEDED);
    tl_work_end(0);
    expect_rows(LS("--log", asked), "LOGGED/retry LOGGED/sync OTHER/sync");
    expect_rows(LS("--log", upper(capitals, asked)), "LOGGED/retry LOGGED/sync OTHER/sync");
    expect_rows(LS("--log", between), "LOGGED/retry LOGGED/sync");
    expect_rows(LS("--log", ended), "LOGGED/retry LOGGED/sync");
    expect_rows(LS("--log", asked, "--cust", "C7"), "LOGGED/retry LOGGED/sync");
    expect_rows(LS("--log", asked, "--op", "WITHDRAW", "--lane", "sync"), "LOGGED/sync OTHER/sync");
    expect_rows(LS("--log", between, "--op", "WITHDRAW", "--lane", "sync"), "LOGGED/sync");
    expect_rows(LS("--log", asked, "--cust", "C1"), "");
    expect_rows(LS("--log", asked, "--in-doubt"), "");
    expect_rows(LS("--log", "11111111-1111-4111-8111-111111111111"), "");
    o = RUN("ls", "--config", w.config, "--log", "W1");
    EXPECT_CODE(o, 2);
    assert_string_equal(o->err, "tradelock: the log UUID is not a UUID as log lines and "
                                "rows have it\n");
    output_free(o);
    database_run(w.f.sql, "DELETE FROM trade_lock WHERE cust_no IN ('C7', 'C8')");
}

static int is_finished(const json_t *row)
{
    const char *state = json_string_value(json_object_get(row, "state"));

    return strcmp(state, "succeeded") == 0 || strcmp(state, "failed") == 0 ||
           strcmp(state, "closed") == 0;
}

/* Whatever the limit cuts off, it is what nobody has to look at. */
static void expect_open_first(output *o, size_t open, size_t finished)
{
    json_t *document = output_json(o), *rows = json_object_get(document, "rows"), *row;
    size_t i;

    EXPECT_CODE(o, 0);
    assert_int_equal(json_array_size(rows), open + finished);
    json_array_foreach(rows, i, row)
    {
        if (is_finished(row) != (i >= open))
            fail_msg("row %zu, %s %s, is %s", i,
                     json_string_value(json_object_get(row, "serial_no")),
                     json_string_value(json_object_get(row, "lane")),
                     json_string_value(json_object_get(row, "state")));
    }
    json_decref(document);
    output_free(o);
}

static void test_ls_order(void **state)
{
    (void)state;
    expect_open_first(LS("--limit", "50"), 10, 3);
    expect_open_first(LS("--limit", "11"), 10, 1);
    expect_open_first(LS("--limit", "9"), 9, 0);
    expect_open_first(LS("--op", "WITHDRAW"), 10, 3);
    expect_open_first(LS("--lane", "sync"), 7, 3);
    expect_open_first(LS("--cust", "C2"), 4, 1);
    expect_open_first(LS("--cust", "C2", "--limit", "4"), 4, 0);
}

/* A value goes to the server as a value. */
static void test_ls_injection(void **state)
{
    (void)state;
    expect_rows(LS("--cust", "x'OR'1'='1"), "");
    expect_rows(LS("--serial", "x'/**/OR/**/1=1--"), "");
    expect_rows(LS("--op", "x\"OR\"1"), "");
}

/* The amount that a trade told; null where it told none, and on its retry row. */
static void test_amounts(void **state)
{
    output *o = RUN("ls", "--config", w.config, "--json", "--cust", "C2");
    json_t *document = output_json(o), *row;
    size_t i, told = 0;

    (void)state;
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        const char *serial = json_string_value(json_object_get(row, "serial_no"));
        const char *lane = json_string_value(json_object_get(row, "lane"));

        if (strcmp(serial, "DOUBT") != 0 || strcmp(lane, "sync") != 0) {
            assert_true(json_is_null(json_object_get(row, "amount_minor")));
            assert_true(json_is_null(json_object_get(row, "currency")));
            continue;
        }
        told++;
        assert_int_equal(json_integer_value(json_object_get(row, "amount_minor")), 3000);
        assert_string_equal(json_string_value(json_object_get(row, "currency")), "EUR");
    }
    assert_int_equal(told, 1);
    json_decref(document);
    output_free(o);
    o = RUN("show", "DOUBT", "C2", "WITHDRAW", "--config", w.config);
    EXPECT_WORDS(o, "minor units       3000 EUR\n");
    output_free(o);
    o = RUN("show", "PAID", "C1", "WITHDRAW", "--config", w.config);
    assert_null(strstr(o->out, "minor units"));
    output_free(o);
}

static void test_ls_table(void **state)
{
    output *o = RUN("ls", "--config", w.config, "-o", "wide");

    (void)state;
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "SERIAL");
    EXPECT_WORDS(o, "AMOUNT");
    assert_null(strstr(o->out, "MINOR UNITS"));
    EXPECT_WORDS(o, "3000 EUR");
    EXPECT_WORDS(o, "in doubt");
    EXPECT_WORDS(o, "attempts used up");
    output_free(o);
    o = RUN("ls", "--config", w.config, "--limit", "2");
    EXPECT_CODE(o, 0);
    assert_non_null(strstr(o->err, "first 2 rows"));
    output_free(o);
}

/* In process, and neither a holder nor a retry row leads to it: it is in the list of all. */
static void test_ls_typed_by_hand(void **state)
{
    (void)state;
    database_run(w.f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, sends, created_at, updated_at) VALUES "
                 "('C1', 'TYPED', 'HAND', 'S', 'P', 'ask', UUID(), 'x', 1, 1, 1, "
                 "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    expect_rows(LS("--op", "HAND"), "TYPED/sync");
    expect_rows(LS("--serial", "TYPED"), "TYPED/sync");
    expect_rows(LS("--cust", "C1", "--status", "P"), "TYPED/sync");
    database_run(w.f.sql, "DELETE FROM trade_lock WHERE op_code = 'HAND'");
}

/* A person is told that there is nothing; a program counts. */
static void test_ls_nothing(void **state)
{
    output *o = RUN("ls", "--config", w.config, "--older", "7d", "--parked");

    (void)state;
    EXPECT_SENTENCE(o, 0, "no lock passes these filters\n");
    output_free(o);
    o = RUN("evidence", "ls", "PAID", "C1", "WITHDRAW", "--config", w.config);
    EXPECT_SENTENCE(o, 0, "nothing was filed about this trade\n");
    output_free(o);
    o = RUN("resolve", "ls", "PAID", "C1", "WITHDRAW", "--config", w.config);
    EXPECT_SENTENCE(o, 0, "no operator decided anything about this trade\n");
    output_free(o);
    o = RUN("resource", "ls", "--config", w.config);
    EXPECT_SENTENCE(o, 0, "no resource passes these filters\n");
    output_free(o);
    o = LS("--older", "7d", "--parked");
    assert_string_equal(o->err, "");
    expect_rows(o, "");
}

/* Pages: many rows at one moment, of one session, and finished; each comes once. */
static void test_ls_pages(void **state)
{
    static const char insert[] =
        "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
        "thread_no, token, fence, rev, session_id, max_hold_until, next_run_at, "
        "created_at, "
        "updated_at) SELECT CONCAT('P', seq), CONCAT('%s', seq), 'PAGES', 'S', '%s', "
        "'ask', "
        "UUID(), 'x', 1, 1, %s, UTC_TIMESTAMP(6), %s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) "
        "FROM seq_1_to_%d";
    json_t *document;
    output *o;

    (void)state;
    database_run(w.f.sql, insert, "M", "P", "UUID()", "'2040-01-01'", 1300);
    database_run(w.f.sql, insert, "S", "P", "'a0000000-0000-4000-8000-000000000001'", "NULL", 1100);
    database_run(w.f.sql, insert, "Y", "Y", "NULL", "NULL", 1200);
    o = LS("--op", "PAGES", "--limit", "10000");
    EXPECT_CODE(o, 0);
    document = output_json(o);
    assert_int_equal(json_integer_value(json_object_get(document, "count")), 3600);
    for (int i = 1; i <= 1100; i += 13) {
        char serial[16];
        const char *first;

        snprintf(serial, sizeof serial, "\"S%d\"", i);
        first = strstr(o->out, serial);
        assert_non_null(first);
        assert_null(strstr(first + 1, serial));
    }
    json_decref(document);
    output_free(o);
    o = LS("--cust", "P1", "--limit", "10000");
    document = output_json(o);
    assert_int_equal(json_integer_value(json_object_get(document, "count")), 3);
    json_decref(document);
    output_free(o);
    database_run(w.f.sql, "DELETE FROM trade_lock WHERE op_code = 'PAGES'");
}

/* ------------------------------------------------------------------- show -- */

static void expect_show(const char *serial, const char *cust, int code, const char *words)
{
    output *o = RUN("show", "--config", w.config, serial, cust, "WITHDRAW");

    EXPECT_CODE(o, code);
    EXPECT_WORDS(o, words);
    EXPECT_WORDS(o, "Timeline");
    output_free(o);
}

static void test_show(void **state)
{
    (void)state;
    expect_show("PAID", "C1", 0, "It succeeded, once and for good");
    expect_show("PAID", "C1", 0, "result            13 bytes: {\"paid\":true}");
    expect_show("DECLINED", "C1", 0, "with proof: the channel declined");
    /* A remark cannot paint the terminal. */
    expect_show("DECLINED", "C1", 0, "no \\x1b[31mfunds");
    expect_show("DOUBT", "C2", 6, "Money may have moved: 1 send may have left");
    expect_show("DOUBT", "C2", 6, "in the night batch");
    expect_show("QUEUED", "C2", 0, "Nothing has been sent");
    expect_show("PARKED", "C3", 6, "because: attempts used up");
    expect_show("LIVE", "C4", 0, "holds the lock and may do so until");
    expect_show("LIVE", "C4", 0, "3 bytes: ff0001");
    expect_show("DEAD", "C5", 6, "its retry lane is not open yet");
}

/* A holder that was killed, which nobody has noticed yet. */
static void test_show_a_silent_holder(void **state)
{
    (void)state;
    database_run(w.f.sql,
                 "INSERT INTO tl_session (session_id, program, host, pid, connection_name, "
                 "timeout_ms, started_at, alive_until) VALUES "
                 "('00000000-0000-4000-8000-00000000dead', 'frozen', 'here', 7, UUID(), "
                 "2000000, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 1000 SECOND)");
    database_run(w.f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, session_id, token, fence, rev, max_hold_until, created_at, "
                 "updated_at) VALUES ('C9', 'SILENT', 'WITHDRAW', 'S', 'P', 'ask', UUID(), "
                 "'00000000-0000-4000-8000-00000000dead', RANDOM_BYTES(16), 1, 1, "
                 "UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    expect_show("SILENT", "C9", 0, "frozen 7@here (last heartbeat 1");
    expect_show("LIVE", "C4", 0, " (last heartbeat ");
    database_run(w.f.sql, "DELETE FROM trade_lock WHERE serial_no = 'SILENT'");
    database_run(w.f.sql, "DELETE FROM tl_session WHERE program = 'frozen'");
}

static const char *fence_of(const char *serial, char text[24])
{
    snprintf(text, 24, "%lld",
             database_number(w.f.sql,
                             "SELECT fence FROM trade_lock WHERE serial_no = '%s' "
                             "AND lane = 'S'",
                             serial));
    return text;
}

/* Whoever holds the row in a transaction of theirs is the answer to why nothing moves. */
static void test_show_a_row_that_is_held(void **state)
{
    MYSQL *holder = database_connect(w.f.db);
    char fence[24];
    output *o;

    (void)state;
    database_run(holder, "BEGIN; SELECT 1 FROM trade_lock WHERE cust_no = 'C2' AND "
                         "serial_no = 'DOUBT' AND op_code = 'WITHDRAW' FOR UPDATE");
    expect_show("DOUBT", "C2", 6, "An open transaction holds the row at this moment");
    o = RUN("retry", "--config", w.config, "DOUBT", "C2", "WITHDRAW", "--fence",
            fence_of("DOUBT", fence), "--reason", "x");
    EXPECT_SENTENCE(o, 1, "an open transaction is deciding this trade");
    output_free(o);
    database_run(holder, "ROLLBACK");
    mysql_close(holder);
    o = RUN("show", "--config", w.config, "DOUBT", "C2", "WITHDRAW");
    EXPECT_CODE(o, 6);
    assert_null(strstr(o->out, "open transaction"));
    output_free(o);
}

static void test_show_not_found(void **state)
{
    output *o = RUN("show", "--config", w.config, "NONE", "C1", "WITHDRAW");

    (void)state;
    EXPECT_SENTENCE(o, 1, "there is no row NONE C1 WITHDRAW\n");
    output_free(o);
}

static void test_show_json(void **state)
{
    output *o = RUN("show", "--json", "--config", w.config, "DOUBT", "C2", "WITHDRAW");
    json_t *document;

    (void)state;
    EXPECT_CODE(o, 6);
    document = output_json(o);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(document, "sync"), "state")), "in doubt");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(document, "retry"), "state")), "waiting");
    /* ask; opened, both rows; evidence, both rows */
    assert_true(json_array_size(json_object_get(document, "timeline")) >= 3);
    assert_int_equal(json_array_size(json_object_get(document, "evidence")), 1);
    json_decref(document);
    output_free(o);
}

/* ------------------------------------------------------------------ retry -- */

static output *retry(const char *serial, const char *cust, const char *fence)
{
    return RUN("retry", "--config", w.config, serial, cust, "WITHDRAW", "--fence", fence,
               "--reason", "the bank is back", "--actor", "ann");
}

static void expect_due(const char *serial, const char *cust, const char *step)
{
    char fence[24];
    output *o = retry(serial, cust, fence_of(serial, fence));

    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "is due now");
    output_free(o);
    assert_int_equal(database_number(w.f.sql,
                                     "SELECT next_run_at <= UTC_TIMESTAMP(6) AND parked IS "
                                     "NULL FROM trade_lock WHERE serial_no = '%s' AND "
                                     "lane = 'R' AND status = 'F'",
                                     serial),
                     1);
    assert_int_equal(database_number(w.f.sql,
                                     "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = "
                                     "'%s' AND step = '%s' AND actor = 'ann' AND op_code = "
                                     "'WITHDRAW'",
                                     serial, step),
                     1);
    assert_int_equal(database_number(w.f.sql,
                                     "SELECT COUNT(*) FROM trade_lock_log WHERE serial_no = "
                                     "'%s' AND remark = 'the bank is back'",
                                     serial) > 0,
                     1);
    /* The fence has moved: the same decision is not taken twice. */
    o = retry(serial, cust, fence);
    EXPECT_SENTENCE(o, 1, "the trade has moved on");
    output_free(o);
}

static void test_retry(void **state)
{
    (void)state;
    expect_due("DOUBT", "C2", "operator");
    expect_due("PARKED", "C3", "operator");
    expect_due("DEAD", "C5", "reap");
    assert_log_whole(&w.f);
}

/* The steps, without those of before the operator's, and by whom: "claim/- end/-". */
static char *steps_since_ann(const char *serial)
{
    return database_text(
        w.f.sql,
        "SELECT GROUP_CONCAT(step, '/', COALESCE(actor, '-') ORDER BY op_code, rev "
        "SEPARATOR ' ') FROM trade_lock_log l WHERE serial_no = '%1$s' AND rev >= "
        "(SELECT MIN(rev) FROM trade_lock_log m WHERE m.serial_no = '%1$s' AND m.op_code "
        "= l.op_code AND actor = 'ann')",
        serial);
}

/* What a worker did is not put down to the operator who let it. */
static void test_steps_are_their_makers(void **state)
{
    tl_lock_options options = retry_options();
    tl_ending again = TL_ENDING_INIT, paid = TL_ENDING_INIT;
    char fence[24], *steps, *line, *end_of_line;
    tl_lock *lock;
    output *o;

    (void)state;
    tl_lock_free(held("TWICE", "C7", sync_options("pay 80 EUR")));
    database_run(w.f.sql, "UPDATE trade_lock SET max_hold_until = UTC_TIMESTAMP(6) - "
                          "INTERVAL 1 SECOND, step = 'test', rev = rev + 1 WHERE "
                          "serial_no = 'TWICE'");
    o = retry("TWICE", "C7", fence_of("TWICE", fence));
    EXPECT_CODE(o, 0);
    output_free(o);
    again.remark = "no connection";
    lock = granted(w.f.client, "TWICE", "C7", &options);
    assert_status(tl_lock_arm(lock, 60000), TL_OK);
    end(lock, &again, TL_IN_DOUBT);
    paid.outcome = TL_OUTCOME_SUCCESS;
    end(granted(w.f.client, "TWICE", "C7", &options), &paid, TL_SUCCEEDED);
    steps = steps_since_ann("TWICE");
    assert_string_equal(steps, "reap/ann claim/- arm/- unknown/- claim/- end/- reap/ann "
                               "claim/- unknown/- claim/- end/-");
    free(steps);
    /* Nor is what was said before said again by those that say nothing. */
    o = RUN("show", "--config", w.config, "TWICE", "C7", "WITHDRAW");
    EXPECT_CODE(o, 0);
    line = strstr(o->out, "Timeline");
    assert_non_null(line);
    for (; line != NULL; line = strchr(line + 1, '\n')) {
        end_of_line = strchr(line + 1, '\n');
        if (end_of_line != NULL)
            *end_of_line = '\0';
        if (strstr(line, "no connection") != NULL)
            assert_non_null(strstr(line, " unknown "));
        if (end_of_line != NULL)
            *end_of_line = '\n';
    }
    output_free(o);
}

/* Whom to start is the worker of the business operation, not of its lane. */
static void test_late_work(void **state)
{
    tl_ending unknown = TL_ENDING_INIT;
    output *o;

    (void)state;
    end(held("LATE", "C8", sync_options("pay 90 EUR")), &unknown, TL_IN_DOUBT);
    database_run(w.f.sql, "UPDATE trade_lock SET next_run_at = UTC_TIMESTAMP(6) - "
                          "INTERVAL 2 MINUTE, step = 'test', rev = rev + 1 WHERE "
                          "serial_no = 'LATE' AND lane = 'R'");
    o = RUN("doctor", "--config", w.config);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, "nobody claims the due work of WITHDRAW: start a worker");
    output_free(o);
}

static void expect_no_retry(const char *serial, const char *cust, const char *words)
{
    long long before = database_number(w.f.sql, "SELECT COUNT(*) FROM trade_lock_log");
    char fence[24];
    output *o = retry(serial, cust, fence_of(serial, fence));

    EXPECT_SENTENCE(o, 1, words);
    output_free(o);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_lock_log"), before);
}

static void test_retry_refused(void **state)
{
    (void)state;
    expect_no_retry("LIVE", "C4", "is at it");
    expect_no_retry("MUTEX", "C4", "is at it");
    expect_no_retry("NONE", "C1", "there is no trade");
    expect_no_retry("PAID", "C1", "has succeeded");
    expect_no_retry("DECLINED", "C1", "has failed");
}

/* ----------------------------------------------------------------- fields -- */

/* What these runs print together is what tools/README.md lists, no more and no less. */
static void expect_fields(const char *name, output *const outputs[])
{
    json_t *set = json_object();

    for (size_t i = 0; outputs[i] != NULL; i++) {
        json_t *document = output_json(outputs[i]);

        fields_add(set, document);
        json_decref(document);
        output_free(outputs[i]);
    }
    fields_expect(set, name);
    json_decref(set);
}

static void test_fields(void **state)
{
    char fence[24];

    (void)state;
    database_run(w.f.sql, "INSERT INTO trade_resolution (cust_no, serial_no, op_code, "
                          "rev, verdict, part, fence, epoch, reason, actor, thread_no) "
                          "SELECT cust_no, serial_no, op_code, rev, 'F', 1, fence, epoch, "
                          "'r', 'a', UUID() FROM trade_lock WHERE serial_no = 'DOUBT' "
                          "AND lane = 'S'");
    database_run(w.f.sql, "UPDATE trade_lock SET batch = 'B', rev = rev + 1 WHERE serial_no = "
                          "'PAID' AND lane = 'S'");
    expect_fields("ls+row", (output *const[]){LS("--limit", "50"), LS("--batch", "B"), NULL});
    expect_fields("show+row+evidence ls+resolve ls",
                  (output *const[]){
                      RUN("show", "--json", "--config", w.config, "DOUBT", "C2", "WITHDRAW"),
                      RUN("show", "--json", "--config", w.config, "LIVE", "C4", "WITHDRAW"), NULL});
    expect_fields("retry", (output *const[]){RUN("retry", "--json", "--config", w.config, "QUEUED",
                                                 "C2", "WITHDRAW", "--fence",
                                                 fence_of("QUEUED", fence), "--reason", "r"),
                                             NULL});
    expect_fields("doctor", (output *const[]){RUN("doctor", "--json", "--config", w.config), NULL});
    expect_fields("migrate",
                  (output *const[]){RUN("migrate", "--json", "--config", w.config), NULL});
    expect_fields("version", (output *const[]){RUN("version", "--json"), NULL});
}

TEST_MAIN(trades)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ls_filters),
        cmocka_unit_test(test_ls_by_log_uuid),
        cmocka_unit_test(test_ls_order),
        cmocka_unit_test(test_ls_typed_by_hand),
        cmocka_unit_test(test_ls_nothing),
        cmocka_unit_test(test_ls_injection),
        cmocka_unit_test(test_ls_table),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_ls_pages),
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_show_a_silent_holder),
        cmocka_unit_test(test_show_not_found),
        cmocka_unit_test(test_show_json),
        cmocka_unit_test(test_retry_refused),
        cmocka_unit_test(test_retry),
        cmocka_unit_test(test_steps_are_their_makers),
        cmocka_unit_test(test_show_a_row_that_is_held),
        cmocka_unit_test(test_late_work),
        cmocka_unit_test(test_fields),
    };

    return server_run_tests(tests, set_up, tear_down);
}
