/* Evidence filed by people and jobs, and the janitor as a command. */
#include "command.h"
#include "fields.h"

#include "trade_lock/fixture.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <pthread.h>

static struct world {
    fixture f;
    const char *config;
    char *reap_config; /* one that does not wait long until a session is silent */
} w;

FIXTURE(set_up)
{
    fixture_open(&w.f, "janitor=0\nbeat_ms=50\nsession_ms=1m\n");
    w.config = database_option_file(w.f.db);
    w.reap_config = database_option_file_at(w.f.db, server_socket(server_shared()),
                                            "janitor=0\nbeat_ms=50\nsession_ms=2s\n");
}

FIXTURE(tear_down)
{
    unlink(w.reap_config);
    free(w.reap_config);
    fixture_close(&w.f);
}

#define ADD(serial, ...)                                                                           \
    RUN("evidence", "add", "--config", w.config, serial, "C1", "WITHDRAW", "--source", "web-hook", \
        __VA_ARGS__)

static void make_waiting(const char *serial)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock = granted(w.f.client, serial, "C1", &options);
    tl_ending unknown = TL_ENDING_INIT;

    unknown.next_run_ms = 3600000;
    assert_status(tl_lock_finish(lock, &unknown), TL_IN_DOUBT);
    tl_lock_free(lock);
}

static void make_failed(const char *serial)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock = granted(w.f.client, serial, "C1", &options);

    assert_status(finish(lock, TL_OUTCOME_FAILURE, TL_PROOF_DECLINED), TL_FAILED);
    tl_lock_free(lock);
}

static long long is_due(const char *serial)
{
    return database_number(w.f.sql,
                           "SELECT next_run_at <= UTC_TIMESTAMP(6) FROM trade_lock WHERE "
                           "serial_no = '%s' AND op_code = 'WITHDRAW_RETRY'",
                           serial);
}

TEST(test_evidence_makes_due)
{
    make_waiting("E1");
    assert_int_equal(is_due("E1"), 0);
    ENDS(ADD("E1", "--outcome", "SUCCEEDED", "--ref", "BANK-7", "--remark", "by night"), 0,
         "SUCCEEDED is on record for E1 C1 WITHDRAW.");
    assert_int_equal(is_due("E1"), 1);
    ENDS(RUN("evidence", "ls", "--config", w.config, "E1", "C1", "WITHDRAW"), 0, "BANK-7",
         "web-hook");
    assert_int_equal(
        database_number(w.f.sql, "SELECT success_epoch FROM trade_lock WHERE serial_no = 'E1' AND "
                                 "op_code = 'WITHDRAW'"),
        1);
}

TEST(test_evidence_against_a_failure)
{
    output *o;

    make_failed("E2");
    o = ADD("E2", "--outcome", "SUCCEEDED");
    EXPECT_CODE(o, 1);
    assert_non_null(strstr(o->err, "two operators must decide"));
    output_free(o);
    ENDS(RUN("ls", "--conflict", "--config", w.config), ANY_CODE, "E2");
    /* A remark about another epoch is no contradiction. */
    make_failed("E3");
    ENDS(ADD("E3", "--outcome", "FAILED", "--final", "--epoch", "7", "--key", "abc"), 0);
}

/* After the deadline nobody promises a send that never comes. */
static void expect_no_send(const char *serial, const char *shown, const char *retried)
{
    char fence[32];
    output *o;

    database_run(w.f.sql,
                 "UPDATE trade_lock SET deadline_at = UTC_TIMESTAMP(6) - INTERVAL 1 "
                 "SECOND WHERE serial_no = '%s'",
                 serial);
    o = RUN("show", serial, "C1", "WITHDRAW", "--config", w.config);
    EXPECT_WORDS(o, shown);
    assert_null(strstr(o->out, "could send it"));
    assert_null(strstr(o->out, "will send it"));
    output_free(o);
    snprintf(fence, sizeof fence, "%lld",
             database_number(w.f.sql,
                             "SELECT fence FROM trade_lock WHERE serial_no = '%s' AND "
                             "lane = 'S'",
                             serial));
    o = RUN("retry", "--config", w.config, serial, "C1", "WITHDRAW", "--fence", fence, "--reason",
            "test");
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, retried);
    assert_null(strstr(o->out, "before it sends"));
    output_free(o);
}

TEST(test_past_the_deadline)
{
    tl_lock_options options = sync_options("pay");
    tl_ending not_sent = TL_ENDING_INIT;
    tl_lock *lock;

    options.deadline_ms = 60000;
    not_sent.outcome = TL_OUTCOME_NOT_SENT;
    lock = granted(w.f.client, "P1", "C1", &options);
    assert_status(tl_lock_finish(lock, &not_sent), TL_QUEUED);
    tl_lock_free(lock);
    expect_no_send("P1", "Nothing has been sent before its deadline, and nothing will be",
                   "a retry worker ends it as failed");
    make_waiting("P2");
    expect_no_send("P2", "Its deadline is over: nothing is sent for it any more",
                   "nothing is sent any more");
}

TEST(test_evidence_is_refused)
{
    static const char *const wrong[][8] = {
        {"evidence", "add", "a", "b", "c", "--source", "x"},
        {"evidence", "add", "a", "b", "c", "--outcome", "SUCCEEDED"},
        {"evidence", "burn", "a", "b", "c"},
        {"evidence", "a", "b", "c"},
        {"evidence", "add", "a", "b", "--epoch", "0"},
        {"reap", "all"},
        {"purge"},
        {"purge", "--older", "old"},
    };
    static const char *const words[] = {"--outcome is missing",       "--source is missing",
                                        "`add` and `ls`, not 'burn'", "not 'a'",
                                        "--epoch is a number",        "no operand: all",
                                        "--older is missing",         "--older is a duration"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        EXPECT_USAGE(command_run(NULL, wrong[i]), words[i]);
    }
    EXPECT_USAGE(ADD("E1", "--outcome", "PERHAPS"), "'PERHAPS' is not one of");
    EXPECT_REFUSED(ADD("NONE", "--outcome", "SUCCEEDED"), 1, "no such trade");
    /* What the server could not store is not sent to it. */
    EXPECT_USAGE(ADD("E1", "--outcome", "PENDING", "--remark", "R\xe9sum\xe9"),
                 "remark: byte 2 is not UTF-8 (0xe9)");
    EXPECT_USAGE(RUN("retry", "--config", w.config, "E1", "C1", "WITHDRAW", "--fence", "1",
                     "--reason", "\xff"),
                 "the reason: byte 1 is not UTF-8 (0xff)");
    EXPECT_USAGE(RUN("restore", "declare", "--config", w.config, "--reason", "\xff"),
                 "the reason: byte 1 is not UTF-8 (0xff)");
}

static void *let_go(void *connection)
{
    usleep(1500 * 1000);
    database_run(connection, "ROLLBACK");
    return NULL;
}

/* Whoever has the row of a dead session is ending it, perhaps: it is looked at again. */
TEST(test_reap_meets_another)
{
    MYSQL *other = database_connect(w.f.db);
    pthread_t thread;
    output *o;

    database_run(w.f.sql, "INSERT INTO tl_session (session_id, program, host, pid, "
                          "connection_name, timeout_ms, started_at, alive_until) VALUES "
                          "('d0000000-0000-4000-8000-000000000002', 'dead', 'h', 1, UUID(), 400, "
                          "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    database_run(other, "START TRANSACTION; SELECT 1 FROM tl_session WHERE session_id = "
                        "'d0000000-0000-4000-8000-000000000002' FOR UPDATE");
    assert_int_equal(pthread_create(&thread, NULL, let_go, other), 0);
    o = RUN("reap", "--config", w.reap_config);
    pthread_join(thread, NULL);
    EXPECT_CODE(o, 0);
    output_free(o);
    mysql_close(other);
    assert_int_equal(database_number(w.f.sql, "SELECT ended_at IS NOT NULL FROM tl_session WHERE "
                                              "session_id = "
                                              "'d0000000-0000-4000-8000-000000000002'"),
                     1);
    database_run(w.f.sql, "DELETE FROM tl_session WHERE session_id = "
                          "'d0000000-0000-4000-8000-000000000002'");
}

/* One holder is dead and silent, one lives: only the first one's lane is opened. */
TEST(test_reap)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *live = granted(w.f.client, "R1", "C1", &options);
    output *o;

    database_run(w.f.sql, "INSERT INTO tl_session (session_id, program, host, pid, "
                          "connection_name, timeout_ms, started_at, alive_until) VALUES "
                          "('d0000000-0000-4000-8000-000000000001', 'dead', 'h', 1, UUID(), 400, "
                          "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
    tl_lock_free(granted(w.f.client, "R2", "C1", &options));
    database_run(w.f.sql, "UPDATE trade_lock SET session_id = "
                          "'d0000000-0000-4000-8000-000000000001' WHERE serial_no = 'R2'");
    o = RUN("reap", "--config", w.reap_config);
    EXPECT_CODE(o, 0);
    /* The test's own clients observe too, and may be the ones that end the session. */
    EXPECT_WORDS(o, " sessions ended, 1 trades opened");
    output_free(o);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM tl_session WHERE "
                                              "program = 'dead' AND ended_at IS NOT NULL"),
                     1);
    assert_int_equal(is_due("R2"), 1);
    assert_status(finish(live, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(live);
    ENDS(RUN("reap", "--json", "--config", w.reap_config), 0, "\"opened\": 0");
}

/* ----------------------------------------------------------------------- purge -- */

static void make_paid(const char *serial)
{
    tl_lock_options options = sync_options("pay");
    tl_lock *lock = granted(w.f.client, serial, "C2", &options);

    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static long long count_of(const char *table, const char *serial)
{
    return database_number(w.f.sql, "SELECT COUNT(*) FROM %s WHERE serial_no = '%s'", table,
                           serial);
}

static void make_old(const char *days)
{
    database_run(w.f.sql,
                 "UPDATE trade_lock SET updated_at = updated_at - INTERVAL %s DAY, "
                 "send_until = send_until - INTERVAL %s DAY, "
                 "deadline_at = deadline_at - INTERVAL %s DAY",
                 days, days, days);
}

static long long all_rows(void)
{
    return database_number(
        w.f.sql, "SELECT (SELECT COUNT(*) FROM trade_lock) + (SELECT COUNT(*) FROM "
                 "trade_lock_past) + (SELECT COUNT(*) FROM trade_evidence) + (SELECT COUNT(*) FROM "
                 "trade_resolution) + (SELECT COUNT(*) FROM tl_session)");
}

static json_t *purge_json(const char *older, const char *option)
{
    output *o = RUN("purge", "--json", "--older", older, "--config", w.config, option);
    json_t *document = output_json(o);

    EXPECT_CODE(o, 0);
    assert_string_equal(o->err, "");
    output_free(o);
    return document;
}

/* A dry run says the same and changes nothing. */
static void expect_purged(const char *older, unsigned trades)
{
    const long long rows = all_rows();
    json_t *dry = purge_json(older, "--dry-run"), *done;

    assert_int_equal(all_rows(), rows);
    assert_true(json_is_true(json_object_get(dry, "dry_run")));
    done = purge_json(older, NULL);
    json_object_set_new(dry, "dry_run", json_false());
    assert_true(json_equal(dry, done));
    assert_int_equal(json_integer_value(json_object_get(done, "trades")), trades);
    if (trades == 0)
        assert_int_equal(all_rows(), rows);
    json_decref(dry);
    json_decref(done);
}

TEST(test_purge_leaves_what_may_matter)
{
    tl_lock_options options = sync_options("pay"), retry = retry_options();
    tl_lock *lock;
    unsigned long long fence;
    output *o;

    database_run(w.f.sql, "DELETE FROM trade_lock; DELETE FROM trade_lock_past");
    make_paid("G1");
    make_failed("G2");
    database_run(w.f.sql, "INSERT INTO trade_resolution (cust_no, serial_no, op_code, "
                          "rev, verdict, part, fence, epoch, reason, actor, thread_no) "
                          "SELECT cust_no, serial_no, op_code, rev, 'C', 1, fence, epoch, "
                          "'r', 'a', UUID() FROM trade_lock WHERE serial_no = 'G2'");
    assert_int_equal(count_of("trade_resolution", "G2"), 1);
    make_waiting("G3");                                      /* in process */
    make_failed("G4");                                       /* in conflict, below */
    make_waiting("G5");                                      /* ended by the retry lane, below */
    tl_lock_free(granted(w.f.client, "G6", "C1", &options)); /* live */
    ENDS(ADD("G4", "--outcome", "SUCCEEDED"), 1);
    o = ADD("G5", "--outcome", "SUCCEEDED");
    output_free(o);
    lock = granted(w.f.client, "G5", "C1", &retry);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
    expect_purged("90d", 0);
    make_old("91");
    make_paid("G7"); /* young */
    fence = (unsigned long long)database_number(
        w.f.sql, "SELECT fence FROM trade_lock WHERE serial_no = 'G1'");
    EXPECT_USAGE(RUN("purge", "--older", "89d", "--config", w.config), "kept for 90 days at least");
    expect_purged("92d", 0);
    expect_purged("300000d", 0);
    expect_purged("90d", 3);
    assert_int_equal(count_of("trade_lock", "G1") + count_of("trade_lock_log", "G1"), 0);
    assert_int_equal(count_of("trade_lock", "G2") + count_of("trade_lock_log", "G2") +
                         count_of("trade_resolution", "G2"),
                     0);
    assert_int_equal(count_of("trade_lock", "G5") + count_of("trade_lock_log", "G5") +
                         count_of("trade_evidence", "G5"),
                     0);
    assert_int_equal(count_of("trade_lock", "G3"), 2);
    assert_int_equal(count_of("trade_lock", "G4"), 1);
    assert_int_equal(count_of("trade_lock", "G6"), 1);
    assert_int_equal(count_of("trade_lock", "G7"), 1);
    /* The next life of a key begins above the last. */
    make_paid("G1");
    assert_true((unsigned long long)database_number(
                    w.f.sql, "SELECT MIN(fence) FROM trade_lock_log WHERE serial_no = 'G1'") >
                fence);
}

/* More than a page, one of them held by an open transaction, and the procedure itself refuses what
 * no setting may allow. */
TEST(test_purge_by_pages)
{
    MYSQL *other = database_connect(w.f.db);
    output *o;

    database_run(w.f.sql,
                 "DELETE FROM trade_lock; DELETE FROM trade_lock_past; "
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, step, "
                 "thread_no, token, fence, rev, created_at, updated_at) "
                 "SELECT CONCAT('C', seq MOD 7), CONCAT('M', seq), 'WITHDRAW', 'S', 'Y', "
                 "'ask', UUID(), UNHEX(MD5(seq)), 1, 1, UTC_TIMESTAMP(6) - INTERVAL 1 YEAR, "
                 "UTC_TIMESTAMP(6) - INTERVAL 1 YEAR FROM seq_1_to_1000");
    database_run(other, "BEGIN; SELECT 1 FROM trade_lock WHERE serial_no = 'M500' AND "
                        "cust_no = 'C3' AND op_code = 'WITHDRAW' FOR UPDATE");
    database_run(other, "SET SESSION idle_transaction_timeout = 20");
    EXPECT_USAGE(RUN("purge", "--older", "90d", "--every", "often", "--config", w.config),
                 "--every is a duration such as 10s, not often");
    o = RUN("purge", "--older", "90d", "--dry-run", "--every", "0ms", "--config", w.config);
    EXPECT_WORDS(o, "999 trades would be purged: 999 lock rows");
    EXPECT_WORDS(o, "1000 rows looked at; nothing was changed");
    assert_non_null(strstr(o->err, " lock rows looked at, 200 to be removed\n"));
    assert_non_null(strstr(o->err, " lock rows looked at, 999 to be removed\n"));
    output_free(o);
    expect_purged("90d", 999);
    assert_int_equal(count_of("trade_lock", "M500"), 1);
    database_run(other, "ROLLBACK");
    expect_purged("90d", 1);
    assert_int_equal(database_number(w.f.sql, "SELECT COUNT(*) FROM trade_lock_log"), 0);
    assert_int_not_equal(
        mysql_query(other, "CALL tl_purge_trades(0, 7775999999, 10, '', '', '', @purged)"), 0);
    assert_string_equal(mysql_error(other), "nothing younger than the retention "
                                            "(tl_schema.retention_ms) is purged");
    mysql_close(other);
}

static void expect_sessions_purged(unsigned sessions)
{
    char words[64];
    output *o = RUN("purge", "--older", "90d", "--config", w.config);

    snprintf(words, sizeof words, "%u sessions purged", sessions);
    EXPECT_CODE(o, 0);
    EXPECT_WORDS(o, words);
    output_free(o);
}

static int is_session(const char *id)
{
    return database_number(w.f.sql, "SELECT COUNT(*) FROM tl_session WHERE session_id = '%s'",
                           id) == 1;
}

static void sessions_grow_old(void)
{
    database_run(w.f.sql, "UPDATE tl_session SET ended_at = ended_at - INTERVAL 91 DAY, "
                          "swept_at = swept_at - INTERVAL 91 DAY WHERE ended_at > "
                          "UTC_TIMESTAMP(6) - INTERVAL 1 DAY");
}

/* Sessions that were over long ago go; not the living, not one that was not swept, and not a young
 * one.  A mutex that such a session left behind is taken over as before. */
TEST(test_purge_of_sessions)
{
    tl_client *empty = client_new(&w.f, TL_CLIENT_NO_JANITOR);
    tl_client *holder = client_new(&w.f, TL_CLIENT_NO_JANITOR);
    tl_client *unswept = client_new(&w.f, TL_CLIENT_NO_JANITOR);
    tl_client *young = client_new(&w.f, TL_CLIENT_NO_JANITOR);
    char empty_id[TL_UUID_TEXT], holder_id[TL_UUID_TEXT], unswept_id[TL_UUID_TEXT];
    char young_id[TL_UUID_TEXT];
    tl_lock_options options = sync_options("job");
    tl_lock *lock;

    database_run(w.f.sql, "DELETE FROM trade_lock; DELETE FROM trade_lock_past; "
                          "DELETE FROM tl_session WHERE ended_at IS NOT NULL");
    options.channel = NULL;
    options.flags = TL_ASK_REPEATABLE;
    strcpy(empty_id, tl_client_session(empty));
    strcpy(holder_id, tl_client_session(holder));
    strcpy(unswept_id, tl_client_session(unswept));
    strcpy(young_id, tl_client_session(young));
    /* A mutex stays with the dead until somebody takes it over. */
    tl_lock_free(granted(holder, "S1", "C1", &options));
    tl_client_close(empty);
    tl_client_close(holder);
    tl_client_close(unswept);
    database_run(w.f.sql,
                 "UPDATE tl_session SET swept_at = IF(session_id = '%s', NULL, "
                 "UTC_TIMESTAMP(6)) WHERE ended_at IS NOT NULL",
                 unswept_id);
    expect_sessions_purged(0);
    sessions_grow_old();
    tl_client_close(young);
    database_run(w.f.sql,
                 "UPDATE tl_session SET swept_at = UTC_TIMESTAMP(6) WHERE session_id = "
                 "'%s'",
                 young_id);
    expect_sessions_purged(2);
    assert_false(is_session(empty_id));
    assert_false(is_session(holder_id));
    assert_true(is_session(unswept_id));
    assert_true(is_session(young_id));
    assert_true(is_session(tl_client_session(w.f.client)));
    lock = granted(w.f.client, "S1", "C1", &options);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    tl_lock_free(lock);
}

static void expect_listed(const char *name, output *o)
{
    json_t *set = json_object(), *document = output_json(o);

    fields_add(set, document);
    fields_expect(set, name);
    json_decref(set);
    json_decref(document);
    output_free(o);
}

/* One payment that is known, one of nobody, and the same file once more. */
static void expect_statement_listed(void)
{
    char path[] = "/tmp/tl-statement-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    output *o;

    assert_non_null(file);
    fputs("serial_no,cust_no,op_code\nJ1,C1,WITHDRAW\nnobody,C1,WITHDRAW\n", file);
    fclose(file);
    for (int times = 0; times < 2; times++) {
        o = RUN("evidence", "add", "--json", "--statement", path, "--source", "bank", "--reason",
                "monthly", "--yes", "1", "--config", w.config);
        EXPECT_CODE(o, 1);
        EXPECT_WORDS(o, times == 0 ? "\"done\": 1" : "\"known\": 1");
        EXPECT_WORDS(o, "\"unknown\": 1");
        if (times == 0)
            expect_listed("evidence statement", o);
        else
            output_free(o);
    }
    unlink(path);
}

TEST(test_fields_are_listed)
{
    make_waiting("J1");
    database_run(w.f.sql, "UPDATE trade_lock SET amount_minor = 5, currency = 'EUR', rev = rev + 1 "
                          "WHERE serial_no = 'J1' AND lane = 'S'");
    expect_listed("evidence add", ADD("J1", "--json", "--outcome", "PENDING", "--ref", "B"));
    expect_statement_listed();
    expect_listed("evidence ls",
                  RUN("evidence", "ls", "--json", "--config", w.config, "J1", "C1", "WITHDRAW"));
    expect_listed("reap", RUN("reap", "--json", "--config", w.reap_config));
    database_run(w.f.sql, "UPDATE trade_lock SET remark = 'x' WHERE serial_no = 'J1'");
}

TESTS_OF(lanes, set_up, tear_down)
