/* A connection of the caller's is used and otherwise left as it was. */
#include "common.h"
#include "support/theme.h"

static database *base;

FIXTURE(set_up)
{
    MYSQL *plain;

    base = database_new_empty(server_shared(), NULL);
    plain = database_connect(base);
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY, n INT, remark VARCHAR(50) "
                        "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin) ENGINE=InnoDB;"
                        "INSERT INTO t VALUES (1, 0, ''), (2, 0, ''), (3, 0, '')");
    mysql_close(plain);
}

FIXTURE(tear_down)
{
    database_free(base);
}

STATEMENT(add_one, "UPDATE t SET n = n + 1, remark = ? WHERE id = ?");
/* With autocommit off, the server begins one before (10.11) or after (11.8) it looks. */
STATEMENT(add_inside, "UPDATE t SET n = n + 1 WHERE id = ? AND (@@in_transaction = 1 OR "
                      "@@autocommit = 0)");
STATEMENT(select_row, "SELECT id, n, remark FROM t WHERE id = ?");

static db *borrow(MYSQL *caller)
{
    db *connection = NULL;

    assert_int_equal(db_borrow(&connection, caller), TL_OK);
    assert_ptr_equal(db_raw(connection), caller);
    return connection;
}

static long long number_of(MYSQL *caller, const char *what)
{
    return database_number(caller,
                           "SELECT CAST(VARIABLE_VALUE AS SIGNED) FROM "
                           "information_schema.SESSION_STATUS "
                           "WHERE VARIABLE_NAME = '%s'",
                           what);
}

TEST(it_is_left_as_it_was)
{
    static const char settings[] =
        "SELECT CONCAT_WS('|', @@sql_mode, @@time_zone, @@tx_isolation, @@autocommit, "
        "@@innodb_lock_wait_timeout, @@idle_transaction_timeout, @@character_set_client, "
        "@@collation_connection, @@in_transaction)";
    MYSQL *caller = database_connect(base);
    db_value values[] = {db_text("\xe2\x82\xac 5"), db_int(1)};
    db_result result = DB_RESULT_INIT;
    db *connection;
    char *before, *after;
    long long prepared, closed, commits;
    int i;

    assert_int_equal(mysql_set_character_set(caller, "latin1"), 0);
    database_run(caller, "SET time_zone = '+02:00', sql_mode = ''; START TRANSACTION");
    before = database_text(caller, "%s", settings);
    connection = borrow(caller);
    assert_true(db_in_transaction(connection));
    commits = number_of(caller, "Com_commit");
    prepared = number_of(caller, "Com_stmt_prepare");
    closed = number_of(caller, "Com_stmt_close");
    for (i = 0; i < 3; i++) {
        EXPECT(connection, db_run(connection, &add_one, values, 2, &result), DB_DONE);
        assert_int_equal(result.affected, 1);
    }
    EXPECT(connection, db_run(connection, &select_row, &values[1], 1, &result), DB_DONE);
    assert_int_equal(db_get_int(&result, 0, 1), 3);
    assert_true(db_in_transaction(connection));
    db_close(connection);
    /* nothing is left prepared */
    assert_int_equal(number_of(caller, "Com_stmt_prepare") - prepared, 4);
    assert_int_equal(number_of(caller, "Com_stmt_close") - closed, 4);
    assert_int_equal(number_of(caller, "Com_commit"), commits);
    after = database_text(caller, "%s", settings);
    assert_string_equal(before, after);
    free(before);
    free(after);
    /* the text arrived as UTF-8 although the connection speaks latin1 */
    assert_int_equal(database_number(caller, "SELECT remark = _utf8mb4 x'E282AC2035' FROM t "
                                             "WHERE id = 1"),
                     1);
    database_run(caller, "ROLLBACK");
    assert_int_equal(database_number(caller, "SELECT n FROM t WHERE id = 1"), 0);
    mysql_close(caller);
    db_result_free(&result);
}

TEST(unread_results_are_not_touched)
{
    MYSQL *caller = database_connect(base);
    db *connection = borrow(caller);
    db_value values[] = {db_text("x"), db_int(1)};
    MYSQL_RES *rows;
    int count = 0;

    assert_int_equal(mysql_query(caller, "SELECT id FROM t"), 0);
    rows = mysql_use_result(caller);
    assert_non_null(rows);
    assert_non_null(mysql_fetch_row(rows));
    EXPECT(connection, db_run(connection, &add_one, values, 2, NULL), DB_NOT_SENT);
    assert_int_equal(db_error_status(connection, DB_NOT_SENT, "ending"), TL_WRONG_STATE);
    expect_message("ending: the connection has results that were not read");
    while (mysql_fetch_row(rows))
        count++;
    assert_int_equal(count, 2);
    mysql_free_result(rows);
    EXPECT(connection, db_run(connection, &add_one, values, 2, NULL), DB_DONE);
    db_close(connection);
    mysql_close(caller);
}

TEST(whether_it_is_in_a_transaction)
{
    MYSQL *caller = database_connect(base);
    db *connection = borrow(caller);
    db_value row = db_int(2);
    db_result result = DB_RESULT_INIT;

    assert_false(db_in_transaction(connection));
    EXPECT(connection, db_run(connection, &add_inside, &row, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 0);
    database_run(caller, "BEGIN");
    assert_true(db_in_transaction(connection));
    EXPECT(connection, db_run(connection, &add_inside, &row, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    database_run(caller, "COMMIT");
    assert_false(db_in_transaction(connection));
    database_run(caller, "SET autocommit = 0");
    assert_true(db_in_transaction(connection));
    EXPECT(connection, db_run(connection, &add_inside, &row, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 1);
    database_run(caller, "ROLLBACK");
    assert_int_equal(database_number(caller, "SELECT n FROM t WHERE id = 2"), 1);
    db_close(connection);
    mysql_close(caller);
    db_result_free(&result);
}

/* An error carries no status: after a conflict that rolled the caller's transaction back,
 * libmariadb still believes in it.  Only the server can say. */
TEST(a_transaction_that_was_rolled_back)
{
    MYSQL *caller = database_connect(base), *rival = database_connect(base);
    db *connection = borrow(caller);
    db_value row = db_int(3);
    db_result result = DB_RESULT_INIT;

    database_run(caller, "SET innodb_snapshot_isolation = ON, tx_isolation = "
                         "'REPEATABLE-READ'; START TRANSACTION WITH CONSISTENT SNAPSHOT");
    database_run(rival, "UPDATE t SET n = 100 WHERE id = 3");
    assert_int_not_equal(mysql_query(caller, "UPDATE t SET n = n + 1 WHERE id = 3"), 0);
    assert_int_equal(mysql_errno(caller), 1020);
    assert_true(db_in_transaction(connection));
    EXPECT(connection, db_run(connection, &add_inside, &row, 1, &result), DB_DONE);
    assert_int_equal(result.affected, 0);
    assert_int_equal(database_number(rival, "SELECT n FROM t WHERE id = 3"), 100);
    db_close(connection);
    mysql_close(caller);
    mysql_close(rival);
    db_result_free(&result);
}

TEST(what_cannot_be_borrowed)
{
    MYSQL *caller = database_connect(base);
    my_bool on = 1;
    db *connection = NULL;

    mysql_options(caller, MYSQL_OPT_RECONNECT, &on);
    assert_int_equal(db_borrow(&connection, caller), TL_INVALID);
    expect_message("reconnects by itself");
    mysql_close(caller);
    assert_int_equal(db_borrow(&connection, NULL), TL_INVALID);
    caller = mysql_init(NULL);
    assert_int_equal(db_borrow(&connection, caller), TL_INVALID);
    mysql_close(caller);
    assert_null(connection);
}

TESTS_OF(borrow, set_up, tear_down)
