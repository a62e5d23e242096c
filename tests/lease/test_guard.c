/* The guard: what it refuses, what it keeps, and the late holder who cannot commit. */
#include "fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/admin.h>

#include <signal.h>
#include <sys/wait.h>

/* Who is to die does so soon; who looks on must not, on however slow a machine, nor begin anew to
 * count because two beats of its own were too far apart. */
#define LASTING "beat_ms=1s\nsession_ms=30s\n"
#define MORTAL "beat_ms=100\nsession_ms=4s\n"

static fixture f;

FIXTURE(setup)
{
    fixture_open(&f, LASTING);
    database_set(f.db, MORTAL); /* of the children's clients */
    database_run(f.sql, "CREATE TABLE account (id INT PRIMARY KEY, cents BIGINT NOT NULL)");
}

FIXTURE(teardown)
{
    fixture_close(&f);
}

static void account_set(long long cents)
{
    database_run(f.sql, "REPLACE INTO account VALUES (1, %lld)", cents);
}

static long long account(void)
{
    return database_number(f.sql, "SELECT cents FROM account WHERE id = 1");
}

TEST(test_possession_is_kept_until_the_commit)
{
    tl_mutex_options options = lease_options(4000);
    MYSQL *caller = caller_new(&f);
    tl_mutex *mutex, *next;

    account_set(100);
    mutex = locked(f.client, "a1", &options);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    caller_run(caller, "UPDATE account SET cents = cents - 30 WHERE id = 1");
    while (tl_mutex_remaining_ms(mutex) > 0)
        crew_sleep_ms(10);
    crew_sleep_ms(100);
    /* The lease is over, and still nobody gets in. */
    options = lease_options(0);
    next = mutex_new(f.other, "a1", &options);
    assert_status(tl_mutex_lock(next, 0), TL_BUSY);
    assert_true(tl_mutex_view(next)->being_decided);
    assert_status(tl_resource_unlock(f.other, "a1", tl_mutex_fence(mutex, NULL), "ann", "hangs"),
                  TL_BUSY);
    caller_run(caller, "COMMIT");
    assert_status(tl_mutex_lock(next, PATIENCE_MS), TL_GRANTED);
    assert_int_equal(account(), 70);
    mysql_close(caller);
    tl_mutex_free(mutex);
    tl_mutex_free(next);
}

TEST(test_a_late_holder_must_roll_back)
{
    tl_mutex_options options = lease_options(100);
    tl_mutex *mutex = locked(f.client, "a2", &options), *next;
    MYSQL *caller = caller_new(&f);

    /* Late by its own clock, before anybody took over. */
    crew_sleep_ms(150);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_ROLL_BACK);
    next = mutex_new(f.other, "a2", &options);
    assert_status(tl_mutex_lock(next, PATIENCE_MS), TL_GRANTED);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_ROLL_BACK);
    assert_int_equal(tl_status_class(TL_ROLL_BACK), TL_CLASS_ROLL_BACK);
    tl_mutex_free(next);
    assert_status(tl_mutex_unlock(mutex), TL_LOST);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_ROLL_BACK);
    mysql_close(caller);
    tl_mutex_free(mutex);
}

/* Taken away behind its back: only the server knows. */
TEST(test_a_lock_that_was_taken_away)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "a3", &options);
    MYSQL *caller = caller_new(&f);

    assert_status(tl_resource_unlock(f.other, "a3", tl_mutex_fence(mutex, NULL), "ann", "test"),
                  TL_OK);
    assert_true(tl_mutex_remaining_ms(mutex) > 0);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_ROLL_BACK);
    mysql_close(caller);
    tl_mutex_free(mutex);
}

TEST(test_connections_that_are_refused)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "a4", &options), *idle;
    MYSQL *caller = database_connect(f.db);
    long long rev = database_number(f.sql, "SELECT rev FROM resource_lock "
                                           "WHERE resource = 'a4'");

    assert_status(tl_mutex_guard(mutex, NULL, 0), TL_INVALID);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_NO_TRANSACTION);
    database_run(caller, "START TRANSACTION");
    assert_status(tl_mutex_guard(mutex, caller, 64), TL_INVALID);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_INVALID);
    assert_non_null(strstr(tl_error_message(), "idle_transaction_timeout"));
    assert_status(tl_mutex_guard(mutex, caller, TL_GUARD_ANY_IDLE), TL_OK);
    database_run(caller, "COMMIT");
    assert_status(tl_mutex_guard(mutex, caller, TL_GUARD_ANY_IDLE), TL_NO_TRANSACTION);
    database_run(caller, "SET autocommit = 0, idle_transaction_timeout = 60");
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    /* Never committed, rolled back or SET by the guard. */
    assert_int_equal(database_number(caller, "SELECT @@in_transaction"), 1);
    assert_int_equal(database_number(caller, "SELECT @@idle_transaction_timeout"), 60);
    database_run(caller, "ROLLBACK");
    idle = mutex_new(f.client, "a4-idle", &options);
    assert_status(tl_mutex_guard(idle, caller, 0), TL_NOT_HELD);
    assert_status(tl_mutex_guard(NULL, caller, 0), TL_INVALID);
    tl_mutex_free(idle);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_RELEASED);
    assert_int_equal(database_number(f.sql, "SELECT rev FROM resource_lock "
                                            "WHERE resource = 'a4'"),
                     rev + 1);
    mysql_close(caller);
    tl_mutex_free(mutex);
}

/* The server undid the transaction, and the caller has not noticed. */
TEST(test_a_transaction_that_is_gone)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "a5", &options);
    MYSQL *one = caller_new(&f), *two = caller_new(&f);
    long long deadlocks = server_counter(&f, "Innodb_deadlocks");

    account_set(1);
    database_run(f.sql, "REPLACE INTO account VALUES (2, 1)");
    caller_run(one, "UPDATE account SET cents = 2 WHERE id = 1");
    caller_run(two, "UPDATE account SET cents = 2 WHERE id = 2");
    assert_int_equal(mysql_send_query(one, "UPDATE account SET cents = 3 WHERE id = 2", 41), 0);
    crew_sleep_ms(100);
    if (mysql_query(two, "UPDATE account SET cents = 3 WHERE id = 1") == 0) {
        MYSQL *swap = one;

        one = two;
        two = swap;
        assert_int_not_equal(mysql_read_query_result(two), 0);
    }
    assert_int_equal(mysql_errno(two), 1213);
    /* The counter that the test of transfers relies on does count. */
    assert_true(server_counter(&f, "Innodb_deadlocks") > deadlocks);
    assert_status(tl_mutex_guard(mutex, two, 0), TL_NO_TRANSACTION);
    mysql_close(one);
    mysql_close(two);
    tl_mutex_free(mutex);
}

static uint64_t beats_of(const tl_client *client)
{
    tl_stats stats = {.version = TL_STATS_VERSION};

    assert_status(tl_client_stats(client, &stats), TL_OK);
    return stats.beats;
}

/* Whatever the isolation, an open guarded transaction stops neither heartbeats nor the locks of
 * others. */
static void guard_at(const char *isolation)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "a6", &options);
    MYSQL *caller = database_connect(f.db);
    int64_t until_ms = crew_now_ms() + PATIENCE_MS;
    uint64_t beats;

    database_run(caller,
                 "SET idle_transaction_timeout = 120;"
                 "SET TRANSACTION ISOLATION LEVEL %s; START TRANSACTION",
                 isolation);
    database_number(caller, "SELECT COUNT(*) FROM account");
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    beats = beats_of(f.client);
    crew_sleep_ms(3000);
    while (beats_of(f.client) < beats + 3 && crew_now_ms() < until_ms)
        crew_sleep_ms(10);
    assert_true(beats_of(f.client) >= beats + 3);
    assert_true(tl_client_alive_ms(f.client) > 500);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    assert_status(try_once(f.other, "a6"), TL_BUSY);
    assert_status(try_once(f.other, "a6-other"), TL_GRANTED);
    database_run(caller, "COMMIT");
    mysql_close(caller);
    tl_mutex_free(mutex);
}

TEST(test_isolation_levels)
{
    guard_at("REPEATABLE READ");
    guard_at("SERIALIZABLE");
}

/* ----------------------------------------------------------------------- zombies -- */

struct zombie {
    int64_t lease_ms; /* 0: renewed by the session */
    int guarded;
    pid_t pid;
    int to_parent[2], to_child[2];
};

/* In the child: locks, looks at the balance, sleeps like the dead, then pays.  It exits with 0 when
 * it committed, 10 when the guard told it to roll back. */
static _Noreturn void live_as_zombie(const struct zombie *z)
{
    tl_mutex_options options = lease_options(z->lease_ms);
    tl_client *client = client_new(&f);
    MYSQL *caller = caller_new(&f);
    tl_mutex *mutex = locked(client, "money", &options);
    char byte = 'x';

    /* It looks, and may still pay. */
    if (tl_mutex_remaining_ms(mutex) <= 0 || write(z->to_parent[1], &byte, 1) != 1 ||
        read(z->to_child[0], &byte, 1) != 1)
        _exit(99);
    if (z->guarded && tl_mutex_guard(mutex, caller, 0) != TL_OK)
        _exit(10);
    if (mysql_query(caller, "UPDATE account SET cents = cents - 40 WHERE id = 1") != 0 ||
        mysql_query(caller, "COMMIT") != 0)
        _exit(98);
    _exit(0);
}

static void start_zombie(struct zombie *z)
{
    char byte;

    assert_int_equal(pipe(z->to_parent) | pipe(z->to_child), 0);
    z->pid = fork();
    assert_true(z->pid >= 0);
    if (z->pid == 0)
        live_as_zombie(z);
    assert_int_equal(read(z->to_parent[0], &byte, 1), 1);
    /* From here on it is dead for everybody else. */
    assert_int_equal(kill(z->pid, SIGSTOP), 0);
    assert_int_equal(write(z->to_child[1], &byte, 1), 1);
}

static int wake_zombie(struct zombie *z)
{
    int status;

    assert_int_equal(kill(z->pid, SIGCONT), 0);
    assert_int_equal(waitpid(z->pid, &status, 0), z->pid);
    for (int end = 0; end < 2; end++) {
        close(z->to_parent[end]);
        close(z->to_child[end]);
    }
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* 40 are paid once, whoever pays them; the account has 50. */
static long long pay_beside_a_zombie(int64_t lease_ms, int guarded, int *zombie_code)
{
    struct zombie z = {.lease_ms = lease_ms, .guarded = guarded};
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex;
    MYSQL *caller;

    account_set(50);
    start_zombie(&z);
    mutex = mutex_new(f.client, "money", &options);
    assert_status(tl_mutex_lock(mutex, PATIENCE_MS), TL_GRANTED);
    caller = caller_new(&f);
    assert_status(tl_mutex_guard(mutex, caller, 0), TL_OK);
    caller_run(caller, "UPDATE account SET cents = cents - 40 WHERE id = 1");
    caller_run(caller, "COMMIT");
    mysql_close(caller);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    *zombie_code = wake_zombie(&z);
    return account();
}

TEST(test_a_zombie_cannot_commit_money)
{
    int code;

    assert_int_equal(pay_beside_a_zombie(3000, 1, &code), 10);
    assert_int_equal(code, 10);
    assert_int_equal(pay_beside_a_zombie(0, 1, &code), 10);
    assert_int_equal(code, 10);
}

/* The same without the guard pays twice: what the guard is for. */
TEST(test_without_the_guard_it_pays_twice)
{
    int code;

    assert_int_equal(pay_beside_a_zombie(3000, 0, &code), -30);
    assert_int_equal(code, 0);
}

TESTS_OF(guard, setup, teardown)
