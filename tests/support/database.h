/*
 * A fresh database with the current schema, and an option file that leads to it.
 */
#ifndef TESTS_SUPPORT_DATABASE_H
#define TESTS_SUPPORT_DATABASE_H

#include "support/server.h"

typedef struct database database;

/* Makes and migrates it.  settings: lines for the section [tradelock] of its option file, such as
 * "beat_ms=100\nsession_ms=1s\n"; or NULL. */
database *database_new(server *where, const char *settings);
/* The same, but empty: nothing is migrated. */
database *database_new_empty(server *where, const char *settings);
/* Notes in the schema on which server it was made, as tl_migrate() does. */
void database_note_server(const database *self);
/* Drops it. */
void database_free(database *self);
/* Frees what is here: it goes with its server, which need not run. */
void database_forget(database *self);

const char *database_name(const database *self);
/* [tradelock-client] and [client] with socket, account and database, and [tradelock]; an
 * administrator's account.  Readable by its owner alone. */
const char *database_option_file(const database *self);
/* Writes the option file anew with these lines in [tradelock]. */
void database_set(database *self, const char *settings);
/* The same database through another server or proxy socket: a new option file, to be freed with
 * free(). */
char *database_option_file_at(const database *self, const char *socket, const char *settings);

/* A connection of the test's own, in this database; mysql_close() it. */
MYSQL *database_connect(const database *self);

/* Runs any number of statements, separated by ;.  Fails the process on an error.  In all statements
 * of these functions {database} is the name of the connection's database, as in sql/grants.sql. */
void database_run(MYSQL *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A row's first revision, in SQL: when it was made. */
#define DATABASE_MADE_REV "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created_at)"
/* How many of the database's connections have a transaction of which InnoDB says this, and are as
 * `condition` on their row of the process list says: "LOCK WAIT", "1".  It asks InnoDB's monitor:
 * information_schema.innodb_trx stays as it was while somebody reads it ten times a second. */
long long database_transactions(MYSQL *connection, const char *said, const char *condition);
/* The first column of the first row: as a number (0 for NULL or no row), or as text to be freed
 * with free() (NULL for NULL or no row). */
long long database_number(MYSQL *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A counter of the server's; ends the test where there is none of that name. */
long long database_counter(MYSQL *connection, const char *name);
char *database_text(MYSQL *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Fails the test where that number is another one, and says of which statement. */
#define database_expect(connection, expected, ...)                                                 \
    database_expect_at(__FILE__, __LINE__, connection, expected, __VA_ARGS__)
void database_expect_at(const char *file, int line, MYSQL *connection, long long expected,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Looks until it is this number. */
#define database_await(connection, expected, ...)                                                  \
    database_await_at(__FILE__, __LINE__, connection, expected, __VA_ARGS__)
void database_await_at(const char *file, int line, MYSQL *connection, long long expected,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same of a text; "none" where there is no row, or NULL. */
#define database_expect_text(connection, expected, ...)                                            \
    database_expect_text_at(__FILE__, __LINE__, connection, expected, __VA_ARGS__)
void database_expect_text_at(const char *file, int line, MYSQL *connection, const char *expected,
                             const char *format, ...) __attribute__((format(printf, 5, 6)));
/* What SHOW SLAVE STATUS says in that column, to be freed with free(); NULL: nothing. */
char *database_replication(MYSQL *connection, const char *column);

/* Somebody else, with another account than the test's, proposes to accept the restore that is open,
 * and has filed what was filed; tl_restore_accept() confirms it. */
void database_propose(MYSQL *connection);

/* Ends the connections of the process list that this condition holds for; one may be gone already. */
void database_kill(MYSQL *connection, const char *which);
/* Ends all connections to this database that are newer than the given one. */
void database_cut(MYSQL *connection);

#endif
