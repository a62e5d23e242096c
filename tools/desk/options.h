/* What the command line says. */
#ifndef DESK_OPTIONS_H
#define DESK_OPTIONS_H

#include <netinet/in.h>
#include <stdint.h>

struct options {
    const char *config_file;
    const char *shard; /* of a fleet; or NULL */
    struct sockaddr_in address;
    const char *port_file;                   /* or NULL */
    const char *certificate_file, *key_file; /* both or NULL */
    int is_behind_proxy;
    int64_t idle_ms, longest_ms;
    int logs_access; /* a line for each page of a trade that somebody opens */
};

/* Reads the command line, and calls desk_run(). */
extern const struct command command_serve;
/* Serves until it is interrupted; the exit code. */
int desk_run(const struct options *options);

#endif
