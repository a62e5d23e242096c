/* What the commands of `tradelock` share: each command is one file that fills one struct command,
 * and stands once in the table of main.c. */
#ifndef TRADELOCK_COMMAND_H
#define TRADELOCK_COMMAND_H

#include <tradelock/tradelock.h>

#include <jansson.h>
#include <stddef.h>

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

/* The settings file, the shard, and whether JSON is wanted, which every command is told. */
extern struct common {
    const char *config_file; /* NULL: look for it */
    const char *shard;       /* of a fleet: this one alone; or NULL */
    int json;
    int has_document; /* one was printed, or begun */
} common;

enum option_kind {
    OPTION_FLAG,     /* int: becomes 1 */
    OPTION_TEXT,     /* const char * */
    OPTION_ACTOR,    /* likewise; else person() */
    OPTION_NUMBER,   /* uint64_t or int64_t, from `least` to `most` */
    OPTION_COUNT,    /* unsigned, likewise */
    OPTION_DURATION, /* int64_t in milliseconds, from `least` on */
    OPTION_MOMENT,   /* int64_t in microseconds */
    OPTION_OTHER     /* take() reads it */
};

/* An option of one command: all that is known of it. */
struct command_option {
    const char *name; /* as --help prints it: "op OP"; one word: it takes no value */
    const char *help; /* its further lines stand below the first */
    enum option_kind kind;
    void *to;
    int *given; /* becomes 1; or NULL */
    uint64_t least, most;
    const char *is; /* "a number of trades", for whoever gives something else; or NULL */
    /* Reads the value into `to`; EXIT_DONE, or what is wrong was said. */
    int (*take)(const char *value, void *to);
    char letter;   /* or 0 */
    int is_filter; /* --where knows it, too */
};

#define OPTION_REASON_OF(text, help_) {"reason TEXT", help_, OPTION_TEXT, .to = (text)}
#define OPTION_ACTOR_OF(text, help_) {"actor NAME", help_, OPTION_ACTOR, .to = (text)}
#define WHY "why, for the record"
#define WHO "who decided (the login name)"

/* What a command's work is given. */
enum command_of {
    OF_NOTHING,  /* NULL */
    OF_DATABASE, /* a client of the one database, opened with `flags` */
    OF_SHARDS,   /* NULL, between fleet_begin() and fleet_end() */
    OF_PAGES     /* likewise, and each shard has a page of its own */
};

struct command {
    const char *name;
    const char *summary;                  /* one line, for the list of commands */
    const char *arguments;                /* what follows the name in the usage line */
    const char *text;                     /* what it does, as paragraphs */
    const char *examples;                 /* a command a line, behind two blanks; or NULL */
    const struct command_option *options; /* the last has no name; or NULL */
    int help_width;                       /* of the options' names in --help; 0: 18 */
    /* Compares what was said, with the operands, before anything is opened: EXIT_DONE, or what is
     * wrong was said; or NULL.  A program runs one command once, so its options are read into
     * variables of its file. */
    int (*check)(int argc, char **argv);
    enum command_of of;
    unsigned flags;
    int (*work)(tl_client *client); /* the exit code */
    int takes_operands;
    int of_all_shards;       /* it takes no --shard */
    int is_program;          /* another program reads its options, which check() is given */
    const char *why_no_json; /* what --json is answered with; NULL: it prints JSON */
};

extern const struct command command_migrate, command_ls, command_show, command_explain,
    command_status, command_ps, command_inbox, command_retry, command_resolve, command_restore,
    command_promote, command_evidence, command_acts, command_channel, command_drain, command_reap,
    command_fleet, command_purge, command_forget, command_audit, command_resource, command_run,
    command_doctor, command_exporter, command_desk, command_report, command_version;

/* ------------------------------------------------------------- options.c -- */

/* Reads the options, and runs it; the exit code. */
int run_command(const struct command *self, int argc, char **argv);

/* The number of rows that a change is about was agreed: by --yes, or typed on the terminal.  what:
 * "trade", "row"; verb: "retry". */
int is_agreed(uint64_t count, const char *what, const char *verb, int has_yes, uint64_t yes);

/* The command that runs. */
extern const struct command *running;

/* Takes the value, NULL where it has none, for the option. */
int option_take(const struct command_option *option, const char *value);

/* "tradelock: " and the sentence on stderr; returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* EXIT_DONE, or what is missing was said: a reason that is not empty. */
int needs_reason(const char *reason);

/* Exactly three operands: SERIAL CUST OP.  EXIT_DONE, or that was said. */
int read_key(tl_key *key, int argc, char **argv);

/* 250ms, 90s, 3m, 2h, 7d; 1 when it is one. */
int read_duration_ms(const char *text, int64_t *duration_ms);
/* Decimal digits only; 1 when it is one. */
int read_number(const char *text, uint64_t most, uint64_t *number);

/* Who sits there: the person behind sudo, else the account. */
const char *person(void);

/* The settings file; NULL: there is none, and that was said. */
const char *command_config(void);
/* Opens a client.  0, or the exit code.  Of a fleet a shard has to be named; fleet.h is for commands
 * that go over all. */
int open_client(tl_client **client, const char *shard, unsigned flags, const char *program);

/* The sentence of the last call on stderr; returns the exit code for the status. */
int report(tl_status status);
int exit_code_of(tl_status status);

/* A sentence on stderr while the installation drains; an account that may not see it is told
 * nothing. */
void drain_warn(tl_client *client);

/* Ends a command that printed: an output that could not be written is a failure. */
int finish_output(int code);
/* What a command that did one thing tells: the document, which it frees, or for people the text. */
int print_answer(json_t *document, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
