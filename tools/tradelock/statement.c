/* Reads a bank's statement in CSV into payments. */
#include "statement.h"

#include <tradelock/admin.h>

#include <csv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 64

enum column { COL_SERIAL, COL_CUST, COL_OP, COL_KEY, COL_REF, COL_AMOUNT, COL_CURRENCY, COLUMNS };

struct reading {
    struct statement *to;
    unsigned line;            /* records so far, the header included */
    unsigned at;              /* the column that comes next */
    unsigned columns;         /* of the header */
    int places[COLUMNS];      /* which column of the file; -1: not there */
    const char *row[COLUMNS]; /* of the record that is read */
    const char *problem;
};

static const char *keep_text(struct statement *self, const char *data, size_t size)
{
    char *text = malloc(size + 1);

    if (self->text_count == self->text_space) {
        size_t space = self->text_space > 0 ? self->text_space * 2 : 256;
        char **texts = realloc(self->texts, space * sizeof *texts);

        if (texts == NULL) {
            free(text);
            return NULL;
        }
        self->texts = texts;
        self->text_space = space;
    }
    if (text == NULL)
        return NULL;
    memcpy(text, data, size);
    text[size] = '\0';
    self->texts[self->text_count++] = text;
    return text;
}

static void take_name(struct reading *r, const char *data, size_t size)
{
    static const char *const names[COLUMNS] = {"serial_no",   "cust_no",     "op_code",
                                               "channel_key", "channel_ref", "amount_minor",
                                               "currency"};
    static const char mark[] = "\xef\xbb\xbf"; /* of editors that mark UTF-8 */

    if (r->at == 0 && size >= 3 && memcmp(data, mark, 3) == 0) {
        data += 3;
        size -= 3;
    }
    for (int i = 0; i < COLUMNS; i++)
        if (strlen(names[i]) == size && memcmp(names[i], data, size) == 0)
            r->places[i] = (int)r->at;
}

static void take_field(void *data, size_t size, void *context)
{
    struct reading *r = context;
    const char *bytes = data != NULL ? data : "";

    if (r->line == 0)
        take_name(r, bytes, size);
    for (int i = 0; r->line > 0 && i < COLUMNS; i++)
        if (r->places[i] == (int)r->at) {
            r->row[i] = keep_text(r->to, bytes, size);
            if (r->row[i] == NULL)
                r->problem = "out of memory";
        }
    r->at++;
}

static int grow(struct statement *self)
{
    size_t space = self->space > 0 ? self->space * 2 : 256;
    tl_payment_amount *amounts;
    tl_payment *payments;

    if (self->count < self->space)
        return 0;
    payments = realloc(self->payments, space * sizeof *payments);
    if (payments == NULL)
        return -1;
    self->payments = payments;
    amounts = realloc(self->amounts, space * sizeof *amounts);
    if (amounts == NULL)
        return -1;
    self->amounts = amounts;
    self->space = space;
    return 0;
}

/* In minor units; "" and a column that is not there tell none. */
static int read_amount(tl_payment_amount *to, const char *amount, const char *currency)
{
    char *end;

    *to = (tl_payment_amount){.currency = currency};
    if (amount == NULL || amount[0] == '\0')
        return 0;
    errno = 0;
    to->amount_minor = strtoll(amount, &end, 10);
    to->is_told = 1;
    return strspn(amount, "-0123456789") == strlen(amount) && end[0] == '\0' && errno == 0 ? 0 : -1;
}

static void take_payment(struct reading *r)
{
    const char *const *row = r->row;
    tl_payment_amount amount;
    tl_payment payment = {row[COL_SERIAL], row[COL_CUST], row[COL_OP], row[COL_KEY], row[COL_REF]};

    if (row[COL_SERIAL] == NULL || row[COL_CUST] == NULL)
        r->problem = "a line has too few columns";
    else if (r->at > r->columns)
        r->problem = "a line has more columns than the first";
    else if (read_amount(&amount, row[COL_AMOUNT], row[COL_CURRENCY]) != 0)
        r->problem = "amount_minor is a whole number of minor units";
    else if (grow(r->to) != 0)
        r->problem = "out of memory";
    else {
        r->to->amounts[r->to->count] = amount;
        r->to->payments[r->to->count++] = payment;
    }
}

static void take_record(int terminator, void *context)
{
    struct reading *r = context;

    (void)terminator;
    if (r->problem == NULL && r->line == 0 &&
        (r->places[COL_SERIAL] < 0 || r->places[COL_CUST] < 0))
        r->problem = "the first line names no columns serial_no and cust_no";
    if (r->line == 0)
        r->columns = r->at;
    if (r->problem == NULL && r->line > 0)
        take_payment(r);
    if (r->problem == NULL)
        r->line++;
    r->at = 0;
    memset(r->row, 0, sizeof r->row);
}

static void read_all(struct reading *r, FILE *file)
{
    struct csv_parser parser;
    char buffer[65536];
    size_t size;

    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
        r->problem = "out of memory";
        return;
    }
    while (r->problem == NULL && (size = fread(buffer, 1, sizeof buffer, file)) > 0)
        if (csv_parse(&parser, buffer, size, take_field, take_record, r) != size)
            r->problem = "a quote stands in the wrong place";
    if (r->problem == NULL && ferror(file))
        r->problem = "it cannot be read";
    if (r->problem == NULL && csv_fini(&parser, take_field, take_record, r) != 0)
        r->problem = "a quote is not closed";
    csv_free(&parser);
}

int statement_read_from(struct statement *self, FILE *file, const char *name, char *problem,
                        size_t space)
{
    struct reading r = {.to = self, .places = {-1, -1, -1, -1, -1, -1, -1}};

    memset(self, 0, sizeof *self);
    read_all(&r, file);
    if (r.problem == NULL && r.line == 0)
        r.problem = "it is empty";
    if (r.problem != NULL) {
        snprintf(problem, space, "%s:%u: %s", name, r.line + 1, r.problem);
        statement_free(self);
        return -1;
    }
    /* A statement without payments is still a statement. */
    if (self->payments == NULL && grow(self) != 0) {
        snprintf(problem, space, "out of memory");
        return -1;
    }
    return 0;
}

int statement_read(struct statement *self, const char *path, char *problem, size_t space)
{
    FILE *file = fopen(path, "rb");
    int result;

    if (file == NULL) {
        snprintf(problem, space, "%s: %s", path, strerror(errno));
        return -1;
    }
    result = statement_read_from(self, file, path, problem, space);
    fclose(file);
    return result;
}

void statement_free(struct statement *self)
{
    for (size_t i = 0; i < self->text_count; i++)
        free(self->texts[i]);
    free(self->texts);
    free(self->payments);
    free(self->amounts);
    memset(self, 0, sizeof *self);
}

int statement_names_customer(const tl_payment *payment)
{
    const char *name = payment->cust_no;
    const size_t size = name != NULL ? strlen(name) : 0;

    for (size_t i = 0; i < size; i++)
        if (name[i] <= ' ' || name[i] > '~')
            return 0;
    return size > 0 && size <= TL_CUST_MAX;
}

int statement_sort(struct statement *self, const size_t *place, size_t places, size_t *first)
{
    const size_t count = self->count;
    tl_payment *payments;
    tl_payment_amount *amounts;
    size_t at = 0;

    memset(first, 0, (places + 1) * sizeof *first);
    if (self->payments == NULL)
        return 0;
    payments = calloc(count + 1, sizeof *payments);
    amounts = calloc(count + 1, sizeof *amounts);
    if (payments == NULL || amounts == NULL) {
        free(payments);
        free(amounts);
        return -1;
    }
    for (size_t p = 0; p < places; p++) {
        first[p] = at;
        for (size_t i = 0; i < count; i++)
            if (place[i] == p) {
                payments[at] = self->payments[i];
                amounts[at++] = self->amounts[i];
            }
    }
    first[places] = at;
    free(self->payments);
    free(self->amounts);
    self->payments = payments;
    self->amounts = amounts;
    self->space = count + 1;
    return 0;
}
