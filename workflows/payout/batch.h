/* The batch file: a header, and one payout a line.  No field may hold a comma or a quote. */
#ifndef PAYOUT_BATCH_H
#define PAYOUT_BATCH_H

#include "payout.h"

#define BATCH_HEADER "serial_no,amount_minor,currency,iban"
#define BATCH_COLUMNS 4

typedef enum line_kind {
    LINE_OPEN,    /* in process, or not tried yet */
    LINE_PAID,    /* by this run */
    LINE_BEFORE,  /* paid before it */
    LINE_FAILED,  /* with proof that no money moved */
    LINE_REFUSED, /* it did nothing: bad, repeated, changed, or the treasury has too little */
    LINE_ERROR,   /* the server could not be asked */
    LINE_KINDS
} line_kind;

typedef struct line {
    unsigned number;
    char *text; /* what the file has, cut at the commas; serial_no is its beginning */
    payout_order order;
    line_kind kind;
    char sentence[320]; /* why it was not paid; "" */
    tl_status status;   /* LINE_ERROR */
} line;

typedef struct batch {
    line *lines;
    size_t count, space;
} batch;

/* Reads the file.  A line that cannot be paid, and one whose serial number stands above it, becomes
 * LINE_REFUSED.  0; or -1 with one sentence, when the file cannot be used at all. */
int batch_read(batch *self, const char *file, char *problem, size_t space);
void batch_free(batch *self);

#endif
