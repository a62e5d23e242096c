/* The options that all commands share, their help, and opening the client that they name. */
#include "command.h"

#include "failure.h"
#include "fleet.h"
#include "moment.h"
#include "nearest.h"
#include "print.h"

#include <tradelock/admin.h>
#include <tradelock/money.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELP_WIDTH 18
#define OPTIONS_MOST 40
#define NAME_MAX_SIZE 24
/* What getopt_long() gives back for an option that has no letter. */
#define OPTION_FIRST 256

struct common common;
const struct command *running;

static int take_shard(const char *value, void *to)
{
    if (strcmp(value, "all") == 0)
        return usage_error("--shard names one shard: without it a command goes over all of "
                           "them, or is called once for each");
    *(const char **)to = value;
    return EXIT_DONE;
}

static const struct command_option shard_option = {"shard NAME", "of a fleet: this shard alone",
                                                   OPTION_OTHER, .to = &common.shard,
                                                   .take = take_shard};
static int wants_help;
static const struct command_option common_options[] = {
    {"config FILE", "settings; else $TRADELOCK_CONFIG or /etc/tradelock.cnf", OPTION_TEXT,
     .to = &common.config_file},
    {"json", "print JSON, for programs", OPTION_FLAG, .to = &common.json},
    {"help", "print this", OPTION_FLAG, .to = &wants_help, .letter = 'h'},
};

static void print_option(const struct command_option *o, int width)
{
    const char *help = o->help;
    int size =
        o->letter != 0 ? printf("  -%c, --%s", o->letter, o->name) : printf("  --%s", o->name);

    printf("%*s", size < width ? width - size : 2, "");
    for (const char *end; (end = strchr(help, '\n')) != NULL; help = end + 1)
        printf("%.*s%*s", (int)(end - help + 1), help, width, "");
    puts(help);
}

static void print_help(void)
{
    const struct command *self = running;

    printf("Usage: tradelock %s%s%s\n\n%s\nOptions:\n", self->name,
           self->arguments[0] != '\0' ? " " : "", self->arguments, self->text);
    for (const struct command_option *o = self->options; o != NULL && o->name != NULL; o++)
        print_option(o, self->help_width > 0 ? self->help_width : HELP_WIDTH);
    print_option(&common_options[0], HELP_WIDTH);
    if (!self->of_all_shards)
        print_option(&shard_option, HELP_WIDTH);
    if (self->why_no_json == NULL)
        print_option(&common_options[1], HELP_WIDTH);
    print_option(&common_options[2], HELP_WIDTH);
    if (self->examples != NULL)
        printf("\nExamples:\n%s", self->examples);
}

int usage_error(const char *format, ...)
{
    va_list arguments;

    fputs("tradelock: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; see `tradelock %s --help`\n", running->name);
    return EXIT_USAGE;
}

static int bad_option(char **argv, const struct option *options)
{
    const char *name = optind > 0 ? argv[optind - 1] : "";
    const char *meant = nearest_option(name, options);

    for (; optopt > 0 && options->name != NULL; options++)
        if (options->val == optopt && optopt < OPTION_FIRST)
            return usage_error("option -%c: a value is missing", optopt);
    if (optopt > 0 && optopt < OPTION_FIRST)
        return usage_error("unknown option -%c", optopt);
    if (optopt >= OPTION_FIRST)
        return usage_error("option %s: a value is missing or not expected", name);
    if (meant != NULL)
        return usage_error("unknown option %s, did you mean --%s?", name, meant);
    return usage_error("unknown option %s", name);
}

/* The short options among them, as getopt() wants them. */
static const char *short_options(const struct option *options)
{
    static char letters[32];
    size_t size = 0;

    for (; options->name != NULL && size + 3 < sizeof letters; options++)
        if (options->val > 0 && options->val < OPTION_FIRST) {
            letters[size++] = (char)options->val;
            if (options->has_arg == required_argument)
                letters[size++] = ':';
        }
    letters[size] = '\0';
    return letters;
}

/* "--limit is a number from 1 to 100, not x". */
static int wrong_value(const struct command_option *o, const char *otherwise, const char *value)
{
    char range[64] = "";

    if (o->most > 0)
        snprintf(range, sizeof range, " from %" PRIu64 " to %" PRIu64, o->least, o->most);
    return usage_error("--%.*s is %s%s, not %s", (int)strcspn(o->name, " "), o->name,
                       o->is != NULL ? o->is : otherwise, range, value);
}

static int take_number(const struct command_option *o, const char *value)
{
    uint64_t number;

    if (!read_number(value, o->most > 0 ? o->most : INT64_MAX, &number) || number < o->least)
        return wrong_value(o, "a number", value);
    if (o->kind == OPTION_COUNT)
        *(unsigned *)o->to = (unsigned)number;
    else
        *(uint64_t *)o->to = number;
    return EXIT_DONE;
}

int option_take(const struct command_option *o, const char *value)
{
    int64_t *number = o->to;

    if (o->given != NULL)
        *o->given = 1;
    switch (o->kind) {
    case OPTION_FLAG:
        *(int *)o->to = 1;
        return EXIT_DONE;
    case OPTION_TEXT:
    case OPTION_ACTOR:
        *(const char **)o->to = value;
        return EXIT_DONE;
    case OPTION_NUMBER:
    case OPTION_COUNT:
        return take_number(o, value);
    case OPTION_DURATION:
        return read_duration_ms(value, number) && *number >= (int64_t)o->least
                   ? EXIT_DONE
                   : wrong_value(o, "a duration as 90s, 10m, 2h or 7d", value);
    case OPTION_MOMENT:
        return read_moment_us(value, number)
                   ? EXIT_DONE
                   : wrong_value(o, "a moment as 2026-03-01T09:30, in UTC, or how long ago, as 2h",
                                 value);
    default:
        return o->take(value, o->to);
    }
}

/* The command's options, and those of all, as getopt_long() wants them. */
struct known {
    const struct command_option *of[OPTIONS_MOST];
    struct option names[OPTIONS_MOST + 1];
    char words[OPTIONS_MOST][NAME_MAX_SIZE];
    size_t count;
};

static void know(struct known *known, const struct command_option *o)
{
    struct option *name = &known->names[known->count];

    snprintf(known->words[known->count], NAME_MAX_SIZE, "%.*s", (int)strcspn(o->name, " "),
             o->name);
    name->name = known->words[known->count];
    name->has_arg = strchr(o->name, ' ') != NULL ? required_argument : no_argument;
    name->val = o->letter != 0 ? o->letter : OPTION_FIRST + (int)known->count;
    known->of[known->count++] = o;
}

static const struct command_option *option_of(const struct known *known, int value)
{
    for (size_t i = 0; i < known->count; i++)
        if (known->names[i].val == value)
            return known->of[i];
    return NULL;
}

/* EXIT_DONE, or what is wrong was said. */
static int read_options(int argc, char **argv)
{
    struct known known = {.count = 0};
    int code = EXIT_DONE, value = 0;

    for (const struct command_option *o = running->options; o != NULL && o->name != NULL; o++) {
        know(&known, o);
        if (o->kind == OPTION_ACTOR)
            *(const char **)o->to = person();
    }
    for (size_t i = 0; i < sizeof common_options / sizeof common_options[0]; i++)
        know(&known, &common_options[i]);
    know(&known, &shard_option);
    while (code == EXIT_DONE && !wants_help && value >= 0) {
        opterr = 0;
        optopt = 0;
        value = getopt_long(argc, argv, short_options(known.names), known.names, NULL);
        if (value == '?' || value == ':')
            code = bad_option(argv, known.names);
        else if (value >= 0)
            code = option_take(option_of(&known, value), optarg);
    }
    return code;
}

static int do_work(void)
{
    const int of_shards = running->of == OF_SHARDS || running->of == OF_PAGES;
    tl_client *client = NULL;
    int code = EXIT_DONE;

    if (running->of == OF_DATABASE)
        code =
            open_client(&client, common.shard, TL_CLIENT_NO_SESSION | running->flags, "tradelock");
    else if (of_shards)
        code = fleet_begin(common.shard);
    if (running->of == OF_PAGES)
        fleet_by_pages();
    if (code == EXIT_DONE)
        code = running->work(client);
    tl_client_close(client);
    if (of_shards)
        fleet_end();
    return code;
}

int run_command(const struct command *self, int argc, char **argv)
{
    int code;

    running = self;
    if (self->is_program)
        return self->check(argc, argv);
    failure_keep(argc, argv);
    code = read_options(argc, argv);
    if (code == EXIT_DONE && wants_help) {
        print_help();
        return finish_output(EXIT_DONE);
    }
    if (code == EXIT_DONE && common.json && self->why_no_json != NULL)
        code = usage_error("%s", self->why_no_json);
    if (code == EXIT_DONE && optind < argc && !self->takes_operands)
        code = usage_error("%s takes no operand: %s", self->name, argv[optind]);
    if (code == EXIT_DONE && self->check != NULL)
        code = self->check(argc - optind, argv + optind);
    return failure_print(code == EXIT_DONE ? do_work() : code);
}

int is_agreed(uint64_t count, const char *what, const char *verb, int has_yes, uint64_t yes)
{
    char line[32] = "";

    if (!has_yes && !isatty(STDIN_FILENO)) {
        fprintf(stderr, "tradelock: nothing was changed: the same with --yes %" PRIu64 " does it\n",
                count);
        return 0;
    }
    if (!has_yes) {
        fprintf(stderr, "\nType %" PRIu64 " to %s them, anything else to leave them: ", count,
                verb);
        if (fgets(line, sizeof line, stdin) == NULL)
            line[0] = '\0';
        line[strcspn(line, "\n")] = '\0';
    }
    if (!has_yes && !read_number(line, UINT64_MAX, &yes))
        fputs("tradelock: nothing was changed\n", stderr);
    else if (yes != count)
        fprintf(stderr, "tradelock: nothing was changed: it would be %s %s%s, not %s\n",
                COUNT_TEXT(count), what, count == 1 ? "" : "s", COUNT_TEXT(yes));
    else
        return 1;
    return 0;
}

int needs_reason(const char *reason)
{
    return reason != NULL && reason[0] != '\0'
               ? EXIT_DONE
               : usage_error("--reason is missing: it goes on record");
}

int read_key(tl_key *key, int argc, char **argv)
{
    if (argc != 3)
        return usage_error("%s takes three operands, SERIAL CUST OP, not %d", running->name, argc);
    *key = (tl_key){argv[0], argv[1], argv[2]};
    return EXIT_DONE;
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

static const char *find_config(void)
{
    const char *from_environment = getenv("TRADELOCK_CONFIG");

    if (common.config_file != NULL)
        return common.config_file;
    if (from_environment != NULL && from_environment[0] != '\0')
        return from_environment;
    if (access("/etc/tradelock.cnf", F_OK) == 0)
        return "/etc/tradelock.cnf";
    return getenv("TRADELOCK_HOST") != NULL ? "" : NULL;
}

/* Debugging lines are for those who run a service. */
static void log_to_stderr(void *context, const tl_log_line *line)
{
    const int of_trade = line->serial_no[0] != '\0';
    char amount[TL_AMOUNT_TEXT];

    (void)context;
    if (line->level < TL_WARNING)
        return;
    tl_amount_text(amount, line->amount_minor, line->currency);
    fprintf(stderr, "%s%s%s%s%s%s%s%s%s%s%s%s%s\n", fleet_said_by(), line->message,
            of_trade ? " (" : "", line->serial_no, of_trade ? " of " : "", line->cust_no,
            line->trace_id[0] != '\0' ? ", trace " : "", line->trace_id,
            amount[0] != '\0' ? ", amount " : "", amount, line->batch[0] != '\0' ? ", batch " : "",
            line->batch, of_trade ? ")" : "");
}

const char *command_config(void)
{
    const char *file = find_config();

    if (file == NULL)
        fputs("tradelock: no settings file: name one with --config or $TRADELOCK_CONFIG, "
              "or make /etc/tradelock.cnf, or name a server in $TRADELOCK_HOST\n",
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
static int check_shard(const char *shard, const char *file)
{
    struct names names = {.text = ""};

    if (shard != NULL || tl_shards(file, add_name, &names) != TL_OK || names.text[0] == '\0')
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
static int check_name(tl_client *client, const char *wanted)
{
    char fleet[TL_FLEET_NAME_MAX + 1] = "", shard[TL_FLEET_NAME_MAX + 1] = "";

    if (wanted == NULL || tl_slot_list(client, fleet, shard, pass_slot, NULL) != TL_OK ||
        shard[0] == '\0' || strcmp(shard, wanted) == 0)
        return EXIT_DONE;
    fprintf(stderr,
            "%sthe settings lead to shard %s, but the database there is shard %s of fleet %s\n",
            fleet_said_by(), wanted, shard, fleet);
    return EXIT_USAGE;
}

int open_client(tl_client **client, const char *shard, unsigned flags, const char *program)
{
    tl_client_options options = TL_CLIENT_OPTIONS_INIT;
    tl_status status;

    options.flags = flags;
    options.config_file = command_config();
    options.shard = shard;
    options.program = program;
    options.log = log_to_stderr;
    if (options.config_file == NULL || check_shard(shard, options.config_file) != EXIT_DONE)
        return EXIT_USAGE;
    status = tl_client_open(client, &options);
    if (status == TL_OK && (flags & TL_CLIENT_NO_SCHEMA) &&
        check_name(*client, shard) != EXIT_DONE) {
        tl_client_close(*client);
        *client = NULL;
        return EXIT_USAGE;
    }
    if (status == TL_OK)
        return EXIT_DONE;
    return status == TL_ACCESS_DENIED ? report_denied(&options) : report(status);
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
