/* A row lock in the caller's transaction: who waits how long, what frees it, and that its row is
 * there before anybody locks it. */
#include "lease/fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/row_lock.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, NULL);
    database_run(f.sql, "CREATE TABLE business (id INT PRIMARY KEY, n INT NOT NULL);"
                        "INSERT INTO business VALUES (1, 0)");
}

FIXTURE(teardown)
{
    fixture_close(&f);
}

static tl_status row_lock(MYSQL *caller, const char *resource, int64_t wait_s)
{
    return tl_row_lock(f.client, resource, caller, wait_s, 0);
}

/* The server notices a closed connection some time later; a rollback is over when it answers. */
static void caller_close(MYSQL *caller)
{
    caller_run(caller, "ROLLBACK");
    mysql_close(caller);
}

/* What a transaction of its own answers that does not wait. */
static tl_status try_row(const char *resource)
{
    MYSQL *caller = caller_new(&f);
    tl_status status = row_lock(caller, resource, TL_ROW_LOCK_NOWAIT);

    caller_close(caller);
    return status;
}

static void assert_rows(const char *resource, int count)
{
    assert_int_equal(
        database_number(f.sql, "SELECT COUNT(*) FROM row_lock WHERE resource = '%s'", resource),
        count);
}

/* ---------------------------------------------------------------- beginning, ending -- */

TEST(test_freed_by_commit_and_rollback)
{
    static const char *const endings[] = {"COMMIT", "ROLLBACK"};
    static const int64_t waits[] = {TL_ROW_LOCK_BLOCK, TL_ROW_LOCK_NOWAIT, 3};
    MYSQL *caller = caller_new(&f);

    for (int end = 0; end < 2; end++)
        for (int wait = 0; wait < 3; wait++) {
            assert_status(row_lock(caller, "ended", waits[wait]), TL_GRANTED);
            /* Again, in any way: it has it already. */
            assert_status(row_lock(caller, "ended", TL_ROW_LOCK_NOWAIT), TL_GRANTED);
            assert_status(try_row("ended"), TL_ROLL_BACK);
            assert_status(try_row("another"), TL_GRANTED);
            caller_run(caller, endings[end]);
            assert_status(try_row("ended"), TL_GRANTED);
            caller_run(caller, "START TRANSACTION");
        }
    caller_close(caller);
    assert_rows("ended", 1);
}

TEST(test_freed_by_a_crash)
{
    int to_parent[2], status;
    char byte;
    MYSQL *caller;
    pid_t pid;

    assert_int_equal(pipe(to_parent), 0);
    pid = fork();
    if (pid == 0) {
        tl_client *client = client_new(&f);

        caller = caller_new(&f);
        if (tl_row_lock(client, "crash", caller, TL_ROW_LOCK_NOWAIT, 0) == TL_GRANTED &&
            write(to_parent[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(to_parent[0], &byte, 1), 1);
    assert_status(try_row("crash"), TL_ROLL_BACK);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    caller = caller_new(&f);
    assert_status(row_lock(caller, "crash", 10), TL_GRANTED);
    caller_close(caller);
    close(to_parent[0]);
    close(to_parent[1]);
}

/* The child has the parent's handle of the client, and may not use it. */
TEST(test_fork)
{
    MYSQL *caller = caller_new(&f);
    int status;
    pid_t pid;

    assert_status(row_lock(caller, "forked", TL_ROW_LOCK_NOWAIT), TL_GRANTED);
    pid = fork();
    if (pid == 0)
        _exit(tl_row_lock(f.client, "forked", caller, 0, 0) == TL_WRONG_PROCESS ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_status(try_row("forked"), TL_ROLL_BACK);
    caller_close(caller);
}

/* --------------------------------------------------------------------------- waiting -- */

/* A wait that is over is the server's 1205, which undoes one statement only: the answer says that
 * the whole must be rolled back, and the library does not do it. */
TEST(test_waits_and_1205)
{
    MYSQL *holder = caller_new(&f), *caller = caller_new(&f);
    tl_status status;
    int64_t begun_ms;

    assert_status(row_lock(holder, "wait", TL_ROW_LOCK_BLOCK), TL_GRANTED);
    caller_run(caller, "UPDATE business SET n = 99 WHERE id = 1");
    begun_ms = crew_now_ms();
    status = row_lock(caller, "wait", TL_ROW_LOCK_NOWAIT);
    assert_true(crew_now_ms() - begun_ms < 15000);
    assert_status(status, TL_ROLL_BACK);
    assert_int_equal(tl_status_class(status), TL_CLASS_ROLL_BACK);
    assert_non_null(strstr(tl_error_message(), "another transaction holds the row"));
    assert_int_equal(mysql_errno(caller), 1205);
    begun_ms = crew_now_ms();
    assert_status(row_lock(caller, "wait", 1), TL_ROLL_BACK);
    assert_in_range(crew_now_ms() - begun_ms, 700, 15000);
    /* Blocking: as long as the connection says. */
    caller_run(caller, "SET innodb_lock_wait_timeout = 1");
    begun_ms = crew_now_ms();
    assert_status(row_lock(caller, "wait", TL_ROW_LOCK_BLOCK), TL_ROLL_BACK);
    assert_in_range(crew_now_ms() - begun_ms, 700, 15000);
    /* Still the caller's own transaction, to be rolled back by the caller. */
    assert_int_equal(database_number(caller, "SELECT n FROM business WHERE id = 1"), 99);
    assert_int_equal(database_number(caller, "SELECT @@innodb_lock_wait_timeout"), 1);
    caller_run(caller, "ROLLBACK");
    assert_int_equal(database_number(f.sql, "SELECT n FROM business WHERE id = 1"), 0);
    caller_close(holder);
    caller_close(caller);
}

static void *end_soon(void *argument)
{
    crew_sleep_ms(300);
    caller_run(argument, "COMMIT");
    return NULL;
}

TEST(test_waiters_come_in)
{
    static const int64_t waits[] = {TL_ROW_LOCK_BLOCK, 15};

    for (int i = 0; i < 2; i++) {
        MYSQL *holder = caller_new(&f), *caller = caller_new(&f);
        int64_t begun_ms = crew_now_ms();
        pthread_t thread;

        assert_status(row_lock(holder, "comes", TL_ROW_LOCK_NOWAIT), TL_GRANTED);
        pthread_create(&thread, NULL, end_soon, holder);
        assert_status(row_lock(caller, "comes", waits[i]), TL_GRANTED);
        assert_in_range(crew_now_ms() - begun_ms, 250, 14000);
        pthread_join(thread, NULL);
        caller_close(holder);
        caller_close(caller);
    }
}

static void *lock_second(void *argument)
{
    return (void *)(intptr_t)row_lock(argument, "cross/b", 10);
}

/* Two that cross: the server ends one of them, and that one is told to roll back. */
TEST(test_two_that_cross)
{
    MYSQL *one = caller_new(&f), *two = caller_new(&f);
    tl_status first, second;
    pthread_t thread;
    void *answer;

    assert_status(row_lock(one, "cross/a", TL_ROW_LOCK_NOWAIT), TL_GRANTED);
    assert_status(row_lock(two, "cross/b", TL_ROW_LOCK_NOWAIT), TL_GRANTED);
    pthread_create(&thread, NULL, lock_second, one);
    crew_sleep_ms(100);
    second = row_lock(two, "cross/a", 10);
    if (second != TL_GRANTED)
        caller_run(two, "ROLLBACK");
    pthread_join(thread, &answer);
    first = (tl_status)(intptr_t)answer;
    assert_true((first == TL_GRANTED) != (second == TL_GRANTED));
    assert_status(first == TL_GRANTED ? second : first, TL_ROLL_BACK);
    caller_close(one);
    caller_close(two);
}

/* --------------------------------------------------------------------- the first use -- */

#define AT_ONCE 2
#define FIRST_USES 60

struct first_user {
    pthread_barrier_t *barrier;
    tl_client *client;
    int good;
};

/* In REPEATABLE READ, where a locking read of an absent row locks the gap.  A deadlock would be
 * answered with TL_ROLL_BACK. */
static void *use_first(void *argument)
{
    struct first_user *user = argument;
    MYSQL *caller = database_connect(f.db);

    caller_run(caller, "SET SESSION tx_isolation = 'REPEATABLE-READ', "
                       "idle_transaction_timeout = 60");
    for (int i = 0; i < FIRST_USES; i++) {
        char name[32];

        snprintf(name, sizeof name, "first/%d", i);
        pthread_barrier_wait(user->barrier);
        caller_run(caller, "START TRANSACTION");
        if (tl_row_lock(user->client, name, caller, 20, 0) == TL_GRANTED)
            user->good++;
        else
            print_error("%s: %s\n", name, tl_error_message());
        caller_run(caller, "COMMIT");
    }
    caller_close(caller);
    return NULL;
}

TEST(test_two_first_users_at_once)
{
    struct first_user users[AT_ONCE];
    pthread_t threads[AT_ONCE];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++) {
        users[i] = (struct first_user){&barrier, i ? f.client : f.other, 0};
        pthread_create(&threads[i], NULL, use_first, &users[i]);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(users[i].good, FIRST_USES);
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM row_lock "
                                            "WHERE resource LIKE 'first/%%'"),
                     FIRST_USES);
}

/* While one has its row locked, others make and lock rows before and behind it. */
TEST(test_no_gap_is_locked)
{
    MYSQL *holder = database_connect(f.db);

    caller_run(holder, "SET SESSION tx_isolation = 'REPEATABLE-READ', "
                       "idle_transaction_timeout = 60");
    caller_run(holder, "START TRANSACTION");
    assert_status(row_lock(holder, "gap/5", TL_ROW_LOCK_NOWAIT), TL_GRANTED);
    assert_status(try_row("gap/4"), TL_GRANTED);
    assert_status(try_row("gap/6"), TL_GRANTED);
    assert_status(try_row("gap/55"), TL_GRANTED);
    caller_close(holder);
}

/* ------------------------------------------------------------------------- bad input -- */

TEST(test_bad_input)
{
    char longest[TL_RESOURCE_MAX + 2];
    const char *const names[] = {NULL, "", "with blank", "\xc3\xa4", longest};
    MYSQL *caller = caller_new(&f), *plain = database_connect(f.db);
    long long before = database_number(f.sql, "SELECT COUNT(*) FROM row_lock");

    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_status(row_lock(caller, names[i], 0), TL_INVALID);
    assert_status(row_lock(caller, "bad", -2), TL_INVALID);
    assert_status(row_lock(caller, "bad", TL_ROW_LOCK_WAIT_MAX_S + 1), TL_INVALID);
    assert_status(tl_row_lock(f.client, "bad", caller, 0, 64), TL_INVALID);
    assert_status(tl_row_lock(NULL, "bad", caller, 0, 0), TL_INVALID);
    assert_status(row_lock(NULL, "bad", 0), TL_INVALID);
    assert_status(row_lock(plain, "bad", 0), TL_NO_TRANSACTION);
    caller_run(plain, "START TRANSACTION");
    assert_status(row_lock(plain, "bad", 0), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "idle_transaction_timeout"));
    assert_int_equal(database_number(f.sql, "SELECT COUNT(*) FROM row_lock"), before);
    assert_status(tl_row_lock(f.client, "bad", plain, 0, TL_GUARD_ANY_IDLE), TL_GRANTED);
    caller_close(caller);
    caller_close(plain);
}

/* Names that a caller's sql_mode could read in another way. */
TEST(test_odd_names)
{
    static const char *const names[] = {"it's", "back\\slash", "\\'", "a;b--", "%_`\""};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (int mode = 0; mode < 2; mode++) {
            MYSQL *caller = caller_new(&f);

            if (mode == 1)
                caller_run(caller, "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'");
            assert_status(row_lock(caller, names[i], 5), TL_GRANTED);
            assert_status(try_row(names[i]), TL_ROLL_BACK);
            assert_status(row_lock(caller, names[i], TL_ROW_LOCK_BLOCK), TL_GRANTED);
            caller_close(caller);
        }
}

TESTS_OF(row_lock, setup, teardown)
