/* What the commands of `tradelock` share: each command is one file that fills one struct command,
 * and stands once in the table of main.c. */
#ifndef TRADELOCK_COMMAND_H
#define TRADELOCK_COMMAND_H

#include <tradelock/tradelock.h>

#include <getopt.h>

/* The one list of exit codes; tools/README.md and the tests know the same. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_REFUSED = 1,     /* refused, or not found */
    EXIT_USAGE = 2,       /* usage or bad input */
    EXIT_UNREACHABLE = 3, /* the server cannot be reached or refuses the account */
    EXIT_SCHEMA = 4,
    EXIT_UNSAFE = 5,
    EXIT_OPEN = 6, /* the trade is in doubt or parked */
    EXIT_INTERNAL = 70,
    /* run only, which else ends as the command that it ran */
    EXIT_NOT_LOCKED = 75,
    EXIT_LOST = 76,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127
};

struct command {
    const char *name;
    const char *summary;   /* one line, for the list of commands */
    const char *arguments; /* what follows the name in the usage line */
    const char *text;      /* what it does, as paragraphs */
    const char *options;   /* one line each; the common ones are added */
    int (*run)(const struct command *self, int argc, char **argv);
    int of_all_shards; /* it takes no --shard */
};

extern const struct command command_migrate, command_ls, command_show, command_explain,
    command_status, command_ps, command_inbox, command_retry, command_resolve, command_restore,
    command_promote, command_evidence, command_acts, command_channel, command_drain, command_reap,
    command_fleet, command_purge, command_audit, command_resource, command_run, command_doctor,
    command_exporter, command_desk, command_version;

/* ------------------------------------------------------------- options.c -- */

struct common {
    const char *config_file; /* NULL: look for it */
    const char *shard;       /* of a fleet: this one alone; or NULL */
    int json;
};

/* The long options that every command has; the values are above those of characters. */
enum { OPTION_CONFIG = 256, OPTION_SHARD, OPTION_JSON, OPTION_HELP, OPTION_OWN };
#define COMMON_OPTIONS                                                                             \
    {"config", required_argument, NULL, OPTION_CONFIG},                                            \
        {"shard", required_argument, NULL, OPTION_SHARD},                                          \
        {"json", no_argument, NULL, OPTION_JSON},                                                  \
    {                                                                                              \
        "help", no_argument, NULL, OPTION_HELP                                                     \
    }

/* The next option that is the command's own, -1 after the last, or COMMON_STOP when the command is
 * over with *code. */
#define COMMON_STOP (-2)
int common_next(const struct command *self, struct common *common, int argc, char **argv,
                const struct option *options, int *code);

void command_print_help(const struct command *self);

/* "tradelock: " and the sentence on stderr; returns EXIT_USAGE. */
int usage_error(const struct command *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Exactly three operands: SERIAL CUST OP. */
int read_key(const struct command *self, tl_key *key, int argc, char **argv, int *code);

/* 250ms, 90s, 3m, 2h, 7d; 1 when it is one. */
int read_duration_ms(const char *text, int64_t *duration_ms);
/* Decimal digits only; 1 when it is one. */
int read_number(const char *text, uint64_t most, uint64_t *number);

/* Who sits there: the person behind sudo, else the account. */
const char *person(void);

/* The settings file; NULL: there is none, and that was said. */
const char *command_config(const struct common *common);
/* Opens a client that only looks; flags are added.  0, or the exit code.  Of a fleet --shard has to
 * name one; fleet.h is for commands that go over all. */
int open_client(tl_client **client, const struct common *common, unsigned flags);
/* One that may lock: it has a session. */
int open_working_client(tl_client **client, const struct common *common, const char *program);

/* The sentence of the last call on stderr; returns the exit code for the status. */
int report(tl_status status);
int exit_code_of(tl_status status);

/* A sentence on stderr while the installation drains; an account that may not see it is told
 * nothing. */
void drain_warn(tl_client *client);

/* Ends a command that printed: an output that could not be written is a failure. */
int finish_output(int code);

#endif
