/* The settings file as a file: its lines and sections, what libmariadb reads of it, who may read
 * it. */
#include "check.h"

#include "base/config.h"
#include "base/config_client.h"
#include "settings_file.h"
#include "support/theme.h"

#include <sys/stat.h>
#include <sys/wait.h>

TEST(test_bad_lines)
{
    char text[6000];

    assert_refused("site = a\n", ":1: there is no section before this line; [tradelock] "
                                 "or [tradelock-client] must come first");
    assert_refused("[tradelock]\npool_size 3\n",
                   ":2: 'pool_size 3' is not of the form name = value");
    assert_refused("[tradelock]\npool_size ; = 3\n", ":2: is not of the form name = value");
    assert_refused("[service-payout]\nquick\n", ":2: 'quick' is not of the form name = value");
    assert_refused("[tradelock\n", ":1: the section's ']' is missing");
    assert_refused("[tradelok]\n", ":1: unknown section [tradelok]; tradelock reads "
                                   "[tradelock] and [tradelock-client], and passes over "
                                   "[service-NAME] and [statement-NAME]");
    assert_refused("[tradelock]\n!include /etc/my.cnf\n",
                   ":2: !include is not followed; write the settings here");
    /* An indented line is a setting, not more of the one before. */
    assert_refused("[tradelock]\nsite = a\n  bcd\n", ":3: 'bcd' is not of the form name = value");
    strcpy(text, "[tradelock]\nsite = ");
    memset(text + strlen(text), 'x', 300);
    text[319] = '\0';
    assert_refused(text, ":2: the line is longer than 199 bytes");
    memset(text, '#', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_refused(text, ":1: the line is longer than 4094 bytes or holds a NUL");
}

TEST(test_nul)
{
    static const char text[] = "[tradelock]\nsite = a\0b\n";
    struct config config;
    char wanted[200];

    settings_write(text, sizeof(text) - 1, 0600);
    snprintf(wanted, sizeof(wanted), "%s:2: the line is longer than 4094 bytes or holds a NUL",
             settings_path);
    assert_problem(config_load(&config, settings_path), TL_BAD_CONFIG, wanted);
}

TEST(test_bad_connection_options)
{
    assert_refused("[tradelock-client]\nuser = a\nsslca = b\n",
                   ":3: unknown connection option 'sslca'; did you mean 'ssl-ca'?");
    assert_refused("[tradelock-client]\ncolour = b\n", ":2: unknown connection option 'colour'");
    assert_refused("[tradelock-client-test]\nunix_socket = b\n",
                   ":2: unknown connection option 'unix_socket'");
    assert_refused("[tradelock-client]\nreconnect = 1\n",
                   ":2: reconnect is not allowed here: a silent reconnect would lose "
                   "transactions and locks");
    assert_refused("[tradelock-client]\nreturn-found-rows\n",
                   ":2: return-found-rows is not allowed here: it changes what an UPDATE "
                   "reports");
    assert_refused("[tradelock-client]\nreturn-found-rows = 0\n",
                   ":2: return-found-rows is not allowed here: it changes what an UPDATE "
                   "reports");
    assert_refused("[tradelock-client]\nreport-data-truncation = 0\n",
                   ":2: report-data-truncation is not allowed here: a cut value must "
                   "never pass unseen");
    assert_refused("[tradelock-client]\ninit_command = SET x=1\n",
                   ":2: init-command is not allowed here: tradelock fixes the state of "
                   "its connections itself");
    assert_refused("[tradelock-client]\nplugin_dir = /tmp\n",
                   ":2: plugin-dir is not allowed here: it names a folder whose files are "
                   "loaded and run");
    assert_refused("[tradelock-client]\nconnect-timeout = 3\n",
                   ":2: connect-timeout is not allowed here: use connect_timeout_s in "
                   "[tradelock]");
    /* What may be a mistyped password is not repeated. */
    assert_refused("[tradelock-client]\npassword: secret\n",
                   ":2: a line without '=' that is no connection option");
    assert_refused("[tradelock-client]\nsecret\n",
                   ":2: a line without '=' that is no connection option");
}

TEST(test_good_connection_options)
{
    struct config config;

    assert_loads("[tradelock-client]\n"
                 "user = a\n"
                 "  password = 'a # b ; c'\n"
                 "ssl_ca = /x\n"
                 "ssl-verify-server-cert = 1\n"
                 "compress\n"
                 "reconnect = 0\n"
                 "report_data_truncation = 1\n"
                 "[tradelock-client-two]\n"
                 "host=b\n"
                 "[client]\n"
                 "any-thing = 1\n"
                 "[mariadb-dump]\n"
                 "quick\n"
                 "[service-payout]\n"
                 "quick = yes\n",
                 &config);
}

TEST(test_group)
{
    static const char text[] = "[tradelock-client]\nuser=a\n[tradelock-client-two]\n";
    struct config config;
    char wanted[200];

    settings_write(text, strlen(text), 0600);
    assert_int_equal(config_load_for(&config, settings_path, NULL), TL_OK);
    assert_int_equal(config_load_for(&config, settings_path, ""), TL_OK);
    assert_int_equal(config_load_for(&config, settings_path, "-two"), TL_OK);
    snprintf(wanted, sizeof(wanted), "%s: section [tradelock-client-tw] is missing", settings_path);
    assert_problem(config_load_for(&config, settings_path, "-tw"), TL_BAD_CONFIG, wanted);
}

/* Our list against libmariadb's own words: each name stands in the library. */
TEST(test_names_of_libmariadb)
{
    const char *library = getenv("TL_TEST_LIBMARIADB");
    static char bytes[2000000];

    assert_non_null(library);
    FILE *file = fopen(library, "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_in_range(size, 100000, sizeof(bytes) - 1);
    for (const char *const *name = config_client_names; *name != NULL; name++) {
        assert_int_equal(config_client_check(*name, "x"), TL_OK);
        assert_non_null(memmem(bytes, size, *name, strlen(*name) + 1));
    }
}

TEST(test_passwords)
{
    static const struct {
        const char *text;
        unsigned line;
        mode_t mode; /* 0: allowed with 0644 */
    } cases[] = {
        {"[tradelock-client]\npassword = x\n", 2, 0644},
        {"[tradelock-client]\npassword = x\n", 2, 0604},
        {"[tradelock-client-two]\nuser=a\npassword=x\n", 3, 0644},
        {"[client]\npassword = x\n", 2, 0644},
        {"[mysql]\npassword = x\n", 2, 0644},
        {"[mariadb-client]\n  password = x\n", 2, 0644},
        {"[tradelock-client]\nssl_passphrase = x\n", 2, 0644},
        {"[client]\npasswd = x\n", 2, 0644},
        {"[client]\nconnection = host=a;x=y\n", 2, 0644},
        {"[tradelock-client]\nuser = a\n", 0, 0},
        {"[tradelock-client]\npassword =\n", 0, 0},
        {"[tradelock-client]\n#password = x\n", 0, 0},
    };
    struct config config;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char wanted[300];

        settings_write(cases[i].text, strlen(cases[i].text),
                       cases[i].mode != 0 ? cases[i].mode : 0644);
        if (cases[i].mode == 0) {
            assert_int_equal(config_load(&config, settings_path), TL_OK);
            continue;
        }
        snprintf(wanted, sizeof(wanted),
                 "%s:%u: the file holds a password and others than its owner can read or "
                 "write it (mode %04o); chmod 600 it",
                 settings_path, cases[i].line, (unsigned)cases[i].mode);
        assert_problem(config_load(&config, settings_path), TL_BAD_CONFIG, wanted);
        chmod(settings_path, 0600);
        if (strstr(cases[i].text, "connection") == NULL)
            assert_int_equal(config_load(&config, settings_path), TL_OK);
    }
}

/* As containers mount secrets: root's, and readable by a group of the process. */
TEST(test_passwords_of_a_group)
{
    static const char text[] = "[tradelock-client]\npassword = x\n";
    struct config config;

    if (geteuid() != 0)
        skip();
    settings_write(text, strlen(text), 0640);
    assert_int_equal(chown(settings_path, 0, getegid()), 0);
    assert_int_equal(config_load(&config, settings_path), TL_OK);
    assert_int_equal(chmod(settings_path, 0440), 0);
    assert_int_equal(config_load(&config, settings_path), TL_OK);
    assert_int_equal(chown(settings_path, 0, 54321), 0);
    assert_int_equal(config_load(&config, settings_path), TL_BAD_CONFIG);
    assert_int_equal(chown(settings_path, 0, getegid()), 0);
    assert_int_equal(chmod(settings_path, 0644), 0);
    assert_int_equal(config_load(&config, settings_path), TL_BAD_CONFIG);
    chmod(settings_path, 0600);
}

/* The environment counts above the file, and is checked as the file is. */
TEST(test_environment)
{
    static const char text[] = "[tradelock]\nsite = here\nbeat_ms = 2s\n";
    struct config config;

    settings_write(text, strlen(text), 0600);
    setenv("TRADELOCK_BEAT_MS", "700ms", 1);
    setenv("TRADELOCK_SESSION_MS", "9s", 1);
    assert_int_equal(config_load(&config, settings_path), TL_OK);
    assert_int_equal(config.beat_ms, 700);
    assert_int_equal(config.session_ms, 9000);
    assert_string_equal(config.site, "here");
    assert_false(tl_log_is_json(settings_path));
    setenv("TRADELOCK_LOG_FORMAT", "json", 1);
    assert_true(tl_log_is_json(settings_path));
    setenv("TRADELOCK_BEAT_MS", "soon", 1);
    assert_true(tl_log_is_json(settings_path));
    unsetenv("TRADELOCK_LOG_FORMAT");
    assert_false(tl_log_is_json(settings_path));
    assert_int_equal(config_load(&config, settings_path), TL_BAD_CONFIG);
    assert_string_equal(tl_error_message(),
                        "the environment (TRADELOCK_...): beat_ms: 'soon' is not "
                        "a duration such as 250ms, 30s, 10m, 2h or 7d");
    setenv("TRADELOCK_BEAT_MS", "5s", 1);
    assert_int_equal(config_load(&config, settings_path), TL_BAD_CONFIG);
    assert_non_null(strstr(tl_error_message(), "less than three beats"));
    unsetenv("TRADELOCK_BEAT_MS");
    unsetenv("TRADELOCK_SESSION_MS");
}

/* Without a file there is what the environment says, if it names a server. */
TEST(test_environment_alone)
{
    struct config config;

    setenv("TRADELOCK_HOST", "a, b:3307", 1);
    setenv("TRADELOCK_POOL_SIZE", "3", 1);
    assert_int_equal(config_load(&config, ""), TL_OK);
    assert_int_equal(config.pool_size, 3);
    assert_int_equal(config.beat_ms, 1000);
    assert_problem(config_load(&config, NULL), TL_BAD_CONFIG,
                   "no settings file was named, nor a server in $TRADELOCK_HOST");
    assert_problem(config_load_for(&config, "", "-other"), TL_BAD_CONFIG,
                   "the environment (TRADELOCK_...): section [tradelock-client-other] is missing");
    unsetenv("TRADELOCK_POOL_SIZE");
    unsetenv("TRADELOCK_HOST");
}

/* TL_OK: `wanted` is what the environment says of the connection; else the sentence. */
static void assert_connection(tl_status status, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    assert_non_null(to);
    assert_int_equal(config_connection_write(to), status);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(status == TL_OK ? text : tl_error_message(), wanted);
    free(text);
}

static void assert_password(const char *bytes, mode_t mode, tl_status status, const char *wanted)
{
    char sentence[400];

    settings_write(bytes, strlen(bytes), mode);
    snprintf(sentence, sizeof sentence, status == TL_OK ? "%.0s%s" : "%s: %s", settings_path,
             wanted);
    assert_connection(status, sentence);
}

TEST(test_connection_of_the_environment)
{
    char longer[1200];

    assert_false(config_connection_is_set());
    assert_connection(TL_OK, "");
    setenv("TRADELOCK_HOST", "a, b:3307", 1);
    setenv("TRADELOCK_SSL_CA", "/a\\b", 1);
    setenv("TRADELOCK_PORT", "tcp://10.0.0.1:3306", 1); /* of Kubernetes */
    assert_true(config_connection_is_set());
    assert_connection(TL_OK, "host = \"a, b:3307\"\nssl-ca = \"/a\\\\b\"\n");
    unsetenv("TRADELOCK_PORT");
    unsetenv("TRADELOCK_SSL_CA");
    setenv("TRADELOCK_HOST", "", 1);
    assert_connection(TL_BAD_CONFIG,
                      "the environment (TRADELOCK_...): host: it is of 1 to 1024 bytes");
    setenv("TRADELOCK_HOST", "a\nuser=root", 1);
    assert_connection(TL_BAD_CONFIG,
                      "the environment (TRADELOCK_...): host: it is more than one line");
    unsetenv("TRADELOCK_HOST");

    setenv("TRADELOCK_PASSWORD_FILE", settings_path, 1);
    assert_password(" a\\\"'# \r\n", 0600, TL_OK, "password = \" a\\\\\"'# \"\n");
    assert_password("a", 0400, TL_OK, "password = \"a\"\n");
    assert_password("a\nb", 0600, TL_BAD_CONFIG, "it is more than one line");
    assert_password("\n", 0600, TL_BAD_CONFIG, "it is of 1 to 1024 bytes");
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_password(longer, 0600, TL_BAD_CONFIG, "it is of 1 to 1024 bytes");
    assert_password("a", 0644, TL_BAD_CONFIG,
                    "others than its owner can read or write it (mode 0644); chmod 600 it");
    chmod(settings_path, 0600);
    setenv("TRADELOCK_PASSWORD", "secret", 1);
    assert_connection(TL_BAD_CONFIG,
                      "TRADELOCK_PASSWORD: others can see an environment; put the password into a "
                      "file, and name that in TRADELOCK_PASSWORD_FILE");
    unsetenv("TRADELOCK_PASSWORD");
    setenv("TRADELOCK_PASSWORD_FILE", "/nonexistent/p", 1);
    assert_connection(TL_BAD_CONFIG,
                      "TRADELOCK_PASSWORD_FILE: /nonexistent/p: No such file or directory");
    unsetenv("TRADELOCK_PASSWORD_FILE");
}

TEST(test_writable_by_all)
{
    struct config config;
    char wanted[200];

    settings_write("", 0, 0666);
    snprintf(wanted, sizeof(wanted), "the settings file: %s can be written by others (mode 0666)",
             settings_path);
    assert_problem(config_load(&config, settings_path), TL_BAD_CONFIG, wanted);
}

static void assert_refused_for(const char *whose, const char *words)
{
    struct config config;
    char wanted[200];

    snprintf(wanted, sizeof(wanted), "the settings file: %s %s", whose, words);
    assert_problem(config_load(&config, settings_path), TL_BAD_CONFIG, wanted);
}

/* Whoever can change it, or a folder above it, says which server is believed.  Root takes the file of
 * a service's account only where root put it. */
TEST(test_of_somebody_else)
{
    static const char somebodys[] = "belongs to neither root nor this account, so others could "
                                    "change it";
    struct config config;

    if (geteuid() != 0)
        skip();
    settings_write("", 0, 0600);
    assert_int_equal(chmod(settings_folder, 0777), 0);
    assert_refused_for(settings_folder, "can be written by others (mode 0777)");
    assert_int_equal(chmod(settings_folder, 01777), 0);
    assert_int_equal(config_load(&config, settings_path), TL_OK);
    assert_int_equal(chown(settings_path, 65534, 65534), 0);
    assert_refused_for(settings_path, somebodys);
    assert_int_equal(chmod(settings_folder, 0755), 0);
    assert_int_equal(config_load(&config, settings_path), TL_OK);
    assert_int_equal(chown(settings_path, 0, 0), 0);
    assert_int_equal(chown(settings_folder, 65534, 65534), 0);
    assert_refused_for(settings_folder, somebodys);
    assert_int_equal(chown(settings_folder, 0, 0), 0);
    assert_int_equal(chmod(settings_folder, 0700), 0);
    assert_int_equal(config_load(&config, settings_path), TL_OK);
}

TEST(test_no_file)
{
    struct config config;
    char wanted[200];

    assert_problem(config_load(&config, NULL), TL_BAD_CONFIG,
                   "no settings file was named, nor a server in $TRADELOCK_HOST");
    assert_problem(config_load(&config, ""), TL_BAD_CONFIG,
                   "no settings file was named, nor a server in $TRADELOCK_HOST");
    assert_problem(config_load(&config, "/nowhere/a.cnf"), TL_BAD_CONFIG,
                   "the settings file: /nowhere/a.cnf: No such file or directory");
    snprintf(wanted, sizeof(wanted), "the settings file: %s is not a regular file",
             settings_folder);
    assert_problem(config_load(&config, settings_folder), TL_BAD_CONFIG, wanted);
    assert_problem(config_load(&config, "/dev/null"), TL_BAD_CONFIG,
                   "the settings file: /dev/null can be written by others (mode 0666)");
    unlink(settings_path);
    assert_int_equal(mkfifo(settings_path, 0600), 0);
    snprintf(wanted, sizeof(wanted), "the settings file: %s is not a regular file", settings_path);
    assert_problem(config_load(&config, settings_path), TL_BAD_CONFIG, wanted);
}

/* Root may read everything, so the child becomes somebody else first. */
TEST(test_unreadable)
{
    char wanted[200];
    int status;

    settings_write("[tradelock]\n", 12, 0000);
    assert_int_equal(chmod(settings_folder, 0755), 0);
    snprintf(wanted, sizeof(wanted), "%s: the settings file cannot be opened: Permission denied",
             settings_path);
    pid_t pid = fork();
    if (pid == 0) {
        struct config config;

        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(3);
        if (config_load(&config, settings_path) != TL_BAD_CONFIG)
            _exit(2);
        _exit(strcmp(tl_error_message(), wanted) == 0 ? 0 : 1);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TESTS_OF(config_file, settings_make_folder, settings_remove_folder)
