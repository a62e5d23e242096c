/*
 * The command refused by the server and on the wrong schema, and its help, its exit codes and its
 * JSON fields against tools/README.md.
 */
#include "command.h"

#include "support/database.h"
#include "support/theme.h"

#include <dirent.h>
#include <sys/stat.h>

static struct world {
    database *where, *empty;
    const char *config;
    char *readme;
} w;

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t space = 0;

    if (file == NULL || getdelim(&text, &space, '\0', file) < 0)
        server_panic("%s cannot be read", path);
    fclose(file);
    return text;
}

FIXTURE(set_up)
{
    char path[512];

    w.where = database_new(server_shared(), NULL);
    w.empty = database_new_empty(server_shared(), NULL);
    w.config = database_option_file(w.where);
    snprintf(path, sizeof path, "%s/tools/README.md", test_source_dir());
    w.readme = read_file(path);
}

FIXTURE(tear_down)
{
    database_free(w.where);
    database_free(w.empty);
    free(w.readme);
}

/* Writes a file of settings; mode as chmod takes it.  Borrowed until the next call. */
static const char *settings(mode_t mode, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static const char *settings(mode_t mode, const char *format, ...)
{
    static char path[600];
    va_list arguments;
    FILE *file;

    snprintf(path, sizeof path, "%s.bad", w.config);
    unlink(path);
    file = fopen(path, "we");
    assert_non_null(file);
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
    chmod(path, mode);
    return path;
}

/* ---------------------------------------------------------------- settings -- */

static void expect_settings(const char *config, int code, const char *words)
{
    EXPECT_REFUSED(RUN("ls", "--config", config), code, words);
}

/* ------------------------------------------------------------------ server -- */

TEST(test_refused_account)
{
    MYSQL *connection = database_connect(w.where);

    database_run(connection, "CREATE OR REPLACE USER cli_test@localhost IDENTIFIED BY 'a'");
    expect_settings(settings(0600,
                             "[tradelock-client]\nsocket=%s\nuser=cli_test\npassword=b\n"
                             "database=%s\n",
                             server_socket(server_shared()), database_name(w.where)),
                    3, "the server refuses the account: Access denied for user 'cli_test'");
    database_run(connection, "DROP USER cli_test@localhost");
    mysql_close(connection);
}

/* What an account may not do is refused in one sentence, and nothing else is said. */
TEST(test_account_without_the_right)
{
    MYSQL *connection = database_connect(w.where);
    const char *config;

    database_run(connection,
                 "CREATE OR REPLACE USER cli_reader@localhost IDENTIFIED BY 'a';"
                 "GRANT SELECT ON %s.* TO cli_reader@localhost",
                 database_name(w.where));
    config = settings(0600,
                      "[tradelock-client]\nsocket=%s\nuser=cli_reader\npassword=a\n"
                      "database=%s\n",
                      server_socket(server_shared()), database_name(w.where));
    /* As after a dump was loaded, which brings no rights on functions. */
    EXPECT_REFUSED(RUN("ls", "--config", config), 1,
                   "a role of tradelock's, and after a restore `tradelock migrate --grants`");
    database_run(connection, "GRANT EXECUTE ON FUNCTION tl_restored TO cli_reader@localhost;"
                             "GRANT EXECUTE ON FUNCTION tl_identity TO cli_reader@localhost");
    EXPECT_REFUSED(
        RUN("retry", "--config", config, "W1", "C1", "WITHDRAW", "--fence", "1", "--reason", "r"),
        1, "the account lacks a right: execute command denied");
    EXPECT_REFUSED(RUN("restore", "declare", "--config", config, "--reason", "r"), 1,
                   "the account lacks a right: INSERT command denied");
    database_run(connection, "DROP USER cli_reader@localhost");
    mysql_close(connection);
}

static void expect_migrated(const char *config, const char *words)
{
    ENDS(RUN("migrate", "--config", config), 0, words);
}

static void expect_no_database(const char *config, int code, const char *words)
{
    static const char *const commands[] = {"ls", "migrate", "doctor"};

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        EXPECT_REFUSED(RUN(commands[i], "--config", config), code, words);
    }
}

TEST(test_schema)
{
    const char *config = database_option_file(w.empty);
    MYSQL *connection = database_connect(w.empty);

    expect_settings(config, 4, "tradelock migrate");
    expect_migrated(config, "The schema was made: version ");
    expect_migrated(config, "already");
    output_free(RUN("ls", "--config", config));
    /* No database to look for it in, for whoever looks and for whoever makes it. */
    expect_no_database(settings(0600, "[tradelock-client]\nsocket=%s\nuser=%s\n",
                                server_socket(server_shared()), server_user(server_shared())),
                       2, ".bad: no database is named; [tradelock-client] needs");
    expect_no_database(settings(0600,
                                "[tradelock-client]\nsocket=%s\nuser=%s\n"
                                "database=not_there\n",
                                server_socket(server_shared()), server_user(server_shared())),
                       4,
                       "there is no such database: Unknown database 'not_there'; create "
                       "it, then run `tradelock migrate`");
    database_run(connection, "UPDATE tl_schema SET version = 99, oldest_client = 99");
    expect_settings(config, 4, "must be upgraded");
    mysql_close(connection);
}

static void expect_foreign(MYSQL *connection, const char *trigger, const char *when)
{
    database_run(connection,
                 "CREATE OR REPLACE TRIGGER %s %s ON trade_lock FOR EACH ROW "
                 "SET @nothing = 1",
                 trigger, when);
    ENDS(RUN("doctor", "--config", w.config), 5, "a probe was not recorded",
         "changed by hand, or made by another version: trigger");
    database_run(connection, "DROP TRIGGER %s", trigger);
    ENDS(RUN("migrate", "--config", w.config), 0);
}

TEST(test_doctor)
{
    MYSQL *connection = database_connect(w.where), *holder;
    ENDS(RUN("doctor", "--config", w.config), 0, "a probe was recorded");
    assert_int_equal(database_number(connection, "SELECT COUNT(*) FROM trade_lock"), 0);
    assert_int_equal(database_number(connection, "SELECT COUNT(*) FROM trade_lock_log"), 0);
    /* Somebody's open transaction is no reason to drop a trigger. */
    holder = database_connect(w.where);
    database_run(holder, "BEGIN; SELECT * FROM trade_lock FOR UPDATE");
    ENDS(RUN("doctor", "--config", w.config), 0, "a probe had to wait");
    mysql_close(holder);
    /* A trigger that is somebody else's keeps nothing, and refuses nothing. */
    expect_foreign(connection, "trade_lock_kept", "AFTER UPDATE");
    expect_foreign(connection, "trade_lock_inserted", "AFTER INSERT");
    /* One that is not there is missed, and made anew. */
    database_run(connection, "DROP TRIGGER trade_lock_updated; "
                             "DROP TRIGGER resource_lock_updated");
    ENDS(RUN("doctor", "--config", w.config), 5,
         "missing: trigger resource_lock_updated, trigger trade_lock_updated");
    ENDS(RUN("migrate", "--config", w.config), 0,
         "2 triggers, routines or views were missing and were made anew");
    ENDS(RUN("doctor", "--config", w.config), 0, "a probe was recorded");
    /* A copy of the database somewhere else, and a session that is silent. */
    database_run(connection, "UPDATE tl_schema SET identity = 'elsewhere'; INSERT INTO "
                             "tl_session (session_id, program, host, pid, connection_name, "
                             "timeout_ms, started_at, alive_until) VALUES (UUID(), 'p', 'h', "
                             "1, UUID(), 1, '2020-01-01', '2020-01-01')");
    ENDS(RUN("doctor", "--config", w.config), 5, "accepted (host elsewhere -> ",
         "a restore is declared or found and not accepted", "1 silent",
         "have been silent for up to ", WITHOUT("up to -"));
    mysql_close(connection);
}

/* The exit code of the command, run by a shell. */
static int shell(const char *arguments)
{
    char command[1024];
    int status;

    snprintf(command, sizeof command, "%s/bin/tradelock %s", test_build_dir(), arguments);
    status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

TEST(test_output_that_cannot_be_written)
{
    char arguments[700];

    assert_int_equal(shell("--help >/dev/full 2>/dev/null"), 70);
    /* A closed stream is not the connection to the server, which would get the rest. */
    snprintf(arguments, sizeof arguments, "doctor --config %s >&- 2>/dev/null", w.config);
    assert_int_equal(shell(arguments), 70);
    snprintf(arguments, sizeof arguments, "doctor --config %s <&- >&- 2>&-", w.config);
    assert_int_equal(shell(arguments), 70);
    snprintf(arguments, sizeof arguments, "ls --config %s >/dev/null 2>&-", w.config);
    assert_int_equal(shell(arguments), 0);
}

/* ------------------------------------------------------- the current directory -- */

#define ELSEWHERE "cd \"$(mktemp -d)\" && "
#define AND_REMOVE "; code=$?; rm -r \"$PWD\"; exit $code"

/* It may be anybody's, and settings name a server. */
TEST(test_no_settings_are_found_here)
{
    if (access("/etc/tradelock.cnf", F_OK) == 0)
        skip();
    ENDS(command_shell(NULL, ELSEWHERE "echo x >tradelock.cnf && tradelock ls" AND_REMOVE), 2,
         "! tradelock: no settings file: name one with --config");
}

/* A program that looks here for its libraries finds files that are none. */
TEST(test_no_library_is_found_here)
{
    ENDS(command_shell(NULL,
                       ELSEWHERE "is_loaded=true\n"
                                 "for program in \"$(dirname \"$(command -v tradelock)\")\"/*; do\n"
                                 "    for library in $(ldd \"$program\" | sed -n 's/ =>.*//p')\n"
                                 "    do : >\"$library\"; done\n"
                                 "    ldd \"$program\" || is_loaded=false\n"
                                 "done\n"
                                 "$is_loaded" AND_REMOVE),
         0, "libtradelock.so.1 => /", "libcurl.so.4 => /", "libmicrohttpd.so.12 => /");
}

/* ------------------------------------------------------ help and the README -- */

static void expect_help(const char *name)
{
    output *o = RUN(name, "--help"), *help = RUN("help", name);
    char start[64], listed[64];

    snprintf(start, sizeof start, "Usage: tradelock %s", name);
    snprintf(listed, sizeof listed, "| `%s", name);
    EXPECT_CODE(o, 0);
    assert_string_equal(o->err, "");
    assert_int_equal(strncmp(o->out, start, strlen(start)), 0);
    EXPECT_WORDS(o, "\n\nOptions:\n");
    EXPECT_WORDS(o, "\n  --config FILE   settings;");
    /* The desk prints pages, the exporter text for Prometheus, run nothing of its own. */
    if (strcmp(name, "desk") != 0 && strcmp(name, "run") != 0 && strcmp(name, "exporter") != 0)
        EXPECT_WORDS(o, "\n  --json          ");
    EXPECT_WORDS(o, "\n  -h, --help      ");
    EXPECT_WORDS(o, "\n\nExamples:\n  tradelock ");
    EXPECT_CODE(help, 0);
    assert_string_equal(help->out, o->out);
    if (strstr(w.readme, listed) == NULL)
        fail_msg("tools/README.md does not list the command %s", name);
    for (const char *line = o->out; line != NULL; line = strchr(line + 1, '\n'))
        assert_true(strcspn(line + 1, "\n") <= 90);
    output_free(o);
    output_free(help);
}

TEST(test_help)
{
    output *o = RUN("--help");
    unsigned count = 0;
    char *line, *rest = strstr(o->out, "Commands:\n");

    EXPECT_CODE(o, 0);
    assert_non_null(rest);
    rest += strlen("Commands:\n");
    while ((line = strsep(&rest, "\n")) != NULL && line[0] == ' ') {
        char name[32];

        assert_int_equal(sscanf(line, "%31s", name), 1);
        expect_help(name);
        count++;
    }
    assert_int_equal(count, 27);
    output_free(o);
}

TEST(test_programs_are_documented)
{
    char path[512], listed[300];
    const struct dirent *entry;
    unsigned count = 0;
    DIR *folder;

    snprintf(path, sizeof path, "%s/bin", test_build_dir());
    folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(listed, sizeof listed, "| `%s` |", entry->d_name);
        if (strstr(w.readme, listed) == NULL)
            fail_msg("tools/README.md does not list the program %s", entry->d_name);
        count++;
    }
    closedir(folder);
    assert_true(count > 0);
}

/* The beginning of an option is none, whichever program it is. */
TEST(test_no_option_is_named_by_its_beginning)
{
    ENDS(command_shell(NULL, "for program in \"$(dirname \"$(command -v tradelock)\")\"/*\n"
                             "do ! \"$program\" --hel >/dev/null 2>&1 || exit 1; done"),
         0);
}

TEST(test_exit_codes_are_documented)
{
    const char *table = strstr(w.readme, "| code | meaning |");
    output *o = RUN("--help");
    char *help = strstr(o->out, "Exit codes: ");
    unsigned count = 0;

    assert_non_null(table);
    assert_non_null(help);
    for (char *c = help; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    table = strchr(strchr(table, '\n') + 1, '\n') + 1;
    for (; *table == '|'; table = strchr(table, '\n') + 1, count++) {
        char meaning[64], listed[80];
        int code;

        assert_int_equal(sscanf(table, "| %d | %63[^|]", &code, meaning), 2);
        meaning[strlen(meaning) - 1] = '\0';
        snprintf(listed, sizeof listed, "%d %s", code, meaning);
        if (strstr(help, listed) == NULL)
            fail_msg("--help does not say \"%s\"", listed);
    }
    assert_int_equal(count, 12);
    output_free(o);
}

TESTS_OF(input, set_up, tear_down)
