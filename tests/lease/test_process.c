/* What a fork, a thread that ends, a process that dies or sleeps, and a handle that is freed leave
 * behind. */
#include "fixture.h"

#include "support/tap.h"
#include "support/crew.h"
#include "support/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static fixture f;

static int setup(void **state)
{
    (void)state;
    /* Who is to die does so soon; who looks on must not, on however slow a machine, nor begin anew
     * to count because two beats of its own were too far apart. */
    fixture_open(&f, "beat_ms=1s\nsession_ms=30s\n");
    database_set(f.db, "beat_ms=100\nsession_ms=4s\n"); /* of the children's clients */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&f);
    return 0;
}

static int exit_code_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---------------------------------------------------------------------------- fork -- */

/* In the child: the number of the first call that did not answer as it must; 0 when all did. */
static int use_parents_handle(tl_mutex *mutex)
{
    tl_client *client;
    tl_status busy;

    if (tl_mutex_lock(mutex, 0) != TL_WRONG_PROCESS)
        return 1;
    if (tl_mutex_unlock(mutex) != TL_WRONG_PROCESS)
        return 2;
    if (tl_mutex_renew(mutex, 1000) != TL_WRONG_PROCESS)
        return 3;
    if (tl_mutex_guard(mutex, NULL, 0) != TL_WRONG_PROCESS)
        return 4;
    if (tl_mutex_remaining_ms(mutex) != 0)
        return 5;
    tl_mutex_free(mutex);
    client = client_new(&f);
    busy = try_once(client, "forked");
    tl_client_close(client);
    return busy == TL_BUSY ? 0 : 6;
}

static void test_fork_with_a_lock_held(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = locked(f.client, "forked", &options);
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(use_parents_handle(mutex));
    assert_int_equal(exit_code_of(pid), 0);
    assert_true(tl_mutex_remaining_ms(mutex) > 0);
    assert_status(try_once(f.other, "forked"), TL_BUSY);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
}

static void never_called(void *context, const char *resource, tl_status why)
{
    (void)resource;
    (void)why;
    ++*(int *)context;
}

/* The watcher's thread does not exist in the child; freeing there must not wait for it. */
static void test_fork_with_a_watched_lock(void **state)
{
    int calls = 0;
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex;
    pid_t pid;

    (void)state;
    options.loss = never_called;
    options.loss_context = &calls;
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
    assert_int_equal(calls, 0);
}

/* ------------------------------------------------------------------------- threads -- */

static void *lock_and_end(void *argument)
{
    tl_mutex *mutex = argument;

    return (void *)(intptr_t)tl_mutex_lock(mutex, 0);
}

static void lock_in_a_thread(tl_mutex *mutex)
{
    pthread_t thread;
    void *status;

    pthread_create(&thread, NULL, lock_and_end, mutex);
    pthread_join(thread, &status);
    assert_status((tl_status)(intptr_t)status, TL_GRANTED);
}

static void test_a_thread_that_ended(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(f.client, "thread", &options);

    (void)state;
    lock_in_a_thread(mutex);
    assert_status(try_once(f.other, "thread"), TL_BUSY);
    assert_status(tl_mutex_unlock(mutex), TL_OK);
    tl_mutex_free(mutex);
    /* Re-entrant by thread: nobody inherits it, and its handle can still be freed. */
    options.flags = TL_MUTEX_BY_THREAD;
    mutex = mutex_new(f.client, "thread", &options);
    lock_in_a_thread(mutex);
    assert_status(tl_mutex_lock(mutex, 0), TL_WRONG_STATE);
    assert_status(tl_mutex_unlock(mutex), TL_NOT_HELD);
    assert_status(try_once(f.client, "thread"), TL_BUSY);
    tl_mutex_free(mutex);
    assert_status(try_once(f.client, "thread"), TL_GRANTED);
}

/* Two threads share handles of one lock by turns: a hold that another handle owns is left to it. */
static void test_handles_change_threads(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *first, *second;

    (void)state;
    options.flags = TL_MUTEX_BY_THREAD;
    first = locked(f.client, "by-turns", &options);
    second = locked(f.client, "by-turns", &options);
    assert_status(tl_mutex_unlock(first), TL_OK);
    {
        pthread_t thread;
        void *status;

        pthread_create(&thread, NULL, lock_and_end, first);
        pthread_join(thread, &status);
        assert_status((tl_status)(intptr_t)status, TL_BUSY);
    }
    assert_int_equal(tl_mutex_depth(second), 1);
    assert_status(tl_mutex_unlock(second), TL_OK);
    lock_in_a_thread(first);
    assert_status(tl_mutex_lock(second, 0), TL_BUSY);
    tl_mutex_free(first);
    assert_status(tl_mutex_lock(second, 0), TL_GRANTED);
    tl_mutex_free(second);
}

/* ----------------------------------------------------------------------- processes -- */

struct holder {
    pid_t pid;
    int to_parent[2];
};

static atomic_int told;

static void on_loss(void *context, const char *resource, tl_status why)
{
    (void)context;
    (void)resource;
    atomic_store(&told, (int)why);
}

/* In the child: holds until it is killed, or until it is told of its loss; then exits with 20 when
 * its unlock answers TL_LOST. */
static _Noreturn void hold(int64_t lease_ms, int to_parent)
{
    tl_mutex_options options = lease_options(lease_ms);
    tl_client *client = client_new(&f);
    tl_mutex *mutex;
    uint64_t fence;

    options.loss = on_loss;
    mutex = locked(client, "dying", &options);
    fence = tl_mutex_fence(mutex, NULL);
    if (write(to_parent, &fence, sizeof fence) != (ssize_t)sizeof fence)
        _exit(99);
    for (int i = 0; i < PATIENCE_MS / 10 && atomic_load(&told) == 0; i++)
        crew_sleep_ms(10);
    if (tl_mutex_remaining_ms(mutex) != 0)
        _exit(98);
    _exit(tl_mutex_unlock(mutex) == TL_LOST ? 20 : 97);
}

static uint64_t start_holder(struct holder *h, int64_t lease_ms)
{
    uint64_t fence = 0;

    assert_int_equal(pipe(h->to_parent), 0);
    h->pid = fork();
    assert_true(h->pid >= 0);
    if (h->pid == 0)
        hold(lease_ms, h->to_parent[1]);
    close(h->to_parent[1]);
    assert_int_equal(read(h->to_parent[0], &fence, sizeof fence), sizeof fence);
    close(h->to_parent[0]);
    return fence;
}

/* When the holder's session is seen dead, or its lease is over. */
static void take_over(uint64_t old_fence)
{
    tl_mutex_options options = lease_options(0);
    tl_mutex *mutex = mutex_new(f.client, "dying", &options);

    assert_status(tl_mutex_lock(mutex, 60000), TL_GRANTED);
    assert_true(tl_mutex_fence(mutex, NULL) > old_fence);
    tl_mutex_free(mutex);
}

static void test_a_holder_that_is_killed(void **state)
{
    struct holder h;
    uint64_t fence = start_holder(&h, 0);

    (void)state;
    kill(h.pid, SIGKILL);
    assert_int_equal(exit_code_of(h.pid), 128 + SIGKILL);
    take_over(fence);
    /* A lease of its own outlives its process. */
    fence = start_holder(&h, 2500);
    kill(h.pid, SIGKILL);
    assert_int_equal(exit_code_of(h.pid), 128 + SIGKILL);
    take_over(fence);
}

static void test_a_holder_that_sleeps(void **state)
{
    static const int64_t leases_ms[] = {0, 800};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct holder h;
        uint64_t fence = start_holder(&h, leases_ms[i]);

        kill(h.pid, SIGSTOP);
        take_over(fence);
        kill(h.pid, SIGCONT);
        assert_int_equal(exit_code_of(h.pid), 20);
    }
}

/* A client that is closed leaves nothing locked that its session renewed. */
static void test_a_client_that_is_closed(void **state)
{
    tl_mutex_options options = lease_options(0);
    tl_client *client = client_new(&f);
    tl_mutex *mutex = locked(client, "closed", &options);

    (void)state;
    tl_mutex_free(mutex);
    tl_client_close(client);
    assert_status(try_once(f.client, "closed"), TL_GRANTED);
}

/* ----------------------------------------------------- freed, and the watcher looks -- */

static atomic_int losses;

static void count_loss(void *context, const char *resource, tl_status why)
{
    (void)context;
    (void)resource;
    (void)why;
    atomic_fetch_add(&losses, 1);
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
    pthread_t thread;

    (void)state;
    wanted.config_file = file;
    assert_status(tl_client_open(&client, &wanted), TL_OK);
    options.loss = count_loss;
    freeing.mutex = locked(client, "freed", &options);
    assert_int_equal(pthread_create(&thread, NULL, free_it, &freeing), 0);
    while (database_number(f.sql, "SELECT COUNT(*) FROM resource_lock WHERE resource = "
                                  "'freed' AND status = 'U'") == 0)
        crew_sleep_ms(1);
    crew_sleep_ms(200);
    tap_release(line);
    pthread_join(thread, NULL);
    assert_true(tap_done(line));
    assert_int_equal(atomic_load(&losses), 0);
    tl_client_close(client);
    tap_free(line);
    remove(file);
    free(file);
}

TEST_MAIN(process)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_with_a_lock_held),
        cmocka_unit_test(test_fork_with_a_watched_lock),
        cmocka_unit_test(test_a_thread_that_ended),
        cmocka_unit_test(test_handles_change_threads),
        cmocka_unit_test(test_a_holder_that_is_killed),
        cmocka_unit_test(test_a_holder_that_sleeps),
        cmocka_unit_test(test_a_client_that_is_closed),
        cmocka_unit_test(test_freeing_is_no_loss),
    };

    return server_run_tests(tests, setup, teardown);
}
