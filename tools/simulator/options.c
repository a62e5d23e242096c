/* Reads and checks the simulator's command line. */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_MS INT64_C(3600000)
#define WINDOW_MAX_MS INT64_C(31536000000) /* a year */

enum option_name {
    OPTION_LISTEN = 1000,
    OPTION_PORT_FILE,
    OPTION_LEDGER,
    OPTION_REQUEST_LOG,
    OPTION_KIND,
    OPTION_WINDOW_MS,
    OPTION_FAULTS,
    OPTION_SEED,
    OPTION_SLOW_MS,
    OPTION_SETTLE_MS,
    OPTION_LAG_MS,
    OPTION_RULE,
    OPTION_EXPORT_CSV,
    OPTION_EXPORT_REQUESTS,
    OPTION_PROXY,
    OPTION_KEY,
    OPTION_NAME,
    OPTION_CA_FILE,
    OPTION_UPSTREAM_MS,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option names[] = {
    {"listen", required_argument, NULL, OPTION_LISTEN},
    {"port-file", required_argument, NULL, OPTION_PORT_FILE},
    {"ledger", required_argument, NULL, OPTION_LEDGER},
    {"request-log", required_argument, NULL, OPTION_REQUEST_LOG},
    {"kind", required_argument, NULL, OPTION_KIND},
    {"window-ms", required_argument, NULL, OPTION_WINDOW_MS},
    {"faults", required_argument, NULL, OPTION_FAULTS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"slow-ms", required_argument, NULL, OPTION_SLOW_MS},
    {"settle-ms", required_argument, NULL, OPTION_SETTLE_MS},
    {"lag-ms", required_argument, NULL, OPTION_LAG_MS},
    {"rule", required_argument, NULL, OPTION_RULE},
    {"export-csv", required_argument, NULL, OPTION_EXPORT_CSV},
    {"export-requests", required_argument, NULL, OPTION_EXPORT_REQUESTS},
    {"proxy", required_argument, NULL, OPTION_PROXY},
    {"key", required_argument, NULL, OPTION_KEY},
    {"name", required_argument, NULL, OPTION_NAME},
    {"ca-file", required_argument, NULL, OPTION_CA_FILE},
    {"upstream-ms", required_argument, NULL, OPTION_UPSTREAM_MS},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0}};

const char *options_help(void)
{
    return "usage: tradelock-simulator --ledger FILE [OPTION]...\n"
           "       tradelock-simulator --ledger FILE --proxy URL [OPTION]...\n"
           "       tradelock-simulator --export-csv FILE\n"
           "       tradelock-simulator --export-requests FILE\n"
           "\n"
           "A channel that moves pretended money, over HTTP, to test payment services; or, with\n"
           "--proxy, the same faults in front of a channel of your own.\n"
           "\n"
           "  --ledger FILE           the durable ledger; made when it is not there\n"
           "  --listen ADDRESS:PORT   default 127.0.0.1:0; port 0: any free one\n"
           "  --port-file FILE        write the port there once it is listening\n"
           "  --request-log FILE      append a line for each request and each answer\n"
           "  --kind KIND             idempotent (default), window or plain\n"
           "  --window-ms N           kind window: how long a key is idempotent "
           "(default 60000)\n"
           "  --faults RATE           share of requests that go wrong, 0 (default) to 1\n"
           "  --seed N                makes these faults repeatable (default 1)\n"
           "  --slow-ms N             how slow slow requests are (default 200)\n"
           "  --settle-ms N           when accepted payments are settled (default 100)\n"
           "  --lag-ms N              how late queries may see a payment (default 100)\n"
           "  --rule JSON             a fault rule from the start; may be repeated\n"
           "  --proxy URL             forward each request to this channel\n"
           "  --key PLACE             where a request has its key: header:NAME, field:NAME of\n"
           "                          a JSON body, or path:PREFIX; may be repeated, the first\n"
           "                          that is there counts (default header:Idempotency-Key)\n"
           "  --name OURS=THEIRS      what bodies call serial_no, cust_no, op_code,\n"
           "                          amount_minor, currency, payee or channel_ref\n"
           "  --ca-file FILE          certificates to check an https upstream by\n"
           "  --upstream-ms N         how long it may take to answer (default 60000)\n"
           "  --export-csv FILE       print the payments of a ledger as CSV, and end\n"
           "  --export-requests FILE  print what a proxy forwarded or kept back, and end\n"
           "  --help, --version       print this, or the version, and end\n"
           "\n"
           "Ends with 0 after SIGTERM or SIGINT, 1 when it cannot serve, 2 when used "
           "wrongly.\n";
}

static bool read_int(const char *name, int64_t highest, int64_t *number, struct problem *problem)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(optarg, &end, 10);
    if (errno || end == optarg || *end || optarg[0] < '0' || optarg[0] > '9' || value > highest)
        return problem_set(problem, "--%s must be a whole number from 0 to %lld", name,
                           (long long)highest);
    *number = value;
    return true;
}

static bool read_rate(double *rate, struct problem *problem)
{
    char *end;

    *rate = strtod(optarg, &end);
    if (end == optarg || *end || !(*rate >= 0 && *rate <= 1))
        return problem_set(problem, "--faults must be a number from 0 to 1");
    return true;
}

static bool read_address(struct sockaddr_in *address, struct problem *problem)
{
    char host[INET_ADDRSTRLEN];
    const char *colon = strchr(optarg, ':');
    char *end = NULL;
    unsigned long port = 0;

    if (colon && (size_t)(colon - optarg) < sizeof(host) && colon[1] >= '0' && colon[1] <= '9') {
        memcpy(host, optarg, (size_t)(colon - optarg));
        host[colon - optarg] = '\0';
        port = strtoul(colon + 1, &end, 10);
    }
    if (!end || *end || port > 65535 || inet_pton(AF_INET, host, &address->sin_addr) != 1)
        return problem_set(problem, "--listen must be an IPv4 address and a port, such as "
                                    "127.0.0.1:8080");
    address->sin_port = htons((uint16_t)port);
    return true;
}

static bool add_rule(struct options *options, struct problem *problem)
{
    size_t i = 0;

    while (options->rules[i])
        i++;
    if (i == RULES_MAX - 1)
        return problem_set(problem, "--rule can be given %d times at most", RULES_MAX - 1);
    options->rules[i] = optarg;
    return true;
}

static bool add_key(struct options *options, struct problem *problem)
{
    static const char *const places[] = {"header:", "field:", "path:"};
    struct key_place *keys = options->proxy.keys;
    size_t i = 0, where = 0, length = 0;

    while (keys[i].name)
        i++;
    if (i == KEY_PLACES_MAX)
        return problem_set(problem, "--key can be given %d times at most", KEY_PLACES_MAX);
    for (; where < 3; where++) {
        length = strlen(places[where]);
        if (strncmp(optarg, places[where], length) == 0 && optarg[length])
            break;
    }
    if (where == 3)
        return problem_set(problem, "--key must be header:NAME, field:NAME or path:PREFIX");
    keys[i].where = where == 0 ? KEY_HEADER : where == 1 ? KEY_FIELD : KEY_PATH;
    keys[i].name = optarg + length;
    return true;
}

static const char *const order_names[NAME_COUNT] = {
    "serial_no", "cust_no", "op_code", "amount_minor", "currency", "payee", "channel_ref"};

static bool add_name(struct options *options, struct problem *problem)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        size_t length = strlen(order_names[i]);

        if (strncmp(optarg, order_names[i], length) == 0 && optarg[length] == '=' &&
            optarg[length + 1]) {
            options->proxy.names[i] = optarg + length + 1;
            return true;
        }
    }
    return problem_set(problem,
                       "--name must be OURS=THEIRS, such as serial_no=reference; see --help");
}

static bool read_proxy_option(struct options *options, int name, struct problem *problem)
{
    switch (name) {
    case OPTION_PROXY:
        options->proxy.url = optarg;
        return true;
    case OPTION_KEY:
        return add_key(options, problem);
    case OPTION_NAME:
        return add_name(options, problem);
    case OPTION_CA_FILE:
        options->proxy.ca_file = optarg;
        return true;
    default:
        if (!read_int("upstream-ms", WAIT_MAX_MS, &options->proxy.upstream_ms, problem))
            return false;
        return options->proxy.upstream_ms > 0 ||
               problem_set(problem, "--upstream-ms must be at least 1");
    }
}

static bool read_fault_option(struct options *options, int name, struct problem *problem)
{
    struct fault_settings *faults = &options->faults;
    int64_t seed = 0;

    switch (name) {
    case OPTION_FAULTS:
        return read_rate(&faults->rate, problem);
    case OPTION_SEED:
        if (!read_int("seed", INT64_MAX, &seed, problem))
            return false;
        faults->seed = (uint64_t)seed;
        return true;
    case OPTION_SLOW_MS:
        return read_int("slow-ms", WAIT_MAX_MS, &faults->slow_ms, problem);
    case OPTION_SETTLE_MS:
        return read_int("settle-ms", WAIT_MAX_MS, &faults->settle_ms, problem);
    case OPTION_LAG_MS:
        return read_int("lag-ms", WAIT_MAX_MS, &faults->lag_ms, problem);
    default:
        return add_rule(options, problem);
    }
}

static bool read_option(struct options *options, int name, struct problem *problem)
{
    switch (name) {
    case OPTION_LISTEN:
        return read_address(&options->address, problem);
    case OPTION_PORT_FILE:
        options->port_file = optarg;
        return true;
    case OPTION_LEDGER:
        options->ledger = optarg;
        return true;
    case OPTION_REQUEST_LOG:
        options->request_log = optarg;
        return true;
    case OPTION_EXPORT_CSV:
        options->export = optarg;
        options->command = COMMAND_EXPORT;
        return true;
    case OPTION_EXPORT_REQUESTS:
        options->export = optarg;
        options->command = COMMAND_EXPORT_REQUESTS;
        return true;
    case OPTION_PROXY:
    case OPTION_KEY:
    case OPTION_NAME:
    case OPTION_CA_FILE:
    case OPTION_UPSTREAM_MS:
        return read_proxy_option(options, name, problem);
    case OPTION_KIND:
        return kind_find(optarg, &options->kind) ||
               problem_set(problem, "--kind must be idempotent, window or plain");
    case OPTION_WINDOW_MS:
        return read_int("window-ms", WINDOW_MAX_MS, &options->window_ms, problem);
    case OPTION_HELP:
        options->command = COMMAND_HELP;
        return true;
    case OPTION_VERSION:
        options->command = COMMAND_VERSION;
        return true;
    default:
        return read_fault_option(options, name, problem);
    }
}

/* An option that would do nothing is a mistake.  `given` has one bit for each option. */
static bool check_together(struct options *options, uint64_t given, struct problem *problem)
{
    static const int of_channel[] = {OPTION_KIND, OPTION_WINDOW_MS, OPTION_SETTLE_MS,
                                     OPTION_LAG_MS};
    static const int of_proxy[] = {OPTION_KEY, OPTION_NAME, OPTION_CA_FILE, OPTION_UPSTREAM_MS};
    const int *wrong = options->proxy.url ? of_channel : of_proxy;

    if (options->command == COMMAND_SERVE && !options->ledger)
        return problem_set(problem, "--ledger FILE is missing; see --help");
    for (size_t i = 0; i < 4; i++) {
        if (given & (UINT64_C(1) << (wrong[i] - OPTION_LISTEN)))
            return problem_set(problem, "--%s is for a %s", names[wrong[i] - OPTION_LISTEN].name,
                               options->proxy.url ? "channel, not for a proxy" : "--proxy URL");
    }
    options->faults.proxy = options->proxy.url != NULL;
    if (!options->proxy.keys[0].name)
        options->proxy.keys[0].name = "Idempotency-Key";
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (!options->proxy.names[i])
            options->proxy.names[i] = order_names[i];
    }
    return true;
}

bool options_read(struct options *options, int argc, char **argv, struct problem *problem)
{
    uint64_t given = 0;
    int name;

    memset(options, 0, sizeof(*options));
    options->address.sin_family = AF_INET;
    options->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options->window_ms = 60000;
    options->faults = (struct fault_settings){0, 1, 200, 100, 100, false};
    options->proxy.upstream_ms = 60000;
    opterr = 0;
    while ((name = getopt_long(argc, argv, ":", names, NULL)) != -1) {
        if (name == '?')
            return problem_set(problem, "there is no option %s; see --help", argv[optind - 1]);
        if (name == ':')
            return problem_set(problem, "%s needs a value; see --help", argv[optind - 1]);
        if (!read_option(options, name, problem))
            return false;
        given |= UINT64_C(1) << (name - OPTION_LISTEN);
        /* The first of these wins over whatever else is there. */
        if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION)
            return true;
    }
    if (optind < argc)
        return problem_set(problem, "\"%s\" is not an option; see --help", argv[optind]);
    return check_together(options, given, problem);
}
