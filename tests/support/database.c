#include "support/database.h"

#include "sql_text.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SPACE 640

struct database {
    server *where;
    char name[64];
    char option_file[PATH_SPACE];
};

static unsigned database_count, option_file_count;

static void write_option_file(const database *self, const char *path, const char *socket,
                              const char *settings)
{
    /* Both what our library reads and what MariaDB's own programs read. */
    static const char *const groups[] = {"tradelock-client", "client"};
    mode_t mask = umask(077);
    FILE *file = fopen(path, "we");

    umask(mask);
    if (file == NULL)
        server_panic("%s cannot be written: %s", path, strerror(errno));
    for (size_t i = 0; i < 2; i++)
        fprintf(file, "[%s]\nsocket=%s\nuser=%s\ndatabase=%s\n", groups[i], socket,
                server_user(self->where), self->name);
    if (settings != NULL)
        fprintf(file, "[tradelock]\n%s", settings);
    if (fclose(file) != 0)
        server_panic("%s cannot be written: %s", path, strerror(errno));
}

/* Not by tl_migrate(), which stands high in the house: a test of a low room must not need the rooms
 * above, nor count their passages and allocations. */
static void migrate(const database *self)
{
    MYSQL *connection = database_connect(self);

    for (size_t i = 0; i < sql_migrations_count; i++)
        database_run(connection, "%s", sql_migrations[i].text);
    for (size_t i = 0; i < sql_objects_count; i++)
        database_run(connection, "%s", sql_objects[i].text);
    database_run(connection, "UPDATE tl_schema SET version = %u",
                 sql_migrations[sql_migrations_count - 1].number);
    mysql_close(connection);
}

database *database_new_empty(server *where, const char *settings)
{
    database *self = calloc(1, sizeof(*self));
    MYSQL *connection;

    if (self == NULL)
        server_panic("out of memory");
    self->where = where;
    snprintf(self->name, sizeof(self->name), "t%ld_%u", (long)getpid(), ++database_count);
    snprintf(self->option_file, sizeof(self->option_file), "%s/%s.cnf", server_dir(where),
             self->name);
    connection = server_connect(where);
    database_run(connection, "CREATE OR REPLACE DATABASE %s", self->name);
    mysql_close(connection);
    database_set(self, settings);
    return self;
}

database *database_new(server *where, const char *settings)
{
    database *self = database_new_empty(where, settings);

    migrate(self);
    return self;
}

void database_note_server(const database *self)
{
    MYSQL *connection = database_connect(self);

    database_run(connection, "%s", sql_schema_identity.text);
    mysql_close(connection);
}

#define DIRECTORY_NOT_EMPTY 1010
#define DROP_TRIES 300

/* What is left in its directory, for whoever asks why. */
static void show_files(MYSQL *connection, const char *name)
{
    char *data = database_text(connection, "SELECT CONCAT(@@datadir, '%s')", name);
    DIR *directory = opendir(data);
    const struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        fprintf(stderr, "%s has %s\n", data, entry->d_name);
    if (directory != NULL)
        closedir(directory);
    free(data);
}

/* The server removes the directory while it may still put a file of a table there that is gone: a
 * later try finds none. */
static void drop(MYSQL *connection, const char *name)
{
    char statement[128];

    snprintf(statement, sizeof statement, "DROP DATABASE %s", name);
    for (int i = 0; mysql_query(connection, statement) != 0; i++) {
        if (mysql_errno(connection) != DIRECTORY_NOT_EMPTY || i == DROP_TRIES)
            server_panic("%s: %s", statement, mysql_error(connection));
        if (i == 0)
            show_files(connection, name);
        usleep(100000);
    }
}

void database_free(database *self)
{
    MYSQL *connection;

    if (self == NULL)
        return;
    connection = server_connect(self->where);
    /* A test that failed may have left a transaction open. */
    database_run(connection, "SET lock_wait_timeout = 60");
    drop(connection, self->name);
    mysql_close(connection);
    database_forget(self);
}

void database_forget(database *self)
{
    unlink(self->option_file);
    free(self);
}

const char *database_name(const database *self)
{
    return self->name;
}

const char *database_option_file(const database *self)
{
    return self->option_file;
}

void database_set(database *self, const char *settings)
{
    write_option_file(self, self->option_file, server_socket(self->where), settings);
}

char *database_option_file_at(const database *self, const char *socket, const char *settings)
{
    char *path = malloc(PATH_SPACE);

    if (path == NULL)
        server_panic("out of memory");
    snprintf(path, PATH_SPACE, "%s/%s-%u.cnf", server_dir(self->where), self->name,
             ++option_file_count);
    write_option_file(self, path, socket, settings);
    return path;
}

MYSQL *database_connect(const database *self)
{
    MYSQL *connection = server_connect(self->where);

    if (mysql_select_db(connection, self->name) != 0)
        server_panic("no database %s: %s", self->name, mysql_error(connection));
    return connection;
}

static char *format_statement(const MYSQL *connection, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static char *format_statement(const MYSQL *connection, const char *format, va_list arguments)
{
    static const char mark[] = "{database}";
    char *statement = NULL, *at;

    if (vasprintf(&statement, format, arguments) < 0)
        server_panic("out of memory");
    while ((at = strstr(statement, mark)) != NULL) {
        char *named = NULL;

        if (asprintf(&named, "%.*s%s%s", (int)(at - statement), statement, connection->db,
                     at + sizeof mark - 1) < 0)
            server_panic("out of memory");
        free(statement);
        statement = named;
    }
    return statement;
}

/* Runs the statements and gives the last result that had rows, or NULL. */
static MYSQL_RES *run(MYSQL *connection, const char *statement)
{
    MYSQL_RES *last = NULL;
    int more = mysql_query(connection, statement);

    while (more == 0) {
        MYSQL_RES *result = mysql_store_result(connection);

        if (result != NULL) {
            mysql_free_result(last);
            last = result;
        } else if (mysql_errno(connection) != 0) {
            break;
        }
        more = mysql_next_result(connection);
    }
    if (mysql_errno(connection) != 0)
        server_panic("error %u, %s, of: %.400s", mysql_errno(connection), mysql_error(connection),
                     statement);
    return last;
}

void database_run(MYSQL *connection, const char *format, ...)
{
    va_list arguments;
    char *statement;

    va_start(arguments, format);
    statement = format_statement(connection, format, arguments);
    va_end(arguments);
    mysql_free_result(run(connection, statement));
    free(statement);
}

/* A copy of the first column of the first row. */
static char *first_cell(MYSQL *connection, const char *statement)
{
    MYSQL_RES *result = run(connection, statement);
    MYSQL_ROW row;
    char *text = NULL;

    if (result == NULL)
        server_panic("no rows from: %.400s", statement);
    row = mysql_fetch_row(result);
    if (row != NULL && row[0] != NULL && (text = strdup(row[0])) == NULL)
        server_panic("out of memory");
    mysql_free_result(result);
    return text;
}

char *database_text(MYSQL *connection, const char *format, ...)
{
    va_list arguments;
    char *statement, *text;

    va_start(arguments, format);
    statement = format_statement(connection, format, arguments);
    va_end(arguments);
    text = first_cell(connection, statement);
    free(statement);
    return text;
}

static long long number_of(MYSQL *connection, const char *statement)
{
    char *text = first_cell(connection, statement);
    const long long number = text != NULL ? strtoll(text, NULL, 10) : 0;

    free(text);
    return number;
}

long long database_number(MYSQL *connection, const char *format, ...)
{
    va_list arguments;
    char *statement;
    long long number;

    va_start(arguments, format);
    statement = format_statement(connection, format, arguments);
    va_end(arguments);
    number = number_of(connection, statement);
    free(statement);
    return number;
}

void database_expect_text_at(const char *file, int line, MYSQL *connection, const char *expected,
                             const char *format, ...)
{
    va_list arguments;
    char *statement, *text;

    va_start(arguments, format);
    statement = format_statement(connection, format, arguments);
    va_end(arguments);
    text = first_cell(connection, statement);
    if (strcmp(text != NULL ? text : "none", expected) != 0) {
        print_error("%s in place of %s: %s\n", text != NULL ? text : "none", expected, statement);
        _fail(file, line);
    }
    free(text);
    free(statement);
}

void database_expect_at(const char *file, int line, MYSQL *connection, long long expected,
                        const char *format, ...)
{
    va_list arguments;
    char *statement;
    long long number;

    va_start(arguments, format);
    statement = format_statement(connection, format, arguments);
    va_end(arguments);
    number = number_of(connection, statement);
    if (number != expected) {
        print_error("%lld in place of %lld: %s\n", number, expected, statement);
        _fail(file, line);
    }
    free(statement);
}

void database_await_at(const char *file, int line, MYSQL *connection, long long expected,
                       const char *format, ...)
{
    va_list arguments;
    char *statement;

    va_start(arguments, format);
    statement = format_statement(connection, format, arguments);
    va_end(arguments);
    for (int looks = 0; number_of(connection, statement) != expected; looks++)
        server_await(looks, file, line, statement);
    free(statement);
}

/* The third column of the monitor's one row, to be freed. */
static char *innodb_monitor(MYSQL *connection)
{
    MYSQL_RES *result;
    MYSQL_ROW row;
    char *text;

    if (mysql_query(connection, "SHOW ENGINE INNODB STATUS") != 0 ||
        (result = mysql_store_result(connection)) == NULL ||
        (row = mysql_fetch_row(result)) == NULL || row[2] == NULL)
        server_panic("InnoDB's monitor: %s", mysql_error(connection));
    text = strdup(row[2]);
    mysql_free_result(result);
    return text;
}

#define MONITOR_TRANSACTION "\n---TRANSACTION "
#define MONITOR_THREAD "MariaDB thread id "

long long database_transactions(MYSQL *connection, const char *said, const char *condition)
{
    char *text = innodb_monitor(connection);
    char *at = strstr(text, "\nTRANSACTIONS\n");
    long long count = 0;

    for (at = at != NULL ? strstr(at, MONITOR_TRANSACTION) : NULL; at != NULL;) {
        char *next = strstr(at + 1, MONITOR_TRANSACTION);
        const char *thread;

        if (next != NULL)
            *next = '\0';
        thread = strstr(at + 1, MONITOR_THREAD);
        if (thread != NULL && strstr(at + 1, said) != NULL)
            count += database_number(connection,
                                     "SELECT COUNT(*) FROM information_schema.processlist "
                                     "WHERE id = %ld AND db = DATABASE() AND %s",
                                     strtol(thread + strlen(MONITOR_THREAD), NULL, 10), condition);
        at = next;
    }
    free(text);
    return count;
}

char *database_replication(MYSQL *connection, const char *column)
{
    MYSQL_RES *result;
    MYSQL_FIELD *fields;
    MYSQL_ROW row;
    char *found = NULL;

    if (mysql_query(connection, "SHOW SLAVE STATUS") != 0 ||
        (result = mysql_store_result(connection)) == NULL)
        server_panic("SHOW SLAVE STATUS: %s", mysql_error(connection));
    fields = mysql_fetch_fields(result);
    row = mysql_fetch_row(result);
    for (unsigned i = 0; row != NULL && i < mysql_num_fields(result); i++)
        if (found == NULL && strcmp(fields[i].name, column) == 0 && row[i] != NULL)
            found = strdup(row[i]);
    mysql_free_result(result);
    return found;
}

long long database_counter(MYSQL *connection, const char *name)
{
    char *text = database_text(connection,
                               "SELECT VARIABLE_VALUE FROM information_schema."
                               "GLOBAL_STATUS WHERE VARIABLE_NAME = '%s'",
                               name);
    long long number;

    /* An unknown one would never change. */
    if (text == NULL)
        server_panic("the server does not count %s", name);
    number = strtoll(text, NULL, 10);
    free(text);
    return number;
}

void database_propose(MYSQL *connection)
{
    database_run(connection, "SET @accepted = (SELECT accepted_no FROM tl_schema); "
                             "CALL tl_restore_found(@accepted, 'a test'); "
                             "SET @open = (SELECT restore_no FROM tl_schema); "
                             "UPDATE trade_evidence SET account = 'ann@localhost' WHERE account = "
                             "USER() AND outcome = 'SUCCEEDED'; "
                             "INSERT INTO tl_restore (restore_no, step, reason, actor, account) "
                             "VALUES (@open, 'proposed', 'a test', 'ann', 'ann@localhost')");
}

void database_kill(MYSQL *connection, const char *which)
{
    database_run(connection,
                 "BEGIN NOT ATOMIC DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; "
                 "FOR one IN (SELECT id FROM information_schema.PROCESSLIST WHERE %s) DO "
                 "EXECUTE IMMEDIATE CONCAT('KILL ', one.id); END FOR; END",
                 which);
}

void database_cut(MYSQL *connection)
{
    char *kill;

    while ((kill = database_text(connection, "SELECT CONCAT('KILL ', MIN(ID)) FROM "
                                             "information_schema.PROCESSLIST WHERE "
                                             "DB = DATABASE() AND ID > CONNECTION_ID()")) != NULL) {
        (void)mysql_query(connection, kill); /* one that is going already is no error */
        free(kill);
        usleep(1000);
    }
}
