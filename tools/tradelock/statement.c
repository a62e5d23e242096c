/* Reads a bank's statement into payments, and finds out whose they are. */
#include "statement_read.h"

#include "print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- reading -- */

/* Lines that were set aside by their number are each one record. */
static void check_aside(struct reading *r)
{
    for (size_t i = 0; i < r->aside_count; i++)
        if (r->aside_seen[i] != 1) {
            r->line = 0;
            refuse(r,
                   r->aside_seen[i] == 0 ? "aside: no payment stands in line %u"
                                         : "aside: several payments stand in line %u",
                   r->aside[i]);
        }
}

/* "; 5 more lines are not understood: 5, 9, 10 ...". */
static void add_lines(char *to, size_t space, const struct reading *r)
{
    size_t size = strlen(to);

    if (r->wrong_count > 1 && size < space)
        size += (size_t)snprintf(to + size, space - size, "; %s more %s not understood",
                                 COUNT_TEXT(r->wrong_count - 1),
                                 r->wrong_count == 2 ? "line is" : "lines are");
    for (size_t i = 1; i < r->wrong_count && i < LINES_NAMED && size < space; i++)
        size += (size_t)snprintf(to + size, space - size, "%s %u", i == 1 ? ":" : ",",
                                 r->wrong_lines[i]);
    if (r->wrong_count > LINES_NAMED && size < space)
        snprintf(to + size, space - size, " ...");
}

static void say_problem(char *to, size_t space, const struct reading *r, const char *name)
{
    if (r->wrong_count > 0) {
        snprintf(to, space, "%s:%u: %s", name, r->wrong_lines[0], r->first_wrong);
        add_lines(to, space, r);
    } else if (r->line > 0)
        snprintf(to, space, "%s:%u: %s", name, r->line, r->problem);
    else
        snprintf(to, space, "%s", r->problem);
}

static int is_xml(const char *text, size_t size)
{
    size_t at = 0;

    while (at < size && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
        at++;
    return at < size && text[at] == '<';
}

int statement_read_bytes(struct statement *self, const char *bytes, size_t size, const char *name,
                         const struct statement_rules *rules, char *problem, size_t space)
{
    struct reading r = {.to = self, .rules = *rules};
    char *text = NULL;
    size_t decoded = 0;

    memset(self, 0, sizeof *self);
    read_rules(&r);
    if (r.rules.channel != NULL)
        self->channel = keep_text(&r, r.rules.channel, strlen(r.rules.channel));
    if (r.problem[0] == '\0') {
        r.line = 1;
        text = decode(&r, bytes, size, &decoded);
    }
    if (r.problem[0] == '\0' && is_xml(text, decoded))
        read_camt(&r, text, decoded, is_converted(&r, bytes, size));
    else if (r.problem[0] == '\0')
        read_csv(&r, text, decoded);
    free(text);
    /* A statement without payments is still a statement. */
    if (r.problem[0] == '\0' && self->payments == NULL &&
        (self->payments = calloc(1, sizeof *self->payments)) == NULL)
        refuse(&r, "out of memory");
    if (r.problem[0] == '\0' && r.wrong_count == 0)
        check_aside(&r);
    if (r.problem[0] == '\0' && r.wrong_count == 0)
        return 0;
    say_problem(problem, space, &r, name);
    statement_free(self);
    return -1;
}

/* All bytes of a file, which may be a pipe; NULL: errno says why. */
static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re"), *to;
    char *bytes = NULL, buffer[65536];
    int error = 0;

    if (file == NULL)
        return NULL;
    to = open_memstream(&bytes, size);
    if (to == NULL) {
        fclose(file);
        errno = ENOMEM;
        return NULL;
    }
    while (error == 0 && !feof(file)) {
        const size_t got = fread(buffer, 1, sizeof buffer, file);

        if (ferror(file))
            error = errno != 0 ? errno : EIO;
        else if (fwrite(buffer, 1, got, to) != got)
            error = ENOMEM;
    }
    if (fclose(to) != 0 && error == 0)
        error = ENOMEM;
    fclose(file);
    if (error == 0)
        return bytes;
    free(bytes);
    errno = error;
    return NULL;
}

int statement_read(struct statement *self, const char *path, const struct statement_rules *rules,
                   char *problem, size_t space)
{
    size_t size = 0;
    char *bytes = read_file(path, &size);
    int result;

    if (bytes == NULL) {
        snprintf(problem, space, "%s: %s", path, strerror(errno));
        return -1;
    }
    result = statement_read_bytes(self, bytes, size, path, rules, problem, space);
    free(bytes);
    return result;
}

void statement_free(struct statement *self)
{
    for (size_t i = 0; i < self->text_count; i++)
        free(self->texts[i]);
    free(self->texts);
    free(self->payments);
    free(self->fits);
    memset(self, 0, sizeof *self);
}

/* ------------------------------------------------------------------- finding -- */

int statement_find_begin(struct statement *self)
{
    int is_any = 0;

    for (size_t i = 0; i < self->count; i++)
        is_any |= self->payments[i].cust_no == NULL;
    if (!is_any)
        return 0;
    self->fits = calloc(self->count, sizeof *self->fits);
    return self->fits != NULL ? 1 : -1;
}

/* The payments stay as they are until the end: another trade may fit, too. */
int statement_take_trade(void *context, size_t number, const tl_key *key)
{
    struct statement *self = context;
    struct reading r = {.to = self};
    struct statement_fit *fit = &self->fits[number];

    fit->trades++;
    fit->serial_no = keep_text(&r, key->serial_no, strlen(key->serial_no));
    fit->cust_no = keep_text(&r, key->cust_no, strlen(key->cust_no));
    fit->op_code = keep_text(&r, key->op_code, strlen(key->op_code));
    return r.problem[0] != '\0';
}

/* Whose it is; of nobody's what it was called by is shown. */
static void name_trade(tl_payment *payment, const struct statement_fit *fit)
{
    const char *name = payment->channel_key;

    if (name == NULL || name[0] == '\0')
        name = payment->channel_ref;
    if (fit->trades > 0) {
        payment->op_code = fit->op_code;
        payment->serial_no = fit->serial_no;
    } else if (payment->serial_no == NULL || payment->serial_no[0] == '\0') {
        payment->serial_no = name;
    }
    payment->cust_no = fit->trades > 0 ? fit->cust_no : "";
}

int statement_find_end(struct statement *self, int is_filed, char *problem, size_t space)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->count; i++) {
        const struct statement_fit *fit = &self->fits[i];
        tl_payment payment = self->payments[i];

        if (payment.cust_no == NULL) {
            if (fit->trades > 1 || (fit->trades == 1 && fit->op_code == NULL)) {
                snprintf(problem, space,
                         fit->trades > 1 ? "line %u fits %u trades: set it aside by its number"
                                         : "out of memory for line %u of %u trade",
                         payment.line, fit->trades);
                return -1;
            }
            name_trade(&payment, fit);
        }
        if (is_filed && payment.cust_no[0] == '\0')
            self->unfound++;
        else
            self->payments[kept++] = payment;
    }
    self->count = kept;
    return 0;
}

/* -------------------------------------------------------------------- totals -- */

void statement_sum(const tl_payment *payments, size_t count, tl_list_end *paid,
                   tl_list_end *returned)
{
    for (size_t i = 0; i < count; i++) {
        const tl_payment_amount *amount = &payments[i].amount;
        const int is_back = amount->is_told && amount->amount_minor < 0;

        tl_list_end_add(is_back ? returned : paid, amount->is_told ? amount->currency : NULL,
                        is_back ? -amount->amount_minor : amount->amount_minor);
    }
}

const char *statement_aside(char *to, size_t space, const struct statement *self)
{
    const struct {
        size_t count;
        const char *what;
    } parts[] = {{self->aside[KIND_RECEIVED], "received"},
                 {self->aside[KIND_RETURNED], "returned"},
                 {self->aside[KIND_UNBOOKED], "unbooked"},
                 {self->aside_lines, "by line"},
                 {self->totals, "of totals"}};
    size_t size = 0;

    to[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && size < space; i++)
        if (parts[i].count > 0)
            size += (size_t)snprintf(to + size, space - size, "%s%zu %s", size > 0 ? ", " : "",
                                     parts[i].count, parts[i].what);
    return to;
}

/* ------------------------------------------------------------------- sorting -- */

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
    memcpy(self->payments, payments, count * sizeof *payments);
    free(payments);
    return 0;
}
