/*
 * tradelock-worker: a process that runs the retry worker for a service's plug-in.
 *
 * SIGTERM and SIGINT stop it: it finishes what it holds and takes nothing new; a second one ends it
 * as the signal ends any process, and other workers compensate what it held.  SIGHUP has it open
 * its log file anew, and read its settings anew: it works with the new ones at once, and finishes what
 * it holds by the old ones beside that.  A
 * process that was taken for dead (it was stopped for too long) goes on by itself.
 *
 * It never forks, since plug-ins and the library have threads.
 */
#include "due.h"
#include "either.h"
#include "host.h"
#include "log_print.h"
#include "metrics_server.h"
#include "plugin.h"
#include "watch.h"

#include <tradelock/lane.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "tradelock-worker"
#define LOOK_MS 100

static const char usage[] =
    "usage: tradelock-worker [--config FILE] --plugin FILE [OPTION]...\n"
    "\n"
    "Brings trades to an end that their service left undone.\n"
    "\n"
    "  --config FILE        settings and connection; without it, $TRADELOCK_HOST and the\n"
    "                       like name the server\n"
    "  --plugin FILE        the service's workflows: a shared object with the entry of\n"
    "                       tradelock/plugin.h; it and all folders above it may be\n"
    "                       written by root and this account alone\n"
    "  --shard NAME         of settings that name the shards of a fleet, this one\n"
    "                       alone; without it all, each with a share of the threads\n"
    "  --threads N          attempts at once, 1 to 64 (default 4)\n"
    "  --idle-ms N          look for due work at least so often (default 1000)\n"
    "  --unclaimed-ms N     alarm for work that is overdue by this (default 60000)\n"
    "  --dry-run            say what is due, change nothing, and end\n"
    "  --log FILE           the log goes to the end of this file, not to standard error\n"
    "  --verbose            log every step\n"
    "  --help, --version    print this, or the version, and end\n"
    "\n"
    "SIGTERM and SIGINT: it claims nothing more, finishes what it holds, and ends; a\n"
    "second one ends it at once.  SIGHUP has it open its log file and read its settings\n"
    "anew; bad ones leave the old ones in force.  Under systemd it tells that it is\n"
    "ready, and feeds the watchdog while heartbeats are confirmed and work is claimed;\n"
    "where metrics_listen is set, /healthz says the same: 200, or 503 with a sentence.\n"
    "Prints \"ready\" when it works, and counts when it ends.  Ends with 0 after SIGTERM "
    "or\n"
    "SIGINT, 2 when used wrongly or with a plug-in that is refused, 3 without a server,\n"
    "4 without its schema, 5 when the server is not safe for money, 70 otherwise.\n";

typedef struct settings {
    host_options host;
    tl_worker_options worker;
    const char *plugin_file, *log_file;
    int dry_run;
} settings;

enum {
    OPT_CONFIG = 256,
    OPT_THREADS,
    OPT_IDLE,
    OPT_UNCLAIMED,
    OPT_VERBOSE,
    OPT_PLUGIN,
    OPT_DRY_RUN,
    OPT_LOG,
    OPT_SHARD,
    OPT_HELP,
    OPT_VERSION
};

static const struct option names[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"idle-ms", required_argument, NULL, OPT_IDLE},
    {"unclaimed-ms", required_argument, NULL, OPT_UNCLAIMED},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"plugin", required_argument, NULL, OPT_PLUGIN},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"log", required_argument, NULL, OPT_LOG},
    {"shard", required_argument, NULL, OPT_SHARD},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static int bad(const char *what, const char *value)
{
    fprintf(stderr, PROGRAM ": %s: '%s'\n", what, value);
    return EXIT_USAGE;
}

/* -1: go on; else the exit code. */
static int take_option(settings *s, int option)
{
    int64_t number = 0;

    switch (option) {
    case OPT_CONFIG:
        s->host.config_file = optarg;
        break;
    case OPT_PLUGIN:
        if (s->plugin_file != NULL)
            return bad("a process has one --plugin, and this is another", optarg);
        s->plugin_file = optarg;
        break;
    case OPT_DRY_RUN:
        s->dry_run = 1;
        break;
    case OPT_LOG:
        s->log_file = optarg;
        break;
    case OPT_SHARD:
        s->host.shard = optarg;
        break;
    case OPT_THREADS:
        if (!host_read_number(&number, optarg, 1, TL_CLAIM_MAX))
            return bad("--threads is 1 to 64", optarg);
        s->worker.threads = (unsigned)number;
        break;
    case OPT_IDLE:
        if (!host_read_number(&s->worker.idle_max_ms, optarg, 1, 3600000))
            return bad("--idle-ms is 1 to 3600000", optarg);
        break;
    case OPT_UNCLAIMED:
        if (!host_read_number(&s->worker.unclaimed_ms, optarg, 1, INT64_C(86400000)))
            return bad("--unclaimed-ms is 1 to 86400000", optarg);
        break;
    case OPT_VERBOSE:
        s->host.least = TL_INFO;
        break;
    case OPT_HELP:
        fputs(usage, stdout);
        return EXIT_DONE;
    case OPT_VERSION:
        printf(PROGRAM " %s\n", tl_version());
        return EXIT_DONE;
    default:
        fputs("try " PROGRAM " --help\n", stderr);
        return EXIT_USAGE;
    }
    return -1;
}

static int read_options(settings *s, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int code = take_option(s, option);
        if (code >= 0)
            return code;
    }
    if (optind < argc)
        return bad("it takes no argument", argv[optind]);
    if (s->plugin_file == NULL) {
        fputs(PROGRAM ": --plugin is needed; try --help\n", stderr);
        return EXIT_USAGE;
    }
    return -1;
}

/* Standard error becomes the file, in one step for all threads.  0: it stays what it was. */
static int open_log(const char *file)
{
    const int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    int fine;

    if (fd < 0) {
        log_say(TL_ALARM, "the log file %s cannot be opened: %s", file, strerror(errno));
        return 0;
    }
    fine = dup2(fd, STDERR_FILENO) >= 0;
    close(fd);
    return fine;
}

/* -1: go on; else the exit code. */
static int prepare(settings *s)
{
    char problem[1024];

    log_begin(PROGRAM, s->host.least, s->host.config_file);
    if (s->log_file != NULL && !open_log(s->log_file))
        return EXIT_USAGE;
    s->host.plugin = plugin_load(s->plugin_file, problem, sizeof problem);
    if (s->host.plugin != NULL)
        return -1;
    log_say(TL_ALARM, "%s", problem);
    return EXIT_USAGE;
}

/* The signal that came within wait_ms; 0: none. */
static int told(const sigset_t *signals, int64_t wait_ms)
{
    struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
    const int signal = sigtimedwait(signals, NULL, &wait);

    return signal > 0 ? signal : 0;
}

static void print_counts(const either *worker)
{
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;

    if (either_count(worker, &counts) != TL_OK)
        return;
    log_answer("claimed %" PRIu64 ", succeeded %" PRIu64 ", failed %" PRIu64 ", put back %" PRIu64
               ", parked %" PRIu64 ", lost %" PRIu64 ", unknown %" PRIu64 "; queries %" PRIu64
               ", cancels %" PRIu64 ", sends %" PRIu64,
               counts.claimed, counts.succeeded, counts.failed, counts.waiting, counts.parked,
               counts.lost, counts.unknown, counts.queries, counts.cancels, counts.sends);
}

/* ------------------------------------------------------------------- running -- */

struct running {
    host here;
    metrics_server *metrics;
    either worker;
    int leaves;           /* it takes nothing new */
    atomic_int has_begun; /* for the threads of the metrics, which then look at the worker */
};

/* Before anything is closed, since each call of the library ends the message of the one before. */
static tl_status told_of(tl_status status)
{
    if (status != TL_OK)
        log_say(TL_ALARM, "%s",
                tl_error_message()[0] != '\0' ? tl_error_message() : tl_status_text(status));
    return status;
}

/* On a thread of the metrics, which ends before the worker is freed. */
static tl_status tell_health(void *context)
{
    struct running *r = context;

    return atomic_load(&r->has_begun) ? either_check(&r->worker)
                                      : tl_error_report(TL_WRONG_STATE, "the worker has not begun");
}

/* Metrics are those of one client. */
static int open_metrics(struct running *r, char *problem, size_t space)
{
    tl_client *client = either_client(&r->here);

    if (r->here.fleet == NULL)
        return metrics_server_open(&r->metrics, client, tell_health, r, problem, space);
    if (client == NULL || tl_metrics_listen(client)[0] == '\0')
        return 0;
    snprintf(problem, space,
             "metrics_listen: metrics are served for one shard; begin a worker with --shard for "
             "each, or set it to off");
    return -1;
}

static int serve_metrics(struct running *r)
{
    char problem[512];

    if (open_metrics(r, problem, sizeof problem) == 0)
        return 1;
    (void)told_of(tl_error_report(TL_BAD_CONFIG, "%s", problem));
    r->metrics = NULL;
    return 0;
}

/* The worker on a host that is open.  Metrics that cannot be served keep a first one from
 * beginning; with settings that were read anew it works without, since nobody would do its work. */
static tl_status begin(struct running *r, const settings *s, int is_first)
{
    tl_status status;

    r->metrics = NULL;
    r->leaves = 0;
    r->worker = (either){NULL, NULL};
    atomic_store(&r->has_begun, 0);
    if (!serve_metrics(r) && is_first)
        return TL_BAD_CONFIG;
    status = either_start(&r->worker, &r->here, &s->worker);
    if (status != TL_OK)
        return told_of(status);
    log_answer("ready");
    atomic_store(&r->has_begun, 1);
    watch_ready(s->host.plugin->name);
    return TL_OK;
}

/* As if it had never been blocked; for process 1, as in a container, the kernel drops the signal. */
static void die_of(int signal)
{
    sigset_t only;

    log_say(TL_WARNING, "told a second time: it ends, and other workers compensate what it holds");
    sigemptyset(&only);
    sigaddset(&only, signal);
    (void)raise(signal);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    _exit(128 + signal);
}

static void end(struct running *r)
{
    metrics_server_stop(r->metrics);
    either_free(&r->worker);
    host_close(&r->here);
    r->metrics = NULL;
}

/* It takes nothing new, and finishes what it holds: beside another one, if settings were read. */
static void tell_to_leave(struct running *r)
{
    either_stop(&r->worker);
    r->leaves = 1;
}

/* Closes what was told to leave, once it holds nothing.  TL_TIMEOUT: it still does. */
static tl_status leave(struct running *r)
{
    const tl_status status = r->leaves ? either_wait(&r->worker, 0) : TL_OK;

    if (!r->leaves || status == TL_TIMEOUT)
        return status;
    (void)told_of(status);
    print_counts(&r->worker);
    end(r);
    r->leaves = 0;
    return status;
}

/* All that there are leave.  A signal more ends them at once. */
static tl_status leave_all(struct running both[2], int now, const sigset_t *signals)
{
    tl_status status = TL_TIMEOUT, before = TL_TIMEOUT;

    tell_to_leave(&both[now]);
    while (status == TL_TIMEOUT || before == TL_TIMEOUT) {
        const int signal = told(signals, LOOK_MS);

        if (signal != 0 && signal != SIGHUP)
            die_of(signal);
        if (status == TL_TIMEOUT)
            status = leave(&both[now]);
        if (before == TL_TIMEOUT)
            before = leave(&both[1 - now]);
    }
    return status != TL_OK ? status : before;
}

/* The other one, with the settings as they are now, begins before this one is told to leave: a
 * handler that hangs keeps nobody else waiting.  The metrics have one address. */
static tl_status begin_other(struct running *r, struct running *other, const settings *s)
{
    tl_status status = told_of(host_open(&other->here, &s->host));

    if (status != TL_OK)
        return status;
    metrics_server_stop(r->metrics);
    r->metrics = NULL;
    status = begin(other, s, 0);
    if (status == TL_OK)
        return TL_OK;
    end(other);
    (void)serve_metrics(r);
    return status;
}

/* Reads the settings anew.  The old ones stay in force unless another one began with the new ones.
 * Returns whether they are still to be read: there are two at most. */
static int reload(struct running both[2], int *now, const settings *s, int is_first)
{
    if (is_first && s->log_file != NULL)
        (void)open_log(s->log_file);
    if (both[1 - *now].leaves) {
        if (is_first)
            log_say(TL_WARNING, "work that began with the settings of before is not over: the "
                                "settings are read anew after it");
        return 1;
    }
    if (begin_other(&both[*now], &both[1 - *now], s) != TL_OK) {
        log_say(TL_ALARM, "the settings were not read anew, the old ones stay");
        return 0;
    }
    tell_to_leave(&both[*now]);
    *now = 1 - *now;
    log_say(TL_INFO, "the settings were read anew");
    return 0;
}

/* Until told to stop. */
static tl_status work(const settings *s, const sigset_t *signals)
{
    struct running both[2] = {{.metrics = NULL}};
    int now = 0, signal = 0, again = 0;
    tl_status status = told_of(host_open(&both[now].here, &s->host));

    if (status != TL_OK)
        return status;
    status = begin(&both[now], s, 1);
    if (status != TL_OK) {
        end(&both[now]);
        return status;
    }
    while ((signal == 0 || signal == SIGHUP) && either_wait(&both[now].worker, 0) == TL_TIMEOUT) {
        watch_worker(&both[now].worker);
        signal = told(signals, LOOK_MS);
        (void)leave(&both[1 - now]);
        if (again || signal == SIGHUP)
            again = reload(both, &now, s, signal == SIGHUP);
    }
    watch_stopping();
    return leave_all(both, now, signals);
}

static tl_status due_of(const host *here)
{
    tl_status status, all = TL_OK;

    if (here->fleet == NULL)
        return due_print(here->client, here->workflows);
    for (size_t i = 0; i < tl_fleet_size(here->fleet); i++) {
        tl_workflows *registry = NULL;
        tl_client *client = NULL;

        printf("shard %s\n", tl_fleet_shard(here->fleet, i));
        fflush(stdout);
        status = tl_fleet_shard_client(here->fleet, i, &client);
        if (status == TL_OK)
            status = tl_fleet_workflows_at(here->all, i, &registry);
        if (status == TL_OK)
            status = due_print(client, registry);
        if (status != TL_OK)
            all = told_of(status);
    }
    return all;
}

/* Says what is due. */
static tl_status look(settings *s)
{
    host here;
    tl_status status;

    s->host.client_flags = TL_CLIENT_NO_SESSION;
    status = told_of(host_open(&here, &s->host));
    if (status != TL_OK)
        return status;
    status = told_of(due_of(&here));
    host_close(&here);
    return status;
}

int main(int argc, char **argv)
{
    settings s = {
        .host = {.program = PROGRAM, .config_file = "", .least = TL_WARNING, .serves_fleets = 1},
        .worker = TL_WORKER_OPTIONS_INIT};
    int code = read_options(&s, argc, argv);
    sigset_t signals;
    tl_status status;

    if (code >= 0)
        return code;
    /* Before any thread is made, so that every thread leaves them to this one. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    code = prepare(&s);
    if (code >= 0)
        return code;
    status = s.dry_run ? look(&s) : work(&s, &signals);
    return status == TL_OK ? EXIT_DONE : host_exit_code(status);
}
