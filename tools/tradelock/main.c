/* tradelock: the operators' command.  A new command is a file and a line in this table. */
#include "command.h"

#include "nearest.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_migrate,  &command_ls,       &command_show,   &command_explain,  &command_status,
    &command_ps,       &command_inbox,    &command_retry,  &command_resolve,  &command_restore,
    &command_promote,  &command_evidence, &command_acts,   &command_channel,  &command_drain,
    &command_reap,     &command_report,   &command_purge,  &command_forget,   &command_audit,
    &command_resource, &command_run,      &command_doctor, &command_exporter, &command_desk,
    &command_fleet,    &command_version,
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(void)
{
    fputs("Usage: tradelock COMMAND [OPTION...] [OPERAND...]\n"
          "\n"
          "Looks after locks: who holds what, why a payment hangs, and what happens "
          "next.\n"
          "\n"
          "Commands:\n",
          stdout);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n"
          "`tradelock help COMMAND`, or `tradelock COMMAND --help`, explains a command.\n"
          "\n"
          "Exit codes: 0 done, 1 refused or not found, 2 usage or bad input, 3 server\n"
          "unreachable, 4 schema, 5 server unsafe, 6 in doubt or parked, 70 internal;\n"
          "of run: 75 not locked, 76 lock lost, 126 not executable, 127 no such command.\n",
          stdout);
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* The sentence about a command that is not there, with the one that was probably meant. */
static int unknown(const char *name)
{
    const char *meant = NULL;
    unsigned best = 3;

    for (size_t i = 0; i < COMMANDS; i++) {
        const unsigned distance = nearest_distance(name, commands[i]->name, best - 1);

        if (distance < best) {
            best = distance;
            meant = commands[i]->name;
        }
    }
    fprintf(stderr, "tradelock: unknown command %s%s%s%s; see `tradelock --help`\n", name,
            meant != NULL ? ", did you mean " : "", meant != NULL ? meant : "",
            meant != NULL ? "?" : "");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const struct command *command;

    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        fputs("tradelock: no command; see `tradelock --help`\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2) {
        char help[] = "--help", *asked[] = {argv[2], help, NULL};

        command = find(argv[2]);
        return command == NULL ? unknown(argv[2]) : run_command(command, 2, asked);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help();
        return finish_output(EXIT_DONE);
    }
    command = find(strcmp(argv[1], "--version") == 0 ? "version" : argv[1]);
    if (command == NULL)
        return unknown(argv[1]);
    return run_command(command, argc - 1, argv + 1);
}
