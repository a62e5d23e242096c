/*
 * Several processes and threads for one test: memory that they share, and numbers from the command
 * line.
 *
 * A child is forked from a test that has no threads and no client of the library; it opens what it
 * needs, says what went wrong with CREW_CHECK and ends without the test's own clean-up.
 */
#ifndef TESTS_SUPPORT_CREW_H
#define TESTS_SUPPORT_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/* Keeps the arguments of main(); "--only=PATTERN" runs the tests of that name alone. */
void crew_arguments(int count, char **arguments);
/* "--name=number" among the arguments, or TL_TEST_NAME in the environment, or otherwise. */
long crew_number(const char *name, long otherwise);

/* Memory of zeroes that children share with their parent. */
void *crew_share(size_t size);
void crew_unshare(void *memory, size_t size);

typedef void (*crew_fn)(void *context, int number);

/* One child that runs fn(context, number). */
pid_t crew_fork(crew_fn fn, void *context, int number);
/* Waits for it: 0 when all its checks held. */
int crew_wait(pid_t child);
/* So many children at once, numbered from 0; how many failed.  When one fails the others are
 * ended. */
int crew_run(int count, crew_fn fn, void *context);

/* For threads of several processes; in memory that they share. */
void crew_barrier_init(pthread_barrier_t *barrier, unsigned count);

/* The same with threads of this process; returns when all are done. */
void crew_threads(int count, crew_fn fn, void *context);

/* Whether a thread of this process, by its gettid(), sleeps. */
int crew_is_asleep(int thread);
/* Waits until one that says its gettid() here sleeps, a minute at most. */
void crew_await_asleep(const atomic_int *thread);

int64_t crew_now_ms(void);
void crew_sleep_ms(int64_t ms);

/* Runs a line of shell; ends the test if that fails. */
void crew_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A network of this thread's own: 0, or -1 where the kernel refuses that.  Ends the test where the
 * program is missing that sets one up. */
int crew_network(void);

/* For any thread of any process: ends it with a sentence. */
_Noreturn void crew_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define CREW_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            crew_fail(__FILE__, __LINE__, "%s", #condition);                                       \
    } while (0)

#define CREW_STATUS(got, expected)                                                                 \
    do {                                                                                           \
        tl_status crew_got = (got);                                                                \
        if (crew_got != (expected))                                                                \
            crew_fail(__FILE__, __LINE__, "%s is %s: %s", #got, tl_status_name(crew_got),          \
                      tl_error_message());                                                         \
    } while (0)

#endif
