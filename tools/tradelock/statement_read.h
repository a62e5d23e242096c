/* What the readers of statements share: cells become payments, whatever the file's form. */
#ifndef TRADELOCK_STATEMENT_READ_H
#define TRADELOCK_STATEMENT_READ_H

#include "statement.h"

enum column {
    COL_SERIAL,
    COL_CUST,
    COL_OP,
    COL_KEY,
    COL_REF,
    COL_MINOR,
    COL_CURRENCY,
    COL_AMOUNT,   /* in major units */
    COL_RECEIVED, /* what came in, in a column of its own */
    COL_SIGN,
    COL_KIND,
    COL_NONE, /* without a name, behind a line's last delimiter */
    COLUMNS
};

#define LINES_NAMED 16
#define ASIDE_MOST 64

struct reading {
    struct statement *to;
    struct statement_rules rules; /* with those of the profile */
    const char *names[COLUMNS];   /* what the file calls them; NULL: nothing that it could have */
    char delimiter, decimal;
    unsigned preamble;
    unsigned line;            /* of the file; 0: a rule is wrong, and no line */
    const char *row[COLUMNS]; /* of the record that is read; NULL: none */
    enum statement_kind kind; /* of the record, as far as it is known */
    char wrong[256];          /* why the record is not understood; "" */
    char problem[320];        /* why no more is read; "" */
    /* Lines that are not understood, and why the first one is not. */
    char first_wrong[256];
    unsigned wrong_lines[LINES_NAMED];
    size_t wrong_count;
    /* Lines that were set aside, and how many records of each there were. */
    unsigned aside[ASIDE_MOST], aside_seen[ASIDE_MOST];
    size_t aside_count;
    int is_kind_aside[KINDS];
};

/* Nothing more is read; and: this record is not understood.  The first sentence is kept. */
void refuse(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void misread(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A copy that lives as long as the statement; NULL: out of memory, which was said. */
const char *keep_text(struct reading *r, const char *data, size_t size);
/* Whether the name is one of a list with commas between. */
int is_among(const char *list, const char *name, size_t size);

/* Reads the rules: those of the profile, the map, what is set aside.  What is wrong is refused. */
void read_rules(struct reading *r);
/* The column that the map calls so; COLUMNS: none. */
enum column column_named(const char *word, size_t size);
const char *column_default(enum column column);

/* A cell of the record; and the end of the record, which becomes a payment if it is one. */
void take_cell(struct reading *r, enum column column, const char *data, size_t size);
void end_record(struct reading *r);

int is_converted(const struct reading *r, const char *bytes, size_t size);
/* UTF-8 of the bytes, which the caller frees.  NULL: that was refused. */
char *decode(struct reading *r, const char *bytes, size_t size, size_t *decoded);
void read_csv(struct reading *r, const char *text, size_t size);
/* is_utf8: whatever the text says of its encoding. */
void read_camt(struct reading *r, const char *text, size_t size, int is_utf8);
/* Minor units of an amount in major ones, without a sign; 0: it is none of this currency. */
int amount_units(const char *text, char decimal, const char *currency, int64_t *minor);

#endif
