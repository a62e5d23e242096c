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
    int64_t idle_ms;
};

/* The command's code for bad input; an address that cannot be listened on is that too. */
enum { OPTIONS_RUN = -1, EXIT_WRONG_USE = 2 };

/* OPTIONS_RUN, or the exit code with which the program is over. */
int options_read(struct options *options, int argc, char **argv);

#endif
