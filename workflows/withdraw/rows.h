/* The input file, a header and one withdrawal a line; and the output file: each line with its
 * answer. */
#ifndef WITHDRAW_ROWS_H
#define WITHDRAW_ROWS_H

#include "withdraw.h"

#include <stdio.h>

#define ROW_COLUMNS 6
#define ROWS_HEADER "serial_no,cust_no,op,amount_minor,currency,payee"
#define ROW_LINE_MAX 4096
#define ANSWERS_HEADER ROWS_HEADER ",answer,final_status,kind,detail"

enum { COL_SERIAL, COL_CUST, COL_OP, COL_AMOUNT, COL_CURRENCY, COL_PAYEE };

/* What a line counts as in the books. */
typedef enum row_kind {
    ROW_OPEN,     /* not answered yet */
    ROW_NEW,      /* this line made the trade */
    ROW_REPEATED, /* the trade was there already */
    ROW_MISMATCH,
    ROW_REFUSED,
    ROW_BAD,
    ROW_ERROR, /* nothing is known: the server could not be asked */
    ROW_KINDS
} row_kind;

typedef struct row {
    unsigned line;
    char *columns[ROW_COLUMNS]; /* as in the file; "" where the line has none */
    withdraw_order order;       /* unless BAD */
    row_kind kind;
    char *sentence;               /* why it is BAD; else a remark or NULL */
    tl_status status;             /* of the run */
    int64_t tried_ms, give_up_ms; /* over a fleet: it was tried then, and is until then; or 0 */
    char final[16];               /* what the trade is at the end, "" when there is none */
} row;

typedef struct rows {
    row *list;
    size_t count, space;
} rows;

/*
 * Reads the file.  RFC 4180, except that a record ends with its line: none of the columns may have
 * a line break, so a quote that is never closed spoils its own line only.  A line that cannot be a
 * withdrawal becomes a BAD row; reading goes on. 0; or -1 with one sentence when the file cannot be
 * read or has another header.
 */
int rows_read(rows *self, FILE *file, const char *name, char *problem, size_t space);
void rows_free(rows *self);

/* Of a batch: makes each line BAD whose serial number stands above it already.  0, or -1: there is
 * no memory. */
int rows_refuse_repeated(rows *self);

/* Sets the kind, and the sentence, which is copied. */
void row_note(row *self, row_kind kind, const char *sentence);

/* What a finished run makes of its line: own: its call was the attempt. */
row_kind answer_kind(tl_status status, int own);

/* 0, or -1 with errno. */
int answers_write(FILE *file, const rows *all);

#endif
