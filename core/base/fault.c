/* Counts passages, and kills or stops the process where a test says so.  It is empty except in a
 * build with test hooks. */
#include "base/fault.h"

#ifdef TL_TEST_HOOKS

#include <tradelock/test_hooks.h>
#include <tradelock/tradelock.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kind_names[] = {"connect",  "statement", "commit",
                                         "rollback", "callback",  "http"};

/* All of it is under the mutex.  This is test code: simple is better than fast. */
static struct {
    pthread_mutex_t mutex;
    pid_t pid; /* whose counters these are */
    uint64_t passages, counted, allocations;
    uint64_t kill_at, stop_at, fail_at;
    char only[128]; /* name/when of those that kill and stop count; "": all */
    int log;
    char mutations[512];
} fault = {.mutex = PTHREAD_MUTEX_INITIALIZER, .log = -1};

static uint64_t read_number(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/* Needs: fault.mutex held. */
static void load(void)
{
    const char *path = getenv("TL_FAULT_LOG");
    const char *mutations = getenv("TL_MUTATION");
    const char *only = getenv("TL_FAULT_ONLY");

    if (fault.log >= 0)
        close(fault.log);
    fault.log = -1;
    if (path != NULL && path[0] != '\0') {
        fault.log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        /* A test that cannot see the passages would prove nothing. */
        if (fault.log < 0) {
            perror(path);
            abort();
        }
    }
    fault.kill_at = read_number("TL_FAULT_KILL");
    fault.stop_at = read_number("TL_FAULT_STOP");
    fault.fail_at = read_number("TL_FAULT_ALLOC");
    snprintf(fault.mutations, sizeof(fault.mutations), "%s", mutations != NULL ? mutations : "");
    snprintf(fault.only, sizeof(fault.only), "%s", only != NULL ? only : "");
    fault.passages = 0;
    fault.counted = 0;
    fault.allocations = 0;
    fault.pid = getpid();
}

static void lock_for_fork(void)
{
    pthread_mutex_lock(&fault.mutex);
}

static void leave(void)
{
    pthread_mutex_unlock(&fault.mutex);
}

static void watch_forks(void)
{
    /* Without this, a child that is forked while another thread holds the mutex would wait for
     * ever. */
    if (pthread_atfork(lock_for_fork, leave, leave) != 0)
        abort();
}

static void enter(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&fault.mutex);
    if (fault.pid != getpid())
        load();
}

/* Needs: fault.mutex held. */
static void write_line(fault_kind kind, const char *name, const char *when)
{
    char line[512];
    int size = snprintf(line, sizeof(line), "%ld\t%llu\t%s\t%s\t%s\n", (long)fault.pid,
                        (unsigned long long)fault.passages, kind_names[kind], name, when);

    if (size < 0 || (size_t)size >= sizeof(line) || write(fault.log, line, (size_t)size) != size)
        abort();
}

/* Needs: fault.mutex held. */
static int counts(const char *name, const char *when)
{
    size_t size = strlen(name);

    return fault.only[0] == '\0' ||
           (strncmp(fault.only, name, size) == 0 && fault.only[size] == '/' &&
            strcmp(fault.only + size + 1, when) == 0);
}

void fault_point(fault_kind kind, const char *name, const char *when)
{
    enter();
    ++fault.passages;
    if (fault.log >= 0)
        write_line(kind, name, when);
    uint64_t number = counts(name, when) ? ++fault.counted : 0;
    int kill_now = number != 0 && number == fault.kill_at;
    int stop_now = number != 0 && number == fault.stop_at;
    leave();
    if (kill_now)
        kill(getpid(), SIGKILL);
    /* raise() stops this thread at once; a signal that another thread gets would take its time. */
    if (stop_now)
        raise(SIGSTOP);
}

int fault_mutated(const char *rule)
{
    size_t size = strlen(rule);
    int found = 0;

    enter();
    for (const char *next = fault.mutations; *next != '\0';) {
        size_t span = strcspn(next, ",");

        if (span == size && memcmp(next, rule, size) == 0)
            found = 1;
        next += span;
        next += *next == ',';
    }
    leave();
    return found;
}

int fault_allocation(void)
{
    enter();
    int fails = ++fault.allocations == fault.fail_at;
    leave();
    return fails;
}

void fault_reload(void)
{
    enter();
    load();
    leave();
}

uint64_t fault_allocations(void)
{
    enter();
    uint64_t count = fault.allocations;
    leave();
    return count;
}

void tl_test_point(char kind, const char *name, const char *when)
{
    switch (kind) {
    case 'H':
        fault_point(FAULT_HTTP, name, when);
        break;
    case 'S':
        fault_point(FAULT_STATEMENT, name, when);
        break;
    case 'X':
        fault_point(FAULT_COMMIT, name, when);
        break;
    default:
        fault_point(FAULT_CALLBACK, name, when);
    }
}

int tl_test_mutated(const char *rule)
{
    return fault_mutated(rule);
}

int tl_test_allocation(void)
{
    return fault_allocation();
}

#else

/* ISO C forbids an empty file. */
typedef int fault_needs_test_hooks;

#endif
