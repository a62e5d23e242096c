/* A server that falls silent: a holder is told that its lock is not certain any more when its time is
 * over, while every answer is still awaited. */
#include "cli/command.h"
#include "fixture.h"
#include "support/crew.h"
#include "support/theme.h"

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

TESTS_OF(silence, open_all, close_all)
