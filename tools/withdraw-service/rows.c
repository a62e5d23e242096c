/* Reads the input CSV, and says which lines are bad or doubled. */
#include "rows.h"

#include "amount.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

/* The columns of one line, as they come. */
typedef struct fields {
    char *columns[ROW_COLUMNS];
    unsigned count;   /* also of columns beyond the last */
    unsigned records; /* a stray carriage return ends a record */
    int no_memory;
} fields;

static char *copy_bytes(const char *from, size_t size)
{
    char *copy = malloc(size + 1);

    if (copy != NULL) {
        memcpy(copy, from, size);
        copy[size] = '\0';
    }
    return copy;
}

static void take_field(void *data, size_t size, void *context)
{
    fields *all = context;

    if (all->count < ROW_COLUMNS) {
        all->columns[all->count] = copy_bytes(data != NULL ? data : "", size);
        all->no_memory |= all->columns[all->count] == NULL;
    }
    all->count++;
}

static void take_record(int terminator, void *context)
{
    fields *all = context;

    (void)terminator;
    all->records++;
}

static int is_never(unsigned char byte)
{
    (void)byte;
    return 0;
}

/* NULL, or what is wrong with the line. */
static const char *parse_line(fields *all, const char *line, size_t size)
{
    struct csv_parser parser;
    const char *problem = NULL;

    memset(all, 0, sizeof *all);
    if (size == 0)
        return "the line is empty";
    if (size > ROW_LINE_MAX)
        return "the line is too long";
    if (memchr(line, '\0', size) != NULL)
        return "the line has a NUL byte";
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0)
        return "out of memory";
    /* Blanks belong to the field they stand in. */
    csv_set_space_func(&parser, is_never);
    if (csv_parse(&parser, line, size, take_field, take_record, all) != size)
        problem = "a quote stands in the wrong place";
    else if (csv_fini(&parser, take_field, take_record, all) != 0)
        problem = "a quote is not closed";
    else if (all->records != 1)
        problem = "a carriage return stands within the line";
    else if (all->count != ROW_COLUMNS)
        problem = "the line does not have 6 columns";
    if (all->no_memory)
        problem = "out of memory";
    csv_free(&parser);
    return problem;
}

void row_spoil(row *self, const char *name, const char *sentence)
{
    size_t size = strlen(name) + strlen(sentence) + 32;

    free(self->sentence);
    self->kind = ROW_BAD;
    self->sentence = malloc(size);
    if (self->sentence != NULL)
        snprintf(self->sentence, size, "%s:%u: %s", name, self->line, sentence);
}

/* NULL, or what keeps the columns from being an order. */
static const char *read_order(withdraw_order *order, char *const columns[])
{
    const char *problem = amount_read(&order->amount_minor, columns[COL_AMOUNT]);

    if (problem != NULL)
        return problem;
    if (strcmp(columns[COL_OP], WITHDRAW_OP) != 0)
        return "the operation is not known; WITHDRAW is";
    if (strlen(columns[COL_CURRENCY]) != WITHDRAW_CURRENCY)
        return "the currency must be three capital letters";
    if (strlen(columns[COL_PAYEE]) > WITHDRAW_PAYEE_MAX)
        return "the payee is longer than 128 bytes";
    strcpy(order->currency, columns[COL_CURRENCY]);
    strcpy(order->payee, columns[COL_PAYEE]);
    return withdraw_order_problem(order);
}

static int grow(rows *self)
{
    size_t space = self->space > 0 ? self->space * 2 : 256;
    row *list;

    if (self->count < self->space)
        return 0;
    list = realloc(self->list, space * sizeof *list);
    if (list == NULL)
        return -1;
    self->list = list;
    self->space = space;
    return 0;
}

static int add_line(rows *self, const char *name, unsigned number, const char *line, size_t size)
{
    fields all;
    const char *problem;
    row *next;

    if (grow(self) != 0)
        return -1;
    next = &self->list[self->count++];
    memset(next, 0, sizeof *next);
    next->line = number;
    problem = parse_line(&all, line, size);
    for (unsigned i = 0; i < ROW_COLUMNS; i++) {
        next->columns[i] = all.columns[i] != NULL ? all.columns[i] : copy_bytes("", 0);
        if (next->columns[i] == NULL)
            return -1;
    }
    if (problem == NULL)
        problem = read_order(&next->order, next->columns);
    if (problem != NULL)
        row_spoil(next, name, problem);
    return 0;
}

/* The line without its end, which is a line feed or a carriage return and a line feed. */
static size_t line_size(const char *line, ssize_t read)
{
    size_t size = (size_t)read;

    if (size > 0 && line[size - 1] == '\n')
        size--;
    if (size > 0 && line[size - 1] == '\r')
        size--;
    return size;
}

static int is_header(const char *line, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of editors that mark UTF-8 */

    if (size >= sizeof mark - 1 && memcmp(line, mark, sizeof mark - 1) == 0) {
        line += sizeof mark - 1;
        size -= sizeof mark - 1;
    }
    return size == strlen(ROWS_HEADER) && memcmp(line, ROWS_HEADER, size) == 0;
}

int rows_read(rows *self, FILE *file, const char *name, char *problem, size_t space)
{
    char *line = NULL;
    size_t line_space = 0;
    unsigned number = 0;
    int result = 0;
    ssize_t read;

    problem[0] = '\0';
    while (result == 0 && (read = getline(&line, &line_space, file)) >= 0) {
        size_t size = line_size(line, read);

        number++;
        if (line[read - 1] != '\n') {
            snprintf(problem, space, "%s:%u: the last line has no end: the file may be cut", name,
                     number);
            result = -1;
        } else if (number == 1 && !is_header(line, size)) {
            snprintf(problem, space, "%s:1: the header must be %s", name, ROWS_HEADER);
            result = -1;
        } else if (number > 1 && add_line(self, name, number, line, size) != 0) {
            snprintf(problem, space, "%s:%u: out of memory", name, number);
            result = -1;
        }
    }
    if (result == 0 && (ferror(file) || number == 0)) {
        snprintf(problem, space, "%s:%u: %s", name, number + 1,
                 ferror(file) ? "cannot be read" : "the file is empty; a header is needed");
        result = -1;
    }
    free(line);
    return result;
}

void rows_free(rows *self)
{
    for (size_t i = 0; i < self->count; i++) {
        for (unsigned column = 0; column < ROW_COLUMNS; column++)
            free(self->list[i].columns[column]);
        free(self->list[i].sentence);
    }
    free(self->list);
    memset(self, 0, sizeof *self);
}
