/*
 * The audit finds nothing in trades that went every ordinary way, and names each planted violation:
 * real SQL by an administrator, most of it careful enough to keep revision and step as the library
 * would.
 */
#include "command.h"
#include "fields.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <pthread.h>

static struct world {
    fixture f;
    const char *config;
    char statement[64];
} w;

/* --------------------------------------------------------------- ordinary trades -- */

static void end_as(tl_lock *lock, tl_outcome outcome, tl_proof proof, tl_status expected)
{
    tl_ending ending = TL_ENDING_INIT;
    tl_status status;

    ending.outcome = outcome;
    ending.proof = proof;
    ending.retryable = 1;
    status = tl_lock_finish(lock, &ending);
    if (status != expected)
        server_panic("%s: %s", tl_status_name(status), tl_error_message());
    tl_lock_free(lock);
}

static void make_paid(const char *serial)
{
    tl_lock_options options = sync_options("pay");

    end_as(granted(w.f.client, serial, "C1", &options), TL_OUTCOME_SUCCESS, TL_PROOF_NONE,
           TL_SUCCEEDED);
}

static void make_failed(const char *serial)
{
    tl_lock_options options = sync_options("pay");

    end_as(granted(w.f.client, serial, "C1", &options), TL_OUTCOME_FAILURE, TL_PROOF_DECLINED,
           TL_FAILED);
}

static void make_waiting(const char *serial)
{
    tl_lock_options options = sync_options("pay");

    end_as(granted(w.f.client, serial, "C1", &options), TL_OUTCOME_UNKNOWN, TL_PROOF_NONE,
           TL_IN_DOUBT);
}

static void make_live(const char *serial)
{
    tl_lock_options options = sync_options("pay");

    tl_lock_free(granted(w.f.client, serial, "C1", &options));
}

/* First lane, retry lane twice, success: four revisions of the sync row and more. */
static void make_compensated(const char *serial)
{
    tl_lock_options options = retry_options();

    make_waiting(serial);
    end_as(granted(w.f.other, serial, "C1", &options), TL_OUTCOME_UNKNOWN, TL_PROOF_NONE,
           TL_IN_DOUBT);
    end_as(granted(w.f.client, serial, "C1", &options), TL_OUTCOME_SUCCESS, TL_PROOF_NONE,
           TL_SUCCEEDED);
}

static void make_reclaimed(const char *serial)
{
    tl_lock_options options = sync_options("pay");

    make_failed(serial);
    options.flags = TL_ASK_RECLAIM;
    options.reclaim_epoch = 1;
    end_as(granted(w.f.other, serial, "C1", &options), TL_OUTCOME_SUCCESS, TL_PROOF_NONE,
           TL_SUCCEEDED);
}

static void make_mutex(const char *serial)
{
    tl_lock_options options = sync_options("job");

    options.channel = NULL;
    options.flags = TL_ASK_REPEATABLE;
    for (int i = 0; i < 3; i++)
        end_as(granted(w.f.client, serial, "C1", &options), TL_OUTCOME_SUCCESS, TL_PROOF_NONE,
               TL_SUCCEEDED);
    /* A holder whose time is over is taken over from. */
    options.max_hold_ms = 1;
    tl_lock_free(granted(w.f.client, serial, "C1", &options));
    usleep(20000);
    tl_lock_free(granted(w.f.other, serial, "C1", &options));
}

/* The violation is how the row comes to be. */
static void make_nothing(const char *serial)
{
    (void)serial;
}

static void make_conflict(const char *serial)
{
    tl_evidence evidence = {.version = TL_EVIDENCE_VERSION,
                            .key = {serial, "C1", "WITHDRAW"},
                            .outcome = "SUCCEEDED",
                            .source = "statement"};

    make_failed(serial);
    if (tl_evidence_add(w.f.client, &evidence) != TL_IN_CONFLICT)
        server_panic("%s", tl_error_message());
}

FIXTURE(set_up)
{
    fixture_open(&w.f, "janitor=0\n");
    w.config = database_option_file(w.f.db);
    strcpy(w.statement, "/tmp/tl-statement-XXXXXX");
    close(mkstemp(w.statement));
    make_paid("OK-1");
    make_failed("OK-2");
    make_waiting("OK-3");
    make_live("OK-4");
    make_compensated("OK-5");
    make_reclaimed("OK-6");
    make_mutex("OK-7");
    make_conflict("OK-8");
}

FIXTURE(tear_down)
{
    unlink(w.statement);
    fixture_close(&w.f);
}

/* ------------------------------------------------------------------- looking -- */

static json_t *audit(int code)
{
    output *o = RUN("audit", "--json", "--config", w.config);
    json_t *document;

    EXPECT_CODE(o, code);
    document = output_json(o);
    output_free(o);
    return document;
}

static void write_statement(const char *text)
{
    FILE *file = fopen(w.statement, "we");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static json_t *audit_with(const char *lines, int code)
{
    FILE *file = fopen(w.statement, "we");
    json_t *document;

    assert_non_null(file);
    fprintf(file, "seq,channel_ref,channel_key,serial_no,cust_no,op_code\n%s", lines);
    fclose(file);
    document = output_ended(
        RUN("audit", "--json", "--config", w.config, "--statement", w.statement), code);
    return document;
}

static int is_of(const json_t *violation, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(violation, name));

    return text != NULL && strcmp(text, value) == 0;
}

/* As the totals by rule have it. */
static int violations_of(json_t *document, const char *rule)
{
    json_t *counted;
    size_t i;

    json_array_foreach(json_object_get(document, "rules"), i, counted)
    {
        if (is_of(counted, "rule", rule))
            return (int)json_integer_value(json_object_get(counted, "violations"));
    }
    return 0;
}

/* The rule is named for this trade, and nobody else is accused of anything. */
static void expect_named(json_t *document, const char *rule, const char *serial)
{
    json_t *violations = json_object_get(document, "violations"), *violation;
    int found = 0;
    size_t i;

    json_array_foreach(violations, i, violation)
    {
        if (!is_of(violation, "serial_no", serial) || !is_of(violation, "cust_no", "C1"))
            fail_msg("%s: another trade is accused: %s", serial, json_dumps(violation, 0));
        found += is_of(violation, "rule", rule);
    }
    if (!found)
        fail_msg("%s is not named for %s: %s", rule, serial, json_dumps(document, 0));
    assert_int_equal(violations_of(document, rule), found);
    json_decref(document);
}

static void forget(const char *serial)
{
    database_run(w.f.sql,
                 "SET SESSION check_constraint_checks = 1;"
                 "DELETE FROM trade_lock WHERE serial_no = '%s';"
                 "DELETE FROM trade_lock_past WHERE serial_no = '%s'",
                 serial, serial);
}

/* --------------------------------------------------------------------- tests -- */

TEST(test_ordinary_trades_pass)
{
    json_t *document = audit(0), *listed = json_object();
    output *o = RUN("audit", "--every", "0ms", "--config", w.config);

    assert_non_null(strstr(o->err, " rows looked at, 0 violations\n"));
    assert_non_null(strstr(o->err, " steps of history looked at, 0 violations\n"));
    assert_int_equal(json_array_size(json_object_get(document, "violations")), 0);
    assert_int_equal(json_integer_value(json_object_get(document, "rows")), 10);
    assert_true(json_integer_value(json_object_get(document, "steps")) > 20);
    assert_true(json_integer_value(json_object_get(document, "grants")) >= 14);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, ": 0 violations");
    output_free(o);
    json_decref(document);
    json_decref(listed);
}

struct planted {
    const char *rule, *serial;
    void (*make)(const char *serial);
    const char *sql; /* %1$s is the serial */
};

#define ROW "WHERE serial_no = '%1$s' AND op_code = 'WITHDRAW'"
#define NTH(n)                                                                                     \
    "DELETE l FROM trade_lock_past l JOIN (SELECT rev FROM trade_lock_past " ROW                   \
    " ORDER BY rev LIMIT 1 OFFSET " n ") x USING (rev) "                                           \
    "WHERE l.serial_no = '%1$s' AND l.op_code = 'WITHDRAW'"
#define FIRST_TWO(op)                                                                              \
    "DELETE FROM trade_lock_past WHERE serial_no = '%1$s' AND op_code = '" op "' "                 \
    "ORDER BY rev LIMIT 2"
#define MADE_AS(status) MADE_WITH(status, NOW_US, "D")
#define NOW_US "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
#define MADE_WITH(status, fence, proof)                                                            \
    "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "                    \
    "thread_no, session_id, token, fence, rev, sends, proof, created_at, updated_at) "             \
    "VALUES ('C1', '%1$s', 'WITHDRAW', 'S', '" status "', 'ask', UUID(), UUID(), "                 \
    "RANDOM_BYTES(16), " fence ", fence, 1, '" proof "', UTC_TIMESTAMP(6), "                       \
    "UTC_TIMESTAMP(6))"
#define AS_STEP(step)                                                                              \
    "step = '" step "', rev = rev + 1, fence = fence + 1, "                                        \
    "token = UNHEX(MD5(RAND()))"

static const struct planted planted[] = {
    {"gap", "MIDDLE", make_compensated, NTH("2")},
    {"gap", "FIRST", make_compensated, NTH("0")},
    {"gap", "LAST", make_compensated, NTH("3")},
    {"gap", "HEAD", make_compensated, "UPDATE trade_lock SET first_rev = NULL " ROW},
    {"gap", "ALL", make_paid, "UPDATE trade_lock SET first_rev = NULL " ROW},
    {"gap", "NUMBER", make_nothing, MADE_WITH("P", "1000", "-")},
    {"gap", "CHANNEL", make_nothing,
     MADE_WITH("P", NOW_US " + 5", "-") ";"
                                        "UPDATE trade_lock SET channel = 'x', rev = rev "
                                        "+ 1, step = 'evidence' " ROW},
    {"by-hand", "SHIFTED", make_compensated,
     "DELETE FROM trade_lock_past " ROW ";"
     "UPDATE trade_lock SET first_rev = rev - 1 " ROW},
    {"gap", "RETRY", make_compensated,
     "DELETE FROM trade_lock_past WHERE serial_no = '%1$s' AND op_code = "
     "'WITHDRAW_RETRY' "
     "ORDER BY rev LIMIT 1"},
    {"gap", "RETRY-HEAD", make_compensated, FIRST_TWO("WITHDRAW_RETRY")},
    {"gap", "MUTEX-HEAD", make_mutex, FIRST_TWO("WITHDRAW")},
    {"gap", "JUMP", make_live, "UPDATE trade_lock SET rev = rev + 2 " ROW},
    {"fence", "FALLEN", make_live,
     "UPDATE trade_lock SET fence = fence - 5, rev = rev + 1, step = 'evidence' " ROW},
    {"fence", "STILL", make_live,
     "UPDATE trade_lock SET rev = rev + 1, step = 'arm', token = UNHEX(MD5(1)) " ROW},
    {"overlap", "STOLEN", make_live,
     "UPDATE trade_lock SET session_id = UUID(), " AS_STEP("claim") " " ROW},
    {"overlap", "TWO", make_live,
     "UPDATE trade_lock SET max_hold_until = max_hold_until, " AS_STEP("claim") " " ROW},
    {"overlap", "MUTEX", make_live,
     "UPDATE trade_lock SET session_id = UUID(), " AS_STEP("reask") " " ROW},
    {"overlap", "REAPED", make_live,
     "UPDATE trade_lock SET session_id = NULL, max_hold_until = NULL, "
     "next_run_at = NULL, " AS_STEP("reap") " " ROW},
    {"after-success", "UNDONE", make_paid,
     "UPDATE trade_lock SET status = 'F', proof = 'D', " AS_STEP("end") " " ROW},
    {"succeeded-twice", "AGAIN", make_paid,
     "UPDATE trade_lock SET status = 'P', " AS_STEP(
         "reclaim") " " ROW ";"
                    "UPDATE trade_lock SET status = 'Y', " AS_STEP("end") " " ROW},
    {"stale-success", "NOBODY", make_waiting,
     "UPDATE trade_lock SET status = 'Y', " AS_STEP("end") " " ROW},
    {"stale-success", "OLD", make_live,
     "UPDATE trade_lock SET status = 'Y', step = 'end', rev = rev + 1 " ROW},
    {"stale-success", "BORN", make_nothing, MADE_AS("Y")},
    {"no-proof", "STILLBORN", make_nothing, MADE_AS("F")},
    {"no-proof", "GUESSED", make_live,
     "SET SESSION check_constraint_checks = 0;"
     "UPDATE trade_lock SET status = 'F', proof = '-', " AS_STEP("end") " " ROW},
    {"no-proof", "FOREIGN", make_live,
     "UPDATE trade_lock SET status = 'F', proof = 'Z', " AS_STEP("end") " " ROW},
    {"no-proof", "FELL", make_live,
     "UPDATE trade_lock SET status = 'F', proof = 'D', " AS_STEP("reap") " " ROW},
    {"no-proof", "EVIDENCE", make_failed,
     "UPDATE trade_lock SET success_epoch = epoch, step = 'evidence', rev = rev + "
     "1 " ROW},
    {"reopened", "WOKEN", make_failed,
     "UPDATE trade_lock SET status = 'P', " AS_STEP("claim") " " ROW},
    {"by-hand", "TOUCHED", make_paid, "UPDATE trade_lock SET remark = 'all well' " ROW},
    {"by-hand", "RESET", make_live, "UPDATE trade_lock SET status = 'F', proof = 'D' " ROW},
    {"unseen", "BEHIND", make_live,
     "UPDATE trade_lock SET next_run_at = '2000-01-01', " AS_STEP(
         "arm") " " ROW ";"
                "INSERT INTO trade_lock_low_water VALUES ('WITHDRAW', '2001-01-01') "
                "ON DUPLICATE KEY UPDATE low_water = GREATEST(low_water, "
                "VALUES(low_water))"},
    {"unseen", "UNATTENDED", make_waiting,
     "UPDATE trade_lock SET next_run_at = NULL, " AS_STEP(
         "open") " WHERE serial_no = '%1$s' AND op_code = 'WITHDRAW_RETRY'"},
    {"removed", "GONE", make_paid, "DELETE FROM trade_lock " ROW},
    {"removed", "TRACELESS", make_paid,
     "DELETE FROM trade_lock " ROW ";"
     "DELETE FROM trade_lock_past WHERE serial_no = '%1$s' AND step = 'deleted'"},
};

TEST(test_planted_violations_are_named)
{
    size_t count = sizeof planted / sizeof planted[0];

    for (size_t i = 0; i < count; i++) {
        const struct planted *p = &planted[i];

        p->make(p->serial);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        database_run(w.f.sql, p->sql, p->serial);
#pragma GCC diagnostic pop
        expect_named(audit(1), p->rule, p->serial);
        forget(p->serial);
    }
    print_message("%zu planted violations named\n", count);
    json_decref(audit(0));
}

static void *audit_meanwhile(void *document)
{
    *(json_t **)document = audit(1);
    return NULL;
}

/* A row that is changed for the first time while the audit is under way is in none of its pages as
 * one that never was, and in all of them with what it was before. */
TEST(test_what_changes_meanwhile_is_audited)
{
    MYSQL *other = database_connect(w.f.db);
    json_t *document = NULL;
    pthread_t thread;

    database_run(w.f.sql, MADE_AS("Y"), "MEANWHILE");
    /* The rows are read beside this table, their history is not. */
    database_run(other, "LOCK TABLES trade_lock_low_water WRITE");
    assert_int_equal(pthread_create(&thread, NULL, audit_meanwhile, &document), 0);
    while (database_number(w.f.sql, "SELECT COUNT(*) FROM information_schema.processlist "
                                    "WHERE state LIKE 'Waiting for table metadata%%'") == 0)
        usleep(1000);
    database_run(w.f.sql, "UPDATE trade_lock SET rev = rev + 1, step = 'evidence' "
                          "WHERE serial_no = 'MEANWHILE'");
    database_run(other, "UNLOCK TABLES");
    assert_int_equal(pthread_join(thread, NULL), 0);
    mysql_close(other);
    expect_named(document, "stale-success", "MEANWHILE");
    forget("MEANWHILE");
}

static char *paid_line(const char *serial, unsigned seq)
{
    char *key = database_text(w.f.sql,
                              "SELECT channel_key FROM trade_lock WHERE serial_no = '%s' "
                              "AND op_code = 'WITHDRAW'",
                              serial);
    char *line = NULL;

    if (asprintf(&line, "%u,P%u,%s,%s,C1,WITHDRAW\n", seq, seq, key != NULL ? key : "x", serial) <
        0)
        server_panic("out of memory");
    free(key);
    return line;
}

TEST(test_statements_are_compared)
{
    char *right[] = {paid_line("OK-1", 1), paid_line("OK-5", 2), paid_line("OK-6", 3),
                     paid_line("OK-8", 4)};
    static const struct {
        const char *rule, *serial, *line;
    } wrong[] = {
        {"paid-twice", "OK-1", "9,P9,,OK-1,C1,WITHDRAW\n"},
        {"paid-failure", "OK-2", "9,P9,,OK-2,C1,WITHDRAW\n"},
        {"unknown-payment", "NEVER", "9,P9,,NEVER,C1,WITHDRAW\n"},
        {"unknown-payment", "OK-3", "9,P9,,OK-3,C1,DEPOSIT\n"},
        {"foreign-key", "OK-3", "9,P9,cafe,OK-3,C1,WITHDRAW\n"},
    };
    char all[1024], some[1024];

    snprintf(all, sizeof all, "%s%s%s%s", right[0], right[1], right[2], right[3]);
    snprintf(some, sizeof some, "%s%s%s", right[0], right[1], right[3]);
    json_decref(audit_with(all, 0));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char lines[2048];

        snprintf(lines, sizeof lines, "%s%s", all, wrong[i].line);
        expect_named(audit_with(lines, 1), wrong[i].rule, wrong[i].serial);
    }
    expect_named(audit_with(some, 1), "unpaid-success", "OK-6");
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        free(right[i]);
}

/* What the file says of amounts is compared where the trade told one. */
TEST(test_amounts_are_compared)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"OK-1,C1,12300,EUR", 0}, {"OK-1,C1,12300,", 0},    {"OK-1,C1,,USD", 1},
        {"OK-1,C1,12301,EUR", 1}, {"OK-1,C1,12300,USD", 1}, {"OK-1,C1,-12300,EUR", 1},
    };

    database_run(w.f.sql, "UPDATE trade_lock SET amount_minor = 12300, currency = 'EUR' "
                          "WHERE serial_no = 'OK-1' AND lane = 'S'");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        json_t *document;
        output *o;

        snprintf(text, sizeof text, "serial_no,cust_no,amount_minor,currency\n%s\n", cases[i].line);
        write_statement(text);
        o = RUN("audit", "--json", "--config", w.config, "--statement", w.statement, "--since",
                "2099-01-01");
        document = output_json(o);
        assert_int_equal(violations_of(document, "paid-amount"), cases[i].code);
        assert_int_equal(violations_of(document, "unpaid-success"), 0);
        json_decref(document);
        output_free(o);
    }
}

/* A file of one channel, operation and day leaves the others alone. */
TEST(test_a_statement_of_one_day)
{
    static const struct {
        const char *name, *value, *rows;
    } cases[] = {
        {"--op", "DEPOSIT", "op_code = 'DEPOSIT'"},
        {"--op", "WITHDRAW", "op_code = 'WITHDRAW'"},
        {"--channel", "other", "FALSE"},
        {"--channel", "fastpay", "channel = 'fastpay'"},
        {"--since", "2099-01-01", "FALSE"},
        {"--since", "2020-01-01", "TRUE"},
        {"--until", "2020-01-01", "FALSE"},
        {"--until", "2099-01-01", "TRUE"},
    };
    output *o;

    write_statement("serial_no,cust_no\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *document;

        o = RUN("audit", "--json", "--config", w.config, "--statement", w.statement, cases[i].name,
                cases[i].value);
        document = output_json(o);
        assert_int_equal(violations_of(document, "unpaid-success"),
                         database_number(w.f.sql,
                                         "SELECT COUNT(*) FROM trade_lock WHERE lane = 'S' AND "
                                         "status = 'Y' AND channel IS NOT NULL AND %s",
                                         cases[i].rows));
        json_decref(document);
        output_free(o);
    }
    EXPECT_USAGE(RUN("audit", "--config", w.config, "--op", "WITHDRAW"), "they want --statement");
    EXPECT_USAGE(RUN("audit", "--config", w.config, "--statement", w.statement, "--since", "soon"),
                 "--since is a moment");
    EXPECT_USAGE(RUN("audit", "--config", w.config, "--statement", w.statement, "--since",
                     "2026-03-02", "--until", "2026-03-01"),
                 "--until is not after --since");
}

TEST(test_bad_statements)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "it is empty"},
        {"serial,cust\n", ":1: the first line names no columns serial_no and cust_no"},
        {"cust_no,serial_no\nC1\n", ":2: the line has 1 cells, and the first line names 2"},
        {"\xef\xbb\xbfserial_no,cust_no\nS1\n",
         ":2: the line has 1 cells, and the first line names 2"},
        {"serial_no,cust_no\nS1,C1,C2\n", ":2: the line has 3 cells, and the first line names 2"},
        {"cust_no,serial_no,amount_minor\nC1,S1,1.5\n", ":2: amount_minor is a whole number"},
        {"cust_no,serial_no,amount_minor\nC1,S1,9223372036854775808\n",
         ":2: amount_minor is a whole number"},
        {"cust_no,serial_no\n\"C1,S\n", "a quote is not closed"},
        {"cust_no,serial_no\n\"C\"1,S\n", "a quote stands in the wrong place"},
    };
    output *nowhere;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *file = fopen(w.statement, "we");

        fputs(cases[i].text, file);
        fclose(file);
        EXPECT_USAGE(RUN("audit", "--config", w.config, "--statement", w.statement),
                     cases[i].words);
    }
    nowhere = RUN("audit", "--config", w.config, "--statement", "/nowhere");
    EXPECT_SENTENCE(nowhere, 2, "/nowhere: No such file");
    output_free(nowhere);
}

TESTS_OF(audit, set_up, tear_down)
