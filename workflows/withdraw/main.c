/*
 * tradelock-withdraw: the sample service.  Each line of a CSV file is a request to pay; the same
 * request may come twice, from two threads, with another amount, or after a crash of this very
 * program, and is paid once.  What a killed one left under way a worker with the plug-in ends.
 */
#include "metrics_server.h"
#include "service.h"

#include <tradelock/layer.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MAX 256
#define DAY_MS INT64_C(86400000)

static const char usage[] =
    "usage: tradelock-withdraw [--config FILE] [OPTION]... FILE.csv\n"
    "\n"
    "Runs the withdrawals of a CSV file, each exactly once.  The header must be\n" ROWS_HEADER
    ".  A line that cannot be a\n"
    "withdrawal is answered \"bad\" and stops nothing.\n"
    "\n"
    "  --config FILE         settings and connection; [service-withdraw] channel_url names\n"
    "                        the channel, and what it promises stands beside it.  Each may\n"
    "                        come from the environment: TRADELOCK_HOST, WITHDRAW_CHANNEL_URL\n"
    "  --threads N           withdrawals at once, 1 to 256 (default 8)\n"
    "  --batch NAME          they belong to this batch, of which `tradelock ls --batch`\n"
    "                        tells how far it is; the same file again resumes it.  Each\n"
    "                        serial number stands once, and each line is to be paid\n"
    "  --out FILE            write each line with its answer and final status\n"
    "  --wait-ms N           wait so long for a trade or customer in process (default "
    "0)\n"
    "  --patience-ms N       repeat what the server could not take, while nothing else is\n"
    "                        taken (default 60000); then the rest is not begun\n"
    "  --final-wait-ms N     wait so long until no trade is in process (default 0)\n"
    "  --metrics             serve its metrics, and /healthz, where metrics_listen says\n"
    "  --verbose             log every step\n"
    "  --help, --version     print this, or the version, and end\n"
    "\n"
    "Ends with 0 when every line was answered; with --batch, when every line is paid.\n"
    "1 when a line of a batch failed or was refused, or --out could not be written in\n"
    "the end, 2 when used wrongly or FILE.csv or --out cannot be used, 3 without a\n"
    "server, 4 without its schema, 5 when the server is not safe for money, 6 when\n"
    "trades are in process still or lines were not begun, as while operators keep the\n"
    "channel paused, 70 otherwise.\n";

static int fail(int code, const char *what, const char *sentence)
{
    fprintf(stderr, PROGRAM ": %s%s%s\n", what, what[0] != '\0' ? ": " : "", sentence);
    return code;
}

/* -------------------------------------------------------------------- the command line -- */

enum { CONFIG = 256, THREADS, BATCH, OUT, WAIT, PATIENCE, FINAL, METRICS, VERBOSE, HELP, VERSION };

static const struct option names[] = {
    {"config", required_argument, NULL, CONFIG},
    {"threads", required_argument, NULL, THREADS},
    {"batch", required_argument, NULL, BATCH},
    {"out", required_argument, NULL, OUT},
    {"wait-ms", required_argument, NULL, WAIT},
    {"patience-ms", required_argument, NULL, PATIENCE},
    {"final-wait-ms", required_argument, NULL, FINAL},
    {"metrics", no_argument, NULL, METRICS},
    {"verbose", no_argument, NULL, VERBOSE},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

/* -1: go on; else the exit code. */
static int take_number(const char *name, int64_t *number, int64_t least, int64_t most)
{
    if (host_read_number(number, optarg, least, most))
        return -1;
    fprintf(stderr, PROGRAM ": --%s takes a number in range: '%s'\n", name, optarg);
    return EXIT_USAGE;
}

/* As above. */
static int take_option(options *self, int option, const char *name)
{
    switch (option) {
    case CONFIG:
        self->host.config_file = optarg;
        return -1;
    case THREADS:
        return take_number(name, &self->threads, 1, THREADS_MAX);
    case BATCH:
        self->batch = optarg;
        return tl_batch_check(optarg) == TL_OK ? -1
                                               : fail(EXIT_USAGE, "--batch", tl_error_message());
    case OUT:
        self->out = optarg;
        return -1;
    case WAIT:
        return take_number(name, &self->wait_ms, 0, DAY_MS);
    case PATIENCE:
        return take_number(name, &self->patience_ms, 0, DAY_MS);
    case FINAL:
        return take_number(name, &self->final_wait_ms, 0, DAY_MS);
    case METRICS:
        self->serves_metrics = 1;
        return -1;
    case VERBOSE:
        self->host.least = TL_INFO;
        return -1;
    case HELP:
        fputs(usage, stdout);
        return EXIT_DONE;
    case VERSION:
        printf(PROGRAM " %s\n", tl_version());
        return EXIT_DONE;
    default:
        fputs("try " PROGRAM " --help\n", stderr);
        return EXIT_USAGE;
    }
}

static int read_options(options *self, int argc, char **argv)
{
    int option, index = 0;

    while ((option = getopt_long(argc, argv, "", names, &index)) != -1) {
        const int code = take_option(self, option, names[index].name);

        if (code >= 0)
            return code;
    }
    if (optind != argc - 1)
        return fail(EXIT_USAGE, "", "one FILE.csv is needed; try --help");
    self->file = argv[optind];
    self->host.threads = (unsigned)self->threads;
    return -1;
}

/* --------------------------------------------------------------------------- the files -- */

static int read_file(const options *with, rows *all)
{
    char problem[512];
    FILE *file = fopen(with->file, "rb");
    int code = EXIT_DONE;

    if (file == NULL)
        return fail(EXIT_USAGE, with->file, strerror(errno));
    if (rows_read(all, file, with->file, problem, sizeof problem) != 0)
        code = fail(EXIT_USAGE, "", problem);
    else if (with->batch != NULL && rows_refuse_repeated(all) != 0)
        code = fail(EXIT_INTERNAL, "", "out of memory");
    fclose(file);
    return code;
}

/* Closes the file. */
static int write_out(const options *with, FILE *file, const rows *all)
{
    int failed;

    if (file == NULL)
        return EXIT_DONE;
    failed = ftruncate(fileno(file), 0) != 0 && errno != EINVAL; /* a pipe has no size */
    failed |= answers_write(file, all) != 0;
    if (fclose(file) != 0 || failed)
        return fail(EXIT_REFUSED, with->out, "could not be written");
    return EXIT_DONE;
}

static int are_one_file(const char *one, const char *other)
{
    struct stat a, b;

    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* ------------------------------------------------------------------------------ paying -- */

/* On a thread of the metrics. */
static tl_status tell_health(void *client)
{
    return tl_client_alive_ms(client) > 0
               ? TL_OK
               : tl_error_report(TL_UNREACHABLE, "no heartbeat is confirmed, so nothing is begun");
}

/* Metrics are those of one client. */
static int open_metrics(const host *here, metrics_server **metrics)
{
    char problem[512];

    if (here->fleet != NULL)
        return fail(EXIT_USAGE, "--metrics",
                    "metrics are served for one database, not for a fleet");
    if (metrics_server_open(metrics, here->client, tell_health, here->client, problem,
                            sizeof problem) != 0)
        return fail(EXIT_USAGE, "", problem);
    return EXIT_DONE;
}

/* *open: how many lines are in process still. */
static int pay(const options *with, rows *all, size_t *open)
{
    host here;
    metrics_server *metrics = NULL;
    int code;
    tl_status status = host_open(&here, &with->host);

    if (status != TL_OK)
        return fail(host_exit_code(status), "", tl_error_message());
    code = with->serves_metrics ? open_metrics(&here, &metrics) : EXIT_DONE;
    if (code == EXIT_DONE && service_run(&here, with, all) != 0)
        code = fail(EXIT_INTERNAL, "", "no thread could be started");
    else if (code == EXIT_DONE)
        *open = service_settle(&here, with, all);
    metrics_server_stop(metrics);
    host_close(&here);
    return code;
}

/* ------------------------------------------------------------------- what became of it -- */

typedef enum outcome { PAID, OPEN, FAILED, REFUSED, ERROR, OUTCOMES } outcome;

static outcome outcome_of(const row *of)
{
    switch (of->kind) {
    case ROW_NEW:
    case ROW_REPEATED:
        return strcmp(of->final, "succeeded") == 0 ? PAID
               : strcmp(of->final, "failed") == 0  ? FAILED
                                                   : OPEN;
    case ROW_OPEN:
        return OPEN;
    case ROW_ERROR:
        return ERROR;
    default:
        return REFUSED;
    }
}

/* A batch is to be paid, so each line is told that is not; else each bad one. */
static void tell_line(const options *with, const row *of)
{
    const char *why = of->sentence != NULL ? of->sentence : of->kind != ROW_OPEN ? of->final : "";

    if (why[0] != '\0' && (of->kind == ROW_BAD || (with->batch != NULL && outcome_of(of) != PAID)))
        fprintf(stderr, PROGRAM ": %s:%u: %s\n", with->file, of->line, why);
}

/* Prints the counts.  The exit code. */
static int tell(const options *with, const rows *all, size_t open)
{
    size_t kinds[ROW_KINDS] = {0}, outcomes[OUTCOMES] = {0};
    tl_status error = TL_OK;

    for (size_t i = 0; i < all->count; i++) {
        const row *of = &all->list[i];

        tell_line(with, of);
        kinds[of->kind]++;
        outcomes[outcome_of(of)]++;
        if (of->kind == ROW_ERROR)
            error = of->status;
    }
    printf("lines %zu = new %zu + repeated %zu + mismatch %zu + refused %zu + bad %zu"
           " + error %zu + open %zu\n",
           all->count, kinds[ROW_NEW], kinds[ROW_REPEATED], kinds[ROW_MISMATCH], kinds[ROW_REFUSED],
           kinds[ROW_BAD], kinds[ROW_ERROR], kinds[ROW_OPEN]);
    open += kinds[ROW_OPEN];
    if (with->batch != NULL) {
        open = outcomes[OPEN];
        printf("batch %s: %zu lines = paid %zu + open %zu + failed %zu + refused %zu + error %zu\n",
               with->batch, all->count, outcomes[PAID], open, outcomes[FAILED], outcomes[REFUSED],
               outcomes[ERROR]);
    }
    if (open > 0)
        fprintf(stderr,
                PROGRAM ": %zu lines are in process still, or were not begun since nothing was "
                        "taken for so long; the same file again resumes\n",
                open);
    if (error != TL_OK)
        return fail(host_exit_code(error), "", "not every line could be answered");
    if (with->batch != NULL && outcomes[FAILED] + outcomes[REFUSED] > 0)
        return EXIT_REFUSED;
    return open > 0 ? EXIT_DOUBT : EXIT_DONE;
}

static int serve(const options *with, rows *all)
{
    FILE *out = NULL;
    size_t open = 0;
    int code, written;

    if (with->out != NULL && are_one_file(with->out, with->file))
        return fail(EXIT_USAGE, with->out, "the answers would overwrite the withdrawals");
    /* Before the first payment, whose answer would have nowhere to go; what an earlier run wrote
     * stays until there is something new. */
    if (with->out != NULL && (out = fopen(with->out, "ab")) == NULL)
        return fail(EXIT_USAGE, with->out, strerror(errno));
    code = pay(with, all, &open);
    if (code != EXIT_DONE) {
        if (out != NULL)
            fclose(out);
        return code;
    }
    code = tell(with, all, open);
    written = write_out(with, out, all);
    return written != EXIT_DONE ? written : code;
}

int main(int argc, char **argv)
{
    options with = {.host = {.program = PROGRAM,
                             .config_file = "",
                             .plugin = &tradelock_plugin,
                             .least = TL_WARNING,
                             .serves_fleets = 1},
                    .threads = 8,
                    .patience_ms = 60000};
    rows all = {0};
    int code = read_options(&with, argc, argv);

    if (code >= 0)
        return code;
    code = read_file(&with, &all);
    if (code == EXIT_DONE)
        code = serve(&with, &all);
    rows_free(&all);
    return code;
}
