/* What the other tests stand on: databases of their own, servers of their own that can be killed
 * and come back with what was committed, and none left behind. */

#include "support/database.h"
#include "support/theme.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int alive(long pid)
{
    char path[64], line[256] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    /* A process that waits for its parent has an empty command line. */
    if (fgets(line, sizeof(line), file) == NULL)
        line[0] = '\0';
    fclose(file);
    return strstr(line, "mariadbd") != NULL;
}

/* A test that is killed takes its own servers with it. */
TEST(test_a_killed_test_leaves_nothing)
{
    int ends[2], status;
    long pid = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        long number = server_pid(server_start(NULL));

        if (write(ends[1], &number, sizeof(number)) == sizeof(number))
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    AWAIT_WHILE(alive(pid));
}

TEST(test_databases_are_apart)
{
    database *first = database_new(server_shared(), NULL);
    database *second = database_new(server_shared(), "beat_ms=100\n");
    MYSQL *a = database_connect(first), *b = database_connect(second);
    struct stat found;

    assert_string_not_equal(database_name(first), database_name(second));
    assert_int_equal(stat(database_option_file(second), &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    database_run(a, "CREATE TABLE mine (n INT); INSERT INTO mine VALUES (7), (8)");
    assert_int_equal(database_number(a, "SELECT SUM(n) FROM mine"), 15);
    assert_int_equal(database_number(b, "SELECT COUNT(*) FROM information_schema.tables WHERE "
                                        "table_schema = DATABASE() AND table_name = 'mine'"),
                     0);
    assert_int_equal(database_number(b, "SELECT version > 0 FROM tl_schema"), 1);
    mysql_close(a);
    mysql_close(b);
    database_free(first);
    database_free(second);
}

TEST(test_committed_rows_survive_a_kill)
{
    server *own = server_start(NULL);
    database *where = database_new_empty(own, NULL);
    MYSQL *connection = database_connect(where);
    char *socket = strdup(server_socket(own));
    char *flushed;

    flushed = database_text(connection, "SELECT @@innodb_flush_log_at_trx_commit");
    assert_string_equal(flushed, "1");
    free(flushed);
    database_run(connection, "CREATE TABLE kept (n INT PRIMARY KEY); "
                             "INSERT INTO kept VALUES (1); BEGIN; INSERT INTO kept VALUES (2)");
    server_kill9(own);
    assert_int_not_equal(mysql_ping(connection), 0);
    mysql_close(connection);
    server_restart(own);
    assert_string_equal(server_socket(own), socket);
    connection = database_connect(where);
    assert_int_equal(database_number(connection, "SELECT COUNT(*) FROM kept"), 1);
    mysql_close(connection);
    database_free(where);
    free(socket);
    server_free(own);
}

TESTS_OF(server, NULL, NULL)
