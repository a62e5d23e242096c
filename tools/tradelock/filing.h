/* What a statement's payments would file as evidence, as it is shown first, and filing one of them.
 * The command and the desk file alike. */
#ifndef TRADELOCK_FILING_H
#define TRADELOCK_FILING_H

#include "statement.h"

/* A payment that would be filed, and its trade as it was seen. */
struct filing_row {
    const tl_payment *payment;
    tl_payment_view seen;
    char currency[TL_CURRENCY + 1]; /* of the trade */
    /* For people. */
    const char *serial_no, *cust_no, *op_code, *channel_ref, *effect;
    uint64_t fence;
    int64_t paid_minor;
    char paid_currency[TL_CURRENCY + 1];
};

/* Of a filing_row. */
#define FILING_MAP(X)                                                                              \
    X(STRING, serial_no, JSON("serial_no"), LIST("serial", "SERIAL"))                              \
    X(STRING, cust_no, JSON("cust_no"), LIST("customer", "CUSTOMER"))                              \
    X(STRING, op_code, JSON("op_code"), LIST("operation", "OPERATION"))                            \
    X(STRING, channel_ref, JSON("channel_ref"), LIST("ref", "REFERENCE"))                          \
    X(MONEY, paid_minor, JSON("paid_minor"))                                                       \
    X(TEXT, paid_currency, JSON("paid_currency"))                                                  \
    X(NUMBER, fence, JSON("fence"))                                                                \
    X(STRING, effect, JSON("effect"), LIST("effect", "EFFECT"))

struct filing {
    struct filing_row *rows; /* that would be filed */
    size_t count;
    /* Left alone: told twice; known already, and in conflict with the trade all the same; without a
     * trade.  Of the rows: which become conflicts, and which make a trade that a restore lost. */
    uint64_t repeated, known, standing, unknown, contradicting, made;
    tl_list_end trades; /* the money of those that payments are of, each once */
    tl_list_end money;  /* of the rows: what is taken for paid */
    /* While it looks. */
    const tl_payment *last; /* whose trade was told of */
    const tl_payment *paid; /* the first of its trade with a reference, which contradicts nothing */
    const tl_payment *payments;
    int restored; /* a trade that is not there is made */
};

/* Takes out of the statement what it tells twice and what is nobody's: those of one trade then stand
 * together.  -1: out of memory. */
int filing_begin(struct filing *self, struct statement *statement);
void filing_free(struct filing *self);
/* Adds what this database has of so many payments of the statement. */
tl_status filing_look(struct filing *self, tl_client *client, const tl_payment *payments,
                      size_t count);
#define FILING_APART 256
/* What becomes of the rows, and what is left alone, in two sentences. */
const char *filing_apart(char to[FILING_APART], const struct filing *self);
/* As tl_act_evidence().  TL_IN_CONFLICT: it is filed, and two operators decide. */
tl_status filing_one(const struct filing_row *row, tl_client *client, uint64_t act_no,
                     uint64_t row_no, const char *source);
/* Whether that is about the row alone, which is left as it is, so that the others go on. */
int filing_is_of_row(tl_status status);

#endif
