/* What the command line says. */
#ifndef DESK_OPTIONS_H
#define DESK_OPTIONS_H

#include <netinet/in.h>
#include <stdint.h>

struct options {
    const char *config_file;
    struct sockaddr_in address;
    const char *port_file;                   /* or NULL */
    const char *certificate_file, *key_file; /* both or NULL */
    int is_behind_proxy;
    int64_t idle_ms;
};

enum { OPTIONS_RUN = -1 };

/* OPTIONS_RUN, or the exit code with which the program is over. */
int options_read(struct options *options, int argc, char **argv);

#endif
