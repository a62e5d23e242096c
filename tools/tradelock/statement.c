/* Reads a bank's statement in CSV into payments. */
#include "statement.h"

#include "csv_guard.h"

#include <tradelock/admin.h>
#include <tradelock/layer.h>

#include <csv.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column { COL_SERIAL, COL_CUST, COL_OP, COL_KEY, COL_REF, COL_AMOUNT, COL_CURRENCY, COLUMNS };

static const struct {
    const char *name;
    size_t most;         /* bytes, where evidence is filed */
    int is_name, is_due; /* without spaces; never empty, where evidence is filed */
} columns[COLUMNS] = {
    [COL_SERIAL] = {"serial_no", TL_SERIAL_MAX, 1, 1},
    [COL_CUST] = {"cust_no", TL_CUST_MAX, 1, 1},
    [COL_OP] = {"op_code", TL_OP_MAX, 1, 1},
    [COL_KEY] = {"channel_key", TL_CHANNEL_KEY_MAX, 1, 0},
    [COL_REF] = {"channel_ref", TL_REF_MAX, 0, 0},
    [COL_AMOUNT] = {"amount_minor", 20, 1, 1},
    [COL_CURRENCY] = {"currency", TL_CURRENCY, 1, 1},
};

struct reading {
    struct statement *to;
    const struct statement_rules *rules;
    unsigned line;            /* of the file */
    unsigned at;              /* the column that comes next */
    unsigned columns;         /* of the header; 0: it was not read */
    int places[COLUMNS];      /* which column of the file; -1: not there */
    const char *row[COLUMNS]; /* of the record that is read */
    char unknown[80];         /* the first column that is not known, in quotes; "" */
    char problem[256];        /* the first one */
};

static void refuse(struct reading *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void refuse(struct reading *r, const char *format, ...)
{
    va_list arguments;

    if (r->problem[0] != '\0')
        return;
    va_start(arguments, format);
    vsnprintf(r->problem, sizeof r->problem, format, arguments);
    va_end(arguments);
}

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

/* Whether the name is one of a list with commas between. */
static int is_among(const char *list, const char *name, size_t size)
{
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ",");

        if (length == size && memcmp(list, name, size) == 0)
            return 1;
        list += length + (list[length] == ',');
    }
    return 0;
}

static void take_name(struct reading *r, const char *data, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of editors that mark UTF-8 */

    if (r->at == 0 && size >= 3 && memcmp(data, mark, 3) == 0) {
        data += 3;
        size -= 3;
    }
    for (int i = 0; i < COLUMNS; i++)
        if (strlen(columns[i].name) == size && memcmp(columns[i].name, data, size) == 0) {
            if (r->places[i] >= 0)
                refuse(r, "the column %s stands twice", columns[i].name);
            r->places[i] = (int)r->at;
            return;
        }
    if (r->unknown[0] == '\0' && !is_among("seq,paid_at,payee", data, size) &&
        !is_among(r->rules->ignored, data, size))
        snprintf(r->unknown, sizeof r->unknown, "'%.*s'", (int)(size < 64 ? size : 64), data);
}

/* Nothing is cut or changed when it is stored or shown. */
static void check_text(struct reading *r, enum column column, const char *text, size_t size)
{
    const int is_filed = r->rules->is_filed;
    const char *name = columns[column].name, *at = text;

    if (size > (is_filed ? columns[column].most : TL_REF_MAX))
        refuse(r, "%s is longer than %zu bytes", name,
               is_filed ? columns[column].most : (size_t)TL_REF_MAX);
    while (*at != '\0' && tl_utf8_size(at) > 0 && (unsigned char)*at >= ' ' && *at != 0x7f &&
           !(is_filed && columns[column].is_name && (*at == ' ' || (unsigned char)*at > '~')))
        at += tl_utf8_size(at);
    if (at != text + size)
        refuse(r, "byte %td of %s (0x%02x) is no UTF-8, a control character, or not of a name",
               at - text + 1, name, (unsigned)(unsigned char)*at);
}

static void take_cell(struct reading *r, enum column column, const char *data, size_t size)
{
    const size_t guard = csv_is_guarded(data, size) ? 1 : 0;
    const char *text = keep_text(r->to, data + guard, size - guard);

    if (text == NULL)
        refuse(r, "out of memory");
    else
        check_text(r, column, text, size - guard);
    r->row[column] = text;
}

static void take_field(void *data, size_t size, void *context)
{
    struct reading *r = context;
    const char *bytes = data != NULL ? data : "";

    if (r->problem[0] == '\0' && r->columns == 0)
        take_name(r, bytes, size);
    for (int i = 0; r->problem[0] == '\0' && r->columns > 0 && i < COLUMNS; i++)
        if (r->places[i] == (int)r->at)
            take_cell(r, (enum column)i, bytes, size);
    r->at++;
}

static int grow(struct statement *self)
{
    size_t space = self->space > 0 ? self->space * 2 : 256;
    tl_payment *payments;

    if (self->count < self->space)
        return 0;
    payments = realloc(self->payments, space * sizeof *payments);
    if (payments == NULL)
        return -1;
    self->payments = payments;
    self->space = space;
    return 0;
}

/* In minor units; "" and a column that is not there tell none. */
static void read_amount(struct reading *r, tl_payment_amount *to, const char *amount)
{
    const char *digits = amount != NULL && amount[0] == '-' ? amount + 1 : amount;

    if (amount == NULL || amount[0] == '\0')
        return;
    errno = 0;
    to->amount_minor = strtoll(amount, NULL, 10);
    to->is_told = 1;
    if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits) || errno != 0)
        refuse(r, "amount_minor is a whole number of minor units, not '%s'", amount);
}

/* What evidence has to have, and a statement may leave out. */
static void check_filed(struct reading *r, const tl_payment *payment)
{
    const char *currency = payment->amount.currency;

    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].is_due && r->row[i] != NULL && r->row[i][0] == '\0')
            refuse(r, "%s is empty", columns[i].name);
    if (payment->op_code == NULL)
        refuse(r, "the payment names no op_code: say --op");
    if (currency != NULL && (strlen(currency) != TL_CURRENCY ||
                             strspn(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != TL_CURRENCY))
        refuse(r, "currency is three letters A to Z, not '%s'", currency);
}

static void take_payment(struct reading *r)
{
    const char **row = r->row;
    tl_payment payment = {row[COL_SERIAL], row[COL_CUST], row[COL_OP],
                          row[COL_KEY],    row[COL_REF],  .amount = {.currency = row[COL_CURRENCY]},
                          .line = r->line};

    if (r->at != r->columns)
        refuse(r, "the line has %u cells, and the first line names %u columns", r->at, r->columns);
    if (r->rules->op_code != NULL && (row[COL_OP] == NULL || row[COL_OP][0] == '\0'))
        payment.op_code = row[COL_OP] = r->rules->op_code;
    read_amount(r, &payment.amount, row[COL_AMOUNT]);
    if (r->rules->is_filed)
        check_filed(r, &payment);
    if (r->rules->most > 0 && r->to->count == r->rules->most)
        refuse(r, "there are more than %zu payments, and no more are taken here", r->rules->most);
    if (r->problem[0] == '\0' && grow(r->to) != 0)
        refuse(r, "out of memory");
    if (r->problem[0] == '\0')
        r->to->payments[r->to->count++] = payment;
}

static void take_record(int terminator, void *context)
{
    struct reading *r = context;

    (void)terminator;
    if (r->columns > 0)
        take_payment(r);
    else if (r->places[COL_SERIAL] < 0 || r->places[COL_CUST] < 0)
        refuse(r, "the first line names no columns serial_no and cust_no");
    else if (r->rules->is_filed && (r->places[COL_AMOUNT] < 0 || r->places[COL_CURRENCY] < 0))
        refuse(r,
               "the first line names no columns amount_minor and currency: what is filed as paid "
               "is compared with the trade's amount");
    else if (r->unknown[0] != '\0')
        refuse(r,
               "the column %s is not known: what it says would not be compared, unless it is named "
               "as one to be ignored",
               r->unknown);
    if (r->columns == 0)
        r->columns = r->at;
    r->at = 0;
    memset(r->row, 0, sizeof r->row);
}

/* Line by line, so that a problem names its line. */
static void parse(struct reading *r, struct csv_parser *parser, const char *bytes, size_t size)
{
    while (size > 0 && r->problem[0] == '\0') {
        const char *end = memchr(bytes, '\n', size);
        const size_t line = end != NULL ? (size_t)(end - bytes) + 1 : size;

        if (csv_parse(parser, bytes, line, take_field, take_record, r) != line)
            refuse(r, "a quote stands in the wrong place");
        r->line += end != NULL && r->problem[0] == '\0';
        bytes += line;
        size -= line;
    }
}

static void read_all(struct reading *r, FILE *file)
{
    struct csv_parser parser;
    char buffer[65536], last = '\n';
    size_t size;

    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
        refuse(r, "out of memory");
        return;
    }
    while (r->problem[0] == '\0' && !feof(file) && !ferror(file) &&
           (size = fread(buffer, 1, sizeof buffer, file)) > 0) {
        parse(r, &parser, buffer, size);
        last = buffer[size - 1];
    }
    if (ferror(file))
        refuse(r, "it cannot be read");
    if (r->problem[0] == '\0' && csv_fini(&parser, take_field, take_record, r) != 0)
        refuse(r, "a quote is not closed");
    if (last != '\n' && last != '\r')
        refuse(r, "the last line has no end: the file may be cut");
    csv_free(&parser);
}

int statement_read_from(struct statement *self, FILE *file, const char *name,
                        const struct statement_rules *rules, char *problem, size_t space)
{
    struct reading r = {
        .to = self, .rules = rules, .line = 1, .places = {-1, -1, -1, -1, -1, -1, -1}};

    memset(self, 0, sizeof *self);
    read_all(&r, file);
    if (r.columns == 0)
        refuse(&r, "it is empty");
    /* A statement without payments is still a statement. */
    if (self->payments == NULL && grow(self) != 0)
        refuse(&r, "out of memory");
    if (r.problem[0] == '\0')
        return 0;
    snprintf(problem, space, "%s:%u: %s", name, r.line, r.problem);
    statement_free(self);
    return -1;
}

int statement_read(struct statement *self, const char *path, const struct statement_rules *rules,
                   char *problem, size_t space)
{
    FILE *file = fopen(path, "rb");
    int result;

    if (file == NULL) {
        snprintf(problem, space, "%s: %s", path, strerror(errno));
        return -1;
    }
    result = statement_read_from(self, file, path, rules, problem, space);
    fclose(file);
    return result;
}

void statement_free(struct statement *self)
{
    for (size_t i = 0; i < self->text_count; i++)
        free(self->texts[i]);
    free(self->texts);
    free(self->payments);
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
    size_t at = 0;

    memset(first, 0, (places + 1) * sizeof *first);
    if (self->payments == NULL)
        return 0;
    payments = calloc(count + 1, sizeof *payments);
    if (payments == NULL)
        return -1;
    for (size_t p = 0; p < places; p++) {
        first[p] = at;
        for (size_t i = 0; i < count; i++)
            if (place[i] == p)
                payments[at++] = self->payments[i];
    }
    first[places] = at;
    free(self->payments);
    self->payments = payments;
    self->space = count + 1;
    return 0;
}
