/* tradelock version. */
#include "command.h"

#include "print.h"

#include <stdio.h>

static int run(const struct command *self, int argc, char **argv)
{
    static const struct option options[] = {COMMON_OPTIONS, {NULL, 0, NULL, 0}};
    struct common common = {0};
    int code = EXIT_DONE;

    if (common_next(self, &common, argc, argv, options, &code) == COMMON_STOP)
        return code;
    if (optind < argc)
        return usage_error(self, "version takes no operand: %s", argv[optind]);
    if (common.json)
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
    .options = "",
    .run = run,
};
