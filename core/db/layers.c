/*
 * A settings file of which one section counts above another: [tradelock-client-a] above
 * [tradelock-client].  Touches the settings file, and a file in memory.
 *
 * libmariadb reads one section besides [client], and where a name stands twice its last line
 * counts.  So it is given a copy in memory, which no path leads to, in which both sections have the
 * name of the first and the lines of the second come last.  All other lines stand where they stood.
 */
#include "db/db_internal.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether the line begins this section. */
static int is_section(const char *line, const char *group)
{
    const size_t size = strlen(group);

    while (isspace((unsigned char)*line))
        line++;
    return line[0] == '[' && strncmp(line + 1, group, size) == 0 && line[1 + size] == ']';
}

/* over: the lines of that section alone; else all others. */
static void copy_lines(FILE *to, FILE *from, const char *over_group, int over)
{
    char *line = NULL;
    size_t space = 0;
    int is_over = 0;

    (void)fseek(from, 0, SEEK_SET);
    while (getline(&line, &space, from) >= 0) {
        const int begins = line[strspn(line, " \t\r\f\v")] == '[';

        if (begins)
            is_over = is_section(line, over_group);
        if (is_over == over && !(begins && is_over))
            fprintf(to, "%s%s", line, strchr(line, '\n') != NULL ? "" : "\n");
    }
    if (line != NULL)
        explicit_bzero(line, space); /* it may have held a password */
    free(line);
}

static tl_status copy(FILE *to, const db_options *options)
{
    FILE *from = fopen(options->option_file, "re");
    int failed;

    if (from == NULL)
        return error_set(TL_BAD_CONFIG, "the settings file %s cannot be read",
                         options->option_file);
    copy_lines(to, from, options->over_group, 0);
    fprintf(to, "[%s]\n", options->group);
    copy_lines(to, from, options->over_group, 1);
    failed = ferror(from);
    fclose(from);
    return failed ? error_set(TL_BAD_CONFIG, "the settings file %s cannot be read",
                              options->option_file)
                  : TL_OK;
}

tl_status db_layers_open(db_layers *layers, const db_options *options)
{
    const int fd = memfd_create("tradelock", MFD_CLOEXEC);
    tl_status status;

    layers->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (layers->file == NULL) {
        status = error_set(TL_NO_MEMORY, "no file in memory for the settings: %s",
                           strerrordesc_np(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    snprintf(layers->path, sizeof layers->path, "/proc/self/fd/%d", fd);
    status = copy(layers->file, options);
    if (fflush(layers->file) != 0 && status == TL_OK)
        status = error_set(TL_NO_MEMORY, "no file in memory for the settings: %s",
                           strerrordesc_np(errno));
    return status;
}

void db_layers_close(db_layers *layers)
{
    if (layers->file != NULL)
        fclose(layers->file);
}
