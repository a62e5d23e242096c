/*
 * Begins a command, waits for all that it starts, and ends it.
 *
 * The keeper takes orphans over (PR_SET_CHILD_SUBREAPER), so whatever a command leaves behind, in
 * whichever process group or session, is a child of the keeper's, and is over when that has none.
 * It gets one number after another from the process that holds the lock: a signal to pass on, or
 * one of those below.  The end of these numbers is the end of that process.  One that is stopped
 * sends none, and ends nothing: so memory that both have tells until when the lock is certain.
 */
#include "keeper.h"

#include "command.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* No signal has such a number. */
enum { NUMBER_GO = 200, NUMBER_END };

/* Without its holder a lock is another's soon. */
#define DEAD_KILL_AFTER_MS 1000
#define LOOK_MS 20
/* poll() does not count while the machine sleeps, and the lock's time does. */
#define POLL_MOST_MS 1000

struct keeper_lock {
    _Atomic int64_t end_at_ms; /* CLOCK_BOOTTIME */
    _Atomic int64_t kill_after_ms;
    atomic_int gave_up;
};

/* In the keeper. */
struct kept {
    const keeper *of;
    const sigset_t *before;
    pid_t group; /* of the process that holds the lock */
    pid_t pid;   /* the command's; 0: not begun */
    int over, code;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ------------------------------------------------------------- all that is below -- */

static pid_t parent_of(pid_t pid)
{
    char path[40], line[512];
    const char *end;
    FILE *file;
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    /* The name in brackets may have any character. */
    if (fgets(line, sizeof line, file) != NULL && (end = strrchr(line, ')')) != NULL &&
        sscanf(end + 1, " %*c %d", &parent) != 1)
        parent = 0;
    fclose(file);
    return parent;
}

static int is_below(pid_t pid)
{
    do
        pid = parent_of(pid);
    while (pid > 1 && pid != getpid());
    return pid == getpid();
}

/* Sends it to every process below this one.  What begins meanwhile is met by the next look. */
static void signal_tree(int number)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid <= 1 || !is_below(pid))
            continue;
        (void)kill(pid, number);
        if (number == SIGTERM)
            (void)kill(pid, SIGCONT);
    }
    if (processes != NULL)
        closedir(processes);
}

static int code_of(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* 1: this process has no child any more. */
static int reap(struct kept *self)
{
    int wait_status;
    pid_t pid;

    while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0)
        if (self != NULL && pid == self->pid) {
            self->over = 1;
            self->code = code_of(wait_status);
        }
    return pid < 0 && errno == ECHILD;
}

static void end_all(struct kept *self, int64_t kill_after_ms)
{
    const int64_t kill_at_ms = now_ms() + kill_after_ms;

    signal_tree(SIGTERM);
    while (!reap(self)) {
        if (now_ms() >= kill_at_ms)
            signal_tree(SIGKILL);
        (void)poll(NULL, 0, LOOK_MS);
    }
}

/* ------------------------------------------------------------------- the keeper -- */

/* In the command's process.  It dies with the keeper. */
static _Noreturn void become_command(const struct kept *self, pid_t parent)
{
    (void)setpgid(0, self->of->own_group ? 0 : self->group);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_INTERNAL);
    (void)sigprocmask(SIG_SETMASK, self->before, NULL);
    execvp(self->of->command[0], self->of->command);
    fprintf(stderr, "tradelock: %s cannot be run: %s\n", self->of->command[0], strerror(errno));
    _exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static void begin(struct kept *self)
{
    const pid_t parent = getpid();

    self->pid = fork();
    if (self->pid == 0)
        become_command(self, parent);
    if (self->pid < 0) {
        fprintf(stderr, "tradelock: no process for the command: %s\n", strerror(errno));
        _exit(EXIT_INTERNAL);
    }
    if (self->of->own_group)
        (void)setpgid(self->pid, self->pid);
}

static int64_t certain_ms(const struct kept *self)
{
    return atomic_load(&self->of->lock->end_at_ms) - now_ms();
}

static _Noreturn void give_up(struct kept *self)
{
    const int64_t kill_after_ms = atomic_load(&self->of->lock->kill_after_ms);

    fputs("tradelock: the lock is not certain any more: the command is told to end\n", stderr);
    atomic_store(&self->of->lock->gave_up, 1);
    end_all(self,
            self->of->kill_after_ms < kill_after_ms ? self->of->kill_after_ms : kill_after_ms);
    _exit(self->code);
}

/* Takes one number; the process that holds the lock is dead if none comes any more. */
static void listen_to(struct kept *self, int from)
{
    unsigned char number;
    ssize_t got;

    do
        got = read(from, &number, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1 && number == NUMBER_GO) {
        if (certain_ms(self) <= 0)
            give_up(self);
        begin(self);
    } else if (got == 1 && number != NUMBER_END) {
        if (self->over)
            signal_tree(number);
        else
            (void)kill(self->of->own_group ? -self->pid : self->pid, number);
    } else {
        end_all(self, got == 1 || self->of->kill_after_ms < DEAD_KILL_AFTER_MS
                          ? self->of->kill_after_ms
                          : DEAD_KILL_AFTER_MS);
        _exit(self->code);
    }
}

static int wait_ms(const struct kept *self)
{
    const int64_t left_ms = certain_ms(self);

    if (self->pid == 0)
        return -1;
    return left_ms <= 0 ? 0 : left_ms < POLL_MOST_MS ? (int)left_ms : POLL_MOST_MS;
}

static _Noreturn void keep(struct kept *self, int from)
{
    struct signalfd_siginfo info;
    struct pollfd fds[2] = {{.fd = from, .events = POLLIN}, {.events = POLLIN}};
    sigset_t child, all;
    int is_told = 0;

    sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    (void)setpgid(0, 0); /* what ends the other process with its group leaves the keeper */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    fds[1].fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        (void)poll(fds, 2, wait_ms(self));
        while (read(fds[1].fd, &info, sizeof info) > 0)
            continue;
        if (self->pid > 0 && reap(self))
            _exit(self->code);
        if (self->pid > 0 && certain_ms(self) <= 0)
            give_up(self);
        if (self->over && !is_told)
            fputs("tradelock: the command has ended, and what it started has not: the lock is "
                  "held until then\n",
                  stderr);
        is_told = self->over;
        if (fds[0].revents != 0)
            listen_to(self, from);
    }
}

/* ------------------------------------------------------- in the process with the lock -- */

int keeper_make(keeper *self, const void *before)
{
    struct kept kept = {.of = self, .before = before, .group = getpgrp()};
    int fds[2];

    /* At a terminal the command must stay in its foreground group. */
    self->own_group = !isatty(STDIN_FILENO);
    self->lock =
        mmap(NULL, sizeof *self->lock, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (self->lock == MAP_FAILED)
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return 0;
    /* What a keeper leaves that is killed. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    self->pid = fork();
    if (self->pid == 0) {
        close(fds[1]);
        keep(&kept, fds[0]);
    }
    close(fds[0]);
    self->to = fds[1];
    return self->pid > 0;
}

static int say(const keeper *self, int number)
{
    const unsigned char byte = (unsigned char)number;

    return send(self->to, &byte, 1, MSG_NOSIGNAL) == 1;
}

void keeper_certain(keeper *self, int64_t at_ms, int64_t left_ms)
{
    if (left_ms <= 0)
        return;
    /* The first time tells how long the lock lasts. */
    if (atomic_load(&self->lock->kill_after_ms) == 0)
        atomic_store(&self->lock->kill_after_ms,
                     left_ms / 4 < DEAD_KILL_AFTER_MS ? left_ms / 4 : DEAD_KILL_AFTER_MS);
    atomic_store(&self->lock->end_at_ms,
                 at_ms + left_ms - atomic_load(&self->lock->kill_after_ms) * 3 / 2);
}

int keeper_gave_up(const keeper *self)
{
    return atomic_load(&self->lock->gave_up);
}

int keeper_go(const keeper *self)
{
    return say(self, NUMBER_GO);
}

void keeper_signal(const keeper *self, int number)
{
    (void)say(self, number);
}

void keeper_end(const keeper *self)
{
    (void)say(self, NUMBER_END);
}

int keeper_is_over(keeper *self, int *code)
{
    int wait_status;

    if (waitpid(self->pid, &wait_status, WNOHANG) != self->pid)
        return 0;
    *code = code_of(wait_status);
    if (WIFSIGNALED(wait_status))
        end_all(NULL, self->kill_after_ms);
    return 1;
}
