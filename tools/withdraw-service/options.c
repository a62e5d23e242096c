/* Reads and checks the command line of tradelock-withdraw. */
#include "options.h"

#include <tradelock/layer.h>

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define THREADS_MAX 256
#define DAY_MS INT64_C(86400000)

static const char usage[] =
    "usage: tradelock-withdraw --config FILE --channel-url URL [OPTION]... FILE.csv\n"
    "\n"
    "Runs the withdrawals of a CSV file, each exactly once.  The header must be\n"
    "serial_no,cust_no,op,amount_minor,currency,payee.  A line that cannot be a\n"
    "withdrawal is answered \"bad\" and stops nothing.\n"
    "\n"
    "  --config FILE         settings and connection\n"
    "  --channel-url URL     the channel, such as http://127.0.0.1:8080\n"
    "  --channel KIND        idempotent (default), window or plain\n"
    "  --window-ms N         kind window: how long a key is idempotent (default 60000)\n"
    "  --threads N           withdrawals at once, 1 to 256 (default 8)\n"
    "  --seed N              take the lines in an order chosen by N; 0 (default): "
    "theirs\n"
    "  --batch NAME          they belong to this batch, of which `tradelock ls --batch`\n"
    "                        tells how far it is; the same file again resumes it\n"
    "  --out FILE            write each line with its answer and final status\n"
    "  --open-accounts N     first give each customer without an account N minor units\n"
    "  --exclusive           one withdrawal of a customer at a time\n"
    "  --wait-ms N           wait so long for a trade or customer in process (default "
    "0)\n"
    "  --patience-ms N       repeat what the server could not take (default 60000)\n"
    "  --final-wait-ms N     wait so long until no trade is in process (default 0)\n"
    "  --verbose             log every step\n"
    "  --help, --version     print this, or the version, and end\n"
    "\n"
    "Ends with 0 when every line was answered, 1 when --out could not be written in\n"
    "the end, 2 when used wrongly or FILE.csv or --out cannot be used, 3 without a\n"
    "server, 4 without its schema, 5 when the server is not safe for money, 6 when\n"
    "trades are in process still, 70 otherwise.\n";

enum {
    OPT_CONFIG = 256,
    OPT_URL,
    OPT_CHANNEL,
    OPT_WINDOW,
    OPT_THREADS,
    OPT_SEED,
    OPT_BATCH,
    OPT_OUT,
    OPT_ACCOUNTS,
    OPT_EXCLUSIVE,
    OPT_WAIT,
    OPT_PATIENCE,
    OPT_FINAL,
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
    {"seed", required_argument, NULL, OPT_SEED},
    {"batch", required_argument, NULL, OPT_BATCH},
    {"out", required_argument, NULL, OPT_OUT},
    {"open-accounts", required_argument, NULL, OPT_ACCOUNTS},
    {"exclusive", no_argument, NULL, OPT_EXCLUSIVE},
    {"wait-ms", required_argument, NULL, OPT_WAIT},
    {"patience-ms", required_argument, NULL, OPT_PATIENCE},
    {"final-wait-ms", required_argument, NULL, OPT_FINAL},
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

/* Options whose value is a number. */
static int take_number(options *self, int option)
{
    int64_t threads = 0;

    switch (option) {
    case OPT_WINDOW:
        return host_read_number(&self->host.window_ms, optarg, 1, HOST_WINDOW_MAX_MS);
    case OPT_THREADS:
        if (!host_read_number(&threads, optarg, 1, THREADS_MAX))
            return 0;
        self->threads = (unsigned)threads;
        return 1;
    case OPT_SEED:
        return host_read_number(&self->seed, optarg, 0, INT64_MAX);
    case OPT_ACCOUNTS:
        return host_read_number(&self->open_minor, optarg, 0, INT64_MAX);
    case OPT_WAIT:
        return host_read_number(&self->wait_ms, optarg, 0, DAY_MS);
    case OPT_PATIENCE:
        return host_read_number(&self->patience_ms, optarg, 0, DAY_MS);
    case OPT_FINAL:
        return host_read_number(&self->final_wait_ms, optarg, 0, DAY_MS);
    default:
        return -1;
    }
}

static int take_option(options *self, int option)
{
    switch (option) {
    case OPT_CONFIG:
        self->host.config_file = optarg;
        break;
    case OPT_URL:
        self->host.channel_url = optarg;
        break;
    case OPT_CHANNEL:
        if (!withdraw_kind_find(optarg, &self->host.kind))
            return bad("--channel is idempotent, window or plain", optarg);
        break;
    case OPT_BATCH:
        if (tl_batch_check(optarg) != TL_OK) {
            fprintf(stderr, PROGRAM ": --%s\n", tl_error_message());
            return EXIT_USAGE;
        }
        self->batch = optarg;
        break;
    case OPT_OUT:
        self->out = optarg;
        break;
    case OPT_EXCLUSIVE:
        self->host.exclusive = 1;
        break;
    case OPT_VERBOSE:
        self->host.least = TL_INFO;
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

int options_read(options *self, int argc, char **argv)
{
    int option, index = 0;

    while ((option = getopt_long(argc, argv, "", names, &index)) != -1) {
        int taken = take_number(self, option), code;

        if (taken == 0) {
            fprintf(stderr, PROGRAM ": --%s takes a number in range: '%s'\n", names[index].name,
                    optarg);
            return EXIT_USAGE;
        }
        code = taken > 0 ? -1 : take_option(self, option);
        if (code >= 0)
            return code;
    }
    if (self->host.config_file == NULL || self->host.channel_url == NULL) {
        fputs(PROGRAM ": --config and --channel-url are needed; try --help\n", stderr);
        return EXIT_USAGE;
    }
    if (optind != argc - 1) {
        fputs(PROGRAM ": one FILE.csv is needed; try --help\n", stderr);
        return EXIT_USAGE;
    }
    self->file = argv[optind];
    return -1;
}
