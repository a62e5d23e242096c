/*
 * A server that may not be trusted with money: too old, something else than MariaDB, or set so that
 * a crash forgets what was answered.  Library and command refuse it in one sentence, and nothing is
 * made on it.  The server is a real one, started so; what it says of its version is a start option
 * like any other.
 */
#include "command.h"

#include "support/crew.h"
#include "support/database.h"
#include "support/theme.h"

#include <tradelock/callback.h>
#include <tradelock/tradelock.h>

static server *own;
static database *where, *empty;
static const char *config; /* of whoever pays and looks */

FIXTURE(set_up)
{
    own = server_start(NULL);
    where = database_new(own, NULL);
    empty = database_new_empty(own, NULL);
    config = database_option_file(where);
}

FIXTURE(tear_down)
{
    database_free(where);
    database_free(empty);
    server_free(own);
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

    server_restart_with(own, options);
    before = all_there_is();
    expect_opening(0, status, words);
    expect_opening(TL_CLIENT_NO_SESSION, status, words);
    EXPECT_REFUSED(RUN("ls", "--config", database_option_file(where)), 5, words);
    EXPECT_REFUSED(RUN("migrate", "--config", database_option_file(empty)), 5, words);
    /* Nor are the parts mended, or the roles given. */
    EXPECT_REFUSED(RUN("migrate", "--grants", "--config", database_option_file(where)), 5, words);
    ENDS(RUN("doctor", "--config", database_option_file(where)), 5, of_doctor);
    after = all_there_is();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

/* The last version before the oldest that serves, an older one, and another product. */
TEST(test_version)
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

    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++)
        expect_refused((const char *const[]){versions[i].option, NULL}, TL_SERVER_UNSAFE,
                       versions[i].words,
                       "unsafe, version: tradelock needs MariaDB 10.11 or newer.");
}

TEST(test_settings)
{
    expect_refused((const char *const[]){"--innodb-flush-log-at-trx-commit=2", NULL},
                   TL_SERVER_UNSAFE,
                   "innodb_flush_log_at_trx_commit is 2: a crash of the server would "
                   "forget commits; set it to 1",
                   "unsafe, innodb_flush_log_at_trx_commit: a crash of the server would");
    expect_refused((const char *const[]){"--log-bin=binary", "--sync-binlog=0", NULL},
                   TL_SERVER_UNSAFE, "sync_binlog is 0 while the binary log is on",
                   "unsafe, sync_binlog: a crash could lose commits");
    expect_refused((const char *const[]){"--log-bin=binary", "--sync-binlog=1",
                                         "--binlog-format=STATEMENT", NULL},
                   TL_SERVER_UNSAFE, "binlog_format is STATEMENT",
                   "unsafe, binlog_format: the server refuses the library's transactions");
    expect_refused((const char *const[]){"--innodb-rollback-on-timeout=1", NULL}, TL_SERVER_UNSAFE,
                   "innodb_rollback_on_timeout is ON: whoever meets a locked row would lose",
                   "unsafe, innodb_rollback_on_timeout: whoever meets a locked row would lose");
    expect_refused((const char *const[]){"--read-only=1", NULL}, TL_READ_ONLY,
                   "the server is read-only, perhaps a replica",
                   "unsafe, read_only: the server takes no writes");
}

/* Everything works there, and the doctor says why it may not. */
TEST(test_accounts_with_clocks_of_their_own)
{
    server_restart_with(own, (const char *const[]){"--secure-timestamp=NO", NULL});
    expect_opening(0, TL_OK, "");
    ENDS(RUN("doctor", "--config", database_option_file(where)), 5,
         "unsafe, secure_timestamp: an account may set a clock of its own (SET timestamp)");
    server_restart_with(own, (const char *const[]){"--secure-timestamp=SUPER", NULL});
    ENDS(RUN("doctor", "--config", database_option_file(where)), 0,
         "ok      secure_timestamp               SUPER");
}

/* ---------------------------------------------------------- settings of servers -- */

static void expect(tl_status status, tl_status expected)
{
    if (status != expected)
        fail_msg("%s: %s", tl_status_name(status), tl_error_message());
}

/* Longer than a server may allow for a connection, or a transaction, that is idle. */
static tl_status linger(void *context, struct st_mysql *connection)
{
    (void)connection;
    usleep(*(useconds_t *)context);
    return TL_OK;
}

static void pay(const char *serial, useconds_t linger_us)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_lock_options of = TL_LOCK_OPTIONS_INIT;
    const tl_key key = {.serial_no = serial, .cust_no = "C1", .op_code = "PAY"};
    tl_ending paid = TL_ENDING_INIT;
    tl_client *client = NULL;
    tl_lock *lock = NULL;

    options.config_file = config;
    of.max_hold_ms = 60000;
    paid.outcome = TL_OUTCOME_SUCCESS;
    expect(tl_client_open(&client, &options), TL_OK);
    expect(tl_lock_new(&lock, client, &key, &of), TL_OK);
    expect(tl_lock_ask(lock, 0), TL_GRANTED);
    usleep(linger_us);
    expect(tl_lock_finish_with(lock, &paid, linger, &linger_us, 10000), TL_SUCCEEDED);
    tl_lock_free(lock);
    tl_client_close(client);
}

/* Payments are made, the audit reads all rows, and the doctor comes to its end. */
static void expect_paid(useconds_t linger_us)
{
    static unsigned paid;
    char serial[32], counted[64];

    snprintf(serial, sizeof serial, "S%u", ++paid);
    pay(serial, linger_us);
    snprintf(counted, sizeof counted, "%u rows", paid);
    ENDS(RUN("audit", "--config", config), 0, counted);
    ENDS(RUN("doctor", "--config", config), 0);
}

static void expect_served(useconds_t linger_us)
{
    expect_paid(linger_us);
    ENDS(RUN("migrate", "--config", config), 0, "already");
}

/* Each setting that a session takes over from its server, with a value that would do harm.  Those of
 * one round are set together, with --long each alone too: a session has its own of each. */
static const struct setting {
    const char *name, *value;
} rounds[][42] = {
    {
        {"wait_timeout", "1"},
        {"idle_write_transaction_timeout", "1"},
        {"idle_readonly_transaction_timeout", "1"},
        {"sql_select_limit", "1"},
        {"group_concat_max_len", "4"},
        {"max_join_size", "1"},
        {"sql_big_selects", "0"},
        {"sql_mode", "'ORACLE'"},
        {"tx_isolation", "'SERIALIZABLE'"},
        {"tx_read_only", "1"},
        {"autocommit", "0"},
        {"completion_type", "'RELEASE'"},
        {"max_sort_length", "64"},
        {"div_precision_increment", "0"},
        {"auto_increment_increment", "7"},
        {"max_statement_time", "0.000001"},
        {"time_zone", "'+05:00'"},
        {"character_set_server", "'latin1'"},
        {"collation_server", "'utf8mb4_general_ci'"},
        {"lc_messages", "'de_DE'"},
        {"lc_time_names", "'de_DE'"},
        {"default_storage_engine", "'MyISAM'"},
        {"old_mode", "'NO_PROGRESS_INFO,ZERO_DATE_TIME_CAST'"},
        {"sql_safe_updates", "1"},
        {"foreign_key_checks", "0"},
        {"unique_checks", "0"},
        {"sql_auto_is_null", "1"},
        {"sql_if_exists", "1"},
        {"sql_quote_show_create", "0"},
        {"innodb_snapshot_isolation", "1"},
        {"innodb_strict_mode", "0"},
        {"optimizer_use_condition_selectivity", "1"},
        {"query_cache_size", "1048576"},
        {"binlog_format", "'STATEMENT'"},
        {"sort_buffer_size", "1024"},
        {"max_error_count", "0"},
        {"check_constraint_checks", "0"},
        {"tmp_memory_table_size", "0"},
        {"lock_wait_timeout", "0"},
        {"innodb_lock_wait_timeout", "0"},
    },
    {
        {"sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'"},
        {"innodb_snapshot_isolation", "0"},
        {"completion_type", "'CHAIN'"},
    },
    {{"max_session_mem_used", "8192"}}, /* beside some of the others the server itself ends */
};

static void serve_with(MYSQL *connection, const struct setting *all)
{
    for (const struct setting *each = all; each->name != NULL; each++) {
        database_run(connection, "SET @was_%s = @@GLOBAL.%s", each->name, each->name);
        database_run(connection, "SET GLOBAL %s = %s", each->name, each->value);
    }
    expect_served(1500000); /* longer than each of the time-outs */
    for (; all->name != NULL; all++)
        database_run(connection, "SET GLOBAL %s = @was_%s", all->name, all->name);
}

TEST(test_settings_of_others)
{
    MYSQL *connection;

    server_restart_with(own, (const char *const[]){"--read-only=0", NULL});
    connection = database_connect(where);
    for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
        serve_with(connection, rounds[i]);
        for (const struct setting *each = rounds[i]; tier_is_long() && each->name != NULL; each++) {
            print_message("%s alone\n", each->name);
            serve_with(connection, (const struct setting[2]){*each});
        }
    }
    mysql_close(connection);
    server_restart_with(own, (const char *const[]){"--lower-case-table-names=1", NULL});
    expect_served(0);
    server_restart_with(own, (const char *const[]){"--read-only=0", NULL});
}

/* `migrate` says what hinders it. */
TEST(test_no_schema_can_be_made)
{
    server_restart_with(
        own, (const char *const[]){"--read-only=0", "--enforce-storage-engine=Aria", NULL});
    EXPECT_REFUSED(RUN("migrate", "--config", database_option_file(empty)), 5,
                   "the server makes no InnoDB tables");
    server_restart_with(own,
                        (const char *const[]){"--read-only=0", "--max-allowed-packet=1024", NULL});
    EXPECT_REFUSED(RUN("migrate", "--config", database_option_file(empty)), 5,
                   "set max_allowed_packet to 1M or more");
    server_restart_with(own, (const char *const[]){"--read-only=0", NULL});
}

/* Of one database alone, as a service's: the server runs init_connect for it, and a binary log keeps
 * it from making triggers. */
static char *account_without_super(const database *of)
{
    MYSQL *connection = database_connect(of);
    char *path = database_option_file_at(of, server_socket(own), NULL);

    database_run(connection, "CREATE USER IF NOT EXISTS plain@localhost IDENTIFIED BY 'plain'; "
                             "GRANT ALL ON {database}.* TO plain@localhost");
    crew_shell("sed -i 's/^user=.*/user=plain/; s/^password=.*//; /^user=/a password=plain' %s",
               path);
    mysql_close(connection);
    return path;
}

TEST(test_an_account_without_super)
{
    const char *const of_administrator = config;
    char *there = account_without_super(empty), *here = account_without_super(where);

    server_restart_with(
        own, (const char *const[]){"--log-bin=binary", "--sync-binlog=1",
                                   "--init-connect=SET autocommit = 0, sql_select_limit = 1, "
                                   "group_concat_max_len = 4, sql_mode = 'ORACLE', time_zone = "
                                   "'+05:00', tx_isolation = 'SERIALIZABLE', max_join_size = 1",
                                   NULL});
    EXPECT_REFUSED(RUN("migrate", "--config", there), 1,
                   "the server takes triggers and functions from an account with SUPER");
    config = here;
    expect_paid(0);
    config = of_administrator;
    server_restart_with(own, (const char *const[]){"--read-only=0", NULL});
    free(there);
    free(here);
}

/* ------------------------------------------------------------------- its maker left -- */

/* The account that ran `migrate` is dropped: each program and the doctor say so in words, and
 * `migrate` by another account makes everything run again. */
TEST(test_definer_gone)
{
    MYSQL *connection;

    server_restart_with(own, (const char *const[]){"--read-only=0", NULL});
    connection = database_connect(where);
    /* What a dump brings that is loaded where the account never was. */
    database_run(connection,
                 "CREATE OR REPLACE DEFINER = dba@nowhere TRIGGER "
                 "trade_lock_deleted AFTER DELETE ON trade_lock FOR EACH ROW SET @a = 1");
    database_run(connection, "CREATE OR REPLACE DEFINER = dba@nowhere FUNCTION tl_parts() "
                             "RETURNS TEXT SQL SECURITY DEFINER RETURN ''");
    ENDS(RUN("doctor", "--config", database_option_file(where)), 5,
         "unsafe, definer: ", "the account that ran `tradelock migrate` is gone");
    ENDS(RUN("migrate", "--config", database_option_file(where)), 0);
    assert_int_equal(database_number(connection,
                                     "SELECT COUNT(*) FROM (SELECT definer FROM "
                                     "information_schema.triggers UNION ALL SELECT definer FROM "
                                     "information_schema.routines) d WHERE definer LIKE 'dba@%%'"),
                     0);
    ENDS(RUN("doctor", "--config", database_option_file(where)), 0);
    mysql_close(connection);
    pay("AFTERWARDS", 0);
}

/* The versions and settings beside those that are refused. */
TEST(test_safe)
{
    static const char *const versions[] = {
        "--version=10.11.1-MariaDB", "--version=11.0.2-MariaDB-log", "--version=12.4.0-MariaDB"};

    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        server_restart_with(
            own, (const char *const[]){versions[i], "--log-bin=binary", "--sync-binlog=1", NULL});
        expect_opening(0, TL_OK, "");
        ENDS(RUN("ls", "--config", database_option_file(where)), 0);
    }
    ENDS(RUN("migrate", "--config", database_option_file(empty)), 0);
}

TESTS_OF(server, set_up, tear_down)
