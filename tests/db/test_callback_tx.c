/* What is prepared on a connection, and the transaction that lets somebody else's statements in.
 * The server is this test's own, since it is told to prepare nothing more. */
#include "common.h"
#include "support/theme.h"

#include <pthread.h>

static server *own;
static database *base;
static db *connection;
static MYSQL *admin;

STATEMENT(add_one, "UPDATE t SET n = n + 1 WHERE id = ?");
STATEMENT(add_ten, "UPDATE t SET n = n + 10 WHERE id = 1");
STATEMENT(insert_row, "INSERT INTO t VALUES (?, 7) RETURNING id");
STATEMENT(divide, "UPDATE t SET n = 1 DIV 0 WHERE id = 1");

FIXTURE(set_up)
{
    own = server_start(NULL);
    base = database_new_empty(own, NULL);
    admin = database_connect(base);
    database_run(admin, "CREATE TABLE t (id INT PRIMARY KEY, n INT);"
                        "INSERT INTO t VALUES (1, 0)");
}

FIXTURE(tear_down)
{
    mysql_close(admin);
    database_free(base);
    server_free(own);
}

FIXTURE(open_one)
{
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = DEFAULT;"
                        "DELETE FROM t WHERE id > 1; UPDATE t SET n = 0");
    connection = open_at(database_option_file(base));
}

FIXTURE(close_one)
{
    db_close(connection);
}

static long long number(void)
{
    return database_number(admin, "SELECT n FROM t WHERE id = 1");
}

/* Asked to prepare and to execute at once, the server would execute what it prepared last. */
TEST_IN(what_cannot_be_prepared_runs_nothing_else, open_one, close_one)
{
    db_value one = db_int(1);

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

static int has_row(int id)
{
    return (int)database_number(admin, "SELECT COUNT(*) FROM t WHERE id = %d", id);
}

static db_answer begin_with(int id)
{
    db_value value = db_int(id);
    db_result result = DB_RESULT_INIT;
    db_answer answer = db_callback_tx_begin(connection, &insert_row, &value, 1, 1, &result);

    assert_int_equal(result.rows, answer == DB_DONE);
    db_result_free(&result);
    return answer;
}

static long long variable(const char *name)
{
    char sql[64];
    db_result result = DB_RESULT_INIT;
    long long value;

    snprintf(sql, sizeof sql, "SELECT @@%s", name);
    EXPECT(connection, run_sql(connection, sql, &result), DB_DONE);
    value = db_get_int(&result, 0, 0);
    db_result_free(&result);
    return value;
}

TEST_IN(a_callback_transaction, open_one, close_one)
{
    for (int id = 10; id < 13; id++) {
        EXPECT(connection, begin_with(id), DB_DONE);
        assert_true(db_in_transaction(connection));
        assert_int_equal(has_row(id), 0);
        /* It would commit what is open. */
        EXPECT(connection, begin_with(20), DB_ERROR);
        assert_int_equal(db_errno(connection), 1568);
        assert_true(db_in_transaction(connection));
        EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
        assert_false(db_in_transaction(connection));
        assert_true(db_usable(connection));
        assert_int_equal(has_row(id), 1);
    }
    EXPECT(connection, begin_with(13), DB_DONE);
    EXPECT(connection, db_savepoint_release(connection), DB_DONE);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    assert_int_equal(has_row(13), 0);
    EXPECT(connection, begin_with(13), DB_DONE);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    assert_int_equal(has_row(13), 1);
    assert_int_equal(db_count(connection)->commits, 4);
    assert_int_equal(db_count(connection)->rollbacks, 1);
}

TEST_IN(an_error_leaves_nothing_open, open_one, close_one)
{
    EXPECT(connection, begin_with(1), DB_ERROR);
    assert_int_equal(db_errno(connection), 1062);
    assert_false(db_in_transaction(connection));
    assert_true(db_usable(connection));
    /* Nor the row locked. */
    database_run(admin, "SET innodb_lock_wait_timeout = 0;"
                        "UPDATE t SET n = 5 WHERE id = 1");
    EXPECT(connection, begin_with(14), DB_DONE);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    assert_int_equal(has_row(14), 1);
}

/* Whatever does not belong to such a transaction commits by itself, as ever. */
TEST_IN(what_comes_in_between, open_one, close_one)
{
    db_value one = db_int(1);

    for (int rolled_back = 0; rolled_back < 2; rolled_back++) {
        const long long before = number();

        EXPECT(connection, begin_with(15), DB_DONE);
        if (rolled_back)
            EXPECT(connection, db_rollback(connection), DB_DONE);
        else
            EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
        EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_DONE);
        assert_false(db_in_transaction(connection));
        assert_int_equal(number(), before + 1);
        assert_int_equal(variable("autocommit"), 1);
        EXPECT(connection, db_begin(connection), DB_DONE);
        EXPECT(connection, db_run(connection, &add_one, &one, 1, NULL), DB_DONE);
        assert_int_equal(number(), before + 1);
        EXPECT(connection, db_commit(connection), DB_DONE);
        assert_int_equal(number(), before + 2);
        EXPECT(connection, begin_with(16), DB_DONE);
        EXPECT(connection, db_rollback(connection), DB_DONE);
        assert_int_equal(db_ping(connection), 1);
        assert_int_equal(variable("autocommit"), 1);
        database_run(admin, "DELETE FROM t WHERE id > 1");
    }
}

static const char *const endings[] = {
    "COMMIT",
    "COMMIT AND CHAIN",
    "ROLLBACK",
    "ROLLBACK AND CHAIN",
    "START TRANSACTION",
    "SET autocommit=1",
    "SET autocommit=1;START TRANSACTION",
    "SET autocommit=1;SET autocommit=0;INSERT INTO t VALUES (90, 1)",
    "COMMIT;INSERT INTO t VALUES (91, 1)",
    "BEGIN NOT ATOMIC COMMIT WORK; END",
    "CREATE TABLE IF NOT EXISTS more (n INT)",
    "LOCK TABLES t WRITE;UNLOCK TABLES",
    "RELEASE SAVEPOINT tl_callback",
    "reset",
};

static void say(const char *words)
{
    char *rest = NULL, *all = strdup(words);

    if (strcmp(words, "reset") == 0)
        assert_int_equal(mysql_reset_connection(db_raw(connection)), 0);
    else if (strncmp(words, "BEGIN", 5) == 0)
        assert_int_equal(mysql_query(db_raw(connection), words), 0);
    else
        for (char *one = strtok_r(all, ";", &rest); one; one = strtok_r(NULL, ";", &rest))
            assert_int_equal(mysql_query(db_raw(connection), one), 0);
    free(all);
}

/* However the transaction was ended, it shows; nothing that came after it is committed, and the
 * connection is given up. */
TEST_IN(an_ending_is_seen, open_one, close_one)
{
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        for (int committing = 0; committing < 2; committing++) {
            db_answer answer;

            database_run(admin, "DELETE FROM t WHERE id > 1");
            EXPECT(connection, begin_with(17), DB_DONE);
            say(endings[i]);
            answer =
                committing ? db_callback_tx_commit(connection) : db_savepoint_release(connection);
            if (answer != DB_ERROR)
                fail_msg("%s: not seen", endings[i]);
            assert_int_equal(db_errno(connection), ERROR_NO_SAVEPOINT);
            assert_false(db_usable(connection));
            db_close(connection);
            connection = open_at(database_option_file(base));
            assert_int_equal(has_row(90) + has_row(91), 0);
        }
}

/* A rollback leaves autocommit off, whoever switched it on. */
TEST_IN(a_rollback_makes_ready_again, open_one, close_one)
{
    EXPECT(connection, begin_with(19), DB_DONE);
    say("SET autocommit=1");
    EXPECT(connection, db_rollback(connection), DB_DONE);
    EXPECT(connection, begin_with(20), DB_DONE);
    assert_int_equal(has_row(20), 0);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    assert_int_equal(has_row(20), 1);
    /* A session that was reset is none of ours any more. */
    EXPECT(connection, begin_with(21), DB_DONE);
    say("reset");
    (void)db_rollback(connection);
    assert_false(db_usable(connection));
}

/* Others could not find out any more whether its commit is still under way. */
TEST_IN(a_name_that_was_released, open_one, close_one)
{
    char sql[128];

    for (int all = 0; all < 2; all++)
        for (int committing = 0; committing < 2; committing++) {
            EXPECT(connection, begin_with(27), DB_DONE);
            snprintf(sql, sizeof sql, all ? "DO RELEASE_ALL_LOCKS()" : "DO RELEASE_LOCK('tl:%s')",
                     db_name(connection));
            say(sql);
            if (committing) {
                EXPECT(connection, db_callback_tx_commit(connection), DB_ERROR);
                assert_int_equal(db_errno(connection), ERROR_NO_SAVEPOINT);
            } else {
                EXPECT(connection, db_rollback(connection), DB_ERROR);
            }
            assert_false(db_usable(connection));
            db_close(connection);
            connection = open_at(database_option_file(base));
            assert_int_equal(has_row(27), 0);
        }
}

static const struct {
    const char *sql, *changed;
} changes[] = {
    {"SET time_zone='+01:00'", "time_zone"},
    {"SET innodb_lock_wait_timeout=77", "innodb_lock_wait_timeout"},
    {"SET @a=1", "what is no variable"},
    {"SET session_track_system_variables='',session_track_state_change=0", "what is no variable"},
    {"INSERT INTO t VALUES (60, 1)", ""},
};

/* Whoever changed the session is the last to have it. */
TEST_IN(a_session_that_was_changed, open_one, close_one)
{
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        for (int committing = 0; committing < 2; committing++) {
            int kept = changes[i].changed[0] == '\0';

            database_run(admin, "DELETE FROM t WHERE id > 1");
            EXPECT(connection, begin_with(28), DB_DONE);
            assert_int_equal(mysql_query(db_lend(connection), changes[i].sql), 0);
            db_take_back(connection);
            EXPECT(connection,
                   committing ? db_callback_tx_commit(connection) : db_rollback(connection),
                   DB_DONE);
            assert_string_equal(db_changed(connection), changes[i].changed);
            assert_int_equal(db_usable(connection), kept);
            assert_int_equal(has_row(28), committing);
            if (!kept) {
                db_close(connection);
                connection = open_at(database_option_file(base));
            }
        }
}

/* The server forgets one of the three: closed from aside, by its number. */
static void forget(MYSQL_STMT *closer, unsigned long before)
{
    closer->stmt_id -= before;
    mysql_stmt_close(closer);
}

static MYSQL_STMT *prepare_next(void)
{
    MYSQL_STMT *closer = mysql_stmt_init(db_raw(connection));

    assert_int_equal(mysql_stmt_prepare(closer, "DO 1", 4), 0);
    return closer;
}

TEST_IN(a_commit_that_the_server_forgot, open_one, close_one)
{
    MYSQL_STMT *first, *second;

    EXPECT(connection, begin_with(21), DB_DONE);
    first = prepare_next();
    /* Before it come what begins, and the commit. */
    forget(first, 2);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    assert_int_equal(has_row(21), 1);
    second = prepare_next();
    EXPECT(connection, begin_with(22), DB_DONE);
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = 0");
    forget(second, 1);
    EXPECT(connection, db_callback_tx_commit(connection), DB_ERROR);
    assert_int_equal(db_errno(connection), 1461);
    assert_true(db_in_transaction(connection));
    EXPECT(connection, db_rollback(connection), DB_DONE);
    assert_int_equal(has_row(22), 0);
    assert_true(db_usable(connection));
}

TEST_IN(no_room_for_the_commit, open_one, close_one)
{
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = 0");
    EXPECT(connection, begin_with(23), DB_ERROR);
    assert_int_equal(db_errno(connection), 1461);
    assert_false(db_usable(connection));
    assert_int_equal(has_row(23), 0);
}

/* It has the server execute what was prepared last. */
TEST_IN(a_callback_that_cannot_prepare, open_one, close_one)
{
    MYSQL_STMT *direct;

    EXPECT(connection, begin_with(24), DB_DONE);
    database_run(admin, "SET GLOBAL max_prepared_stmt_count = 0");
    direct = mysql_stmt_init(db_raw(connection));
    assert_int_not_equal(mariadb_stmt_execute_direct(direct, "DO 1", 4), 0);
    assert_int_equal(mysql_stmt_errno(direct), 1461);
    mysql_stmt_close(direct);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    assert_int_equal(has_row(24), 0);
}

/* The time that a transaction may stand idle is none of it. */
TEST_IN(the_next_begin_may_wait, open_one, close_one)
{
    db_options options = options_at(database_option_file(base));

    options.idle_transaction_s = 1;
    db_close(connection);
    connection = open_with(&options);
    EXPECT(connection, begin_with(25), DB_DONE);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    sleep(3);
    EXPECT(connection, begin_with(26), DB_DONE);
    EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
    assert_int_equal(has_row(26), 1);
}

static long long number_inside(void)
{
    db_result result = DB_RESULT_INIT;
    long long value;

    EXPECT(connection, run_sql(connection, "SELECT n FROM t WHERE id = 1", &result), DB_DONE);
    value = db_get_int(&result, 0, 0);
    db_result_free(&result);
    return value;
}

/* Of several statements in one round trip each is carried out, whatever became of those before it;
 * the first error counts.  What is not prepared yet is waited for, and stops at an error. */
TEST_IN(several_in_one_round_trip, open_one, close_one)
{
    db_value one = db_int(1), new = db_int(31);
    db_request right[] = {{&add_one, &one, 1, DB_WAIT_AS_SET, 0, NULL},
                          {&insert_row, &new, 1, DB_WAIT_AS_SET, 0, NULL},
                          {&add_ten, NULL, 0, DB_WAIT_AS_SET, 0, NULL}};
    db_request wrong[] = {{&add_one, &one, 1, DB_WAIT_AS_SET, 0, NULL},
                          {&insert_row, &one, 1, DB_WAIT_AS_SET, 0, NULL},
                          {&divide, NULL, 0, DB_WAIT_AS_SET, 0, NULL},
                          {&add_ten, NULL, 0, DB_WAIT_AS_SET, 0, NULL}};
    size_t done;

    EXPECT(connection, begin_with(30), DB_DONE);
    EXPECT(connection, db_run_ahead(connection, wrong, 4, &done), DB_ERROR);
    assert_int_equal(db_errno(connection), 1062);
    assert_int_equal(done, 1);
    assert_int_equal(number_inside(), 1);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    for (int round = 0; round < 2; round++) {
        new.int_value = 31 + round;
        EXPECT(connection, begin_with(40 + round), DB_DONE);
        EXPECT(connection, db_run_ahead(connection, right, 3, &done), DB_DONE);
        assert_int_equal(done, 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(right[i].affected, 1);
        EXPECT(connection, db_callback_tx_commit(connection), DB_DONE);
        assert_int_equal(number(), 11 * (round + 1));
        assert_int_equal(has_row(31 + round), 1);
    }
    EXPECT(connection, begin_with(50), DB_DONE);
    EXPECT(connection, db_run_ahead(connection, &wrong[2], 1, &done), DB_ERROR);
    assert_int_equal(db_errno(connection), 1365);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    /* All four are prepared now. */
    EXPECT(connection, begin_with(50), DB_DONE);
    EXPECT(connection, db_run_ahead(connection, wrong, 4, &done), DB_ERROR);
    assert_int_equal(db_errno(connection), 1062);
    assert_int_equal(done, 1);
    assert_int_equal(number_inside(), 22 + 1 + 10);
    EXPECT(connection, db_rollback(connection), DB_DONE);
    assert_int_equal(number(), 22);
    assert_true(db_usable(connection));
}

static db *open_for_books(void)
{
    db_options options = options_at(database_option_file(base));

    options.lock_wait_s = 0;
    options.is_for_books = 1;
    options.books_lock_wait_s = 5;
    return open_with(&options);
}

/* Lines are carried out behind a lock row that is refused, and nothing of them is left.  At first
 * the statements are not prepared, so they go one by one, and nothing follows the refused one. */
TEST_IN(lines_behind_a_lock_row, open_one, close_one)
{
    db_value one = db_int(1), id = db_int(1);
    db_result returned = DB_RESULT_INIT;
    db_request all[] = {{&insert_row, &id, 1, DB_WAIT_AS_SET, 0, &returned},
                        {&add_one, &one, 1, DB_WAIT_NEVER, 0, NULL},
                        {&add_ten, NULL, 0, DB_WAIT_NEVER, 0, NULL}};
    db *books = open_for_books();
    size_t done;

    for (int round = 0; round < 3; round++) {
        id.int_value = 1;
        EXPECT(books, db_books_tx_begin(books, all, 3, &done), DB_ERROR);
        assert_int_equal(db_errno(books), 1062);
        assert_int_equal(done, 0);
        EXPECT(books, db_rollback(books), DB_DONE);
        assert_int_equal(number(), 11 * round);

        id.int_value = 60 + round;
        EXPECT(books, db_books_tx_begin(books, all, 3, &done), DB_DONE);
        assert_int_equal(done, 3);
        assert_int_equal(returned.rows, 1);
        assert_int_equal(db_get_int(&returned, 0, 0), 60 + round);
        assert_int_equal(all[1].affected + all[2].affected, 2);
        assert_true(db_in_transaction(books));
        assert_int_equal(has_row(60 + round), 0);
        EXPECT(books, db_callback_tx_commit(books), DB_DONE);
        assert_int_equal(has_row(60 + round), 1);
        assert_int_equal(number(), 11 * (round + 1));
    }
    assert_true(db_usable(books));
    db_result_free(&returned);
    db_close(books);
}

static db_answer add_books(db *books, enum db_wait wait)
{
    db_value one = db_int(1);

    EXPECT(books, db_group_tx_begin(books), DB_DONE);
    return db_run_with_wait(books, wait, &add_one, &one, 1, NULL);
}

static void *end_backup(void *context)
{
    usleep(300000);
    database_run(context, "BACKUP STAGE END");
    return NULL;
}

/* On a connection for books a line waits for no table; the lock's rows do, and the commit waits for
 * a backup, whatever came before. */
TEST_IN(what_waits_on_a_connection_for_books, open_one, close_one)
{
    db *books = open_for_books();
    pthread_t thread;
    int committed;

    for (int round = 0; round < 2; round++) {
        database_run(admin, "LOCK TABLES t WRITE");
        EXPECT(books, add_books(books, DB_WAIT_NEVER), DB_ERROR);
        assert_int_equal(db_errno(books), 1205);
        assert_true(db_row_is_taken(books));
        EXPECT(books, db_rollback(books), DB_DONE);
        EXPECT(books, add_books(books, DB_WAIT_AS_SET), DB_ERROR);
        assert_int_equal(db_errno(books), 1205);
        assert_false(db_row_is_taken(books));
        EXPECT(books, db_rollback(books), DB_DONE);
        database_run(admin, "UNLOCK TABLES");

        EXPECT(books, add_books(books, DB_WAIT_NEVER), DB_DONE);
        database_run(admin, "BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT");
        assert_int_equal(pthread_create(&thread, NULL, end_backup, admin), 0);
        if (round == 0) {
            EXPECT(books, db_group_tx_commit(books, "", &committed), DB_DONE);
            assert_true(committed);
        } else {
            EXPECT(books, db_callback_tx_commit(books), DB_DONE);
        }
        pthread_join(thread, NULL);
        assert_int_equal(number(), round + 1);
    }
    db_close(books);
}

TESTS_OF(callback_tx, set_up, tear_down)
