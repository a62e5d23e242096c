/* Reads CSV in any encoding that libc knows into the records of a statement. */
#include "statement_read.h"

#include "csv_guard.h"

#include <csv.h>
#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ encoding -- */

static unsigned lines_in(const char *text, size_t size)
{
    unsigned lines = 0;

    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Converts all of it; what no character is, is refused with its line. */
static char *convert(struct reading *r, const char *encoding, const char *bytes, size_t size,
                     size_t *decoded)
{
    const size_t space = 4 * size + 4;
    iconv_t conversion =
        strchr(encoding, '/') == NULL ? iconv_open("UTF-8", encoding) : (iconv_t)-1;
    char *text = conversion != (iconv_t)-1 ? malloc(space) : NULL;
    char *from = (char *)bytes, *to = text;
    size_t left = size, room = space;

    if (conversion == (iconv_t)-1)
        refuse(r, "encoding: '%.40s' is not known here", encoding);
    else if (text == NULL)
        refuse(r, "out of memory");
    else if (iconv(conversion, &from, &left, &to, &room) == (size_t)-1) {
        r->line += lines_in(text, (size_t)(to - text));
        refuse(r, errno == EINVAL ? "the last character is cut" : "byte 0x%02x is no %.40s",
               (unsigned)(unsigned char)*from, encoding);
    }
    if (conversion != (iconv_t)-1)
        iconv_close(conversion);
    *decoded = (size_t)(to - text);
    return text;
}

/* What the bytes are converted from; NULL: they are UTF-8, or XML that says what they are. */
static const char *encoding_of(const struct reading *r, const char *bytes, size_t size)
{
    const int is_utf16 =
        size >= 2 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);

    return r->rules.encoding != NULL ? r->rules.encoding : is_utf16 ? "UTF-16" : NULL;
}

int is_converted(const struct reading *r, const char *bytes, size_t size)
{
    return encoding_of(r, bytes, size) != NULL;
}

char *decode(struct reading *r, const char *bytes, size_t size, size_t *decoded)
{
    const char *encoding = encoding_of(r, bytes, size);
    char *text;

    if (encoding != NULL) {
        text = convert(r, encoding, bytes, size, decoded);
    } else {
        text = malloc(size + 1);
        if (text == NULL)
            refuse(r, "out of memory");
        else
            memcpy(text, bytes, size);
        *decoded = size;
    }
    /* The mark of editors that mark UTF-8. */
    if (text != NULL && r->problem[0] == '\0' && *decoded >= 3 &&
        memcmp(text, "\xef\xbb\xbf", 3) == 0)
        memmove(text, text + 3, *decoded -= 3);
    return text;
}

/* ----------------------------------------------------------------------- CSV -- */

struct table {
    struct reading *r;
    unsigned at;         /* the column that comes next */
    unsigned columns;    /* of the heading; 0: it was not read */
    int places[COLUMNS]; /* which column of the file; -1: not there */
    int is_total;        /* the record is one of totals */
    char unknown[80];    /* the first column that is not known, in quotes; "" */
};

static void take_name(struct table *t, const char *data, size_t size)
{
    struct reading *r = t->r;

    for (int i = 0; i < COLUMNS; i++)
        if (r->names[i] != NULL && strlen(r->names[i]) == size &&
            memcmp(r->names[i], data, size) == 0) {
            if (t->places[i] >= 0)
                refuse(r, "the column %s stands twice", r->names[i]);
            t->places[i] = (int)t->at;
            return;
        }
    if (t->unknown[0] == '\0' && !is_among("seq,paid_at,payee", data, size) &&
        !is_among(r->rules.ignored, data, size))
        snprintf(t->unknown, sizeof t->unknown, "'%.*s'", (int)(size < 64 ? size : 64), data);
}

/* Whether a line begins with one of the words. */
static int begins_total(const char *words, const char *data, size_t size)
{
    while (words != NULL && *words != '\0') {
        const size_t length = strcspn(words, ",");

        if (length > 0 && length <= size && memcmp(words, data, length) == 0)
            return 1;
        words += length + (words[length] == ',');
    }
    return 0;
}

static void take_field(void *data, size_t size, void *context)
{
    struct table *t = context;
    const char *bytes = data != NULL ? data : "";

    if (t->r->problem[0] == '\0' && t->columns == 0)
        take_name(t, bytes, size);
    if (t->at == 0 && t->columns > 0)
        t->is_total = begins_total(t->r->rules.total, bytes, size);
    for (int i = 0; t->r->problem[0] == '\0' && t->columns > 0 && !t->is_total && i < COLUMNS; i++)
        if (t->places[i] == (int)t->at) {
            const size_t guard = csv_is_guarded(bytes, size) ? 1 : 0;

            take_cell(t->r, (enum column)i, bytes + guard, size - guard);
        }
    t->at++;
}

static int has(const struct table *t, enum column column)
{
    return t->places[column] >= 0;
}

static void check_amounts(struct table *t)
{
    struct reading *r = t->r;
    const int has_amount = has(t, COL_MINOR) || has(t, COL_AMOUNT);
    const int has_currency = has(t, COL_CURRENCY) || r->rules.currency != NULL;

    if (r->rules.is_filed && (!has_amount || !has_currency))
        refuse(r,
               "the first line names no columns amount_minor and currency: what is filed as paid "
               "is compared with the trade's amount");
    if (has(t, COL_MINOR) && has(t, COL_AMOUNT))
        refuse(r, "the columns %s and %s are both the amount", r->names[COL_MINOR],
               r->names[COL_AMOUNT]);
    if (has(t, COL_AMOUNT) && !has_currency)
        refuse(r, "the amounts of %s name no currency, which says how many digits are cents",
               r->names[COL_AMOUNT]);
    if (has(t, COL_RECEIVED) && !has_amount)
        refuse(r, "received goes with a column amount or minor");
}

static void check_heading(struct table *t)
{
    struct reading *r = t->r;
    const int names_customer = has(t, COL_SERIAL) && has(t, COL_CUST);

    for (int i = 0; i < COLUMNS; i++)
        if (r->names[i] != column_default((enum column)i) && !has(t, (enum column)i))
            refuse(r, "the line that names the columns has no '%.80s', which the map names",
                   r->names[i]);
    if (!names_customer && r->rules.map == NULL)
        refuse(r, "the first line names no columns serial_no and cust_no");
    if (!names_customer && !has(t, COL_SERIAL) && !has(t, COL_KEY) && !has(t, COL_REF))
        refuse(r, "no column says whose payment it is: map serial, key or ref");
    check_amounts(t);
    if (t->unknown[0] != '\0')
        refuse(r,
               "the column %s is not known: what it says would not be compared, unless it is named "
               "as one to be ignored",
               t->unknown);
}

static void take_record(int terminator, void *context)
{
    struct table *t = context;
    struct reading *r = t->r;

    (void)terminator;
    if (t->columns == 0) {
        check_heading(t);
        t->columns = t->at;
    } else if (t->is_total) {
        r->to->totals++;
    } else {
        if (t->at != t->columns)
            misread(r, "the line has %u cells, and the first line names %u columns", t->at,
                    t->columns);
        end_record(r);
    }
    t->at = 0;
    t->is_total = 0;
}

/* Line by line, so that a problem names its line. */
static void parse(struct table *t, struct csv_parser *parser, const char *bytes, size_t size)
{
    struct reading *r = t->r;

    while (size > 0 && r->problem[0] == '\0') {
        const char *end = memchr(bytes, '\n', size);
        const size_t line = end != NULL ? (size_t)(end - bytes) + 1 : size;

        if (r->line > r->preamble &&
            csv_parse(parser, bytes, line, take_field, take_record, t) != line)
            refuse(r, "a quote stands in the wrong place");
        r->line += end != NULL && r->problem[0] == '\0';
        bytes += line;
        size -= line;
    }
}

void read_csv(struct reading *r, const char *text, size_t size)
{
    struct table t = {.r = r};
    struct csv_parser parser;

    for (int i = 0; i < COLUMNS; i++)
        t.places[i] = -1;
    if (csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) != 0) {
        refuse(r, "out of memory");
        return;
    }
    csv_set_delim(&parser, (unsigned char)r->delimiter);
    parse(&t, &parser, text, size);
    if (r->problem[0] == '\0' && csv_fini(&parser, take_field, take_record, &t) != 0)
        refuse(r, "a quote is not closed");
    if (size > 0 && text[size - 1] != '\n' && text[size - 1] != '\r')
        refuse(r, "the last line has no end: the file may be cut");
    if (t.columns == 0)
        refuse(r, "it is empty");
    csv_free(&parser);
}
