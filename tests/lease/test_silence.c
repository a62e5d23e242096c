/* A server that falls silent: a holder is told that its lock is not certain any more when its time is
 * over, while every answer is still awaited. */
#include "cli/command.h"
#include "fixture.h"
#include "support/crew.h"
#include "support/theme.h"

#include <tradelock/row_lock.h>
#include <tradelock/rw_lock.h>
#include <tradelock/tradelock.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define TIME_MS 4000
#define READ_MS 60000

FIXTURE_OF_ALL("beat_ms=100ms\nsession_ms=4s\nread_timeout_s=60\npool_wait_ms=1m\n")

static void on_loss(void *context, const char *resource, tl_status why)
{
    (void)resource;
    atomic_store((atomic_int *)context, (int)why);
}

static void *renew(void *mutex)
{
    (void)tl_mutex_renew(mutex, TIME_MS);
    return NULL;
}

/* Kept by the session; with a lease; and with one whose renewal is under way. */
TEST(test_the_holder_is_told_in_time)
{
    static const tl_status why[] = {TL_UNREACHABLE, TL_TIMEOUT, TL_TIMEOUT};
    static const char *const names[] = {"session", "lease", "renewed"};
    tl_mutex *mutexes[3];
    atomic_int told[3] = {0};
    int64_t begun_ms, told_ms;
    pthread_t renewing;

    for (int i = 0; i < 3; i++) {
        tl_mutex_options options = lease_options(i > 0 ? TIME_MS : 0);

        options.loss = on_loss;
        options.loss_context = &told[i];
        mutexes[i] = locked(f.client, names[i], &options);
    }
    crew_sleep_ms(300); /* rows are read in each beat */
    begun_ms = crew_now_ms();
    server_freeze(server_shared());
    assert_int_equal(pthread_create(&renewing, NULL, renew, mutexes[2]), 0);
    for (int i = 0; i < 3; i++)
        while (atomic_load(&told[i]) == 0)
            crew_sleep_ms(10);
    told_ms = crew_now_ms() - begun_ms;
    server_thaw(server_shared());
    assert_int_equal(pthread_join(renewing, NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_status((tl_status)atomic_load(&told[i]), why[i]);
        assert_int_equal(tl_mutex_remaining_ms(mutexes[i]), 0);
    }
    printf("told after %lld ms\n", (long long)told_ms);
    assert_in_range(told_ms, 0, READ_MS / 2);
    for (int i = 0; i < 3; i++)
        tl_mutex_free(mutexes[i]);
}

/* The job of a lease is told to end while its renewal waits for an answer. */
TEST(test_a_job_ends_in_time)
{
    const char *config = database_option_file(f.db);
    char program[512], mark[640];
    int64_t begun_ms;
    pid_t pid;
    int status;

    snprintf(program, sizeof program, "%s/bin/tradelock", test_build_dir());
    snprintf(mark, sizeof mark, "%s.mark", config);
    pid = fork();
    if (pid == 0) {
        int nothing = open("/dev/null", O_RDWR);

        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDERR_FILENO);
        execl(program, program, "run", "--lock", "job", "--lease", "4s", "--config", config, "--",
              "sh", "-c",
              "trap ': >\"$0.ended\"; exit' TERM; : >\"$0\"; while :; do sleep 0.05; done", mark,
              (char *)NULL);
        _exit(99);
    }
    while (access(mark, F_OK) != 0)
        crew_sleep_ms(20);
    server_freeze(server_shared());
    begun_ms = crew_now_ms();
    assert_int_equal(unlink(mark), 0);
    snprintf(mark, sizeof mark, "%s.mark.ended", config);
    while (access(mark, F_OK) != 0)
        crew_sleep_ms(10);
    printf("ended after %lld ms\n", (long long)(crew_now_ms() - begun_ms));
    assert_in_range(crew_now_ms() - begun_ms, 0, READ_MS / 2);
    server_thaw(server_shared());
    assert_int_equal(unlink(mark), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 76);
}

/* ------------------------------------------------------------------- who waits for a lock -- */

#define WAIT_MS 1000
#define CROWD 24

static const char quick[] = "beat_ms=100ms\nread_timeout_s=60\npool_wait_ms=1s\n";

struct asking {
    const fixture *at;
    pthread_t thread;
    char name[16];
    MYSQL *caller;
    tl_mutex *mutex;
    tl_rw *rw;
    tl_lock *trade;
    tl_status status;
    int64_t took_ms; /* the longest ask */
    atomic_int *stops, asks;
};

static tl_status ask(const struct asking *a)
{
    if (a->mutex != NULL)
        return tl_mutex_lock(a->mutex, WAIT_MS);
    if (a->rw != NULL)
        return tl_rw_write(a->rw, WAIT_MS);
    if (a->trade != NULL)
        return tl_lock_ask(a->trade, WAIT_MS);
    return tl_row_lock(a->at->client, a->name, a->caller, WAIT_MS / 1000, 0);
}

static void *ask_once(void *context)
{
    struct asking *a = context;
    const int64_t begun_ms = crew_now_ms();

    a->status = ask(a);
    a->took_ms = crew_now_ms() - begun_ms;
    return NULL;
}

static tl_rw *rw_new(tl_client *client, const char *resource)
{
    tl_rw_options options = TL_RW_OPTIONS_INIT;
    tl_rw *rw = NULL;

    options.max_hold_ms = 60000;
    assert_status(tl_rw_new(&rw, client, resource, &options), TL_OK);
    return rw;
}

static tl_lock *trade_new(tl_client *client, const char *serial_no)
{
    const tl_key key = {serial_no, "C1", "SILENT"};
    tl_lock_options options = TL_LOCK_OPTIONS_INIT;
    tl_lock *lock = NULL;

    options.max_hold_ms = 60000;
    options.channel = "fastpay";
    options.payload = "x";
    options.payload_size = 1;
    assert_status(tl_lock_new(&lock, client, &key, &options), TL_OK);
    return lock;
}

/* A wait for each kind of lock ends when its time is over, not when the connection's is; what was
 * asked for is known afterwards, and nothing stays locked, by a handle that is freed in doubt
 * either. */
TEST(test_a_wait_bounds_its_reads)
{
    const tl_mutex_options options = lease_options(0);
    struct asking all[5] = {{.name = "asked"},
                            {.name = "freed"},
                            {.name = "written"},
                            {.name = "paid"},
                            {.name = "row"}};
    fixture one;

    fixture_open(&one, quick);
    for (size_t i = 0; i < 5; i++)
        all[i].at = &one;
    all[0].mutex = mutex_new(one.client, "asked", &options);
    all[1].mutex = mutex_new(one.client, "freed", &options);
    all[2].rw = rw_new(one.client, "written");
    all[3].trade = trade_new(one.client, "S1");
    all[4].caller = caller_new(&one);
    server_freeze(server_shared());
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(pthread_create(&all[i].thread, NULL, ask_once, &all[i]), 0);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    server_thaw(server_shared());
    for (size_t i = 0; i < 5; i++) {
        printf("%s: %s after %lld ms\n", all[i].name, tl_status_name(all[i].status),
               (long long)all[i].took_ms);
        assert_in_range(all[i].took_ms, 0, READ_MS / 2);
    }
    tl_mutex_free(all[1].mutex);
    AWAIT_WHILE(try_once(one.other, "freed") != TL_GRANTED);
    for (size_t i = 0; i < 4; i++)
        if (i != 1)
            AWAIT_WHILE((all[i].status = ask(&all[i])) != TL_GRANTED);
    assert_status(tl_mutex_unlock(all[0].mutex), TL_OK);
    assert_status(tl_rw_unlock(all[2].rw), TL_OK);
    assert_status(try_once(one.other, "asked"), TL_GRANTED);
    tl_mutex_free(all[0].mutex);
    tl_rw_free(all[2].rw);
    tl_lock_free(all[3].trade);
    mysql_close(all[4].caller);
    fixture_close(&one);
}

static void *ask_again_and_again(void *context)
{
    struct asking *a = context;

    while (!atomic_load(a->stops) && a->status == TL_GRANTED) {
        atomic_store(&a->asks, 1);
        ask_once(a);
        atomic_store(&a->asks, 0);
        if (a->status == TL_GRANTED)
            (void)tl_mutex_unlock(a->mutex);
    }
    return NULL;
}

static int any_asks(const struct asking *all)
{
    int any = 0;

    for (size_t i = 0; i < CROWD; i++)
        any |= atomic_load(&all[i].asks);
    return any;
}

/* Those who share a statement: with others who wait, and with unlocks, which wait for longer. */
TEST(test_a_crowd_bounds_its_reads)
{
    static struct asking all[CROWD];
    const tl_mutex_options options = lease_options(0);
    atomic_int stops = 0;
    int64_t begun_ms;
    fixture one;

    fixture_open(&one, quick);
    for (size_t i = 0; i < CROWD; i++) {
        snprintf(all[i].name, sizeof all[i].name, "crowd-%zu", i);
        all[i].at = &one;
        all[i].mutex = mutex_new(one.client, all[i].name, &options);
        all[i].status = TL_GRANTED;
        all[i].stops = &stops;
        assert_int_equal(pthread_create(&all[i].thread, NULL, ask_again_and_again, &all[i]), 0);
    }
    crew_sleep_ms(1000);
    server_freeze(server_shared());
    begun_ms = crew_now_ms();
    crew_sleep_ms(100);
    while (any_asks(all) && crew_now_ms() - begun_ms < READ_MS / 2)
        crew_sleep_ms(10);
    printf("all have their answer after %lld ms\n", (long long)(crew_now_ms() - begun_ms));
    assert_false(any_asks(all));
    atomic_store(&stops, 1);
    server_thaw(server_shared());
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
        tl_mutex_free(all[i].mutex);
        AWAIT_WHILE(try_once(one.other, all[i].name) != TL_GRANTED);
    }
    fixture_close(&one);
}

TESTS_OF(silence, open_all, close_all)
