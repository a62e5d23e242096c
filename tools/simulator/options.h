/* The command line. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "channel.h"
#include "fault.h"
#include "problem.h"

#include <netinet/in.h>

#define RULES_MAX 64

enum command { COMMAND_SERVE, COMMAND_EXPORT, COMMAND_HELP, COMMAND_VERSION };

struct options {
    enum command command;
    struct sockaddr_in address;
    char *port_file; /* this and the paths below point into argv, or are NULL */
    char *ledger;
    char *request_log;
    char *export;
    char *rules[RULES_MAX]; /* NULL-terminated */
    enum channel_kind kind;
    int64_t window_ms;
    struct fault_settings faults;
};

/* Changes the order of argv. */
bool options_read(struct options *options, int argc, char **argv, struct problem *problem);
const char *options_help(void);

#endif
