/*
 * A real MariaDB for tests.
 *
 * server_shared() is the one server of a ctest run, or, for a test run by hand, one of
 * its own.  server_start() is a server that this process may kill, stop and restart as it
 * likes.  Own servers end with the process, however it ends.
 *
 * Everything here that fails ends the process with a sentence and the end of the server's log,
 * since no test can go on without its server.
 */
#ifndef TESTS_SUPPORT_SERVER_H
#define TESTS_SUPPORT_SERVER_H

#include <mysql.h>
#include <stddef.h>

typedef struct server server;

/* Both without a trailing slash. */
const char *test_build_dir(void);
const char *test_source_dir(void);

/* Borrowed; the same one at every call. */
server *server_shared(void);

/* options: mariadbd's own, "--name=value", ended by NULL; or NULL. */
server *server_start(const char *const options[]);
/* A port of loopback on which nobody listens now. */
unsigned server_free_port(void);
void server_free(server *self); /* stops an own server and removes its data */

/* Own servers only. */
void server_stop(server *self);
void server_kill9(server *self);
void server_restart(server *self); /* also after stop and kill9; on the same socket */
/* The same with other options; NULL keeps those of the last start. */
void server_restart_with(server *self, const char *const options[]);
long server_pid(const server *self);
/* SIGSTOP, and back when the last of its threads stands still: until then one may still answer. */
void server_freeze(const server *self);
void server_thaw(const server *self);

const char *server_dir(const server *self);
/* Where the server listens; valid until server_stop. */
const char *server_socket(server *self);
/* The administrator's option file, and account, which needs no password. */
const char *server_option_file(const server *self);
const char *server_user(server *self);
/* A connection as administrator, without a database; mysql_close() it. */
MYSQL *server_connect(server *self);

/* Prints the statements and transactions that are under way: who waits for whom. */
void server_print_work(const server *self);

/* When failures is not 0, prints the end of the log of every server used.  Frees what
 * server_start() and server_shared() made and gives failures back. */
int server_report(int failures);

/* cmocka_run_group_tests() and server_report() in one.  cmocka itself says, but does not count,
 * when the last fixture fails, where many tests look whether the books agree. */
#define server_run_tests(tests, set_up, tear_down)                                                 \
    server_run_group(#tests, tests, sizeof(tests) / sizeof((tests)[0]), set_up, tear_down)
struct CMUnitTest;
int server_run_group(const char *name, const struct CMUnitTest *tests, size_t count,
                     int (*set_up)(void **state), int (*tear_down)(void **state));

/* Looks until the condition does not hold; one that holds for PATIENCE_MS (support/theme.h) ends the
 * process.  For any thread of any process. */
#define AWAIT_WHILE(condition)                                                                     \
    do {                                                                                           \
        for (int await_looks = 0; (condition); await_looks++)                                      \
            server_await(await_looks, __FILE__, __LINE__, #condition);                             \
    } while (0)
void server_await(int looks, const char *file, int line, const char *condition);

/* Ends the process with this sentence, the servers' logs and what they are doing. */
_Noreturn void server_panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
