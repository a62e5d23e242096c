/* tradelock version. */
#include "command.h"

static int work(tl_client *client)
{
    (void)client;
    return print_answer(
        json_pack("{s:s, s:s}", "program", TL_VERSION_STRING, "library", tl_version()), EXIT_DONE,
        "tradelock %s (library %s)\n", TL_VERSION_STRING, tl_version());
}

const struct command command_version = {
    .name = "version",
    .summary = "print the versions of program and library",
    .arguments = "[--json]",
    .text = "Prints the version of this program and of the library that it runs with.\n",
    .examples = "  tradelock version\n",
    .work = work,
};
