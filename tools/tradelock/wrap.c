/* Wraps text at blanks.  Prints. */
#include "wrap.h"

#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_LEAST 40

unsigned terminal_columns(void)
{
    const char *said = getenv("COLUMNS");
    struct winsize size;
    unsigned columns = 0;

    if (said != NULL)
        columns = (unsigned)strtoul(said, NULL, 10);
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        columns = size.ws_col;
    return columns > 0 && columns < COLUMNS_LEAST ? COLUMNS_LEAST : columns;
}

void wrap_print(const char *label, unsigned width, const char *text)
{
    const unsigned columns = terminal_columns();
    unsigned at = width;

    printf("%-*s", (int)width, label);
    for (size_t size; *text != '\0'; text += size) {
        unsigned wide;

        text += strspn(text, " ");
        size = strcspn(text, " ");
        wide = (unsigned)text_width(text, size);
        if (columns > 0 && at > width && at + 1 + wide > columns) {
            printf("\n%*s", (int)width, "");
            at = width;
        } else if (at > width) {
            putchar(' ');
            at++;
        }
        print_harmless(text, size);
        at += wide;
    }
    putchar('\n');
}
