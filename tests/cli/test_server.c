/*
 * A server that may not be trusted with money: too old, something else than MariaDB, or set so that
 * a crash forgets what was answered.  Library and command refuse it in one sentence, and nothing is
 * made on it.  The server is a real one, started so; what it says of its version is a start option
 * like any other.
 */
#include "command.h"

#include "support/database.h"
#include "support/theme.h"

#include <tradelock/tradelock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static server *own;
static database *where, *empty;

static int set_up(void **state)
{
    (void)state;
    own = server_start(NULL);
    where = database_new(own, NULL);
    empty = database_new_empty(own, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    database_free(where);
    database_free(empty);
    server_free(own);
    return 0;
}

static tl_status open_client(unsigned flags)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_status status;

    options.config_file = database_option_file(where);
    options.flags = flags;
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        tl_client_close(client);
    else
        assert_null(client);
    return status;
}

static void expect_opening(unsigned flags, tl_status expected, const char *words)
{
    const tl_status status = open_client(flags);

    assert_string_equal(tl_status_name(status), tl_status_name(expected));
    if (expected != TL_OK && strstr(tl_error_message(), words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", tl_error_message(), words);
}

/* The rows and tables that there are, to be compared with those of later. */
static char *all_there_is(void)
{
    MYSQL *connection = database_connect(where);
    char *all = database_text(
        connection,
        "SELECT CONCAT((SELECT COUNT(*) FROM tl_session), ' ', (SELECT COUNT(*) FROM "
        "trade_lock), ' ', (SELECT version FROM tl_schema), ' ', (SELECT COUNT(*) FROM "
        "information_schema.tables WHERE table_schema = '%s'))",
        database_name(empty));

    mysql_close(connection);
    return all;
}

static void expect_refused(const char *const options[], tl_status status, const char *words,
                           const char *of_doctor)
{
    char *before, *after;
    output *o;

    server_restart_with(own, options);
    before = all_there_is();
    expect_opening(0, status, words);
    expect_opening(TL_CLIENT_NO_SESSION, status, words);
    o = RUN("ls", "--config", database_option_file(where));
    EXPECT_SENTENCE(o, 5, words);
    output_free(o);
    o = RUN("migrate", "--config", database_option_file(empty));
    EXPECT_SENTENCE(o, 5, words);
    output_free(o);
    /* Nor are the parts mended, or the roles given. */
    o = RUN("migrate", "--grants", "--config", database_option_file(where));
    EXPECT_SENTENCE(o, 5, words);
    output_free(o);
    o = RUN("doctor", "--config", database_option_file(where));
    EXPECT_CODE(o, 5);
    EXPECT_WORDS(o, of_doctor);
    output_free(o);
    after = all_there_is();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

/* The last version before the oldest that serves, an older one, and another product. */
static void test_version(void **state)
{
    static const struct {
        const char *option, *words;
    } versions[] = {
        {"--version=10.10.9-MariaDB", "the server is version 10.10.9-MariaDB; tradelock "
                                      "needs MariaDB 10.11 or newer"},
        {"--version=10.6.1-MariaDB", "the server is version 10.6.1-MariaDB; tradelock "
                                     "needs MariaDB 10.11 or newer"},
        {"--version=12.4.0", "the server is version 12.4.0; tradelock needs MariaDB "
                             "10.11 or newer"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        expect_refused((const char *const[]){versions[i].option, NULL}, TL_SERVER_UNSAFE,
                       versions[i].words,
                       "unsafe, version: tradelock needs MariaDB 10.11 or newer.");
}

static void test_settings(void **state)
{
    (void)state;
    expect_refused((const char *const[]){"--innodb-flush-log-at-trx-commit=2", NULL},
                   TL_SERVER_UNSAFE,
                   "innodb_flush_log_at_trx_commit is 2: a crash of the server would "
                   "forget commits; set it to 1",
                   "unsafe, innodb_flush_log_at_trx_commit: a crash of the server would");
    expect_refused((const char *const[]){"--log-bin=binary", "--sync-binlog=0", NULL},
                   TL_SERVER_UNSAFE, "sync_binlog is 0 while the binary log is on",
                   "unsafe, sync_binlog: a crash could lose commits");
    expect_refused((const char *const[]){"--read-only=1", NULL}, TL_READ_ONLY,
                   "the server is read-only, perhaps a replica",
                   "unsafe, read_only: the server takes no writes");
}

/* The versions and settings beside those that are refused. */
static void test_safe(void **state)
{
    static const char *const versions[] = {
        "--version=10.11.1-MariaDB", "--version=11.0.2-MariaDB-log", "--version=12.4.0-MariaDB"};
    output *o;

    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        server_restart_with(
            own, (const char *const[]){versions[i], "--log-bin=binary", "--sync-binlog=1", NULL});
        expect_opening(0, TL_OK, "");
        o = RUN("ls", "--config", database_option_file(where));
        EXPECT_CODE(o, 0);
        output_free(o);
    }
    o = RUN("migrate", "--config", database_option_file(empty));
    EXPECT_CODE(o, 0);
    output_free(o);
}

TEST_MAIN(server)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_safe),
    };

    return server_run_tests(tests, set_up, tear_down);
}
