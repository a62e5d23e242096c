/* What a fork, a thread that ends, and a process that dies or sleeps leave behind; and what the
 * janitor does about it. */
#include "rw_lock/fixture.h"

#include "sql_text.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAITS "ask_wait_min_ms=5ms\nask_wait_max_ms=20ms\n"

static fixture f;

static int setup(void **state)
{
    (void)state;
    /* Who is to die does so soon; who looks on must not, on however slow a machine, nor begin anew
     * to count because two beats of its own were too far apart. */
    fixture_open(&f, "beat_ms=1s\nsession_ms=30s\n" WAITS);
    database_set(f.db, "beat_ms=100\nsession_ms=4s\n" WAITS); /* of other clients */
    database_run(f.sql, "CREATE TABLE business (id INT PRIMARY KEY, n INT NOT NULL);"
                        "INSERT INTO business VALUES (0, 0), (1, 0)");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_holders_whole(&f, 0);
    fixture_close(&f);
    return 0;
}

static int exit_code_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static long long steps_of(const char *resource, const char *step)
{
    return database_number(f.sql,
                           "SELECT COUNT(*) FROM resource_holder_log WHERE resource = "
                           "'%s' AND step = '%s'",
                           resource, step);
}

/* Nobody asks: the janitor alone must free it. */
static void await_freed(const char *resource)
{
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;

    while (steps_of(resource, "reap") == 0 && crew_now_ms() < until_ms)
        crew_sleep_ms(20);
    assert_int_equal(steps_of(resource, "reap"), 1);
}

/* --------------------------------------------------------------- fork and threads -- */

/* In the child: the number of the first call that did not answer as it must. */
static int use_parents_handle(tl_rw *rw)
{
    tl_client *client;
    tl_status busy;

    if (tl_rw_read(rw, 0) != TL_WRONG_PROCESS || tl_rw_write(rw, 0) != TL_WRONG_PROCESS)
        return 1;
    if (tl_rw_unlock(rw) != TL_WRONG_PROCESS || tl_rw_downgrade(rw) != TL_WRONG_PROCESS)
        return 2;
    if (tl_rw_renew(rw, 1000) != TL_WRONG_PROCESS || tl_rw_done(rw, NULL, 0) != TL_WRONG_PROCESS ||
        tl_rw_guard(rw, NULL, 0) != TL_WRONG_PROCESS)
        return 3;
    if (tl_rw_remaining_ms(rw) != 0)
        return 4;
    tl_rw_free(rw);
    client = client_new(&f);
    busy = try_read(client, "forked");
    tl_client_close(client);
    return busy == TL_BUSY ? 0 : 5;
}

static void test_fork_with_a_lock_held(void **state)
{
    tl_rw *writer = writing(f.client, "forked", 0);
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(use_parents_handle(writer));
    assert_int_equal(exit_code_of(pid), 0);
    assert_true(tl_rw_remaining_ms(writer) > 0);
    assert_status(try_read(f.other, "forked"), TL_BUSY);
    assert_status(tl_rw_unlock(writer), TL_OK);
    tl_rw_free(writer);
}

static void *write_and_end(void *argument)
{
    return (void *)(intptr_t)tl_rw_write(argument, 0);
}

static void test_a_thread_that_ended(void **state)
{
    tl_rw *rw = rw_new(f.client, "thread", 0);
    pthread_t thread;
    void *status;

    (void)state;
    pthread_create(&thread, NULL, write_and_end, rw);
    pthread_join(thread, &status);
    assert_status((tl_status)(intptr_t)status, TL_GRANTED);
    assert_status(try_read(f.other, "thread"), TL_BUSY);
    assert_status(tl_rw_downgrade(rw), TL_OK);
    assert_status(tl_rw_unlock(rw), TL_OK);
    tl_rw_free(rw);
}

/* -------------------------------------------------------------- death and the janitor -- */

struct holder {
    pid_t pid;
    int to_parent[2], to_child[2];
};

/* In the child: holds, and, when it is told to go on, does its business.  20: the transaction was
 * refused and rolled back, and the unlock says that the lock was lost. */
static _Noreturn void hold(struct holder *h, const char *resource, int writes, int64_t lease_ms)
{
    tl_client *client = client_new(&f);
    tl_rw *rw = writes ? writing(client, resource, lease_ms) : reading(client, resource, lease_ms);
    MYSQL *caller = caller_new(&f);
    char byte;

    caller_run(caller, writes ? "UPDATE business SET n = 99 WHERE id = 1"
                              : "UPDATE business SET n = 99 WHERE id = 0");
    if (write(h->to_parent[1], "x", 1) != 1 || read(h->to_child[0], &byte, 1) != 1)
        _exit(99);
    if (tl_rw_done(rw, caller, 0) != TL_ROLL_BACK)
        _exit(98);
    caller_run(caller, "ROLLBACK");
    _exit(tl_rw_unlock(rw) == TL_LOST ? 20 : 97);
}

static void start_holder(struct holder *h, const char *resource, int writes, int64_t lease_ms)
{
    char byte;

    assert_int_equal(pipe(h->to_parent), 0);
    assert_int_equal(pipe(h->to_child), 0);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0)
        hold(h, resource, writes, lease_ms);
    assert_int_equal(read(h->to_parent[0], &byte, 1), 1);
}

static void tell_and_close(struct holder *h, int tell)
{
    if (tell)
        assert_int_equal(write(h->to_child[1], "x", 1), 1);
    for (int i = 0; i < 2; i++) {
        close(h->to_parent[i]);
        close(h->to_child[i]);
    }
}

/* One reader and one writer die; living ones beside them are not touched, whichever way they are
 * renewed. */
static void test_the_janitor_frees_the_dead_alone(void **state)
{
    tl_rw *session = reading(f.client, "dead/read", 0),
          *lease = reading(f.other, "dead/read", 50000), *writer = writing(f.client, "alive", 0);
    struct holder reader, dead_writer;

    (void)state;
    start_holder(&reader, "dead/read", 0, 0);
    start_holder(&dead_writer, "dead/write", 1, 0);
    kill(reader.pid, SIGKILL);
    kill(dead_writer.pid, SIGKILL);
    assert_int_equal(exit_code_of(reader.pid), 128 + SIGKILL);
    assert_int_equal(exit_code_of(dead_writer.pid), 128 + SIGKILL);
    tell_and_close(&reader, 0);
    tell_and_close(&dead_writer, 0);
    await_freed("dead/read");
    await_freed("dead/write");
    assert_status(write_when_free(f.client, "dead/write"), TL_GRANTED);
    assert_status(try_write(f.client, "dead/read"), TL_BUSY);
    assert_int_equal(steps_of("alive", "reap"), 0);
    assert_status(tl_rw_unlock(session), TL_OK);
    assert_status(tl_rw_unlock(lease), TL_OK);
    assert_status(tl_rw_unlock(writer), TL_OK);
    assert_status(write_when_free(f.client, "dead/read"), TL_GRANTED);
    tl_rw_free(session);
    tl_rw_free(lease);
    tl_rw_free(writer);
}

/* The statement that frees the dead, as the janitor runs it without the gate, but asleep for two
 * seconds when it has come to the second holder. */
static void start_slow_freeing(MYSQL *connection, const char *resource)
{
    static const char *const values[] = {"UUID()", "RANDOM_BYTES(16)", "'test'", NULL,
                                         "1",      "9000000000000000"};
    const char *text = sql_rw_free.text, *mark, *place;
    char sql[2000] = "", name[80];
    int at = 0;

    snprintf(name, sizeof name, "'%s' AND (slot <> 2 OR SLEEP(2) = 0)", resource);
    for (; (mark = strchr(text, '?')) != NULL; text = mark + 1, at++) {
        assert_true(at < 6);
        place = values[at] != NULL ? values[at] : name;
        snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%.*s%s", (int)(mark - text), text,
                 place);
    }
    snprintf(sql + strlen(sql), sizeof sql - strlen(sql), "%s", text);
    assert_int_equal(at, 6);
    database_run(connection, "SET SESSION tx_isolation = 'READ-COMMITTED'");
    assert_int_equal(mysql_send_query(connection, sql, strlen(sql)), 0);
    for (int64_t until_ms = crew_now_ms() + 10000;
         database_number(f.sql, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
                                "WHERE STATE = 'User sleep'") == 0;)
        assert_true(crew_now_ms() < until_ms);
}

/* While the dead are looked for, a process begins and takes a row that the statement comes to
 * later: its session is younger than what the statement sees of the sessions. */
static void test_the_newborn_are_not_the_dead(void **state)
{
    tl_rw *one = reading(f.client, "newborn", 0), *two = reading(f.client, "newborn", 0);
    tl_rw *gone = reading(f.client, "newborn", 0), *newborn;
    MYSQL *slow = database_connect(f.db);
    tl_client *client;

    (void)state;
    assert_status(tl_rw_unlock(gone), TL_OK);
    start_slow_freeing(slow, "newborn");
    client = client_new(&f);
    newborn = reading(client, "newborn", 0);
    /* With innodb_snapshot_isolation, as from 11.6 on, it meets what it does not see. */
    if (mysql_read_query_result(slow) == 0)
        assert_int_equal(mysql_affected_rows(slow), 0);
    else
        assert_int_equal(mysql_errno(slow), 1020);
    mysql_close(slow);
    assert_status(tl_rw_unlock(newborn), TL_OK);
    tl_rw_free(newborn);
    tl_client_close(client);
    tl_rw_free(gone);
    tl_rw_free(two);
    tl_rw_free(one);
}

/* A lease that is over is freed though its process lives; a lease of its own outlives its
 * process. */
static void test_leases_and_the_janitor(void **state)
{
    tl_rw *late = writing(f.client, "late", 200);
    struct holder h;

    (void)state;
    await_freed("late");
    assert_status(tl_rw_unlock(late), TL_LOST);
    tl_rw_free(late);
    start_holder(&h, "outlives", 1, 8000);
    kill(h.pid, SIGKILL);
    assert_int_equal(exit_code_of(h.pid), 128 + SIGKILL);
    tell_and_close(&h, 0);
    crew_sleep_ms(3000);
    assert_status(try_read(f.client, "outlives"), TL_BUSY);
    await_freed("outlives");
}

/* A zombie: stopped for longer than its lease or its session lives, freed meanwhile, and woken in
 * the middle of its transaction. */
static void test_a_zombies_business_fails(void **state)
{
    static const int64_t leases_ms[] = {0, 500};
    static const char *const names[] = {"zombie/session", "zombie/lease"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct holder h;
        tl_rw *next = rw_new(f.client, names[i], 0);

        start_holder(&h, names[i], 1, leases_ms[i]);
        kill(h.pid, SIGSTOP);
        assert_status(tl_rw_write(next, PATIENCE_MS), TL_GRANTED);
        kill(h.pid, SIGCONT);
        tell_and_close(&h, 1);
        assert_int_equal(exit_code_of(h.pid), 20);
        assert_int_equal(database_number(f.sql, "SELECT SUM(n) FROM business"), 0);
        assert_true(tl_rw_remaining_ms(next) > 0);
        assert_status(tl_rw_unlock(next), TL_OK);
        tl_rw_free(next);
    }
}

/* tl_reap() is the same, for a machine on which no service runs. */
static void test_reap(void **state)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_reaped reaped = {0, 0, 0};
    tl_rw *late, *living = writing(f.client, "reap/alive", 0);

    (void)state;
    options.config_file = database_option_file(f.db);
    options.flags = TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    /* The services' own janitors run too; whoever comes first frees it, once. */
    late = writing(f.client, "reap/late", 1);
    assert_status(tl_reap(client, &reaped), TL_OK);
    assert_true(reaped.freed <= 1);
    assert_int_equal(steps_of("reap/late", "reap"), 1);
    assert_int_equal(steps_of("reap/alive", "reap"), 0);
    tl_client_close(client);
    tl_rw_free(late);
    tl_rw_free(living);
}

/* A client that is closed leaves nothing locked that its session renewed. */
static void test_a_client_that_is_closed(void **state)
{
    tl_client *client = client_new(&f);
    tl_rw *writer = writing(client, "closed", 0);

    (void)state;
    tl_rw_free(writer);
    tl_client_close(client);
    assert_status(write_when_free(f.client, "closed"), TL_GRANTED);
}

TEST_MAIN(process)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_with_a_lock_held),
        cmocka_unit_test(test_a_thread_that_ended),
        cmocka_unit_test(test_the_janitor_frees_the_dead_alone),
        cmocka_unit_test(test_the_newborn_are_not_the_dead),
        cmocka_unit_test(test_leases_and_the_janitor),
        cmocka_unit_test(test_a_zombies_business_fails),
        cmocka_unit_test(test_reap),
        cmocka_unit_test(test_a_client_that_is_closed),
    };

    return server_run_tests(tests, setup, teardown);
}
