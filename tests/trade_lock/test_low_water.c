/* The low-water mark: what the janitor has done with, and what it may not pass by. */
#include "fixture.h"

#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#define LASTING                                                                                    \
    "beat_ms=100ms\nsession_ms=60s\npool_wait_ms=5s\ncommit_ms=5s\n"                               \
    "connect_timeout_s=10\nread_timeout_s=60\n"
/* In milliseconds: before long, and still to come when the row is written. */
#define SOON 1000
#define MARK "(SELECT low_water FROM trade_lock_low_water WHERE op_code='%s')"

static tl_client *janitor;

WHOLE_FIXTURE_OF_ALL(LASTING)

__attribute__((format(printf, 1, 2))) static void await(const char *format, ...)
{
    char condition[800];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(condition, sizeof condition, format, arguments);
    va_end(arguments);
    AWAIT_WHILE(!database_number(f.sql, "SELECT %s", condition));
}

/* A row as an ask makes it, whose hold is over in so many milliseconds, or before. */
static void insert_row(MYSQL *connection, const char *op, const char *serial, const char *status,
                       int64_t ms)
{
    database_run(connection,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                 "step, thread_no, session_id, token, fence, rev, sends, max_hold_until, "
                 "next_run_at, created_at, updated_at) VALUES ('c1', '%s', '%s', 'S', "
                 "'%s', 'ask', UUID(), UUID(), RANDOM_BYTES(16), 1, 1, 1, "
                 "UTC_TIMESTAMP(6) + INTERVAL %lld MICROSECOND, max_hold_until, "
                 "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
                 serial, op, status, (long long)ms * 1000);
}

/* The janitors have been at everything since: a finished trade of another operation that has become
 * due meanwhile is behind its mark.  Operations are looked through in the order of their names. */
static void await_rounds(int rounds)
{
    static int number;

    for (int i = 0; i < rounds; i++) {
        const struct text serial = text_of("round-%d", number++);
        insert_row(f.sql, "ZZ", serial.is, "Y", SOON);
        await(MARK " > (SELECT next_run_at FROM trade_lock WHERE op_code='ZZ' AND "
                   "serial_no='%s')",
              "ZZ", serial.is);
    }
}

static void assert_before_mark(const char *serial, int expected)
{
    database_expect(f.sql, expected,
                    "SELECT COALESCE(next_run_at < " MARK ", 0) FROM "
                    "trade_lock WHERE op_code='WITHDRAW' AND "
                    "serial_no='%s'",
                    "WITHDRAW", serial);
}

static void await_opened(const char *serial)
{
    await("COUNT(*) FROM trade_lock WHERE serial_no='%s' AND lane='R'", serial);
}

/* Where there is no mark yet everything is looked through.  The first one: it starts the janitor. */
TEST(test_without_a_mark)
{
    insert_row(f.sql, "WITHDRAW", "old", "P", -400 * (int64_t)86400000);
    janitor = client_new(&f, 0);
    await_opened("old");
}

/* A finished trade keeps its holder and its moment, and shows neither. */
TEST(test_finished_trades_are_passed)
{
    tl_lock_options options = sync_options("x");
    tl_lock *lock, *again;
    const tl_view *view;
    tl_status status;

    options.max_hold_ms = 1000;
    lock = granted(f.client, "done", "c1", &options);
    assert_status(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    database_expect(f.sql, 1,
                    "SELECT session_id = '%s' AND next_run_at IS NOT NULL AND max_hold_until IS "
                    "NULL FROM trade_lock WHERE serial_no='done'",
                    tl_client_session(f.client));
    tl_lock_free(lock);
    again = ask(f.other, "done", "c1", &options, &status);
    assert_status(status, TL_ALREADY_DONE);
    view = tl_lock_view(again);
    assert_int_equal(view->status, 'Y');
    assert_string_equal(view->session_id, "");
    assert_int_equal(view->next_run_us, 0);
    tl_lock_free(again);
    await("next_run_at < " MARK " FROM trade_lock WHERE serial_no='done'", "WITHDRAW");
    database_expect(f.sql, 1, "SELECT COUNT(*) FROM trade_lock WHERE serial_no='done'");
}

TEST(test_overdue_trades_are_opened)
{
    insert_row(f.sql, "WITHDRAW", "overdue-1", "P", SOON);
    insert_row(f.sql, "WITHDRAW", "overdue-2", "Y", SOON);
    insert_row(f.sql, "WITHDRAW", "overdue-3", "P", SOON);
    await_opened("overdue-1");
    await_opened("overdue-3");
    await_rounds(2);
    assert_before_mark("overdue-2", 1);
}

/* A row that nobody sees yet, since its transaction is open, is not passed by. */
TEST(test_an_open_transaction_stops_the_mark)
{
    MYSQL *slow = database_connect(f.db);

    await_rounds(1);
    database_run(slow, "START TRANSACTION");
    insert_row(slow, "WITHDRAW", "unseen", "P", SOON);
    insert_row(f.sql, "WITHDRAW", "seen", "P", SOON);
    await_opened("seen");
    await_rounds(3);
    database_run(slow, "COMMIT");
    assert_before_mark("unseen", 0);
    await_opened("unseen");
    await_rounds(2);
    mysql_close(slow);
}

/* One row that cannot be opened does not keep the others from it, however many finished trades
 * stand between them. */
TEST(test_a_row_that_is_kept)
{
    MYSQL *keeper = database_connect(f.db);

    database_run(keeper, "START TRANSACTION");
    insert_row(keeper, "WITHDRAW", "kept", "P", -3000000);
    database_run(f.sql, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                        "step, thread_no, token, fence, rev, next_run_at, created_at, "
                        "updated_at) SELECT 'between', seq, 'WITHDRAW', 'S', 'Y', 'ask', "
                        "UUID(), RANDOM_BYTES(16), 1, 1, UTC_TIMESTAMP(6) - INTERVAL 3000 "
                        "- seq DIV 5 SECOND, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM "
                        "seq_1_to_10500");
    database_run(f.sql, "UPDATE trade_lock_low_water SET low_water = UTC_TIMESTAMP(6) - "
                        "INTERVAL 1 DAY WHERE op_code='WITHDRAW'");
    insert_row(f.sql, "WITHDRAW", "long-behind", "P", -120000);
    insert_row(f.sql, "WITHDRAW", "behind", "P", SOON);
    await_opened("behind");
    await_opened("long-behind");
    assert_before_mark("behind", 0);
    database_run(keeper, "COMMIT");
    await_opened("kept");
    await("next_run_at < " MARK " FROM trade_lock WHERE cust_no='between' AND "
          "serial_no='1'",
          "WITHDRAW");
    mysql_close(keeper);
}

/* Rows are written before the mark when the clock went back behind it. */
TEST(test_a_clock_that_was_set_back)
{
    await(MARK " > UTC_TIMESTAMP(6) - INTERVAL 30 SECOND", "WITHDRAW");
    insert_row(f.sql, "WITHDRAW", "earlier", "P", -60000);
    database_run(f.sql, "UPDATE trade_lock_low_water SET low_water = UTC_TIMESTAMP(6) + "
                        "INTERVAL 1 DAY WHERE op_code='WITHDRAW'");
    await_opened("earlier");
    database_expect(f.sql, 1, "SELECT " MARK " <= UTC_TIMESTAMP(6)", "WITHDRAW");
}

/* Of what was restored nothing is known; all of it is looked through again. */
TEST(test_a_restored_server)
{
    await(MARK " > UTC_TIMESTAMP(6) - INTERVAL 30 SECOND", "WITHDRAW");
    insert_row(f.sql, "WITHDRAW", "reloaded", "P", -60000);
    assert_before_mark("reloaded", 1);
    assert_status(tl_restore_declare(f.client, "ann", "a test"), TL_OK);
    database_propose(f.sql);
    assert_status(tl_restore_accept(f.client, "ann", "a test", NULL), TL_OK);
    await_opened("reloaded");
    await_granting(f.client, "accepted", "c1");
    await_granting(f.other, "accepted-too", "c1");
}

/* Whoever makes sure of a stretch is in nobody's way: neither an ending nor an ask for a trade that
 * is finished meets the locks. */
TEST(test_the_proof_is_in_nobodys_way)
{
    MYSQL *janitors = database_connect(f.db);
    tl_lock *held = granted(f.client, "held", "c1", SYNC), *again;
    tl_status status;

    end_paid(granted(f.client, "ended", "c1", SYNC));
    database_run(janitors, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
    database_run(janitors, "START TRANSACTION");
    assert_true(database_number(janitors, "SELECT COUNT(*) FROM trade_lock FORCE INDEX (due) WHERE "
                                          "op_code='WITHDRAW' AND next_run_at >= '2000-01-01' AND "
                                          "next_run_at < '2200-01-01' LOCK IN SHARE MODE") >= 2);
    assert_status(finish(held, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
    again = ask(f.other, "ended", "c1", SYNC, &status);
    assert_status(status, TL_ALREADY_DONE);
    tl_lock_free(again);
    end_paid(granted(f.other, "new", "c1", SYNC));
    tl_lock_free(held);
    mysql_close(janitors);
}

#define DEAD "dddddddd-0000-4000-8000-000000000001"
#define DEAD_2 "dddddddd-0000-4000-8000-000000000002"
#define DEAD_IN_ROUND "dddddddd-0000-4000-8000-0000000001%02d"
#define DEAD_TOGETHER "dddddddd-0000-4000-8000-0000000002%02d"
#define TOGETHER 12

/* Patient: an observer who ended it while its rows come in would sweep too early. */
static void insert_session(const char *program, const char *session_id)
{
    database_run(f.sql,
                 "INSERT INTO tl_session (session_id, program, host, pid, "
                 "connection_name, timeout_ms, started_at, alive_until, ended_at) "
                 "VALUES ('%s', '%s', 'h', 1, UUID(), 600000, UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6), NULL)",
                 session_id, program);
}

static void end_session(const char *program)
{
    database_run(f.sql, "UPDATE tl_session SET ended_at = UTC_TIMESTAMP(6) WHERE program='%s'",
                 program);
}

/* Many trades that a process finished, and two in process: the second and the last. */
static void insert_many(const char *op, const char *session_id, int count)
{
    database_run(f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                 "step, thread_no, session_id, token, fence, rev, sends, max_hold_until, "
                 "next_run_at, created_at, updated_at) SELECT 'many', seq, '%s', 'S', "
                 "IF(seq IN (2, %d), 'P', 'Y'), 'ask', UUID(), '%s', "
                 "RANDOM_BYTES(16), 1, 1, 1, UTC_TIMESTAMP(6) + INTERVAL 1 DAY, "
                 "UTC_TIMESTAMP(6) + INTERVAL 86400 + seq SECOND, UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6) FROM seq_1_to_%d",
                 op, count, session_id, count);
}

/* What a dead process held is found among the many trades that it finished, in as many rounds as it
 * takes, and though one of them cannot be opened yet. */
TEST(test_the_last_of_many)
{
    MYSQL *keeper = database_connect(f.db);

    insert_session("dead", DEAD);
    insert_many("MANY-A", DEAD, 40000);
    insert_many("MANY-B", DEAD, 3000);
    database_run(keeper, "START TRANSACTION");
    database_expect(keeper, 2,
                    "SELECT serial_no FROM trade_lock WHERE cust_no='many' AND serial_no='2' AND "
                    "op_code='MANY-A' FOR UPDATE");
    end_session("dead");
    await("COUNT(*) = 3 FROM trade_lock WHERE cust_no='many' AND lane='R'");
    await_rounds(2);
    database_expect(f.sql, 1, "SELECT swept_at IS NULL FROM tl_session WHERE program='dead'");
    database_run(keeper, "ROLLBACK");
    await("COUNT(*) = 4 FROM trade_lock WHERE cust_no='many' AND lane='R'");
    await("COUNT(*) FROM tl_session WHERE program='dead' AND swept_at IS NOT NULL");
    mysql_close(keeper);
}

/* What many that died together held is opened before the index is walked through for any of them,
 * and one whose trade cannot be opened does not keep the others from being swept. */
TEST(test_many_that_died_together)
{
    MYSQL *keeper = database_connect(f.db);

    for (int i = 0; i < TOGETHER; i++) {
        const struct text session_id = text_of(DEAD_TOGETHER, i);
        const struct text op = text_of("TOGETHER-%02d", i);
        insert_session("together", session_id.is);
        insert_many(op.is, session_id.is, 5);
    }
    database_run(keeper, "START TRANSACTION");
    database_expect(keeper, 2,
                    "SELECT serial_no FROM trade_lock WHERE cust_no='many' AND serial_no='2' AND "
                    "op_code='TOGETHER-03' FOR UPDATE");
    end_session("together");
    await("COUNT(*) = %d FROM tl_session WHERE program='together' AND swept_at IS NOT NULL",
          TOGETHER - 1);
    database_expect(f.sql, 1,
                    "SELECT COUNT(*) = %d AND MAX(updated_at) <= (SELECT MIN(swept_at) FROM "
                    "tl_session WHERE program='together') FROM trade_lock WHERE step='reap' AND "
                    "op_code LIKE 'TOGETHER-__' AND op_code <> 'TOGETHER-03'",
                    2 * (TOGETHER - 1));
    database_run(keeper, "ROLLBACK");
    await("COUNT(*) = %d FROM tl_session WHERE program='together' AND swept_at IS NOT NULL",
          TOGETHER);
    database_expect(
        f.sql, 2 * TOGETHER,
        "SELECT COUNT(*) FROM trade_lock WHERE op_code LIKE 'TOGETHER-__' AND step='reap'");
    mysql_close(keeper);
}

struct mutexes {
    tl_client *client;
    pthread_barrier_t barrier;
};

static void use_mutex(void *context, int number)
{
    struct mutexes *m = context;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;

    options.flags = TL_ASK_REPEATABLE;
    options.max_hold_ms = 60000;
    const struct text serial = text_of("mutex-%d", number);
    for (int turn = 0; turn < 20; turn++) {
        tl_lock *lock;

        (void)pthread_barrier_wait(&m->barrier);
        lock = granted(m->client, serial.is, "m1", &options);
        (void)pthread_barrier_wait(&m->barrier);
        if (turn < 19)
            (void)finish(lock, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE);
        else
            CREW_STATUS(finish(lock, TL_OUTCOME_SUCCESS, TL_PROOF_NONE), TL_SUCCEEDED);
        tl_lock_free(lock);
    }
}

/* Mutexes are left in doubt and taken again, in groups; then they have neither a holder nor a
 * moment, as those that are taken one by one. */
TEST(test_mutexes_in_groups)
{
    struct mutexes m = {.client = f.client};

    crew_barrier_init(&m.barrier, 16);
    crew_threads(16, use_mutex, &m);
    pthread_barrier_destroy(&m.barrier);
    database_expect(f.sql, 16,
                    "SELECT COUNT(*) FROM trade_lock WHERE cust_no='m1' AND status='Y' AND "
                    "session_id IS NULL AND next_run_at IS NULL");
}

struct seen {
    int done_before, done_behind, held, astray;
};

static int count_rows(void *context, const tl_view *view)
{
    struct seen *seen = context;

    seen->done_before += strcmp(view->serial_no, "list-1") == 0;
    seen->done_behind += strcmp(view->serial_no, "list-2") == 0;
    seen->held += strcmp(view->serial_no, "list-3") == 0;
    seen->astray += strcmp(view->serial_no, "list-4") == 0;
    return 0;
}

/* Finished trades on both sides of the mark, one that is held, and one that SQL typed by hand has
 * put where no janitor looks: each is listed once.  It ends the janitor. */
TEST(test_lists)
{
    tl_filter filter = {.version = TL_FILTER_VERSION};
    struct seen all = {0}, open = {0};

    tl_client_close(janitor);
    insert_row(f.sql, "LISTED", "list-1", "Y", -100000);
    insert_row(f.sql, "LISTED", "list-4", "P", -99000);
    database_run(f.sql, "INSERT INTO trade_lock_low_water VALUES ('LISTED', "
                        "UTC_TIMESTAMP(6) - INTERVAL 50 SECOND)");
    insert_row(f.sql, "LISTED", "list-2", "Y", -10000);
    insert_row(f.sql, "LISTED", "list-3", "P", 3600000);
    filter.op = "LISTED";
    assert_status(tl_list(f.client, &filter, count_rows, &all), TL_OK);
    assert_int_equal(all.done_before, 1);
    assert_int_equal(all.done_behind, 1);
    assert_int_equal(all.held, 1);
    assert_int_equal(all.astray, 1);
    filter.status = 'P';
    assert_status(tl_list(f.client, &filter, count_rows, &open), TL_OK);
    assert_int_equal(open.done_before + open.done_behind, 0);
    assert_int_equal(open.held, 1);
}

static int find_late(void *context, const tl_finding *finding)
{
    int *late = context;

    *late += strcmp(finding->check, "due work") == 0 && finding->level == TL_FINDING_WARNING &&
             strncmp(finding->found, "LATE,", 5) == 0;
    return 0;
}

/* What nobody opened, since there is no janitor, is named by the doctor, behind however many
 * finished trades it stands. */
TEST(test_the_doctor_looks_further)
{
    int late = 0;

    database_run(f.sql, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                        "step, thread_no, token, fence, rev, next_run_at, created_at, "
                        "updated_at) SELECT 'late', seq, 'LATE', 'S', IF(seq = 2500, 'P', "
                        "'Y'), 'ask', UUID(), RANDOM_BYTES(16), 1, 1, UTC_TIMESTAMP(6) - "
                        "INTERVAL 90000 - seq SECOND, UTC_TIMESTAMP(6), "
                        "UTC_TIMESTAMP(6) FROM seq_1_to_2500");
    (void)tl_doctor(f.client, find_late, &late);
    assert_int_equal(late, 1);
}

#define BRIEF "beat_ms=20ms\nsession_ms=60s\npool_wait_ms=5s\nread_timeout_s=60\n"

/* However short its rounds are, a janitor comes by what stands behind a row that it cannot open. */
TEST(test_rounds_that_are_short)
{
    MYSQL *keeper = database_connect(f.db);

    database_run(keeper, "START TRANSACTION");
    insert_row(keeper, "SHORT", "short-kept", "P", -3000000);
    database_run(f.sql, "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                        "step, thread_no, token, fence, rev, next_run_at, created_at, "
                        "updated_at) SELECT 'short', seq, 'SHORT', 'S', 'Y', 'ask', UUID(), "
                        "RANDOM_BYTES(16), 1, 1, UTC_TIMESTAMP(6) - INTERVAL 2900 - seq DIV 5 "
                        "SECOND, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM seq_1_to_2500");
    insert_row(f.sql, "SHORT", "short-behind", "P", -120000);
    database_set(f.db, BRIEF);
    janitor = client_new(&f, 0);
    await_opened("short-behind");
    database_run(keeper, "ROLLBACK");
    tl_client_close(janitor);
    database_set(f.db, LASTING);
    mysql_close(keeper);
}

#define HASTY "beat_ms=100ms\nsession_ms=300ms\nread_timeout_s=60\n"
#define OPERATIONS "(SELECT COUNT(*) FROM trade_lock_low_water WHERE op_code LIKE 'OP-%%')"

static void insert_operations(int from, int to)
{
    database_run(f.sql,
                 "INSERT INTO trade_lock (cust_no, serial_no, op_code, lane, status, "
                 "step, thread_no, token, fence, rev, next_run_at, created_at, "
                 "updated_at) SELECT 'ops', seq, CONCAT('OP-', seq), 'S', 'Y', 'ask', "
                 "UUID(), RANDOM_BYTES(16), 1, 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), "
                 "UTC_TIMESTAMP(6) FROM seq_%d_to_%d",
                 from, to);
}

static void *reap(void *context)
{
    return tl_reap(context, NULL) == TL_OK ? context : NULL;
}

/* Whether the round was still under way when the process was dead. */
static int try_a_new_operation(tl_client *hasty, int try)
{
    int within;
    pthread_t thread;
    void *done;
    const struct text session_id = text_of(DEAD_IN_ROUND, try);
    const struct text op = text_of("NEW-%d", try);

    insert_operations(100 * try + 1, 100 * try + 100); /* it moves the mark of each */
    assert_int_equal(pthread_create(&thread, NULL, reap, hasty), 0);
    await(OPERATIONS " > %d", 100 * try);
    insert_session(op.is, session_id.is);
    insert_many(op.is, session_id.is, 3);
    end_session(op.is);
    within = (int)database_number(f.sql, "SELECT " OPERATIONS " < %d", 100 * try + 100);
    pthread_join(thread, &done);
    assert_non_null(done);
    database_expect(f.sql, 1,
                    "SELECT swept_at IS NULL OR (SELECT COUNT(*) FROM trade_lock WHERE "
                    "op_code='%s_RETRY') = 2 FROM tl_session WHERE program='%s'",
                    op.is, op.is);
    return within;
}

/* The first trade of an operation comes while a round is under way, and its process dies before the
 * round comes to the dead. */
TEST(test_a_new_operation_within_a_round)
{
    tl_client *hasty;
    int try = 0;

    database_set(f.db, HASTY); /* it looks for 300 ms who is alive, not for a minute */
    hasty = client_new(&f, TL_CLIENT_NO_JANITOR);
    while (!try_a_new_operation(hasty, try++))
        assert_in_range(try, 1, 20);
    tl_client_close(hasty);
}

/* Among many operations, which take all of the time there is for what is overdue, a round comes to
 * the dead all the same. */
TEST(test_many_operations)
{
    insert_operations(10001, 10500);
    insert_session("one of many", DEAD_2);
    insert_many("OP-10999", DEAD_2, 3);
    end_session("one of many");
    database_set(f.db, LASTING);
    janitor = client_new(&f, 0);
    await("COUNT(*) = 2 FROM trade_lock WHERE op_code='OP-10999_RETRY'");
    await("COUNT(*) FROM tl_session WHERE program='one of many' AND swept_at IS NOT NULL");
    tl_client_close(janitor);
}

TESTS_OF(low_water, open_all, close_all)
