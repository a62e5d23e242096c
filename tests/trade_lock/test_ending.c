/* Endings with business rows, in the caller's transaction, and what they cost. */
#include "fixture.h"

#include "trade_lock/lock.h"
#include "support/theme.h"

#include <tradelock/callback.h>

#include <pthread.h>
#include <stdatomic.h>

static fixture f;

FIXTURE(setup)
{
    /* Statements are counted, and a machine may be slow: no heartbeat meanwhile. */
    fixture_open(&f, "beat_ms=1m\nsession_ms=10m\n");
    database_run(f.sql, "CREATE TABLE ledger (id INT AUTO_INCREMENT PRIMARY KEY, note "
                        "VARCHAR(20)) ENGINE=InnoDB");
}

FIXTURE(teardown)
{
    assert_log_whole(&f);
    fixture_close(&f);
}

static char note_prepared[] = "prepared", note_booked[] = "booked";
static char note_refused[] = "refused", note_failed[] = "failed";
static char note_itself[] = "itself";

static tl_status insert_note(void *context, struct st_mysql *connection)
{
    char sql[100];

    snprintf(sql, sizeof sql, "INSERT INTO ledger (note) VALUES ('%s')", (const char *)context);
    return mysql_query(connection, sql) == 0 ? TL_OK : TL_SERVER_ERROR;
}

static long long notes(const char *note)
{
    return database_number(f.sql, "SELECT COUNT(*) FROM ledger WHERE note='%s'", note);
}

static tl_ending success(void)
{
    tl_ending ending = TL_ENDING_INIT;

    ending.outcome = TL_OUTCOME_SUCCESS;
    return ending;
}

TEST(test_rows_ride_along)
{
    tl_ending ending = success();
    tl_lock *lock = lock_new(f.client, "b1", "c1", SYNC);

    assert_status(tl_lock_ask_with(lock, insert_note, note_prepared, 0), TL_GRANTED);
    assert_int_equal(notes("prepared"), 1);
    assert_status(tl_lock_finish_with(lock, &ending, insert_note, note_booked, 5000), TL_SUCCEEDED);
    assert_int_equal(notes("booked"), 1);
    assert_row(&f, "b1", "c1", "WITHDRAW", "Y 1 1");
    tl_lock_free(lock);
}

static tl_status refuse(void *context, struct st_mysql *connection)
{
    assert_status(insert_note(context, connection), TL_OK);
    return TL_REFUSED;
}

static tl_status break_off(void *context, struct st_mysql *connection)
{
    assert_status(insert_note(context, connection), TL_OK);
    return TL_SERVER_ERROR;
}

static tl_status commit_inside(void *context, struct st_mysql *connection)
{
    (void)context;
    assert_int_equal(mysql_query(connection, "COMMIT"), 0);
    assert_int_equal(mysql_query(connection, "BEGIN"), 0);
    return TL_OK;
}

static tl_status ask_inside(void *context, struct st_mysql *connection)
{
    tl_lock *lock = lock_new(f.client, "inside", "c1", SYNC);

    (void)connection;
    *(tl_status *)context = tl_lock_ask(lock, 0);
    tl_lock_free(lock);
    return TL_OK;
}

TEST(test_refusing_leaves_nothing)
{
    tl_lock *lock = lock_new(f.client, "b2", "c1", SYNC);
    tl_status inside = TL_OK;

    assert_status(tl_lock_ask_with(lock, refuse, note_refused, 0), TL_REFUSED);
    assert_int_equal(notes("refused"), 0);
    assert_row(&f, "b2", "c1", "WITHDRAW", "-");
    assert_status(tl_lock_ask_with(lock, break_off, note_failed, 0), TL_CALLBACK_FAILED);
    assert_int_equal(notes("failed"), 0);
    assert_row(&f, "b2", "c1", "WITHDRAW", "-");
    assert_status(tl_lock_ask_with(lock, ask_inside, &inside, 0), TL_GRANTED);
    assert_status(inside, TL_IN_CALLBACK);
    assert_row(&f, "inside", "c1", "WITHDRAW", "-");
    tl_lock_free(lock);
}

TEST(test_a_callback_must_not_commit)
{
    tl_ending ending = success();
    tl_lock *lock = granted(f.client, "b3", "c1", SYNC);

    assert_status(tl_lock_finish_with(lock, &ending, break_off, note_failed, 1000),
                  TL_CALLBACK_FAILED);
    assert_row(&f, "b3", "c1", "WITHDRAW", "P 1 1");
    assert_true(tl_may_send(lock, 0));
    assert_status(tl_lock_finish_with(lock, &ending, commit_inside, NULL, 1000),
                  TL_CALLBACK_FAILED);
    assert_non_null(strstr(tl_error_message(), "must not commit"));
    tl_lock_free(lock);
}

static tl_status reset_inside(void *context, struct st_mysql *connection)
{
    ++*(int *)context;
    assert_int_equal(mysql_reset_connection(connection), 0);
    return TL_OK;
}

/* What was prepared on the connection is gone with its transaction; that is no reason to run the
 * callback again. */
TEST(test_a_callback_must_not_reset_the_connection)
{
    tl_ending ending = success();

    for (int i = 0; i < 2; i++) {
        int resets = 0;
        tl_lock *before = lock_new(f.client, i ? "r1" : "r0", "c1", SYNC);
        tl_lock *lock = lock_new(f.client, i ? "r3" : "r2", "c1", SYNC);

        assert_status(tl_lock_ask_with(before, insert_note, note_prepared, 0), TL_GRANTED);
        assert_status(tl_lock_ask_with(lock, reset_inside, &resets, 0), TL_CALLBACK_FAILED);
        assert_non_null(strstr(tl_error_message(), "must not commit"));
        assert_row(&f, i ? "r3" : "r2", "c1", "WITHDRAW", "-");
        assert_status(tl_lock_finish_with(before, &ending, reset_inside, &resets, 1000),
                      TL_CALLBACK_FAILED);
        assert_row(&f, i ? "r1" : "r0", "c1", "WITHDRAW", "P 1 1");
        assert_int_equal(resets, 2);
        tl_lock_free(before);
        tl_lock_free(lock);
    }
}

/* An ending that was carried out although the handle holds it for undone: as when the server
 * committed after all. */
static void forget_the_ending(tl_lock *lock, business_rows rows)
{
    /* No step of the library goes back like this, so its own function refuses it. */
    atomic_fetch_add(&lock->base.life->may_hold, 1);
    lock->base.state = LOCK_END_UNKNOWN;
    lock->base.doubt.is_open = 0;
    lock->base.doubt.rows = rows;
}

/* What meets its own token was carried out, whatever became of the row since. */
TEST(test_an_ending_that_meets_itself)
{
    tl_lock_options options = sync_options("x"), retry = retry_options();
    tl_ending ending = success();
    tl_lock *lock = granted(f.client, "itself", "c1", &options);
    tl_lock *opened = granted(f.client, "itself-2", "c1", &options);
    tl_lock *failed = granted(f.client, "itself-3", "c1", &options), *heir;

    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    forget_the_ending(lock, ROWS_NONE);
    assert_status(tl_lock_finish(lock, &ending), TL_SUCCEEDED);
    assert_status(tl_lock_finish(lock, &ending), TL_RELEASED);
    assert_status(finish(opened, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    database_run(f.sql, "UPDATE trade_lock SET next_run_at = '2000-01-01' WHERE serial_no "
                        "= 'itself-2' AND next_run_at IS NOT NULL");
    heir = granted(f.other, "itself-2", "c1", &retry);
    forget_the_ending(opened, ROWS_NONE);
    assert_status(finish(opened, TL_OUTCOME_UNKNOWN, TL_PROOF_NONE), TL_IN_DOUBT);
    /* But somebody else's is not this one's. */
    database_run(f.sql, "UPDATE trade_lock SET fence = fence + 1 WHERE serial_no = "
                        "'itself-3'");
    assert_status(tl_lock_finish(failed, &ending), TL_LOST);
    database_expect(
        f.sql, 0,
        "SELECT COUNT(*) FROM trade_evidence WHERE serial_no = 'itself-2' OR serial_no = 'itself'");
    tl_lock_free(heir);
    tl_lock_free(failed);
    tl_lock_free(opened);
    tl_lock_free(lock);
}

/* With or without its rows, as the handle knows. */
TEST(test_an_ending_with_rows_that_meets_itself)
{
    tl_ending ending = success();

    for (int sent = 0; sent < 2; sent++) {
        tl_lock *lock = granted(f.client, sent ? "itself-5" : "itself-4", "c1", SYNC);
        long long before = notes("itself");

        assert_status(tl_lock_finish_with(lock, &ending, insert_note, note_itself, 5000),
                      TL_SUCCEEDED);
        forget_the_ending(lock, sent ? ROWS_SENT : ROWS_NOT_SENT);
        assert_status(tl_lock_finish_with(lock, &ending, insert_note, note_itself, 5000),
                      sent ? TL_SUCCEEDED : TL_CALLBACK_FAILED);
        assert_int_equal(notes("itself"), before + 1);
        tl_lock_free(lock);
    }
}

static MYSQL *callers_own(void)
{
    MYSQL *mine = database_connect(f.db);

    database_run(mine, "SET idle_transaction_timeout = 600");
    return mine;
}

TEST(test_in_the_callers_transaction)
{
    tl_ending ending = success();
    tl_lock *lock = granted(f.client, "b4", "c1", SYNC);
    MYSQL *mine = callers_own();

    assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_NO_TRANSACTION);
    database_run(mine, "BEGIN; INSERT INTO ledger (note) VALUES ('mine')");
    assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_OK);
    assert_row(&f, "b4", "c1", "WITHDRAW", "P 1 1");
    database_run(mine, "ROLLBACK");
    assert_status(tl_lock_committed(lock, TL_COMMIT_ROLLED_BACK), TL_OK);
    database_run(mine, "BEGIN; INSERT INTO ledger (note) VALUES ('mine')");
    assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_OK);
    database_run(mine, "COMMIT");
    assert_status(tl_lock_committed(lock, TL_COMMIT_OK), TL_SUCCEEDED);
    assert_int_equal(notes("mine"), 1);
    assert_row(&f, "b4", "c1", "WITHDRAW", "Y 1 1");
    tl_lock_free(lock);
    mysql_close(mine);
}

/* As for the guards: a caller that vanishes in its transaction keeps the trade's row. */
TEST(test_a_caller_that_may_be_silent_for_hours)
{
    tl_ending ending = success();
    tl_lock *lock = granted(f.client, "silent", "c1", SYNC);
    MYSQL *mine = database_connect(f.db);

    database_run(mine, "BEGIN");
    assert_status(tl_lock_finish_in(lock, mine, &ending, 2), TL_INVALID);
    assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "idle_transaction_timeout"));
    assert_status(tl_lock_finish_in(lock, NULL, &ending, 0), TL_INVALID);
    assert_status(tl_lock_finish_in(lock, mine, &ending, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(mine, "COMMIT");
    assert_status(tl_lock_committed(lock, TL_COMMIT_OK), TL_SUCCEEDED);
    database_expect(mine, 0, "SELECT @@idle_transaction_timeout");
    tl_lock_free(lock);
    mysql_close(mine);
}

static atomic_int other_has_all;

/* It has changed more rows than the caller, whom the server so rolls back. */
static void *want_the_other_row(void *unused)
{
    MYSQL *other = database_connect(f.db);

    (void)unused;
    database_run(other, "BEGIN; UPDATE account SET n = n + 1 WHERE id > 1");
    atomic_store(&other_has_all, 1);
    database_run(other, "UPDATE account SET n = n + 1 WHERE id = 1; COMMIT");
    mysql_close(other);
    return NULL;
}

static void ignore_a_deadlock(MYSQL *mine)
{
    pthread_t thread;

    atomic_store(&other_has_all, 0);
    database_run(mine, "UPDATE account SET n = n + 1 WHERE id = 1");
    assert_int_equal(pthread_create(&thread, NULL, want_the_other_row, NULL), 0);
    while (!atomic_load(&other_has_all))
        usleep(1000);
    assert_int_not_equal(mysql_query(mine, "UPDATE account SET n = n + 1 WHERE id = 2"), 0);
    assert_int_equal(mysql_errno(mine), 1213);
    pthread_join(thread, NULL);
}

/* The books were undone by the server, whatever the caller did after that; only a caller with
 * autocommit on, and who begins a transaction in words, has none that the server began. */
TEST(test_the_books_that_the_server_undid)
{
    static const char *const then[] = {NULL, "DO 1", "SELECT COUNT(*) FROM account",
                                       "INSERT INTO ledger (note) VALUES ('rest')"};
    tl_ending ending = success();

    database_run(f.sql, "CREATE TABLE account (id INT PRIMARY KEY, n INT) ENGINE=InnoDB;"
                        "INSERT INTO account SELECT seq, 0 FROM seq_1_to_100");
    for (unsigned i = 0; i < 2 * sizeof then / sizeof *then; i++) {
        MYSQL *mine = callers_own();
        tl_lock *lock;
        const struct text serial = text_of("undone-%u", i);

        lock = granted(f.client, serial.is, "c1", SYNC);
        database_run(mine,
                     "SET autocommit = %u;"
                     "START TRANSACTION; INSERT INTO ledger (note) VALUES ('lost')",
                     i % 2);
        ignore_a_deadlock(mine);
        if (then[i / 2] != NULL) {
            assert_int_equal(mysql_query(mine, then[i / 2]), 0);
            mysql_free_result(mysql_store_result(mine));
        }
        assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_NO_TRANSACTION);
        database_run(mine, "COMMIT");
        assert_row(&f, serial.is, "c1", "WITHDRAW", "P 1 1");
        assert_int_equal(notes("lost"), 0);
        tl_lock_free(lock);
        mysql_close(mine);
    }
}

TEST(test_a_stale_holder_must_roll_back)
{
    tl_ending ending = success();
    tl_lock *lock = granted(f.client, "b5", "c1", SYNC);
    MYSQL *mine = callers_own();

    database_run(f.sql, "UPDATE trade_lock SET fence = fence + 1 WHERE serial_no='b5'");
    database_run(mine, "BEGIN; INSERT INTO ledger (note) VALUES ('stale')");
    assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_ROLL_BACK);
    assert_int_equal(tl_status_class(TL_ROLL_BACK), TL_CLASS_ROLL_BACK);
    database_run(mine, "ROLLBACK");
    assert_int_equal(notes("stale"), 0);
    tl_lock_free(lock);
    mysql_close(mine);
}

static void settle_unanswered(const char *serial, const char *last, tl_status expected)
{
    tl_ending ending = success();
    tl_lock *lock = granted(f.client, serial, "c1", SYNC);
    MYSQL *mine = callers_own();

    database_run(mine, "BEGIN");
    assert_status(tl_lock_finish_in(lock, mine, &ending, 0), TL_OK);
    if (last != NULL)
        database_run(mine, "%s", last);
    assert_status(tl_lock_committed(lock, TL_COMMIT_UNANSWERED), expected);
    tl_lock_free(lock);
    mysql_close(mine);
}

TEST(test_settling_the_callers_commit)
{
    settle_unanswered("b6", "COMMIT", TL_SUCCEEDED);
    settle_unanswered("b7", NULL, TL_GRANTED); /* the open transaction is ended */
}

/* What n uncontended rounds cost, by the server's counters. */
TEST(test_one_statement_and_one_commit_each)
{
    enum { ROUNDS = 20 };
    static const char *const kinds[] = {"once", "repeatable", "exclusive"};
    static const unsigned flags[] = {0, TL_ASK_REPEATABLE, TL_ASK_EXCLUSIVE};

    for (int kind = 0; kind < 3; kind++) {
        tl_stats before = {.version = TL_STATS_VERSION}, after = before;

        assert_status(tl_client_stats(f.client, &before), TL_OK);
        for (int round = 0; round < ROUNDS; round++) {
            tl_lock_options options = sync_options(kind == 1 ? NULL : "x");

            options.flags = flags[kind];
            if (kind == 1)
                options.channel = NULL;
            end_paid(granted(f.client, text_of("n-%s-%d", kinds[kind], kind == 1 ? 0 : round).is,
                             "c7", &options));
        }
        assert_status(tl_client_stats(f.client, &after), TL_OK);
        /* A connection that was idle may have to be asked for, or made anew. */
        assert_in_range(after.statements - before.statements, 2 * ROUNDS, 2 * ROUNDS + 6);
    }
}

TESTS_OF(ending, setup, teardown)
