/* Decides whether to colour what is printed.  Reads the environment. */
#include "colour.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_wanted(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

const char *colour(enum colour which)
{
    static const char *const codes[] = {"\033[0m", "\033[1;31m", "\033[1m"};

    return is_wanted() ? codes[which] : "";
}
