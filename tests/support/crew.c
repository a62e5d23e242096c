#include "support/crew.h"

#include "support/server.h"
#include "support/theme.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static int argument_count;
static char **argument_list;

void crew_arguments(int count, char **arguments)
{
    argument_count = count;
    argument_list = arguments;
    for (int i = 1; i < count; i++)
        if (strncmp(arguments[i], "--only=", 7) == 0)
            tests_choose(arguments[i] + 7);
}

long crew_number(const char *name, long otherwise)
{
    char variable[64];
    const char *value;
    size_t size = strlen(name);

    for (int i = 1; i < argument_count; i++)
        if (strncmp(argument_list[i], "--", 2) == 0 &&
            strncmp(argument_list[i] + 2, name, size) == 0 && argument_list[i][2 + size] == '=')
            return strtol(argument_list[i] + 3 + size, NULL, 10);
    snprintf(variable, sizeof variable, "TL_TEST_%s", name);
    for (char *c = variable; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    value = getenv(variable);
    return value != NULL && value[0] != '\0' ? strtol(value, NULL, 10) : otherwise;
}

void *crew_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        server_panic("no shared memory: %s", strerror(errno));
    return memory;
}

void crew_unshare(void *memory, size_t size)
{
    munmap(memory, size);
}

pid_t crew_fork(crew_fn fn, void *context, int number)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child < 0)
        server_panic("no child: %s", strerror(errno));
    if (child == 0) {
        fn(context, number);
        _exit(0);
    }
    return child;
}

int crew_wait(pid_t child)
{
    int state;

    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            server_panic("waiting for a child: %s", strerror(errno));
    return state;
}

/* Which child this is, or -1. */
static int index_of(const pid_t *children, int count, pid_t child)
{
    for (int i = 0; i < count; i++)
        if (children[i] == child)
            return i;
    return -1;
}

/* The others may wait for one that failed. */
static void end_all(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++)
        if (children[i] > 0)
            kill(children[i], SIGKILL);
}

int crew_run(int count, crew_fn fn, void *context)
{
    pid_t *children = calloc((size_t)count, sizeof *children);
    int failed = 0, left = count, state;

    if (children == NULL)
        server_panic("out of memory");
    for (int i = 0; i < count; i++)
        children[i] = crew_fork(fn, context, i);
    while (left > 0) {
        int ended = index_of(children, count, waitpid(-1, &state, 0));

        if (ended < 0)
            continue; /* a server's guard, perhaps */
        children[ended] = 0;
        left--;
        if (state != 0 && failed++ == 0)
            end_all(children, count);
    }
    free(children);
    return failed;
}

void crew_barrier_init(pthread_barrier_t *barrier, unsigned count)
{
    pthread_barrierattr_t shared;

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (pthread_barrier_init(barrier, &shared, count) != 0)
        server_panic("no barrier");
    pthread_barrierattr_destroy(&shared);
}

struct hand {
    pthread_t thread;
    crew_fn fn;
    void *context;
    int number;
};

static void *work(void *argument)
{
    struct hand *hand = argument;

    hand->fn(hand->context, hand->number);
    return NULL;
}

void crew_threads(int count, crew_fn fn, void *context)
{
    struct hand *hands = calloc((size_t)count, sizeof *hands);

    if (hands == NULL)
        server_panic("out of memory");
    for (int i = 0; i < count; i++) {
        hands[i] = (struct hand){.fn = fn, .context = context, .number = i};
        if (pthread_create(&hands[i].thread, NULL, work, &hands[i]) != 0)
            server_panic("no thread %d", i);
    }
    for (int i = 0; i < count; i++)
        pthread_join(hands[i].thread, NULL);
    free(hands);
}

int crew_is_asleep(int thread)
{
    char path[64], state = '?';
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (file != NULL)
        fclose(file);
    return state == 'S';
}

void crew_await_asleep(const atomic_int *thread)
{
    const int64_t until_ms = crew_now_ms() + PATIENCE_MS;

    while ((atomic_load(thread) == 0 || !crew_is_asleep(atomic_load(thread))) &&
           crew_now_ms() < until_ms)
        crew_sleep_ms(1);
}

int64_t crew_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void crew_sleep_ms(int64_t ms)
{
    struct timespec pause = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
}

void crew_shell(const char *format, ...)
{
    char command[4096];
    va_list arguments;
    int code;

    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    code = system(command);
    if (code != 0)
        fail_msg("%s: %x", command, (unsigned)code);
}

int crew_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return -1;
    if (system("command -v ip >/dev/null") != 0)
        server_panic("the program ip is not installed: tools/dev/packages deep");
    return 0;
}

void crew_fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    server_panic("%s:%d: %s", file, line, text);
}
