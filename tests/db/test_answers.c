/* Errors that the server answers, and how they are told. */
#include "common.h"
#include "support/theme.h"

#include <pthread.h>
#include <time.h>

static database *base;
static db *connection, *other;

/* How long a statement waits for a row; what is compared with it is done long before. */
#define LOCK_WAIT_S 60

FIXTURE(set_up)
{
    db_options options;
    MYSQL *plain;

    base = database_new_empty(server_shared(), NULL);
    plain = database_connect(base);
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY, n INT, c INT, "
                        "UNIQUE KEY one_c (c), CONSTRAINT n_small CHECK (n < 1000));"
                        "INSERT INTO t VALUES (1, 0, 1), (2, 0, 2)");
    mysql_close(plain);
    options = options_at(database_option_file(base));
    options.lock_wait_s = LOCK_WAIT_S;
    options.read_timeout_s = 2 * LOCK_WAIT_S;
    options.idle_transaction_s = 2 * LOCK_WAIT_S;
    connection = open_with(&options);
    other = open_with(&options);
}

FIXTURE(tear_down)
{
    db_close(connection);
    db_close(other);
    database_free(base);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

STATEMENT(insert_row, "INSERT INTO t (id, n, c) VALUES (?, 0, ?) RETURNING id");
STATEMENT(add_one, "UPDATE t SET n = n + 1 WHERE id = ?");
STATEMENT(no_table, "SELECT * FROM missing WHERE id = ?");
STATEMENT(no_column, "SELECT missing FROM t");
STATEMENT(no_sense, "SELEKT 1");

TEST(duplicates_name_their_key)
{
    db_value values[] = {db_int(1), db_int(9)};
    int pass;

    for (pass = 0; pass < 2; pass++) {
        values[0] = db_int(1);
        values[1] = db_int(9);
        EXPECT(connection, db_run(connection, &insert_row, values, 2, NULL), DB_ERROR);
        assert_int_equal(db_errno(connection), 1062);
        assert_int_equal(db_error_kind_of(1062), DB_KIND_DUPLICATE);
        assert_string_equal(db_duplicate_key(connection), "PRIMARY");
        values[0] = db_int(9);
        values[1] = db_int(1);
        EXPECT(connection, db_run(connection, &insert_row, values, 2, NULL), DB_ERROR);
        assert_string_equal(db_duplicate_key(connection), "one_c");
        assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_SERVER_ERROR);
        assert_string_equal(tl_error_message(),
                            "asking: a row with this key is there already (key one_c)");
    }
    EXPECT(connection, run_sql(connection, "DO 1", NULL), DB_DONE);
    assert_string_equal(db_duplicate_key(connection), "");
    assert_true(db_usable(connection));
}

TEST(a_locked_row_is_answered_at_once)
{
    db_value one = db_int(1);
    int64_t start;

    EXPECT(other, db_begin(other), DB_DONE);
    EXPECT(other, db_run(other, &add_one, &one, 1, NULL), DB_DONE);
    start = now_ms();
    EXPECT(connection, db_run_nowait(connection, &add_one, &one, 1, NULL), DB_ERROR);
    assert_int_equal(db_errno(connection), 1205);
    assert_int_equal(db_error_kind_of(1205), DB_KIND_REPEAT);
    assert_in_range(now_ms() - start, 0, LOCK_WAIT_S * 1000 / 2);
    /* Inside a transaction one statement is undone and the transaction goes on. */
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_run_nowait(connection, &add_one, &one, 1, NULL), DB_ERROR);
    assert_true(db_in_transaction(connection));
    assert_false(db_usable(connection));
    EXPECT(connection, db_rollback(connection), DB_DONE);
    assert_true(db_usable(connection));
    assert_int_equal(db_error_status(connection, DB_DONE, "x"), TL_OK);
    EXPECT(other, db_rollback(other), DB_DONE);
    assert_true(db_count(connection)->lock_waits >= 2);
    EXPECT(connection, db_run_nowait(connection, &add_one, &one, 1, NULL), DB_DONE);
}

static void *raise_two_then_one(void *unused)
{
    db_value one = db_int(1), two = db_int(2);

    (void)unused;
    if (db_begin(other) != DB_DONE || db_run(other, &add_one, &two, 1, NULL) != DB_DONE)
        return NULL;
    (void)db_run(other, &add_one, &one, 1, NULL);
    return other;
}

static void wait_until_waiting(void)
{
    MYSQL *observer = database_connect(base);
    int64_t end = now_ms() + LOCK_WAIT_S * 1000;
    char condition[40];
    long long waits;

    snprintf(condition, sizeof condition, "id = %llu", (unsigned long long)db_thread_id(other));
    do
        waits = database_transactions(observer, "LOCK WAIT", condition);
    while (waits == 0 && now_ms() < end);
    assert_int_equal(waits, 1);
    mysql_close(observer);
}

TEST(a_deadlock_has_one_victim)
{
    db_value one = db_int(1), two = db_int(2);
    pthread_t thread;
    void *joined;
    db_answer answer;
    db *victim;
    uint64_t before = db_count(connection)->deadlocks + db_count(other)->deadlocks;

    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_DONE);
    assert_int_equal(pthread_create(&thread, NULL, raise_two_then_one, NULL), 0);
    wait_until_waiting();
    answer = db_run(connection, &add_one, &two, 1, NULL);
    if (answer == DB_DONE)
        EXPECT(connection, db_rollback(connection), DB_DONE);
    pthread_join(thread, &joined);
    assert_ptr_equal(joined, other);
    victim = answer == DB_DONE ? other : connection;
    assert_int_equal(db_errno(victim), 1213);
    assert_int_equal(db_error_status(victim, DB_ERROR, "ending"), TL_TRY_AGAIN);
    EXPECT(other, db_rollback(other), DB_DONE);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    assert_int_equal(db_count(connection)->deadlocks + db_count(other)->deadlocks, before + 1);
}

TEST(a_changed_snapshot_is_repeatable_work)
{
    db_value one = db_int(1);

    EXPECT(connection,
           run_sql(connection,
                   "SET innodb_snapshot_isolation=ON, "
                   "tx_isolation='REPEATABLE-READ'",
                   NULL),
           DB_DONE);
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, run_sql(connection, "SELECT * FROM t", NULL), DB_DONE);
    EXPECT(other, db_run(other, &add_one, &one, 1, NULL), DB_DONE);
    EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_ERROR);
    assert_int_equal(db_errno(connection), 1020);
    assert_int_equal(db_error_kind_of(1020), DB_KIND_REPEAT);
    assert_int_equal(db_error_status(connection, DB_ERROR, "ending"), TL_TRY_AGAIN);
    assert_int_equal(db_count(connection)->snapshot_conflicts, 1);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    EXPECT(connection,
           run_sql(connection,
                   "SET innodb_snapshot_isolation=OFF, "
                   "tx_isolation='READ-COMMITTED'",
                   NULL),
           DB_DONE);
}

TEST(mistakes_become_sentences)
{
    db_value one = db_int(1);
    db_value values[] = {db_int(77), db_int(77)};
    int pass;

    for (pass = 0; pass < 2; pass++) {
        EXPECT(connection, db_run(connection, &no_table, &one, 1, NULL), DB_ERROR);
        assert_int_equal(db_errno(connection), 1146);
        assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_NO_SCHEMA);
        expect_message("asking: the schema is missing: ");
        expect_message("missing' doesn't exist; run `tradelock migrate`");
        EXPECT(connection, db_run(connection, &no_column, NULL, 0, NULL), DB_ERROR);
        assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_NO_SCHEMA);
        EXPECT(connection, db_run(connection, &no_sense, NULL, 0, NULL), DB_ERROR);
        assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_SERVER_ERROR);
        expect_message("(error 1064)");
    }
    EXPECT(connection, run_sql(connection, "START TRANSACTION READ ONLY", NULL), DB_DONE);
    EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_ERROR);
    assert_int_equal(db_error_kind_of(db_errno(connection)), DB_KIND_READ_ONLY);
    assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_READ_ONLY);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    /* still good for work */
    EXPECT(connection, db_run(connection, &insert_row, values, 2, NULL), DB_DONE);
}

/* Prepare and execute leave together: when the first is refused, the second must not find the
 * statement that was prepared before. */
TEST(a_refused_prepare_runs_nothing)
{
    db *fresh = open_at(database_option_file(base));
    db_value two = db_int(2);
    db_result result = DB_RESULT_INIT;
    int64_t before;

    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, NULL), DB_DONE);
    EXPECT(fresh, run_sql(fresh, "SELECT n FROM t WHERE id = 2", &result), DB_DONE);
    before = db_get_int(&result, 0, 0);
    EXPECT(fresh, db_run(fresh, &no_table, &two, 1, NULL), DB_ERROR);
    assert_int_equal(db_errno(fresh), 1146);
    EXPECT(fresh, run_sql(fresh, "SELECT n FROM t WHERE id = 2", &result), DB_DONE);
    assert_int_equal(db_get_int(&result, 0, 0), before);
    /* nor was it closed with the one that failed */
    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    db_close(fresh);
    db_result_free(&result);
}

static int64_t count_of(db *session, const char *name)
{
    db_result result = DB_RESULT_INIT;
    char sql[96];
    int64_t count;

    snprintf(sql, sizeof(sql), "SHOW SESSION STATUS LIKE '%s'", name);
    EXPECT(session, run_sql(session, sql, &result), DB_DONE);
    count = db_get_int(&result, 0, 1);
    db_result_free(&result);
    return count;
}

TEST(a_statement_the_server_forgot)
{
    db *fresh = open_at(database_option_file(base));
    db_value two = db_int(2);
    db_result result = DB_RESULT_INIT;
    MYSQL_STMT *closer = mysql_stmt_init(db_raw(fresh));
    int64_t prepared, closed;

    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, NULL), DB_DONE);
    /* The server numbers statements one after the other, but from any number on: it uses the
     * threads of ended connections again. */
    assert_int_equal(mysql_stmt_prepare(closer, "DO 1", 4), 0);
    /* The table changes: the server prepares anew by itself. */
    EXPECT(fresh, run_sql(fresh, "ALTER TABLE t ADD COLUMN more INT", NULL), DB_DONE);
    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    prepared = count_of(fresh, "Com_stmt_prepare");
    closed = count_of(fresh, "Com_stmt_close");
    /* It is closed from aside, by its number. */
    closer->stmt_id--;
    mysql_stmt_close(closer);
    assert_int_equal(count_of(fresh, "Com_stmt_close"), closed + 1);
    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    assert_int_equal(count_of(fresh, "Com_stmt_prepare"), prepared + 1);
    /* A session that was reset is none of ours any more. */
    assert_int_equal(mysql_reset_connection(db_raw(fresh)), 0);
    EXPECT(fresh, db_run(fresh, &add_one, &two, 1, &result), DB_NOT_SENT);
    assert_false(db_usable(fresh));
    db_close(fresh);
    db_result_free(&result);
}

/* The server does not find the tables of a trigger that came later for statements that were
 * prepared before. */
TEST(a_trigger_that_came_later)
{
    STATEMENT(plain, "INSERT INTO heard VALUES (?)");
    db *fresh = open_at(database_option_file(base));
    db_value one = db_int(1);

    EXPECT(fresh, run_sql(fresh, "CREATE TABLE heard (n INT)", NULL), DB_DONE);
    EXPECT(fresh, run_sql(fresh, "CREATE TABLE told (n INT)", NULL), DB_DONE);
    EXPECT(fresh,
           run_sql(fresh,
                   "CREATE TRIGGER tell AFTER INSERT ON heard FOR EACH ROW "
                   "INSERT INTO told VALUES (NEW.n)",
                   NULL),
           DB_DONE);
    EXPECT(fresh, db_run(fresh, &plain, &one, 1, NULL), DB_DONE);
    EXPECT(fresh, db_callback_tx_begin(fresh, &plain, &one, 1, 1, NULL), DB_DONE);
    EXPECT(fresh, db_rollback(fresh), DB_DONE);
    EXPECT(fresh, run_sql(fresh, "CREATE TABLE told_too (n INT)", NULL), DB_DONE);
    EXPECT(fresh,
           run_sql(fresh,
                   "CREATE TRIGGER tell_too AFTER INSERT ON heard FOR EACH ROW "
                   "INSERT INTO told_too VALUES (NEW.n)",
                   NULL),
           DB_DONE);
    /* At most once each. */
    (void)db_run(fresh, &plain, &one, 1, NULL);
    EXPECT(fresh, db_run(fresh, &plain, &one, 1, NULL), DB_DONE);
    if (db_callback_tx_begin(fresh, &plain, &one, 1, 1, NULL) == DB_DONE) {
        EXPECT(fresh, db_rollback(fresh), DB_DONE);
    } else { /* which might be the session's fault */
        assert_false(db_usable(fresh));
        db_close(fresh);
        fresh = open_at(database_option_file(base));
    }
    EXPECT(fresh, db_callback_tx_begin(fresh, &plain, &one, 1, 1, NULL), DB_DONE);
    EXPECT(fresh, db_rollback(fresh), DB_DONE);
    assert_true(db_usable(fresh));
    db_close(fresh);
}

TEST(the_table_of_errors)
{
    assert_int_equal(db_error_kind_of(1213), DB_KIND_REPEAT);
    assert_int_equal(db_error_kind_of(1047), DB_KIND_READ_ONLY);
    assert_int_equal(db_error_kind_of(1290), DB_KIND_READ_ONLY);
    assert_int_equal(db_error_kind_of(1836), DB_KIND_READ_ONLY);
    assert_int_equal(db_error_kind_of(1040), DB_KIND_OVERLOADED);
    assert_int_equal(db_error_kind_of(1203), DB_KIND_OVERLOADED);
    assert_int_equal(db_error_kind_of(1226), DB_KIND_OVERLOADED);
    assert_int_equal(db_error_kind_of(1142), DB_KIND_ACCESS);
    assert_int_equal(db_error_kind_of(1370), DB_KIND_ACCESS);
    assert_int_equal(db_error_kind_of(1305), DB_KIND_SCHEMA);
    assert_int_equal(db_error_kind_of(1053), DB_KIND_GONE);
    assert_int_equal(db_error_kind_of(1927), DB_KIND_GONE);
    assert_int_equal(db_error_kind_of(2013), DB_KIND_GONE);
    assert_int_equal(db_error_kind_of(1064), DB_KIND_OTHER);
}

TESTS_OF(answers, set_up, tear_down)
