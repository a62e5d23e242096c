/* The desk's command line, as those of the command. */
#include "options.h"

#include "command.h"

#include <tradelock/admin.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_MS (INT64_C(12) * 3600 * 1000)

static struct options options = {.idle_ms = INT64_C(15) * 60 * 1000, .longest_ms = MOST_MS};

static int take_address(const char *text, void *to)
{
    struct sockaddr_in *address = to;
    const char *colon = strrchr(text, ':');
    char host[INET_ADDRSTRLEN];
    uint64_t port;

    if (colon == NULL || (size_t)(colon - text) >= sizeof host ||
        !read_number(colon + 1, 65535, &port))
        return usage_error("--listen is an IPv4 address and a port, as 127.0.0.1:8460, not %s",
                           text);
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (inet_pton(AF_INET, host, &address->sin_addr) != 1)
        return usage_error("--listen: %s is no IPv4 address", host);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)port);
    return EXIT_DONE;
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
static int check_shard(void)
{
    struct shards shards = {.wanted = options.shard};

    if (options.shard == NULL || tl_shards(options.config_file, take_shard, &shards) != TL_OK ||
        shards.found)
        return EXIT_DONE;
    return usage_error("these settings name no shard %s", options.shard);
}

static int check_files(void)
{
    const int is_loopback = ntohl(options.address.sin_addr.s_addr) >> 24 == 127;
    const char *files[] = {options.config_file, options.certificate_file, options.key_file};

    if (options.idle_ms > MOST_MS || options.longest_ms > MOST_MS)
        return usage_error("--idle and --longest are from 1s to 12h");
    if ((options.certificate_file == NULL) != (options.key_file == NULL))
        return usage_error("--tls-cert and --tls-key go together");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i] != NULL && files[i][0] != '\0' && access(files[i], R_OK) != 0)
            return usage_error("%s cannot be read", files[i]);
    if (!is_loopback && options.certificate_file == NULL && !options.is_behind_proxy)
        return usage_error(
            "beyond loopback passwords would travel for all to read: name a certificate with "
            "--tls-cert and --tls-key, or say --behind-proxy if a proxy of yours speaks TLS "
            "to the browsers");
    return check_shard();
}

static int check(int argc, char **argv)
{
    int code = EXIT_DONE;

    (void)argc;
    (void)argv;
    options.shard = common.shard;
    options.config_file = command_config();
    if (options.config_file == NULL)
        return EXIT_USAGE;
    if (options.address.sin_family == 0)
        code = take_address("127.0.0.1:8460", &options.address);
    return code == EXIT_DONE ? check_files() : code;
}

static int work(tl_client *client)
{
    (void)client;
    return desk_run(&options);
}

static const struct command_option known[] = {
    {"listen ADDRESS:PORT", "where to listen (127.0.0.1:8460); port 0: any that is free",
     OPTION_OTHER, .to = &options.address, .take = take_address},
    {"port-file FILE", "write the port there, once it listens", OPTION_TEXT,
     .to = &options.port_file},
    {"tls-cert FILE", "speak TLS with this certificate (PEM),", OPTION_TEXT,
     .to = &options.certificate_file},
    {"tls-key FILE", "and this key", OPTION_TEXT, .to = &options.key_file},
    {"behind-proxy", "a proxy of yours speaks TLS to the browsers", OPTION_FLAG,
     .to = &options.is_behind_proxy},
    {"idle TIME", "log people out after that long without a click (15m)", OPTION_DURATION,
     .to = &options.idle_ms, .least = 1000, .is = "from 1s to 12h, as 90s or 15m"},
    {"longest TIME", "and in any case after that long, but for a reader's wall (12h)",
     OPTION_DURATION, .to = &options.longest_ms, .least = 1000,
     .is = "from 1s to 12h, as 90s or 15m"},
    {"access-log", "log who opens which trade's page, and when; with log_level info", OPTION_FLAG,
     .to = &options.logs_access},
    {.name = NULL}};

const struct command command_serve = {
    .name = "desk",
    .summary = "serve the operators' pages to browsers",
    .arguments = "--config FILE --listen ADDRESS:PORT [OPTION...]",
    .text =
        "Serves the operators' pages to browsers: what hangs, why, and deciding about it by\n"
        "two.  People log in with their own MariaDB account, and its rights are theirs.  FILE\n"
        "says where the server is; a user and a password in it are not used.  Runs until it is\n"
        "interrupted.  Beyond loopback it needs --tls-cert and --tls-key, or --behind-proxy.\n",
    .examples = "  tradelock desk --config /etc/tradelock-desk.cnf --listen 127.0.0.1:8460\n",
    .options = known,
    .check = check,
    .work = work,
    .why_no_json = "the desk prints no JSON",
};
