/* Runs one job after the other in a child, so that it can be killed.  The parent has no threads and
 * opens no client, so a plain fork is enough. */
#include "plan.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 10

plan *the_plan;

void plan_found(const char *format, ...)
{
    char text[FINDING_MAX];
    unsigned count = atomic_load(&the_plan->findings);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(the_plan->finding[i], text) == 0)
            return;
    if (count == FINDINGS_MAX)
        return;
    memcpy(the_plan->finding[count], text, sizeof text);
    atomic_store(&the_plan->findings, count + 1);
}

int child_run(void (*job)(void *context), void *context, int64_t patience_ms)
{
    int status = 0, hangs = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        perror("tradelock-try: fork");
        return SIGABRT;
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        job(context);
        fflush(NULL);
        _exit(0);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        patience_ms -= LOOK_MS;
        if (patience_ms < 0 && !hangs) {
            hangs = 1;
            plan_found("nothing ended within the patience in: %s", the_plan->title);
            kill(pid, SIGKILL);
        }
    }
    if (!WIFSIGNALED(status)) {
        if (WEXITSTATUS(status) != 0)
            plan_found("the handlers ended the process (exit code %d) in: %s", WEXITSTATUS(status),
                       the_plan->title);
        return 0;
    }
    if (WTERMSIG(status) != SIGKILL)
        plan_found("the handlers ended the process (signal %d) in: %s", WTERMSIG(status),
                   the_plan->title);
    return WTERMSIG(status);
}
