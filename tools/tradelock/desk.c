/* tradelock desk: leads to the program tradelock-desk, which is built where libmicrohttpd is and is
 * installed beside this one. */
#include "command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "tradelock-desk"

/* The folder of this program; 0: it is not known. */
static int own_folder(char folder[PATH_MAX])
{
    const ssize_t size = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    char *slash;

    if (size <= 0)
        return 0;
    folder[size] = '\0';
    slash = strrchr(folder, '/');
    if (slash == NULL)
        return 0;
    *slash = '\0';
    return 1;
}

static int lead(int argc, char **argv)
{
    char folder[PATH_MAX], path[PATH_MAX + sizeof PROGRAM + 1];

    (void)argc;
    if (!own_folder(folder)) {
        fprintf(stderr, "tradelock: /proc/self/exe cannot be read: %s\n", strerror(errno));
        return EXIT_INTERNAL;
    }
    snprintf(path, sizeof path, "%s/" PROGRAM, folder);
    argv[0] = path;
    execv(path, argv);
    return usage_error("%s is not there: it is built where libmicrohttpd is", path);
}

const struct command command_desk = {
    .name = "desk",
    .summary = "serve the operators' pages to browsers",
    .arguments = "--config FILE --listen ADDRESS:PORT",
    .text = "",
    .check = lead,
    .is_program = 1,
};
