/* The options that all commands share, their help, and opening the client that they name. */
#include "command.h"

#include "fleet.h"
#include "nearest.h"

#include <tradelock/admin.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char config_option[] =
    "  --config FILE   settings; else $TRADELOCK_CONFIG or /etc/tradelock.cnf\n";
static const char shard_option[] = "  --shard NAME    of a fleet: this shard alone\n";
static const char other_options[] = "  --json          print JSON, for programs\n"
                                    "  -h, --help      print this\n";

void command_print_help(const struct command *self)
{
    printf("Usage: tradelock %s%s%s\n\n%s\nOptions:\n%s%s%s%s", self->name,
           self->arguments[0] != '\0' ? " " : "", self->arguments, self->text, self->options,
           config_option, self->of_all_shards ? "" : shard_option, other_options);
}

int usage_error(const struct command *self, const char *format, ...)
{
    va_list arguments;

    fputs("tradelock: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; see `tradelock %s --help`\n", self->name);
    return EXIT_USAGE;
}

static int bad_option(const struct command *self, char **argv, const struct option *options)
{
    const char *name = optind > 0 ? argv[optind - 1] : "";
    const char *meant = nearest_option(name, options);

    for (; optopt > 0 && options->name != NULL; options++)
        if (options->val == optopt && optopt < OPTION_CONFIG)
            return usage_error(self, "option -%c: a value is missing", optopt);
    if (optopt > 0 && optopt < OPTION_CONFIG)
        return usage_error(self, "unknown option -%c", optopt);
    if (optopt >= OPTION_CONFIG)
        return usage_error(self, "option %s: a value is missing or not expected", name);
    if (meant != NULL)
        return usage_error(self, "unknown option %s, did you mean --%s?", name, meant);
    return usage_error(self, "unknown option %s", name);
}

/* The short options among them, and -h, as getopt() wants them. */
static const char *short_options(const struct option *options)
{
    static char letters[32];
    size_t size = 0;

    letters[size++] = 'h';
    for (; options->name != NULL && size + 3 < sizeof letters; options++)
        if (options->val > 0 && options->val < OPTION_CONFIG) {
            letters[size++] = (char)options->val;
            if (options->has_arg == required_argument)
                letters[size++] = ':';
        }
    letters[size] = '\0';
    return letters;
}

int common_next(const struct command *self, struct common *common, int argc, char **argv,
                const struct option *options, int *code)
{
    for (;;) {
        int option;

        opterr = 0;
        optopt = 0;
        option = getopt_long(argc, argv, short_options(options), options, NULL);
        switch (option) {
        case OPTION_CONFIG:
            common->config_file = optarg;
            break;
        case OPTION_SHARD:
            if (strcmp(optarg, "all") == 0) {
                *code = usage_error(self, "--shard names one shard: without it a command goes over "
                                          "all of them, or is called once for each");
                return COMMON_STOP;
            }
            common->shard = optarg;
            break;
        case OPTION_JSON:
            common->json = 1;
            break;
        case 'h':
        case OPTION_HELP:
            command_print_help(self);
            *code = finish_output(EXIT_DONE);
            return COMMON_STOP;
        case '?':
        case ':':
            *code = bad_option(self, argv, options);
            return COMMON_STOP;
        default:
            return option;
        }
    }
}

int read_key(const struct command *self, tl_key *key, int argc, char **argv, int *code)
{
    if (argc - optind != 3) {
        *code = usage_error(self, "%s takes three operands, SERIAL CUST OP, not %d", self->name,
                            argc - optind);
        return 0;
    }
    key->serial_no = argv[optind];
    key->cust_no = argv[optind + 1];
    key->op_code = argv[optind + 2];
    return 1;
}

int read_number(const char *text, uint64_t most, uint64_t *number)
{
    uint64_t value = 0;

    if (text[0] == '\0')
        return 0;
    for (const char *c = text; *c != '\0'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');

        if (*c < '0' || *c > '9' || value > (most - digit) / 10)
            return 0;
        value = value * 10 + digit;
    }
    *number = value;
    return value <= most;
}

/* A thousand years: the server's calendar has that much before now. */
#define DURATION_MOST_MS UINT64_C(31556952000000)

int read_duration_ms(const char *text, int64_t *duration_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    const size_t digits = strspn(text, "0123456789");
    char number[21];
    uint64_t value;

    if (digits == 0 || digits >= sizeof number)
        return 0;
    memcpy(number, text, digits);
    number[digits] = '\0';
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text + digits, units[i].unit) == 0 &&
            read_number(number, DURATION_MOST_MS / units[i].ms, &value)) {
            *duration_ms = (int64_t)(value * units[i].ms);
            return 1;
        }
    return 0;
}

static const char *find_config(const struct common *common)
{
    const char *from_environment = getenv("TRADELOCK_CONFIG");

    if (common->config_file != NULL)
        return common->config_file;
    if (from_environment != NULL && from_environment[0] != '\0')
        return from_environment;
    if (access("/etc/tradelock.cnf", F_OK) == 0)
        return "/etc/tradelock.cnf";
    return NULL;
}

/* Debugging lines are for those who run a service. */
static void log_to_stderr(void *context, const tl_log_line *line)
{
    const int of_trade = line->serial_no[0] != '\0';
    char amount[40] = "";

    (void)context;
    if (line->level < TL_WARNING)
        return;
    if (line->currency[0] != '\0')
        snprintf(amount, sizeof amount, ", amount %" PRId64 " %s", line->amount_minor,
                 line->currency);
    fprintf(stderr, "%s%s%s%s%s%s%s%s%s%s%s%s\n", fleet_said_by(), line->message,
            of_trade ? " (" : "", line->serial_no, of_trade ? " of " : "", line->cust_no,
            line->trace_id[0] != '\0' ? ", trace " : "", line->trace_id, amount,
            line->batch[0] != '\0' ? ", batch " : "", line->batch, of_trade ? ")" : "");
}

const char *command_config(const struct common *common)
{
    const char *file = find_config(common);

    if (file == NULL)
        fputs("tradelock: no settings file: name one with --config or $TRADELOCK_CONFIG, "
              "or make /etc/tradelock.cnf\n",
              stderr);
    return file;
}

static int ignore_finding(void *context, const tl_finding *finding)
{
    (void)context;
    (void)finding;
    return 1;
}

/* Whether the server lets the account in, which then lacks a right on the schema.  The doctor looks
 * with whatever rights there are. */
static int is_let_in(tl_client_options options)
{
    tl_client *client = NULL;
    tl_status status;

    options.flags |= TL_CLIENT_NO_SESSION | TL_CLIENT_NO_SCHEMA;
    options.log = NULL;
    status = tl_client_open(&client, &options);
    if (status == TL_OK)
        status = tl_doctor(client, ignore_finding, NULL);
    tl_client_close(client);
    return status == TL_OK || status == TL_SERVER_UNSAFE;
}

/* Who may not log in has not reached the server; a right that is missing is a refusal. */
static int report_denied(const tl_client_options *options)
{
    char sentence[512];

    snprintf(sentence, sizeof sentence, "%s", tl_error_message());
    if (!is_let_in(*options)) {
        fprintf(stderr, "%s%s\n", fleet_said_by(), sentence);
        return EXIT_UNREACHABLE;
    }
    fprintf(stderr,
            "%s%s; the account needs a role of tradelock's, and after a restore `tradelock "
            "migrate --grants`\n",
            fleet_said_by(), sentence);
    return EXIT_REFUSED;
}

struct names {
    char text[512];
};

static int add_name(void *context, const char *shard)
{
    struct names *names = context;
    const size_t size = strlen(names->text);

    snprintf(names->text + size, sizeof names->text - size, "%s%s", size > 0 ? ", " : "", shard);
    return 0;
}

/* What is of one database has to be told which. */
static int check_shard(const struct common *common, const char *file)
{
    struct names names = {.text = ""};

    if (common->shard != NULL || tl_shards(file, add_name, &names) != TL_OK ||
        names.text[0] == '\0')
        return EXIT_DONE;
    fprintf(
        stderr,
        "tradelock: %s: these settings are of a fleet: name one of its shards, by --shard: %s\n",
        file, names.text);
    return EXIT_USAGE;
}

static int pass_slot(void *context, const tl_slot_row *row)
{
    (void)context;
    (void)row;
    return 1;
}

/* Whoever looks at any schema is told all the same when the database is another shard.  One that
 * says nothing of itself has to be looked at before it joins. */
static int check_name(tl_client *client, const struct common *common)
{
    char fleet[TL_FLEET_NAME_MAX + 1] = "", shard[TL_FLEET_NAME_MAX + 1] = "";

    if (common->shard == NULL || tl_slot_list(client, fleet, shard, pass_slot, NULL) != TL_OK ||
        shard[0] == '\0' || strcmp(shard, common->shard) == 0)
        return EXIT_DONE;
    fprintf(stderr,
            "%sthe settings lead to shard %s, but the database there is shard %s of fleet %s\n",
            fleet_said_by(), common->shard, shard, fleet);
    return EXIT_USAGE;
}

static int open_with(tl_client **client, const struct common *common, unsigned flags,
                     const char *program)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_status status;

    options.flags = flags;
    options.config_file = command_config(common);
    options.shard = common->shard;
    options.program = program;
    options.log = log_to_stderr;
    if (options.config_file == NULL || check_shard(common, options.config_file) != EXIT_DONE)
        return EXIT_USAGE;
    status = tl_client_open(client, &options);
    if (status == TL_OK && (flags & TL_CLIENT_NO_SCHEMA) &&
        check_name(*client, common) != EXIT_DONE) {
        tl_client_close(*client);
        *client = NULL;
        return EXIT_USAGE;
    }
    if (status == TL_OK)
        return EXIT_DONE;
    return status == TL_ACCESS_DENIED ? report_denied(&options) : report(status);
}

int open_client(tl_client **client, const struct common *common, unsigned flags)
{
    return open_with(client, common, TL_CLIENT_NO_SESSION | flags, "tradelock");
}

int open_working_client(tl_client **client, const struct common *common, const char *program)
{
    return open_with(client, common, 0, program);
}

int exit_code_of(tl_status status)
{
    switch (status) {
    case TL_BAD_CONFIG:
    case TL_INVALID:
        return EXIT_USAGE;
    case TL_NOT_FOUND:
    case TL_ACCESS_DENIED:
        return EXIT_REFUSED;
    case TL_UNKNOWN:
        return EXIT_UNREACHABLE;
    case TL_NO_SCHEMA:
    case TL_WRONG_SCHEMA:
        return EXIT_SCHEMA;
    case TL_SERVER_UNSAFE:
    case TL_READ_ONLY:
        return EXIT_UNSAFE;
    case TL_IN_DOUBT:
    case TL_PARKED:
        return EXIT_OPEN;
    default:
        break;
    }
    if (status == TL_OK)
        return EXIT_DONE;
    switch (tl_status_class(status)) {
    case TL_CLASS_DONE: /* what was wanted is not what is there */
    case TL_CLASS_CONFLICT:
        return EXIT_REFUSED;
    case TL_CLASS_RETRY:
        return EXIT_UNREACHABLE;
    default:
        return EXIT_INTERNAL;
    }
}

int report(tl_status status)
{
    const char *sentence = tl_error_message();

    fprintf(stderr, "%s%s\n", fleet_said_by(),
            sentence[0] != '\0' ? sentence : tl_status_text(status));
    return exit_code_of(status);
}

/* Whoever read the output went away, as `head` does: nothing is wrong, and nobody listens. */
static int is_closed_pipe(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int finish_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (is_closed_pipe())
        exit(EXIT_DONE);
    fprintf(stderr, "tradelock: the output could not be written: %s\n", strerror(errno));
    return EXIT_INTERNAL;
}

const char *person(void)
{
    const char *name = getenv("SUDO_USER");
    const struct passwd *account;

    if (name != NULL && name[0] != '\0')
        return name;
    account = getpwuid(getuid());
    return account != NULL ? account->pw_name : "unknown";
}
