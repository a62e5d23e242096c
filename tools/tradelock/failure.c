/* What a command that failed prints with --json: the sentences that went to stderr, as a document, if
 * it printed none itself.  Replaces stderr by a stream that writes through, and keeps them. */
#include "failure.h"

#include "print.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char line[2048]; /* that is not whole yet */
    size_t size;
    json_t *sentences;
} kept;

static void keep_line(void)
{
    static const char before[] = "tradelock: ";
    const size_t skip = strncmp(kept.line, before, sizeof before - 1) == 0 ? sizeof before - 1 : 0;

    kept.line[kept.size] = '\0';
    if (kept.size > skip)
        json_array_append_new(kept.sentences, json_text(kept.line + skip));
    kept.size = 0;
}

static ssize_t write_through(void *context, const char *text, size_t size)
{
    (void)context;
    for (size_t i = 0; i < size; i++)
        if (text[i] == '\n')
            keep_line();
        else if (kept.size + 1 < sizeof kept.line)
            kept.line[kept.size++] = text[i];
    return write(STDERR_FILENO, text, size);
}

void failure_keep(int argc, char **argv)
{
    int wants_json = 0;
    FILE *through;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        wants_json |= strcmp(argv[i], "--json") == 0;
    through =
        wants_json ? fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_through}) : NULL;
    if (through == NULL)
        return;
    setvbuf(through, NULL, _IONBF, 0);
    kept.sentences = json_array();
    stderr = through;
}

int failure_print(int code)
{
    if (code == EXIT_DONE || kept.sentences == NULL || common.has_document)
        return code;
    return print_json(json_pack("{s:O, s:i}", "errors", kept.sentences, "exit_code", code), code);
}
