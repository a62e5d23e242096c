/* Deadlines, sleeping, waiting; jitter and random bytes. */
#include "check.h"

#include "base/clock.h"
#include "base/random.h"
#include "support/theme.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

TEST(test_boottime)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t before_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    int64_t us = clock_boottime_us();
    int64_t ms = clock_boottime_ms();
    assert_true(us >= before_us);
    assert_true(us < before_us + 10000000);
    assert_true(ms >= us / 1000);
}

/* The boot id as a child in a time namespace sees it, whose CLOCK_BOOTTIME is a day ahead; "" where
 * none may be made. */
static void boot_id_a_day_ahead(char id[RANDOM_UUID])
{
    static const char offsets[] = "boottime 86400 0";
    int ends[2];
    ssize_t size;

    assert_int_equal(pipe(ends), 0);
    if (fork() == 0) {
        int file = syscall(SYS_unshare, 0x80 /* CLONE_NEWTIME */) == 0
                       ? open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC)
                       : -1;

        if (file >= 0 && write(file, offsets, sizeof offsets - 1) > 0 && fork() == 0) {
            clock_boot_id(id, RANDOM_UUID);
            (void)!write(ends[1], id, RANDOM_UUID);
        }
        _exit(0);
    }
    close(ends[1]);
    size = read(ends[0], id, RANDOM_UUID);
    if (size != RANDOM_UUID)
        id[0] = '\0';
    close(ends[0]);
    (void)wait(NULL);
}

TEST(test_boot_id)
{
    char here[RANDOM_UUID], again[RANDOM_UUID], there[RANDOM_UUID];

    clock_boot_id(here, sizeof here);
    clock_boot_id(again, sizeof again);
    assert_int_equal(strlen(here), RANDOM_UUID - 1);
    assert_string_equal(again, here);
    boot_id_a_day_ahead(there);
    if (there[0] == '\0')
        skip();
    assert_string_not_equal(there, here);
}

TEST(test_deadline)
{
    int64_t before_ms = clock_boottime_ms();
    int64_t deadline_ms = clock_deadline(5000);
    assert_in_range(deadline_ms, before_ms + 5000, clock_boottime_ms() + 5000);
    assert_in_range(clock_deadline(0), before_ms, clock_boottime_ms());
    assert_in_range(clock_deadline(-7), before_ms, clock_boottime_ms());
    assert_in_range(clock_deadline(INT64_MIN), before_ms, clock_boottime_ms());
    assert_true(clock_deadline(INT64_MAX) == CLOCK_NEVER);
    assert_true(clock_deadline(INT64_MAX - 1) == CLOCK_NEVER);
    assert_int_equal(clock_left_ms(before_ms), 0);
    assert_int_equal(clock_left_ms(INT64_MIN), 0);
    assert_in_range(clock_left_ms(deadline_ms), 1, 5000);
    assert_true(clock_left_ms(CLOCK_NEVER) > INT64_MAX / 2);
}

static void ignore(int number)
{
    (void)number;
}

static void *interrupt(void *thread)
{
    for (int i = 0; i < 5; i++) {
        clock_sleep_until_ms(clock_deadline(10));
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
    }
    return NULL;
}

TEST(test_sleep_in_spite_of_signals)
{
    struct sigaction action = {.sa_handler = ignore};
    pthread_t self = pthread_self(), other;

    sigaction(SIGUSR1, &action, NULL);
    assert_int_equal(pthread_create(&other, NULL, interrupt, &self), 0);
    int64_t deadline_ms = clock_deadline(120);
    clock_sleep_until_ms(deadline_ms);
    assert_true(clock_boottime_ms() >= deadline_ms);
    pthread_join(other, NULL);

    int64_t before_ms = clock_boottime_ms();
    clock_sleep_until_ms(before_ms - 1000);
    clock_sleep_until_ms(0);
    clock_sleep_until_ms(-5);
    assert_true(clock_boottime_ms() < before_ms + 5000);
}

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int open;
};

static void *open_gate(void *context)
{
    struct gate *gate = context;

    clock_sleep_until_ms(clock_deadline(30));
    pthread_mutex_lock(&gate->mutex);
    gate->open = 1;
    pthread_cond_signal(&gate->condition);
    pthread_mutex_unlock(&gate->mutex);
    return NULL;
}

TEST(test_wait)
{
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pthread_t other;
    int error = 0;

    assert_int_equal(clock_condition_init(&gate.condition), 0);
    pthread_mutex_lock(&gate.mutex);
    assert_int_equal(clock_wait(&gate.condition, &gate.mutex, 0), ETIMEDOUT);

    int64_t deadline_ms = clock_deadline(40);
    while (error == 0)
        error = clock_wait(&gate.condition, &gate.mutex, deadline_ms);
    assert_int_equal(error, ETIMEDOUT);
    assert_true(clock_boottime_ms() >= deadline_ms);

    assert_int_equal(pthread_create(&other, NULL, open_gate, &gate), 0);
    error = 0;
    while (!gate.open && error == 0)
        error = clock_wait(&gate.condition, &gate.mutex, CLOCK_NEVER);
    assert_int_equal(error, 0);
    assert_true(gate.open);
    pthread_mutex_unlock(&gate.mutex);
    pthread_join(other, NULL);
    pthread_cond_destroy(&gate.condition);
}

/* How many waits it took until this deadline was over. */
static int slices_until(int64_t deadline_ms)
{
    struct gate gate = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    int error = 0, slices = 0;

    assert_int_equal(clock_condition_init(&gate.condition), 0);
    pthread_mutex_lock(&gate.mutex);
    for (; error == 0; slices++)
        error = clock_wait(&gate.condition, &gate.mutex, deadline_ms);
    pthread_mutex_unlock(&gate.mutex);
    assert_int_equal(error, ETIMEDOUT);
    assert_true(clock_boottime_ms() >= deadline_ms);
    pthread_cond_destroy(&gate.condition);
    return slices;
}

/* A wait longer than one slice ends at its deadline, not at the slice's end.  A thread that wakes
 * up so late that the rest is over as well has seen no slice: then a longer one. */
TEST(test_long_wait)
{
    int64_t wait_ms = 1150;

    while (slices_until(clock_deadline(wait_ms)) < 2) {
        assert_true(wait_ms < 30000);
        wait_ms *= 2;
    }
}

TEST(test_jitter)
{
    int64_t least = INT64_MAX, most = 0;

    for (int i = 0; i < 2000; i++) {
        int64_t delay_ms = random_jitter_ms(1000, 20);

        assert_in_range(delay_ms, 1000, 1200);
        least = delay_ms < least ? delay_ms : least;
        most = delay_ms > most ? delay_ms : most;
    }
    assert_true(least < 1050 && most > 1150);
    assert_int_equal(random_jitter_ms(0, 50), 0);
    assert_int_equal(random_jitter_ms(77, 0), 77);
    assert_int_equal(random_jitter_ms(1, 20), 1);
    for (int i = 0; i < 100; i++) {
        assert_true(random_jitter_ms(INT64_MAX, 100) == INT64_MAX);
        assert_true(random_jitter_ms(INT64_MAX - 10, 100) >= INT64_MAX - 10);
    }
}

TEST(test_random)
{
    unsigned char bytes[1000] = {0};
    uint8_t first[RANDOM_TOKEN], second[RANDOM_TOKEN];
    char one[RANDOM_UUID], two[RANDOM_UUID];
    int seen[256] = {0}, kinds = 0;

    random_bytes(bytes, sizeof(bytes) - 1);
    assert_int_equal(bytes[sizeof(bytes) - 1], 0); /* not written beyond the end */
    random_bytes(bytes, 0);
    for (size_t i = 0; i < sizeof(bytes); i++)
        kinds += seen[bytes[i]]++ == 0;
    assert_true(kinds > 150); /* 250 are to be expected */
    random_token(first);
    random_token(second);
    assert_memory_not_equal(first, second, RANDOM_TOKEN);
    random_uuid(one);
    random_uuid(two);
    assert_int_equal(strlen(one), 36);
    assert_int_equal(one[14], '4'); /* a random UUID */
    assert_non_null(strchr("89ab", one[19]));
    assert_int_equal(strspn(one, "0123456789abcdef-"), 36);
    assert_string_not_equal(one, two);
}

#define TOKENS 80 /* more than are fetched at once */

static void *take_tokens(void *to)
{
    uint8_t(*tokens)[RANDOM_TOKEN] = to;

    for (int i = 0; i < TOKENS; i++)
        random_token(tokens[i]);
    return NULL;
}

static int by_bytes(const void *left, const void *right)
{
    return memcmp(left, right, RANDOM_TOKEN);
}

/* Neither of one thread, nor of two, nor of a process and its child, which has all that was fetched
 * before. */
TEST(test_tokens_never_repeat)
{
    static struct {
        uint8_t own[RANDOM_TOKEN], of_child[TOKENS][RANDOM_TOKEN];
        uint8_t of_thread[TOKENS][RANDOM_TOKEN], next[TOKENS][RANDOM_TOKEN];
    } t;
    uint8_t(*all)[RANDOM_TOKEN] = (void *)&t;
    pthread_t thread;
    int ends[2], status;
    pid_t child;

    random_token(t.own);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        take_tokens(t.of_child);
        _exit(write(ends[1], t.of_child, sizeof t.of_child) != sizeof t.of_child);
    }
    assert_int_equal(pthread_create(&thread, NULL, take_tokens, t.of_thread), 0);
    take_tokens(t.next);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], t.of_child, sizeof t.of_child), sizeof t.of_child);
    close(ends[0]);
    close(ends[1]);
    qsort(all, 1 + 3 * TOKENS, RANDOM_TOKEN, by_bytes);
    for (int i = 0; i < 3 * TOKENS; i++)
        assert_memory_not_equal(all[i], all[i + 1], RANDOM_TOKEN);
}

TESTS_OF(clock, NULL, NULL)
