/*
 * What the server refuses: deadlocks, lock waits, snapshots that are too old, too many connections,
 * a read-only server, a server that goes away.  Only database work is repeated, within its time,
 * and counted.
 */
#include "scene.h"

#include "base/clock.h"
#include "base/config.h"
#include "support/theme.h"

#include <tradelock/callback.h>
#include <tradelock/lane.h>
#include <tradelock/resource.h>

#include <pthread.h>

static server *own; /* innodb_snapshot_isolation=ON, and it may be restarted */
static scene s;
static unsigned calls; /* of callbacks */

FIXTURE(set_up)
{
    const char *const options[] = {"--innodb-snapshot-isolation=ON", NULL};

    own = server_start(options);
    scene_open(&s, own);
    assert_int_equal(database_number(s.sql, "SELECT @@innodb_snapshot_isolation"), 1);
}

FIXTURE(tear_down)
{
    assert_int_equal(scene_log_problems(&s), 0);
    scene_close(&s);
    server_free(own);
}

static tl_stats stats_of(const tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_int_equal(tl_client_stats(client, &stats), TL_OK);
    return stats;
}

#define assert_status(got, expected)                                                               \
    do {                                                                                           \
        tl_status status_ = (got);                                                                 \
        if (status_ != (expected))                                                                 \
            print_error("%s\n", tl_error_message());                                               \
        assert_string_equal(tl_status_name(status_), tl_status_name(expected));                    \
    } while (0)

/* ------------------------------------------------------ somebody holds the row -- */

struct holder {
    MYSQL *sql;
    int64_t until_ms;
    /* Met by this client, which has waited for so many locks before; NULL: not awaited. */
    tl_client *met_by;
    uint64_t lock_waits;
    pthread_t thread;
};

static void *let_go(void *context)
{
    struct holder *holder = context;

    int64_t patience_ms = clock_deadline(PATIENCE_MS);

    mysql_thread_init();
    clock_sleep_until_ms(holder->until_ms);
    while (holder->met_by != NULL && clock_left_ms(patience_ms) > 0 &&
           stats_of(holder->met_by).lock_waits == holder->lock_waits)
        clock_sleep_until_ms(clock_deadline(5));
    database_run(holder->sql, "ROLLBACK");
    mysql_thread_end();
    return NULL;
}

/* Another transaction holds the trade's sync row. */
static void hold_row(struct holder *holder)
{
    holder->sql = database_connect(s.db);
    database_run(holder->sql,
                 "START TRANSACTION; SELECT 1 FROM trade_lock WHERE cust_no='%s' AND "
                 "serial_no='%s' AND op_code='WITHDRAW' FOR UPDATE",
                 s.cust, s.serial);
}

static void end_hold(struct holder *holder)
{
    database_run(holder->sql, "ROLLBACK");
    mysql_close(holder->sql);
}

/* The same for a while, and until s.near has met it. */
static void hold_row_for(struct holder *holder, int64_t hold_ms)
{
    holder->met_by = s.near;
    holder->lock_waits = stats_of(s.near).lock_waits;
    hold_row(holder);
    holder->until_ms = clock_deadline(hold_ms);
    assert_int_equal(pthread_create(&holder->thread, NULL, let_go, holder), 0);
}

static void await_holder(struct holder *holder)
{
    pthread_join(holder->thread, NULL);
    mysql_close(holder->sql);
}

static void end_behind_holder(tl_lane lane, tl_outcome outcome, tl_status expected)
{
    tl_ending ending = scene_ending(outcome);
    struct holder holder;
    tl_stats before, after;
    int64_t began_ms;

    scene_next_trade(&s);
    if (lane == TL_LANE_RETRY)
        scene_past(&s, TL_OUTCOME_UNKNOWN);
    s.lock = scene_granted(&s, s.near, lane, 0);
    before = stats_of(s.near);
    began_ms = clock_boottime_ms();
    hold_row_for(&holder, 300);
    assert_status(tl_lock_finish(s.lock, &ending), expected);
    assert_true(clock_boottime_ms() - began_ms >= 300);
    await_holder(&holder);
    after = stats_of(s.near);
    assert_true(after.repeats > before.repeats);
    assert_true(after.lock_waits > before.lock_waits);
    scene_end_trade(&s);
}

TEST(test_an_ending_outlasts_a_lock_wait)
{
    end_behind_holder(TL_LANE_SYNC, TL_OUTCOME_SUCCESS, TL_SUCCEEDED);
    end_behind_holder(TL_LANE_SYNC, TL_OUTCOME_FAILURE, TL_FAILED);
    end_behind_holder(TL_LANE_SYNC, TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
    end_behind_holder(TL_LANE_RETRY, TL_OUTCOME_SUCCESS, TL_SUCCEEDED);
    end_behind_holder(TL_LANE_RETRY, TL_OUTCOME_UNKNOWN, TL_IN_DOUBT);
}

/* The time is over first: nothing was written, the lock is held, the next call ends it. */
TEST(test_a_lock_wait_that_outlasts_the_ending)
{
    static const tl_outcome outcomes[] = {TL_OUTCOME_SUCCESS, TL_OUTCOME_UNKNOWN};
    static const tl_status ends[] = {TL_SUCCEEDED, TL_IN_DOUBT};

    for (int i = 0; i < 2; i++) {
        tl_ending ending = scene_ending(outcomes[i]);
        struct holder holder;

        scene_begin(&s, 1); /* gives up after 60 ms */
        s.lock = scene_granted(&s, s.far, TL_LANE_SYNC, 0);
        hold_row(&holder);
        assert_status(tl_lock_finish(s.lock, &ending), TL_TRY_AGAIN);
        assert_string_equal(scene_hold_problem(&s, s.lock), "");
        end_hold(&holder);
        assert_status(tl_lock_finish(s.lock, &ending), ends[i]);
        scene_end(&s);
    }
}

TEST(test_arming_outlasts_a_lock_wait)
{
    struct holder holder;

    scene_next_trade(&s);
    scene_past(&s, TL_OUTCOME_UNKNOWN);
    s.lock = scene_granted(&s, s.near, TL_LANE_RETRY, 0);
    hold_row_for(&holder, 200);
    assert_status(tl_lock_arm(s.lock, 50000), TL_OK);
    await_holder(&holder);
    assert_string_equal(scene_hold_problem(&s, s.lock), "");
    scene_end_trade(&s);
}

/* ------------------------------------------ errors in the transaction with rows -- */

/* Fails as told for the first calls; then books. */
static unsigned failing_number, failures_left;

static tl_status fail_first(void *context, struct st_mysql *connection)
{
    char sql[120];

    calls++;
    if (failures_left > 0) {
        failures_left--;
        snprintf(sql, sizeof sql,
                 "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %u, MESSAGE_TEXT = 'by test'",
                 failing_number);
        if (mysql_query(connection, sql) == 0)
            return TL_INTERNAL;
        return mysql_errno(connection) == failing_number ? TL_TRY_AGAIN : TL_INTERNAL;
    }
    return scene_book(context, connection);
}

TEST(test_callbacks_are_repeated)
{
    static const unsigned numbers[] = {1213, 1205, 1020};
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);

    for (int i = 0; i < 3; i++) {
        tl_stats before = stats_of(s.near);

        scene_next_trade(&s);
        failing_number = numbers[i];
        s.lock = scene_lock(&s, s.near, TL_LANE_SYNC, 0);
        calls = 0;
        failures_left = 3;
        assert_status(tl_lock_ask_with(s.lock, fail_first, &s, 0), TL_GRANTED);
        assert_int_equal(calls, 4);
        failures_left = 3;
        assert_status(tl_lock_finish_with(s.lock, &ending, fail_first, &s, 5000), TL_SUCCEEDED);
        assert_int_equal(calls, 8);
        assert_int_equal(scene_ledger(&s), 2);
        assert_int_equal(scene_steps(&s), 2);
        assert_int_equal(stats_of(s.near).repeats - before.repeats, 6);
        scene_end_trade(&s);
    }
}

/* Only within the time: then the lock is still held and nothing is booked. */
TEST(test_callbacks_are_repeated_within_the_time)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    int64_t began_ms;

    scene_next_trade(&s);
    s.lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
    failing_number = 1213;
    failures_left = 1000000;
    began_ms = clock_boottime_ms();
    assert_status(tl_lock_finish_with(s.lock, &ending, fail_first, &s, 300), TL_TRY_AGAIN);
    assert_in_range(clock_boottime_ms() - began_ms, 300, 15000);
    assert_int_equal(scene_ledger(&s), 0);
    assert_string_equal(scene_hold_problem(&s, s.lock), "");
    failures_left = 0;
    assert_status(tl_lock_finish_with(s.lock, &ending, fail_first, &s, 300), TL_SUCCEEDED);
    scene_end_trade(&s);
}

/* The next so many lines of the ledger meet this error.  A sequence counts them, which no rollback
 * turns back. */
static void fail_lines(unsigned number, int times)
{
    char sql[400];

    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE TRIGGER fail_lines BEFORE INSERT ON ledger FOR EACH ROW "
             "BEGIN"
             "  IF NEXT VALUE FOR written <= %d THEN"
             "    SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %u, MESSAGE_TEXT = 'by test';"
             "  END IF; "
             "END",
             times, number);
    database_run(s.sql, "ALTER SEQUENCE written RESTART 1");
    if (mysql_query(s.sql, sql) != 0)
        server_panic("no trigger: %s", mysql_error(s.sql));
}

static long long lines_written(void)
{
    return database_number(s.sql, "SELECT NEXT VALUE FOR written") - 1;
}

/* The same of a trade alone with declared books. */
TEST(test_books_are_repeated)
{
    static const unsigned numbers[] = {1213, 1205, 1020};
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);

    scene_begin(&s, 0);
    database_run(s.sql, "CREATE SEQUENCE written");
    for (int i = 0; i < 3; i++) {
        tl_stats before = stats_of(s.near), after;

        scene_next_trade(&s);
        scene_open_account(&s, 100);
        s.lock = scene_lock(&s, s.near, TL_LANE_SYNC, SCENE_PRICED);
        fail_lines(numbers[i], 3);
        assert_status(scene_ask_book(s.lock, s.near_books), TL_GRANTED);
        assert_int_equal(lines_written(), 4);
        assert_string_equal(scene_hold_problem(&s, s.lock), "");
        assert_int_equal(scene_ledger(&s), 1);
        fail_lines(numbers[i], 3);
        assert_status(scene_finish_book(s.lock, s.near_books, &ending), TL_SUCCEEDED);
        assert_int_equal(lines_written(), 4);
        assert_int_equal(scene_ledger(&s), 2);
        assert_int_equal(scene_trade_steps(&s), 2);
        assert_string_equal(scene_books_problem(&s), "");
        after = stats_of(s.near);
        assert_int_equal(after.repeats - before.repeats, 6);
        assert_int_equal(after.rollbacks - before.rollbacks, 6);
        assert_int_equal(after.deadlocks - before.deadlocks, i == 0 ? 6 : 0);
        assert_int_equal(after.lock_waits - before.lock_waits, i == 1 ? 6 : 0);
        assert_int_equal(after.snapshot_conflicts - before.snapshot_conflicts, i == 2 ? 6 : 0);
        assert_int_equal(after.groups, before.groups);
        scene_end_trade(&s);
    }
    database_run(s.sql, "DROP TRIGGER fail_lines; DROP SEQUENCE written");
    scene_end(&s);
}

/* ------------------------------------- real deadlocks and snapshots, caller's own -- */

/* The caller's snapshot is older than the row's last change: 1020. */
TEST(test_a_snapshot_that_is_too_old)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    MYSQL *caller;

    scene_next_trade(&s);
    scene_past(&s, TL_OUTCOME_UNKNOWN);
    caller = database_connect(s.db);
    database_run(caller, "SET tx_isolation='REPEATABLE-READ'; START TRANSACTION WITH "
                         "CONSISTENT SNAPSHOT");
    s.lock = scene_granted(&s, s.near, TL_LANE_RETRY, 0);
    assert_status(tl_lock_finish_in(s.lock, caller, &ending, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    assert_non_null(strstr(tl_error_message(), "1020"));
    database_run(caller, "ROLLBACK");
    assert_string_equal(scene_hold_problem(&s, s.lock), "");
    database_run(caller, "START TRANSACTION");
    assert_status(tl_lock_finish_in(s.lock, caller, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(caller, "COMMIT");
    assert_status(tl_lock_committed(s.lock, TL_COMMIT_OK), TL_SUCCEEDED);
    mysql_close(caller);
    scene_end_trade(&s);
}

/* After 1205 the caller's transaction is half a transaction: it must roll back. */
TEST(test_a_lock_wait_of_the_callers)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    struct holder holder;
    MYSQL *caller;

    scene_next_trade(&s);
    caller = database_connect(s.db);
    s.lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
    hold_row(&holder);
    database_run(caller, "SET innodb_lock_wait_timeout=0; START TRANSACTION");
    assert_int_equal(scene_book(&s, caller), TL_OK);
    assert_status(tl_lock_finish_in(s.lock, caller, &ending, TL_GUARD_ANY_IDLE), TL_ROLL_BACK);
    database_run(caller, "ROLLBACK");
    end_hold(&holder);
    assert_int_equal(scene_ledger(&s), 0);
    assert_string_equal(scene_hold_problem(&s, s.lock), "");
    mysql_close(caller);
    scene_end_trade(&s);
}

/* Two trades whose business rows are booked crosswise: the server picks one of them, and both
 * end. */
struct crossing {
    tl_client *client;
    const char *serial;
    int first, second;
    pthread_t thread;
    pthread_barrier_t *barrier;
    unsigned runs;
    tl_status answer;
};

static tl_status book_crosswise(void *context, struct st_mysql *connection)
{
    struct crossing *c = context;
    char sql[120];

    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql, "UPDATE pair SET n = n + 1 WHERE id = %d",
                 i == 0 ? c->first : c->second);
        if (mysql_query(connection, sql) != 0)
            return mysql_errno(connection) == 1213 ? TL_TRY_AGAIN : TL_SERVER_ERROR;
        if (i == 0 && c->runs++ == 0)
            pthread_barrier_wait(c->barrier);
    }
    return TL_OK;
}

static void *cross(void *context)
{
    struct crossing *c = context;
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    tl_key key = {c->serial, "crosswise", "WITHDRAW"};
    tl_lock *lock = NULL;

    options.max_hold_ms = 60000;
    c->answer = tl_lock_new(&lock, c->client, &key, &options);
    if (c->answer == TL_OK)
        c->answer = tl_lock_ask(lock, 0);
    if (c->answer == TL_GRANTED)
        c->answer = tl_lock_finish_with(lock, &ending, book_crosswise, c, PATIENCE_MS / 2);
    tl_lock_free(lock);
    return NULL;
}

TEST(test_a_real_deadlock)
{
    pthread_barrier_t barrier;
    /* Nobody's wait ends before the two have met. */
    char *file = database_option_file_at(s.db, server_socket(own),
                                         "beat_ms=20s\nsession_ms=60s\n"
                                         "business_lock_wait_s=60\n"
                                         "read_timeout_s=120\n");
    tl_client_options settings = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_stats before, after;

    settings.config_file = file;
    settings.flags = TL_CLIENT_NO_JANITOR;
    assert_status(tl_client_open(&client, &settings), TL_OK);
    struct crossing two[2] = {{client, "x1", 1, 2, 0, &barrier, 0, TL_OK},
                              {client, "x2", 2, 1, 0, &barrier, 0, TL_OK}};
    before = stats_of(client);
    database_run(s.sql, "CREATE TABLE pair (id INT PRIMARY KEY, n INT) "
                        "ENGINE=InnoDB; INSERT INTO pair VALUES (1, 0), (2, 0)");
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&two[i].thread, NULL, cross, &two[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(two[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_status(two[0].answer, TL_SUCCEEDED);
    assert_status(two[1].answer, TL_SUCCEEDED);
    assert_int_equal(two[0].runs + two[1].runs, 3);
    assert_int_equal(database_number(s.sql, "SELECT SUM(n) FROM pair"), 4);
    after = stats_of(client);
    assert_true(after.repeats > before.repeats);
    /* The callback met it, and told the library so. */
    assert_true(after.rollbacks > before.rollbacks);
    tl_client_close(client);
    remove(file);
    free(file);
}

/* ------------------------------------------------------ the server as a whole -- */

/* 1040 passes: whoever asks meanwhile waits for it, within its time. */
TEST(test_too_many_connections)
{
    MYSQL *crowd[9];
    struct holder holder = {0};
    tl_stats before;

    scene_begin(&s, 0);
    s.lock = scene_lock(&s, s.far, TL_LANE_SYNC, 0);
    database_run(s.sql, "SET GLOBAL max_connections=10");
    for (int i = 0; i < 9; i++)
        crowd[i] = mysql_init(NULL);
    for (int i = 0; i < 9; i++) {
        mysql_options(crowd[i], MYSQL_READ_DEFAULT_FILE, server_option_file(own));
        mysql_options(crowd[i], MYSQL_READ_DEFAULT_GROUP, "client");
        (void)mysql_real_connect(crowd[i], NULL, NULL, NULL, NULL, 0, NULL, 0);
    }
    before = stats_of(s.far);
    holder.sql = s.sql;
    holder.until_ms = clock_deadline(300);
    assert_int_equal(pthread_create(&holder.thread, NULL, let_go, &holder), 0);
    /* A connection with business rows has to be made, and cannot be. */
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    assert_status(tl_lock_ask(s.lock, 0), TL_GRANTED);
    assert_status(tl_lock_finish_with(s.lock, &ending, scene_book, &s, 300), TL_OVERLOADED);
    pthread_join(holder.thread, NULL);
    assert_true(stats_of(s.far).repeats > before.repeats);
    for (int i = 0; i < 9; i++)
        mysql_close(crowd[i]);
    database_run(s.sql, "SET GLOBAL max_connections=1000");
    assert_status(tl_lock_finish_with(s.lock, &ending, scene_book, &s, 3000), TL_SUCCEEDED);
    scene_end(&s);
}

static void *let_more_in(void *unused)
{
    (void)unused;
    clock_sleep_until_ms(clock_deadline(300));
    database_run(s.sql, "SET GLOBAL max_connections=1000");
    return NULL;
}

/* All but the test's own connection, so that new ones have to be made. */
static void kill_connections(void)
{
    database_run(s.sql, "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; "
                        "FOR c IN (SELECT id FROM information_schema.PROCESSLIST "
                        "WHERE id <> CONNECTION_ID() AND user <> 'system user') "
                        "DO KILL c.id; END FOR; END");
}

/* The same of the other locks. */
TEST(test_too_many_connections_for_a_mutex)
{
    tl_mutex_options options = TL_MUTEX_OPTIONS_INIT;
    tl_mutex *mutex = NULL;
    uint64_t repeats = stats_of(s.near).repeats;
    pthread_t thread;
    MYSQL *crowd[12];

    scene_begin(&s, 0);
    options.max_hold_ms = PATIENCE_MS;
    assert_status(tl_mutex_new(&mutex, s.near, "crowded", &options), TL_OK);
    assert_status(tl_mutex_lock(mutex, 0), TL_GRANTED);
    database_run(s.sql, "SET GLOBAL max_connections=10");
    kill_connections();
    for (int i = 0; i < 12; i++) {
        crowd[i] = mysql_init(NULL);
        mysql_options(crowd[i], MYSQL_READ_DEFAULT_FILE, server_option_file(own));
        mysql_options(crowd[i], MYSQL_READ_DEFAULT_GROUP, "client");
        (void)mysql_real_connect(crowd[i], NULL, NULL, NULL, NULL, 0, NULL, 0);
    }
    assert_int_equal(pthread_create(&thread, NULL, let_more_in, NULL), 0);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_true(stats_of(s.near).repeats > repeats);
    pthread_join(thread, NULL);
    for (int i = 0; i < 12; i++)
        mysql_close(crowd[i]);
    tl_mutex_free(mutex);
    scene_end(&s);
}

/* The server is restarted under a hold: the hold goes on. */
TEST(test_a_restart_in_the_middle)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    tl_status ended;

    scene_next_trade(&s);
    s.lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
    mysql_close(s.sql);
    server_kill9(own);
    /* A dying server's socket may still take the bytes: then it is not known that nothing was sent,
     * and the answer must not say so. */
    ended = tl_lock_finish(s.lock, &ending);
    assert_true(ended == TL_UNREACHABLE || ended == TL_UNKNOWN);
    server_restart(own);
    s.sql = database_connect(s.db);
    assert_status(tl_lock_finish(s.lock, &ending), TL_SUCCEEDED);
    assert_int_equal(scene_steps(&s), 2);
    scene_end_trade(&s);
}

TEST(test_a_read_only_server)
{
    tl_ending ending = scene_ending(TL_OUTCOME_SUCCESS);
    tl_lock *other;
    FILE *file;

    /* An administrator may write all the same, so this needs an account without. */
    database_run(s.sql,
                 "CREATE OR REPLACE USER plain@localhost IDENTIFIED BY 'plain'; "
                 "GRANT SELECT, INSERT, UPDATE, EXECUTE ON %s.* TO plain@localhost",
                 database_name(s.db));
    file = fopen(database_option_file(s.db), "a");
    assert_non_null(file);
    fputs("[tradelock-client]\nuser=plain\npassword=plain\n", file);
    fclose(file);
    tl_client_close(s.near);
    s.near = scene_client(&s);
    scene_next_trade(&s);
    s.lock = scene_granted(&s, s.near, TL_LANE_SYNC, 0);
    other = scene_lock(&s, s.near, TL_LANE_SYNC, 0);
    database_run(s.sql, "SET GLOBAL read_only=1");
    assert_status(tl_lock_finish(s.lock, &ending), TL_READ_ONLY);
    assert_status(tl_lock_finish_with(s.lock, &ending, scene_book, &s, 300), TL_READ_ONLY);
    assert_status(tl_lock_ask(other, 0), TL_READ_ONLY);
    assert_status(tl_lock_ask_with(other, scene_book, &s, 0), TL_READ_ONLY);
    assert_int_equal(scene_steps(&s), 1);
    database_run(s.sql, "SET GLOBAL read_only=0");
    assert_status(tl_lock_ask(other, 0), TL_BUSY);
    assert_status(tl_lock_finish(s.lock, &ending), TL_SUCCEEDED);
    tl_lock_free(other);
    scene_end_trade(&s);
}

TESTS_OF(errors, set_up, tear_down)
