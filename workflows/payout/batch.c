/* Reads the batch file, and refuses what is wrong before anything is paid. */
#include "batch.h"

#include "amount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static void refuse(line *of, const char *why)
{
    of->kind = LINE_REFUSED;
    snprintf(of->sentence, sizeof of->sentence, "%s", why);
}

/* Cuts the text at its commas.  The number of columns. */
static unsigned cut(char *text, char *columns[BATCH_COLUMNS])
{
    unsigned count = 0;

    for (char *at = text; at != NULL; count++) {
        if (count < BATCH_COLUMNS)
            columns[count] = at;
        at = strchr(at, ',');
        if (at != NULL)
            *at++ = '\0';
    }
    return count;
}

/* *sum: of all good lines of the file, in whatever currencies. */
static const char *take_line(line *to, size_t size, int64_t *sum)
{
    char *columns[BATCH_COLUMNS] = {NULL};
    const char *problem = NULL;

    if (memchr(to->text, '\0', size) != NULL || strpbrk(to->text, "\"\r") != NULL)
        problem = "a quote, a carriage return or a NUL stands in the line";
    if (cut(to->text, columns) != BATCH_COLUMNS)
        return "the line does not have 4 columns";
    if (problem == NULL)
        problem = amount_read(&to->order.amount_minor, columns[1]);
    if (problem == NULL)
        problem = payout_order_take(&to->order, columns[2], columns[3]);
    if (problem == NULL && to->order.amount_minor > INT64_MAX - *sum)
        problem = "with it the amounts of the file are too large to be added";
    if (problem == NULL)
        *sum += to->order.amount_minor;
    return problem;
}

static int add_line(batch *self, const char *text, size_t size, int64_t *sum)
{
    const char *problem;
    line *to;

    if (self->count == self->space) {
        const size_t space = self->space > 0 ? self->space * 2 : 256;

        to = realloc(self->lines, space * sizeof *to);
        if (to == NULL)
            return -1;
        self->lines = to;
        self->space = space;
    }
    to = &self->lines[self->count];
    memset(to, 0, sizeof *to);
    to->text = malloc(size + 1);
    if (to->text == NULL)
        return -1;
    memcpy(to->text, text, size);
    to->text[size] = '\0';
    to->number = (unsigned)++self->count + 1; /* the header is line 1 */
    problem = take_line(to, size, sum);
    if (problem != NULL)
        refuse(to, problem);
    return 0;
}

static int compare(const void *a, const void *b)
{
    const line *one = *(line *const *)a, *other = *(line *const *)b;
    const int order = strcmp(one->text, other->text);

    return order != 0 ? order : (one->number > other->number) - (one->number < other->number);
}

/* Which of two lines is meant is for a person to say: only the first is taken, as it stands. */
static int refuse_repeated(const batch *self)
{
    line **sorted = malloc((self->count + 1) * sizeof *sorted);

    if (sorted == NULL)
        return -1;
    for (size_t i = 0; i < self->count; i++)
        sorted[i] = &self->lines[i];
    qsort(sorted, self->count, sizeof *sorted, compare);
    for (size_t i = 1, first = 0; i < self->count; i++) {
        if (strcmp(sorted[i]->text, sorted[first]->text) != 0) {
            first = i;
            continue;
        }
        refuse(sorted[i], "");
        snprintf(sorted[i]->sentence, sizeof sorted[i]->sentence,
                 "serial number %.64s stands in line %u already", sorted[i]->text,
                 sorted[first]->number);
    }
    free(sorted);
    return 0;
}

/* Without its end, which is a line feed or a carriage return and a line feed. */
static size_t without_end(const char *text, ssize_t read)
{
    size_t size = (size_t)read;

    if (size > 0 && text[size - 1] == '\n')
        size--;
    if (size > 0 && text[size - 1] == '\r')
        size--;
    return size;
}

static const char *read_lines(batch *self, FILE *from)
{
    char *text = NULL;
    size_t space = 0;
    int64_t sum = 0;
    const char *problem = NULL;
    ssize_t read = getline(&text, &space, from);

    if (read < 0)
        problem = ferror(from) ? "cannot be read" : "the file is empty; a header is needed";
    else if (without_end(text, read) != strlen(BATCH_HEADER) ||
             memcmp(text, BATCH_HEADER, strlen(BATCH_HEADER)) != 0)
        problem = "the header must be " BATCH_HEADER;
    while (problem == NULL && (read = getline(&text, &space, from)) >= 0)
        if (text[read - 1] != '\n')
            problem = "the last line has no end: the file may be cut";
        else if (add_line(self, text, without_end(text, read), &sum) != 0)
            problem = "out of memory";
    if (problem == NULL && ferror(from))
        problem = "cannot be read to its end";
    free(text);
    return problem;
}

int batch_read(batch *self, const char *file, char *problem, size_t space)
{
    FILE *from = fopen(file, "rb");
    const char *why = from != NULL ? read_lines(self, from) : strerror(errno);

    if (why == NULL && refuse_repeated(self) != 0)
        why = "out of memory";
    if (from != NULL)
        fclose(from);
    if (why != NULL)
        snprintf(problem, space, "%s: %s", file, why);
    return why != NULL ? -1 : 0;
}

void batch_free(batch *self)
{
    for (size_t i = 0; i < self->count; i++)
        free(self->lines[i].text);
    free(self->lines);
    memset(self, 0, sizeof *self);
}
