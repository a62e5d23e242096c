/* Reads and checks the simulator's command line. */
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MAX_MS INT64_C(3600000)
#define WINDOW_MAX_MS INT64_C(31536000000) /* a year */

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

static bool read_rate(struct options *options, struct problem *problem)
{
    double *rate = &options->faults.rate;
    char *end;

    *rate = strtod(optarg, &end);
    if (end == optarg || *end || !(*rate >= 0 && *rate <= 1))
        return problem_set(problem, "--faults must be a number from 0 to 1");
    return true;
}

static bool read_address(struct options *options, struct problem *problem)
{
    struct sockaddr_in *address = &options->address;
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

static const char *our_name(size_t i)
{
    return i == NAME_REF ? "channel_ref" : order_fields[1 + i].name;
}

static bool add_name(struct options *options, struct problem *problem)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        size_t length = strlen(our_name(i));

        if (strncmp(optarg, our_name(i), length) == 0 && optarg[length] == '=' &&
            optarg[length + 1]) {
            options->proxy.names[i] = optarg + length + 1;
            return true;
        }
    }
    return problem_set(problem,
                       "--name must be OURS=THEIRS, such as serial_no=reference; see --help");
}

static bool read_kind(struct options *options, struct problem *problem)
{
    return kind_find(optarg, &options->kind) ||
           problem_set(problem, "--kind must be idempotent, window or plain");
}

/* What an option does: a text is taken as it is, a number is from 0 (`least`) to `most`, a command
 * is carried out instead of serving, and read() reads everything else. */
#define TEXT(member) .text = offsetof(struct options, member) + 1
#define NUMBER(member, to) .number = offsetof(struct options, member) + 1, .most = (to)
static const struct known {
    const char *name;
    size_t text, number; /* where it goes, counted from 1; 0: no such thing */
    int64_t most, least;
    bool (*read)(struct options *options, struct problem *problem);
    enum command command;
    bool is_flag, of_channel, of_proxy;
} known[] = {
    {"listen", .read = read_address},
    {"port-file", TEXT(port_file)},
    {"ledger", TEXT(ledger)},
    {"request-log", TEXT(request_log)},
    {"kind", .read = read_kind, .of_channel = true},
    {"window-ms", NUMBER(window_ms, WINDOW_MAX_MS), .of_channel = true},
    {"faults", .read = read_rate},
    {"seed", NUMBER(faults.seed, INT64_MAX)},
    {"slow-ms", NUMBER(faults.slow_ms, WAIT_MAX_MS)},
    {"settle-ms", NUMBER(faults.settle_ms, WAIT_MAX_MS), .of_channel = true},
    {"lag-ms", NUMBER(faults.lag_ms, WAIT_MAX_MS), .of_channel = true},
    {"rule", .read = add_rule},
    {"export-csv", TEXT(export), .command = COMMAND_EXPORT},
    {"export-requests", TEXT(export), .command = COMMAND_EXPORT_REQUESTS},
    {"proxy", TEXT(proxy.url)},
    {"key", .read = add_key, .of_proxy = true},
    {"name", .read = add_name, .of_proxy = true},
    {"ca-file", TEXT(proxy.ca_file), .of_proxy = true},
    {"upstream-ms", NUMBER(proxy.upstream_ms, WAIT_MAX_MS), .least = 1, .of_proxy = true},
    {"help", .command = COMMAND_HELP, .is_flag = true},
    {"version", .command = COMMAND_VERSION, .is_flag = true},
};
#define KNOWN (sizeof known / sizeof known[0])
_Static_assert(COMMAND_SERVE == 0, "an option without a command leaves it");

static bool read_number(struct options *options, const struct known *o, struct problem *problem)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(optarg, &end, 10);
    if (errno || end == optarg || *end || optarg[0] < '0' || optarg[0] > '9' || value > o->most)
        return problem_set(problem, "--%s must be a whole number from 0 to %lld", o->name,
                           (long long)o->most);
    if (value < o->least)
        return problem_set(problem, "--%s must be at least %lld", o->name, (long long)o->least);
    memcpy((char *)options + o->number - 1, &(int64_t){value}, sizeof(int64_t));
    return true;
}

static bool read_option(struct options *options, const struct known *o, struct problem *problem)
{
    const char *text = optarg;

    if (o->command != COMMAND_SERVE)
        options->command = o->command;
    if (o->text)
        memcpy((char *)options + o->text - 1, &text, sizeof text);
    if (o->number)
        return read_number(options, o, problem);
    return !o->read || o->read(options, problem);
}

/* An option that would do nothing is a mistake. */
static bool check_together(struct options *options, const bool given[KNOWN],
                           struct problem *problem)
{
    const bool is_proxy = options->proxy.url != NULL;

    if (options->command == COMMAND_SERVE && !options->ledger)
        return problem_set(problem, "--ledger FILE is missing; see --help");
    for (size_t i = 0; i < KNOWN; i++) {
        if (given[i] && (is_proxy ? known[i].of_channel : known[i].of_proxy))
            return problem_set(problem, "--%s is for a %s", known[i].name,
                               is_proxy ? "channel, not for a proxy" : "--proxy URL");
    }
    options->faults.proxy = is_proxy;
    if (!options->proxy.keys[0].name)
        options->proxy.keys[0].name = "Idempotency-Key";
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (!options->proxy.names[i])
            options->proxy.names[i] = our_name(i);
    }
    return true;
}

bool options_read(struct options *options, int argc, char **argv, struct problem *problem)
{
    struct option names[KNOWN + 1] = {{0}};
    bool given[KNOWN] = {false};
    int place;

    for (size_t i = 0; i < KNOWN; i++)
        names[i] = (struct option){
            known[i].name, known[i].is_flag ? no_argument : required_argument, NULL, 1000 + (int)i};
    memset(options, 0, sizeof(*options));
    options->address.sin_family = AF_INET;
    options->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    options->window_ms = 60000;
    options->faults = (struct fault_settings){0, 1, 200, 100, 100, false};
    options->proxy.upstream_ms = 60000;
    opterr = 0;
    while ((place = getopt_long(argc, argv, ":", names, NULL)) != -1) {
        if (place == '?')
            return problem_set(problem, "there is no option %s; see --help", argv[optind - 1]);
        if (place == ':')
            return problem_set(problem, "%s needs a value; see --help", argv[optind - 1]);
        given[place - 1000] = true;
        if (!read_option(options, &known[place - 1000], problem))
            return false;
        /* The first of these wins over whatever else is there. */
        if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION)
            return true;
    }
    if (optind < argc)
        return problem_set(problem, "\"%s\" is not an option; see --help", argv[optind]);
    return check_together(options, given, problem);
}
