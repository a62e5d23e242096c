/*
 * tradelock-worker: a process that runs the retry worker for the sample workflow.
 *
 * SIGTERM and SIGINT stop it: it finishes what it holds and takes nothing new.  SIGHUP has it read
 * its settings anew: what it holds is finished by the old ones.  A process that was
 * taken for dead (it was stopped for too long) goes on by itself.
 */
#include "host.h"
#include "metrics_server.h"

#include <tradelock/lane.h>

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PROGRAM "tradelock-worker"
#define LOOK_MS 100

static const char usage[] =
    "usage: tradelock-worker --config FILE --channel-url URL [OPTION]...\n"
    "\n"
    "Brings withdrawals to an end that their service left undone.\n"
    "\n"
    "  --config FILE        settings and connection\n"
    "  --channel-url URL    the channel, such as http://127.0.0.1:8080\n"
    "  --channel KIND       idempotent (default), window or plain\n"
    "  --window-ms N        kind window: how long a key is idempotent (default 60000)\n"
    "  --threads N          attempts at once, 1 to 64 (default 4)\n"
    "  --idle-ms N          look for due work at least so often (default 1000)\n"
    "  --unclaimed-ms N     alarm for work that is overdue by this (default 60000)\n"
    "  --exclusive          the service lets one withdrawal of a customer in at a time\n"
    "  --verbose            log every step\n"
    "  --help, --version    print this, or the version, and end\n"
    "\n"
    "SIGHUP has it read its settings anew; bad ones leave the old ones in force.\n"
    "Prints \"ready\" when it works, and counts when it ends.  Ends with 0 after SIGTERM "
    "or\n"
    "SIGINT, 2 when used wrongly, 3 without a server, 4 without its schema, 5 when the\n"
    "server is not safe for money, 70 otherwise.\n";

typedef struct settings {
    host_options host;
    tl_worker_options worker;
} settings;

enum {
    OPT_CONFIG = 256,
    OPT_URL,
    OPT_CHANNEL,
    OPT_WINDOW,
    OPT_THREADS,
    OPT_IDLE,
    OPT_UNCLAIMED,
    OPT_EXCLUSIVE,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_VERSION
};

static const struct option names[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"channel-url", required_argument, NULL, OPT_URL},
    {"channel", required_argument, NULL, OPT_CHANNEL},
    {"window-ms", required_argument, NULL, OPT_WINDOW},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"idle-ms", required_argument, NULL, OPT_IDLE},
    {"unclaimed-ms", required_argument, NULL, OPT_UNCLAIMED},
    {"exclusive", no_argument, NULL, OPT_EXCLUSIVE},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
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
    case OPT_URL:
        s->host.channel_url = optarg;
        break;
    case OPT_CHANNEL:
        if (!withdraw_kind_find(optarg, &s->host.kind))
            return bad("--channel is idempotent, window or plain", optarg);
        break;
    case OPT_WINDOW:
        if (!host_read_number(&s->host.window_ms, optarg, 1, HOST_WINDOW_MAX_MS))
            return bad("--window-ms is a number of milliseconds", optarg);
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
    case OPT_EXCLUSIVE:
        s->host.exclusive = 1;
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
    if (s->host.config_file == NULL || s->host.channel_url == NULL) {
        fputs(PROGRAM ": --config and --channel-url are needed; try --help\n", stderr);
        return EXIT_USAGE;
    }
    return -1;
}

/* The signal that came within wait_ms; 0: none. */
static int told(const sigset_t *signals, int64_t wait_ms)
{
    struct timespec wait = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000};
    const int signal = sigtimedwait(signals, NULL, &wait);

    return signal > 0 ? signal : 0;
}

static void print_counts(tl_worker *worker)
{
    tl_worker_counts counts = TL_WORKER_COUNTS_INIT;

    if (tl_worker_count(worker, &counts) != TL_OK)
        return;
    printf("claimed %" PRIu64 ", succeeded %" PRIu64 ", failed %" PRIu64 ", put back %" PRIu64
           ", parked %" PRIu64 ", lost %" PRIu64 ", unknown %" PRIu64 "; queries %" PRIu64
           ", cancels %" PRIu64 ", sends %" PRIu64 "\n",
           counts.claimed, counts.succeeded, counts.failed, counts.waiting, counts.parked,
           counts.lost, counts.unknown, counts.queries, counts.cancels, counts.sends);
    fflush(stdout);
}

/* ------------------------------------------------------------------- running -- */

struct running {
    host here;
    metrics_server *metrics;
    tl_worker *worker;
};

/* Before anything is closed, since each call of the library ends the message of the one before. */
static tl_status told_of(tl_status status)
{
    if (status != TL_OK)
        fprintf(stderr, PROGRAM ": %s\n",
                tl_error_message()[0] != '\0' ? tl_error_message() : tl_status_text(status));
    return status;
}

/* The worker on a host that is open. */
static tl_status begin(struct running *r, const settings *s)
{
    char problem[512];
    tl_status status;

    r->metrics = NULL;
    r->worker = NULL;
    if (metrics_server_open(&r->metrics, r->here.client, problem, sizeof problem) != 0)
        return told_of(tl_error_report(TL_BAD_CONFIG, "%s", problem));
    status = tl_worker_start(&r->worker, r->here.workflows, &s->worker);
    if (status == TL_OK)
        puts("ready");
    fflush(stdout);
    return told_of(status);
}

/* Finishes what it holds, and takes nothing new. */
static tl_status drain(struct running *r)
{
    tl_status status;

    tl_worker_stop(r->worker);
    while ((status = tl_worker_wait(r->worker, LOOK_MS)) == TL_TIMEOUT)
        continue;
    (void)told_of(status);
    print_counts(r->worker);
    return status;
}

static void end(struct running *r)
{
    tl_worker_free(r->worker);
    metrics_server_stop(r->metrics);
    host_close(&r->here);
    r->worker = NULL;
    r->metrics = NULL;
}

/* Reads the settings anew.  The old ones stay in force unless a host opened with the new ones.
 * TL_OK:
 * *now is the other one. */
static tl_status reload(struct running both[2], int *now, const settings *s)
{
    struct running *next = &both[1 - *now];
    tl_status status = host_open(&next->here, &s->host);

    if (status != TL_OK) {
        fprintf(stderr, PROGRAM ": the settings were not read anew, the old ones stay: %s\n",
                tl_error_message());
        return TL_OK;
    }
    status = drain(&both[*now]);
    end(&both[*now]);
    *now = 1 - *now;
    if (status != TL_OK) {
        host_close(&next->here);
        return status;
    }
    fputs(PROGRAM ": the settings were read anew\n", stderr);
    status = begin(next, s);
    if (status != TL_OK)
        end(next);
    return status;
}

/* Until told to stop. */
static tl_status work(const settings *s, const sigset_t *signals)
{
    struct running both[2] = {{.worker = NULL}};
    int now = 0, signal = 0;
    tl_status status = told_of(host_open(&both[now].here, &s->host));

    if (status != TL_OK)
        return status;
    status = begin(&both[now], s);
    while (status == TL_OK && tl_worker_wait(both[now].worker, 0) == TL_TIMEOUT) {
        signal = told(signals, LOOK_MS);
        if (signal == SIGHUP) {
            status = reload(both, &now, s);
            if (status != TL_OK)
                return status;
        } else if (signal != 0) {
            break;
        }
    }
    if (status == TL_OK)
        status = drain(&both[now]);
    end(&both[now]);
    return status;
}

int main(int argc, char **argv)
{
    settings s = {.host = {.program = PROGRAM, .window_ms = 60000, .least = TL_WARNING},
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
    status = work(&s, &signals);
    return status == TL_OK ? EXIT_DONE : host_exit_code(status);
}
