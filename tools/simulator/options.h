/* The command line. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include "channel.h"
#include "fault.h"
#include "problem.h"

#include <netinet/in.h>

#define RULES_MAX 64
#define KEY_PLACES_MAX 8

enum command {
    COMMAND_SERVE,
    COMMAND_EXPORT,
    COMMAND_EXPORT_REQUESTS,
    COMMAND_HELP,
    COMMAND_VERSION
};

/* Where a request has its key. */
struct key_place {
    enum { KEY_HEADER, KEY_FIELD, KEY_PATH } where;
    const char *name; /* NULL: the end of the list */
};

/* What bodies call the facts of an order, and the reference after them. */
enum { NAME_REF = ORDER_FACTS, NAME_COUNT };

struct proxy_options {
    char *url; /* NULL: it is a channel; the texts point into argv, or are static */
    char *ca_file;
    int64_t upstream_ms;
    struct key_place keys[KEY_PLACES_MAX + 1];
    const char *names[NAME_COUNT];
};

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
    struct proxy_options proxy;
};

/* Changes the order of argv. */
bool options_read(struct options *options, int argc, char **argv, struct problem *problem);
const char *options_help(void);

#endif
