/* Reads the command line.  Prints help and complaints, and touches nothing else. */
#include "options.h"

#include <tradelock/admin.h>

#include <arpa/inet.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IDLE_DEFAULT_MS (INT64_C(15) * 60 * 1000)
#define IDLE_MOST_MS (INT64_C(12) * 3600 * 1000)

static const char help[] =
    "Usage: tradelock desk --config FILE --listen ADDRESS:PORT [OPTION...]\n"
    "\n"
    "Serves the operators' pages to browsers: what hangs, why, and deciding about it by\n"
    "two.  People log in with their own MariaDB account, and its rights are theirs.  FILE\n"
    "says where the server is; a user and a password in it are not used.  Runs until it is\n"
    "interrupted.\n"
    "\n"
    "Options:\n"
    "  --config FILE   settings; else $TRADELOCK_CONFIG\n"
    "  --shard NAME    of a fleet: this shard alone\n"
    "  --listen ADDRESS:PORT\n"
    "                  where to listen (127.0.0.1:8460); port 0: any that is free\n"
    "  --port-file FILE  write the port there, once it listens\n"
    "  --tls-cert FILE --tls-key FILE\n"
    "                  speak TLS with this certificate and key (PEM)\n"
    "  --behind-proxy  a proxy of yours speaks TLS to the browsers\n"
    "  --idle TIME     log people out after that long without a click (15m)\n"
    "  -h, --help      print this\n"
    "\n"
    "Beyond loopback it needs --tls-cert and --tls-key, or --behind-proxy.\n";

static int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int complain(const char *format, ...)
{
    va_list arguments;

    fputs("tradelock desk: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("; see `tradelock desk --help`\n", stderr);
    return EXIT_WRONG_USE;
}

static int read_number(const char *text, unsigned long most, unsigned long *number)
{
    char *end;

    if (text[0] < '0' || text[0] > '9' || strlen(text) > 9)
        return 0;
    *number = strtoul(text, &end, 10);
    return *end == '\0' && *number <= most;
}

static int read_address(struct sockaddr_in *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN];
    unsigned long port;

    if (colon == NULL || (size_t)(colon - text) >= sizeof host ||
        !read_number(colon + 1, 65535, &port))
        return complain("--listen is an IPv4 address and a port, as 127.0.0.1:8460, not %s", text);
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (inet_pton(AF_INET, host, &address->sin_addr) != 1)
        return complain("--listen: %s is no IPv4 address", host);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    return OPTIONS_RUN;
}

static int read_idle(int64_t *idle_ms, const char *text)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"s", 1000}, {"m", 60000}, {"h", 3600000}};
    const size_t digits = strspn(text, "0123456789");

    for (size_t i = 0; digits > 0 && digits < 7 && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text + digits, units[i].unit) == 0)
            *idle_ms = strtoll(text, NULL, 10) * units[i].ms;
    if (*idle_ms < 1000 || *idle_ms > IDLE_MOST_MS)
        return complain("--idle is from 1s to 12h, as 90s or 15m, not %s", text);
    return OPTIONS_RUN;
}

enum { CONFIG = 256, SHARD, LISTEN, PORT_FILE, CERTIFICATE, KEY, PROXY, IDLE, HELP };

static int take(struct options *options, int option)
{
    switch (option) {
    case CONFIG:
        options->config_file = optarg;
        break;
    case SHARD:
        options->shard = optarg;
        break;
    case LISTEN:
        return read_address(&options->address, optarg);
    case PORT_FILE:
        options->port_file = optarg;
        break;
    case CERTIFICATE:
        options->certificate_file = optarg;
        break;
    case KEY:
        options->key_file = optarg;
        break;
    case PROXY:
        options->is_behind_proxy = 1;
        break;
    case IDLE:
        options->idle_ms = 0;
        return read_idle(&options->idle_ms, optarg);
    case 'h':
    case HELP:
        fputs(help, stdout);
        return fflush(stdout) == 0 ? 0 : 70;
    default:
        return complain("an option is not known, or has no value");
    }
    return OPTIONS_RUN;
}

struct shards {
    const char *wanted;
    int found;
};

static int take_shard(void *context, const char *shard)
{
    struct shards *shards = context;

    shards->found |= strcmp(shards->wanted, shard) == 0;
    return 0;
}

/* Other settings are judged when somebody logs in. */
static int check_shard(const struct options *options)
{
    struct shards shards = {.wanted = options->shard};

    if (options->shard == NULL || tl_shards(options->config_file, take_shard, &shards) != TL_OK ||
        shards.found)
        return OPTIONS_RUN;
    return complain("these settings name no shard %s", options->shard);
}

static int check(const struct options *options)
{
    const int is_loopback = ntohl(options->address.sin_addr.s_addr) >> 24 == 127;
    const char *files[] = {options->config_file, options->certificate_file, options->key_file};

    if (options->config_file == NULL)
        return complain("no settings file: name one with --config or $TRADELOCK_CONFIG");
    if ((options->certificate_file == NULL) != (options->key_file == NULL))
        return complain("--tls-cert and --tls-key go together");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] != NULL && access(files[i], R_OK) != 0)
            return complain("%s cannot be read", files[i]);
    if (!is_loopback && options->certificate_file == NULL && !options->is_behind_proxy)
        return complain("beyond loopback passwords would travel for all to read: name a "
                        "certificate with --tls-cert and --tls-key, or say --behind-proxy if a "
                        "proxy of yours speaks TLS to the browsers");
    return check_shard(options);
}

int options_read(struct options *options, int argc, char **argv)
{
    static const struct option known[] = {{"config", required_argument, NULL, CONFIG},
                                          {"shard", required_argument, NULL, SHARD},
                                          {"listen", required_argument, NULL, LISTEN},
                                          {"port-file", required_argument, NULL, PORT_FILE},
                                          {"tls-cert", required_argument, NULL, CERTIFICATE},
                                          {"tls-key", required_argument, NULL, KEY},
                                          {"behind-proxy", no_argument, NULL, PROXY},
                                          {"idle", required_argument, NULL, IDLE},
                                          {"help", no_argument, NULL, HELP},
                                          {NULL, 0, NULL, 0}};
    const char *from_environment = getenv("TRADELOCK_CONFIG");
    int option, code = read_address(&options->address, "127.0.0.1:8460");

    options->idle_ms = IDLE_DEFAULT_MS;
    opterr = 0;
    while (code == OPTIONS_RUN && (option = getopt_long(argc, argv, "h", known, NULL)) != -1)
        code = take(options, option);
    if (code != OPTIONS_RUN)
        return code;
    if (optind < argc)
        return complain("it takes no operand: %s", argv[optind]);
    if (options->config_file == NULL && from_environment != NULL && from_environment[0] != '\0')
        options->config_file = from_environment;
    return check(options);
}
