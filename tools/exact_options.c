/*
 * Part of every program, whose getopt_long() it is by a definition of the build: no option is named
 * by its beginning, since --amount would mean --amount-over where that is the only one so begun.
 */
#undef getopt_long
#include <getopt.h>
#include <stdio.h>
#include <string.h>

int getopt_long_exact(int argc, char *const *argv, const char *short_options,
                      const struct option *options, int *index);

int getopt_long_exact(int argc, char *const *argv, const char *short_options,
                      const struct option *options, int *index)
{
    int at = -1, is_next;
    const int option = getopt_long(argc, argv, short_options, options, &at);
    const char *text, *name = at >= 0 ? options[at].name : "";

    if (index != NULL && at >= 0)
        *index = at;
    if (at < 0 || option == -1)
        return option;
    /* Its value is the next argument, or stands behind a '='. */
    is_next = optarg != NULL && optarg == argv[optind - 1];
    text = argv[optind - 1 - is_next] + 2;
    if (strncmp(text, name, strlen(name)) == 0 && strchr("=", text[strlen(name)]) != NULL)
        return option;
    if (opterr)
        fprintf(stderr, "%s: unrecognized option '--%s'\n", argv[0], text);
    optind -= is_next; /* messages name the last argument */
    optopt = 0;
    return '?';
}
