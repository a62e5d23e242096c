/*
 * Runs a command under a lock, as flock(1) does, over machines.
 *
 * The keeper of the command (keeper.h) is made first, while this process has a single thread; it
 * begins the command when the lock is there, and ends it when this process ends before that.
 * Signals are blocked in all threads and taken by waiting for them, one at a time.  A thread of its
 * own renews a lease, so that an answer that does not come delays no signal, and tells the keeper how
 * long the lock is certain.
 */
#include "command.h"
#include "keeper.h"
#include "moment.h"

#include <tradelock/resource.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_HOLD_DEFAULT_MS INT64_C(86400000)
#define KILL_AFTER_DEFAULT_MS INT64_C(10000)
#define WAIT_SLICE_MS 250
#define TELL_MS 500
/* Raised by the library's thread when the lock is lost; nobody else sends it. */
#define SIGNAL_LOST SIGRTMIN

static struct job {
    const char *locks[TL_RESOURCES_MAX];
    size_t count;
    int64_t wait_ms;
    tl_mutex_options options;

    keeper keeper;
    sigset_t taken, before;
    int lost, code;

    /* Of the thread that renews. */
    tl_mutex *mutex;
    pthread_mutex_t turn;
    pthread_cond_t wake;
    int over; /* under turn */
} wanted = {.options = TL_MUTEX_OPTIONS_INIT, .keeper = {.kill_after_ms = KILL_AFTER_DEFAULT_MS}};

/* --------------------------------------------------------------------- signals -- */

static void block_signals(struct job *job)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,
                                SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};

    sigemptyset(&job->taken);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        sigaddset(&job->taken, taken[i]);
    sigaddset(&job->taken, SIGNAL_LOST);
    (void)sigprocmask(SIG_BLOCK, &job->taken, &job->before);
}

static void on_loss(void *context, const char *resource, tl_status why)
{
    (void)context;
    (void)resource;
    (void)why;
    (void)kill(getpid(), SIGNAL_LOST);
}

static void lose(struct job *job)
{
    if (job->lost)
        return;
    job->lost = 1;
    fputs("tradelock: the lock is lost: the command is told to end\n", stderr);
    keeper_end(&job->keeper);
}

/* Waits for signals until all is over that the command started. */
static void live(struct job *job)
{
    siginfo_t info;

    for (;;) {
        if (sigwaitinfo(&job->taken, &info) < 0)
            continue;
        if (info.si_signo == SIGNAL_LOST)
            lose(job);
        else if (info.si_signo != SIGCHLD && (job->keeper.own_group || info.si_code != SI_KERNEL))
            /* What the terminal sends reaches its whole foreground group by itself. */
            keeper_signal(&job->keeper, info.si_signo);
        else if (info.si_signo == SIGCHLD && keeper_is_over(&job->keeper, &job->code))
            return;
    }
}

/* -------------------------------------------------------------------- its lease -- */

static void tell_keeper(struct job *job)
{
    const int64_t at_ms =
        steady_ms() - 1; /* before it is asked: this process may be stopped in between */

    keeper_certain(&job->keeper, at_ms, tl_mutex_remaining_ms(job->mutex));
}

/* When to renew it again. */
static int64_t renew_once(struct job *job)
{
    const int64_t lease_ms = job->options.lease_ms;
    const tl_status status = tl_mutex_renew(job->mutex, lease_ms);

    if (status == TL_LOST)
        (void)kill(getpid(), SIGNAL_LOST);
    return status == TL_OK ? lease_ms / 3 : lease_ms / 10;
}

/* A renewal that is not answered is tried again soon; when none comes through in time the library
 * says that the lock is lost, if the keeper has not ended the command before.  Without a lease the
 * session's beats renew the lock. */
static void *renew(void *argument)
{
    struct job *job = argument;
    const int64_t lease_ms = job->options.lease_ms;
    const int64_t tell_ms = tl_mutex_remaining_ms(job->mutex) / 10 + 1;
    int64_t pause_ms = lease_ms > 0 ? lease_ms / 3 : tell_ms < TELL_MS ? tell_ms : TELL_MS;
    struct timespec until;

    pthread_mutex_lock(&job->turn);
    while (!job->over) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += pause_ms % 1000 * 1000000;
        until.tv_sec += pause_ms / 1000 + until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&job->wake, &job->turn, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&job->turn);
        if (lease_ms > 0)
            pause_ms = renew_once(job);
        tell_keeper(job);
        pthread_mutex_lock(&job->turn);
    }
    pthread_mutex_unlock(&job->turn);
    return NULL;
}

static int start_renewing(struct job *job, pthread_t *thread)
{
    pthread_condattr_t monotonic;

    pthread_mutex_init(&job->turn, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&job->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return pthread_create(thread, NULL, renew, job) == 0;
}

static void stop_renewing(struct job *job, pthread_t thread)
{
    pthread_mutex_lock(&job->turn);
    job->over = 1;
    pthread_cond_signal(&job->wake);
    pthread_mutex_unlock(&job->turn);
    pthread_join(thread, NULL);
}

static int run_locked(struct job *job)
{
    pthread_t renewing;
    tl_status status;

    tell_keeper(job);
    if (!start_renewing(job, &renewing)) {
        fputs("tradelock: the thread that renews the lock could not be started\n", stderr);
        return EXIT_INTERNAL;
    }
    if (keeper_go(&job->keeper)) {
        live(job);
    } else {
        fprintf(stderr, "tradelock: the command could not be started: %s\n", strerror(errno));
        job->code = EXIT_INTERNAL;
    }
    stop_renewing(job, renewing);
    status = tl_mutex_unlock(job->mutex);
    if (status == TL_LOST || job->lost || keeper_gave_up(&job->keeper)) {
        fputs("tradelock: the lock was lost before the command had ended\n", stderr);
        return EXIT_LOST;
    }
    if (status != TL_OK)
        fprintf(stderr, "tradelock: the lock could not be given back: %s\n", tl_error_message());
    return job->code;
}

/* A signal that ends programs came while the lock was waited for; 0 when none did. */
static int ending_signal(const struct job *job)
{
    const struct timespec now = {0, 0};
    siginfo_t info;

    while (sigtimedwait(&job->taken, &info, &now) > 0)
        if (info.si_signo != SIGCHLD)
            return info.si_signo;
    return 0;
}

/* In slices, since signals are only looked at between them.  *ended_by: the signal that came
 * meanwhile. */
static tl_status wait_for_lock(const struct job *job, int *ended_by)
{
    int64_t until_ms = steady_ms() + job->wait_ms, left_ms = job->wait_ms;
    tl_status status;

    do {
        status = tl_mutex_lock(job->mutex, left_ms < WAIT_SLICE_MS ? left_ms : WAIT_SLICE_MS);
        *ended_by = ending_signal(job);
        left_ms = until_ms - steady_ms();
    } while (*ended_by == 0 && status == TL_TIMEOUT && left_ms > 0);
    return status;
}

static int ask(struct job *job, tl_client *client)
{
    tl_status status = tl_mutex_new_set(&job->mutex, client, job->locks, job->count, &job->options);
    int ended_by = 0, code;

    if (status == TL_OK)
        status = wait_for_lock(job, &ended_by);
    if (ended_by != 0)
        code = 128 + ended_by;
    else if (status == TL_GRANTED)
        code = run_locked(job);
    else
        code = report(status);
    if (ended_by == 0 && (status == TL_BUSY || status == TL_TIMEOUT))
        code = EXIT_NOT_LOCKED;
    tl_mutex_free(job->mutex);
    return code;
}

/* ------------------------------------------------------------------- the options -- */

static int has_max_hold;

static int take_lock(const char *value, void *to)
{
    struct job *j = to;

    if (j->count == TL_RESOURCES_MAX)
        return usage_error("--lock may be given %d times at most", TL_RESOURCES_MAX);
    j->locks[j->count++] = value;
    return EXIT_DONE;
}

static int check(int argc, char **argv)
{
    if (wanted.count == 0)
        return usage_error("--lock is missing: the name of the resource");
    if (argc == 0)
        return usage_error("the command is missing: it stands after --");
    if (strcmp(argv[-1], "--") != 0)
        return usage_error("the command stands after --, so that its options are "
                           "its own: -- %s",
                           argv[0]);
    wanted.keeper.command = argv;
    return EXIT_DONE;
}

static int work(tl_client *client)
{
    int code;

    if (!has_max_hold)
        wanted.options.max_hold_ms = MAX_HOLD_DEFAULT_MS;
    wanted.options.loss = on_loss;
    /* Its name only: arguments may be nobody's business. */
    wanted.options.payload = wanted.keeper.command[0];
    wanted.options.payload_size = strnlen(wanted.keeper.command[0], TL_RESOURCE_PAYLOAD_MAX);
    block_signals(&wanted);
    if (!keeper_make(&wanted.keeper, &wanted.before)) {
        fprintf(stderr, "tradelock: no process for the command: %s\n", strerror(errno));
        return EXIT_INTERNAL;
    }
    code = open_client(&client, common.shard, 0, "tradelock run");
    if (code == EXIT_DONE)
        code = ask(&wanted, client);
    close(wanted.keeper.to);
    tl_client_close(client);
    return code;
}

static const struct command_option options[] = {
    {"lock NAME", "the resource; several times: all of them or none", OPTION_OTHER, .to = &wanted,
     .take = take_lock},
    {"wait TIME", "wait so long for the lock (0s: ask once)", OPTION_DURATION,
     .to = &wanted.wait_ms},
    {"lease TIME",
     "renew the lock as often as needed, and let others have it\n"
     "that long after this machine was last heard of; without it\n"
     "the session_ms of the settings decides",
     OPTION_DURATION, .to = &wanted.options.lease_ms},
    {"max-hold TIME", "the longest that COMMAND may hold it (24h)", OPTION_DURATION,
     .to = &wanted.options.max_hold_ms, .given = &has_max_hold},
    {"min-hold TIME",
     "nobody else gets it sooner, even when COMMAND ends sooner:\n"
     "for jobs that late machines must not run again (0s)",
     OPTION_DURATION, .to = &wanted.options.min_hold_ms},
    {"kill-after TIME", "SIGKILL so long after SIGTERM (10s)", OPTION_DURATION,
     .to = &wanted.keeper.kill_after_ms},
    {.name = NULL}};

const struct command command_run = {
    .name = "run",
    .summary = "run a command under a lock, on one machine at a time",
    .arguments = "--lock NAME [--wait TIME] [--lease TIME] -- COMMAND [ARGUMENT...]",
    .text = "Runs COMMAND while it holds the resource NAME, and ends with its exit code,\n"
            "or with 128 and the signal that ended it; 126 and 127 as in a shell.  75: the\n"
            "lock was not got, and COMMAND did not run.  76: the lock was lost; COMMAND and\n"
            "what it started got SIGTERM, and later SIGKILL; where it could not be renewed in\n"
            "time, before another may have it.  What COMMAND leaves behind when it ends is\n"
            "waited for.  Signals are passed on to COMMAND and, when stdin is no\n"
            "terminal, to all that it started.\n",
    .examples = "  tradelock run --lock nightly/interest -- /usr/local/bin/interest\n",
    .options = options,
    .check = check,
    .work = work,
    .why_no_json = "run prints nothing of its own, and no JSON",
    .takes_operands = 1,
};
