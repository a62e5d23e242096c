/* tradelock version. */
#include "command.h"

#include "print.h"

#include <stdio.h>

static int run(const struct command *self, struct common *common, int argc, char **argv)
{
    (void)self;
    (void)argc;
    (void)argv;
    if (common->json)
        return print_json(
            json_pack("{s:s, s:s}", "program", TL_VERSION_STRING, "library", tl_version()),
            EXIT_DONE);
    printf("tradelock %s (library %s)\n", TL_VERSION_STRING, tl_version());
    return finish_output(EXIT_DONE);
}

const struct command command_version = {
    .name = "version",
    .summary = "print the versions of program and library",
    .arguments = "[--json]",
    .text = "Prints the version of this program and of the library that it runs with.\n",
    .run = run,
};
