/* Reads the input file, says which lines are bad, and writes the output file. */
#include "rows.h"

#include "csv_guard.h"

#include <csv.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- reading -- */

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

void row_note(row *self, row_kind kind, const char *sentence)
{
    free(self->sentence);
    self->kind = kind;
    self->sentence = strdup(sentence);
}

/* NULL, or what keeps the columns from being an order. */
static const char *read_order(withdraw_order *order, char *const columns[])
{
    const char *problem = withdraw_amount_read(&order->amount_minor, columns[COL_AMOUNT]);

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

static int add_line(rows *self, unsigned number, const char *line, size_t size)
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
        row_note(next, ROW_BAD, problem);
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
    const char *why = NULL;
    char *line = NULL;
    size_t line_space = 0;
    unsigned number = 0;
    ssize_t read = 0;

    while (why == NULL && (read = getline(&line, &line_space, file)) >= 0) {
        const size_t size = line_size(line, read);

        number++;
        if (line[read - 1] != '\n')
            why = "the last line has no end: the file may be cut";
        else if (number == 1 && !is_header(line, size))
            why = "the header must be " ROWS_HEADER;
        else if (number > 1 && add_line(self, number, line, size) != 0)
            why = "out of memory";
    }
    free(line);
    if (why == NULL && ferror(file))
        why = "the file cannot be read to its end";
    else if (why == NULL && number == 0)
        why = "the file is empty; a header is needed";
    if (why != NULL)
        snprintf(problem, space, "%s:%u: %s", name, number > 0 ? number : 1, why);
    return why != NULL ? -1 : 0;
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

/* By serial number, and then in the order of the file. */
static int compare(const void *a, const void *b)
{
    const row *one = *(row *const *)a, *other = *(row *const *)b;
    const int order = strcmp(one->columns[COL_SERIAL], other->columns[COL_SERIAL]);

    return order != 0 ? order : (one->line > other->line) - (one->line < other->line);
}

/* Which of two lines is meant is for a person to say: only the first is taken, as it stands. */
int rows_refuse_repeated(rows *self)
{
    row **sorted = malloc((self->count + 1) * sizeof *sorted);
    char sentence[160];

    if (sorted == NULL)
        return -1;
    for (size_t i = 0; i < self->count; i++)
        sorted[i] = &self->list[i];
    qsort(sorted, self->count, sizeof *sorted, compare);
    for (size_t i = 1, first = 0; i < self->count; i++) {
        if (strcmp(sorted[i]->columns[COL_SERIAL], sorted[first]->columns[COL_SERIAL]) != 0)
            first = i;
        if (first == i || sorted[i]->kind == ROW_BAD)
            continue;
        snprintf(sentence, sizeof sentence, "serial number %.64s stands in line %u already",
                 sorted[i]->columns[COL_SERIAL], sorted[first]->line);
        row_note(sorted[i], ROW_BAD, sentence);
    }
    free(sorted);
    return 0;
}

/* ------------------------------------------------------------------------- answers -- */

row_kind answer_kind(tl_status status, int own)
{
    if (own)
        return ROW_NEW;
    switch (status) {
    case TL_ALREADY_DONE:
    case TL_FAILED:
    case TL_BUSY:
    case TL_IN_DOUBT:
    case TL_QUEUED:
    case TL_PARKED:
    case TL_IN_CONFLICT:
        return ROW_REPEATED;
    case TL_MISMATCH:
        return ROW_MISMATCH;
    case TL_REFUSED:
    case TL_CUSTOMER_BUSY:
        return ROW_REFUSED;
    case TL_INVALID:
    case TL_UNKNOWN_OPERATION:
        return ROW_BAD;
    case TL_OVERLOADED: /* the server is there: a paused or limited channel, or too many at once */
        return ROW_OPEN;
    default:
        return ROW_ERROR;
    }
}

/* "succeeded", "already_done", ...: the status' name in lower case, without TL_. */
static const char *answer_name(char *to, size_t space, const row *of)
{
    const char *name = of->kind == ROW_BAD ? "bad" : tl_status_name(of->status);
    size_t at = 0;

    if (strncmp(name, "TL_", 3) == 0)
        name += 3;
    for (; name[at] != '\0' && at + 1 < space; at++)
        to[at] = (char)tolower((unsigned char)name[at]);
    to[at] = '\0';
    return to;
}

/* Quoted only where it must be, so that what was plain stays so. */
static void write_field(FILE *file, const char *text)
{
    if (csv_wants_guard(text))
        putc('\'', file);
    if (text[strcspn(text, ",\"\r\n")] == '\0')
        fputs(text, file);
    else
        csv_fwrite(file, text, strlen(text));
}

static void write_row(FILE *file, const row *of)
{
    static const char *const kinds[ROW_KINDS] = {"open",    "new", "repeated", "mismatch",
                                                 "refused", "bad", "error"};
    char name[32];

    for (unsigned i = 0; i < ROW_COLUMNS; i++) {
        write_field(file, of->columns[i]);
        putc(',', file);
    }
    fprintf(file, "%s,%s,%s,", answer_name(name, sizeof name, of), of->final, kinds[of->kind]);
    write_field(file, of->sentence != NULL ? of->sentence : "");
    putc('\n', file);
}

int answers_write(FILE *file, const rows *all)
{
    fputs(ANSWERS_HEADER "\n", file);
    for (size_t i = 0; i < all->count; i++)
        write_row(file, &all->list[i]);
    return fflush(file) != 0 || ferror(file) ? -1 : 0;
}
