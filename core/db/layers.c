/*
 * A settings file with more lines that count above those of [tradelock-client]: what the environment
 * says, and above that [tradelock-client-a].  Touches the settings file, and a file in memory.
 *
 * libmariadb reads one section besides [client], and where a name stands twice its last line
 * counts.  So it is given a copy in memory, which no path leads to, in which both sections have the
 * name of the first and the lines of the second come last.  All other lines stand where they stood.
 * Without a settings file the copy has the environment's lines alone.
 */
#include "db/db_internal.h"

#include "base/config_client.h"
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
            is_over = over_group != NULL && is_section(line, over_group);
        if (is_over == over && !(begins && is_over))
            fprintf(to, "%s%s", line, strchr(line, '\n') != NULL ? "" : "\n");
    }
    if (line != NULL)
        explicit_bzero(line, space); /* it may have held a password */
    free(line);
}

static tl_status copy(FILE *to, const db_options *options)
{
    const char *file = options->option_file != NULL ? options->option_file : "/dev/null";
    FILE *from = fopen(file, "re");
    tl_status status;

    if (from == NULL)
        return error_set(TL_BAD_CONFIG, "the settings file %s cannot be read", file);
    copy_lines(to, from, options->over_group, 0);
    fprintf(to, "[%s]\n", options->group);
    status = config_connection_write(to);
    copy_lines(to, from, options->over_group, 1);
    if (status == TL_OK && ferror(from))
        status = error_set(TL_BAD_CONFIG, "the settings file %s cannot be read", file);
    fclose(from);
    return status;
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
