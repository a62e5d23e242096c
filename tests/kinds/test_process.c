/* What a fork, a thread that ends, a process that dies or sleeps, and a handle that is freed leave
 * behind; and what the janitor of read-write locks does about it. */
#include "kinds/kinds.h"

#include "sql_text.h"
#include "support/crew.h"
#include "support/tap.h"
#include "support/theme.h"

#include <tradelock/lane.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define WAITS "ask_wait_min_ms=5ms\nask_wait_max_ms=20ms\n"

static fixture f;

FIXTURE(setup)
{
    /* Who is to die does so soon; who looks on must not, on however slow a machine, nor begin anew
     * to count because two beats of its own were too far apart. */
    fixture_open(&f, "beat_ms=1s\nsession_ms=30s\n" WAITS);
    database_set(f.db, "beat_ms=100\nsession_ms=4s\n" WAITS); /* of other clients */
    database_run(f.sql, "CREATE TABLE business (id INT PRIMARY KEY, n INT NOT NULL);"
                        "INSERT INTO business VALUES (0, 0), (1, 0)");
}

FIXTURE(teardown)
{
    assert_holders_whole(&f, 0);
    fixture_close(&f);
}

static int exit_code_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ------------------------------------------------------------------------ both: fork -- */

/* In the child: the number of the first call that did not answer as it must; 0 when all did. */
static int use_parents_handle(any_lock lock)
{
    tl_client *client;
    tl_status busy;

    if (any_take(lock, 0) != TL_WRONG_PROCESS)
        return 1;
    if (any_unlock(lock) != TL_WRONG_PROCESS)
        return 2;
    if (any_renew(lock, 1000) != TL_WRONG_PROCESS)
        return 3;
    if (any_guard(lock, NULL) != TL_WRONG_PROCESS)
        return 4;
    if (any_remaining_ms(lock) != 0)
        return 5;
    if (tested == RW && (tl_rw_read(lock.rw, 0) != TL_WRONG_PROCESS ||
                         tl_rw_downgrade(lock.rw) != TL_WRONG_PROCESS ||
                         tl_rw_done(lock.rw, NULL, 0) != TL_WRONG_PROCESS))
        return 6;
    any_free(lock);
    client = client_new(&f);
    busy = any_try(client, "forked");
    tl_client_close(client);
    return busy == TL_BUSY ? 0 : 7;
}

static void test_fork_with_a_lock_held(void **state)
{
    any_lock lock = any_taken(f.client, "forked", 0);
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(use_parents_handle(lock));
    assert_int_equal(exit_code_of(pid), 0);
    assert_true(any_remaining_ms(lock) > 0);
    assert_status(any_try(f.other, "forked"), TL_BUSY);
    assert_status(any_unlock(lock), TL_OK);
    any_free(lock);
}

/* --------------------------------------------------------------------- both: threads -- */

static void *take_and_end(void *lock)
{
    return (void *)(intptr_t)any_take(*(any_lock *)lock, 0);
}

static tl_status take_in_a_thread(any_lock lock)
{
    pthread_t thread;
    void *status;

    pthread_create(&thread, NULL, take_and_end, &lock);
    pthread_join(thread, &status);
    return (tl_status)(intptr_t)status;
}

static void test_a_thread_that_ended(void **state)
{
    any_lock lock = any_new(f.client, "thread", 0);

    (void)state;
    assert_status(take_in_a_thread(lock), TL_GRANTED);
    assert_status(any_try(f.other, "thread"), TL_BUSY);
    if (tested == RW)
        assert_status(tl_rw_downgrade(lock.rw), TL_OK);
    assert_status(any_unlock(lock), TL_OK);
    any_free(lock);
}

/* ------------------------------------------------------------------- both: processes -- */

struct holder {
    int proves_nothing;
    pid_t pid;
    int to_parent[2], to_child[2];
};

/* Of a mutex. */
static atomic_int told;

static void on_loss(void *context, const char *resource, tl_status why)
{
    (void)context;
    (void)resource;
    atomic_store(&told, (int)why);
}

static any_lock hold_at_once(const char *resource, int writes, int64_t lease_ms)
{
    tl_client *client = client_new(&f);
    tl_mutex_options options = lease_options(lease_ms);

    options.loss = on_loss;
    if (tested == MUTEX)
        return (any_lock){.mutex = locked(client, resource, &options)};
    if (writes)
        return (any_lock){.rw = writing(client, resource, lease_ms)};
    return (any_lock){.rw = reading(client, resource, lease_ms)};
}

/* In the child: holds, and, when it is told to go on, does its business.  20: the transaction was
 * refused and rolled back, and the unlock says that the lock was lost; so was its callback told.
 * Without a proof it commits, and answers 0. */
static _Noreturn void hold(struct holder *h, const char *resource, int writes, int64_t lease_ms)
{
    any_lock lock = hold_at_once(resource, writes, lease_ms);
    uint64_t fence = any_fence(lock);
    MYSQL *caller = caller_new(&f);
    char byte;

    caller_run(caller, writes ? "UPDATE business SET n = 99 WHERE id = 1"
                              : "UPDATE business SET n = 99 WHERE id = 0");
    if (write(h->to_parent[1], &fence, sizeof fence) != (ssize_t)sizeof fence ||
        read(h->to_child[0], &byte, 1) != 1)
        _exit(99);
    if (h->proves_nothing)
        _exit(mysql_query(caller, "COMMIT") == 0 ? 0 : 95);
    if (tested == MUTEX) {
        AWAIT_WHILE(atomic_load(&told) == 0);
        if (any_remaining_ms(lock) != 0)
            _exit(98);
    }
    if ((tested == RW ? tl_rw_done(lock.rw, caller, 0) : any_guard(lock, caller)) != TL_ROLL_BACK)
        _exit(97);
    caller_run(caller, "ROLLBACK");
    _exit(any_unlock(lock) == TL_LOST ? 20 : 96);
}

static uint64_t start_holder(struct holder *h, const char *resource, int writes, int64_t lease_ms)
{
    uint64_t fence = 0;

    assert_int_equal(pipe(h->to_parent), 0);
    assert_int_equal(pipe(h->to_child), 0);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0)
        hold(h, resource, writes, lease_ms);
    assert_int_equal(read(h->to_parent[0], &fence, sizeof fence), sizeof fence);
    return fence;
}

static void close_pipes(struct holder *h)
{
    for (int i = 0; i < 2; i++) {
        close(h->to_parent[i]);
        close(h->to_child[i]);
    }
}

static void kill_holder(struct holder *h)
{
    kill(h->pid, SIGKILL);
    assert_int_equal(exit_code_of(h->pid), 128 + SIGKILL);
    close_pipes(h);
}

/* When the holder's session is seen dead, or its lease is over. */
static any_lock take_over(const char *resource, uint64_t old_fence)
{
    any_lock lock = any_new(f.client, resource, 0);

    assert_status(any_take(lock, PATIENCE_MS), TL_GRANTED);
    assert_true(any_fence(lock) > old_fence);
    return lock;
}

/* Renewed by its session, or with a lease of its own, which outlives its process. */
static void test_a_holder_that_is_killed(void **state)
{
    static const int64_t leases_ms[] = {0, 2500};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct holder h = {0};
        uint64_t fence = start_holder(&h, "dying", 1, leases_ms[i]);

        kill_holder(&h);
        any_free(take_over("dying", fence));
    }
}

/* A zombie: stopped for longer than its lease or its session lives, and woken in the middle of its
 * transaction. */
static void test_a_zombies_business_fails(void **state)
{
    static const int64_t leases_ms[] = {0, 500};
    static const char *const names[] = {"zombie/session", "zombie/lease"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct holder h = {0};
        uint64_t fence = start_holder(&h, names[i], 1, leases_ms[i]);
        any_lock next;

        kill(h.pid, SIGSTOP);
        next = take_over(names[i], fence);
        kill(h.pid, SIGCONT);
        assert_int_equal(write(h.to_child[1], "x", 1), 1);
        assert_int_equal(exit_code_of(h.pid), 20);
        close_pipes(&h);
        assert_int_equal(database_number(f.sql, "SELECT SUM(n) FROM business"), 0);
        assert_true(any_remaining_ms(next) > 0);
        assert_status(any_unlock(next), TL_OK);
        any_free(next);
    }
}

/* What the proof is for: without it the zombie writes beside the next holder. */
static void test_without_the_proof_a_zombie_writes(void **state)
{
    struct holder h = {.proves_nothing = 1};
    uint64_t fence = start_holder(&h, "zombie/unproven", 1, 500);
    any_lock next;

    (void)state;
    kill(h.pid, SIGSTOP);
    next = take_over("zombie/unproven", fence);
    kill(h.pid, SIGCONT);
    assert_int_equal(write(h.to_child[1], "x", 1), 1);
    assert_int_equal(exit_code_of(h.pid), 0);
    close_pipes(&h);
    assert_int_equal(database_number(f.sql, "SELECT SUM(n) FROM business"), 99);
    assert_true(any_remaining_ms(next) > 0);
    database_run(f.sql, "UPDATE business SET n = 0");
    any_free(next);
}

/* A client that is closed leaves nothing locked that its session renewed. */
static void test_a_client_that_is_closed(void **state)
{
    tl_client *client = client_new(&f);
    any_lock lock = any_taken(client, "closed", 0);

    (void)state;
    any_free(lock);
    tl_client_close(client);
    assert_status(any_take_when_free(f.client, "closed"), TL_GRANTED);
}

/* -------------------------------------------------------- a mutex: loss and re-entry -- */

static void count_loss(void *context, const char *resource, tl_status why)
{
    (void)resource;
    (void)why;
    atomic_fetch_add((atomic_int *)context, 1);
}

/* The watcher's thread does not exist in the child; freeing there must not wait for it. */
static void test_fork_with_a_watched_lock(void **state)
{
    atomic_int losses = 0;
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex;
    pid_t pid;

    (void)state;
    options.loss = count_loss;
    options.loss_context = &losses;
    mutex = locked(f.client, "forked", &options);
    pid = fork();
    if (pid == 0) {
        alarm(20);
        tl_mutex_free(mutex);
        tl_client_close(f.client);
        _exit(0);
    }
    assert_int_equal(exit_code_of(pid), 0);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    assert_int_equal(losses, 0);
}

/* Re-entrant by thread: nobody inherits it, and its handle can still be freed. */
static void test_a_thread_that_ended_leaves_its_handle(void **state)
{
    tl_mutex_options options = lease_options(0);
    any_lock lock = {0};

    (void)state;
    options.flags = TL_MUTEX_BY_THREAD;
    lock.mutex = mutex_new(f.client, "thread", &options);
    assert_status(take_in_a_thread(lock), TL_GRANTED);
    assert_status(any_take(lock, 0), TL_WRONG_STATE);
    assert_status(any_unlock(lock), TL_NOT_HELD);
    assert_status(any_try(f.client, "thread"), TL_BUSY);
    any_free(lock);
    assert_status(any_try(f.client, "thread"), TL_GRANTED);
}

/* Two threads share handles of one lock by turns: a hold that another handle owns is left to it. */
static void test_handles_change_threads(void **state)
{
    tl_mutex_options options = lease_options(0);
    any_lock first = {0}, second = {0};

    (void)state;
    options.flags = TL_MUTEX_BY_THREAD;
    first.mutex = locked(f.client, "by-turns", &options);
    second.mutex = locked(f.client, "by-turns", &options);
    assert_status(any_unlock(first), TL_OK);
    assert_status(take_in_a_thread(first), TL_BUSY);
    assert_int_equal(tl_mutex_depth(second.mutex), 1);
    assert_status(any_unlock(second), TL_OK);
    assert_status(take_in_a_thread(first), TL_GRANTED);
    assert_status(any_take(second, 0), TL_BUSY);
    any_free(first);
    assert_status(any_take(second, 0), TL_GRANTED);
    any_free(second);
}

struct freeing {
    tl_mutex *mutex;
    tap *line;
};

/* The unlock is the only request that this thread makes. */
static void *free_it(void *context)
{
    const struct freeing *self = context;

    tap_rule(self->line, tl_thread_uuid(), 0, TAP_DELAY_ANSWER, 0);
    tl_mutex_free(self->mutex);
    return NULL;
}

/* The unlock is carried out, and its answer is late by several beats: the row carries another
 * token, which is no loss. */
static void test_freeing_is_no_loss(void **state)
{
    tap *line = tap_start(server_socket(server_shared()));
    char *file = database_option_file_at(f.db, tap_socket(line), "beat_ms=20ms\n");
    tl_client_options wanted = TL_CLIENT_OPTIONS_INIT;
    tl_mutex_options options = lease_options(0);
    tl_client *client = NULL;
    struct freeing freeing = {.line = line};
    atomic_int losses = 0;
    pthread_t thread;

    (void)state;
    wanted.config_file = file;
    assert_status(tl_client_open(&client, &wanted), TL_OK);
    options.loss = count_loss;
    options.loss_context = &losses;
    freeing.mutex = locked(client, "freed", &options);
    assert_int_equal(pthread_create(&thread, NULL, free_it, &freeing), 0);
    while (database_number(f.sql, "SELECT COUNT(*) FROM resource_lock WHERE resource = "
                                  "'freed' AND status = 'U'") == 0)
        crew_sleep_ms(1);
    crew_sleep_ms(200);
    tap_release(line);
    pthread_join(thread, NULL);
    assert_true(tap_done(line));
    assert_int_equal(losses, 0);
    tl_client_close(client);
    tap_free(line);
    remove(file);
    free(file);
}

/* ------------------------------------------------ a read-write lock: the janitor -- */

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

/* One reader and one writer die; living ones beside them are not touched, whichever way they are
 * renewed. */
static void test_the_janitor_frees_the_dead_alone(void **state)
{
    tl_rw *session = reading(f.client, "dead/read", 0),
          *lease = reading(f.other, "dead/read", 50000), *writer = writing(f.client, "alive", 0);
    struct holder reader = {0}, dead_writer = {0};

    (void)state;
    start_holder(&reader, "dead/read", 0, 0);
    start_holder(&dead_writer, "dead/write", 1, 0);
    kill_holder(&reader);
    kill_holder(&dead_writer);
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
    struct holder h = {0};

    (void)state;
    await_freed("late");
    assert_status(tl_rw_unlock(late), TL_LOST);
    tl_rw_free(late);
    start_holder(&h, "outlives", 1, 8000);
    kill_holder(&h);
    crew_sleep_ms(3000);
    assert_status(try_read(f.client, "outlives"), TL_BUSY);
    await_freed("outlives");
}

/* tl_reap() is the same, for a machine on which no service runs. */
static void test_reap(void **state)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_client *client = NULL;
    tl_reaped reaped = {0, 0, 0, 0};
    tl_rw *late, *living = writing(f.client, "reap/alive", 0);

    (void)state;
    options.config_file = database_option_file(f.db);
    options.flags = TL_CLIENT_NO_SESSION;
    assert_status(tl_client_open(&client, &options), TL_OK);
    /* The services' own janitors run too; whoever comes first frees it, once. */
    late = writing(f.client, "reap/late", 1000);
    AWAIT_WHILE(tl_reap(client, &reaped) == TL_OK && reaped.freed == 0 &&
                steps_of("reap/late", "reap") == 0);
    assert_true(reaped.freed <= 1);
    assert_int_equal(steps_of("reap/late", "reap"), 1);
    assert_int_equal(steps_of("reap/alive", "reap"), 0);
    tl_client_close(client);
    tl_rw_free(late);
    tl_rw_free(living);
}

TEST_MAIN(process)
{
    const struct CMUnitTest mutex_tests[] = {
        cmocka_unit_test(test_fork_with_a_lock_held),
        cmocka_unit_test(test_a_thread_that_ended),
        cmocka_unit_test(test_a_holder_that_is_killed),
        cmocka_unit_test(test_a_zombies_business_fails),
        cmocka_unit_test(test_without_the_proof_a_zombie_writes),
        cmocka_unit_test(test_a_client_that_is_closed),
        cmocka_unit_test(test_fork_with_a_watched_lock),
        cmocka_unit_test(test_a_thread_that_ended_leaves_its_handle),
        cmocka_unit_test(test_handles_change_threads),
        cmocka_unit_test(test_freeing_is_no_loss),
    };
    const struct CMUnitTest rw_tests[] = {
        cmocka_unit_test(test_fork_with_a_lock_held),
        cmocka_unit_test(test_a_thread_that_ended),
        cmocka_unit_test(test_a_holder_that_is_killed),
        cmocka_unit_test(test_a_zombies_business_fails),
        cmocka_unit_test(test_without_the_proof_a_zombie_writes),
        cmocka_unit_test(test_a_client_that_is_closed),
        cmocka_unit_test(test_the_janitor_frees_the_dead_alone),
        cmocka_unit_test(test_the_newborn_are_not_the_dead),
        cmocka_unit_test(test_leases_and_the_janitor),
        cmocka_unit_test(test_reap),
    };

    kind_choose(argc, argv);
    return tested == RW ? server_run_tests(rw_tests, setup, teardown)
                        : server_run_tests(mutex_tests, setup, teardown);
}
