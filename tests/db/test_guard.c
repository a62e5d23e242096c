/* What is prepared on a connection, and the transaction that lets somebody else's statements in.
 * The server is this test's own, since it is told to prepare nothing more. */
#include "common.h"

static server *own;
static database *base;
static db *connection;
static MYSQL *admin;

STATEMENT(add_one, "UPDATE t SET n = n + 1 WHERE id = ?");
STATEMENT(add_ten, "UPDATE t SET n = n + 10 WHERE id = 1");

static int set_up(void **state)
{
    (void)state;
    own = server_start(NULL);
    base = database_new_empty(own, NULL);
    admin = database_connect(base);
    database_run(admin, "CREATE TABLE t (id INT PRIMARY KEY, n INT);"
                        "INSERT INTO t VALUES (1, 0)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mysql_close(admin);
    database_free(base);
    server_free(own);
    return 0;
}

static int open_one(void **state)
{
    (void)state;
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = DEFAULT;"
                        "UPDATE t SET n = 0");
    connection = open_at(database_option_file(base));
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    db_close(connection);
    return 0;
}

static long long number(void)
{
    return database_number(admin, "SELECT n FROM t WHERE id = 1");
}

/* Asked to prepare and to execute at once, the server would execute what it prepared last. */
static void what_cannot_be_prepared_runs_nothing_else(void **state)
{
    db_value one = db_int(1);

    (void)state;
    EXPECT(connection, db_run(connection, &add_ten, NULL, 0, NULL), DB_DONE);
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = 0");
    EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_ERROR);
    assert_int_equal(db_errno(connection), 1461);
    assert_int_equal(number(), 10);
    EXPECT(connection, db_run(connection, &add_ten, NULL, 0, NULL), DB_DONE);
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = DEFAULT");
    EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_DONE);
    assert_int_equal(number(), 21);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_one, close_one)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_prepared_runs_nothing_else),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
