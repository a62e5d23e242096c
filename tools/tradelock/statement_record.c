/* Makes payments of the records of a statement, and counts those that count for nothing.  Touches no
 * file. */
#include "statement_read.h"

#include "array_room.h"
#include "print.h"

#include <tradelock/layer.h>
#include <tradelock/money.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word; /* of a map */
    const char *name; /* of the file without a map; NULL: it has none */
    size_t most;      /* bytes, where evidence is filed */
    int is_name;      /* without spaces, where evidence is filed */
} columns[COLUMNS] = {
    [COL_SERIAL] = {"serial", "serial_no", TL_SERIAL_MAX, 1},
    [COL_CUST] = {"cust", "cust_no", TL_CUST_MAX, 1},
    [COL_OP] = {"op", "op_code", TL_OP_MAX, 1},
    [COL_KEY] = {"key", "channel_key", TL_CHANNEL_KEY_MAX, 1},
    [COL_REF] = {"ref", "channel_ref", TL_REF_MAX, 0},
    [COL_MINOR] = {"minor", "amount_minor", 20, 1},
    [COL_CURRENCY] = {"currency", "currency", TL_CURRENCY, 1},
    [COL_AMOUNT] = {"amount", NULL, 40, 0},
    [COL_RECEIVED] = {"received", NULL, 40, 0},
    [COL_SIGN] = {"sign", NULL, TL_REF_MAX, 0},
    [COL_KIND] = {"kind", NULL, TL_REF_MAX, 0},
    [COL_NONE] = {"", "", 0, 0},
};

enum column column_named(const char *word, size_t size)
{
    int i = 0;

    while (i < COL_NONE &&
           (strlen(columns[i].word) != size || memcmp(columns[i].word, word, size) != 0))
        i++;
    return i < COL_NONE ? (enum column)i : COLUMNS;
}

const char *column_default(enum column column)
{
    return columns[column].name;
}

static void say(char *to, size_t space, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

static void say(char *to, size_t space, const char *format, va_list arguments)
{
    if (to[0] == '\0')
        vsnprintf(to, space, format, arguments);
}

void refuse(struct reading *r, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(r->problem, sizeof r->problem, format, arguments);
    va_end(arguments);
}

void misread(struct reading *r, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(r->wrong, sizeof r->wrong, format, arguments);
    va_end(arguments);
}

const char *keep_text(struct reading *r, const char *data, size_t size)
{
    struct statement *to = r->to;
    const int has_room = array_room(&to->texts, to->text_count, sizeof *to->texts);
    char *text = has_room ? malloc(size + 1) : NULL;

    if (text == NULL) {
        refuse(r, "out of memory");
        return NULL;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    to->texts[to->text_count++] = text;
    return text;
}

int is_among(const char *list, const char *name, size_t size)
{
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ",");

        if (length == size && memcmp(list, name, size) == 0)
            return 1;
        list += length + (list[length] == ',');
    }
    return 0;
}

/* --------------------------------------------------------------------- cells -- */

/* Nothing is cut or changed when it is stored or shown. */
static void check_text(struct reading *r, enum column column, const char *text, size_t size)
{
    const int is_filed = r->rules.is_filed;
    const size_t most = is_filed || column == COL_NONE ? columns[column].most : TL_REF_MAX;
    const char *name = r->names[column], *at = text;

    if (size > most)
        misread(r,
                column == COL_NONE ? "a cell without a column is not empty"
                                   : "%s is longer than %zu bytes",
                name, most);
    while (*at != '\0' && tl_utf8_size(at) > 0 && (unsigned char)*at >= ' ' && *at != 0x7f &&
           !(is_filed && columns[column].is_name && (*at == ' ' || (unsigned char)*at > '~')))
        at += tl_utf8_size(at);
    if (at != text + size)
        misread(r, "byte %td of %s (0x%02x) is no UTF-8, a control character, or not of a name",
                at - text + 1, name, (unsigned)(unsigned char)*at);
}

void take_cell(struct reading *r, enum column column, const char *data, size_t size)
{
    const char *text = keep_text(r, data, size);

    if (text != NULL)
        check_text(r, column, text, size);
    r->row[column] = text;
}

static int is_told(const struct reading *r, enum column column)
{
    return r->row[column] != NULL && r->row[column][0] != '\0';
}

/* ---------------------------------------------------------------------- kind -- */

static void take_word(struct reading *r, const char *name, const char *word)
{
    for (int kind = KINDS - 1; kind >= 0; kind--)
        if (is_among(r->rules.words[kind], word, strlen(word))) {
            if (kind > (int)r->kind)
                r->kind = (enum statement_kind)kind;
            return;
        }
    misread(r, "'%.80s' of %.80s is no word of paid, received, returned or unbooked", word, name);
}

/* Whether the sign of an amount says something. */
static int signs_say(const struct reading *r)
{
    for (int kind = 0; kind < KINDS; kind++)
        if (is_among(r->rules.words[kind], "-", 1) || is_among(r->rules.words[kind], "+", 1))
            return 1;
    return 0;
}

static void read_kind(struct reading *r)
{
    for (int i = COL_SIGN; i <= COL_KIND; i++)
        if (r->row[i] != NULL)
            take_word(r, r->names[i], r->row[i]);
    if (is_told(r, COL_RECEIVED) && r->kind < KIND_RECEIVED)
        r->kind = KIND_RECEIVED;
}

/* -------------------------------------------------------------------- amount -- */

/* The digits before the decimal sign, with marks between thousands or without; how many bytes. */
static size_t whole_part(const char *text, char decimal)
{
    const char mark = decimal == ',' ? '.' : ',';
    size_t size = strspn(text, "0123456789");
    char used = '\0';

    if (size < 1 || size > 3 || text[0] == '0')
        return size;
    while ((text[size] == mark || text[size] == '\'' || text[size] == ' ') &&
           (used == '\0' || text[size] == used) && strspn(text + size + 1, "0123456789") == 3) {
        used = text[size];
        size += 4;
    }
    return size;
}

/* 1.250,00 of two digits is 125000; 0: it is no such amount. */
static int read_units(const char *text, char decimal, int digits, int64_t *minor)
{
    const size_t whole = whole_part(text, decimal);
    size_t cents = 0;
    int64_t value = 0;

    if (text[whole] == decimal)
        cents = strspn(text + whole + 1, "0123456789");
    if (whole == 0 || cents > (size_t)digits || (text[whole] == decimal && cents == 0) ||
        text[whole + (cents > 0) + cents] != '\0')
        return 0;
    for (size_t i = 0; i < whole + (cents > 0) + cents; i++)
        if (text[i] >= '0' && text[i] <= '9' &&
            (__builtin_mul_overflow(value, 10, &value) ||
             __builtin_add_overflow(value, text[i] - '0', &value)))
            return 0;
    for (; cents < (size_t)digits; cents++)
        if (__builtin_mul_overflow(value, 10, &value))
            return 0;
    *minor = value;
    return 1;
}

int amount_units(const char *text, char decimal, const char *currency, int64_t *minor)
{
    const int digits = tl_currency_digits(currency);

    return digits >= 0 && read_units(text, decimal, digits, minor);
}

static void read_major(struct reading *r, const char *text, const char *currency, int64_t *minor)
{
    const int is_signed = text[0] == '-' || text[0] == '+';
    const int digits = tl_currency_digits(currency);

    if (digits < 0)
        misread(r, "'%.40s' names no currency, or one without cents and units", text);
    else if (!read_units(text + is_signed, r->decimal, digits, minor))
        misread(r,
                "'%.40s' is no amount of %.8s: %d digits stand behind a '%c', or it is too large",
                text, currency, digits, r->decimal);
    else if (text[0] == '-')
        *minor = -*minor;
}

/* A whole number of minor units. */
static void read_minor(struct reading *r, const char *text, int64_t *minor)
{
    const char *digits = text[0] == '-' ? text + 1 : text;

    errno = 0;
    *minor = strtoll(text, NULL, 10);
    if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits) || errno != 0 ||
        *minor == INT64_MIN)
        misread(r, "%s is a whole number of minor units, not '%s'", r->names[COL_MINOR], text);
}

/* "" and a column that is not there tell none.  What came back is below 0; but many banks write what
 * they paid so, and only amount_minor by its own name is known to be another's form. */
static void read_amount(struct reading *r, tl_payment_amount *to)
{
    const int is_major = r->row[COL_AMOUNT] != NULL;
    const char *amount = r->row[is_major ? COL_AMOUNT : COL_MINOR];

    if (is_told(r, COL_RECEIVED)) {
        if (amount != NULL && amount[0] != '\0')
            misread(r, "an amount stands in %s and in %s",
                    r->names[is_major ? COL_AMOUNT : COL_MINOR], r->names[COL_RECEIVED]);
        amount = r->row[COL_RECEIVED];
    }
    if (amount == NULL || amount[0] == '\0')
        return;
    to->is_told = 1;
    if (is_major)
        read_major(r, amount, to->currency, &to->amount_minor);
    else
        read_minor(r, amount, &to->amount_minor);
    if (signs_say(r)) {
        take_word(r, "the amount", to->amount_minor < 0 ? "-" : "+");
        if (to->amount_minor < 0)
            to->amount_minor = -to->amount_minor;
    } else if (to->amount_minor < 0 && r->kind == KIND_PAID &&
               (is_major || r->names[COL_MINOR] != column_default(COL_MINOR))) {
        misread(r,
                "'%.40s' is below 0: say what that means by --paid + --returned -, or by "
                "--paid - --returned +",
                amount);
    }
    if (to->amount_minor < 0 && r->kind == KIND_PAID)
        r->kind = KIND_RETURNED;
    if (r->kind == KIND_RETURNED && to->amount_minor > 0)
        to->amount_minor = -to->amount_minor;
}

/* ------------------------------------------------------------------- payment -- */

/* What evidence has to have, and a statement may leave out. */
static void check_filed(struct reading *r, const tl_payment *payment)
{
    static const enum column due[] = {COL_SERIAL, COL_CUST,   COL_OP,
                                      COL_MINOR,  COL_AMOUNT, COL_CURRENCY};
    const char *currency = payment->amount.currency;

    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++)
        if (r->row[due[i]] != NULL && r->row[due[i]][0] == '\0' &&
            !(due[i] == COL_AMOUNT && is_told(r, COL_RECEIVED)))
            misread(r, "%s is empty", r->names[due[i]]);
    if (payment->cust_no != NULL && payment->op_code == NULL)
        misread(r, "the payment names no op_code: say --op");
    if (currency != NULL && (strlen(currency) != TL_CURRENCY ||
                             strspn(currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != TL_CURRENCY))
        misread(r, "currency is three letters A to Z, not '%s'", currency);
}

/* What names no trade could be of any. */
static void check_named(struct reading *r, tl_payment *payment)
{
    if (r->row[COL_SERIAL] != NULL && r->row[COL_CUST] != NULL)
        return;
    payment->cust_no = NULL;
    if (!is_told(r, COL_KEY) && !is_told(r, COL_REF) && !is_told(r, COL_SERIAL))
        misread(r, "nothing says whose payment it is");
    else if (r->rules.is_filed && r->rules.channel == NULL && !is_told(r, COL_KEY))
        misread(r, "it names neither a channel key nor a customer: say --channel");
}

static const char *told_or(const struct reading *r, enum column column, const char *otherwise)
{
    return otherwise != NULL && !is_told(r, column) ? otherwise : r->row[column];
}

static void add_payment(struct reading *r, const tl_payment *payment)
{
    struct statement *to = r->to;

    if (r->rules.most > 0 && to->count == r->rules.most)
        refuse(r, "there are more than %s payments, and no more are taken here",
               COUNT_TEXT(r->rules.most));
    if (!array_room(&to->payments, to->count, sizeof *to->payments)) {
        refuse(r, "out of memory");
        return;
    }
    if (r->problem[0] == '\0')
        to->payments[to->count++] = *payment;
}

/* Whether its line was set aside by its number. */
static int is_line_aside(struct reading *r)
{
    for (size_t i = 0; i < r->aside_count; i++)
        if (r->aside[i] == r->line) {
            r->aside_seen[i]++;
            r->to->aside_lines++;
            return 1;
        }
    return 0;
}

static void note_wrong(struct reading *r)
{
    if (r->wrong_count == 0)
        memcpy(r->first_wrong, r->wrong, sizeof r->wrong);
    if (r->wrong_count < LINES_NAMED)
        r->wrong_lines[r->wrong_count] = r->line;
    r->wrong_count++;
}

void end_record(struct reading *r)
{
    tl_payment payment = {.serial_no = r->row[COL_SERIAL],
                          .cust_no = r->row[COL_CUST],
                          .op_code = told_or(r, COL_OP, r->rules.op_code),
                          .channel_key = r->row[COL_KEY],
                          .channel_ref = r->row[COL_REF],
                          .amount = {.currency = told_or(r, COL_CURRENCY, r->rules.currency)},
                          .line = r->line};

    r->row[COL_OP] = payment.op_code;
    r->row[COL_CURRENCY] = payment.amount.currency;
    read_kind(r);
    read_amount(r, &payment.amount);
    if (r->kind != KIND_RECEIVED && r->kind != KIND_UNBOOKED) {
        check_named(r, &payment);
        if (r->rules.is_filed)
            check_filed(r, &payment);
        if (r->kind == KIND_RETURNED && payment.amount.amount_minor == 0)
            misread(r, "a payment came back, and nothing says how much of it");
        if (r->kind == KIND_PAID && payment.amount.is_told && payment.amount.amount_minor == 0)
            misread(r, "it pays 0, which is no payment");
    } else if (!r->is_kind_aside[r->kind]) {
        misread(r, r->kind == KIND_RECEIVED
                       ? "money was received: nothing is done until that kind is set aside"
                       : "it is unbooked: nothing is done until that kind is set aside");
    }
    if (is_line_aside(r))
        ;
    else if (r->wrong[0] != '\0')
        note_wrong(r);
    else if (r->is_kind_aside[r->kind])
        r->to->aside[r->kind]++;
    else
        add_payment(r, &payment);
    memset(r->row, 0, sizeof r->row);
    r->wrong[0] = '\0';
    r->kind = KIND_PAID;
}
