/* What a new connection is, and what is refused. */
#include "common.h"
#include "support/theme.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static database *base;
static MYSQL *plain;

FIXTURE(set_up)
{
    base = database_new_empty(server_shared(), NULL);
    plain = database_connect(base);
    database_run(plain, "CREATE TABLE t (id INT PRIMARY KEY, c CHAR(2))");
}

FIXTURE(tear_down)
{
    mysql_close(plain);
    database_free(base);
}

/* An option file of the test's own: the right one's lines, and these in its section. */
static void write_options(char *path, size_t space, const char *lines)
{
    FILE *file;
    int fd;

    snprintf(path, space, "/tmp/tradelock.options.XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    file = fdopen(fd, "w");
    assert_non_null(file);
    fprintf(file, "[tradelock-client]\n%s\n", lines);
    assert_int_equal(fclose(file), 0);
}

static tl_status try_options(const char *lines)
{
    char path[64];
    db_options options;
    db *connection = NULL;
    tl_status status;

    write_options(path, sizeof(path), lines);
    options = options_at(path);
    options.connect_timeout_s = 60;
    status = db_open(&connection, &options);
    unlink(path);
    if (status == TL_OK)
        assert_true(db_usable(connection));
    else
        assert_null(connection);
    db_close(connection);
    return status;
}

static void expect_setting(db *connection, const char *name, const char *value)
{
    char sql[96];
    db_result result = DB_RESULT_INIT;

    snprintf(sql, sizeof(sql), "SELECT @@SESSION.%s", name);
    EXPECT(connection, run_sql(connection, sql, &result), DB_DONE);
    assert_string_equal(db_get_text(&result, 0, 0), value);
    db_result_free(&result);
}

TEST(the_session_is_fixed)
{
    db_options options = options_at(database_option_file(base));
    db *connection;

    options.lock_wait_s = 0;
    options.idle_transaction_s = 17;
    connection = open_with(&options);
    expect_setting(connection, "tx_isolation", "READ-COMMITTED");
    expect_setting(connection, "autocommit", "1");
    expect_setting(connection, "time_zone", "+00:00");
    expect_setting(connection, "innodb_lock_wait_timeout", "0");
    expect_setting(connection, "idle_transaction_timeout", "17");
    expect_setting(connection, "character_set_client", "utf8mb4");
    expect_setting(connection, "character_set_results", "utf8mb4");
    expect_setting(connection, "collation_connection", "utf8mb4_nopad_bin");
    expect_setting(connection, "sql_mode",
                   "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
                   "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION");
    EXPECT(connection, run_sql(connection, "INSERT INTO t VALUES (1, 'abc')", NULL), DB_ERROR);
    assert_int_equal(db_errno(connection), 1406);
    /* one statement a call */
    EXPECT(connection, run_sql(connection, "DO 1; DO 2", NULL), DB_ERROR);
    assert_int_equal(db_errno(connection), 1064);
    db_close(connection);
}

TEST(the_name_leads_to_the_connection)
{
    db *connection = open_at(database_option_file(base));
    db *second = open_at(database_option_file(base));
    unsigned long long id = (unsigned long long)db_thread_id(connection);
    char name[64];

    assert_int_equal(strlen(db_name(connection)), 36);
    assert_string_not_equal(db_name(connection), db_name(second));
    snprintf(name, sizeof(name), "tl:%s", db_name(connection));
    assert_int_equal(database_number(plain, "SELECT IS_USED_LOCK('%s')", name), id);
    assert_int_equal(database_number(plain,
                                     "SELECT COUNT(*) FROM "
                                     "information_schema.PROCESSLIST WHERE ID = %llu",
                                     id),
                     1);
    db_close(connection);
    for (int i = 0;
         i < PATIENCE_MS / 10 && database_number(plain, "SELECT IS_USED_LOCK('%s')", name); i++)
        usleep(10000);
    assert_int_equal(database_number(plain, "SELECT IS_USED_LOCK('%s') IS NULL", name), 1);
    db_close(second);
}

TEST(the_file_cannot_weaken_it)
{
    char path[64], lines[512];
    db *connection;
    db_result result = DB_RESULT_INIT;
    my_bool reconnect = 1;

    snprintf(lines, sizeof(lines),
             "socket=%s\nuser=%s\ndatabase=%s\nreconnect=1\nfound-rows=1\n"
             "multi-statements=1\nlocal-infile=1\ndefault-character-set=latin1\n"
             "init-command=SET autocommit=0",
             server_socket(server_shared()), server_user(server_shared()), database_name(base));
    write_options(path, sizeof(path), lines);
    connection = open_at(path);
    unlink(path);
    mysql_get_option(db_raw(connection), MYSQL_OPT_RECONNECT, &reconnect);
    assert_false(reconnect);
    expect_setting(connection, "autocommit", "1");
    expect_setting(connection, "character_set_client", "utf8mb4");
    assert_string_equal(mysql_character_set_name(db_raw(connection)), "utf8mb4");
    database_run(plain, "INSERT INTO t VALUES (2, 'x')");
    EXPECT(connection, run_sql(connection, "UPDATE t SET c = 'x' WHERE id = 2", &result), DB_DONE);
    assert_int_equal(result.affected, 0);
    EXPECT(connection, run_sql(connection, "DO 1; DO 2", NULL), DB_ERROR);
    db_close(connection);
    db_result_free(&result);
}

TEST(a_started_program_does_not_keep_it)
{
    db *connection = open_at(database_option_file(base));
    int fd = (int)mysql_get_socket(db_raw(connection));

    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    db_close(connection);
}

TEST(refusals_are_sentences)
{
    char lines[512];
    const char *socket = server_socket(server_shared());
    const char *user = server_user(server_shared());
    db_options options = options_at("/tmp/tradelock-there-is-no-such-file");
    db *connection = NULL;

    assert_int_equal(db_open(&connection, &options), TL_BAD_CONFIG);
    expect_message("the settings file /tmp/tradelock-there-is-no-such-file cannot be read");

    /* Not even asked of a server. */
    assert_int_equal(try_options("socket=/tmp/tradelock-no-such-socket"), TL_BAD_CONFIG);
    expect_message("/tmp/tradelock.options.");
    expect_message(": no database is named; [tradelock-client] needs a line database=NAME");
    assert_int_equal(try_options("socket=/tmp/tradelock-no-such-socket\ndatabase="), TL_BAD_CONFIG);

    assert_int_equal(try_options("socket=/tmp/tradelock-no-such-socket\ndatabase=d"),
                     TL_UNREACHABLE);
    expect_message("the server cannot be reached: ");
    expect_message("/tmp/tradelock-no-such-socket");

    database_run(plain, "CREATE OR REPLACE USER somebody@localhost IDENTIFIED BY 'right'");
    snprintf(lines, sizeof(lines), "socket=%s\nuser=somebody\npassword=wrong-word\ndatabase=%s",
             socket, database_name(base));
    assert_int_equal(try_options(lines), TL_ACCESS_DENIED);
    expect_message("'somebody'@'localhost'");
    assert_null(strstr(tl_error_message(), "wrong-word"));

    snprintf(lines, sizeof(lines), "socket=%s\nuser=somebody\npassword=right\ndatabase=%s", socket,
             database_name(base));
    assert_int_equal(try_options(lines), TL_ACCESS_DENIED);
    database_run(plain, "DROP USER somebody@localhost");

    snprintf(lines, sizeof(lines), "socket=%s\nuser=%s\ndatabase=tl_no_such_database", socket,
             user);
    assert_int_equal(try_options(lines), TL_NO_SCHEMA);
    expect_message("there is no such database: Unknown database 'tl_no_such_database'; "
                   "create it, then run `tradelock migrate`");
}

/* The environment counts above the file, below a shard's section, and is enough without a file. */
TEST(the_environment_names_a_server)
{
    static const char password[] = "it's \"a\" \\n; # word\\";
    char path[64], password_file[] = "/tmp/tradelock.password.XXXXXX", quoted[96];
    db_options options = options_at(NULL);
    db *connection = NULL;
    const int fd = mkstemp(password_file);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, password, strlen(password)), strlen(password));
    close(fd);
    mysql_real_escape_string(plain, quoted, password, strlen(password));
    database_run(plain,
                 "CREATE OR REPLACE USER somebody@localhost IDENTIFIED BY '%s';"
                 "GRANT SELECT ON %s.* TO somebody@localhost",
                 quoted, database_name(base));
    setenv("TRADELOCK_HOST", server_socket(server_shared()), 1);
    setenv("TRADELOCK_USER", "somebody", 1);
    setenv("TRADELOCK_DATABASE", database_name(base), 1);
    setenv("TRADELOCK_PASSWORD_FILE", password_file, 1);
    db_hosts hosts;
    assert_int_equal(db_hosts_read(&hosts, &options), TL_OK);
    assert_int_equal(hosts.count, 1);
    options.host = &hosts.host[0];
    connection = open_with(&options);
    assert_true(db_usable(connection));
    db_close(connection);

    write_options(path, sizeof path, "user=nobody\n[tradelock-client-a]\nuser=another");
    options.option_file = path;
    connection = open_with(&options);
    db_close(connection);
    options.over_group = "tradelock-client-a";
    connection = NULL;
    assert_int_equal(db_open(&connection, &options), TL_ACCESS_DENIED);
    expect_message("'another'@'localhost'");
    unlink(path);

    options = options_at(NULL);
    options.host = &hosts.host[0];
    assert_int_equal(chmod(password_file, 0644), 0);
    assert_int_equal(db_open(&connection, &options), TL_BAD_CONFIG);
    expect_message("others than its owner can read or write it (mode 0644)");
    unlink(password_file);
    unsetenv("TRADELOCK_HOST");
    unsetenv("TRADELOCK_USER");
    unsetenv("TRADELOCK_DATABASE");
    unsetenv("TRADELOCK_PASSWORD_FILE");
    database_run(plain, "DROP USER somebody@localhost");
}

TEST(tables_without_rights)
{
    char path[64], lines[512];
    db *connection;

    database_run(plain,
                 "CREATE OR REPLACE USER looker@localhost IDENTIFIED BY 'right';"
                 "GRANT SELECT ON %s.t TO looker@localhost",
                 database_name(base));
    snprintf(lines, sizeof(lines), "socket=%s\nuser=looker\npassword=right\ndatabase=%s",
             server_socket(server_shared()), database_name(base));
    write_options(path, sizeof(path), lines);
    connection = open_at(path);
    unlink(path);
    EXPECT(connection, run_sql(connection, "DELETE FROM t", NULL), DB_ERROR);
    assert_int_equal(db_error_kind_of(db_errno(connection)), DB_KIND_ACCESS);
    assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_ACCESS_DENIED);
    expect_message("asking: the account lacks a right: DELETE command denied to user "
                   "'looker'@'localhost'");
    EXPECT(connection, run_sql(connection, "SET GLOBAL read_only = 1", NULL), DB_ERROR);
    assert_int_equal(db_error_status(connection, DB_ERROR, "asking"), TL_ACCESS_DENIED);
    db_close(connection);
    database_run(plain, "DROP USER looker@localhost");
}

/* In the child nothing is said on the parent's socket, whatever is freed there. */
TEST(a_child_leaves_the_parent_alone)
{
    db *connection = open_at(database_option_file(base));
    db_result result = DB_RESULT_INIT;
    int child_status = -1;
    pid_t child;

    EXPECT(connection, run_sql(connection, "SELECT 1", &result), DB_DONE);
    EXPECT(connection, db_begin(connection), DB_DONE);
    EXPECT(connection, run_sql(connection, "INSERT INTO t VALUES (60, 'x')", NULL), DB_DONE);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int good = run_sql(connection, "SELECT 2", NULL) == DB_NOT_SENT &&
                   db_error_status(connection, DB_NOT_SENT, "x") == TL_WRONG_PROCESS &&
                   !db_usable(connection) && !db_alive(connection);

        db_close(connection);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
    assert_true(db_alive(connection));
    EXPECT(connection, db_commit(connection), DB_DONE);
    EXPECT(connection, run_sql(connection, "SELECT 3", &result), DB_DONE);
    assert_int_equal(db_get_int(&result, 0, 0), 3);
    assert_int_equal(database_number(plain, "SELECT COUNT(*) FROM t WHERE id = 60"), 1);
    db_close(connection);
    db_result_free(&result);
}

TESTS_OF(session, set_up, tear_down)
