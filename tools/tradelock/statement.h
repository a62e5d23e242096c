/* The payments of a channel's ledger or statement, from a CSV file. */
#ifndef TRADELOCK_STATEMENT_H
#define TRADELOCK_STATEMENT_H

#include <tradelock/admin.h>

#include <stdio.h>

struct statement {
    tl_payment *payments;
    size_t count;
    /* Own memory. */
    char **texts;
    size_t text_count, text_space, space;
};

struct statement_rules {
    const char *ignored; /* columns to be passed over, with commas between; NULL: none */
    const char *op_code; /* of payments that name none */
    int is_filed;        /* evidence is to be filed of each payment: it must be possible */
    size_t most;         /* payments; 0: as many as there is memory for */
};

/*
 * The first line names the columns: serial_no and cust_no must be among them; op_code, channel_key,
 * channel_ref, amount_minor and currency may be.  seq, paid_at and payee, which a simulator
 * exports, and what the rules name are passed over.  Any other column is refused, and so are a
 * column that stands twice, a line with more or fewer cells, text that is no UTF-8 or has a control
 * character, and a last line without its end.  0, or -1 with one sentence that names the line.
 */
int statement_read(struct statement *self, const char *path, const struct statement_rules *rules,
                   char *problem, size_t space);
/* The same from an open file; name is what a problem calls it. */
int statement_read_from(struct statement *self, FILE *file, const char *name,
                        const struct statement_rules *rules, char *problem, size_t space);
void statement_free(struct statement *self);

/* Whether somebody can be called so: what is no customer is of no shard. */
int statement_names_customer(const tl_payment *payment);
/*
 * Puts the payments in the order of place[i] of each, which is less than `places`; those of one
 * place keep theirs.  Those from first[p] on, and before first[p + 1], are of place p; so first has
 * one more than there are places.  No statement stays none. -1: out of memory, and no payment moved.
 */
int statement_sort(struct statement *self, const size_t *place, size_t places, size_t *first);

#endif
